//! The space of a volume: addresses for blocks, and what becomes of those that are given up.
//!
//! The rest of a mount asks [`Space`] and nothing else: the next address of a log, a block taken or
//! freed, facts for the policies, the part of a checkpoint pack that says where the logs stand. How
//! the addresses come about is an arm of the enum: [`SegmentSpace`] has segments that are cleaned,
//! [`LogSpace`] six logs that are only appended to (IPLFS). The enum is matched on in this module
//! and nowhere else. A volume on a zoned device would be a third arm.
//!
//! Invariant: no block that the last checkpoint refers to, or that the record of an fsync since may
//! lead to, is taken before the next checkpoint is complete.

mod allocate;
mod balance;
mod iplfs;
mod segmented;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{BlockBytes, DeviceInfo, Scheduler};

use super::io::Io;
use super::options::{BackgroundGc, Mode, Options};
use super::policy::{IPLFS_PACE, Log, Pace, SpaceFacts, segmented_pace};
use crate::error::{Corrupt, Error, Incompatible};
use crate::format::{
    Bitmaps, BlockAddr, Checkpoint, Extent, NatEntry, Nid, SegNo, SitEntry, Summary, Superblock, Variant,
};
use iplfs::LogSpace;
use segmented::SegmentSpace;

/// The space of a mounted volume.
#[derive(Debug)]
pub(super) enum Space {
    /// F2FS: segments, cleaned when few are free.
    Segmented(Box<SegmentSpace>),
    /// IPLFS: logs that are never written again.
    Iplfs(Box<LogSpace>),
}

/// The part of a volume that [`Space::load`] builds on.
pub(super) struct Found<'v> {
    pub(super) superblock: &'v Superblock,
    pub(super) checkpoint: &'v Checkpoint,
    pub(super) sit_bitmap: &'v [u8],
    pub(super) sit_journal: &'v BTreeMap<SegNo, SitEntry>,
    pub(super) discard_log: Vec<Extent>,
}

/// The demand of the next checkpoint: what it writes of the mount's memory. Blocks, unless it says
/// otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    pub(super) dirty_nodes: u32,
    pub(super) dirty_dents: u32,
    /// Dirty content, directories included.
    pub(super) dirty_data: u32,
    /// Entries of the NAT.
    pub(super) nat_entries: usize,
    /// Inodes without a name.
    pub(super) orphans: usize,
    /// In use or reserved, all in all.
    pub(super) valid_blocks: u64,
    /// Blocks may be at addresses of the device, outside of the volume's space.
    pub(super) devirtualized: bool,
    /// Fsynced files are being rolled forward: holes are left alone.
    pub(super) recovering: bool,
}

/// A block that was taken.
pub(super) struct Taken {
    pub(super) address: BlockAddr,
    /// It lies between blocks in use, as opposed to the end of a log.
    pub(super) in_hole: bool,
}

/// The progress of foreground cleaning.
pub(super) struct CleaningState {
    /// With the next checkpoint enough sections are free.
    pub(super) is_enough: bool,
    /// So few sections are free that the next checkpoint comes first.
    pub(super) needs_checkpoint: bool,
}

/// The valid blocks of a segment, in order, with their owners.
pub(super) struct ValidBlocks {
    pub(super) are_nodes: bool,
    pub(super) blocks: Vec<(BlockAddr, Summary)>,
}

/// The next checkpoint but for what the space adds: log positions and the rest of the pack.
pub(super) struct Draft<'h> {
    pub(super) checkpoint: Checkpoint,
    pub(super) bitmaps: Bitmaps,
    pub(super) orphans: Vec<BlockBytes>,
    /// NAT entries that the pack's journal has.
    pub(super) nat_journal: Vec<(Nid, NatEntry)>,
    /// The volume is unmounted with it: the next mount finds all summaries.
    pub(super) for_next_mount: bool,
    /// The first block of the last pack.
    pub(super) head: &'h Arc<BlockBytes>,
}

/// The next checkpoint, and the blocks of its pack; the tail left out, which is the first block
/// again.
pub(super) struct Pack {
    pub(super) checkpoint: Checkpoint,
    pub(super) blocks: Vec<BlockBytes>,
    pub(super) bitmaps: Bitmaps,
    /// Segments whose entries its SIT journal has.
    sit_journal: BTreeSet<SegNo>,
}

impl Space {
    /// Refuses a device that a volume of this kind cannot be mounted on, and sets aside options that
    /// decide nothing there.
    ///
    /// # Errors
    /// [`Error::Incompatible`]; [`Error::Corrupt`] for a device that is too small.
    pub(super) fn check_device(
        device: &DeviceInfo,
        superblock: &Superblock,
        options: &mut Options,
    ) -> Result<(), Error> {
        match superblock.variant {
            Variant::F2fs => Ok(()),
            Variant::Iplfs => {
                options.check_iplfs()?;
                options.mode = Mode::Lfs;
                options.background_gc = BackgroundGc::Off;
                options.gc_urgent = false;
                check_thin(device, superblock)
            }
        }
    }

    /// The space as the last checkpoint left it.
    ///
    /// # Errors
    /// Tables that contradict each other; [`Error::Io`].
    pub(super) fn load<D: Scheduler>(
        io: &mut Io<D>,
        found: Found<'_>,
        options: &Options,
    ) -> Result<Self, Error> {
        Ok(match found.superblock.variant {
            Variant::F2fs => Self::Segmented(Box::new(SegmentSpace::load(io, &found, options)?)),
            Variant::Iplfs => {
                let (superblock, checkpoint) = (found.superblock, found.checkpoint);
                Self::Iplfs(Box::new(LogSpace::new(superblock, checkpoint, found.discard_log)))
            }
        })
    }

    /// Checks the counts of a checkpoint against each other and against the tables.
    pub(super) fn check_counts(
        &self,
        superblock: &Superblock,
        checkpoint: &Checkpoint,
    ) -> Result<(), Corrupt> {
        match self {
            Self::Segmented(space) => space.check_counts(checkpoint, superblock.devirtualized),
            Self::Iplfs(_) => LogSpace::check_counts(superblock, checkpoint),
        }
    }

    /// An address that was given up is written again some day.
    pub(super) fn reuses_addresses(&self) -> bool {
        match self {
            Self::Segmented(_) => true,
            Self::Iplfs(_) => false,
        }
    }

    /// The address of the log's next block.
    pub(super) fn next_address(&self, log: Log) -> BlockAddr {
        match self {
            Self::Segmented(space) => space.next_address(log),
            Self::Iplfs(space) => space.next_address(log),
        }
    }

    /// [`Self::next_segment`] is due before the log's next block.
    pub(super) fn is_segment_full(&self, log: Log) -> bool {
        match self {
            Self::Segmented(space) => space.is_segment_full(log),
            Self::Iplfs(_) => false,
        }
    }

    /// Moves a log on to its next segment.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if there is none; [`Error::Io`].
    pub(super) fn next_segment<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        log: Log,
        demand: &Demand,
    ) -> Result<(), Error> {
        match self {
            Self::Segmented(space) => space.next_segment(io, log, demand),
            Self::Iplfs(_) => Ok(()),
        }
    }

    /// Takes the log's next block for `owner`, of a volume with so many `valid` blocks.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::LogAtEnd`] of a log without segments.
    pub(super) fn take(&mut self, log: Log, owner: Summary, now_s: u64, valid: u64) -> Result<Taken, Error> {
        match self {
            Self::Segmented(space) => Ok(space.take(log, owner, now_s)),
            Self::Iplfs(space) => space.append(log, valid),
        }
    }

    /// The block, which lies in the main area, is no longer used. It can be written again after the
    /// next checkpoint, if ever.
    ///
    /// # Errors
    /// [`Corrupt::NotValid`] of a block that was not in use.
    pub(super) fn free(&mut self, address: BlockAddr, now_s: u64) -> Result<(), Corrupt> {
        match self {
            Self::Segmented(space) => space.free(address, now_s),
            Self::Iplfs(space) => space.free(address),
        }
    }

    /// Pointers that led to `from` lead to `to`: a block that is reserved and not written has no
    /// address yet.
    pub(super) fn note_promise(&mut self, from: BlockAddr, to: BlockAddr) {
        match self {
            Self::Segmented(_) => {}
            Self::Iplfs(space) => space.note_promise(from, to),
        }
    }

    /// A node was written for a recovery to find: the `first` of its file's inode, or with a mark for
    /// a name.
    pub(super) fn note_recoverable(&mut self, first: bool, named: bool) {
        match self {
            Self::Segmented(_) => {}
            Self::Iplfs(space) => space.note_recoverable(first, named),
        }
    }

    /// The device has less free space than the counts say.
    pub(super) fn is_device_full(&self) -> bool {
        match self {
            Self::Segmented(_) => false,
            Self::Iplfs(space) => space.is_device_full(),
        }
    }

    /// The state that the policies of F2FS decide by.
    pub(super) fn facts(&self, demand: &Demand) -> SpaceFacts {
        match self {
            Self::Segmented(space) => space.facts(demand),
            Self::Iplfs(_) => SpaceFacts { lfs: true, ..SpaceFacts::default() },
        }
    }

    /// The pace of discards in the background, of a volume that is nearly full or small, or neither.
    pub(super) fn discard_pace(&self, full_or_small: bool) -> Pace {
        match self {
            Self::Segmented(_) => segmented_pace(full_or_small),
            Self::Iplfs(_) => IPLFS_PACE,
        }
    }

    /// The share of valid blocks in each of `cells` parts of the main area; nothing without
    /// segments.
    pub(super) fn occupancy(&self, cells: usize) -> Vec<f64> {
        match self {
            Self::Segmented(space) => space.occupancy(cells),
            Self::Iplfs(_) => Vec::new(),
        }
    }
}

/// Discards and checkpoints.
impl Space {
    /// The space has changed since the last checkpoint.
    pub(super) fn is_dirty(&self) -> bool {
        match self {
            Self::Segmented(space) => space.is_dirty(),
            Self::Iplfs(space) => space.has_fresh(),
        }
    }

    /// Something waits to be discarded.
    pub(super) fn has_discards(&self) -> bool {
        match self {
            Self::Segmented(space) => space.has_discards(),
            Self::Iplfs(space) => space.has_queued(),
        }
    }

    /// Discards up to `count` extents of what waits, of at least `granularity` blocks each; `true`
    /// if there were any.
    fn discard<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        count: usize,
        granularity: u32,
    ) -> Result<bool, Error> {
        match self {
            Self::Segmented(space) => space.discard(io, count, granularity),
            Self::Iplfs(space) => space.discard(io, count),
        }
    }

    /// The content of all free segments waits to be discarded.
    pub(super) fn queue_free_segments(&mut self) {
        match self {
            Self::Segmented(space) => space.queue_free_segments(),
            Self::Iplfs(_) => {}
        }
    }

    /// Entries that the NAT journal of the next checkpoint has room for; none of F2FS if the volume
    /// is unmounted with it.
    pub(super) fn nat_journal_entries(&self, for_next_mount: bool) -> usize {
        match self {
            Self::Segmented(space) => space.nat_journal_entries(for_next_mount),
            Self::Iplfs(_) => LogSpace::NAT_JOURNAL_ENTRIES,
        }
    }

    /// Completes the next checkpoint and the blocks of its pack; the SIT is written.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::Io`].
    pub(super) fn build_pack<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        superblock: &Superblock,
        draft: Draft<'_>,
    ) -> Result<Pack, Error> {
        match self {
            Self::Segmented(space) => space.build_pack(io, superblock, draft),
            Self::Iplfs(space) => space.build_pack(superblock, draft),
        }
    }

    /// The checkpoint of `pack` is complete: what it no longer refers to is free, and is discarded
    /// from now on if the mount `discards`. Returns whether a discard is due soon.
    pub(super) fn commit(&mut self, pack: &mut Pack, discards: bool) -> bool {
        match self {
            Self::Segmented(space) => {
                space.commit(std::mem::take(&mut pack.sit_journal), discards);
                false
            }
            Self::Iplfs(space) => space.commit(),
        }
    }
}

/// Cleaning, and what waits for a checkpoint to be free. There is none without segments.
impl Space {
    /// Segments that the next checkpoint frees.
    pub(super) fn prefree_count(&self) -> u32 {
        match self {
            Self::Segmented(space) => space.prefree_count(),
            Self::Iplfs(_) => 0,
        }
    }

    /// So many segments wait for a checkpoint to become free that one is worth it.
    pub(super) fn has_many_prefree(&self) -> bool {
        match self {
            Self::Segmented(space) => space.has_many_prefree(),
            Self::Iplfs(_) => false,
        }
    }

    /// The progress of foreground cleaning that emptied `freed` sections since the last checkpoint.
    pub(super) fn cleaning_state(&self, demand: &Demand, freed: u32) -> CleaningState {
        match self {
            Self::Segmented(space) => space.cleaning_state(demand, freed),
            Self::Iplfs(_) => CleaningState { is_enough: true, needs_checkpoint: false },
        }
    }

    /// The section that is cleaned with the least work, not yet among `seen`.
    pub(super) fn greedy_victim(&self, seen: &BTreeSet<u32>) -> Option<u32> {
        match self {
            Self::Segmented(space) => space.greedy_victim(seen),
            Self::Iplfs(_) => None,
        }
    }

    /// The section that is worth cleaning most in the background.
    pub(super) fn cost_benefit_victim(&mut self) -> Option<u32> {
        match self {
            Self::Segmented(space) => space.cost_benefit_victim(),
            Self::Iplfs(_) => None,
        }
    }

    /// Cleaning of a section begins: nothing is written there. Returns its segments.
    pub(super) fn begin_cleaning(&mut self, section: u32) -> Vec<SegNo> {
        match self {
            Self::Segmented(space) => space.begin_cleaning(section),
            Self::Iplfs(_) => Vec::new(),
        }
    }

    /// Cleaning of the section has ended; `true` if nothing valid is left there.
    pub(super) fn end_cleaning(&mut self) -> bool {
        match self {
            Self::Segmented(space) => space.end_cleaning(),
            Self::Iplfs(_) => false,
        }
    }

    /// The valid blocks of a segment, `None` if there are none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn valid_blocks<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        segno: SegNo,
    ) -> Result<Option<ValidBlocks>, Error> {
        match self {
            Self::Segmented(space) => space.valid_blocks(io, segno),
            Self::Iplfs(_) => Ok(None),
        }
    }
}

/// Staging for updates that the device is to move. There is none without segments.
impl Space {
    /// A section is to be borrowed before the next staged block is taken.
    pub(super) fn staging_wants_section(&self, reserve: u32) -> bool {
        match self {
            Self::Segmented(space) => space.staging_wants_section(reserve),
            Self::Iplfs(_) => false,
        }
    }

    /// Staged blocks that are free.
    pub(super) fn staging_free(&self) -> u32 {
        match self {
            Self::Segmented(space) => space.staging_free(),
            Self::Iplfs(_) => 0,
        }
    }

    /// Borrows a free section for staging; `false` if there is none.
    pub(super) fn borrow_section(&mut self) -> bool {
        match self {
            Self::Segmented(space) => space.borrow_section(),
            Self::Iplfs(_) => false,
        }
    }

    /// A block to write an update to, if more than `reserve` are left.
    pub(super) fn take_staged(&mut self, reserve: u32) -> Option<BlockAddr> {
        match self {
            Self::Segmented(space) => space.take_staged(reserve),
            Self::Iplfs(_) => None,
        }
    }

    /// The update has moved from the staged block, or is not needed any more.
    pub(super) fn release_staged(&mut self, address: BlockAddr) {
        match self {
            Self::Segmented(space) => space.release_staged(address),
            Self::Iplfs(_) => {}
        }
    }

    /// Returns borrowed sections that are not needed; all in which nothing waits with `last`.
    pub(super) fn return_sections(&mut self, last: bool, discards: bool) {
        match self {
            Self::Segmented(space) => space.return_sections(last, discards),
            Self::Iplfs(_) => {}
        }
    }
}

/// Roll-forward.
impl Space {
    /// The whole chain of records is kept from being written, as opposed to what is rolled forward
    /// of it: where nothing is discarded, the rest takes no space that it could lose.
    pub(super) fn guards_whole_chain(&self) -> bool {
        match self {
            Self::Segmented(_) => true,
            Self::Iplfs(_) => false,
        }
    }

    /// The device tells a block that was lost from one that holds zeros: it discarded all that the
    /// logs have not reached.
    pub(super) fn shows_lost_blocks(&self) -> bool {
        match self {
            Self::Segmented(_) => false,
            Self::Iplfs(_) => true,
        }
    }

    /// A block that the chain leads to has an owner already.
    pub(super) fn is_taken(&self, address: BlockAddr) -> bool {
        match self {
            Self::Segmented(space) => space.is_taken(address),
            Self::Iplfs(space) => space.is_adopted(address),
        }
    }

    /// A block that the chain leads to belongs to a file.
    ///
    /// # Errors
    /// [`Corrupt::NotValid`] of a block that no record can lead to.
    pub(super) fn adopt(&mut self, address: BlockAddr, owner: Summary, now_s: u64) -> Result<(), Corrupt> {
        match self {
            Self::Segmented(space) => {
                space.adopt(address, owner, now_s);
                Ok(())
            }
            Self::Iplfs(space) => space.adopt(address),
        }
    }

    /// The owner of a block that the checkpoint knows.
    ///
    /// # Errors
    /// [`Corrupt::NotValid`] without summaries; [`Error::Io`].
    pub(super) fn summary_of<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        address: BlockAddr,
    ) -> Result<Summary, Error> {
        match self {
            Self::Segmented(space) => space.summary_of(io, address),
            Self::Iplfs(_) => Err(Corrupt::NotValid(address).into()),
        }
    }

    /// All was replayed, and the next checkpoint is about to make it durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn end_recovery<D: Scheduler>(&mut self, io: &mut Io<D>) -> Result<(), Error> {
        match self {
            Self::Segmented(space) => space.end_recovery(io),
            Self::Iplfs(space) => {
                space.give_up_unclaimed();
                Ok(())
            }
        }
    }
}

/// A log that is never written again needs a thin device with space for what the volume holds.
fn check_thin(device: &DeviceInfo, superblock: &Superblock) -> Result<(), Error> {
    let capacity = superblock.capacity;
    let thin = device.capabilities.thin.filter(|_| device.capabilities.discard);
    let thin = thin.ok_or(Incompatible::NotThin)?;
    if thin.capacity < capacity {
        return Err(Corrupt::Truncated { found: thin.capacity, expected: capacity }.into());
    }
    Ok(())
}
