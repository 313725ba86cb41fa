//! Writes and flushes.

use dovetail_block::{BlockRange, Data, DeviceError, Hints, StreamId};
use dovetail_nand::{Lpn, Token};
use dovetail_time::SimTime;

use super::{Drive, PageSpan};
use crate::buffer::{BufferEntry, MAX_SUBPAGES};
use crate::cache::Access;
use crate::config::BufferOrder;
use crate::medium::PageToProgram;
use crate::ownership::Nvm;
use crate::stats::{Cause, ReadCause};

impl Drive {
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
        self.check_range(range)?;
        self.check_names(range)?;
        if let Some(blocks) = data.blocks()
            && blocks != range.blocks
        {
            return Err(DeviceError::LengthMismatch { range: range.blocks, data: blocks });
        }
        let start = self.check_room(at, range)?;
        let hints = self.place(hints, range.blocks);
        let received = self.link_in(at, start, range.blocks);
        if self.buffer.capacity() == 0 {
            self.begin_request(range);
        }
        let mut done = received;
        for span in self.spans(range) {
            let acknowledged = if self.buffer.capacity() == 0 {
                self.write_through(received, span, data, hints)?
            } else {
                self.write_to_buffer(received, span, data, hints, fua)?
            };
            done = done.max(acknowledged);
        }
        self.counters.writes += 1;
        self.counters.written_blocks += range.blocks;
        self.empty_condemned(at)?;
        Ok(done)
    }

    /// Makes all that was acknowledged survive a power cut; with capacitors it does already.
    pub(super) fn flush(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        self.counters.flushes += 1;
        if self.config.power_loss_protection { Ok(at) } else { self.write_out(at) }
    }

    /// Programs what the write buffer and the journal hold, whoever would keep it over a power cut;
    /// returns when that is done. Counts of programs are complete afterwards.
    ///
    /// # Errors
    /// Errors of its flash.
    pub fn write_out(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        self.empty_buffer(at, 0)?;
        self.make_room_for_records(at)?;
        self.write_journal(at)?;
        self.empty_condemned(at)?;
        Ok(at.max(self.host_programs_end).max(self.nvm().map_or(at, Nvm::end)))
    }

    fn write_through(
        &mut self,
        at: SimTime,
        span: PageSpan,
        data: Data<'_>,
        hints: Hints,
    ) -> Result<SimTime, DeviceError> {
        let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
        let mask = self.intern_subpages(&mut tokens, span, data);
        self.put_on_flash(at, span.lpn, tokens, mask, hints)
    }

    fn intern_subpages(
        &mut self,
        tokens: &mut [Token; MAX_SUBPAGES],
        span: PageSpan,
        data: Data<'_>,
    ) -> u8 {
        let mut mask = 0;
        for i in 0..span.subpages {
            tokens[span.first_subpage + i] =
                self.medium.intern(&data.block(span.offset + i as u64));
            mask |= 1 << (span.first_subpage + i);
        }
        mask
    }

    fn write_to_buffer(
        &mut self,
        at: SimTime,
        span: PageSpan,
        data: Data<'_>,
        hints: Hints,
        fua: bool,
    ) -> Result<SimTime, DeviceError> {
        let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
        let mask = self.intern_subpages(&mut tokens, span, data);
        let mut now = at;
        if self.buffer.dirty_mut(span.lpn).is_none() {
            now = self.wait_for_place(at)?;
            self.translation.expect(span.lpn);
            self.buffer.add(span.lpn, hints);
            if self.config.counts_room() && self.translation.lookup(span.lpn).0.is_none() {
                self.buffer.is_new(span.lpn);
            }
        }
        self.merge_into_buffer(span.lpn, &tokens, mask, hints);
        if fua && !self.config.power_loss_protection {
            return Ok(now.max(self.send(now, span.lpn)?));
        }
        // Half of the buffer holds pages back to merge writes to them, half covers the time of
        // programs.
        self.empty_buffer(now, self.buffer.capacity() / 2)?;
        Ok(now)
    }

    /// Sends dirty pages to flash if there are more than `most`: as many as are too many, the oldest
    /// first, or all, in the order of their addresses.
    pub(super) fn empty_buffer(&mut self, at: SimTime, most: usize) -> Result<(), DeviceError> {
        if self.config.buffer_order == BufferOrder::Address && self.buffer.dirty() > most {
            let mut pages: Vec<Lpn> = self.buffer.dirty_pages().map(|page| page.lpn).collect();
            pages.sort_unstable();
            for lpn in pages {
                // it may have gone with another one
                if self.buffer.dirty_mut(lpn).is_some() {
                    self.send(at, lpn)?;
                }
            }
            return Ok(());
        }
        while self.buffer.dirty() > most {
            let Some(oldest) = self.buffer.oldest() else { break };
            self.send(at, oldest)?;
        }
        Ok(())
    }

    fn merge_into_buffer(
        &mut self,
        lpn: Lpn,
        tokens: &[Token; MAX_SUBPAGES],
        mask: u8,
        hints: Hints,
    ) {
        let Some(entry) = self.buffer.dirty_mut(lpn) else { return };
        entry.hints = hints;
        for (subpage, &token) in
            tokens.iter().enumerate().filter(|(subpage, _)| mask >> subpage & 1 == 1)
        {
            if entry.mask >> subpage & 1 == 1 {
                self.counters.buffer_overwrites += 1;
                self.medium.release(entry.tokens[subpage]);
            }
            entry.tokens[subpage] = token;
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
                    for subpage in (0..MAX_SUBPAGES).filter(|subpage| page.mask >> subpage & 1 == 1)
                    {
                        self.medium.release(page.tokens[subpage]);
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
        let Some(&BufferEntry { tokens, mask, hints, .. }) = self.buffer.get(lpn) else {
            return Ok(at);
        };
        if !self.plain.single_pages {
            return self.send_together(at, lpn, hints);
        }
        let done = self.put_on_flash(at, lpn, tokens, mask, hints)?;
        self.note_sent(lpn, &tokens, mask, done);
        Ok(done)
    }

    /// The buffer keeps references of its own to what was sent.
    fn note_sent(&mut self, lpn: Lpn, tokens: &[Token; MAX_SUBPAGES], mask: u8, done: SimTime) {
        for subpage in (0..MAX_SUBPAGES).filter(|subpage| mask >> subpage & 1 == 1) {
            self.medium.retain(tokens[subpage]);
        }
        self.buffer.sent(lpn, done);
    }

    /// The dirty page of `first` and others of its stream, in the order in which pages leave the
    /// buffer: `most` at most.
    fn pages_to_send(&self, first: Lpn, stream: StreamId, most: usize) -> Vec<Lpn> {
        let is_of_stream = |entry: &&BufferEntry| self.hinted_stream(entry.hints) == stream;
        let mut pages = vec![first];
        match self.config.buffer_order {
            BufferOrder::Age => {
                add_until(&mut pages, most, self.buffer.by_age().filter(is_of_stream));
            }
            BufferOrder::Address => {
                let behind = self.buffer.dirty_pages().filter(|entry| entry.lpn > first);
                let mut entries: Vec<_> = behind.filter(is_of_stream).collect();
                entries.sort_unstable_by_key(|entry| entry.lpn);
                add_until(&mut pages, most, entries.into_iter());
            }
        }
        pages
    }

    /// Sends the dirty page of `first` with as many others as are programmed in one go with it;
    /// returns when all are durable.
    fn send_together(
        &mut self,
        at: SimTime,
        first: Lpn,
        hints: Hints,
    ) -> Result<SimTime, DeviceError> {
        let stream = self.stream_of(first, hints);
        let mut at = self.want(at, first, Access::Write)?;
        self.make_room(at)?;
        let frontier = self.host_target(at, first, stream)?;
        let most = self.medium.pages_left_at_once(frontier) as usize;
        let pages = match &self.log_blocks {
            Some(_) => self.pages_for_log(first, frontier, most),
            None => self.pages_to_send(first, stream, most),
        };
        for &lpn in pages.iter().filter(|&&lpn| lpn != first) {
            at = at.max(self.want(at, lpn, Access::Write)?);
            self.make_room(at)?;
        }
        let mut merged = Vec::with_capacity(pages.len());
        let mut ready = at;
        for &lpn in &pages {
            let Some(&BufferEntry { mut tokens, mask, hints, .. }) = self.buffer.get(lpn) else {
                continue;
            };
            let (read, old) = self.merge_old_subpages(at, lpn, &mut tokens, mask)?;
            ready = ready.max(read);
            merged.push((lpn, tokens, mask, old, hints.inode));
        }
        let subpages = self.config.subpages() as usize;
        let mut done = ready;
        for (lpn, tokens, mask, old, inode) in merged {
            let live = mask | old;
            let page = PageToProgram { lpn, live, tokens: &tokens[..subpages], stream, inode };
            let programmed = self.program_part(ready, frontier, page, Cause::Host)?;
            self.note_sent(lpn, &tokens, mask, programmed);
            done = done.max(programmed);
        }
        self.complete_word_lines()?;
        self.host_programs_end = self.host_programs_end.max(done);
        Ok(done)
    }

    /// Programs a page whose subpages in `mask` are new; the others are merged from its present
    /// version.
    fn put_on_flash(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        mut tokens: [Token; MAX_SUBPAGES],
        mask: u8,
        hints: Hints,
    ) -> Result<SimTime, DeviceError> {
        let at = self.want(at, lpn, Access::Write)?;
        self.make_room(at)?;
        let subpages = self.config.subpages() as usize;
        let stream = self.stream_of(lpn, hints);
        let frontier = self.host_target(at, lpn, stream)?;
        let (ready, old) = self.merge_old_subpages(at, lpn, &mut tokens, mask)?;
        let page = PageToProgram {
            lpn,
            live: mask | old,
            tokens: &tokens[..subpages],
            stream,
            inode: hints.inode,
        };
        let done = self.program(ready, frontier, page, Cause::Host)?;
        self.host_programs_end = self.host_programs_end.max(done);
        Ok(done)
    }

    /// The stream of a page that the host writes.
    fn stream_of(&mut self, lpn: Lpn, hints: Hints) -> StreamId {
        match &mut self.sequences {
            Some(sequences) => {
                StreamId(sequences.visit(lpn.0).map_or(0, |number| number as u8 + 1))
            }
            None => self.hinted_stream(hints),
        }
    }

    /// Reads the live subpages of `lpn` that are not in `mask` from flash; returns when they are
    /// there, and which.
    #[inline]
    fn merge_old_subpages(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        tokens: &mut [Token; MAX_SUBPAGES],
        mask: u8,
    ) -> Result<(SimTime, u8), DeviceError> {
        if mask == self.medium.full_mask() {
            return Ok((at, 0));
        }
        self.merge_missing_subpages(at, lpn, tokens, mask)
    }

    #[inline(never)]
    fn merge_missing_subpages(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        tokens: &mut [Token; MAX_SUBPAGES],
        mask: u8,
    ) -> Result<(SimTime, u8), DeviceError> {
        let (found, cost) = self.translation.lookup(lpn);
        let at = at + self.charge(cost);
        let old = found.map_or(0, |ppn| self.medium.live_mask(ppn) & !mask);
        let Some(ppn) = found.filter(|_| old != 0) else { return Ok((at, 0)) };
        let (ready, readable) = self.read_for(at, ppn, ReadCause::Merge)?;
        self.carry_subpages(ppn, old, readable, tokens);
        Ok((ready, old))
    }
}

/// Adds the pages of `entries` that are not there yet, until there are `most`.
pub(super) fn add_until<'e>(
    pages: &mut Vec<Lpn>,
    most: usize,
    mut entries: impl Iterator<Item = &'e BufferEntry>,
) {
    while pages.len() < most
        && let Some(entry) = entries.next()
    {
        if !pages.contains(&entry.lpn) {
            pages.push(entry.lpn);
        }
    }
}
