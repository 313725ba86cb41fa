//! Placing pages on flash: the only way in which a page gets there, and what happens when the medium refuses.

use dovetail_block::{DeviceError, Inode, StreamId};
use dovetail_nand::{BlockId, Lpn, NandError, Oob, Ppn, Seq, Token};
use dovetail_time::SimTime;

use super::frontier::OpenLine;
use super::{Drive, device_error};
use crate::buffer::MAX_PARTS;
use crate::lines::{LineId, LineState};
use crate::stats::{Cause, ReadCause};

/// A page to be programmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    pub(super) lpn: Lpn,
    /// The parts that hold data, one bit each.
    pub(super) live: u8,
    pub(super) tokens: &'a [Token],
    pub(super) stream: StreamId,
    pub(super) inode: Inode,
}

impl Drive {
    /// The frontier of host writes in a stream.
    pub(super) fn host_frontier(&self, stream: StreamId) -> usize {
        usize::from(stream.0 % self.config.streams)
    }

    /// The frontier of moved pages of a stream.
    pub(super) fn move_frontier(&self, stream: StreamId) -> usize {
        let host = self.host_frontier(stream);
        if self.config.gc_apart { host + usize::from(self.config.streams) } else { host }
    }

    /// Programs a page, maps its logical page to it, and returns when it is durable. Pages that the medium
    /// refuses condemn their block, and the next place is tried.
    pub(super) fn program(
        &mut self,
        at: SimTime,
        frontier: usize,
        page: Page<'_>,
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        loop {
            let (ppn, line) = self.next_place(at, frontier)?;
            let oob = Oob { lpn: page.lpn, seq: self.seq, inode: page.inode, stream: page.stream };
            self.seq = Seq(self.seq.0 + 1);
            match self.nand.program(at, ppn, page.tokens, oob) {
                Ok(done) => {
                    self.counters.programs[cause as usize] += 1;
                    self.programs_end = self.programs_end.max(done);
                    self.point(page, ppn, line);
                    self.note_program_end(ppn, done);
                    return Ok(done);
                }
                Err(NandError::ProgramFailed(_)) => {
                    self.counters.program_failures += 1;
                    self.condemn(self.nand.geometry().locate(ppn).0);
                }
                Err(error) => return Err(device_error(&error)),
            }
        }
    }

    fn point(&mut self, page: Page<'_>, ppn: Ppn, line: LineId) {
        let (before, cost) = self.point_at(page.lpn, Some(ppn));
        self.counters.map_accesses += u64::from(cost.accesses);
        match before {
            Some(before) if self.system.owns(page.lpn) => self.forget(before),
            Some(before) => self.invalidate(before),
            None => {}
        }
        self.validate(ppn, line, page.live);
    }

    /// The next good page of a frontier; when no line is left to open, of any other that has one: cleaning must
    /// be able to go on.
    fn next_place(&mut self, at: SimTime, frontier: usize) -> Result<(Ppn, LineId), DeviceError> {
        if let Some(place) = self.place_in(at, frontier)? {
            return Ok(place);
        }
        for other in 0..self.frontiers.len() {
            if let Some(place) = self.place_in(at, other)? {
                return Ok(place);
            }
        }
        Err(no_room())
    }

    fn place_in(&mut self, at: SimTime, frontier: usize) -> Result<Option<(Ppn, LineId)>, DeviceError> {
        for _ in 0..=self.frontiers[frontier].slots.len() {
            let place = self.place_in_slot(at, frontier)?;
            self.frontiers[frontier].advance();
            if place.is_some() {
                return Ok(place);
            }
        }
        Ok(None)
    }

    /// The next good page of the frontier's current slot; closes and opens lines as needed. `None` when the
    /// slot has no free line.
    fn place_in_slot(&mut self, at: SimTime, frontier: usize) -> Result<Option<(Ppn, LineId)>, DeviceError> {
        let slot = self.frontiers[frontier].cursor;
        loop {
            let Some(open) = self.frontiers[frontier].slots[slot] else {
                let Some(line) = self.open_line(at, slot)? else { return Ok(None) };
                self.frontiers[frontier].slots[slot] = Some(OpenLine { line, next: 0 });
                continue;
            };
            if let Some(index) = self.next_good_page(open) {
                self.frontiers[frontier].slots[slot] = Some(OpenLine { next: index + 1, ..open });
                return Ok(Some((self.lines.page(open.line, index), open.line)));
            }
            self.frontiers[frontier].slots[slot] = None;
            self.lines.close(open.line, self.seq);
        }
    }

    fn open_line(&mut self, at: SimTime, group: usize) -> Result<Option<LineId>, DeviceError> {
        if self.lines.free() == 0 && !self.is_writing_journal() {
            self.erase_next(at)?;
        }
        Ok(self.lines.open(group))
    }

    fn next_good_page(&self, open: OpenLine) -> Option<u32> {
        let pages = self.lines.pages_per_line();
        if !self.lines.has_bad_blocks(open.line) {
            return (open.next < pages).then_some(open.next);
        }
        (open.next..pages).find(|&index| {
            let (block, _) = self.nand.geometry().locate(self.lines.page(open.line, index));
            !self.nand.is_bad(block)
        })
    }

    /// Marks a block bad; what it holds is moved when the current command is through with it.
    pub(super) fn condemn(&mut self, block: BlockId) {
        self.nand.retire(block);
        let line = self.lines.line_of(self.nand.geometry().ppn(block, 0));
        self.lines.lose_block(line);
        self.condemned.push(block);
    }

    /// Moves what bad blocks still hold.
    pub(super) fn empty_condemned(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while let Some(&block) = self.condemned.last() {
            let index = self.condemned.len() - 1;
            for page in 0..self.nand.programmed_pages(block) {
                let ppn = self.nand.geometry().ppn(block, page);
                if self.lines.is_valid(ppn) {
                    self.make_room(at)?;
                }
                if self.lines.is_valid(ppn) {
                    self.move_page(at, ppn, Cause::Retire)?;
                }
            }
            self.condemned.remove(index);
        }
        Ok(())
    }

    /// Copies a valid page to a new place. Data that cannot be read any more is kept as lost: reads of it fail
    /// instead of returning something older.
    pub(super) fn move_page(&mut self, at: SimTime, ppn: Ppn, cause: Cause) -> Result<(), DeviceError> {
        let ((lpn, remap), (_, stream)) = (self.owner(ppn), self.nand.owner(ppn));
        let inode = self.nand.inode(ppn);
        let (ready, readable) = self.read_for(at, ppn, ReadCause::Move)?;
        if !readable && self.system.owns(lpn) {
            self.replace_system_page(lpn);
            return Ok(());
        }
        let parts = self.config.parts() as usize;
        let mut tokens = [Token::EMPTY; MAX_PARTS];
        let live = self.live_mask(ppn);
        for (part, token) in
            tokens.iter_mut().enumerate().take(parts).filter(|(part, _)| live >> part & 1 == 1)
        {
            *token = self.carry(ppn, part, readable);
        }
        let page = Page { lpn, live, tokens: &tokens[..parts], stream, inode };
        let ready = ready.max(self.durable_at(remap)).max(self.durable_below(lpn));
        self.program(ready, self.frontier_of_moved(lpn, stream), page, cause)?;
        self.note_moved(lpn, inode);
        Ok(())
    }

    /// When what a page rests on is durable, if it is the drive's own: its first copy was programmed after that, on a die that
    /// may have a longer queue than that of the next copy.
    fn durable_below(&self, lpn: Lpn) -> SimTime {
        if self.system.owns(lpn) { self.programs_end_of_journal() } else { SimTime::ZERO }
    }

    /// References to the parts in `mask` of a page that was just read, or the knowledge that they are lost.
    pub(super) fn carry_parts(
        &mut self,
        ppn: Ppn,
        mask: u8,
        readable: bool,
        tokens: &mut [Token; MAX_PARTS],
    ) {
        let mut left = mask;
        while left != 0 {
            let part = left.trailing_zeros() as usize;
            left &= left - 1;
            tokens[part] = self.carry(ppn, part, readable);
        }
    }

    fn carry(&mut self, ppn: Ppn, part: usize, readable: bool) -> Token {
        if !readable {
            self.counters.lost_blocks += 1;
            return Token::LOST;
        }
        let token = self.nand.token(ppn, part);
        self.nand.retain(token);
        token
    }

    /// Reads a whole page for the drive's own use; returns when, and whether it could be read.
    pub(super) fn read_for(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        cause: ReadCause,
    ) -> Result<(SimTime, bool), DeviceError> {
        self.counters.flash_reads[cause as usize] += 1;
        let bytes = self.nand.geometry().page_bytes;
        match self.nand.read(at, ppn, bytes) {
            Ok(done) => Ok((done, true)),
            Err(NandError::Unreadable(_)) => Ok((at, false)),
            Err(error) => Err(device_error(&error)),
        }
    }

    /// Pages of a line that lie on bad blocks.
    pub(super) fn missing_pages(&self, line: LineId) -> u32 {
        let bad = self.lines.blocks(line).filter(|&block| self.nand.is_bad(block)).count() as u32;
        bad * self.nand.geometry().pages_per_block
    }

    /// Whether a line could be chosen as a victim now.
    pub(super) fn is_closed(&self, line: LineId) -> bool {
        self.lines.state(line) == LineState::Closed
    }
}

/// No line is left to write to.
pub(super) fn no_room() -> DeviceError {
    DeviceError::ReadOnly("too many blocks have gone bad and none is left to write to".into())
}
