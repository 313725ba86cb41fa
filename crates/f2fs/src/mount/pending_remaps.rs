//! Pending remaps: updates that were written to staged blocks, until the device has moved them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::{Lba, RemapPair};

use crate::format::{BlockAddr, Nid};

/// An update at the block that it was written to, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Update {
    pub(crate) from: BlockAddr,
    pub(crate) owner: Nid,
}

/// All of them, by the address that they are to have.
#[derive(Debug, Default)]
pub(crate) struct PendingRemaps {
    by_address: BTreeMap<BlockAddr, Update>,
    by_owner: BTreeMap<Nid, BTreeSet<BlockAddr>>,
}

impl PendingRemaps {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// The number of updates that wait for an fsync of this file.
    pub(crate) fn count_of(&self, owner: Nid) -> usize {
        self.by_owner.get(&owner).map_or(0, BTreeSet::len)
    }

    /// Files of which updates wait.
    pub(crate) fn owners(&self) -> Vec<Nid> {
        self.by_owner.keys().copied().collect()
    }

    /// `update` is to get to `to`; returns the one that it readdresses.
    pub(crate) fn add(&mut self, to: BlockAddr, update: Update) -> Option<Update> {
        let before = self.remove(to);
        self.by_address.insert(to, update);
        self.by_owner.entry(update.owner).or_default().insert(to);
        before
    }

    /// Nothing is to get to `to` any more.
    pub(crate) fn remove(&mut self, to: BlockAddr) -> Option<Update> {
        let update = self.by_address.remove(&to)?;
        if let Some(addresses) = self.by_owner.get_mut(&update.owner) {
            addresses.remove(&to);
            if addresses.is_empty() {
                self.by_owner.remove(&update.owner);
            }
        }
        Some(update)
    }

    /// The updates of a file, in the order of their addresses.
    pub(crate) fn of(&self, owner: Nid) -> Vec<RemapPair> {
        let addresses = self.by_owner.get(&owner).into_iter().flatten();
        addresses.filter_map(|to| Some(pair(*to, self.by_address.get(to)?.from))).collect()
    }

    /// All updates, in the order of their addresses.
    pub(crate) fn all(&self) -> Vec<RemapPair> {
        self.by_address.iter().map(|(to, update)| pair(*to, update.from)).collect()
    }

    /// Those that are to get into a range, each with its address.
    pub(crate) fn within(&self, start: BlockAddr, blocks: u32) -> Vec<(BlockAddr, BlockAddr)> {
        let end = BlockAddr(start.0.saturating_add(blocks.into()));
        self.by_address.range(start..end).map(|(to, update)| (*to, update.from)).collect()
    }
}

fn pair(to: BlockAddr, from: BlockAddr) -> RemapPair {
    RemapPair { to: Lba(to.0), from: Lba(from.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(from: u64, owner: u32) -> Update {
        Update { from: BlockAddr(from), owner: Nid(owner) }
    }

    #[test]
    fn a_newer_update_readdresses_the_one_that_waits() {
        let mut pending = PendingRemaps::default();
        assert_eq!(pending.add(BlockAddr(10), update(100, 4)), None);
        assert_eq!(pending.add(BlockAddr(10), update(101, 4)), Some(update(100, 4)));
        assert_eq!((pending.len(), pending.count_of(Nid(4))), (1, 1));
        assert_eq!(pending.of(Nid(4)), [pair(BlockAddr(10), BlockAddr(101))]);
        pending.remove(BlockAddr(10));
        assert!(pending.is_empty() && pending.owners().is_empty());
    }

    #[test]
    fn each_file_has_its_own() {
        let mut pending = PendingRemaps::default();
        for (to, owner) in [(12, 4), (10, 5), (11, 4)] {
            pending.add(BlockAddr(to), update(to + 100, owner));
        }
        assert_eq!(
            pending.within(BlockAddr(10), 2),
            [(10, 110), (11, 111)].map(|(a, b)| (BlockAddr(a), BlockAddr(b)))
        );
        pending.remove(BlockAddr(12));
        assert_eq!(pending.of(Nid(4)), [pair(BlockAddr(11), BlockAddr(111))]);
        assert_eq!(pending.owners(), [Nid(4), Nid(5)]);
        assert_eq!(
            pending.all(),
            [(10, 110), (11, 111)].map(|(to, from)| pair(BlockAddr(to), BlockAddr(from)))
        );
    }
}
