//! Pending remaps: updates that were written to staged blocks, until the device has moved them.

use dovetail_block::{Lba, RemapPair};
use rustc_hash::FxHashMap;

use crate::format::{BlockAddr, Nid};

/// An update at the block that it was written to, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Update {
    pub(crate) from: BlockAddr,
    pub(crate) owner: Nid,
}

/// An update with its place in the list of its owner.
#[derive(Clone, Copy, Debug)]
struct Listed {
    update: Update,
    place: usize,
}

/// All of them, by the address that they are to have. They come and go one by one and are asked for
/// in the order of addresses once an fsync: they are sorted then.
#[derive(Debug, Default)]
pub(crate) struct PendingRemaps {
    by_address: FxHashMap<BlockAddr, Listed>,
    /// Lists without updates stay, for their memory.
    by_owner: FxHashMap<Nid, Vec<BlockAddr>>,
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
        self.by_owner.get(&owner).map_or(0, Vec::len)
    }

    /// Files of which updates wait.
    pub(crate) fn owners(&self) -> Vec<Nid> {
        let waiting = self.by_owner.iter().filter(|(_, addresses)| !addresses.is_empty());
        let mut owners: Vec<Nid> = waiting.map(|(&owner, _)| owner).collect();
        owners.sort_unstable();
        owners
    }

    /// The block at `to` is to get its update; returns the one before, which is not needed any
    /// more.
    pub(crate) fn add(&mut self, to: BlockAddr, update: Update) -> Option<Update> {
        let before = self.remove(to);
        let addresses = self.by_owner.entry(update.owner).or_default();
        self.by_address.insert(to, Listed { update, place: addresses.len() });
        addresses.push(to);
        before
    }

    /// Nothing is to get to `to` any more.
    pub(crate) fn remove(&mut self, to: BlockAddr) -> Option<Update> {
        if self.by_address.is_empty() {
            return None;
        }
        let Listed { update, place } = self.by_address.remove(&to)?;
        if let Some(addresses) = self.by_owner.get_mut(&update.owner) {
            addresses.swap_remove(place);
            let moved = addresses.get(place).and_then(|moved| self.by_address.get_mut(moved));
            moved.into_iter().for_each(|moved| moved.place = place);
        }
        Some(update)
    }

    /// The updates of a file, in the order of their addresses.
    pub(crate) fn of(&self, owner: Nid) -> Vec<RemapPair> {
        let addresses = self.by_owner.get(&owner).into_iter().flatten();
        let updates = addresses.filter_map(|to| Some((*to, self.by_address.get(to)?.update)));
        sorted(updates.map(|(to, update)| pair(to, update.from)).collect())
    }

    /// Puts all updates into `pairs`, in the order of their addresses.
    pub(crate) fn all_into(&self, pairs: &mut Vec<RemapPair>) {
        pairs.clear();
        pairs.extend(self.by_address.iter().map(|(to, listed)| pair(*to, listed.update.from)));
        pairs.sort_unstable_by_key(|pair| pair.to);
    }

    /// Those that are to get into a range, each with its address.
    pub(crate) fn within(&self, start: BlockAddr, blocks: u32) -> Vec<(BlockAddr, BlockAddr)> {
        let mut found = Vec::new();
        if self.by_address.is_empty() {
            return found;
        }
        for to in (0..u64::from(blocks)).map(|block| start.plus(block)) {
            found.extend(self.by_address.get(&to).map(|listed| (to, listed.update.from)));
        }
        found
    }
}

fn sorted(mut pairs: Vec<RemapPair>) -> Vec<RemapPair> {
    pairs.sort_unstable_by_key(|pair| pair.to);
    pairs
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
        let mut all = Vec::new();
        pending.all_into(&mut all);
        assert_eq!(
            all,
            [(10, 110), (11, 111)].map(|(to, from)| pair(BlockAddr(to), BlockAddr(from)))
        );
    }
}
