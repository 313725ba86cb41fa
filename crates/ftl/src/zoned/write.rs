//! Writes, flushes and discards.

use std::cmp::Reverse;

use dovetail_block::{BlockRange, Command, Data, DeviceError, Hints, SectorRange};
use dovetail_time::SimTime;

use super::{Active, Held, ZonedDrive};

impl ZonedDrive {
    /// Takes blocks from the host; returns when they are acknowledged: in the buffer, or with `fua`
    /// or without a buffer on flash.
    pub(super) fn write(
        &mut self,
        at: SimTime,
        range: BlockRange,
        data: Data<'_>,
        hints: Hints,
        fua: bool,
    ) -> Result<SimTime, DeviceError> {
        self.check_range(range, data.blocks().unwrap_or(range.blocks))?;
        let zones = self.layout.zones;
        let Some(zone) = zones.written_by(range)? else {
            let received = self.link_in(at, at, range.blocks);
            let command = Command::Write { range, data, hints, fua };
            return Ok(self.page_mapped_submit(received, command)?.done);
        };
        self.table.begin_write(zone, range)?;
        let ready = self.after_reset(at, zone);
        self.prepare(ready, zone)?;
        let received = self.link_in(at, ready, range.blocks);
        let mut now = self.wait_for_room(received, range.blocks);
        self.hold(zone, range, data, hints);
        self.move_pointer(now, zone, range)?;
        self.counters.writes += 1;
        self.counters.written_blocks += range.blocks;
        if self.config.buffer_pages == 0 {
            now = now.max(self.programs_end_of(zone));
        }
        if fua || self.config.buffer_pages == 0 {
            now = self.make_durable(now, zone)?;
        }
        Ok(now)
    }

    /// Keeps what is written beyond what was programmed.
    fn hold(&mut self, zone: u32, range: BlockRange, data: Data<'_>, hints: Hints) {
        let Some(active) = self.active.get_mut(&zone) else { return };
        let start = self.layout.zones.start(zone).0 + active.programmed;
        let first = (range.start.0 - start) as usize;
        for i in 0..range.blocks as usize {
            let token = self.nand.intern(&data.block(i as u64));
            let held = Some(Held { token, hints, stashed: false });
            if first + i < active.held.len() {
                let before = std::mem::replace(&mut active.held[first + i], held);
                if let Some(before) = before {
                    self.nand.release(before.token);
                    self.counters.buffer_overwrites += 1;
                }
                continue;
            }
            active.held.resize(first + i, None);
            active.held.push_back(held);
        }
    }

    /// Moves the write pointer as a write of this range does, and programs what that completes.
    fn move_pointer(
        &mut self,
        at: SimTime,
        zone: u32,
        range: BlockRange,
    ) -> Result<(), DeviceError> {
        let to = self.table.pointer_after(zone, range);
        self.advance(at, zone, to)
    }

    /// Moves the write pointer of a zone to block `to`, and programs what lies before it.
    pub(super) fn advance(&mut self, at: SimTime, zone: u32, to: u64) -> Result<(), DeviceError> {
        let is_full = self.table.wrote(zone, to - self.table.written(zone));
        self.program_before(at, zone, to)?;
        if is_full {
            self.retire_active(zone);
        }
        Ok(())
    }

    /// Waits until the buffer has room for so many blocks more.
    fn wait_for_room(&mut self, at: SimTime, blocks: u64) -> SimTime {
        let subpages = u64::from(self.layout.subpages);
        let room = u64::from(self.config.buffer_pages) * subpages;
        if room == 0 {
            return at;
        }
        let held: u64 = self.active.values().map(|active| active.held.len() as u64).sum();
        let mut now = at;
        while let Some(&Reverse((end, freed))) = self.in_flight.peek() {
            let is_full = held + self.in_flight_blocks + blocks > room;
            if end > now && !is_full {
                break;
            }
            now = now.max(end);
            self.in_flight_blocks -= freed;
            self.in_flight.pop();
        }
        now
    }

    /// Makes all that was acknowledged survive a power cut; with capacitors it does already.
    pub(super) fn flush(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        self.counters.flushes += 1;
        if self.config.power_loss_protection {
            return Ok(at);
        }
        let needs =
            |(zone, active): &(&u32, &Active)| active.needs_stash(self.table.written(**zone));
        let zones: Vec<u32> = self.active.iter().filter(needs).map(|(&zone, _)| zone).collect();
        let mut done = at.max(self.programs_end);
        for zone in zones {
            done = done.max(self.stash(at, zone)?);
        }
        Ok(done.max(self.page_mapped_submit(at, Command::Flush)?.done))
    }

    /// Makes what a zone holds survive a power cut.
    pub(super) fn make_durable(&mut self, at: SimTime, zone: u32) -> Result<SimTime, DeviceError> {
        if self.config.power_loss_protection {
            return Ok(at);
        }
        let stashed = self.stash(at, zone)?;
        Ok(stashed.max(self.programs_end_of(zone)))
    }

    /// The end of a zone's programs; of one that is full now, of all.
    fn programs_end_of(&self, zone: u32) -> SimTime {
        self.active.get(&zone).map_or(self.programs_end, |active| active.programs_end)
    }

    /// Forgets blocks of conventional zones; in others a discard changes nothing, a reset does.
    pub(super) fn discard(
        &mut self,
        at: SimTime,
        ranges: &[SectorRange],
    ) -> Result<SimTime, DeviceError> {
        let conventional = self.layout.zones.conventional_part(ranges);
        if conventional.is_empty() {
            return Ok(at);
        }
        let command = Command::Discard { ranges: &conventional };
        Ok(self.page_mapped_submit(at, command)?.done)
    }
}
