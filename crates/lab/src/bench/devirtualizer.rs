//! The devirtualizer as an actor: it lets pointers lead to the drive's own addresses, beside the
//! workload.
//!
//! It works batch by batch. A batch needs answers of the drive, so it is carried out directly, and
//! its lane is exclusive: it waits for the calls under way, and calls that threads make meanwhile
//! wait for it. Between two batches those go on.

use dovetail_devirt::{Hot, Report, Run as Batches, Selection, Way};
use dovetail_time::{Ratio, SimSpan, SimTime, parse_bytes, parse_span};
use dovetail_vfs::{Devirtualize, Error, Moment};
use dovetail_workload::{Call, ThreadId};
use serde::{Deserialize, Serialize};

use super::BenchError;
use super::system::System;
use crate::results::{DevirtualizeResult, DevirtualizeRun, DevirtualizeWork};

/// The times at which the devirtualizer runs, as stacks and the command line give them: a time is
/// as `60s`, a size as `8MiB`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// Each time that so much time has passed.
    pub every: Option<String>,
    /// Size of the drive's map above which a run begins, in bytes at full scale.
    pub pressure: Option<String>,
    /// Time without a call after which a run begins; such a run pauses as soon as a call is made.
    pub idle: Option<String>,
    /// Files that changed within this time before a run are left.
    pub hot: Option<String>,
}

/// The same, read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Triggers {
    every: Option<SimSpan>,
    pressure: Option<f64>,
    idle: Option<SimSpan>,
    hot: SimSpan,
}

impl Schedule {
    /// Reads `every=60s,pressure=8MiB,idle=1s,hot=3s`, of which the first three are there or not.
    ///
    /// # Errors
    /// Description of the fault, as one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut schedule = Self::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let field = match name.trim() {
                "every" => &mut schedule.every,
                "pressure" => &mut schedule.pressure,
                "idle" => &mut schedule.idle,
                "hot" => &mut schedule.hot,
                other => return Err(format!("'{other}' is none of every, pressure, idle and hot")),
            };
            *field = Some(value.trim().into());
        }
        schedule.check()?;
        Ok(schedule)
    }

    /// Nothing, if it can be kept.
    ///
    /// # Errors
    /// Description of the fault, as one sentence.
    pub fn check(&self) -> Result<(), String> {
        self.triggers().map(drop)
    }

    fn triggers(&self) -> Result<Triggers, String> {
        let span = |name: &str, text: &Option<String>| {
            let read = text.as_deref().map(parse_span).transpose();
            read.map_err(|error| format!("{name}: {error}"))
        };
        let bytes = self.pressure.as_deref().map(parse_bytes).transpose();
        let triggers = Triggers {
            every: span("every", &self.every)?,
            pressure: bytes
                .map_err(|error| format!("pressure: {error}"))?
                .map(|bytes| bytes as f64),
            idle: span("idle", &self.idle)?,
            hot: span("hot", &self.hot)?.unwrap_or(SimSpan::ZERO),
        };
        if triggers.every == Some(SimSpan::ZERO) {
            return Err("every: give more than no time".into());
        }
        if triggers.every.is_none() && triggers.pressure.is_none() && triggers.idle.is_none() {
            return Err("give at least one of every, pressure and idle".into());
        }
        Ok(triggers)
    }
}

/// The reason why a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    Interval,
    Pressure,
    Idle,
}

impl Trigger {
    fn name(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Pressure => "pressure",
            Self::Idle => "idle",
        }
    }
}

/// A call that waits for a batch.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) thread: ThreadId,
    /// The time it was made.
    pub(super) asked: SimTime,
    pub(super) call: Call,
}

/// Result of a run.
#[derive(Debug)]
struct Episode {
    trigger: Trigger,
    begin: SimTime,
    end: SimTime,
    /// Of it all, the time of its batches.
    work: SimSpan,
    report: Report,
    stalled_calls: u64,
    stalled: SimSpan,
    map_before: u64,
    map_after: u64,
}

/// A run under way.
#[derive(Debug)]
struct Underway {
    /// From its first turn on.
    batches: Option<Batches>,
    episode: Episode,
}

/// The devirtualizer.
#[derive(Debug)]
pub(super) struct Devirtualizer {
    triggers: Triggers,
    underway: Option<Underway>,
    past: Vec<Episode>,
    /// The next batch is to be carried out as soon as nothing else is under way.
    wants_turn: bool,
    held: Vec<Held>,
    /// Since when no call was made; a run for idleness comes only once in that time.
    quiet_since: SimTime,
    idle_timer: bool,
    idle_done: bool,
    /// A map beyond this is pressure.
    limit: u64,
}

impl Devirtualizer {
    pub(super) fn new(schedule: &Schedule, scale: Ratio) -> Result<Self, String> {
        let triggers = schedule.triggers()?;
        let triggers =
            Triggers { pressure: triggers.pressure.map(|bytes| bytes * scale.value()), ..triggers };
        Ok(Self {
            triggers,
            underway: None,
            past: Vec::new(),
            wants_turn: false,
            held: Vec::new(),
            quiet_since: SimTime::ZERO,
            idle_timer: false,
            idle_done: false,
            limit: triggers.pressure.map_or(u64::MAX, |bytes| bytes as u64),
        })
    }

    pub(super) fn every(&self) -> Option<SimSpan> {
        self.triggers.every
    }

    pub(super) fn wants_turn(&self) -> bool {
        self.wants_turn
    }

    /// A run begins, or the one under way goes on.
    pub(super) fn begin(&mut self, now: SimTime, trigger: Trigger, map_bytes: u64) {
        self.wants_turn = true;
        let underway = self.underway.get_or_insert_with(|| Underway {
            batches: None,
            episode: Episode {
                trigger,
                begin: now,
                end: now,
                work: SimSpan::ZERO,
                report: Report::default(),
                stalled_calls: 0,
                stalled: SimSpan::ZERO,
                map_before: map_bytes,
                map_after: map_bytes,
            },
        });
        if underway.episode.trigger == Trigger::Idle {
            underway.episode.trigger = trigger;
        }
    }

    /// Begins a run if the map takes more than it may.
    pub(super) fn look_at_map(&mut self, now: SimTime, map_bytes: u64) {
        if map_bytes > self.limit && !self.wants_turn {
            self.begin(now, Trigger::Pressure, map_bytes);
        }
    }

    /// Nothing is under way from `now` on; returns when to ask whether that is still so.
    pub(super) fn quiet_from(&mut self, now: SimTime) -> Option<SimTime> {
        let idle = self.triggers.idle?;
        (self.quiet_since, self.idle_done) = (now, false);
        let is_set = std::mem::replace(&mut self.idle_timer, true);
        (!is_set).then(|| now + idle)
    }

    /// The timer of idleness: begins a run if it has been quiet for so long; otherwise returns when
    /// to ask again.
    pub(super) fn idle_timer(
        &mut self,
        now: SimTime,
        is_quiet: bool,
        map_bytes: u64,
    ) -> Option<SimTime> {
        self.idle_timer = false;
        let due = self.quiet_since + self.triggers.idle?;
        if !is_quiet || self.idle_done {
            return None;
        }
        if now < due {
            self.idle_timer = true;
            return Some(due);
        }
        self.idle_done = true;
        self.begin(now, Trigger::Idle, map_bytes);
        None
    }

    /// Lets a call wait for the next batch.
    pub(super) fn hold(&mut self, call: Held) {
        self.held.push(call);
    }

    /// Carries out a batch on a system on which nothing else is under way; returns the calls that
    /// waited for it. `None` if the file system has nothing to devirtualize.
    pub(super) fn act(&mut self, system: &mut System) -> Result<Option<Vec<Held>>, BenchError> {
        let at = system.machine.now();
        system.fs.set_now(Moment::at(at));
        let Some(fs) = system.fs.devirtualizer() else { return Ok(None) };
        system.planner.begin_direct();
        let stepped = self.step(fs);
        system.planner.end_direct()?;
        stepped.map_err(|source| BenchError::Devirtualize { at, source })?;
        system.machine.skip_to(fs.now());
        Ok(Some(std::mem::take(&mut self.held)))
    }

    /// Carries out a batch, from the file system's time on; the run is over where it has no room.
    fn step(&mut self, fs: &mut dyn Devirtualize) -> Result<(), Error> {
        let Some(underway) = &mut self.underway else { return Ok(()) };
        let begun = fs.now();
        let stepped = underway.step(fs, self.triggers.hot);
        underway.episode.work += fs.now().since(begun);
        match stepped {
            Ok(true) => Ok(()),
            Ok(false) | Err(Error::NoSpace) => {
                self.wants_turn = false;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Ends or pauses the run after a batch and the calls that waited for it.
    pub(super) fn acted(&mut self, now: SimTime, map_bytes: u64, is_quiet: bool) {
        let Some(underway) = &mut self.underway else { return };
        (underway.episode.end, underway.episode.map_after) = (now, map_bytes);
        if self.wants_turn {
            self.wants_turn = underway.episode.trigger != Trigger::Idle || is_quiet;
            return;
        }
        self.past.extend(self.underway.take().map(|underway| underway.episode));
        // assumed: a map that a run cannot bring below the limit is let grow by an eighth of it
        // before the next
        if let Some(limit) = self.triggers.pressure {
            self.limit = limit.max(map_bytes as f64 + limit / 8.0) as u64;
        }
    }

    /// A call had to wait for a batch.
    pub(super) fn stalled(&mut self, time: SimSpan) {
        let last = self.past.last_mut();
        if let Some(episode) = self.underway.as_mut().map(|underway| &mut underway.episode).or(last)
        {
            episode.stalled_calls += 1;
            episode.stalled += time;
        }
    }

    /// Runs that began at `start` or later, the one under way among them.
    pub(super) fn result(&self, start: SimTime) -> DevirtualizeResult {
        let episodes =
            self.past.iter().chain(self.underway.as_ref().map(|underway| &underway.episode));
        let each: Vec<DevirtualizeRun> = episodes
            .filter(|episode| episode.begin >= start)
            .map(|episode| episode.result(start))
            .collect();
        let mut total = DevirtualizeWork::default();
        each.iter().for_each(|run| total.add(&run.work));
        DevirtualizeResult { count: each.len() as u64, total, each }
    }
}

impl Underway {
    fn step(&mut self, fs: &mut dyn Devirtualize, hot: SimSpan) -> Result<bool, Error> {
        let mut batches = match self.batches.take() {
            Some(batches) => batches,
            None => {
                let selection = Selection::due(fs, Hot { within: hot })?;
                Batches::new(fs, Way::ToDevice, selection)?
            }
        };
        let more = batches.step(fs);
        self.episode.report = batches.report();
        self.batches = Some(batches);
        more
    }
}

impl Episode {
    fn result(&self, start: SimTime) -> DevirtualizeRun {
        DevirtualizeRun {
            cause: self.trigger.name().into(),
            start_s: self.begin.since(start).as_secs_f64(),
            end_s: self.end.since(start).as_secs_f64(),
            work: DevirtualizeWork {
                time_s: self.work.as_secs_f64(),
                files: self.report.files,
                hot_files: self.report.hot_files,
                content_blocks: self.report.content_blocks,
                metadata_blocks: self.report.metadata_blocks,
                stalled_calls: self.stalled_calls,
                stalled_s: self.stalled.as_secs_f64(),
            },
            map_bytes_before: self.map_before,
            map_bytes_after: self.map_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_or_refused_in_a_sentence() {
        let schedule = Schedule::parse("every=60s, pressure=8MiB,hot=3s").unwrap();
        let triggers = schedule.triggers().unwrap();
        assert_eq!(triggers.every, Some(SimSpan::from_ms(60_000)));
        assert_eq!((triggers.pressure, triggers.idle), (Some(8_388_608.0), None));
        assert_eq!(triggers.hot, SimSpan::from_ms(3000));
        for (text, says) in [
            ("hot=3s", "at least one of every"),
            ("every=0s", "more than no time"),
            ("every=60", "is not a time"),
            ("sometimes", "'sometimes' is none of"),
            ("pressure=much", "pressure: 'much' is not a size"),
        ] {
            let error = Schedule::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
