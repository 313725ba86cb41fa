//! Programming a page on behalf of its owner: finding an erased page, mapping, and trying again
//! where the medium refuses.

use dovetail_block::{DeviceError, StreamId};
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::SimTime;

use super::Drive;
use crate::medium::{ErasedPage, FrontierId, PageToProgram, Programmed};
use crate::stats::Cause;
use crate::translation::Pointed;

impl Drive {
    /// The frontier of host writes in a stream.
    pub(super) fn host_frontier(&self, stream: StreamId) -> FrontierId {
        FrontierId(usize::from(stream.0 % self.config.streams))
    }

    /// The frontier of moved pages of a stream.
    pub(super) fn move_frontier(&self, stream: StreamId) -> FrontierId {
        FrontierId(self.config.frontier_of_moves(stream.0))
    }

    /// The frontier of a page that the host writes now: that of the SLC cache, as long as it has
    /// room, or of a log line.
    #[inline(always)] // a plain drive has one answer
    pub(super) fn host_target(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        stream: StreamId,
    ) -> Result<FrontierId, DeviceError> {
        if self.plain.targets {
            return Ok(self.host_frontier(stream));
        }
        self.special_target(at, lpn, stream)
    }

    #[inline(never)]
    fn special_target(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        stream: StreamId,
    ) -> Result<FrontierId, DeviceError> {
        if self.log_blocks.is_some() {
            return self.log_target(at, lpn);
        }
        let native = self.host_frontier(stream);
        let single = self.single_frontier(stream);
        Ok(if self.single_takes(at, single)? { single } else { native })
    }

    /// Programs a page by itself, maps its logical page to it, and returns when it is durable.
    #[inline]
    pub(super) fn program(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
        page: PageToProgram<'_>,
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        let done = self.program_part(at, frontier, page, cause)?;
        self.complete_word_lines()?;
        Ok(done)
    }

    /// Programs what was given out so far, without the pages that are missing from a word line.
    #[inline(always)]
    pub(super) fn complete_word_lines(&mut self) -> Result<(), DeviceError> {
        if self.plain.single_pages { Ok(()) } else { self.complete_each_word_line() }
    }

    #[inline(never)]
    fn complete_each_word_line(&mut self) -> Result<(), DeviceError> {
        self.counters.skipped_pages += u64::from(self.medium.complete_word_lines()?);
        Ok(())
    }

    /// As [`Drive::program`], of a page that others may follow in its word line.
    pub(super) fn program_part(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
        page: PageToProgram<'_>,
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        let erased = self.erased_page(at, frontier)?;
        self.program_erased(at, erased, frontier, page, cause)
    }

    /// As [`Drive::program_part`], of a page that was moved away from `from`.
    pub(super) fn program_moved(
        &mut self,
        at: SimTime,
        from: Ppn,
        frontier: FrontierId,
        page: PageToProgram<'_>,
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        let near = if self.config.gc_within_die {
            self.medium.next_page_near(frontier, from)
        } else {
            None
        };
        let erased = match near {
            Some(erased) => erased,
            None => self.erased_page(at, frontier)?,
        };
        self.program_erased(at, erased, frontier, page, cause)
    }

    #[inline(always)]
    fn program_erased(
        &mut self,
        at: SimTime,
        erased: ErasedPage,
        frontier: FrontierId,
        page: PageToProgram<'_>,
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        let at = self.hand_over(at, 1);
        let programmed = match self.medium.program(at, erased, page)? {
            Some(programmed) => programmed,
            None => self.program_elsewhere(at, frontier, page)?,
        };
        self.counters.programs[cause as usize] += 1;
        if self.config.fdp.is_some() && !self.translation.is_own(page.lpn) {
            self.counters.handle_programs[usize::from(page.stream.0)] += 1;
        }
        self.count_single(programmed.ppn);
        self.map_programmed(page.lpn, programmed.ppn);
        self.ownership.note_program(programmed.ppn, programmed.done);
        Ok(programmed.done)
    }

    /// Programs a page that the medium has refused at one place.
    #[cold]
    #[inline(never)]
    fn program_elsewhere(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
        page: PageToProgram<'_>,
    ) -> Result<Programmed, DeviceError> {
        loop {
            self.counters.program_failures += 1;
            let erased = self.erased_page_anywhere(at, frontier)?;
            let at = self.hand_over(at, 1);
            if let Some(programmed) = self.medium.program_again(at, erased, page)? {
                return Ok(programmed);
            }
        }
    }

    /// Points the map at a page that was just programmed; the page before counts no more.
    #[inline]
    fn map_programmed(&mut self, lpn: Lpn, ppn: Ppn) {
        let Pointed { before, cost, abandoned } = self.translation.point(lpn, Some(ppn));
        debug_assert!(abandoned.is_none(), "a translation page with a mapped entry is needed");
        self.occupy_controller(cost);
        match before {
            Some(before) if self.translation.is_own(lpn) => self.medium.invalidate(before),
            Some(before) => self.invalidate(before),
            None => {}
        }
    }

    /// The next erased page of a frontier; when no line is left to open, of any other that has one:
    /// cleaning must be able to go on.
    #[inline(always)] // the page would be returned through memory
    fn erased_page(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
    ) -> Result<ErasedPage, DeviceError> {
        match self.medium.next_page_in_turn(frontier) {
            Some(page) => Ok(page),
            None => self.erased_page_anywhere(at, frontier),
        }
    }

    #[inline(never)]
    fn erased_page_anywhere(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
    ) -> Result<ErasedPage, DeviceError> {
        if let Some(page) = self.erased_page_in(at, frontier)? {
            return Ok(page);
        }
        for other in (0..self.medium.frontiers()).map(FrontierId) {
            if let Some(page) = self.erased_page_in(at, other)? {
                return Ok(page);
            }
        }
        Err(no_room())
    }

    /// The next erased page of a frontier. Where a group has no line to open, a line that waits for
    /// its erase is erased first.
    fn erased_page_in(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
    ) -> Result<Option<ErasedPage>, DeviceError> {
        for _ in 0..=self.medium.groups(frontier) {
            let group = self.medium.group(frontier);
            if let Some(page) = self.medium.next_page(frontier, group) {
                self.medium.advance(frontier);
                return Ok(Some(page));
            }
            let page = self.page_after_erase(at, frontier, group)?;
            self.medium.advance(frontier);
            if page.is_some() {
                return Ok(page);
            }
        }
        Ok(None)
    }

    /// The page of a group that had no line to open, now that the next line was erased if none is
    /// free.
    #[cold]
    fn page_after_erase(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
        group: usize,
    ) -> Result<Option<ErasedPage>, DeviceError> {
        if self.medium.lines().free() > 0 || self.journal.is_writing() {
            return Ok(None);
        }
        self.erase_next(at)?;
        Ok(self.medium.next_page(frontier, group))
    }
}

/// No line is left to write to.
pub(super) fn no_room() -> DeviceError {
    DeviceError::ReadOnly("too many blocks have gone bad and none is left to write to".into())
}
