//! The space of an IPLFS volume: six logs that are only appended to, and what they left behind.
//!
//! With block addresses of 8 bytes the logs have no end that matters: each has an area of 2^58
//! addresses. With 4 bytes it has 2^29, and ends. An address below a
//! checkpoint's log position is never written again. So nothing is cleaned, nothing is filled, and
//! a discard of such a block may be issued twice or late: what must not happen is that it is never
//! issued. A block that is given up is *fresh* until the next checkpoint, which writes it to its
//! discard log. Then it is *queued*, and in every log until the device has been told. What is told
//! between two checkpoints is durable before the second one counts, by the flush before its last
//! block.

mod bitmaps;
mod headroom;
mod live;
mod pack;
mod recovery;

use dovetail_block::{AREA_BLOCKS, Scheduler};

use super::super::io::Io;
use super::super::policy::Log;
use super::Taken;
use crate::error::{Corrupt, Damage, Error, Place};
use crate::format::{BlockAddr, Checkpoint, Extent, IPLFS_JOURNAL_ENTRIES, Superblock};
use bitmaps::DiscardBitmaps;
use recovery::Recovered;

/// Extents in one command to the device: what NVMe's dataset management takes.
const RANGES_A_COMMAND: usize = 256;

/// The logs, and what they left behind.
#[derive(Debug)]
pub(crate) struct LogSpace {
    /// The address of each log's next block.
    positions: [BlockAddr; 6],
    /// The end of each log's area.
    ends: [BlockAddr; 6],
    /// Given up since the last checkpoint.
    fresh: DiscardBitmaps,
    /// In the last checkpoint's discard log: the device can be told.
    queued: DiscardBitmaps,
    /// Blocks of the device that content and nodes may take.
    limit: u64,
    /// Blocks that are counted as valid and have no address yet: reserved for content, and nodes
    /// that were never written. Those that were reserved before the mount are not among them.
    promised: u64,
    /// The device has less free space than the counts say.
    device_is_full: bool,
    /// Nodes that a recovery would write, and directories with them.
    recoverable: u64,
    /// While fsynced files are rolled forward.
    recovered: Option<Recovered>,
}

/// The log in whose area an address lies, which must be one.
fn log_of(address: BlockAddr) -> usize {
    debug_assert!(
        (AREA_BLOCKS..7 * AREA_BLOCKS).contains(&address.0),
        "{address} lies in no log's area"
    );
    (address.0 / AREA_BLOCKS - 1) as usize
}

impl LogSpace {
    /// Entries that the NAT journal of a checkpoint has room for.
    pub(crate) const NAT_JOURNAL_ENTRIES: usize = IPLFS_JOURNAL_ENTRIES;

    /// The state of a checkpoint, with what its discard log holds.
    pub(crate) fn new(superblock: &Superblock, checkpoint: &Checkpoint, log: Vec<Extent>) -> Self {
        let mut queued = DiscardBitmaps::default();
        log.into_iter().for_each(|extent| queued.push(extent));
        Self {
            positions: checkpoint.positions,
            ends: std::array::from_fn(|log| superblock.area_end(log)),
            fresh: DiscardBitmaps::default(),
            queued,
            limit: superblock.room_for_files(),
            promised: 0,
            device_is_full: false,
            recoverable: 0,
            recovered: None,
        }
    }

    /// Checks the counts of a checkpoint against each other.
    pub(crate) fn check_counts(
        superblock: &Superblock,
        checkpoint: &Checkpoint,
    ) -> Result<(), Corrupt> {
        let place = Place::Checkpoint(checkpoint.pack);
        let (user, valid) = (checkpoint.user_block_count, checkpoint.valid_block_count);
        Corrupt::check_range(place, "valid_block_count", valid, (1, user))?;
        let nodes = u64::from(checkpoint.valid_nodes);
        let most = valid.min(superblock.max_nid().into());
        Corrupt::check_range(place, "valid_node_count", nodes, (1, most))?;
        Corrupt::check_range(place, "valid_inode_count", checkpoint.valid_inodes, (1, nodes))
    }

    /// Blocks that are not needed and that the device holds.
    fn dead(&self) -> u64 {
        self.fresh.blocks().saturating_add(self.queued.blocks())
    }

    /// Something was given up that no checkpoint says.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// There is something to tell the device.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    pub(crate) fn is_device_full(&self) -> bool {
        self.device_is_full
    }

    pub(crate) fn next_address(&self, log: Log) -> BlockAddr {
        self.positions[log.index()]
    }

    /// A log has reached beyond the address.
    fn was_written(&self, address: BlockAddr) -> bool {
        address < self.positions[log_of(address)]
    }

    /// Of `valid` blocks those that the device holds: the others have no address yet.
    fn placed(&self, valid: u64) -> u64 {
        valid.saturating_sub(self.promised)
    }

    /// Takes the next block of a log, of a volume of which `valid` blocks are in use or promised.
    pub(crate) fn append(&mut self, log: Log, valid: u64) -> Result<Taken, Error> {
        if self.placed(valid).saturating_add(self.dead()) >= self.limit {
            return Err(Error::NoSpace);
        }
        let next = &mut self.positions[log.index()];
        let address = *next;
        if address >= self.ends[log.index()] {
            return Err(Error::LogAtEnd(log.index()));
        }
        *next = address.plus(1);
        Ok(Taken { address, in_hole: false })
    }

    /// A block is not needed any more; the caller has checked that it lies in a log's area.
    pub(crate) fn free(&mut self, address: BlockAddr) -> Result<(), Corrupt> {
        let was_valid = match &mut self.recovered {
            Some(recovered) if recovered.covers(address) => recovered.release(address),
            _ => {
                self.was_written(address) && !self.queued.has(address) && self.fresh.insert(address)
            }
        };
        if was_valid { Ok(()) } else { Err(Damage::NotValid(address).into()) }
    }

    /// A block is promised as long as it is valid and has no address.
    pub(crate) fn note_promise(&mut self, from: BlockAddr, to: BlockAddr) {
        let more = i64::from(to == BlockAddr::NEW) - i64::from(from == BlockAddr::NEW);
        self.promised = self.promised.saturating_add_signed(more);
    }

    /// With a mark for a name a recovery would write a directory's blocks, too, and of an inode
    /// that is the `first` of its file the content that it once held.
    pub(crate) fn note_recoverable(&mut self, first: bool, named: bool) {
        self.recoverable += 1 + u64::from(first) + if named { 4 } else { 0 };
    }

    /// Tells the device of up to `count` extents that wait; `true` if there were any.
    pub(crate) fn discard<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        count: usize,
    ) -> Result<bool, Error> {
        let extents = self.queued.take(count);
        let mut commands = extents.chunks(RANGES_A_COMMAND);
        commands.try_for_each(|extents| io.discard(extents.iter().copied()))?;
        Ok(!extents.is_empty())
    }
}
