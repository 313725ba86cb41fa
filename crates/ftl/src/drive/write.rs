//! Writes and flushes.

use dovetail_block::{BlockRange, Data, DeviceError, Hints, StreamId};
use dovetail_nand::{Lpn, Token};
use dovetail_time::SimTime;

use super::{Drive, Piece};
use crate::buffer::{Entry, MAX_PARTS};
use crate::cache::Access;
use crate::medium::Page;
use crate::ownership::Nvm;
use crate::stats::{Cause, ReadCause};

impl Drive {
    /// Takes blocks from the host; returns when they are acknowledged: in the buffer, or with `fua` or without
    /// a buffer on flash.
    pub(super) fn write(
        &mut self,
        at: SimTime,
        range: BlockRange,
        data: Data<'_>,
        hints: Hints,
        fua: bool,
    ) -> Result<SimTime, DeviceError> {
        self.check_range(range)?;
        self.check_names(range)?;
        if let Data::Blocks(blocks) = data
            && blocks.len() as u64 != range.blocks
        {
            return Err(DeviceError::LengthMismatch { range: range.blocks, data: blocks.len() as u64 });
        }
        let start = self.check_room(at, range)?;
        let received = self.link(at, start, range.blocks);
        if self.buffer.capacity() == 0 {
            self.begin_request(range);
        }
        let mut done = received;
        for piece in self.pieces(range) {
            let acknowledged = if self.buffer.capacity() == 0 {
                self.write_through(received, piece, data, hints)?
            } else {
                self.write_to_buffer(received, piece, data, hints, fua)?
            };
            done = done.max(acknowledged);
        }
        self.counters.writes += 1;
        self.counters.written_blocks += range.blocks;
        self.empty_condemned(at)?;
        Ok(done)
    }

    /// Makes all that was acknowledged survive a power cut.
    pub(super) fn flush(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        while let Some(lpn) = self.buffer.oldest() {
            self.send(at, lpn)?;
        }
        self.make_room_for_records(at)?;
        self.write_journal(at)?;
        self.empty_condemned(at)?;
        self.counters.flushes += 1;
        Ok(at.max(self.host_programs_end).max(self.nvm().map_or(at, Nvm::end)))
    }

    fn write_through(
        &mut self,
        at: SimTime,
        piece: Piece,
        data: Data<'_>,
        hints: Hints,
    ) -> Result<SimTime, DeviceError> {
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        let mask = self.intern_parts(&mut tokens, piece, data);
        self.put_on_flash(at, piece.lpn, tokens, mask, hints)
    }

    fn intern_parts(&mut self, tokens: &mut [Token; MAX_PARTS], piece: Piece, data: Data<'_>) -> u8 {
        let mut mask = 0;
        for i in 0..piece.parts {
            tokens[piece.first_part + i] = self.medium.intern(&data.block(piece.offset + i as u64));
            mask |= 1 << (piece.first_part + i);
        }
        mask
    }

    fn write_to_buffer(
        &mut self,
        at: SimTime,
        piece: Piece,
        data: Data<'_>,
        hints: Hints,
        fua: bool,
    ) -> Result<SimTime, DeviceError> {
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        let mask = self.intern_parts(&mut tokens, piece, data);
        let mut now = at;
        if self.buffer.dirty_mut(piece.lpn).is_none() {
            now = self.wait_for_place(at)?;
            self.translation.expect(piece.lpn);
            self.buffer.add(piece.lpn, hints);
            if self.config.counts_room() && self.translation.lookup(piece.lpn).0.is_none() {
                self.buffer.is_new(piece.lpn);
            }
        }
        self.merge_into_buffer(piece.lpn, &tokens, mask, hints);
        if fua {
            return Ok(now.max(self.send(now, piece.lpn)?));
        }
        // Half of the buffer holds pages back to merge writes to them, half covers the time of programs.
        while self.buffer.dirty() > self.buffer.capacity() / 2 {
            let Some(oldest) = self.buffer.oldest() else { break };
            self.send(now, oldest)?;
        }
        Ok(now)
    }

    fn merge_into_buffer(&mut self, lpn: Lpn, tokens: &[Token; MAX_PARTS], mask: u8, hints: Hints) {
        let Some(entry) = self.buffer.dirty_mut(lpn) else { return };
        entry.hints = hints;
        for (part, &token) in tokens.iter().enumerate().filter(|(part, _)| mask >> part & 1 == 1) {
            if entry.mask >> part & 1 == 1 {
                self.counters.buffer_overwrites += 1;
                self.medium.release(entry.tokens[part]);
            }
            entry.tokens[part] = token;
        }
        entry.mask |= mask;
    }

    /// Returns when the buffer has a place, `at` if it has one now.
    fn wait_for_place(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        let mut now = at;
        while self.buffer.is_full() {
            match self.buffer.reclaim() {
                Some((free_at, page)) => {
                    now = now.max(free_at);
                    for part in (0..MAX_PARTS).filter(|part| page.mask >> part & 1 == 1) {
                        self.medium.release(page.tokens[part]);
                    }
                }
                None => match self.buffer.oldest() {
                    Some(oldest) => drop(self.send(now, oldest)?),
                    None => break,
                },
            }
        }
        Ok(now)
    }

    /// Sends the dirty page of `lpn` to flash; returns when it is durable.
    pub(super) fn send(&mut self, at: SimTime, lpn: Lpn) -> Result<SimTime, DeviceError> {
        let Some(&Entry { tokens, mask, hints, .. }) = self.buffer.get(lpn) else { return Ok(at) };
        let done = self.put_on_flash(at, lpn, tokens, mask, hints)?;
        for part in (0..MAX_PARTS).filter(|part| mask >> part & 1 == 1) {
            self.medium.retain(tokens[part]);
        }
        self.buffer.sent(lpn, done);
        Ok(done)
    }

    /// Programs a page whose parts in `mask` are new; the others are merged from its present version.
    fn put_on_flash(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        mut tokens: [Token; MAX_PARTS],
        mask: u8,
        hints: Hints,
    ) -> Result<SimTime, DeviceError> {
        let at = self.want(at, lpn, Access::Write)?;
        self.make_room(at)?;
        let parts = self.config.parts() as usize;
        let (ready, old) = self.merge_old_parts(at, lpn, &mut tokens, mask)?;
        let stream = StreamId(hints.stream.0 % self.config.streams);
        let page = Page { lpn, live: mask | old, tokens: &tokens[..parts], stream, inode: hints.inode };
        let done = self.program(ready, self.host_frontier(stream), page, Cause::Host)?;
        self.host_programs_end = self.host_programs_end.max(done);
        Ok(done)
    }

    /// Reads the live parts of `lpn` that are not in `mask` from flash; returns when they are there, and which.
    fn merge_old_parts(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        tokens: &mut [Token; MAX_PARTS],
        mask: u8,
    ) -> Result<(SimTime, u8), DeviceError> {
        if mask == self.medium.full_mask() {
            return Ok((at, 0));
        }
        let (found, cost) = self.translation.lookup(lpn);
        let at = at + self.charge(cost);
        let old = found.map_or(0, |ppn| self.medium.live_mask(ppn) & !mask);
        let Some(ppn) = found.filter(|_| old != 0) else { return Ok((at, 0)) };
        let (ready, readable) = self.read_for(at, ppn, ReadCause::Merge)?;
        self.carry_parts(ppn, old, readable, tokens);
        Ok((ready, old))
    }
}
