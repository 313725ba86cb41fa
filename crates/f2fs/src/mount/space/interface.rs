//! The calls of [`Space`]: each is carried out by the arm that the volume has.

use std::collections::BTreeSet;

use dovetail_block::Scheduler;

use super::super::io::Io;
use super::super::policy::{
    CleaningWindow, DiscardFacts, Log, Pace, SpaceFacts, iplfs_pace, segmented_pace,
};
use super::iplfs::LogSpace;
use super::{Demand, Draft, Pack, Space, Taken, ValidBlocks};
use crate::error::{Corrupt, Damage, Error};
use crate::format::{BlockAddr, Checkpoint, SegNo, Summary, Superblock};

impl Space {
    /// Checks the counts of a checkpoint against each other and against the tables.
    pub(in super::super) fn check_counts(
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
    pub(in super::super) fn reuses_addresses(&self) -> bool {
        match self {
            Self::Segmented(_) => true,
            Self::Iplfs(_) => false,
        }
    }

    /// The address of the log's next block.
    pub(in super::super) fn next_address(&self, log: Log) -> BlockAddr {
        match self {
            Self::Segmented(space) => space.next_address(log),
            Self::Iplfs(space) => space.next_address(log),
        }
    }

    /// [`Self::next_segment`] is due before the log's next block.
    pub(in super::super) fn is_segment_full(&self, log: Log) -> bool {
        match self {
            Self::Segmented(space) => space.is_segment_full(log),
            Self::Iplfs(_) => false,
        }
    }

    /// Moves a log on to its next segment.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if there is none; [`Error::Io`].
    pub(in super::super) fn next_segment<D: Scheduler>(
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
    pub(in super::super) fn take(
        &mut self,
        log: Log,
        owner: Summary,
        now_s: u64,
        valid: u64,
    ) -> Result<Taken, Error> {
        match self {
            Self::Segmented(space) => Ok(space.take(log, owner, now_s)),
            Self::Iplfs(space) => space.append(log, valid),
        }
    }

    /// The block, which lies in the main area, is no longer used. It can be written again after the
    /// next checkpoint, if ever.
    ///
    /// # Errors
    /// [`Damage::NotValid`] of a block that was not in use.
    pub(in super::super) fn free(&mut self, address: BlockAddr, now_s: u64) -> Result<(), Corrupt> {
        match self {
            Self::Segmented(space) => space.free(address, now_s),
            Self::Iplfs(space) => space.free(address),
        }
    }

    /// Pointers that led to `from` lead to `to`: a block that is reserved and not written has no
    /// address yet.
    pub(in super::super) fn note_promise(&mut self, from: BlockAddr, to: BlockAddr) {
        match self {
            Self::Segmented(_) => {}
            Self::Iplfs(space) => space.note_promise(from, to),
        }
    }

    /// A node was written for a recovery to find: the `first` of its file's inode, or with a mark
    /// for a name.
    pub(in super::super) fn note_recoverable(&mut self, first: bool, named: bool) {
        match self {
            Self::Segmented(_) => {}
            Self::Iplfs(space) => space.note_recoverable(first, named),
        }
    }

    /// The device has less free space than the counts say.
    pub(in super::super) fn is_device_full(&self) -> bool {
        match self {
            Self::Segmented(_) => false,
            Self::Iplfs(space) => space.is_device_full(),
        }
    }

    /// The state that the policies of F2FS decide by.
    pub(in super::super) fn facts(&self, demand: &Demand) -> SpaceFacts {
        match self {
            Self::Segmented(space) => space.facts(demand),
            Self::Iplfs(_) => SpaceFacts { lfs: true, ..SpaceFacts::default() },
        }
    }

    /// The pace of discards in the background.
    pub(in super::super) fn discard_pace(&self, facts: &DiscardFacts) -> Pace {
        match self {
            Self::Segmented(_) => segmented_pace(facts),
            Self::Iplfs(_) => iplfs_pace(facts),
        }
    }

    /// The share of valid blocks in each of `cells` parts of the main area; nothing without
    /// segments.
    pub(in super::super) fn occupancy(&self, cells: usize) -> Vec<f64> {
        match self {
            Self::Segmented(space) => space.occupancy(cells),
            Self::Iplfs(_) => Vec::new(),
        }
    }
}

/// Discards and checkpoints.
impl Space {
    /// The space has changed since the last checkpoint.
    pub(in super::super) fn is_dirty(&self) -> bool {
        match self {
            Self::Segmented(space) => space.is_dirty(),
            Self::Iplfs(space) => space.has_fresh(),
        }
    }

    /// Something waits to be discarded.
    pub(in super::super) fn has_discards(&self) -> bool {
        match self {
            Self::Segmented(space) => space.has_discards(),
            Self::Iplfs(space) => space.has_queued(),
        }
    }

    /// An extent of at least so many blocks waits to be discarded.
    pub(in super::super) fn has_discard_of(&self, granularity: u32) -> bool {
        match self {
            Self::Segmented(space) => space.has_discard_of(granularity),
            Self::Iplfs(space) => space.has_queued(),
        }
    }

    /// Discards up to `count` extents of what waits, of at least `granularity` blocks each; `true`
    /// if there were any.
    pub(super) fn discard<D: Scheduler>(
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
    pub(in super::super) fn queue_free_segments(&mut self) {
        match self {
            Self::Segmented(space) => space.queue_free_segments(),
            Self::Iplfs(_) => {}
        }
    }

    /// Entries that the NAT journal of the next checkpoint has room for; none of F2FS if the volume
    /// is unmounted with it.
    pub(in super::super) fn nat_journal_entries(&self, for_next_mount: bool) -> usize {
        match self {
            Self::Segmented(space) => space.nat_journal_entries(for_next_mount),
            Self::Iplfs(_) => LogSpace::NAT_JOURNAL_ENTRIES,
        }
    }

    /// Completes the next checkpoint and the blocks of its pack; the SIT and the SSA are written.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::Io`].
    pub(in super::super) fn build_pack<D: Scheduler>(
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
    pub(in super::super) fn commit(&mut self, pack: &mut Pack, discards: bool) -> bool {
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
    pub(in super::super) fn prefree_count(&self) -> u32 {
        match self {
            Self::Segmented(space) => space.prefree_count(),
            Self::Iplfs(_) => 0,
        }
    }

    /// So many segments wait for a checkpoint to become free that one is worth it.
    pub(in super::super) fn has_many_prefree(&self) -> bool {
        match self {
            Self::Segmented(space) => space.has_many_prefree(),
            Self::Iplfs(_) => false,
        }
    }

    /// Enough sections are free, with `freed` more when the next checkpoint is written.
    pub(in super::super) fn has_enough(&self, demand: &Demand, freed: u32) -> bool {
        match self {
            Self::Segmented(space) => space.has_enough(demand, freed),
            Self::Iplfs(_) => true,
        }
    }

    /// The section that is cleaned with the least work, not yet among `seen`.
    pub(in super::super) fn greedy_victim(&self, seen: &BTreeSet<u32>) -> Option<u32> {
        match self {
            Self::Segmented(space) => space.greedy_victim(seen),
            Self::Iplfs(_) => None,
        }
    }

    /// The section that is worth cleaning most in the background.
    pub(in super::super) fn cost_benefit_victim(&mut self) -> Option<u32> {
        match self {
            Self::Segmented(space) => space.cost_benefit_victim(),
            Self::Iplfs(_) => None,
        }
    }

    /// The next step of cleaning in the background, of a zoned volume; `None` if nothing is due.
    pub(in super::super) fn cleaning_window(&self) -> Option<CleaningWindow> {
        match self {
            Self::Segmented(space) => space.cleaning_window(),
            Self::Iplfs(_) => None,
        }
    }

    /// The section holds something that can be moved.
    pub(in super::super) fn can_be_cleaned(&self, section: u32) -> bool {
        match self {
            Self::Segmented(space) => space.is_candidate(section),
            Self::Iplfs(_) => false,
        }
    }

    /// The section is not cleaned before the next checkpoint.
    pub(in super::super) fn set_aside(&mut self, section: u32) {
        match self {
            Self::Segmented(space) => space.set_aside(section),
            Self::Iplfs(_) => {}
        }
    }

    /// Cleaning of a section begins: nothing is written there. Returns its segments.
    pub(in super::super) fn begin_cleaning(&mut self, section: u32) -> Vec<SegNo> {
        match self {
            Self::Segmented(space) => space.begin_cleaning(section),
            Self::Iplfs(_) => Vec::new(),
        }
    }

    /// Cleaning of the section has ended; `true` if nothing valid is left there.
    pub(in super::super) fn end_cleaning(&mut self) -> bool {
        match self {
            Self::Segmented(space) => space.end_cleaning(),
            Self::Iplfs(_) => false,
        }
    }

    /// The valid blocks of a segment, `None` if there are none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in super::super) fn valid_blocks<D: Scheduler>(
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
    pub(in super::super) fn staging_wants_section(&self, reserve: u32) -> bool {
        match self {
            Self::Segmented(space) => space.staging_wants_section(reserve),
            Self::Iplfs(_) => false,
        }
    }

    /// Staged blocks that are free.
    pub(in super::super) fn staging_free(&self) -> u32 {
        match self {
            Self::Segmented(space) => space.staging_free(),
            Self::Iplfs(_) => 0,
        }
    }

    /// Borrows a free section for staging; `false` if there is none.
    pub(in super::super) fn borrow_section(&mut self) -> bool {
        match self {
            Self::Segmented(space) => space.borrow_section(),
            Self::Iplfs(_) => false,
        }
    }

    /// A block to write an update to, if more than `reserve` are left.
    pub(in super::super) fn take_staged(&mut self, reserve: u32) -> Option<BlockAddr> {
        match self {
            Self::Segmented(space) => space.take_staged(reserve),
            Self::Iplfs(_) => None,
        }
    }

    /// The update has moved from the staged block, or is not needed any more.
    pub(in super::super) fn release_staged(&mut self, address: BlockAddr) {
        match self {
            Self::Segmented(space) => space.release_staged(address),
            Self::Iplfs(_) => {}
        }
    }

    /// Returns borrowed sections that are not needed; all in which nothing waits with `last`.
    pub(in super::super) fn return_sections(&mut self, last: bool, discards: bool) {
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
    pub(in super::super) fn guards_whole_chain(&self) -> bool {
        match self {
            Self::Segmented(_) => true,
            Self::Iplfs(_) => false,
        }
    }

    /// The device tells a block that was lost from one that holds zeros: it lies beyond the write
    /// pointer of its zone, or it discarded all that the logs have not reached.
    pub(in super::super) fn shows_lost_blocks(&self) -> bool {
        match self {
            Self::Segmented(space) => space.is_zoned(),
            Self::Iplfs(_) => true,
        }
    }

    /// The block lies beyond the write pointer of its zone; `None` if it lies in no zone.
    pub(in super::super) fn is_beyond_pointer(&self, address: BlockAddr) -> Option<bool> {
        match self {
            Self::Segmented(space) => Some(space.is_beyond_pointer(address)),
            Self::Iplfs(_) => None,
        }
    }

    /// A block that the chain leads to has an owner already.
    pub(in super::super) fn is_taken(&self, address: BlockAddr) -> bool {
        match self {
            Self::Segmented(space) => space.is_taken(address),
            Self::Iplfs(space) => space.is_adopted(address),
        }
    }

    /// A block that the chain leads to belongs to a file.
    ///
    /// # Errors
    /// [`Damage::NotValid`] of a block that no record can lead to.
    pub(in super::super) fn adopt(
        &mut self,
        address: BlockAddr,
        owner: Summary,
        now_s: u64,
    ) -> Result<(), Corrupt> {
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
    /// [`Damage::NotValid`] without summaries; [`Error::Io`].
    pub(in super::super) fn summary_of<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        address: BlockAddr,
    ) -> Result<Summary, Error> {
        match self {
            Self::Segmented(space) => space.summary_of(io, address),
            Self::Iplfs(_) => Err(Damage::NotValid(address).into()),
        }
    }

    /// Moves logs away from zones that they cannot go on in, after a power cut from all that they
    /// have written to; `true` if any moved. There are none but on zoned volumes.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::Io`].
    pub(in super::super) fn move_from_pointers<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        after_cut: bool,
    ) -> Result<bool, Error> {
        match self {
            Self::Segmented(space) => space.move_from_pointers(io, after_cut),
            Self::Iplfs(_) => Ok(false),
        }
    }

    /// Finishes or resets zones in which no log goes on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in super::super) fn repair_zones<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
    ) -> Result<(), Error> {
        match self {
            Self::Segmented(space) => space.repair_zones(io),
            Self::Iplfs(_) => Ok(()),
        }
    }

    /// All was replayed, and the next checkpoint is about to make it durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(in super::super) fn end_recovery<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
    ) -> Result<(), Error> {
        match self {
            Self::Segmented(space) => space.end_recovery(io),
            Self::Iplfs(space) => {
                space.give_up_unclaimed();
                Ok(())
            }
        }
    }
}
