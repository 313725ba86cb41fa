//! Room on the device: what is valid and what is dead never take more than it has.

use dovetail_block::{Scheduler, free_blocks};

use super::super::F2fs;
use super::super::checkpoint::Reason;
use super::super::policy::{ROOM_MARGIN, RoomFacts, can_log, is_tight, log_is_due};
use super::Endless;
use crate::error::Error;
use crate::format::{BLOCK, ENDLESS_JOURNAL_ENTRIES, Nid, ORPHANS_IN_BLOCK};

/// Pages that are written between two looks at the room; fewer than the policy's margin, with the nodes that point to them.
const PAGES_A_LOOK: usize = 16;
/// Nodes that one call makes dirty between two looks; fewer than the policy's margin.
const NODES_A_LOOK: usize = 16;
/// Below so many blocks of room on the device each look at it is exact: eight times a mebibyte can be on its way, and what is
/// tight is a few hundred blocks. Assumed.
const NEAR: u64 = 4096;

impl<D: Scheduler> F2fs<D> {
    fn room_facts(&mut self) -> Result<Option<RoomFacts>, Error> {
        if self.endless.is_none() {
            return Ok(None);
        }
        let mut device = free_blocks(self.io.device_mut())?;
        if device.is_some_and(|free| free < NEAR) {
            self.io.kick()?; // what is still being gathered takes room, too
            device = free_blocks(self.io.device_mut())?;
        }
        Ok(self.facts(device))
    }

    fn facts(&self, device: Option<u64>) -> Option<RoomFacts> {
        let endless = self.endless.as_ref()?;
        let dirty = self.nodes.dirty_count() as u64 + u64::from(self.dirty_dent_pages());
        Some(RoomFacts {
            limit: endless.limit,
            placed: endless.placed(self.counts.valid_blocks),
            dead: endless.dead(),
            pending: dirty + endless.recoverable,
            metadata: self.coming_metadata(endless),
            device,
        })
    }

    /// What the next checkpoint writes beside content and nodes, at most: its pack, and pages of the NAT unless they fit into
    /// it.
    fn coming_metadata(&self, endless: &Endless) -> u64 {
        let log_bytes = endless.fresh.most_bytes().saturating_add(endless.queued.most_bytes());
        let log = log_bytes.min(self.discard_log_room()).div_ceil(BLOCK as u64);
        let orphans = self.orphans.len().div_ceil(ORPHANS_IN_BLOCK) as u64;
        let entries = (self.nat.dirty_count() + self.nodes.dirty_count()) as u64;
        let fits = entries <= ENDLESS_JOURNAL_ENTRIES as u64;
        let nat = if fits { 0 } else { entries.min(self.superblock.nat_blocks.into()) };
        2 + u64::from(self.superblock.cp_payload) + orphans + log + nat
    }

    /// Makes room if what is written next might not find any, and bounds what a discard log has to hold.
    pub(in super::super) fn balance_endless(&mut self) -> Result<(), Error> {
        let Some(facts) = self.room_facts()? else { return Ok(()) };
        if is_tight(&facts) {
            self.make_room()?;
        }
        self.note_device_room()?;
        let fresh = self.endless.as_ref().map_or(0, |endless| endless.fresh.most_bytes());
        if log_is_due(fresh, self.discard_log_room()) {
            self.write_checkpoint(Reason::Sync)?;
        }
        Ok(())
    }

    /// All that is dead is discarded: what waits already, and if that is not enough, what a checkpoint adds to it. The
    /// checkpoint itself may need the room that the first leaves.
    fn make_room(&mut self) -> Result<(), Error> {
        self.discard_queued(usize::MAX)?;
        let facts = self.room_facts()?.filter(is_tight);
        // on a device that is simply full a checkpoint for every call would gain nothing
        let gains = |pending| pending >= ROOM_MARGIN || self.endless.as_ref().is_some_and(Endless::has_fresh);
        if facts.is_some_and(|facts| gains(facts.pending)) {
            self.write_checkpoint(Reason::Sync)?;
            self.discard_queued(usize::MAX)?;
        }
        Ok(())
    }

    /// Notes whether the device itself is short of room, whatever the numbers say.
    pub(super) fn note_device_room(&mut self) -> Result<(), Error> {
        let facts = self.room_facts()?;
        let is_full = facts.is_some_and(|facts| is_tight(&RoomFacts { limit: u64::MAX, ..facts }));
        if let Some(endless) = &mut self.endless {
            endless.device_is_full = is_full;
        }
        Ok(())
    }

    /// Looks for room among many pages that are written in a row; `number` counts them.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if the device is full.
    pub(in super::super) fn look_for_room(&mut self, number: usize) -> Result<(), Error> {
        if self.endless.is_none() || self.recovering || !number.is_multiple_of(PAGES_A_LOOK) {
            return Ok(());
        }
        self.balance_endless()?;
        // a device that maps more than it is given may have no room for blocks that only move
        if self.device_is_full() { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// Makes room within a call that changes many nodes, which the next checkpoint has to write; `dirty` is how many were dirty
    /// at the last look.
    pub(in super::super) fn make_room_for_nodes(&mut self, dirty: &mut usize) -> Result<(), Error> {
        let is_due = self.nodes.dirty_count() >= *dirty + NODES_A_LOOK;
        if self.endless.is_none() || self.recovering || !is_due {
            return Ok(());
        }
        let made = self.balance_endless();
        *dirty = self.nodes.dirty_count();
        made
    }

    /// A record of the file's changes would take room that a recovery needs.
    pub(in super::super) fn has_no_room_to_log(&mut self, ino: Nid) -> Result<bool, Error> {
        let Some(facts) = self.room_facts()? else { return Ok(false) };
        let nodes = self.nodes.dirty_of(ino).len() as u64;
        Ok(!can_log(&facts, nodes))
    }

    /// The device itself has no more room, whatever the numbers say.
    pub(in super::super) fn device_is_full(&self) -> bool {
        self.endless.as_ref().is_some_and(|endless| endless.device_is_full)
    }

    /// A node was written for a recovery to find; with a mark for a name it would write a directory's blocks, too, and of an
    /// inode that is the `first` of its file the content that it once held.
    pub(in super::super) fn note_recoverable(&mut self, first: bool, named: bool) {
        if let Some(endless) = &mut self.endless {
            endless.recoverable += 1 + u64::from(first) + if named { 4 } else { 0 };
        }
    }
}
