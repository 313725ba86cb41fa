//! The option that somebody may have meant.

use super::options::OPTIONS;

/// The known option whose name is nearest, if it is near at all.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let names =
        OPTIONS.iter().flat_map(|option| option.aliases.iter().copied().chain([option.name]));
    dovetail_time::nearest(name, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        for (slip, meant) in
            [("iodpeth", "iodepth"), ("Size", "size"), ("numjob", "numjobs"), ("fsnc", "fsync")]
        {
            assert_eq!(nearest(slip), Some(meant));
        }
        assert_eq!(nearest("something_else"), None);
        assert_eq!(nearest(""), None);
    }
}
