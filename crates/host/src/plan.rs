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

impl Remap {
    /// The addresses from which and to which it moves blocks, or will move them.
    fn touched(&self) -> impl Iterator<Item = BlockRange> {
        let pairs = self.held.iter().chain(&self.pairs);
        pairs.flat_map(|pair| [pair.to, pair.from]).map(|lba| BlockRange::new(lba, 1))
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
            Self::Remap(remap) => remap.pairs.len() as u64,
            Self::Zone(..) => 0,
            _ => self.ranges().map(|(range, _)| range.blocks).sum(),
        }
    }

    /// The blocks that it touches, and whether it changes them.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (BlockRange, bool)> {
        let (one, discard, remap, dropped): (_, &[SectorRange], _, &[Lba]) = match self {
            Self::Read(range) => (Some((*range, false)), &[], None, &[]),
            Self::Write { range, .. } | Self::Zone(range, _) => {
                (Some((*range, true)), &[], None, &[])
            }
            Self::Discard(ranges) => (None, ranges, None, &[]),
            Self::Remap(remap) => (None, &[], Some(remap), &[]),
            Self::EndRenames(end) => (None, &[], None, &end.dropped),
            _ => (None, &[], None, &[]),
        };
        let discard = discard.iter().map(|range| range.blocks_inside());
        let dropped = dropped.iter().map(|&lba| BlockRange::new(lba, 1));
        let moved = remap.into_iter().flat_map(|remap| remap.touched());
        let changed = discard.chain(moved).chain(dropped);
        one.into_iter().chain(changed.map(|range| (range, true)))
    }
}

/// Steps that a call issued, to be played one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<PlanStep>,
}
