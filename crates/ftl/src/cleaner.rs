//! The cleaner: decides which line is emptied next, how fast, and when an emptied line may be
//! erased.
//!
//! A run empties one line, page by page. Its decisions are data; the drive moves the pages and
//! erases the lines. Along with host writes a run advances in proportion, so that it ends when the
//! writes have used what it frees.

use std::collections::VecDeque;
use std::ops::Range;

use dovetail_nand::{CellMode, Ppn, Seq};
use dovetail_time::{Rng, SimTime};

use crate::config::DriveConfig;
use crate::lines::{LineId, LineState, Lines};
use crate::stats::Cause;
use crate::victim::{Policy, Situation};

/// Cleaned lines between two looks at wear (assumed; a look scans all closed lines).
const RUNS_PER_WEAR_CHECK: u32 = 32;
/// Pages of a run whose map entries are asked for ahead of their moves (assumed).
const AHEAD: u32 = 24;

/// The way in which the line to clean is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// As the victim policy says, if that line has so much garbage that it is worth its while.
    Worthwhile,
    /// The same in idle time: with some garbage at least. Moving a line without any frees nothing,
    /// and would go on for ever.
    Idle,
    /// As the victim policy says.
    Policy,
    /// The line of the SLC cache that was filled first.
    Fold,
    /// This line, which was read often.
    Refresh(LineId),
    /// The line that keeps least: the policy has chosen lines that gave nothing for a whole round
    /// of them.
    LeastKept,
}

/// A victim, and why it is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Victim {
    pub(crate) line: LineId,
    pub(crate) cause: Cause,
}

/// The next step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CleaningStep {
    /// No line is being cleaned.
    Idle,
    /// The valid pages from this one on are to be moved.
    Move(Ppn, Cause),
    /// The line is empty, and the run is over; it kept so many pages when it began.
    Emptied { line: LineId, kept: u32 },
}

/// A line that is being cleaned.
#[derive(Clone, Copy, Debug)]
struct CleaningRun {
    line: LineId,
    /// Index of the next page to look at.
    next: u32,
    /// Up to where map entries have been asked for.
    expected: u32,
    cause: Cause,
    /// Pages to keep when the run began.
    kept: u32,
}

impl CleaningRun {
    /// Pages that the run frees.
    fn freed(&self, lines: &Lines) -> u64 {
        match self.cause {
            // a line of the cache makes room for another one
            Cause::Fold => u64::from(lines.pages_in(self.line)),
            _ => u64::from(lines.pages_per_line().saturating_sub(self.kept)),
        }
    }
}

/// The thresholds and the policy, as configured.
#[derive(Clone, Copy, Debug)]
struct Rules {
    policy: &'static Policy,
    choices: u32,
    wear_spread: u32,
    foreground_lines: u32,
    background_lines: u32,
    least_reserve: u32,
    least_garbage: u32,
}

/// The cleaner of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Cleaner {
    rules: Rules,
    run: Option<CleaningRun>,
    /// Kept pages of the run that host writes have paid for, times the pages that the run frees.
    credit: u64,
    /// Lines whose pages have moved, and when all the moves are durable; in the order of these
    /// times.
    awaiting_erase: VecDeque<(SimTime, LineId)>,
    runs_since_wear_check: u32,
    rng: Rng,
}

impl Cleaner {
    /// As configured, with nothing to do.
    pub(crate) fn new(config: &DriveConfig) -> Self {
        let rules = Rules {
            policy: config.policy,
            choices: config.choices,
            wear_spread: config.wear_spread,
            foreground_lines: config.foreground_lines,
            background_lines: config.background_lines,
            least_reserve: config.least_reserve(),
            least_garbage: config.least_garbage,
        };
        let rng = Rng::new(config.seed);
        Self {
            rules,
            run: None,
            credit: 0,
            awaiting_erase: VecDeque::new(),
            runs_since_wear_check: 0,
            rng,
        }
    }

    /// Tells whether a line is being cleaned.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// The cause of the run.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.run.map(|run| run.cause)
    }

    /// Tells whether so many lines are free that a write needs no cleaning at all.
    #[inline]
    pub(crate) fn is_at_rest(&self, lines: &Lines) -> bool {
        lines.free() >= self.rules.background_lines && self.run.is_none()
    }

    /// Tells whether so few lines are free that a write must wait for cleaning.
    #[inline]
    pub(crate) fn is_short(&self, lines: &Lines) -> bool {
        lines.free() < self.rules.foreground_lines
    }

    /// Lines that are free, or will be once they are erased.
    #[inline]
    pub(crate) fn lines_to_come(&self, lines: &Lines) -> u32 {
        lines.free() + self.awaiting_erase.len() as u32
    }

    /// Tells whether no further line needs to be cleaned for now. Lines that only wait for their
    /// erase count: when commands come faster than flash takes them, many do.
    #[inline]
    pub(crate) fn has_enough(&self, lines: &Lines) -> bool {
        self.lines_to_come(lines) >= self.rules.background_lines
    }

    /// Begins a run with the line that it chooses; `None` when there is none to clean. Programs are
    /// at number `now`.
    pub(crate) fn start(&mut self, lines: &Lines, now: Seq, choice: Choice) -> Option<Victim> {
        debug_assert!(self.run.is_none(), "a run must end before the next one begins");
        let chosen = self.choose(lines, now, choice)?;
        let is_for_room = !matches!(choice, Choice::Fold | Choice::Refresh(_));
        let worn = if is_for_room { self.worn_apart(lines) } else { None };
        let (line, cause) = match (worn, choice) {
            (Some(line), _) => (line, Cause::Wear),
            (None, Choice::Refresh(_)) => (chosen, Cause::Refresh),
            _ if lines.mode(chosen) == CellMode::Single => (chosen, Cause::Fold),
            _ => (chosen, Cause::Gc),
        };
        debug_assert_eq!(lines.state(line), LineState::Closed, "a policy chose {line:?}");
        self.credit = 0;
        self.run = Some(CleaningRun { line, next: 0, expected: 0, cause, kept: lines.kept(line) });
        Some(Victim { line, cause })
    }

    /// Asks the policy. With less than the reserve free (cleaning was interrupted by power cuts)
    /// the line that keeps least is taken whatever the policy: its pages find room.
    fn choose(&mut self, lines: &Lines, now: Seq, choice: Choice) -> Option<LineId> {
        if let Choice::Refresh(line) = choice {
            return Some(line);
        }
        if choice == Choice::LeastKept || self.is_below_reserve(lines) {
            return lines.least_kept();
        }
        if choice == Choice::Fold {
            return lines.oldest_single();
        }
        let situation = Situation { lines, now, choices: self.rules.choices, rng: &mut self.rng };
        let line = (self.rules.policy.choose)(situation)?;
        let garbage = lines.pages_per_line().saturating_sub(lines.kept(line));
        let least = match choice {
            Choice::Worthwhile => self.rules.least_garbage,
            Choice::Idle => self.rules.least_garbage.max(1),
            _ => 0,
        };
        (garbage >= least).then_some(line)
    }

    fn is_below_reserve(&self, lines: &Lines) -> bool {
        lines.free() + 1 < self.rules.least_reserve
    }

    /// The least worn closed line, when static wear levelling is due: once in so many times that
    /// this is asked, which is for each run and for each merge of a log line.
    pub(crate) fn worn_apart(&mut self, lines: &Lines) -> Option<LineId> {
        if self.rules.wear_spread == 0 || self.is_below_reserve(lines) {
            return None;
        }
        self.runs_since_wear_check += 1;
        if self.runs_since_wear_check < RUNS_PER_WEAR_CHECK {
            return None;
        }
        self.runs_since_wear_check = 0;
        let most = lines.ids().map(|line| lines.erases(line)).max()?;
        let least =
            lines.closed().iter().copied().min_by_key(|&line| (lines.erases(line), line))?;
        (most - lines.erases(least) > self.rules.wear_spread).then_some(least)
    }

    /// Adds what the write of one host page is worth: `kept` moves for every `pages - kept` pages
    /// freed.
    #[inline]
    pub(crate) fn earn(&mut self) {
        self.credit += self.run.map_or(0, |run| u64::from(run.kept));
    }

    /// Takes the credit for a step of the run that moves `pages` pages, or those that are left, if
    /// there is as much.
    #[inline]
    pub(crate) fn spend(&mut self, lines: &Lines, pages: u32) -> bool {
        let Some(run) = self.run else { return false };
        let pages = pages.min(lines.kept(run.line)).max(1);
        let price = run.freed(lines) * u64::from(pages);
        let affordable = self.credit >= price || run.kept == 0;
        if affordable {
            self.credit = self.credit.saturating_sub(price);
        }
        affordable
    }

    /// The next step of the run. A page to move is named again until [`Cleaner::moved`] is told of
    /// it.
    #[inline]
    pub(crate) fn next_step(&mut self, lines: &Lines) -> CleaningStep {
        let next = self.next_page(lines);
        let Some(CleaningRun { line, kept, cause, .. }) = self.run else {
            return CleaningStep::Idle;
        };
        if let Some(ppn) = next {
            return CleaningStep::Move(ppn, cause);
        }
        self.run = None;
        CleaningStep::Emptied { line, kept }
    }

    /// The next valid page of the run.
    #[inline(always)] // for each page that is moved
    pub(crate) fn next_page(&mut self, lines: &Lines) -> Option<Ppn> {
        let run = self.run.as_mut()?;
        let next = lines.next_valid(run.line, run.next);
        run.next = next.unwrap_or_else(|| lines.pages_in(run.line));
        next.map(|index| lines.page(run.line, index))
    }

    /// Shows the valid pages of the run from the page that was named last on, at most `most`.
    #[inline]
    pub(crate) fn each_page_ahead(&self, lines: &Lines, most: u32, show: impl FnMut(Ppn)) {
        if let Some(run) = self.run {
            lines.each_valid(run.line, run.next, most, show);
        }
    }

    /// The page that was named last has moved. One that found no room must not be behind the run:
    /// it would be erased.
    #[inline]
    pub(crate) fn moved(&mut self) {
        if let Some(run) = &mut self.run {
            run.next += 1;
        }
    }

    /// The line of the run, and those of its pages that come soon and were not returned before.
    #[inline]
    pub(crate) fn look_ahead(&mut self, lines: &Lines) -> Option<(LineId, Range<u32>)> {
        let run = self.run.as_mut()?;
        let until = (run.next + AHEAD).min(lines.pages_in(run.line));
        let ahead = run.expected..until;
        run.expected = run.expected.max(until);
        Some((run.line, ahead))
    }

    /// A line is empty, and may be erased from `ready` on: when all pages that were moved out of it
    /// are durable.
    pub(crate) fn await_erase(&mut self, line: LineId, ready: SimTime) {
        debug_assert!(
            self.awaiting_erase.back().is_none_or(|(last, _)| *last <= ready),
            "erases come in order"
        );
        self.awaiting_erase.push_back((ready, line));
    }

    /// The line that waits longest for its erase, and when it may be erased.
    #[inline]
    pub(crate) fn next_erase(&self) -> Option<(SimTime, LineId)> {
        self.awaiting_erase.front().copied()
    }

    /// The line that waits longest waits no more.
    pub(crate) fn erase_begins(&mut self) {
        self.awaiting_erase.pop_front();
    }
}
