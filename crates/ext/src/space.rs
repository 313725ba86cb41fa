//! Set of the blocks that are taken, as ranges, for mkfs and fsck.

use std::collections::BTreeMap;
use std::ops::Range;

/// Taken blocks; ranges that touch are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    /// From the start of a range to its end.
    ranges: BTreeMap<u64, u64>,
}

impl Space {
    /// The range that `block` lies in, or that begins after it.
    fn next_taken(&self, block: u64) -> Option<Range<u64>> {
        let before = self.ranges.range(..=block).next_back().filter(|(_, end)| **end > block);
        before.or_else(|| self.ranges.range(block..).next()).map(|(start, end)| *start..*end)
    }

    /// None of the blocks is taken.
    pub(crate) fn is_free(&self, blocks: Range<u64>) -> bool {
        self.next_taken(blocks.start).is_none_or(|taken| taken.start >= blocks.end)
    }

    /// Takes blocks.
    pub(crate) fn take(&mut self, blocks: Range<u64>) {
        if blocks.is_empty() {
            return;
        }
        let mut whole = blocks;
        if let Some((&start, &end)) = self.ranges.range(..=whole.start).next_back()
            && end >= whole.start
        {
            whole = start..whole.end.max(end);
        }
        while let Some((&start, &end)) = self.ranges.range(whole.start..=whole.end).next() {
            whole.end = whole.end.max(end);
            self.ranges.remove(&start);
        }
        self.ranges.insert(whole.start, whole.end);
    }

    /// The first `count` free blocks side by side in `within`.
    pub(crate) fn find(&self, within: Range<u64>, count: u64) -> Option<u64> {
        let mut at = within.start;
        while at + count <= within.end {
            match self.next_taken(at) {
                Some(taken) if taken.start < at + count => at = taken.end,
                _ => return Some(at),
            }
        }
        None
    }

    /// Takes the first free blocks in `within`, at most `count`.
    pub(crate) fn take_next(&mut self, within: Range<u64>, count: u64) -> Option<Range<u64>> {
        let start = self.find(within.clone(), 1)?;
        let free_until =
            self.next_taken(start).map_or(within.end, |taken| taken.start.min(within.end));
        let found = start..free_until.min(start + count);
        self.take(found.clone());
        Some(found)
    }

    /// The taken parts of `within`.
    pub(crate) fn taken(&self, within: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = within.start;
        std::iter::from_fn(move || {
            let taken = self.next_taken(at).filter(|taken| taken.start.max(at) < within.end)?;
            let part = taken.start.max(at)..taken.end.min(within.end);
            at = part.end;
            Some(part)
        })
    }

    /// Number of blocks of `within` that are taken.
    pub(crate) fn count(&self, within: Range<u64>) -> u64 {
        self.taken(within).map(|part| part.end - part.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_of_blocks(taken in prop::collection::vec((0..60_u64, 1..8_u64), 0..12), start in 0..70_u64, len in 1..9_u64) {
            let mut space = Space::default();
            taken.iter().for_each(|(start, len)| space.take(*start..start + len));
            let is_taken = |n: u64| taken.iter().any(|(start, len)| (*start..start + len).contains(&n));
            let range = start..start + len;
            prop_assert_eq!(space.is_free(range.clone()), range.clone().all(|n| !is_taken(n)));
            prop_assert_eq!(space.count(range.clone()), range.filter(|n| is_taken(*n)).count() as u64);
            let found = (start..80 - len).find(|&at| (at..at + len).all(|n| !is_taken(n)));
            prop_assert_eq!(space.find(start..80 - 1, len), found.filter(|at| at + len < 80));
        }
    }
}
