//! Commands that are planned and not yet issued, and which later ones must not overtake them.
//!
//! The file system's state already has the earlier command behind it: a read planned before a write
//! of the same block must reach the drive before it. A kernel holds the page's lock for this.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::{BlockRange, Lba, Zones};
use rustc_hash::FxHashSet;

use crate::plan::{PlanStep, ZoneTurn};

/// A planned command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CommandId(pub(crate) u64);

#[derive(Clone, Copy, Debug)]
struct Pending {
    end: u64,
    writes: bool,
}

/// Beyond all addresses: a place for each zone, by which writes to it keep their order.
const ORDER_OF_ZONES: u64 = 1 << 63;

/// The planned commands by their first block. Writes to one zone conflict, whatever their blocks.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    zones: Option<Zones>,
    pending: BTreeMap<(u64, CommandId), Pending>,
    ids: FxHashSet<CommandId>,
    /// Those that make a zone full or empty, by which another may become active.
    freeing: BTreeSet<CommandId>,
    /// Those that keep their place among all commands on zones.
    alone: BTreeSet<CommandId>,
    /// No pending command is longer.
    longest: u64,
    next: u64,
}

impl Hazards {
    /// For a device that has these zones.
    pub(crate) fn new(zones: Option<Zones>) -> Self {
        Self { zones, ..Self::default() }
    }

    /// Remembers a command that is planned but not issued.
    pub(crate) fn plan(&mut self, step: &PlanStep) -> CommandId {
        let id = CommandId(self.next);
        self.next += 1;
        self.ids.insert(id);
        for (range, writes) in touched(self.zones, step) {
            self.longest = self.longest.max(range.blocks);
            self.pending.insert((range.start.0, id), Pending { end: range.end().0, writes });
        }
        id
    }

    /// A planned command has this part in the limits on zones.
    pub(crate) fn take_part(&mut self, id: CommandId, turn: ZoneTurn) {
        match turn {
            ZoneTurn::Takes { .. } => {}
            ZoneTurn::Frees => drop(self.freeing.insert(id)),
            ZoneTurn::Alone => drop(self.alone.insert(id)),
        }
    }

    /// Planned commands that must be issued before one with this part in the limits on zones.
    pub(crate) fn before_turn(&self, turn: ZoneTurn, into: &mut Vec<CommandId>) {
        match turn {
            ZoneTurn::Takes { room } => self.before_taking(room, into),
            ZoneTurn::Frees => {}
            ZoneTurn::Alone => {
                let on_zones = self.pending.range((ORDER_OF_ZONES, CommandId(0))..);
                into.extend(on_zones.map(|((_, id), _)| *id));
            }
        }
    }

    /// Those before one that makes a zone active: the first of those that free one, all but as many
    /// as there is room.
    ///
    /// So there is always room. Of the commands that were issued and made a zone active, look at
    /// the last one in the order of plans: all before it that free a zone were issued, but as many
    /// as there was room.
    fn before_taking(&self, room: u32, into: &mut Vec<CommandId>) {
        let waits = self.freeing.len().saturating_sub(room as usize);
        into.extend(self.freeing.iter().take(waits));
    }

    /// The command was issued.
    pub(crate) fn issued(&mut self, step: &PlanStep, id: CommandId) {
        self.ids.remove(&id);
        self.freeing.remove(&id);
        self.alone.remove(&id);
        for (range, _) in touched(self.zones, step) {
            self.pending.remove(&(range.start.0, id));
        }
        if self.pending.is_empty() {
            self.longest = 0;
        }
    }

    /// It is planned and not issued.
    pub(crate) fn is_pending(&self, id: CommandId) -> bool {
        self.ids.contains(&id)
    }

    /// A command about the block is planned and not issued.
    pub(crate) fn is_busy(&self, lba: Lba) -> bool {
        let from = (lba.0.saturating_sub(self.longest), CommandId(0));
        let mut near = self.pending.range(from..(lba.0 + 1, CommandId(0)));
        near.any(|(_, other)| other.end > lba.0)
    }

    /// Planned commands with which this one conflicts.
    pub(crate) fn conflicts(&self, step: &PlanStep, into: &mut Vec<CommandId>) {
        if self.pending.is_empty() {
            return;
        }
        for (range, writes) in touched(self.zones, step) {
            let from = (range.start.0.saturating_sub(self.longest), CommandId(0));
            let near = self.pending.range(from..(range.end().0, CommandId(0)));
            let hit =
                near.filter(|(_, other)| other.end > range.start.0 && (writes || other.writes));
            into.extend(hit.map(|((_, id), _)| *id));
            if range.start.0 >= ORDER_OF_ZONES {
                into.extend(&self.alone);
            }
        }
    }
}

/// The blocks that a command touches and the place of the zone that it writes to or acts on, and
/// whether it changes them.
fn touched(
    zones: Option<Zones>,
    step: &PlanStep,
) -> impl Iterator<Item = (BlockRange, bool)> + use<'_> {
    let start = match step {
        PlanStep::Write { range, .. } | PlanStep::Zone(range, _) => Some(range.start),
        _ => None,
    };
    let zone = zones.and_then(|zones| zones.index(start?));
    let place = |zone| (BlockRange::new(Lba(ORDER_OF_ZONES + u64::from(zone)), 1), true);
    step.ranges().chain(zone.map(place))
}
