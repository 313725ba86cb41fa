//! The option that somebody may have meant.

use super::options::OPTIONS;

/// More wrong letters than this are another word.
const WRONG_LETTERS_MAX: usize = 2;

/// The known option whose name is nearest, if it is near at all.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let names =
        OPTIONS.iter().flat_map(|option| option.aliases.iter().copied().chain([option.name]));
    let allowed = WRONG_LETTERS_MAX.min(name.chars().count() / 2);
    names
        .map(|known| (distance(name, known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, known)| known)
}

/// Letters to add, drop or change (Levenshtein); case does not count.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, l) in left.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, r) in right.iter().enumerate() {
            let changed = diagonal + usize::from(l != *r);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
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
