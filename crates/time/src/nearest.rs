//! The known name that somebody may have meant.

/// More wrong letters than this are another word.
const WRONG_LETTERS_MAX: usize = 2;

/// The name that is nearest to `name`, if one is near at all: at most two letters, and half of
/// them, are wrong. Case does not count.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = WRONG_LETTERS_MAX.min(name.chars().count() / 2);
    names
        .into_iter()
        .map(|known| (distance(name, known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, known)| known)
}

/// A question within a sentence: ` (did you mean "ext4"?)`. Besides slips of the pen it
/// finds one longer name that holds all of a shorter one, or one that begins as it does. Empty if
/// there is none.
pub fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let part = || {
        let holds = |known: &&&str| name.chars().count() > 2 && known.contains(name);
        let mut holding = names.iter().filter(holds);
        holding.next().copied()
    };
    let found = nearest(name, names.iter().copied()).or_else(part);
    found.map(|found| format!(" (did you mean \"{found}\"?)")).unwrap_or_default()
}

/// Letters to add, drop or change (Levenshtein); case does not count.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().flat_map(char::to_lowercase).collect();
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

    const NAMES: [&str; 5] = ["f2fs", "ext4", "iodepth", "rmipu-figure-3", "size"];

    #[test]
    fn slips_and_parts_are_recognised() {
        for (slip, meant) in [("iodpeth", "iodepth"), ("Size", "size"), ("F2FSS", "f2fs")] {
            assert_eq!(nearest(slip, NAMES), Some(meant));
        }
        assert_eq!(nearest("something_else", NAMES), None);
        assert_eq!(nearest("", NAMES), None);
        assert_eq!(did_you_mean("ext5", NAMES), " (did you mean \"ext4\"?)");
        assert_eq!(did_you_mean("figure-3", NAMES), " (did you mean \"rmipu-figure-3\"?)");
        assert_eq!(did_you_mean("zfs-on-root", NAMES), "");
    }
}
