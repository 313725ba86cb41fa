//! What a volume with pointers to places of the device needs: its mark, the end of a batch that a power cut left open, room,
//! and places that are given back.
//!
//! A place is an address with [`PLACE_BIT`](crate::places::PLACE_BIT); `io.rs` makes the device's address of it. SIT and SSA
//! know nothing of such a block, `valid_block_count` does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{Devirtualize, RenameId, Scheduler};
use dovetail_time::SimTime;

use super::F2fs;
use crate::error::{Error, Incompatible};
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Extent, Nid};
use crate::places::{Places, check_spare_bit};

/// What a mount knows of pointers to places.
#[derive(Debug, Default)]
pub(super) struct Physical {
    /// The batch that the next checkpoint makes durable: its number is the checkpoint's.
    pub(super) open: Option<RenameId>,
    /// Files of that batch: that their nodes are written is no change.
    pub(super) renaming: BTreeSet<Nid>,
    /// Both copies of the superblock say that the volume needs its drive.
    marked: bool,
    /// Places to which no pointer leads; the last checkpoint may have one.
    freed: Vec<BlockAddr>,
    /// Inodes with blocks that were written since the tool dealt with them, and when; `None` as long as nobody asks.
    pub(super) changed: Option<BTreeMap<Nid, SimTime>>,
}

impl Physical {
    /// No pointer leads to a place any more.
    pub(super) fn give_up(&mut self, place: BlockAddr) {
        self.freed.push(place);
    }
}

impl<D: Scheduler> F2fs<D> {
    /// Before anything is read by way of pointers: where they may lead, and the end of a batch that was open.
    pub(super) fn open_places(&mut self) -> Result<(), Error> {
        let marked = self.superblock.devirtualized;
        if !marked && (!self.options.physical_pointers || self.check_volume_for_places().is_err()) {
            return Ok(());
        }
        self.check_volume_for_places()?;
        let places = Places::of(&self.io.device().info());
        if !places.is_some() {
            return Ok(());
        }
        self.io.set_places(places);
        // a block at a place is given back by a discard or never
        self.options.discard = true;
        if self.state.is_mounted_read_only() {
            return Ok(());
        }
        self.end_open_batch()?;
        if marked { self.discard_free_segments() } else { Ok(()) }
    }

    fn check_volume_for_places(&self) -> Result<(), Incompatible> {
        if !self.space.reuses_addresses() {
            return Err(Incompatible::DeviceAddresses("F2FS: addresses of IPLFS are never written again"));
        }
        if self.remaps() {
            return Err(Incompatible::DeviceAddresses("mode=adaptive or mode=lfs"));
        }
        check_spare_bit(self.superblock.block_count)
    }

    fn end_open_batch(&mut self) -> Result<(), Error> {
        let asked = self.io.devirtualize(Devirtualize::Open)?;
        let Some(open) = asked.into_open_batch() else { return Ok(()) };
        let keep = self.committed.checkpoint().version >= open.id.0;
        self.io.devirtualize(Devirtualize::End { id: open.id, keep })?;
        Ok(())
    }

    /// The device's own addresses, on a mount that may lead pointers there.
    pub(super) fn check_places(&self) -> Result<Places, Error> {
        self.check_volume_for_places()?;
        let places = Some(self.io.places()).filter(|places| places.is_some());
        let missing = Incompatible::DeviceAddresses("a device that gives blocks its own addresses");
        places.ok_or_else(|| missing.into())
    }

    pub(super) fn is_place(&self, address: BlockAddr) -> bool {
        self.io.places().has(address)
    }

    /// Says on the volume, before the first pointer to a place, that it needs its drive. A power cut may have left a mark on
    /// one copy only, so each mount writes both.
    pub(super) fn mark_volume(&mut self) -> Result<(), Error> {
        if self.physical.marked {
            return Ok(());
        }
        self.write_mark(true)?;
        self.physical.marked = true;
        self.discard_free_segments()
    }

    /// The volume needs its drive no longer.
    pub(super) fn unmark_volume(&mut self) -> Result<(), Error> {
        self.physical.marked = false;
        self.write_mark(false)
    }

    fn write_mark(&mut self, devirtualized: bool) -> Result<(), Error> {
        self.superblock.devirtualized = devirtualized;
        for copy in [0, 1].map(BlockAddr) {
            let block = self.superblock.encode(&*self.io.read(copy)?);
            self.io.write_durable(copy, Arc::new(block))?;
        }
        Ok(())
    }

    /// What lies in free segments takes the room of blocks at places, and nobody knows how much of it there is.
    fn discard_free_segments(&mut self) -> Result<(), Error> {
        self.space.queue_free_segments();
        self.discard_some(usize::MAX, BLOCKS_IN_SEGMENT).map(drop)
    }

    /// A checkpoint is complete: the device drops the old names of the batch whose pointers it has. Their addresses are not
    /// used before.
    pub(super) fn end_batch(&mut self) -> Result<(), Error> {
        let Some(id) = self.physical.open.take() else { return Ok(()) };
        self.io.devirtualize(Devirtualize::End { id, keep: true })?;
        Ok(())
    }

    /// A checkpoint is complete: what it no longer leads to is given back.
    pub(super) fn give_back_places(&mut self) -> Result<(), Error> {
        if !self.superblock.devirtualized {
            return Ok(());
        }
        let freed = std::mem::take(&mut self.physical.freed);
        self.discard_places(freed)?;
        self.discard_some(usize::MAX, BLOCKS_IN_SEGMENT).map(drop)
    }

    /// Gives places back to the device.
    pub(super) fn discard_places(&mut self, mut places: Vec<BlockAddr>) -> Result<(), Error> {
        places.sort_unstable();
        let mut runs: Vec<Extent> = Vec::new();
        for place in places {
            match runs.last_mut() {
                Some(run) if run.start.plus(run.blocks) == place => run.blocks += 1,
                _ => runs.push(Extent { start: place, blocks: 1 }),
            }
        }
        Ok(self.io.discard(runs.into_iter())?)
    }

    /// A call changes the content of a file.
    pub(super) fn note_change(&mut self, ino: Nid) {
        let now = self.io.now();
        if let Some(changed) = &mut self.physical.changed {
            changed.insert(ino, now);
        }
    }

    /// A block of a file gets another address of the volume.
    pub(super) fn note_rewritten(&mut self, ino: Nid) {
        let now = self.io.now();
        if let Some(changed) = &mut self.physical.changed
            && !self.physical.renaming.contains(&ino)
        {
            changed.entry(ino).or_insert(now);
        }
    }
}
