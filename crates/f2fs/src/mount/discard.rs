//! Telling the device what is no longer needed, after the checkpoint that no longer refers to it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::BlockDevice;

use super::F2fs;
use crate::error::Error;
use crate::format::BLOCKS_IN_SEGMENT;

/// Extents discarded in one round (Linux 6.1: `max_discard_request`).
pub(super) const REQUESTS_A_ROUND: usize = 8;

/// Extents of at least so many blocks are known by their length as well: what rounds ask for most of the time.
const LONG: u32 = 16;

/// Extents that no checkpoint refers to, start to length, until the device is told.
#[derive(Debug, Default)]
pub(super) struct DiscardQueue {
    extents: BTreeMap<u32, u32>,
    /// The long ones, by length and start.
    long: BTreeSet<(Reverse<u32>, u32)>,
}

impl DiscardQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Takes in an extent, joined with its neighbours.
    pub(super) fn add(&mut self, mut start: u32, mut len: u32) {
        self.keep(start, len);
        if let Some((&before, &size)) = self.extents.range(..start).next_back()
            && before + size == start
        {
            self.remove(before, size);
            (start, len) = (before, size + len);
        }
        if let Some(&size) = self.extents.get(&(start + len)) {
            self.remove(start + len, size);
            len += size;
        }
        self.insert(start, len);
    }

    fn insert(&mut self, start: u32, len: u32) {
        self.extents.insert(start, len);
        if len >= LONG {
            self.long.insert((Reverse(len), start));
        }
    }

    fn remove(&mut self, start: u32, len: u32) {
        self.extents.remove(&start);
        if len >= LONG {
            self.long.remove(&(Reverse(len), start));
        }
    }

    /// These blocks are in use again.
    pub(super) fn keep(&mut self, start: u32, len: u32) {
        if self.extents.is_empty() {
            return;
        }
        let end = start + len;
        while let Some((&from, &size)) = self.extents.range(..end).next_back() {
            if from + size <= start {
                return;
            }
            self.remove(from, size);
            if from + size > end {
                self.insert(end, from + size - end);
            }
            if from < start {
                self.insert(from, start - from);
            }
        }
    }

    /// At most `count` extents of at least `granularity` blocks: long ones first, the longest before all, then short ones in
    /// the order of addresses. They leave the queue.
    pub(super) fn take(&mut self, count: usize, granularity: u32) -> Vec<(u32, u32)> {
        let long = self.long.iter().map(|&(Reverse(len), start)| (start, len));
        let mut found: Vec<_> = long.take_while(|&(_, len)| len >= granularity).take(count).collect();
        if granularity < LONG && found.len() < count {
            let short = self.extents.iter().map(|(&start, &len)| (start, len));
            let short = short.filter(|&(_, len)| (granularity..LONG).contains(&len));
            found.extend(short.take(count - found.len()));
        }
        found.iter().for_each(|&(start, len)| self.remove(start, len));
        found
    }
}

impl<D: BlockDevice> F2fs<D> {
    /// What the checkpoint that is now complete no longer refers to is to be discarded. To be called before the maps
    /// are brought up to date.
    pub(super) fn discard_after_checkpoint(&mut self) {
        if !self.options.discard || !self.io.device().info().capabilities.discard {
            return;
        }
        for (start, len) in self.segments.freed_since_checkpoint() {
            self.discards.add(start, len);
        }
        let prefree: Vec<_> = self.segments.prefree().collect();
        for segno in prefree {
            self.discards.add(self.segments.address(segno, 0).0, BLOCKS_IN_SEGMENT);
        }
    }

    /// Discards some of what is waiting; `true` if there was any of at least `granularity` blocks.
    pub(super) fn discard_some(&mut self, count: usize, granularity: u32) -> Result<bool, Error> {
        let extents = self.discards.take(count, granularity);
        self.io.discard(&extents)?;
        Ok(!extents.is_empty())
    }

    /// Discards all that is waiting.
    pub(super) fn discard_all(&mut self) -> Result<(), Error> {
        self.discard_some(usize::MAX, 1).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_joined_and_cut() {
        let mut queue = DiscardQueue::default();
        queue.add(10, 5);
        queue.add(20, 5);
        queue.add(15, 5);
        assert_eq!(queue.extents, BTreeMap::from([(10, 15)]));
        queue.keep(12, 1);
        queue.keep(24, 10);
        assert_eq!(queue.extents, BTreeMap::from([(10, 2), (13, 11)]));
        queue.add(11, 3);
        assert_eq!(queue.extents, BTreeMap::from([(10, 14)]));
        queue.add(100, 2);
        assert_eq!(queue.take(5, 3), [(10, 14)]);
        assert_eq!(queue.take(5, 1), [(100, 2)]);
        assert!(queue.is_empty());
    }
}
