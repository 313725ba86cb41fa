//! The flash of zones: erase blocks are given and taken, pages programmed in order.

use std::cmp::Reverse;

use dovetail_block::{DeviceError, Inode, StreamId, ZoneAction, ZoneError, ZoneEvent, ZoneState};
use dovetail_nand::{BlockId, Lpn, NandError, Oob, Ppn, Seq, Token};
use dovetail_time::SimTime;

use super::records::Recorded;
use super::{Active, ZonedDrive};
use crate::buffer::MAX_SUBPAGES;
use crate::stats::{Cause, ReadCause};

impl ZonedDrive {
    /// Erases what has become ready, and writes the records that are due.
    pub(super) fn keep_house(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while let Some(&(ready, zone)) = self.to_record.front().filter(|(ready, _)| *ready <= at) {
            self.to_record.pop_front();
            let written = self.table.written(zone);
            let record = &mut self.records[zone as usize];
            (record.state, record.written, record.ends_at) = (Recorded::Full, written, None);
            self.write_record(ready, zone)?;
        }
        while let Some(&(ready, block)) = self.to_erase.front().filter(|(ready, _)| *ready <= at) {
            self.to_erase.pop_front();
            self.erase(ready, block)?;
            self.pool.give(&self.nand, block);
        }
        Ok(())
    }

    /// Erases a block of no zone; one that refuses is retired. Returns when it is erased.
    fn erase(&mut self, at: SimTime, block: BlockId) -> Result<Option<SimTime>, DeviceError> {
        if self.nand.is_bad(block) {
            return Ok(None);
        }
        match self.nand.erase(at, block) {
            Ok(done) => {
                self.counters.erases += 1;
                Ok(Some(done))
            }
            Err(NandError::EraseFailed(_)) => {
                self.counters.erase_failures += 1;
                self.nand.retire(block);
                Ok(None)
            }
            Err(error) => Err(device_error(&error)),
        }
    }

    /// An erased block of a unit, and when it is; `None` when the unit has no good one left.
    fn erased_block(
        &mut self,
        at: SimTime,
        unit: u32,
    ) -> Result<Option<(BlockId, SimTime)>, DeviceError> {
        let free = |drive: &mut Self| drive.pool.take(unit).map(|block| (at, block));
        while let Some((ready, block)) = free(self).or_else(|| self.waiting_block(unit)) {
            let at = at.max(ready);
            if self.nand.programmed_pages(block) == 0 && !self.nand.is_half_erased(block) {
                return Ok(Some((block, at)));
            }
            if let Some(done) = self.erase(at, block)? {
                return Ok(Some((block, done)));
            }
        }
        Ok(None)
    }

    /// A block of a unit that waits to be erased, when there is no other.
    fn waiting_block(&mut self, unit: u32) -> Option<(SimTime, BlockId)> {
        let units = self.nand.geometry().units();
        let found = self.to_erase.iter().position(|(_, block)| block.0 % units == unit)?;
        self.to_erase.remove(found)
    }

    /// Makes a zone ready to be written: it has erase blocks and a place of its own.
    pub(super) fn prepare(&mut self, at: SimTime, zone: u32) -> Result<(), DeviceError> {
        match self.active.get(&zone).map(|active| active.mended) {
            Some(true) => Ok(()),
            Some(false) => self.mend(at, zone),
            None => self.give_blocks(at, zone),
        }
    }

    /// Gives a zone its erase blocks, and writes that down.
    fn give_blocks(&mut self, at: SimTime, zone: u32) -> Result<(), DeviceError> {
        let Some(slot) = self.free_slot(at)? else {
            // it was opened by this write, and stays empty
            let _ = self.table.perform(zone, ZoneAction::Close);
            return Err(ZoneError::TooManyActive(self.slots.len() as u32).into());
        };
        let free_from = self.slots[slot].take().unwrap_or(at);
        let (mut blocks, mut ready) = (Vec::new(), at.max(free_from));
        for index in 0..self.layout.blocks_per_zone() as usize {
            let Some((block, erased)) = self.erased_block(at, self.layout.unit_of(zone, index))?
            else {
                blocks.into_iter().for_each(|block| self.pool.give(&self.nand, block));
                self.slots[slot] = Some(free_from);
                self.table.fail(zone, ZoneEvent::WornOut);
                return Err(ZoneError::ReadOnly(zone).into());
            };
            blocks.push(block);
            ready = ready.max(erased);
        }
        let record = &mut self.records[zone as usize];
        (record.state, record.slot, record.blocks) = (Recorded::Active, slot as u32, blocks);
        (record.written, record.window) = (0, self.table.has_window(zone));
        // only when its blocks hold nothing more, and its place nothing that counts
        let not_before = self.write_record(ready, zone)?;
        self.active.insert(zone, Active::new(slot as u32, 0, not_before, true));
        Ok(())
    }

    /// A place that is free. Where there is none, zones that were being finished at a power cut
    /// give theirs back.
    fn free_slot(&mut self, at: SimTime) -> Result<Option<usize>, DeviceError> {
        let free = |slots: &[Option<SimTime>]| slots.iter().position(Option::is_some);
        if free(&self.slots).is_none() {
            let is_full = |zone: &&u32| self.table.state(**zone) == ZoneState::Full;
            let full: Vec<u32> = self.active.keys().filter(is_full).copied().collect();
            for zone in full {
                self.mend(at, zone)?;
                self.program_to(at, zone, self.table.written(zone))?;
                self.retire_active(zone);
            }
        }
        Ok(free(&self.slots))
    }

    /// Programs what a zone holds before block `to`, as far as a die takes it in one go; all of it
    /// when the zone is full.
    pub(super) fn program_before(
        &mut self,
        at: SimTime,
        zone: u32,
        to: u64,
    ) -> Result<(), DeviceError> {
        let (unit, capacity) = (self.layout.unit_blocks(), self.layout.zones.capacity);
        loop {
            let Some(active) = self.active.get(&zone) else { return Ok(()) };
            let programmed = active.programmed;
            let end = programmed + unit;
            if programmed >= to || (end > to && to < capacity) {
                return Ok(());
            }
            let begun = at.max(active.not_before);
            let done = self.program_unit(begun, zone, Cause::Host)?;
            self.in_flight.push(Reverse((done, unit)));
            self.in_flight_blocks += unit;
        }
    }

    /// Programs the next pages of a zone that go together; returns when they are durable.
    pub(super) fn program_unit(
        &mut self,
        at: SimTime,
        zone: u32,
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        let subpages = self.layout.subpages as usize;
        let (mut now, mut done) = (at, at);
        for _ in 0..self.layout.unit {
            let Some(active) = self.active.get(&zone) else { break };
            let page = (active.programmed / subpages as u64) as u32;
            if page >= self.layout.pages_per_zone() {
                break;
            }
            let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
            let mut hints = dovetail_block::Hints::default();
            for (token, held) in tokens[..subpages].iter_mut().zip(&active.held) {
                if let Some(held) = held {
                    (*token, hints) = (held.token, held.hints);
                }
            }
            let owner = (hints.inode, hints.stream);
            let (begun, end) =
                self.program_page(now, zone, page, &tokens[..subpages], owner, cause)?;
            (now, done) = (begun, done.max(end));
            let Some(active) = self.active.get_mut(&zone) else { break };
            active.held.drain(..subpages.min(active.held.len()));
            active.programmed += subpages as u64;
            active.programs_end = active.programs_end.max(done);
        }
        self.programs_end = self.programs_end.max(done);
        Ok(done)
    }

    /// Programs one page of a zone, in another erase block if need be; returns when that was begun
    /// and when it is durable.
    fn program_page(
        &mut self,
        at: SimTime,
        zone: u32,
        page: u32,
        tokens: &[Token],
        owner: (Inode, StreamId),
        cause: Cause,
    ) -> Result<(SimTime, SimTime), DeviceError> {
        let mut now = at;
        loop {
            let oob = self.oob(zone, page, owner);
            let ppn = self.page_of(zone, page);
            match self.nand.program(now, ppn, tokens, oob) {
                Ok(done) => {
                    self.counters.programs[cause as usize] += 1;
                    return Ok((now, done));
                }
                Err(NandError::ProgramFailed(_)) => {
                    self.counters.program_failures += 1;
                    let place = self.layout.place(page);
                    self.nand.retire(self.records[zone as usize].blocks[place.block]);
                    now = self.replace_block(now, zone, place.block, place.page)?;
                }
                Err(error) => return Err(device_error(&error)),
            }
        }
    }

    fn oob(&mut self, zone: u32, page: u32, (inode, stream): (Inode, StreamId)) -> Oob {
        let seq = self.seq;
        self.seq = Seq(seq.0 + 1);
        Oob { lpn: self.lpn(zone, page), seq, inode, stream }
    }

    /// The number of a zone's page in out-of-band areas.
    pub(super) fn lpn(&self, zone: u32, page: u32) -> Lpn {
        Lpn(u64::from(zone) * u64::from(self.layout.pages_per_zone()) + u64::from(page))
    }

    /// The flash page that is page `index` of a zone.
    pub(super) fn page_of(&self, zone: u32, index: u32) -> Ppn {
        let place = self.layout.place(index);
        let block = self.records[zone as usize].blocks[place.block];
        self.nand.geometry().ppn(block, place.page)
    }

    /// Puts another erase block in the place of one of a zone's, with its first `pages`; returns
    /// when that is durable. A zone for which there is none can only be read from then on.
    fn replace_block(
        &mut self,
        at: SimTime,
        zone: u32,
        index: usize,
        pages: u32,
    ) -> Result<SimTime, DeviceError> {
        let old = self.records[zone as usize].blocks[index];
        let mut from = 0;
        let (new, moved) = 'blocks: loop {
            let found = self.erased_block(at, self.layout.unit_of(zone, index))?;
            let Some((new, ready)) = found else { return self.wear_out(at, zone) };
            let mut now = ready;
            while from < pages {
                match self.move_page(now, old, new, from)? {
                    Some(done) => now = now.max(done),
                    None => {
                        from = 0;
                        continue 'blocks;
                    }
                }
                from += 1;
            }
            break (new, now);
        };
        self.records[zone as usize].blocks[index] = new;
        let recorded = self.write_record(moved, zone)?;
        if !self.nand.is_bad(old) {
            self.to_erase.push_back((recorded, old));
        }
        if let Some(active) = self.active.get_mut(&zone) {
            active.not_before = active.not_before.max(recorded);
            active.programs_end = active.programs_end.max(recorded);
        }
        self.programs_end = self.programs_end.max(recorded);
        Ok(recorded)
    }

    /// Moves a page to the same place in another block; `None` if that block refuses it.
    fn move_page(
        &mut self,
        at: SimTime,
        old: BlockId,
        new: BlockId,
        page: u32,
    ) -> Result<Option<SimTime>, DeviceError> {
        let geometry = *self.nand.geometry();
        let (from, to) = (geometry.ppn(old, page), geometry.ppn(new, page));
        self.counters.flash_reads[ReadCause::Move as usize] += 1;
        let subpages = self.layout.subpages as usize;
        let (read, readable) = match self.nand.read(at, from, geometry.page_bytes) {
            Ok(done) => (done, true),
            Err(NandError::Unreadable(_)) => (at, false),
            Err(error) => return Err(device_error(&error)),
        };
        let mut tokens = [Token::LOST; MAX_SUBPAGES];
        if readable {
            for (subpage, token) in tokens[..subpages].iter_mut().enumerate() {
                *token = self.nand.token(from, subpage);
                self.nand.retain(*token);
            }
        } else {
            self.counters.lost_blocks += subpages as u64;
        }
        let Some(before) = self.nand.oob(from) else {
            return Err(DeviceError::Internal(format!("page {from} of a zone holds nothing")));
        };
        let seq = self.seq;
        self.seq = Seq(seq.0 + 1);
        match self.nand.program(read, to, &tokens[..subpages], Oob { seq, ..before }) {
            Ok(done) => {
                self.counters.programs[Cause::Retire as usize] += 1;
                Ok(Some(done))
            }
            Err(NandError::ProgramFailed(_)) => {
                self.counters.program_failures += 1;
                tokens[..subpages].iter().for_each(|&token| self.nand.release(token));
                self.nand.retire(new);
                Ok(None)
            }
            Err(error) => Err(device_error(&error)),
        }
    }

    /// A zone has no good block left in the place of a bad one.
    fn wear_out(&mut self, at: SimTime, zone: u32) -> Result<SimTime, DeviceError> {
        self.table.fail(zone, ZoneEvent::WornOut);
        let record = &mut self.records[zone as usize];
        (record.state, record.ends_at) = (Recorded::ReadOnly, None);
        self.write_record(at, zone)?;
        Err(ZoneError::ReadOnly(zone).into())
    }

    /// Looks, after a power cut, whether the erase blocks of a zone hold pages beyond those that
    /// count: no page there can be programmed again, so others take their place.
    fn mend(&mut self, at: SimTime, zone: u32) -> Result<(), DeviceError> {
        let Some(active) = self.active.get(&zone) else { return Ok(()) };
        let pages = (active.programmed / u64::from(self.layout.subpages)) as u32;
        let mut count = vec![0; self.layout.blocks_per_zone() as usize];
        (0..pages).for_each(|page| count[self.layout.place(page).block] += 1);
        for (index, &expected) in count.iter().enumerate() {
            let block = self.records[zone as usize].blocks[index];
            let is_used_up = self.nand.programmed_pages(block) > expected
                || self.nand.is_half_erased(block)
                || self.nand.is_bad(block);
            if is_used_up {
                self.replace_block(at, zone, index, expected)?;
            }
        }
        let mut recorded = at;
        if self.records[zone as usize].ends_at.take().is_some() {
            recorded = self.write_record(at, zone)?;
            self.programs_end = self.programs_end.max(recorded);
        }
        if let Some(active) = self.active.get_mut(&zone) {
            active.mended = true;
            active.not_before = active.not_before.max(recorded);
            active.programs_end = active.programs_end.max(recorded);
        }
        Ok(())
    }

    /// Takes a full zone out of those that are being written; its place is free when all of it is
    /// on flash.
    pub(super) fn retire_active(&mut self, zone: u32) {
        let Some(active) = self.active.remove(&zone) else { return };
        active.held.iter().flatten().for_each(|held| self.nand.release(held.token));
        self.slots[active.slot as usize] = Some(active.programs_end);
        self.to_record.push_back((active.programs_end, zone));
    }
}

impl Active {
    pub(super) fn new(slot: u32, programmed: u64, not_before: SimTime, mended: bool) -> Self {
        let held = std::collections::VecDeque::new();
        let (programs_end, stashed_pointer) = (SimTime::ZERO, 0);
        Self { slot, programmed, held, not_before, programs_end, stashed_pointer, mended }
    }
}

/// An error of the flash that the drive cannot work around.
pub(super) fn device_error(error: &NandError) -> DeviceError {
    match error {
        NandError::PowerLost => DeviceError::PowerLost,
        other => DeviceError::Internal(other.to_string()),
    }
}
