//! Parts of a damaged directory that cannot be shown.

use std::fmt::Display;

/// Sentences kept for one directory. Assumed: a block of entries that is all wrong is told in full.
const KEPT: usize = 256;

/// Reasons why entries, or blocks of them, were left out of a listing. For a directory with much
/// damage: the first ones, and a count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    told: Vec<String>,
    more: u64,
}

impl LeftOut {
    /// Takes in why something is left out; the same reason several times in a row counts once.
    pub fn push(&mut self, why: impl Display) {
        let why = why.to_string();
        if self.told.last() == Some(&why) {
            return;
        }
        if self.told.len() < KEPT {
            self.told.push(why);
        } else {
            self.more += 1;
        }
    }

    /// Nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// A sentence for each, in the order of the disk.
    pub fn sentences(self) -> impl Iterator<Item = String> {
        let more = (self.more > 0)
            .then(|| format!("{} more faults of this directory are not listed", self.more));
        self.told.into_iter().chain(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_faults_count_once_and_many_are_counted() {
        let mut left = LeftOut::default();
        assert!(left.is_empty());
        ["a", "a", "b", "a"].into_iter().for_each(|why| left.push(why));
        assert_eq!(left.clone().sentences().collect::<Vec<_>>(), ["a", "b", "a"]);
        (0..KEPT).for_each(|n| left.push(n));
        assert_eq!(
            left.sentences().last().as_deref(),
            Some("3 more faults of this directory are not listed")
        );
    }
}
