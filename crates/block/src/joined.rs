//! Several devices put end to end, as one.

use dovetail_time::SimTime;

use crate::addr::{BlockRange, Lba, SectorRange};
use crate::command::{Command, Data, Hints};
use crate::device::{Answer, BlockDevice, Capabilities, Completion, DeviceError, DeviceInfo};
use crate::query::Query;
use crate::scheduler::{EventId, Scheduler, SchedulingHint};
use crate::zone::{Zone, ZoneAction, ZoneError, Zones};

/// A member, and the addresses that are its own.
#[derive(Clone, Debug)]
struct Member<D> {
    device: D,
    range: BlockRange,
}

/// Devices whose addresses follow each other. A command that lies on several is split; one on a
/// zone goes to the member that has it. The last member alone may have zones: theirs, and all
/// blocks before, are the zones of the whole. What moves blocks without writing them is left out.
#[derive(Clone, Debug)]
pub struct JoinedDevice<D> {
    members: Vec<Member<D>>,
}

/// Devices that cannot be put end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// No device at all.
    #[error("there is no device to put together")]
    Nothing,
    /// A device that is shorter than what is wanted of it.
    #[error("device {member} has {found} blocks of 4 KiB, and {wanted} are needed")]
    TooShort {
        /// Its number, from 0.
        member: usize,
        /// Blocks that it has.
        found: u64,
        /// Blocks that are wanted of it.
        wanted: u64,
    },
    /// A device with zones before another one.
    #[error("device {member} has zones and is not the last: put the zoned device at the end")]
    ZonesBefore {
        /// Its number, from 0.
        member: usize,
    },
}

impl<D: BlockDevice> JoinedDevice<D> {
    /// The first so many blocks of each device, in order.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn new(devices: impl IntoIterator<Item = (D, u64)>) -> Result<Self, JoinError> {
        let mut members = Vec::new();
        let mut start = Lba(0);
        for (member, (device, wanted)) in devices.into_iter().enumerate() {
            let found = device.info().blocks;
            if found < wanted {
                return Err(JoinError::TooShort { member, found, wanted });
            }
            let range = BlockRange::new(start, wanted);
            start = range.end();
            members.push(Member { device, range });
        }
        let Some(last) = members.len().checked_sub(1) else { return Err(JoinError::Nothing) };
        let zoned = |member: &Member<D>| member.device.info().capabilities.zones.is_some();
        match members.iter().take(last).position(zoned) {
            Some(member) => Err(JoinError::ZonesBefore { member }),
            None => Ok(Self { members }),
        }
    }

    /// The devices, in order.
    pub fn members(&self) -> impl Iterator<Item = &D> {
        self.members.iter().map(|member| &member.device)
    }

    /// The devices, in order, to be changed.
    pub fn members_mut(&mut self) -> impl Iterator<Item = &mut D> {
        self.members.iter_mut().map(|member| &mut member.device)
    }

    /// Gives the devices back, in order.
    pub fn into_members(self) -> Vec<D> {
        self.members.into_iter().map(|member| member.device).collect()
    }

    /// The blocks of the last member, which may have zones.
    fn last(&self) -> BlockRange {
        self.members[self.members.len() - 1].range
    }

    fn zones(&self) -> Option<Zones> {
        let zones = self.members.last()?.device.info().capabilities.zones?;
        let end = self.last().blocks;
        let count = zones.count.min(((end - zones.first.0.min(end)) / zones.blocks) as u32);
        Some(Zones { first: Lba(self.last().start.0 + zones.first.0), count, ..zones })
    }

    fn read(
        &mut self,
        at: SimTime,
        range: BlockRange,
        mut into: Option<&mut [crate::Content]>,
    ) -> Result<SimTime, DeviceError> {
        self.info().check(range, into.as_ref().map_or(range.blocks, |into| into.len() as u64))?;
        let mut done = at;
        for member in &mut self.members {
            let Some(part) = shared(range, member.range) else { continue };
            let local = within(part, member.range);
            let into = into.as_mut().map(|into| {
                let from = (part.start.0 - range.start.0) as usize;
                &mut into[from..from + part.blocks as usize]
            });
            let read = Command::Read { range: local, into };
            done = done.max(member.device.submit(at, read)?.done);
        }
        Ok(done)
    }

    fn write(
        &mut self,
        at: SimTime,
        range: BlockRange,
        data: Data<'_>,
        (hints, fua): (Hints, bool),
    ) -> Result<SimTime, DeviceError> {
        self.info().check(range, data.blocks().unwrap_or(range.blocks))?;
        let mut done = at;
        for member in &mut self.members {
            let Some(part) = shared(range, member.range) else { continue };
            let from = part.start.0 - range.start.0;
            let data = data.part(from, part.blocks);
            let range = within(part, member.range);
            let write = Command::Write { range, data, hints, fua };
            done = done.max(member.device.submit(at, write)?.done);
        }
        Ok(done)
    }

    fn discard(&mut self, at: SimTime, ranges: &[SectorRange]) -> Result<SimTime, DeviceError> {
        let mut done = at;
        for member in &mut self.members {
            if !member.device.info().capabilities.discard {
                continue;
            }
            let part = |range: &SectorRange| shared(range.blocks_inside(), member.range);
            let parts: Vec<SectorRange> = ranges
                .iter()
                .filter_map(part)
                .map(|part| within(part, member.range).into())
                .collect();
            if !parts.is_empty() {
                let discard = Command::Discard { ranges: &parts };
                done = done.max(member.device.submit(at, discard)?.done);
            }
        }
        Ok(done)
    }

    fn flush(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        let mut done = at;
        for member in &mut self.members {
            done = done.max(member.device.submit(at, Command::Flush)?.done);
        }
        Ok(done)
    }

    /// Performs a command of the member with zones, by its own addresses.
    fn on_zones<'c>(
        &mut self,
        at: SimTime,
        start: Lba,
        command: impl FnOnce(Lba) -> Command<'c>,
    ) -> Result<Completion, DeviceError> {
        let last = self.members.len() - 1;
        let Member { device, range } = &mut self.members[last];
        let local = start.0.checked_sub(range.start.0).map(Lba);
        let completion = device.submit(at, command(local.ok_or(ZoneError::NotAZone(start))?))?;
        let answer = match completion.answer {
            Answer::Addresses(mut addresses) => {
                addresses.iter_mut().for_each(|lba| lba.0 += range.start.0);
                Answer::Addresses(addresses)
            }
            other => other,
        };
        Ok(Completion { done: completion.done, answer })
    }

    /// All blocks before the member with zones are conventional, in zones of the same size; what is
    /// left over comes first.
    fn report(&mut self, from: Lba, most: usize) -> Result<Vec<Zone>, DeviceError> {
        let zones = self.zones().ok_or(Query::Zones { from, most }.unsupported())?;
        let last = self.members.len() - 1;
        let Member { device, range } = &mut self.members[last];
        let before = range.start.0;
        let mut report = Vec::new();
        let mut start = 0;
        while start < before {
            let end = if start == 0 && before % zones.blocks > 0 {
                before % zones.blocks
            } else {
                start + zones.blocks
            };
            let (start_lba, capacity) = (Lba(start), end - start);
            let write_pointer = start_lba;
            report.push(Zone { start: start_lba, capacity, state: None, write_pointer });
            start = end;
        }
        report.extend(crate::query::zones(device)?.into_iter().map(|zone| Zone {
            start: Lba(zone.start.0 + before),
            write_pointer: Lba(zone.write_pointer.0 + before),
            ..zone
        }));
        let blocks = |zone: &Zone| zone.state.map_or(zone.capacity, |_| zones.blocks);
        let ends_after = |zone: &Zone| zone.start.0 + blocks(zone) > from.0;
        Ok(report.into_iter().filter(ends_after).take(most).collect())
    }
}

/// The blocks that two ranges share, if there are any.
fn shared(one: BlockRange, other: BlockRange) -> Option<BlockRange> {
    let (start, end) = (one.start.max(other.start), one.end().min(other.end()));
    (start < end).then(|| BlockRange::new(start, end.0 - start.0))
}

/// A part of a member's blocks by the member's own addresses.
fn within(part: BlockRange, member: BlockRange) -> BlockRange {
    BlockRange::new(Lba(part.start.0 - member.start.0), part.blocks)
}

impl<D: BlockDevice> BlockDevice for JoinedDevice<D> {
    fn info(&self) -> DeviceInfo {
        let infos = || self.members.iter().map(|member| member.device.info());
        let capabilities = Capabilities {
            discard: infos().all(|info| info.capabilities.discard),
            streams: infos().map(|info| info.capabilities.streams).min().unwrap_or(1),
            zones: self.zones(),
            ..Capabilities::default()
        };
        DeviceInfo { blocks: self.last().end().0, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        Ok(Completion::at(match command {
            Command::Read { range, into } => self.read(at, range, into)?,
            Command::Write { range, data, hints, fua } => {
                self.write(at, range, data, (hints, fua))?
            }
            Command::Discard { ranges } => self.discard(at, ranges)?,
            Command::Flush => self.flush(at)?,
            Command::Append { zone, blocks, data, hints, fua } => {
                let append = |zone| Command::Append { zone, blocks, data, hints, fua };
                return self.on_zones(at, zone, append);
            }
            Command::Zone { start: Some(start), action } => {
                let action = self.local(action);
                return self
                    .on_zones(at, start, |start| Command::Zone { start: Some(start), action });
            }
            Command::Zone { start: None, action } => {
                let start = self.last().start;
                return self.on_zones(at, start, |_| Command::Zone { start: None, action });
            }
            Command::Query(Query::Zones { from, most }) => {
                return Ok(Completion::with(at, Answer::Zones(self.report(from, most)?)));
            }
            refused => return Err(refused.unsupported()),
        }))
    }
}

impl<D: BlockDevice> JoinedDevice<D> {
    /// An action by the addresses of the member with zones.
    fn local(&self, action: ZoneAction) -> ZoneAction {
        match action {
            ZoneAction::FlushWindow { up_to } => {
                ZoneAction::FlushWindow { up_to: Lba(up_to.0.saturating_sub(self.last().start.0)) }
            }
            other => other,
        }
    }
}

impl<D: Scheduler> Scheduler for JoinedDevice<D> {
    fn hint(&mut self, hint: SchedulingHint) {
        self.members.iter_mut().for_each(|member| member.device.hint(hint));
    }

    fn is_signalled(&self, event: EventId) -> bool {
        self.members.iter().all(|member| member.device.is_signalled(event))
    }

    fn pages_on_their_way(&self) -> usize {
        self.members.iter().map(|member| member.device.pages_on_their_way()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, MemoryDevice, Pattern, ZoneState, ZonedDevice};

    type Part = Box<dyn Scheduler>;

    fn joined() -> JoinedDevice<Part> {
        let zones = Zones { max_append: 8, ..Zones::covering(Lba(8), 32, 8, 6) };
        let zoned = ZonedDevice::new(MemoryDevice::new(40), zones);
        let parts: [(Part, u64); 2] =
            [(Box::new(MemoryDevice::new(20)), 19), (Box::new(zoned), 40)];
        JoinedDevice::new(parts).unwrap()
    }

    fn submit(
        device: &mut JoinedDevice<Part>,
        command: Command<'_>,
    ) -> Result<Answer, DeviceError> {
        device.submit(SimTime::ZERO, command).map(|completion| completion.answer)
    }

    #[test]
    fn a_command_across_the_border_is_split() {
        let mut device = joined();
        assert_eq!(device.info().blocks, 59);
        let range = BlockRange::new(Lba(17), 4);
        let (data, hints) = (Data::Patterns(Pattern::new(5)), Hints::default());
        submit(&mut device, Command::Write { range, data, hints, fua: false }).unwrap();
        let mut content = vec![Content::Empty; 4];
        submit(&mut device, Command::Read { range, into: Some(&mut content) }).unwrap();
        let expected = (0..4).map(|n| Content::Pattern(Pattern::new(5).nth(n)));
        assert_eq!(content, expected.collect::<Vec<_>>());
        submit(&mut device, Command::Discard { ranges: &[range.into()] }).unwrap();
        submit(&mut device, Command::Read { range, into: Some(&mut content) }).unwrap();
        assert_eq!(content, vec![Content::Empty; 4]);
        let beyond = BlockRange::new(Lba(57), 4);
        let error = submit(&mut device, Command::Read { range: beyond, into: None }).unwrap_err();
        assert!(matches!(error, DeviceError::OutOfRange { .. }));
    }

    #[test]
    fn zones_of_the_last_are_those_of_the_whole() {
        let mut device = joined();
        let zones = device.info().capabilities.zones.unwrap();
        assert_eq!((zones.first, zones.count), (Lba(27), 4));
        let (data, hints) = (Data::Patterns(Pattern::new(5)), Hints::default());
        let append = Command::Append { zone: Lba(35), blocks: 2, data, hints, fua: false };
        assert_eq!(submit(&mut device, append).unwrap().into_addresses(), [Lba(35)]);
        let report = crate::query::zones(&mut device).unwrap();
        let starts: Vec<_> = report.iter().map(|zone| (zone.start.0, zone.capacity)).collect();
        let conventional = [(0, 3), (3, 8), (11, 8), (19, 8)];
        assert_eq!(starts, [&conventional[..], &[(27, 6), (35, 6), (43, 6), (51, 6)]].concat());
        assert_eq!(report[5].write_pointer, Lba(37));
        let query = Command::Query(Query::Zones { from: Lba(4), most: 1 });
        let Answer::Zones(one) = submit(&mut device, query).unwrap() else { panic!("no report") };
        assert_eq!(one[0].start, Lba(3), "the zone that the block lies in");
        let reset = Command::Zone { start: Some(Lba(35)), action: ZoneAction::Reset };
        submit(&mut device, reset).unwrap();
        assert_eq!(crate::query::zones(&mut device).unwrap()[5].state, Some(ZoneState::Empty));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let zoned = || ZonedDevice::new(MemoryDevice::new(40), Zones::covering(Lba(8), 32, 8, 8));
        let error = JoinedDevice::new([(zoned(), 40), (zoned(), 40)]).unwrap_err();
        assert_eq!(error, JoinError::ZonesBefore { member: 0 });
        let error = JoinedDevice::new([(MemoryDevice::new(4), 5)]).unwrap_err();
        assert_eq!(error, JoinError::TooShort { member: 0, found: 4, wanted: 5 });
        assert!(JoinedDevice::<MemoryDevice>::new([]).is_err());
    }
}
