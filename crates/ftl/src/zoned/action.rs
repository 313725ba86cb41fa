//! Commands on zones.

use dovetail_block::{DeviceError, Lba, ZoneAction, ZoneState};
use dovetail_time::SimTime;

use super::ZonedDrive;
use super::config::ZoneTimes;
use super::records::{Record, Recorded};
use crate::stats::Cause;

impl ZonedDrive {
    /// Changes the state of one zone, or of all that it concerns; returns when that is durable.
    pub(super) fn act(
        &mut self,
        at: SimTime,
        start: Option<Lba>,
        action: ZoneAction,
    ) -> Result<SimTime, DeviceError> {
        let mut done = at;
        for zone in self.table.concerned(start, action)? {
            done = done.max(self.act_on(at, zone, action)?);
        }
        Ok(done)
    }

    fn act_on(
        &mut self,
        at: SimTime,
        zone: u32,
        action: ZoneAction,
    ) -> Result<SimTime, DeviceError> {
        let (before, written) = (self.table.state(zone), self.table.written(zone));
        self.table.perform(zone, action)?;
        match action {
            ZoneAction::Reset => self.timed_reset(at, zone, before, written),
            ZoneAction::Finish if before != ZoneState::Full => self.finish(at, zone),
            ZoneAction::FlushWindow { up_to } => {
                self.prepare(at, zone)?;
                self.advance(at, zone, up_to.0 - self.layout.zones.start(zone).0)?;
                self.make_durable(at, zone)
            }
            _ => Ok(at),
        }
    }

    /// Empties a zone in the time that the drive takes for one so full.
    fn timed_reset(
        &mut self,
        at: SimTime,
        zone: u32,
        before: ZoneState,
        written: u64,
    ) -> Result<SimTime, DeviceError> {
        let done = self.reset(at, zone)?;
        if before == ZoneState::Empty || self.layout.times == ZoneTimes::default() {
            return Ok(done);
        }
        let takes = self.layout.times.reset_of(written, self.layout.zones.capacity);
        let done = done.max(at + takes);
        self.resets.insert(zone, done);
        Ok(done)
    }

    /// The time from which on a zone takes writes: not while its reset is under way.
    pub(super) fn after_reset(&mut self, at: SimTime, zone: u32) -> SimTime {
        let Some(&done) = self.resets.get(&zone) else { return at };
        if done <= at {
            self.resets.remove(&zone);
        }
        done.max(at)
    }

    /// Empties a zone: its erase blocks are no longer its own as soon as that is written down.
    fn reset(&mut self, at: SimTime, zone: u32) -> Result<SimTime, DeviceError> {
        let (mut from, mut slot) = (at, None);
        if let Some(active) = self.active.remove(&zone) {
            active.held.iter().flatten().for_each(|held| self.nand.release(held.token));
            slot = Some(active.slot);
            from = from.max(active.not_before);
        }
        self.to_record.retain(|&(_, full)| full != zone);
        let record = &mut self.records[zone as usize];
        let generation = record.generation + 1;
        let freed = std::mem::replace(record, Record { generation, ..Record::default() });
        if freed.blocks.is_empty() && freed.state == Recorded::Empty {
            self.records[zone as usize].generation -= 1;
            return Ok(at);
        }
        let done = self.write_record(from, zone)?;
        if let Some(slot) = slot {
            self.slots[slot as usize] = Some(done);
        }
        self.to_erase.extend(freed.blocks.into_iter().map(|block| (done, block)));
        Ok(done)
    }

    /// Makes a zone full: what it holds is programmed, and nothing behind it, or the rest of the
    /// zone. An empty zone has nothing to program.
    fn finish(&mut self, at: SimTime, zone: u32) -> Result<SimTime, DeviceError> {
        let written = self.table.written(zone);
        if self.active.contains_key(&zone) {
            self.prepare(at, zone)?;
            // what is programmed beyond the write pointer from now on is no content
            self.records[zone as usize].ends_at = Some(written);
            let begin = self.write_record(at, zone)?;
            let done = self.program_to(begin, zone, written)?;
            self.retire_active(zone);
            return Ok(done);
        }
        let record = &mut self.records[zone as usize];
        (record.state, record.written, record.ends_at) = (Recorded::Full, written, None);
        self.write_record(at, zone)
    }

    /// Programs what a zone holds up to block `written`, and the rest of it if that is this drive's
    /// way; returns when that is through.
    pub(super) fn program_to(
        &mut self,
        at: SimTime,
        zone: u32,
        written: u64,
    ) -> Result<SimTime, DeviceError> {
        let end = if self.layout.finish_fills { self.layout.zones.capacity } else { written };
        let mut done = at;
        while let Some(active) = self.active.get(&zone)
            && active.programmed < end
        {
            let cause = if active.held.is_empty() { Cause::Journal } else { Cause::Host };
            let begun = at.max(active.not_before);
            done = done.max(self.program_unit(begun, zone, cause)?);
        }
        Ok(done.max(self.active.get(&zone).map_or(at, |active| active.programs_end)))
    }
}
