//! The zones of a device as they are now: states, write pointers, limits.

use std::collections::{BTreeMap, VecDeque};

use super::state::{Transition, ZoneEvent, ZoneState, transition};
use super::{Zone, ZoneAction, ZoneError, Zones};
use crate::addr::{BlockRange, Lba};
use crate::device::{Answer, DeviceError};

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    state: ZoneState,
    /// Blocks written, from the start of the zone.
    written: u64,
    /// It has a random write area.
    window: bool,
}

/// The states and write pointers of all sequential zones of a device, and what may happen to them.
///
/// It knows no content: a device asks it before a write, and tells it of what was written.
#[derive(Clone, Debug)]
pub struct ZoneTable {
    zones: Zones,
    entries: Vec<Entry>,
    empty: u32,
    open: u32,
    active: u32,
    windows: u32,
    /// Implicitly open zones in the order in which they were opened.
    implicit: VecDeque<u32>,
    /// Changes that the device made by itself, and the last one's number of each zone.
    changes: u64,
    changed: BTreeMap<u32, u64>,
}

impl ZoneTable {
    /// All zones empty.
    pub fn new(zones: Zones) -> Self {
        let entries = vec![Entry::default(); zones.count as usize];
        let implicit = VecDeque::new();
        Self {
            zones,
            entries,
            empty: zones.count,
            open: 0,
            active: 0,
            windows: 0,
            implicit,
            changes: 0,
            changed: BTreeMap::new(),
        }
    }

    /// Zones as they were found; open ones are closed, as after a power cut.
    ///
    /// # Panics
    /// Fewer or more states and counts of written blocks than zones.
    pub fn found(zones: Zones, found: impl IntoIterator<Item = (ZoneState, u64)>) -> Self {
        let mut table = Self::new(zones);
        let mut count = 0;
        for (zone, (state, written)) in found.into_iter().enumerate() {
            let Transition::To(state) = transition(state, ZoneEvent::PowerOn, written > 0) else {
                unreachable!("every zone can be switched on")
            };
            table.entries[zone].written = written;
            table.enter(zone as u32, state);
            count += 1;
        }
        assert_eq!(count, zones.count, "a state for each zone");
        table
    }

    /// The layout and limits.
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    /// The state of a zone.
    #[inline]
    pub fn state(&self, zone: u32) -> ZoneState {
        self.entries[zone as usize].state
    }

    /// Blocks written, from the start of the zone: the write pointer. A zone that was finished
    /// keeps the count of those that were really written.
    #[inline]
    pub fn written(&self, zone: u32) -> u64 {
        self.entries[zone as usize].written
    }

    /// Tells whether a zone has a random write area.
    pub fn has_window(&self, zone: u32) -> bool {
        self.entries[zone as usize].window
    }

    /// Gives an active zone back the random write area that it had before a power cut.
    pub fn restore_window(&mut self, zone: u32) {
        let entry = &mut self.entries[zone as usize];
        if entry.state.is_active() && !entry.window {
            entry.window = true;
            self.windows += 1;
        }
    }

    /// Empty zones.
    pub fn empty(&self) -> u32 {
        self.empty
    }

    /// Open zones.
    pub fn open(&self) -> u32 {
        self.open
    }

    /// Zones that are neither empty nor full.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Up to `most` zones from that with block `from` on, conventional ones too.
    pub fn report(&self, from: Lba, most: usize) -> Vec<Zone> {
        let Zones { first, blocks, capacity, .. } = self.zones;
        // the grid goes on before the first sequential zone, with a part of a zone in front
        let front = first.0 % blocks;
        let conventional = self.zones.conventional();
        let start_of = |index: u64| match index {
            0 => 0,
            _ if front > 0 => front + (index - 1) * blocks,
            _ => index * blocks,
        };
        let all = conventional + u64::from(self.zones.count);
        let of = |index: u64| match index.checked_sub(conventional) {
            Some(zone) => {
                let (start, state) = (self.zones.start(zone as u32), self.state(zone as u32));
                let written = match state {
                    ZoneState::Full => capacity,
                    _ => self.written(zone as u32),
                };
                let write_pointer = Lba(start.0 + written);
                Zone { start, capacity, state: Some(state), write_pointer }
            }
            None => {
                let (start, end) = (start_of(index), start_of(index + 1).min(first.0));
                let write_pointer = Lba(start);
                Zone { start: Lba(start), capacity: end - start, state: None, write_pointer }
            }
        };
        let ends_after = |zone: &Zone| match zone.state {
            Some(_) => zone.start.0 + blocks > from.0,
            None => zone.start.0 + zone.capacity > from.0,
        };
        (0..all).map(of).filter(ends_after).take(most).collect()
    }

    /// The zones that the device changed by itself since there were so many changes, in order:
    /// closed in favour of others, or failed; and the changes by now.
    pub fn changed(&self, since: u64) -> Answer {
        // whoever knows of more has asked before the power was cut
        let since = if since > self.changes { 0 } else { since };
        let changed = self.changed.iter().filter(|(_, number)| **number > since);
        let zones = changed.flat_map(|(zone, _)| self.report(self.zones.start(*zone), 1)).collect();
        Answer::ChangedZones { zones, until: self.changes }
    }

    /// Checks a read: it may not touch an offline zone.
    ///
    /// # Errors
    /// [`ZoneError::Offline`].
    pub fn check_read(&self, range: BlockRange) -> Result<(), ZoneError> {
        let mut at = range.start.0.max(self.zones.first.0);
        while at < range.end().0
            && let Some(zone) = self.zones.index(Lba(at))
        {
            if self.state(zone) == ZoneState::Offline {
                return Err(ZoneError::Offline(zone));
            }
            at = self.zones.start(zone + 1).0;
        }
        Ok(())
    }

    /// Begins a write of a range that starts in a sequential zone: checks it, and opens the zone,
    /// for which another may be closed. With a random write area the range may lie anywhere in the
    /// window.
    ///
    /// # Errors
    /// [`ZoneError`]; nothing has changed then.
    pub fn begin_write(&mut self, zone: u32, range: BlockRange) -> Result<(), ZoneError> {
        let Entry { state, written, window } = self.entries[zone as usize];
        match state {
            ZoneState::Full => return Err(ZoneError::Full(zone)),
            ZoneState::ReadOnly => return Err(ZoneError::ReadOnly(zone)),
            ZoneState::Offline => return Err(ZoneError::Offline(zone)),
            _ => {}
        }
        let (pointer, end) =
            (Lba(self.zones.start(zone).0 + written), self.zones.writable(zone).end());
        let is_in_window = match self.zones.window.filter(|_| window) {
            Some(area) => {
                let reach = pointer.0 + 2 * area.blocks;
                range.start >= pointer && range.end().0 <= reach
            }
            None => range.start == pointer,
        };
        if !is_in_window {
            return Err(ZoneError::InvalidWrite { zone, at: range.start, pointer });
        }
        if range.end() > end {
            return Err(ZoneError::Boundary { zone, range, end });
        }
        if !state.is_open() {
            self.make_way(zone)?;
            self.apply(zone, ZoneEvent::Write);
        }
        Ok(())
    }

    /// Checks a write of a range that starts in a sequential zone and moves the write pointer at once:
    /// for a device that holds back nothing.
    ///
    /// # Errors
    /// [`ZoneError`]; nothing has changed then.
    pub fn write(&mut self, zone: u32, range: BlockRange) -> Result<(), ZoneError> {
        self.begin_write(zone, range)?;
        let to = self.pointer_after(zone, range);
        self.wrote(zone, to - self.written(zone));
        Ok(())
    }

    /// Performs an action at once: as [`ZoneTable::perform`], and moves the write pointer as the flush
    /// of a random write area does.
    ///
    /// # Errors
    /// [`ZoneError`]; nothing has changed then.
    pub fn act(&mut self, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        self.perform(zone, action)?;
        if let ZoneAction::FlushWindow { up_to } = action {
            let to = up_to.0 - self.zones.start(zone).0;
            self.wrote(zone, to - self.written(zone));
        }
        Ok(())
    }

    /// Notes that the write pointer has moved on by so many blocks; returns whether the zone is
    /// full now.
    pub fn wrote(&mut self, zone: u32, blocks: u64) -> bool {
        let entry = &mut self.entries[zone as usize];
        entry.written += blocks;
        let is_full = entry.written >= self.zones.capacity;
        if is_full {
            self.apply(zone, ZoneEvent::Filled);
        }
        is_full
    }

    /// The write pointer of a zone, in blocks from its start, after a write of this range: its end,
    /// or as far as a random write area must move for it.
    pub fn pointer_after(&self, zone: u32, range: BlockRange) -> u64 {
        let end = range.end().0 - self.zones.start(zone).0;
        let written = self.written(zone);
        match self.zones.window.filter(|_| self.has_window(zone)) {
            Some(window) => {
                let beyond = end.saturating_sub(written + window.blocks);
                let to = written + beyond.next_multiple_of(window.granularity);
                to.min(self.zones.capacity)
            }
            None => end,
        }
    }

    /// The start of an append of so many blocks.
    ///
    /// # Errors
    /// [`ZoneError`]: the address is no zone's start, the append is too long, or the zone cannot
    /// take it.
    pub fn append_to(&self, start: Lba, blocks: u64) -> Result<(u32, Lba), ZoneError> {
        let zone = self.zone_at(start)?;
        let limit = self.zones.max_append;
        if blocks > limit {
            return Err(ZoneError::AppendTooLong { blocks, limit });
        }
        if self.has_window(zone) {
            return Err(ZoneError::AppendToWindow(zone));
        }
        let at = Lba(start.0 + self.written(zone));
        let (range, end) = (BlockRange::new(at, blocks), self.zones.writable(zone).end());
        match self.state(zone) {
            ZoneState::Full => Err(ZoneError::Full(zone)),
            ZoneState::ReadOnly => Err(ZoneError::ReadOnly(zone)),
            ZoneState::Offline => Err(ZoneError::Offline(zone)),
            _ if range.end() > end => Err(ZoneError::Boundary { zone, range, end }),
            _ => Ok((zone, at)),
        }
    }

    /// The sequential zone that starts at an address.
    ///
    /// # Errors
    /// [`ZoneError::NotAZone`].
    pub fn zone_at(&self, start: Lba) -> Result<u32, ZoneError> {
        let zone = self.zones.index(start).filter(|&zone| self.zones.start(zone) == start);
        zone.ok_or(ZoneError::NotAZone(start))
    }

    /// The zones that an action on all of them concerns, as NVMe has it: resets all that hold
    /// something, finishes and closes open (and closed) ones, opens closed ones.
    fn all_for(&self, action: ZoneAction) -> Vec<u32> {
        let concerns = |state: ZoneState| match action {
            ZoneAction::Reset => state.is_active() || state == ZoneState::Full,
            ZoneAction::Finish => state.is_active(),
            ZoneAction::Close => state.is_open(),
            ZoneAction::Open { .. } => state == ZoneState::Closed,
            ZoneAction::FlushWindow { .. } => false,
        };
        (0..self.zones.count).filter(|&zone| concerns(self.state(zone))).collect()
    }

    /// The zones that a command on one zone, or on all, concerns.
    ///
    /// # Errors
    /// [`ZoneError::NotAZone`].
    pub fn concerned(&self, start: Option<Lba>, action: ZoneAction) -> Result<Vec<u32>, ZoneError> {
        start.map_or_else(|| Ok(self.all_for(action)), |start| Ok(vec![self.zone_at(start)?]))
    }

    /// Changes the state of a zone as the host asks.
    ///
    /// # Errors
    /// [`ZoneError`]; nothing has changed then.
    pub fn perform(&mut self, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        let Entry { state, written, window } = self.entries[zone as usize];
        let refused = ZoneError::InvalidTransition { zone, state, action };
        match action {
            ZoneAction::Open { window: wanted } => self.open_explicitly(zone, wanted, refused),
            ZoneAction::Close => self.try_apply(zone, ZoneEvent::Close, refused),
            ZoneAction::Finish => {
                if state == ZoneState::Empty {
                    self.check_active()?;
                }
                self.try_apply(zone, ZoneEvent::Finish, refused)
            }
            ZoneAction::Reset => {
                self.try_apply(zone, ZoneEvent::Reset, refused)?;
                self.entries[zone as usize].written = 0;
                Ok(())
            }
            ZoneAction::FlushWindow { up_to } => {
                let area = self.zones.window.filter(|_| window).ok_or(refused)?;
                let (start, end) = (self.zones.start(zone).0, self.zones.writable(zone).end().0);
                let is_step =
                    (up_to.0 - start.min(up_to.0)) % area.granularity == 0 || up_to.0 == end;
                let reach = end.min(start + written + area.blocks);
                if !is_step || up_to.0 < start + written || up_to.0 > reach {
                    return Err(refused);
                }
                Ok(())
            }
        }
    }

    fn open_explicitly(
        &mut self,
        zone: u32,
        window: bool,
        refused: ZoneError,
    ) -> Result<(), ZoneError> {
        let state = self.state(zone);
        if let Transition::Refused = transition(state, ZoneEvent::Open, false) {
            return Err(refused);
        }
        if window && !self.has_window(zone) {
            // a zone gets its window before anything is written
            let area = self.zones.window.filter(|_| state == ZoneState::Empty).ok_or(refused)?;
            if self.windows >= area.most {
                return Err(ZoneError::TooManyWindows(area.most));
            }
        }
        if !state.is_open() {
            self.make_way(zone)?;
        }
        self.try_apply(zone, ZoneEvent::Open, refused)?;
        if window && !self.has_window(zone) {
            self.entries[zone as usize].window = true;
            self.windows += 1;
        }
        Ok(())
    }

    /// The device can no longer write a zone, or no longer read it.
    pub fn fail(&mut self, zone: u32, event: ZoneEvent) {
        debug_assert!(matches!(event, ZoneEvent::WornOut | ZoneEvent::Lost));
        self.apply(zone, event);
    }

    /// Zones in a state, in order.
    pub fn in_state(&self, wanted: ZoneState) -> impl Iterator<Item = u32> {
        (0..self.zones.count).filter(move |&zone| self.state(zone) == wanted)
    }

    /// Checks the limits for one more open zone; closes the one that was implicitly opened first if
    /// that helps.
    fn make_way(&mut self, zone: u32) -> Result<(), ZoneError> {
        if !self.state(zone).is_active() {
            self.check_active()?;
        }
        let most = self.zones.max_open;
        if most == 0 || self.open < most {
            return Ok(());
        }
        let &oldest = self.implicit.front().ok_or(ZoneError::TooManyOpen(most))?;
        self.apply(oldest, ZoneEvent::GiveWay);
        Ok(())
    }

    fn check_active(&self) -> Result<(), ZoneError> {
        let most = self.zones.max_active;
        if most > 0 && self.active >= most { Err(ZoneError::TooManyActive(most)) } else { Ok(()) }
    }

    fn try_apply(
        &mut self,
        zone: u32,
        event: ZoneEvent,
        refused: ZoneError,
    ) -> Result<(), ZoneError> {
        if self.apply(zone, event) { Ok(()) } else { Err(refused) }
    }

    fn apply(&mut self, zone: u32, event: ZoneEvent) -> bool {
        let entry = self.entries[zone as usize];
        match transition(entry.state, event, entry.written > 0 || entry.window) {
            Transition::To(state) => {
                self.enter(zone, state);
                if matches!(event, ZoneEvent::GiveWay | ZoneEvent::WornOut | ZoneEvent::Lost) {
                    self.changes += 1;
                    self.changed.insert(zone, self.changes);
                }
                true
            }
            Transition::Refused => false,
        }
    }

    fn enter(&mut self, zone: u32, state: ZoneState) {
        let entry = &mut self.entries[zone as usize];
        self.open = self.open + u32::from(state.is_open()) - u32::from(entry.state.is_open());
        self.active =
            self.active + u32::from(state.is_active()) - u32::from(entry.state.is_active());
        let is_empty = |state| u32::from(state == ZoneState::Empty);
        self.empty = self.empty + is_empty(state) - is_empty(entry.state);
        let before = std::mem::replace(&mut entry.state, state);
        if !state.is_active() && entry.window {
            entry.window = false;
            self.windows -= 1;
        }
        match [before, state].map(|state| state == ZoneState::ImplicitlyOpen) {
            [false, true] => self.implicit.push_back(zone),
            [true, false] => self.implicit.retain(|&other| other != zone),
            _ => {}
        }
    }
}

impl From<ZoneError> for DeviceError {
    fn from(error: ZoneError) -> Self {
        Self::Zone(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ZoneTable {
        let limits = Zones { max_open: 2, max_active: 3, max_append: 4, ..zones() };
        ZoneTable::new(limits)
    }

    fn zones() -> Zones {
        Zones::covering(Lba(20), 80, 16, 12)
    }

    fn write(table: &mut ZoneTable, zone: u32, offset: u64, blocks: u64) -> Result<(), ZoneError> {
        let start = Lba(table.zones().start(zone).0 + offset);
        table.begin_write(zone, BlockRange::new(start, blocks))?;
        table.wrote(zone, blocks);
        Ok(())
    }

    #[test]
    fn a_zone_is_written_at_its_pointer_up_to_its_capacity() {
        let mut table = table();
        assert_eq!(table.zones().count, 5);
        write(&mut table, 1, 0, 8).unwrap();
        let error = write(&mut table, 1, 0, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "block 36 cannot be written now: zone 1 is written from its start on, and its next block is 44: \
             write there, or reset the zone first"
        );
        assert!(matches!(write(&mut table, 1, 8, 5), Err(ZoneError::Boundary { .. })));
        write(&mut table, 1, 8, 4).unwrap();
        assert_eq!(table.state(1), ZoneState::Full);
        assert_eq!(write(&mut table, 1, 12, 1), Err(ZoneError::Full(1)));
        table.perform(1, ZoneAction::Reset).unwrap();
        assert_eq!((table.state(1), table.written(1)), (ZoneState::Empty, 0));
    }

    #[test]
    fn a_third_zone_closes_the_first_that_was_opened_by_a_write() {
        let mut table = table();
        for zone in 0..3 {
            write(&mut table, zone, 0, 1).unwrap();
        }
        assert_eq!(table.state(0), ZoneState::Closed);
        assert_eq!((table.open(), table.active()), (2, 3));
        assert_eq!(write(&mut table, 3, 0, 1), Err(ZoneError::TooManyActive(3)));
        assert_eq!(table.perform(3, ZoneAction::Finish), Err(ZoneError::TooManyActive(3)));
        table.perform(1, ZoneAction::Open { window: false }).unwrap();
        table.perform(2, ZoneAction::Open { window: false }).unwrap();
        assert_eq!(write(&mut table, 0, 1, 1), Err(ZoneError::TooManyOpen(2)));
        table.perform(1, ZoneAction::Finish).unwrap();
        write(&mut table, 0, 1, 1).unwrap();
        assert_eq!((table.open(), table.active()), (2, 2));
    }

    /// A zone that was closed and opened again is as young as its last opening.
    #[test]
    fn the_zone_that_gives_way_has_been_open_longest() {
        let mut table = table();
        write(&mut table, 0, 0, 1).unwrap();
        write(&mut table, 1, 0, 1).unwrap();
        table.perform(0, ZoneAction::Close).unwrap();
        write(&mut table, 0, 1, 1).unwrap();
        write(&mut table, 2, 0, 1).unwrap();
        let states = [0, 1, 2].map(|zone| table.state(zone));
        assert_eq!(
            states,
            [ZoneState::ImplicitlyOpen, ZoneState::Closed, ZoneState::ImplicitlyOpen]
        );
    }

    /// Changes that the host asks for are not among them; a zone that changes twice is told once.
    #[test]
    fn zones_that_the_device_changed_are_told_once() {
        let mut table = table();
        let told = |table: &ZoneTable, since: &mut u64| {
            let Answer::ChangedZones { zones, until } = table.changed(*since) else { panic!() };
            *since = until;
            let of = |zone: Zone| (table.zones().index(zone.start).unwrap(), zone.state.unwrap());
            zones.into_iter().map(of).collect::<Vec<_>>()
        };
        let mut seen = 0;
        for zone in 0..3 {
            write(&mut table, zone, 0, 1).unwrap();
        }
        table.perform(1, ZoneAction::Close).unwrap();
        assert_eq!(told(&table, &mut seen), [(0, ZoneState::Closed)]);
        assert_eq!(told(&table, &mut seen), []);
        table.perform(1, ZoneAction::Open { window: false }).unwrap();
        write(&mut table, 0, 1, 1).unwrap();
        table.fail(2, ZoneEvent::WornOut);
        table.fail(2, ZoneEvent::Lost);
        assert_eq!(told(&table, &mut seen), [(2, ZoneState::Offline)]);
        assert_eq!(told(&table, &mut 0), [(0, ZoneState::ImplicitlyOpen), (2, ZoneState::Offline)]);
    }

    #[test]
    fn a_report_has_conventional_zones_in_front() {
        let mut table = table();
        write(&mut table, 0, 0, 3).unwrap();
        table.perform(4, ZoneAction::Finish).unwrap();
        let report = table.report(Lba(0), 100);
        let lines: Vec<_> = report
            .iter()
            .map(|zone| (zone.start.0, zone.capacity, zone.state, zone.write_pointer.0))
            .collect();
        let empty = Some(ZoneState::Empty);
        assert_eq!(
            lines,
            [
                (0, 4, None, 0),
                (4, 16, None, 4),
                (20, 12, Some(ZoneState::ImplicitlyOpen), 23),
                (36, 12, empty, 36),
                (52, 12, empty, 52),
                (68, 12, empty, 68),
                (84, 12, Some(ZoneState::Full), 96),
            ]
        );
        assert_eq!(table.report(Lba(50), 2).first().unwrap().start, Lba(36));
    }

    #[test]
    fn open_zones_are_closed_when_the_power_comes_back() {
        let found = [
            (ZoneState::ImplicitlyOpen, 3),
            (ZoneState::ExplicitlyOpen, 0),
            (ZoneState::Full, 12),
            (ZoneState::ReadOnly, 5),
            (ZoneState::Empty, 0),
        ];
        let table = ZoneTable::found(table().zones, found);
        let states: Vec<_> = (0..5).map(|zone| table.state(zone)).collect();
        use ZoneState as S;
        assert_eq!(states, [S::Closed, S::Empty, S::Full, S::ReadOnly, S::Empty]);
        assert_eq!((table.open(), table.active()), (0, 1));
    }
}
