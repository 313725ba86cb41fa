//! Relocation: valid pages are copied away from lines that are cleaned, and from bad blocks.

use dovetail_block::DeviceError;
use dovetail_nand::{Lpn, Ppn, Token};
use dovetail_time::SimTime;

use super::Drive;
use crate::buffer::MAX_SUBPAGES;
use crate::medium::{FrontierId, PageToProgram};
use crate::stats::{Cause, ReadCause};

impl Drive {
    /// Moves what bad blocks still hold.
    pub(super) fn empty_condemned(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while let Some(block) = self.medium.newest_condemned() {
            for page in 0..self.medium.nand().programmed_pages(block) {
                let ppn = self.geometry().ppn(block, page);
                if self.medium.lines().is_valid(ppn) {
                    self.make_room(at)?;
                }
                if self.medium.lines().is_valid(ppn) {
                    self.move_page(at, ppn, Cause::Retire)?;
                }
            }
            self.medium.forget_condemned(block);
        }
        Ok(())
    }

    /// Copies a valid page to a new place. Data that cannot be read any more is kept as lost: reads
    /// of it fail instead of returning something older.
    #[inline]
    pub(super) fn move_page(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let (ready, readable) = self.read_for(at, ppn, ReadCause::Move)?;
        self.move_read_page(ready, ppn, readable, cause)?;
        self.complete_word_lines()
    }

    /// The frontier that a page goes to when it is moved.
    pub(super) fn frontier_for(&self, ppn: Ppn) -> FrontierId {
        self.frontier_of_moved(self.owner(ppn).0, self.medium.nand().owner(ppn).1)
    }

    /// Copies a valid page that was read, from `ready` on; others may follow in its word line.
    pub(super) fn move_read_page(
        &mut self,
        ready: SimTime,
        ppn: Ppn,
        readable: bool,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        self.move_read_page_to(ready, ppn, readable, None, cause)
    }

    /// As [`Drive::move_read_page`], to a frontier that is given.
    #[inline]
    pub(super) fn move_read_page_to(
        &mut self,
        ready: SimTime,
        ppn: Ppn,
        readable: bool,
        to: Option<FrontierId>,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let ((lpn, remap), (_, stream)) = (self.owner(ppn), self.medium.nand().owner(ppn));
        let inode = self.medium.nand().inode(ppn);
        if !readable && self.translation.is_own(lpn) {
            self.replace_system_page(lpn);
            return Ok(());
        }
        let subpages = self.config.subpages() as usize;
        let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
        let live = self.medium.live_mask(ppn);
        self.carry_subpages(ppn, live, readable, &mut tokens);
        let page = PageToProgram { lpn, live, tokens: &tokens[..subpages], stream, inode };
        let ready = ready.max(self.ownership.durable_at(remap)).max(self.durable_below(lpn));
        let to = to.unwrap_or_else(|| self.frontier_of_moved(lpn, stream));
        self.program_part(ready, to, page, cause)?;
        self.note_moved(lpn, inode);
        Ok(())
    }

    /// Returns when what a page rests on is durable, if it is the drive's own: its first copy was
    /// programmed after that, on a die that may have a longer queue than that of the next copy.
    fn durable_below(&self, lpn: Lpn) -> SimTime {
        if self.translation.is_own(lpn) { self.journal.programs_end() } else { SimTime::ZERO }
    }

    /// References to the subpages in `mask` of a page that was just read, or the knowledge that
    /// they are lost.
    pub(super) fn carry_subpages(
        &mut self,
        ppn: Ppn,
        mask: u8,
        readable: bool,
        tokens: &mut [Token; MAX_SUBPAGES],
    ) {
        let mut left = mask;
        while left != 0 {
            let subpage = left.trailing_zeros() as usize;
            left &= left - 1;
            tokens[subpage] = self.carry(ppn, subpage, readable);
        }
    }

    fn carry(&mut self, ppn: Ppn, subpage: usize, readable: bool) -> Token {
        if !readable {
            self.counters.lost_blocks += 1;
            return Token::LOST;
        }
        let token = self.medium.nand().token(ppn, subpage);
        self.medium.retain(token);
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
        let read = self.medium.read(at, ppn, self.geometry().page_bytes)?;
        Ok((read.unwrap_or(at), read.is_some()))
    }
}
