//! A plan: what a call issued, in its order.

use dovetail_block::{
    BlockRange, EventId, Hints, Lba, LockId, RemapPair, RemapWhen, RenameId, SectorRange,
    ZoneAction,
};
use dovetail_time::SimTime;

/// A remap command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The command's pairs.
    pub pairs: Vec<RemapPair>,
    /// Time of their execution.
    pub when: RemapWhen,
    /// Pairs of earlier commands that are executed with it.
    pub held: Vec<RemapPair>,
}

impl Default for Remap {
    fn default() -> Self {
        Self { pairs: Vec::new(), when: RemapWhen::Now, held: Vec::new() }
    }
}

/// The end of a batch of renames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndRenames {
    /// The batch.
    pub id: RenameId,
    /// The new names stay.
    pub keep: bool,
    /// The names that lead nowhere from then on.
    pub dropped: Vec<Lba>,
}

/// The part of a command in the limits on zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneTurn {
    /// A zone becomes active, or must be able to. So many more could, if all that is planned before
    /// had been issued.
    Takes {
        /// Zones that may become active beside it.
        room: u32,
    },
    /// A zone is no longer active.
    Frees,
    /// The number of zones that the host has opened by itself changes, which a device never closes
    /// in favour of others: no other command on zones may overtake it or be overtaken.
    Alone,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanStep {
    /// Reads blocks.
    Read(BlockRange),
    /// Writes blocks.
    Write {
        /// Blocks to write.
        range: BlockRange,
        /// Hints of the writer about them.
        hints: Hints,
        /// Durable when it completes.
        fua: bool,
    },
    /// Makes all that completed before durable.
    Flush,
    /// Gives ranges back.
    Discard(Vec<SectorRange>),
    /// Changes the state of the zone that these blocks are.
    Zone(BlockRange, ZoneAction),
    /// Tells of the next command what it does to the numbers of active and open zones, where the
    /// device limits them. Nothing waits for this step itself.
    ZoneTurn(ZoneTurn),
    /// Moves blocks to other addresses.
    Remap(Box<Remap>),
    /// Ends a batch of renames.
    EndRenames(Box<EndRenames>),
    /// Waits for a time.
    Until(SimTime),
    /// Waits for its reads so far.
    WaitReads,
    /// Waits for all its commands.
    WaitAll,
    /// Takes a lock.
    Lock {
        /// Lock to take.
        lock: LockId,
        /// With others.
        shared: bool,
    },
    /// Gives a lock back.
    Unlock(LockId),
    /// Brings about an event.
    Signal(EventId),
    /// Waits for an event.
    Await(EventId),
    /// So many pages are no longer on their way when all its commands so far are done. It waits for
    /// nothing.
    Written(usize),
    /// Waits until no more than so many pages are dirty or on their way, or none is on its way.
    AwaitRoom(usize),
}

impl PlanStep {
    /// It is a command to the drive.
    pub const fn is_command(&self) -> bool {
        matches!(
            self,
            Self::Read(_)
                | Self::Write { .. }
                | Self::Flush
                | Self::Discard(_)
                | Self::Zone(..)
                | Self::Remap(_)
                | Self::EndRenames(_)
        )
    }

    /// Blocks that the command is about: those that a remap moves count once.
    pub(crate) fn blocks(&self) -> u64 {
        match self {
            Self::Read(range) | Self::Write { range, .. } => range.blocks,
            Self::Discard(ranges) => ranges.iter().map(|range| range.blocks_inside().blocks).sum(),
            Self::Remap(remap) => remap.pairs.len() as u64,
            Self::EndRenames(end) => end.dropped.len() as u64,
            _ => 0,
        }
    }

    /// Shows the blocks that it touches, and whether it changes them.
    pub(crate) fn for_each_range(&self, mut show: impl FnMut(BlockRange, bool)) {
        match self {
            Self::Read(range) => show(*range, false),
            Self::Write { range, .. } | Self::Zone(range, _) => show(*range, true),
            Self::Discard(ranges) => {
                ranges.iter().for_each(|range| show(range.blocks_inside(), true));
            }
            Self::Remap(remap) => {
                for pair in remap.held.iter().chain(&remap.pairs) {
                    show(BlockRange::new(pair.to, 1), true);
                    show(BlockRange::new(pair.from, 1), true);
                }
            }
            Self::EndRenames(end) => {
                end.dropped.iter().for_each(|&lba| show(BlockRange::new(lba, 1), true));
            }
            _ => {}
        }
    }
}

/// Steps that a call issued, to be played one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<PlanStep>,
}
