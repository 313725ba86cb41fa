//! Cleaning: frees lines by moving what they still hold.
//!
//! A run empties one line, page by page. Along with host writes it advances in proportion, so that it ends when
//! the writes have used what it frees; in idle time it advances until the next command; and when free lines
//! run short, writes wait for it. A cleaned line is erased once every page programmed before is durable: an
//! older version must not vanish before the newer one is there.

use dovetail_block::DeviceError;
use dovetail_time::SimTime;

use super::Drive;
use super::program::no_room;
use crate::lines::{LineId, LineState};
use crate::medium::ErasedBlock;
use crate::stats::Cause;
use crate::victim::Situation;

/// Cleaned lines between two looks at wear (assumed; a look scans all closed lines).
const RUNS_PER_WEAR_CHECK: u32 = 32;

/// A line that is being cleaned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    line: LineId,
    next: u32,
    /// Up to where map entries have been asked for.
    expected: u32,
    cause: Cause,
    /// Pages to keep when the run began.
    kept: u32,
}

/// How the line to clean is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Policy,
    /// The policy has chosen lines that gave nothing for a whole round of them.
    LeastKept,
}

impl Drive {
    /// Sees to it that a page can be written: cleans in the foreground when free lines have run short.
    pub(super) fn make_room(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.medium.lines().free() >= self.config.background_lines && self.run.is_none() {
            return Ok(());
        }
        if self.medium.lines().free() < self.config.foreground_lines {
            self.clean_in_foreground(at)?;
        }
        self.clean_along(at)
    }

    fn clean_in_foreground(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let (mut fruitless, mut most) = (0, self.lines_to_come());
        while self.medium.lines().free() < self.config.foreground_lines {
            if self.erase_next(at)? {
                continue;
            }
            let choice =
                if fruitless > self.medium.lines().count() { Choice::LeastKept } else { Choice::Policy };
            if self.run.is_none() && !self.start_run(choice) {
                return if self.medium.lines().free() > 0 { Ok(()) } else { Err(no_room()) };
            }
            // A line may give one page. Whether it had garbage says little: of a demand-paged map's pages each run makes some.
            if fruitless > 2 * self.medium.lines().count() + self.medium.lines().pages_per_line() {
                return Err(no_room());
            }
            self.counters.gc_stalls += 1;
            while self.run.is_some() {
                self.step(at)?;
            }
            fruitless = if self.lines_to_come() > most { 0 } else { fruitless + 1 };
            most = most.max(self.lines_to_come());
        }
        Ok(())
    }

    /// Lines that are free, or will be once they are erased.
    fn lines_to_come(&self) -> u32 {
        self.medium.lines().free() + self.awaiting_erase.len() as u32
    }

    /// Whether no further line needs to be cleaned for now. Lines that only wait for their erase count: when
    /// commands come faster than flash takes them, many do.
    fn has_enough(&self) -> bool {
        self.lines_to_come() >= self.config.background_lines
    }

    /// Advances by what one host page is worth: `kept` moves for every `pages - kept` pages freed.
    fn clean_along(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.run.is_none() && (self.has_enough() || !self.start_run(Choice::Policy)) {
            return Ok(());
        }
        let Some(run) = self.run else { return Ok(()) };
        let freed = u64::from(self.medium.lines().pages_per_line().saturating_sub(run.kept));
        self.gc_credit += u64::from(run.kept);
        while self.run.is_some() && (self.gc_credit >= freed || run.kept == 0) {
            self.gc_credit = self.gc_credit.saturating_sub(freed);
            self.step(at)?;
        }
        Ok(())
    }

    /// Cleans from `from` on until enough lines are free or the next command comes at `until`.
    pub(super) fn clean_while_idle(&mut self, from: SimTime, until: SimTime) -> Result<(), DeviceError> {
        let mut now = from;
        loop {
            self.erase_what_is_ready(now)?;
            if self.run.is_none() && (self.has_enough() || !self.start_run(Choice::Policy)) {
                return self.erase_what_is_ready(until);
            }
            now = now.max(self.medium.nand().idle_from());
            if now >= until {
                return Ok(());
            }
            for _ in 0..self.medium.nand().geometry().units() {
                self.step(now)?;
            }
        }
    }

    /// Chooses a line to clean. `false` when there is none.
    fn start_run(&mut self, choice: Choice) -> bool {
        let (line, cause) = match self.worn_apart() {
            Some(line) => (line, Cause::Wear),
            None => match self.choose_victim(choice) {
                Some(line) => (line, Cause::Gc),
                None => return false,
            },
        };
        let state = self.medium.lines().state(line);
        debug_assert_eq!(state, LineState::Closed, "a policy chose {line:?}");
        let kept = self.medium.lines().kept(line);
        self.medium.take_victim(line);
        match cause {
            Cause::Wear => self.counters.wear_runs += 1,
            _ => self.counters.gc_runs += 1,
        }
        self.gc_credit = 0;
        self.run = Some(Run { line, next: 0, expected: 0, cause, kept });
        true
    }

    /// Asks the policy. With less than the reserve free (cleaning was interrupted by power cuts) the line that
    /// keeps least is taken whatever the policy: its pages find room.
    fn choose_victim(&mut self, choice: Choice) -> Option<LineId> {
        if choice == Choice::LeastKept || self.medium.lines().free() + 1 < self.config.least_reserve() {
            return self.medium.lines().least_kept();
        }
        let situation = Situation {
            lines: self.medium.lines(),
            now: self.medium.next_seq(),
            choices: self.config.choices,
            rng: &mut self.rng,
        };
        (self.config.policy.choose)(situation)
    }

    /// The least worn closed line, when static wear levelling is due.
    fn worn_apart(&mut self) -> Option<LineId> {
        if self.config.wear_spread == 0 || self.medium.lines().free() + 1 < self.config.least_reserve() {
            return None;
        }
        self.runs_since_wear_check += 1;
        if self.runs_since_wear_check < RUNS_PER_WEAR_CHECK {
            return None;
        }
        self.runs_since_wear_check = 0;
        let most = self.medium.lines().ids().map(|line| self.medium.lines().erases(line)).max()?;
        let least = self
            .medium
            .lines()
            .closed()
            .iter()
            .copied()
            .min_by_key(|&line| (self.medium.lines().erases(line), line))?;
        (most - self.medium.lines().erases(least) > self.config.wear_spread).then_some(least)
    }

    /// Moves the next valid page of the current run, or ends the run.
    fn step(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let Some(run) = &mut self.run else { return Ok(()) };
        let pages = self.medium.lines().pages_per_line();
        while run.next < pages {
            let ppn = self.medium.lines().page(run.line, run.next);
            if self.medium.lines().is_valid(ppn) {
                let cause = run.cause;
                self.expect_moves();
                // Only a page that has moved is behind the run: one that found no room must not be erased.
                self.move_page(at, ppn, cause)?;
                if let Some(run) = &mut self.run {
                    run.next += 1;
                }
                return Ok(());
            }
            run.next += 1;
        }
        let (line, kept) = (run.line, run.kept);
        self.run = None;
        self.awaiting_erase.push_back((self.all_durable_at(), line));
        self.settle(at, kept)
    }

    /// Lets the host fetch the map entries of the pages that come a little later in the run.
    fn expect_moves(&mut self) {
        const AHEAD: u32 = 24;
        let Some(run) = self.run else { return };
        let until = (run.next + AHEAD).min(self.medium.lines().pages_per_line());
        for index in run.expected..until {
            let ppn = self.medium.lines().page(run.line, index);
            let lpn = self.owner(ppn).0;
            if self.medium.lines().is_valid(ppn) && !self.system.owns(lpn) {
                self.map.expect(lpn);
            }
        }
        self.run = Some(Run { expected: until.max(run.expected), ..run });
    }

    /// Erases cleaned lines whose moved pages are durable by `at`.
    pub(super) fn erase_what_is_ready(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while self.awaiting_erase.front().is_some_and(|(ready, _)| *ready <= at) {
            self.erase_next(at)?;
        }
        Ok(())
    }

    /// Erases the line that waits longest, at its time. `false` when none waits.
    pub(super) fn erase_next(&mut self, at: SimTime) -> Result<bool, DeviceError> {
        let Some((ready, line)) = self.awaiting_erase.pop_front() else { return Ok(false) };
        // A version that was discarded may only vanish once the discard is on flash: an older version of the
        // same block elsewhere would count as the newest.
        if let Err(error) = self.write_before_erase(at) {
            self.awaiting_erase.push_front((ready, line));
            return Err(error);
        }
        // Not before the line was ready, but also not only now: the dies may have been idle since.
        let at = ready.max(self.programs_end_of_journal());
        let (counters, remaps) = (&mut self.counters, &mut self.remaps);
        self.medium.erase_line(at, line, |block| match block {
            ErasedBlock::Done(block, done) => {
                counters.erases += 1;
                if let Some(remaps) = remaps {
                    remaps.note_erase(block, done);
                }
            }
            ErasedBlock::Failed => counters.erase_failures += 1,
        })?;
        Ok(true)
    }

    /// When everything issued so far is durable: programs, and entries of non-volatile memory.
    pub(super) fn all_durable_at(&self) -> SimTime {
        let programs = self.medium.programs_end();
        self.nvm().map_or(programs, |nvm| nvm.end().max(programs))
    }
}
