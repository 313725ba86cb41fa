//! Keeping space for what comes: looks for it at the end of calls that take some, and in between
//! where much is written.

use dovetail_block::{Scheduler, free_blocks};

use super::super::F2fs;
use super::super::checkpoint::CheckpointReason;
use super::super::policy::{HeadroomFacts, has_room_to_recover, is_tight};
use super::iplfs::LogSpace;
use super::{Demand, Space};
use crate::error::Error;
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Nid};

/// Pages that are written between two looks at the headroom; fewer than the policy's margin, with
/// the nodes that point to them.
const PAGES_A_LOOK: usize = 16;
/// Nodes that one call makes dirty between two looks; fewer than the policy's margin.
const NODES_A_LOOK: usize = 16;
/// Blocks that a recovery writes for one more record beside the nodes of the file: a directory's,
/// if it has to give the file its name, and the nodes above them.
const BLOCKS_A_RECORD: u64 = 8;
/// With so few blocks free on the device each look at it is exact: eight times a mebibyte can be on
/// its way, and what is tight is a few hundred blocks. Assumed.
const NEAR: u64 = 4096;

impl<D: Scheduler> F2fs<D> {
    /// The demand of the next checkpoint.
    pub(in super::super) fn demand(&self) -> Demand {
        Demand {
            dirty_nodes: self.nodes.dirty_count() as u32,
            dirty_dents: self.dirty_dent_pages(),
            dirty_data: self.pages.dirty_total() as u32,
            nat_entries: self.nat.dirty_count(),
            orphans: self.orphans.len(),
            valid_blocks: self.counts.valid_blocks,
            devirtualized: self.superblock.devirtualized,
            recovering: self.state.is_recovering(),
        }
    }

    /// Frees space if what comes next might not find any.
    pub(in super::super) fn balance_space(&mut self) -> Result<(), Error> {
        match &self.space {
            Space::Segmented(space) if space.has_enough(&self.demand(), 0) => Ok(()),
            Space::Segmented(_) => self.clean_for_space(),
            Space::Iplfs(_) => self.balance_device(),
        }
    }

    /// Frees space in the middle of pages that are written in a row; `number` counts them. A log
    /// that is never cleaned has its headroom looked for instead.
    pub(in super::super) fn keep_space_after(&mut self, number: usize) -> Result<(), Error> {
        let is_due = match self.space {
            Space::Segmented(_) => true,
            Space::Iplfs(_) => number.is_multiple_of(BLOCKS_IN_SEGMENT as usize),
        };
        if is_due { self.keep_space() } else { Ok(()) }
    }

    /// Ends pages that were written in a row, each with [`Self::keep_space_after`] behind it.
    pub(in super::super) fn balance_after_pages(&mut self) -> Result<(), Error> {
        match self.space {
            Space::Segmented(_) => self.bound_nodes(),
            Space::Iplfs(_) => self.balance(),
        }
    }

    /// Keeps the blocks of `claimed` from being written: the chain of records, and what it leads
    /// to.
    pub(in super::super) fn guard_claimed(
        &mut self,
        claimed: impl Iterator<Item = BlockAddr>,
    ) -> Result<(), Error> {
        if let Space::Segmented(space) = &mut self.space {
            return space.guard_claimed(&mut self.io, claimed);
        }
        // what earlier checkpoints gave up must not take the space that recovery needs
        self.discard_some(usize::MAX, 1)?;
        if let Space::Iplfs(space) = &mut self.space {
            space.guard_claimed(claimed);
        }
        self.discard_beyond()
    }

    /// Discards what was written after the last checkpoint and no recovery leads to, where that
    /// would otherwise take space.
    pub(in super::super) fn discard_beyond(&mut self) -> Result<(), Error> {
        match &self.space {
            Space::Segmented(_) => Ok(()),
            Space::Iplfs(space) => space.discard_beyond(&mut self.io),
        }
    }

    /// Discards up to `count` extents of what waits, of at least `granularity` blocks each; `true`
    /// if there were any.
    pub(in super::super) fn discard_some(
        &mut self,
        count: usize,
        granularity: u32,
    ) -> Result<bool, Error> {
        let found = self.space.discard(&mut self.io, count, granularity)?;
        if self.space.is_device_full() {
            self.note_device()?;
        }
        Ok(found)
    }

    /// Before the next pack is built: a discard log has room for all that waits.
    pub(in super::super) fn make_discard_log_fit(&mut self) -> Result<(), Error> {
        match &self.space {
            Space::Iplfs(space) if space.overflows_log(&self.superblock) => {
                self.discard_some(usize::MAX, 1).map(drop)
            }
            Space::Segmented(_) | Space::Iplfs(_) => Ok(()),
        }
    }

    /// The log space with what its policies decide by; `None` of a volume with segments, whose
    /// policies have [`Space::facts`].
    fn headroom_facts(&mut self) -> Result<Option<(&mut LogSpace, HeadroomFacts)>, Error> {
        let demand = self.demand();
        let Space::Iplfs(space) = &mut self.space else { return Ok(None) };
        let mut device = free_blocks(self.io.device_mut())?;
        if device.is_some_and(|free| free < NEAR) {
            self.io.kick()?; // what is still being gathered takes space, too
            device = free_blocks(self.io.device_mut())?;
        }
        let facts = space.headroom_facts(&self.superblock, &demand, device);
        Ok(Some((space, facts)))
    }

    /// Frees space on the device if what is written next might not find any, and bounds what a
    /// discard log has to hold.
    fn balance_device(&mut self) -> Result<(), Error> {
        let Some((_, facts)) = self.headroom_facts()? else { return Ok(()) };
        if is_tight(&facts) {
            self.free_device_space()?;
        }
        self.note_device()?;
        match &self.space {
            Space::Iplfs(space) if space.is_log_due(&self.superblock) => {
                self.write_checkpoint(CheckpointReason::Sync)
            }
            Space::Segmented(_) | Space::Iplfs(_) => Ok(()),
        }
    }

    /// All that is dead is discarded: what waits already, and if that is not enough, what a
    /// checkpoint adds to it. The checkpoint itself may need the space that the first frees.
    fn free_device_space(&mut self) -> Result<(), Error> {
        self.discard_some(usize::MAX, 1)?;
        if self.headroom_facts()?.is_some_and(|(space, facts)| space.gains_by_checkpoint(&facts)) {
            self.write_checkpoint(CheckpointReason::Sync)?;
            self.discard_some(usize::MAX, 1)?;
        }
        Ok(())
    }

    /// Notes whether the device itself is short of space, whatever the counts say.
    fn note_device(&mut self) -> Result<(), Error> {
        if let Some((space, facts)) = self.headroom_facts()? {
            space.note_device(&facts);
        }
        Ok(())
    }

    /// Looks for headroom among many pages that are written in a row; `number` counts them.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if the device is full.
    pub(in super::super) fn look_for_headroom(&mut self, number: usize) -> Result<(), Error> {
        let is_due = number.is_multiple_of(PAGES_A_LOOK) && !self.state.is_recovering();
        if !is_due || matches!(self.space, Space::Segmented(_)) {
            return Ok(());
        }
        self.balance_device()?;
        // a device that maps more than it is given may have no space for blocks that only move
        if self.space.is_device_full() { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// Frees space within a call that changes many nodes, which the next checkpoint has to write;
    /// `dirty` is how many were dirty at the last look.
    pub(in super::super) fn look_for_node_headroom(
        &mut self,
        dirty: &mut usize,
    ) -> Result<(), Error> {
        let is_due =
            self.nodes.dirty_count() >= *dirty + NODES_A_LOOK && !self.state.is_recovering();
        if !is_due || matches!(self.space, Space::Segmented(_)) {
            return Ok(());
        }
        let freed = self.balance_device();
        *dirty = self.nodes.dirty_count();
        freed
    }

    /// A record of the file's changes would take space that a recovery needs.
    pub(in super::super) fn has_no_headroom_to_log(&mut self, ino: Nid) -> Result<bool, Error> {
        let nodes = self.nodes.dirty_of(ino).count() as u64;
        if let Space::Segmented(space) = &self.space {
            let blocks = self.since.blocks_to_recover() + nodes + BLOCKS_A_RECORD;
            return Ok(!has_room_to_recover(&space.facts(&self.demand()), blocks));
        }
        let facts = self.headroom_facts()?;
        Ok(facts.is_some_and(|(_, facts)| !LogSpace::can_log(&facts, nodes)))
    }
}
