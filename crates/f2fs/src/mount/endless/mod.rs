//! The space of an endless volume (IPLFS): six logs that are only appended to, and what they left behind.
//!
//! An address below a checkpoint's log position is never written again. So nothing is cleaned, nothing is filled, and a
//! discard of such a block may be issued twice or late: what must not happen is that it is never issued. What is given up is
//! *fresh* until the next checkpoint, which writes it to its discard log; then it is *queued*, and in every log until the device has
//! been told. What is told between two checkpoints is durable before the second one counts, by the flush before its last
//! block.

mod bitmaps;
mod live;
mod pack;
mod recovery;
mod room;

use std::collections::BTreeSet;

use dovetail_block::{AREA_BLOCKS, Scheduler};

use super::F2fs;
use super::policy::Log;
use crate::error::{Corrupt, Error};
use crate::format::{BlockAddr, Checkpoint, Extent, Superblock, area_start};
use bitmaps::DiscardBitmaps;

/// Extents in one command to the device: what NVMe's dataset management takes.
const RANGES_A_COMMAND: usize = 256;

/// The logs, and what they left behind.
#[derive(Debug)]
pub(super) struct Endless {
    /// Where each log writes next.
    positions: [BlockAddr; 6],
    /// Given up since the last checkpoint.
    fresh: DiscardBitmaps,
    /// In the last checkpoint's discard log: the device can be told.
    queued: DiscardBitmaps,
    /// What content and nodes may take of the device, in blocks.
    limit: u64,
    /// Blocks that are counted as valid and have no place yet: reserved for content, and nodes that were never written. Those
    /// that were reserved before the mount are not among them.
    promised: u64,
    /// The device has less room than the numbers say.
    device_is_full: bool,
    /// Nodes that a recovery would write, and directories with them.
    recoverable: u64,
    /// While fsynced files are rolled forward.
    recovered: Option<Recovered>,
}

/// What recovery has found beyond the checkpoint's log positions.
#[derive(Debug)]
struct Recovered {
    /// The checkpoint's log positions.
    base: [BlockAddr; 6],
    /// Where the logs go on: beyond all that the chain leads to.
    end: [BlockAddr; 6],
    /// What belongs to files between the two.
    adopted: BTreeSet<BlockAddr>,
}

/// The log in whose area an address lies, which must be one.
fn log_of(address: BlockAddr) -> usize {
    (address.0 / AREA_BLOCKS - 1) as usize
}

impl Endless {
    /// The state of a checkpoint, with what its discard log holds.
    pub(super) fn new(superblock: &Superblock, checkpoint: &Checkpoint, log: Vec<Extent>) -> Self {
        let mut queued = DiscardBitmaps::default();
        log.into_iter().for_each(|extent| queued.push(extent));
        Self {
            positions: checkpoint.positions,
            fresh: DiscardBitmaps::default(),
            queued,
            limit: superblock.room_for_files(),
            promised: 0,
            device_is_full: false,
            recoverable: 0,
            recovered: None,
        }
    }

    /// Blocks that are not needed and that the device holds.
    fn dead(&self) -> u64 {
        self.fresh.blocks().saturating_add(self.queued.blocks())
    }

    /// Something was given up that no checkpoint says.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// There is something to tell the device.
    pub(super) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    pub(super) fn next_address(&self, log: Log) -> BlockAddr {
        self.positions[log.index()]
    }

    /// The blocks of an address range that a log wrote and gave up.
    fn was_written(&self, address: BlockAddr) -> bool {
        address < self.positions[log_of(address)]
    }

    /// What the device holds of `valid` blocks: the others have no place yet.
    fn placed(&self, valid: u64) -> u64 {
        valid.saturating_sub(self.promised)
    }

    /// Takes the next block of a log, of a volume of which `valid` blocks are in use or promised.
    fn append(&mut self, log: Log, valid: u64) -> Result<BlockAddr, Error> {
        if self.placed(valid).saturating_add(self.dead()) >= self.limit {
            return Err(Error::NoSpace);
        }
        let next = &mut self.positions[log.index()];
        let address = *next;
        if address.0 >= area_start(log.index()).0 + AREA_BLOCKS {
            return Err(Error::LogAtEnd(log.index()));
        }
        *next = address.plus(1);
        Ok(address)
    }

    /// A block is not needed any more; the caller has checked that it lies in a log's area.
    fn free(&mut self, address: BlockAddr) -> Result<(), Corrupt> {
        let was_valid = match &mut self.recovered {
            Some(recovered) if recovered.covers(address) => recovered.adopted.remove(&address),
            _ => self.was_written(address) && !self.queued.has(address) && self.fresh.insert(address),
        };
        if was_valid { Ok(()) } else { Err(Corrupt::NotValid(address)) }
    }
}

impl Recovered {
    /// The address lies where the chain may lead.
    fn covers(&self, address: BlockAddr) -> bool {
        let log = log_of(address);
        (self.base[log]..self.end[log]).contains(&address)
    }
}

impl<D: Scheduler> F2fs<D> {
    /// Takes the next block of a log.
    pub(super) fn append(&mut self, log: Log) -> Result<BlockAddr, Error> {
        let Some(endless) = &mut self.endless else { return Err(Error::NoSpace) };
        let address = endless.append(log, self.counts.valid_blocks)?;
        self.events.lfs_blocks += 1;
        Ok(address)
    }

    /// The block is not needed any more.
    pub(super) fn give_up(&mut self, address: BlockAddr) -> Result<(), Corrupt> {
        match &mut self.endless {
            Some(endless) => endless.free(address),
            None => Err(Corrupt::NotValid(address)),
        }
    }

    /// What led to `from` leads to `to`: a block is promised as long as it is valid and has no place.
    pub(super) fn note_promise(&mut self, from: BlockAddr, to: BlockAddr) {
        let Some(endless) = &mut self.endless else { return };
        let more = i64::from(to == BlockAddr::NEW) - i64::from(from == BlockAddr::NEW);
        endless.promised = endless.promised.saturating_add_signed(more);
    }

    /// Tells the device of up to `count` extents that wait; `true` if there were any.
    pub(super) fn discard_queued(&mut self, count: usize) -> Result<bool, Error> {
        let Some(endless) = &mut self.endless else { return Ok(false) };
        let extents = endless.queued.take(count);
        let mut commands = extents.chunks(RANGES_A_COMMAND);
        commands.try_for_each(|extents| self.io.discard(extents.iter().copied()))?;
        if self.device_is_full() {
            self.note_device_room()?;
        }
        Ok(!extents.is_empty())
    }
}
