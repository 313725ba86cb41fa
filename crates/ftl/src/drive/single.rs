//! The SLC cache at work: who writes to it, and when it is folded.

use dovetail_block::{DeviceError, StreamId};
use dovetail_nand::{CellMode, Ppn};
use dovetail_time::SimTime;

use super::Drive;
use crate::cleaner::Choice;
use crate::medium::FrontierId;
use crate::single::WhenFull;
use crate::stats::Cause;

impl Drive {
    /// The frontier of the SLC cache for a stream.
    pub(super) fn single_frontier(&self, stream: StreamId) -> FrontierId {
        FrontierId(self.config.native_frontiers() + usize::from(stream.0 % self.config.streams))
    }

    /// The frontier of the drive's own pages: word lines of one page, if it has any.
    pub(super) fn system_frontier(&self) -> FrontierId {
        match self.config.single_cache {
            Some(_) => self.single_frontier(StreamId(0)),
            None => self.move_frontier(StreamId(0)),
        }
    }

    /// Lines that the SLC cache may have now.
    pub(super) fn single_lines(&self) -> u32 {
        let used = self.translation.mapped() as f64 / self.config.capacity_pages() as f64;
        self.config.single_cache.map_or(0, |cache| cache.lines(used))
    }

    /// Tells whether the host's next page goes to the SLC cache; folds lines for it first, where
    /// writes wait for that.
    pub(super) fn single_takes(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
    ) -> Result<bool, DeviceError> {
        if self.past_cache {
            return Ok(false);
        }
        let cache = self.config.single_cache;
        while !self.has_single_room(frontier) {
            if cache.is_some_and(|cache| cache.when_full == WhenFull::Direct) {
                self.past_cache = cache.is_some_and(|cache| cache.fold_after.is_some());
                return Ok(false);
            }
            if !self.fold_line(at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_single_room(&mut self, frontier: FrontierId) -> bool {
        self.medium.has_page_left(frontier) || self.may_open_single()
    }

    fn may_open_single(&self) -> bool {
        let (lines, cache) = (self.medium.lines(), self.config.single_cache);
        let is_static = cache.is_some_and(|cache| lines.singles() < cache.static_lines);
        let spare =
            if is_static { self.config.foreground_lines } else { self.config.background_lines };
        lines.singles() < self.single_lines() && lines.free() > spare
    }

    /// Folds the oldest line of the cache and erases it; `false` when there is none.
    fn fold_line(&mut self, at: SimTime) -> Result<bool, DeviceError> {
        if !self.has_run(Choice::Fold) {
            return self.erase_next(at);
        }
        self.counters.fold_stalls += u64::from(self.cleaner.cause() == Some(Cause::Fold));
        while self.cleaner.is_running() {
            self.clean_step(at)?;
        }
        self.erase_next(at)?;
        Ok(true)
    }

    /// Tells whether lines of the cache are to be folded along with writes.
    pub(super) fn is_fold_due(&self) -> bool {
        let Some(cache) = self.config.single_cache else { return false };
        let (singles, most) = (self.medium.lines().singles(), self.single_lines());
        match cache.when_full {
            WhenFull::Fold => singles >= most,
            WhenFull::Direct => singles > most,
        }
    }

    /// Folds the cache in the time before `until`, if the drive has had no work for long.
    pub(super) fn fold_while_idle(&mut self, until: SimTime) -> Result<(), DeviceError> {
        let Some(after) = self.config.single_cache.and_then(|cache| cache.fold_after) else {
            return Ok(());
        };
        let mut now = self.idle_from() + after;
        while now < until {
            self.erase_what_is_ready(now)?;
            self.past_cache = false;
            if !self.cleaner.is_running() && !self.has_run(Choice::Fold) {
                return self.erase_what_is_ready(until);
            }
            self.step_while_idle(now)?;
            now = now.max(self.medium.nand().idle_from());
        }
        Ok(())
    }

    /// Counts a page that was programmed at one bit a cell.
    #[inline]
    pub(super) fn count_single(&mut self, ppn: Ppn) {
        if self.config.single_cache.is_some() {
            let lines = self.medium.lines();
            let is_single = lines.mode(lines.line_of(ppn)) == CellMode::Single;
            self.counters.single_programs += u64::from(is_single);
        }
    }
}
