//! Programming: the only way in which a page gets to flash.

use dovetail_block::{DeviceError, Inode, StreamId};
use dovetail_nand::{CellMode, Lpn, NandError, Oob, Ppn, Token};
use dovetail_time::SimTime;

use super::frontier::{FrontierId, OpenLine};
use super::lines::LineId;
use super::{Medium, device_error};

/// A page to be programmed, with its out-of-band area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageToProgram<'a> {
    /// Its owner, for the out-of-band area.
    pub(crate) lpn: Lpn,
    /// The subpages that hold data, one bit each.
    pub(crate) live: u8,
    /// One token a subpage; their references pass to the flash.
    pub(crate) tokens: &'a [Token],
    /// The stream, for the out-of-band area.
    pub(crate) stream: StreamId,
    /// The inode, for the out-of-band area.
    pub(crate) inode: Inode,
}

/// An erased page that was given out to be programmed, once.
#[derive(Debug)]
pub(crate) struct ErasedPage {
    ppn: Ppn,
    line: LineId,
}

/// A page that was programmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Programmed {
    /// Its address.
    pub(crate) ppn: Ppn,
    /// Time when it is durable.
    pub(crate) done: SimTime,
}

impl Medium {
    /// Frontiers in all.
    pub(crate) fn frontiers(&self) -> usize {
        self.frontiers.len()
    }

    /// Groups of lines that a frontier fills in turn.
    #[inline]
    pub(crate) fn groups(&self, frontier: FrontierId) -> usize {
        self.frontiers[frontier.0].groups()
    }

    /// The group whose turn it is in a frontier.
    #[inline]
    pub(crate) fn group(&self, frontier: FrontierId) -> usize {
        self.frontiers[frontier.0].group()
    }

    /// Pages of a frontier up to the end of its row: the pages with one index in the blocks of all
    /// units, or those of one word line. The planes of a die program such pages together.
    pub(crate) fn pages_left_in_row(&self, frontier: FrontierId) -> u32 {
        let row = self.lines.pages_in_row(self.frontiers[frontier.0].mode());
        let frontier = &self.frontiers[frontier.0];
        let done = match frontier.groups() {
            1 => frontier.open_line(0).map_or(0, |open| open.next % row),
            _ => frontier.group() as u32,
        };
        row - done
    }

    /// Tells whether a frontier has a page left in the line that it fills; a line that is full is
    /// closed.
    pub(crate) fn has_page_left(&mut self, frontier: FrontierId) -> bool {
        let Some(open) = self.frontiers[frontier.0].open_line(0) else { return false };
        let is_left = self.next_good_page(open).is_some();
        if !is_left {
            self.frontiers[frontier.0].set_open_line(0, None);
            self.lines.close(open.line, self.seq);
        }
        is_left
    }

    /// Pages that the line of a frontier still takes; all of a line, if it has none.
    pub(crate) fn pages_left(&self, frontier: FrontierId) -> u64 {
        let Some(open) = self.frontiers[frontier.0].open_line(0) else {
            return self.lines.pages_per_line().into();
        };
        let left = open.next..self.lines.pages_in(open.line);
        left.filter(|&index| self.is_good(open.line, index)).count() as u64
    }

    /// Closes the line that a frontier has begun. Tells whether pages were left in it.
    pub(crate) fn leave_line(&mut self, frontier: FrontierId) -> bool {
        let Some(open) = self.frontiers[frontier.0].open_line(0).filter(|open| open.next > 0)
        else {
            return false;
        };
        let is_left = self.has_page_left(frontier);
        if is_left {
            self.frontiers[frontier.0].set_open_line(0, None);
            self.lines.close(open.line, self.seq);
        }
        is_left
    }

    /// Pages that a die programs in one go for a frontier.
    pub(crate) fn pages_at_once(&self, frontier: FrontierId) -> u32 {
        self.lines.pages_at_once(self.frontiers[frontier.0].mode())
    }

    /// Pages of a frontier that are still missing from those that its die programs in one go; pages
    /// on bad blocks are not.
    pub(crate) fn pages_left_at_once(&self, frontier: FrontierId) -> u32 {
        let at_once = self.pages_at_once(frontier);
        let Some(open) = self.frontiers[frontier.0].open_line(0) else { return at_once };
        let Some(first) = self.next_good_page(open) else { return at_once };
        let end = (first + 1).next_multiple_of(at_once);
        if !self.lines.has_bad_blocks(open.line) {
            return end - first;
        }
        (first..end).filter(|&index| self.is_good(open.line, index)).count() as u32
    }

    fn is_good(&self, line: LineId, index: u32) -> bool {
        let (block, _) = self.nand.geometry().locate(self.lines.page(line, index));
        !self.nand.is_bad(block)
    }

    /// Uses up the pages that are missing from what a die has just programmed in one go, on every
    /// frontier. Returns how many of them could have been programmed.
    ///
    /// # Errors
    /// A broken rule of the flash.
    pub(crate) fn complete_word_lines(&mut self) -> Result<u32, DeviceError> {
        let mut skipped = 0;
        for frontier in 0..self.frontiers.len() {
            let least = self.lines.least_at_once(self.frontiers[frontier].mode());
            while let Some(open) = self.frontiers[frontier].open_line(0)
                && open.next % least != 0
            {
                skipped += u32::from(self.is_good(open.line, open.next));
                self.skip_page(open)?;
                let next = OpenLine { next: open.next + 1, ..open };
                self.frontiers[frontier].set_open_line(0, Some(next));
            }
        }
        Ok(skipped)
    }

    /// Uses up the next page of an open line, unless its block is bad.
    pub(super) fn skip_page(&mut self, open: OpenLine) -> Result<(), DeviceError> {
        if !self.is_good(open.line, open.next) {
            return Ok(());
        }
        let ppn = self.lines.page(open.line, open.next);
        self.nand.skip(ppn).map_err(|error| device_error(&error))
    }

    /// Passes the turn of a frontier on to its next group.
    #[inline]
    pub(crate) fn advance(&mut self, frontier: FrontierId) {
        self.frontiers[frontier.0].advance();
    }

    /// The next page of the group whose turn it is in a frontier, and passes the turn on; `None`,
    /// and nothing has happened, where its line is full or has bad blocks, or it has none.
    #[inline(always)] // otherwise the page is returned through memory
    pub(crate) fn next_page_in_turn(&mut self, frontier: FrontierId) -> Option<ErasedPage> {
        let frontier = &mut self.frontiers[frontier.0];
        let open = frontier.open_line_mut()?;
        let (line, index) = (open.line, open.next);
        if self.lines.has_bad_blocks(line) || index >= self.lines.pages_in(line) {
            return None;
        }
        open.next += 1;
        frontier.advance();
        Some(ErasedPage { ppn: self.lines.page(line, index), line })
    }

    /// The next good page of a group of a frontier; closes and opens lines as needed. `None` when
    /// the group has no free line.
    #[inline(always)] // otherwise the page is returned through memory, for 3 % of a write's time
    pub(crate) fn next_page(&mut self, frontier: FrontierId, group: usize) -> Option<ErasedPage> {
        loop {
            let Some(open) = self.frontiers[frontier.0].open_line(group) else {
                let line = self.open_line(group, self.frontiers[frontier.0].mode())?;
                self.frontiers[frontier.0].set_open_line(group, Some(OpenLine { line, next: 0 }));
                continue;
            };
            if let Some(index) = self.next_good_page(open) {
                let next = OpenLine { next: index + 1, ..open };
                self.frontiers[frontier.0].set_open_line(group, Some(next));
                return Some(ErasedPage {
                    ppn: self.lines.page(open.line, index),
                    line: open.line,
                });
            }
            self.frontiers[frontier.0].set_open_line(group, None);
            self.lines.close(open.line, self.seq);
        }
    }

    /// The next good page of the group that a page is in; `None` when that has no free line.
    pub(crate) fn next_page_near(&mut self, frontier: FrontierId, ppn: Ppn) -> Option<ErasedPage> {
        let group = self.lines.group(self.lines.line_of(ppn));
        self.next_page(frontier, group)
    }

    /// Opens a free line of a group; its blocks are told how they will be filled.
    fn open_line(&mut self, group: usize, mode: CellMode) -> Option<LineId> {
        let line = self.lines.open(group, mode)?;
        self.tell_mode(line, mode);
        Some(line)
    }

    /// Tells the blocks of a line that was opened how they will be filled.
    pub(super) fn tell_mode(&mut self, line: LineId, mode: CellMode) {
        if self.nand.config().timing.single.is_some() {
            for block in self.lines.blocks(line) {
                if self.nand.is_bad(block) {
                    continue;
                }
                let set = self.nand.set_mode(block, mode);
                debug_assert!(set.is_ok(), "a free line is erased");
            }
        }
    }

    #[inline]
    fn next_good_page(&self, open: OpenLine) -> Option<u32> {
        let pages = self.lines.pages_in(open.line);
        if !self.lines.has_bad_blocks(open.line) {
            return (open.next < pages).then_some(open.next);
        }
        (open.next..pages).find(|&index| self.is_good(open.line, index))
    }

    /// Programs a page under the next sequence number; its live subpages count from now on. `None`
    /// when the medium refuses the page: its block is condemned then, and another page must be
    /// tried.
    ///
    /// # Errors
    /// No power, or a broken rule of the flash.
    #[inline(always)] // for each page that the drive programs
    pub(crate) fn program(
        &mut self,
        at: SimTime,
        to: ErasedPage,
        page: PageToProgram<'_>,
    ) -> Result<Option<Programmed>, DeviceError> {
        let ErasedPage { ppn, line } = to;
        let oob =
            Oob { lpn: page.lpn, seq: self.take_seq(), inode: page.inode, stream: page.stream };
        match self.nand.program(at, ppn, page.tokens, oob) {
            Ok(done) => {
                self.programs_end = self.programs_end.max(done);
                self.validate(ppn, line, page.live);
                Ok(Some(Programmed { ppn, done }))
            }
            Err(NandError::ProgramFailed(_)) => {
                self.condemn(self.nand.geometry().locate(ppn).0);
                Ok(None)
            }
            Err(error) => Err(device_error(&error)),
        }
    }
    /// As [`Medium::program`], of a page that was refused before: rarely.
    #[inline(never)]
    pub(crate) fn program_again(
        &mut self,
        at: SimTime,
        to: ErasedPage,
        page: PageToProgram<'_>,
    ) -> Result<Option<Programmed>, DeviceError> {
        self.program(at, to, page)
    }
}
