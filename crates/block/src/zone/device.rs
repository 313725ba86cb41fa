//! A device whose zones are kept by rule alone: for image files and for tests.

use dovetail_time::SimTime;

use super::{ZoneAction, ZoneState, ZoneTable, Zones};
use crate::addr::{BlockRange, Lba};
use crate::command::{Command, Data, Hints};
use crate::content::Content;
use crate::device::{Answer, BlockDevice, Completion, DeviceError, DeviceInfo};
use crate::query::Query;

/// A device with zones around one without: it refuses what a zoned drive refuses.
///
/// Blocks of a zone beyond its write pointer read as empty, whatever lies below: a dump of a real
/// drive has a filler there.
#[derive(Clone, Debug)]
pub struct ZonedDevice<D> {
    below: D,
    table: ZoneTable,
}

impl<D: BlockDevice> ZonedDevice<D> {
    /// All zones empty, whatever lies below.
    pub fn new(below: D, zones: Zones) -> Self {
        Self { below, table: ZoneTable::new(zones) }
    }

    /// Zones as they were found, one state and count of written blocks for each.
    pub fn found(
        below: D,
        zones: Zones,
        found: impl IntoIterator<Item = (ZoneState, u64)>,
    ) -> Self {
        Self { below, table: ZoneTable::found(zones, found) }
    }

    /// The zones as they are now.
    pub fn table(&self) -> &ZoneTable {
        &self.table
    }

    /// The device below.
    pub fn below(&self) -> &D {
        &self.below
    }

    /// The device below; whoever changes its content changes no write pointer.
    pub fn below_mut(&mut self) -> &mut D {
        &mut self.below
    }

    /// Gives the device below back.
    pub fn into_below(self) -> D {
        self.below
    }

    /// The same after a power cut that kept everything: open zones are closed.
    #[must_use]
    pub fn after_power_cut(self) -> Self {
        let zones = *self.table.zones();
        let states =
            (0..zones.count).map(|zone| (self.table.state(zone), self.table.written(zone)));
        Self { table: ZoneTable::found(zones, states.collect::<Vec<_>>()), below: self.below }
    }

    fn write(
        &mut self,
        at: SimTime,
        range: BlockRange,
        data: Data<'_>,
        hints: Hints,
        fua: bool,
    ) -> Result<Completion, DeviceError> {
        self.info().check(range, data.blocks().unwrap_or(range.blocks))?;
        if let Some(zone) = self.table.zones().written_by(range)? {
            self.table.write(zone, range)?;
        }
        self.below.submit(at, Command::Write { range, data, hints, fua })
    }

    fn read(
        &mut self,
        at: SimTime,
        range: BlockRange,
        into: Option<&mut [Content]>,
    ) -> Result<Completion, DeviceError> {
        let Some(into) = into else {
            return self.below.submit(at, Command::Read { range, into: None });
        };
        let completion = self.below.submit(at, Command::Read { range, into: Some(&mut *into) })?;
        let zones = self.table.zones();
        for (lba, content) in range.iter().zip(into) {
            let Some(zone) = zones.index(lba) else { continue };
            let is_written = lba.0 - zones.start(zone).0 < self.table.written(zone);
            if !is_written && !self.table.has_window(zone) {
                *content = Content::Empty;
            }
        }
        Ok(completion)
    }

    fn perform(
        &mut self,
        at: SimTime,
        start: Option<Lba>,
        action: ZoneAction,
    ) -> Result<SimTime, DeviceError> {
        let mut done = at;
        for zone in self.table.concerned(start, action)? {
            // of a finished zone a report tells no write pointer: all of it is read then
            let kept = match action {
                ZoneAction::Reset => Some(0),
                ZoneAction::Finish => Some(self.table.written(zone)),
                _ => None,
            };
            self.table.act(zone, action)?;
            let Some(kept) = kept.filter(|_| self.below.info().capabilities.discard) else {
                continue;
            };
            let (start, rest) = (self.table.zones().start(zone), self.zone_blocks() - kept);
            if rest > 0 {
                let ranges = [BlockRange::new(Lba(start.0 + kept), rest).into()];
                done = self.below.submit(at, Command::Discard { ranges: &ranges })?.done.max(done);
            }
        }
        Ok(done)
    }

    fn zone_blocks(&self) -> u64 {
        self.table.zones().blocks
    }
}

impl<D: BlockDevice> BlockDevice for ZonedDevice<D> {
    fn info(&self) -> DeviceInfo {
        let mut info = self.below.info();
        info.capabilities.zones = Some(*self.table.zones());
        info
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Write { range, data, hints, fua } => self.write(at, range, data, hints, fua),
            Command::Append { zone, data, blocks, hints, fua } => {
                let (_, start) = self.table.append_to(zone, blocks)?;
                let range = BlockRange::new(start, blocks);
                let done = self.write(at, range, data, hints, fua)?.done;
                Ok(Completion::with(done, Answer::Addresses(vec![start])))
            }
            Command::Zone { start, action } => Ok(Completion::at(self.perform(at, start, action)?)),
            Command::Query(Query::Zones { from, most }) => {
                Ok(Completion::with(at, Answer::Zones(self.table.report(from, most))))
            }
            Command::Query(Query::ChangedZones { since }) => {
                Ok(Completion::with(at, self.table.changed(since)))
            }
            Command::Read { range, into } => {
                self.table.check_read(range)?;
                self.read(at, range, into)
            }
            // within a zone it would change nothing that can be seen
            Command::Discard { ranges } => {
                let conventional = self.table.zones().conventional_part(ranges);
                self.below.submit(at, Command::Discard { ranges: &conventional })
            }
            other => self.below.submit(at, other),
        }
    }
}

crate::performs_at_once!(impl[D: BlockDevice] ZonedDevice<D>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Pattern;
    use crate::memory::MemoryDevice;

    #[test]
    fn zones_are_appended_to_reported_and_reset() {
        let zones = Zones { max_append: 8, ..Zones::covering(Lba(16), 48, 16, 16) };
        let mut device = ZonedDevice::new(MemoryDevice::new(64), zones);
        let append = |device: &mut ZonedDevice<MemoryDevice>| {
            let data = Data::Patterns(Pattern::new(7));
            let (zone, hints) = (Lba(32), Hints::default());
            let command = Command::Append { zone, data, blocks: 8, hints, fua: false };
            device.submit(SimTime::ZERO, command).unwrap().answer.into_addresses()
        };
        assert_eq!(append(&mut device), [Lba(32)]);
        assert_eq!(append(&mut device), [Lba(40)]);
        assert_eq!(device.table().state(1), ZoneState::Full);
        let reset = Command::Zone { start: None, action: ZoneAction::Reset };
        device.submit(SimTime::ZERO, reset).unwrap();
        assert_eq!(device.table().state(1), ZoneState::Empty);
        assert!(device.below().used().next().is_none());
        // what lay there before the first write of the zone is not seen behind a report either
        let (range, data) = (BlockRange::new(Lba(16), 16), Data::Patterns(Pattern::new(7)));
        let old = Command::Write { range, data, hints: Hints::default(), fua: false };
        device.below_mut().submit(SimTime::ZERO, old).unwrap();
        let three = Command::Write {
            range: BlockRange::new(Lba(16), 3),
            data,
            hints: Hints::default(),
            fua: false,
        };
        device.submit(SimTime::ZERO, three).unwrap();
        let finish = Command::Zone { start: Some(Lba(16)), action: ZoneAction::Finish };
        device.submit(SimTime::ZERO, finish).unwrap();
        let used: Vec<Lba> = device.below().used().map(|(lba, _)| lba).collect();
        assert_eq!(used, [Lba(16), Lba(17), Lba(18)]);
        let open = Command::Zone { start: Some(Lba(0)), action: ZoneAction::Reset };
        let refused = device.submit(SimTime::ZERO, open);
        assert!(matches!(refused, Err(DeviceError::Zone(super::super::ZoneError::NotAZone(_)))));
    }
}
