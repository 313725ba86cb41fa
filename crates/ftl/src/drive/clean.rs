//! Cleaning: frees lines by moving what they still hold.
//!
//! The cleaner (`cleaner.rs`) decides; here it is carried out: along with host writes, in idle
//! time, and in the foreground when free lines run short. A cleaned line is erased once every page
//! programmed before is durable: an older version must not vanish before the newer one is there.
//!
//! On dies of several planes a step moves as many pages as end a row: it reads them all, and
//! programs them when the last one is read, so that the planes of each die work together.

use dovetail_block::DeviceError;
use dovetail_nand::{CellMode, Ppn};
use dovetail_time::SimTime;

use super::Drive;
use super::program::no_room;
use crate::cleaner::{Choice, CleaningStep};
use crate::medium::ErasedBlock;
use crate::stats::Cause;

impl Drive {
    /// Sees to it that a page can be written: cleans in the foreground when free lines have run
    /// short.
    pub(super) fn make_room(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.cleaner.is_at_rest(self.medium.lines()) && !self.is_fold_due() {
            return Ok(());
        }
        if self.cleaner.is_short(self.medium.lines()) {
            self.clean_in_foreground(at)?;
        }
        self.clean_along(at)
    }

    fn clean_in_foreground(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let (mut fruitless, mut most) = (0, self.cleaner.lines_to_come(self.medium.lines()));
        while self.cleaner.is_short(self.medium.lines()) {
            if self.erase_next(at)? {
                continue;
            }
            let lines = self.medium.lines();
            let choice = if fruitless > lines.count() { Choice::LeastKept } else { Choice::Policy };
            if !self.has_run(choice) {
                return if self.medium.lines().free() > 0 { Ok(()) } else { Err(no_room()) };
            }
            // A line may give one page. Whether it had garbage says little: of a demand-paged map's
            // pages each run makes some.
            let lines = self.medium.lines();
            if fruitless > 2 * lines.count() + lines.pages_per_line() {
                return Err(no_room());
            }
            self.counters.gc_stalls += 1;
            while self.cleaner.is_running() {
                self.clean_step(at)?;
            }
            let to_come = self.cleaner.lines_to_come(self.medium.lines());
            fruitless = if to_come > most { 0 } else { fruitless + 1 };
            most = most.max(to_come);
        }
        Ok(())
    }

    /// Advances by what one host page is worth.
    fn clean_along(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if !self.has_run_if_needed(Choice::Worthwhile) {
            return Ok(());
        }
        self.cleaner.earn();
        loop {
            let pages = self.pages_in_step();
            if !self.cleaner.spend(self.medium.lines(), pages) {
                return Ok(());
            }
            self.clean_step(at)?;
        }
    }

    /// Cleans from `from` on until enough lines are free or the next command comes at `until`.
    pub(super) fn clean_while_idle(
        &mut self,
        from: SimTime,
        until: SimTime,
    ) -> Result<(), DeviceError> {
        let mut now = from;
        loop {
            self.erase_what_is_ready(now)?;
            if !self.has_run_if_needed(Choice::Idle) {
                return self.erase_what_is_ready(until);
            }
            now = now.max(self.medium.nand().idle_from());
            if now >= until {
                return Ok(());
            }
            self.step_while_idle(now)?;
        }
    }

    /// Moves about a page for each unit.
    pub(super) fn step_while_idle(&mut self, now: SimTime) -> Result<(), DeviceError> {
        self.at_work = now;
        for _ in 0..self.geometry().units().div_ceil(self.most_pages_in_step()) {
            self.clean_step(now)?;
        }
        Ok(())
    }

    /// Tells whether a line is being cleaned, now that one was chosen if lines are needed.
    fn has_run_if_needed(&mut self, choice: Choice) -> bool {
        self.cleaner.is_running()
            || (!self.cleaner.has_enough(self.medium.lines()) && self.has_run(choice))
            || (self.is_fold_due() && self.has_run(Choice::Fold))
    }

    /// Tells whether a line is being cleaned, now that one was chosen if there is any to clean.
    pub(super) fn has_run(&mut self, choice: Choice) -> bool {
        if self.cleaner.is_running() {
            return true;
        }
        let now = self.medium.next_seq();
        let Some(victim) = self.cleaner.start(self.medium.lines(), now, choice) else {
            return false;
        };
        self.medium.take_victim(victim.line);
        if let Some(logs) = &mut self.log_blocks {
            logs.forget(victim.line);
        }
        match victim.cause {
            Cause::Wear => self.counters.wear_runs += 1,
            Cause::Fold => self.counters.fold_runs += 1,
            Cause::Refresh => self.counters.refresh_runs += 1,
            _ => self.counters.gc_runs += 1,
        }
        if self.medium.lines().valid(victim.line) > 0 {
            self.note_reallocation(victim.cause);
        }
        true
    }

    /// Pages that a step of cleaning moves at most.
    fn most_pages_in_step(&self) -> u32 {
        if self.plain.single_moves {
            return 1;
        }
        self.geometry().units() * self.config.nand.timing.pages_at_once(CellMode::Native)
    }

    /// Pages that the next step moves, where the line has as many.
    #[inline(always)]
    fn pages_in_step(&mut self) -> u32 {
        if self.plain.single_moves { 1 } else { self.pages_in_row() }
    }

    #[inline(never)]
    fn pages_in_row(&mut self) -> u32 {
        let next = self.cleaner.next_page(self.medium.lines());
        next.map_or(1, |ppn| self.medium.pages_left_in_row(self.frontier_for(ppn)))
    }

    /// Moves the next valid pages of the current run, or ends the run.
    pub(super) fn clean_step(&mut self, at: SimTime) -> Result<(), DeviceError> {
        match self.cleaner.next_step(self.medium.lines()) {
            CleaningStep::Idle => Ok(()),
            CleaningStep::Move(ppn, cause) => {
                if !self.plain.single_moves {
                    return self.move_row(at, ppn, cause);
                }
                self.expect_moves();
                self.move_page(at, ppn, cause)?;
                self.cleaner.moved();
                Ok(())
            }
            CleaningStep::Emptied { line, kept } => {
                self.cleaner.await_erase(line, self.all_durable_at());
                self.settle(at, kept)
            }
        }
    }

    /// Reads the pages of the run from `first` on that end a row of the frontier of `first`, and
    /// programs them when the last one is read.
    fn move_row(&mut self, at: SimTime, first: Ppn, cause: Cause) -> Result<(), DeviceError> {
        let most = self.medium.pages_left_in_row(self.frontier_for(first));
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        let lines = self.medium.lines();
        self.cleaner.each_page_ahead(lines, most, |ppn| row.push(self.moving(ppn)));
        let mut ready = at;
        for moving in &mut row {
            self.expect_move(moving);
            ready = ready.max(self.read_moving(at, moving)?);
        }
        for moving in &row {
            // the drive's own page may have been written again since
            if self.medium.lines().is_valid(moving.ppn) {
                self.move_read_page(ready, *moving, cause)?;
            }
        }
        self.row = row;
        self.complete_word_lines()
    }

    /// Lets the host fetch the map entries of the pages that come a little later in the run.
    fn expect_moves(&mut self) {
        let Some((line, ahead)) = self.cleaner.look_ahead(self.medium.lines()) else { return };
        for index in ahead {
            let ppn = self.medium.lines().page(line, index);
            if self.medium.lines().is_valid(ppn) {
                self.expect_move(&self.moving(ppn));
            }
        }
    }

    /// Erases cleaned lines whose moved pages are durable by `at`.
    pub(super) fn erase_what_is_ready(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while self.cleaner.next_erase().is_some_and(|(ready, _)| ready <= at) {
            self.erase_next(at)?;
        }
        Ok(())
    }

    /// Erases the line that waits longest, at its time. `false` when none waits.
    pub(super) fn erase_next(&mut self, at: SimTime) -> Result<bool, DeviceError> {
        let Some((ready, line)) = self.cleaner.next_erase() else { return Ok(false) };
        // A version that was discarded may only vanish once the discard is on flash: an older
        // version of the same block elsewhere would count as the newest.
        self.write_before_erase(at)?;
        self.cleaner.erase_begins();
        // Not before the line was ready, but also not only now: the dies may have been idle since.
        let at = ready.max(self.journal.programs_end());
        let (counters, ownership) = (&mut self.counters, &mut self.ownership);
        self.medium.erase_line(at, line, |block| match block {
            ErasedBlock::Done(block, done) => {
                counters.erases += 1;
                ownership.note_erase(block, done);
            }
            ErasedBlock::Failed => counters.erase_failures += 1,
        })?;
        Ok(true)
    }

    /// Returns when everything issued so far is durable: programs, and entries of non-volatile
    /// memory.
    pub(super) fn all_durable_at(&self) -> SimTime {
        let programs = self.medium.programs_end();
        self.nvm().map_or(programs, |nvm| nvm.end().max(programs))
    }
}
