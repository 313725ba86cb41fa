//! The part of a planned command in a device's limits on zones, from the zones as they will be when
//! all that was planned before has been issued.

use dovetail_block::{ZoneError, ZoneState, ZoneTable};

use crate::plan::{PlanStep, ZoneTurn};

/// The turns of one command, none where there are no limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ZoneTurns {
    takes: Option<ZoneTurn>,
    alone: Option<ZoneTurn>,
    frees: Option<ZoneTurn>,
}

impl ZoneTurns {
    /// Changes a zone of the table, and tells what that means for the limits.
    pub(crate) fn of(
        table: &mut ZoneTable,
        zone: u32,
        change: impl FnOnce(&mut ZoneTable) -> Result<(), ZoneError>,
    ) -> Result<Self, ZoneError> {
        let (before, active) = (table.state(zone), table.active());
        change(table)?;
        let (after, limits) = (table.state(zone), *table.zones());
        let mut turns = Self::default();
        let is_explicit = |state| state == ZoneState::ExplicitlyOpen;
        if limits.max_open > 0 && is_explicit(before) != is_explicit(after) {
            turns.alone = Some(ZoneTurn::Alone);
        }
        if limits.max_active > 0 {
            // an empty zone that is filled or finished at once needs its place, too
            if before == ZoneState::Empty && after != ZoneState::Empty {
                let room = limits.max_active.saturating_sub(active + 1);
                turns.takes = Some(ZoneTurn::Takes { room });
            }
            let was_active = before.is_active() || turns.takes.is_some();
            turns.frees = (was_active && !after.is_active()).then_some(ZoneTurn::Frees);
        }
        Ok(turns)
    }

    /// The steps before the first request of the command.
    pub(crate) fn before(self) -> impl Iterator<Item = PlanStep> {
        self.takes.into_iter().map(PlanStep::ZoneTurn)
    }

    /// The steps before its last request.
    pub(crate) fn after(self) -> impl Iterator<Item = PlanStep> {
        self.alone.into_iter().chain(self.frees).map(PlanStep::ZoneTurn)
    }
}
