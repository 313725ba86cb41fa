//! The discard queue: what no checkpoint refers to any more, until the device is told.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::bits::Bits;

/// Extents of at least so many blocks are known by start and length: what rounds ask for most of
/// the time. Of shorter ones, which are many and short-lived, only the bits are kept.
const LONG: u32 = 16;

/// Blocks that no checkpoint refers to, until the device is told. Neighbours are one extent.
#[derive(Debug, Default)]
pub(super) struct DiscardQueue {
    waiting: Bits,
    /// The long extents, start to length.
    long: BTreeMap<u32, u32>,
    /// The same by length and start.
    by_length: BTreeSet<(Reverse<u32>, u32)>,
}

impl DiscardQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// An extent of at least so many blocks waits.
    pub(super) fn has(&self, granularity: u32) -> bool {
        let longest = self.by_length.first().map(|&(Reverse(len), _)| len);
        longest.is_some_and(|len| len >= granularity)
            || granularity < LONG && self.extents().any(|(_, len)| len >= granularity)
    }

    /// The extent in which a block that waits lies: start and length.
    fn extent_of(&self, block: u32) -> (u32, u32) {
        let near = |block: u32| self.waiting.get(block);
        let before =
            (1..LONG.min(block + 1)).take_while(|&distance| near(block - distance)).count() as u32;
        let after = (1..LONG).take_while(|&distance| near(block + distance)).count() as u32;
        let (start, len) = (block - before, before + 1 + after);
        let long = if len < LONG { None } else { self.long.range(..=block).next_back() };
        long.map_or((start, len), |(&start, &len)| (start, len))
    }

    /// Takes in an extent, joined with its neighbours.
    pub(super) fn add(&mut self, start: u32, len: u32) {
        self.keep(start, len);
        let (mut from, mut to) = (start, start + len);
        if start > 0 && self.waiting.get(start - 1) {
            let (before, size) = self.extent_of(start - 1);
            self.forget_long(before, size);
            from = before;
        }
        if self.waiting.get(to) {
            let (after, size) = self.extent_of(to);
            self.forget_long(after, size);
            to = after + size;
        }
        self.waiting.set(start..start + len);
        self.note_long(from, to - from);
    }

    fn note_long(&mut self, start: u32, len: u32) {
        if len >= LONG {
            self.long.insert(start, len);
            self.by_length.insert((Reverse(len), start));
        }
    }

    fn forget_long(&mut self, start: u32, len: u32) {
        if len >= LONG {
            self.long.remove(&start);
            self.by_length.remove(&(Reverse(len), start));
        }
    }

    /// These blocks are in use again.
    pub(super) fn keep(&mut self, start: u32, len: u32) {
        let end = start + len;
        while let Some(block) = self.waiting.first_in(start..end) {
            let (from, size) = self.extent_of(block);
            self.forget_long(from, size);
            let (cut, rest) = (from.max(start), (from + size).min(end));
            self.waiting.clear(cut..rest);
            self.note_long(from, cut - from);
            self.note_long(rest, from + size - rest);
        }
    }

    /// At most `count` extents of at least `granularity` blocks: long ones first, the longest
    /// before all, then short ones in the order of addresses. They leave the queue.
    pub(super) fn take(&mut self, count: usize, granularity: u32) -> Vec<(u32, u32)> {
        let long = self.by_length.iter().map(|&(Reverse(len), start)| (start, len));
        let mut found: Vec<_> =
            long.take_while(|&(_, len)| len >= granularity).take(count).collect();
        if granularity < LONG && found.len() < count {
            let short = self.extents().filter(|&(_, len)| (granularity..LONG).contains(&len));
            found.extend(short.take(count - found.len()));
        }
        found.iter().for_each(|&(start, len)| self.keep(start, len));
        found
    }

    /// All extents in the order of addresses.
    fn extents(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let extent = self.extent_of(self.waiting.first_in(next..u32::MAX)?);
            next = extent.0 + extent.1;
            Some(extent)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extents(queue: &DiscardQueue) -> Vec<(u32, u32)> {
        queue.extents().collect()
    }

    #[test]
    fn extents_are_joined_and_cut() {
        let mut queue = DiscardQueue::default();
        queue.add(10, 5);
        queue.add(20, 5);
        queue.add(15, 5);
        assert_eq!(extents(&queue), [(10, 15)]);
        queue.keep(12, 1);
        queue.keep(24, 10);
        assert_eq!(extents(&queue), [(10, 2), (13, 11)]);
        queue.add(11, 3);
        assert_eq!(extents(&queue), [(10, 14)]);
        queue.add(100, 2);
        assert_eq!(queue.take(5, 3), [(10, 14)]);
        assert_eq!(queue.take(5, 1), [(100, 2)]);
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn extents_are_as_in_a_set(ops in prop::collection::vec((any::<bool>(), 0..200_u32, 1..40_u32), 1..60)) {
            let (mut queue, mut set) = (DiscardQueue::default(), BTreeSet::new());
            for (add, start, len) in ops {
                if add {
                    queue.add(start, len);
                    set.extend(start..start + len);
                } else {
                    queue.keep(start, len);
                    set.retain(|block| !(start..start + len).contains(block));
                }
                let mut expected: Vec<(u32, u32)> = Vec::new();
                for &block in &set {
                    match expected.last_mut() {
                        Some((from, size)) if *from + *size == block => *size += 1,
                        _ => expected.push((block, 1)),
                    }
                }
                let long: Vec<_> = expected.iter().copied().filter(|&(_, len)| len >= LONG).collect();
                let longest = expected.iter().map(|&(_, len)| len).max().unwrap_or(0);
                for granularity in [1, 3, LONG, LONG + 7] {
                    prop_assert_eq!(queue.has(granularity), longest >= granularity);
                }
                prop_assert_eq!(extents(&queue), expected);
                prop_assert_eq!(queue.long.iter().map(|(&start, &len)| (start, len)).collect::<Vec<_>>(), long);
                prop_assert_eq!(queue.by_length.len(), queue.long.len());
            }
        }
    }
}
