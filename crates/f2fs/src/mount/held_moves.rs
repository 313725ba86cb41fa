//! Held moves: blocks that remapped cleaning gave new addresses, until the device moves them with
//! the next checkpoint.
//!
//! The last checkpoint has the old addresses, and a remap unmaps its sources at once. So the
//! content stays where it is, and is read there.

use std::collections::BTreeMap;

use dovetail_block::{Lba, RemapPair};

use crate::format::BlockAddr;

/// All of them: the address at which the device has a block, by the one that the volume knows.
#[derive(Debug, Default)]
pub(crate) struct HeldMoves {
    stored_at: BTreeMap<BlockAddr, BlockAddr>,
}

/// Neighbouring blocks of the volume that the device has side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredRun {
    pub(crate) start: BlockAddr,
    pub(crate) blocks: usize,
}

impl HeldMoves {
    pub(crate) fn is_empty(&self) -> bool {
        self.stored_at.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.stored_at.len()
    }

    /// The block at `from` gets to `to` with the next checkpoint.
    pub(crate) fn add(&mut self, to: BlockAddr, from: BlockAddr) {
        self.stored_at.insert(to, from);
    }

    /// Nothing is to get to `to` any more.
    pub(crate) fn remove(&mut self, to: BlockAddr) {
        self.stored_at.remove(&to);
    }

    /// The address at which the device has a block of the volume.
    pub(crate) fn stored_at(&self, address: BlockAddr) -> BlockAddr {
        self.stored_at.get(&address).copied().unwrap_or(address)
    }

    /// The runs in which the device has neighbouring blocks of the volume.
    pub(crate) fn stored_runs(&self, start: BlockAddr, blocks: usize) -> Vec<StoredRun> {
        if self.is_empty() {
            return vec![StoredRun { start, blocks }];
        }
        let mut runs: Vec<StoredRun> = Vec::new();
        for at in (0..blocks as u64).map(|block| self.stored_at(start.plus(block))) {
            match runs.last_mut() {
                Some(run) if run.start.plus(run.blocks as u64) == at => run.blocks += 1,
                _ => runs.push(StoredRun { start: at, blocks: 1 }),
            }
        }
        runs
    }

    /// All of them, in the order of their new addresses.
    pub(crate) fn pairs(&self) -> Vec<RemapPair> {
        let pair =
            |(to, from): (&BlockAddr, &BlockAddr)| RemapPair { to: Lba(to.0), from: Lba(from.0) };
        self.stored_at.iter().map(pair).collect()
    }

    /// The device has moved them, or the content was written at the new addresses.
    pub(crate) fn clear(&mut self) {
        self.stored_at.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, blocks: usize) -> StoredRun {
        StoredRun { start: BlockAddr(start), blocks }
    }

    #[test]
    fn blocks_are_read_in_runs_where_the_device_has_them() {
        let mut moves = HeldMoves::default();
        assert_eq!(moves.stored_runs(BlockAddr(10), 3), [run(10, 3)]);
        for (to, from) in [(11, 100), (12, 101), (13, 200)] {
            moves.add(BlockAddr(to), BlockAddr(from));
        }
        let expected = [run(10, 1), run(100, 2), run(200, 1), run(14, 2)];
        assert_eq!(moves.stored_runs(BlockAddr(10), 6), expected);
        moves.remove(BlockAddr(12));
        assert_eq!(moves.stored_runs(BlockAddr(11), 2), [run(100, 1), run(12, 1)]);
    }
}
