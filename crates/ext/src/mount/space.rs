//! Checks for room before a call changes anything: a call that runs out of space half way would
//! have to be undone.

use dovetail_block::Scheduler;
use dovetail_vfs::Caller;

use super::Ext;
use crate::error::Error;

/// Free blocks without which no tree of extents or pointers is changed.
const FOR_NODES: u64 = 8;

/// Free blocks beyond those that content may not take, so that names, attributes and truncations
/// work on a full volume.
const FOR_FEW: u64 = 16;

impl<D: Scheduler> Ext<D> {
    /// Blocks that content could take now.
    fn room(&self) -> u64 {
        self.room_for_few().saturating_sub(FOR_FEW + self.kept_from_caller)
    }

    /// Free blocks, less what blocks that wait to be written, and their nodes, will need.
    fn room_for_few(&self) -> u64 {
        let waiting = self.delayed.total() + self.delayed.nodes() + self.unwritten.nodes();
        self.groups.takeable().saturating_sub(waiting + FOR_NODES)
    }

    /// Until the call ends, the blocks that the volume reserves are not for a caller that is
    /// neither root nor their owner.
    pub(super) fn keep_reserve_from(&mut self, caller: &Caller) {
        let (uid, gid) = self.superblock.reserve_owner;
        let may_take = caller.uid == 0
            || caller.uid == u32::from(uid)
            || gid != 0 && caller.gid == u32::from(gid);
        self.kept_from_caller = if may_take { 0 } else { self.superblock.reserved_blocks };
    }

    /// Blocks of pointers or extents that `blocks` blocks may need, each an extent of its own.
    pub(super) fn nodes_for(&self, blocks: u64) -> u64 {
        // a leaf in a block of 1 KiB has 84 entries, half of them after a split
        blocks / 32 + 4
    }

    /// A change of a tree of extents or pointers that ran out of space half way could not be
    /// undone: it must not begin.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    pub(super) fn check_nodes(&self) -> Result<(), Error> {
        if self.groups.takeable() >= FOR_NODES { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Blocks of content that may be taken at once: what leads to them needs others.
    pub(super) fn most_beside_nodes(&self) -> u32 {
        let free = self.groups.takeable().saturating_sub(FOR_NODES);
        (free - free.div_ceil(33)).clamp(1, u32::MAX.into()) as u32
    }

    /// The end of a change that [`Self::check_nodes`] has allowed: without space it is half done,
    /// and must not be committed.
    pub(super) fn must_have_room<T>(&mut self, changed: Result<T, Error>) -> Result<T, Error> {
        self.stopped |= matches!(changed, Err(Error::NoSpace));
        changed
    }

    /// Makes sure that a call can take `blocks` more blocks; blocks that wait for a commit may be
    /// what is missing.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    pub(super) fn check_room(&mut self, blocks: u64) -> Result<(), Error> {
        self.check(blocks, Self::room)
    }

    /// The same for a call that adds no content.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    pub(super) fn check_room_for_few(&mut self, blocks: u64) -> Result<(), Error> {
        self.check(blocks, Self::room_for_few)
    }

    fn check(&mut self, blocks: u64, room: fn(&Self) -> u64) -> Result<(), Error> {
        if room(self) >= blocks {
            return Ok(());
        }
        if self.groups.pending() > 0 && self.edits_before_call == self.edits {
            self.commit()?;
        }
        self.lacked_room = room(self) < blocks;
        if self.lacked_room { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// After a call that lacked space: writes back what waits, which may take less than was kept
    /// for it, if the call was refused for want of blocks; commits, which releases what was freed.
    /// True if there is more room now.
    pub(super) fn makes_room(&mut self) -> Result<bool, Error> {
        let before = self.room_for_few();
        let waits = self.delayed.total() + self.unwritten.total() > 0;
        if std::mem::take(&mut self.lacked_room) && waits {
            let left = self.write_back_all()?;
            left.filter(|error| *error != Error::NoSpace).map_or(Ok(()), Err)?;
        }
        // content that goes through the journal waits for a commit
        if self.groups.pending() > 0 || self.unwritten.total() > 0 {
            self.commit()?;
        }
        Ok(self.room_for_few() > before)
    }
}
