//! The devirtualizer as an actor: it lets pointers lead to the drive's own addresses, beside the
//! workload.
//!
//! It works batch by batch, and each batch has two plans, which are played beside all others. The
//! first writes what must be on the drive before. The second begins with the drive's new addresses,
//! which are asked for when the first has been played, and ends when the rewritten pointers are
//! durable. Calls on the blocks of the batch wait for its end; all others go on.

use std::collections::BTreeMap;
use std::ops::Range;

use dovetail_devirt::{Hot, Report, Run as Batches, Selection, Unit, Way};
use dovetail_time::{Ratio, SimSpan, SimTime, parse_bytes, parse_span};
use dovetail_vfs::{Devirtualize, Error, Ino, Moment, Target};
use dovetail_workload::{Call, ThreadId};
use serde::{Deserialize, Serialize};

use super::BenchError;
use super::system::System;
use crate::lane::{Alarm, Lane};
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
    /// Part of the work that is one batch: `most`, or `metadata-block` as in the paper.
    pub unit: Option<String>,
}

/// The same, read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Triggers {
    every: Option<SimSpan>,
    pressure: Option<f64>,
    idle: Option<SimSpan>,
    hot: SimSpan,
    unit: Unit,
}

impl Schedule {
    /// Reads `every=60s,pressure=8MiB,idle=1s,hot=3s,unit=most`. At least one of the first three is
    /// needed.
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
                "unit" => &mut schedule.unit,
                other => {
                    return Err(format!(
                        "'{other}' is none of every, pressure, idle, hot and unit"
                    ));
                }
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
            unit: match self.unit.as_deref() {
                None | Some("most") => Unit::Most,
                Some("metadata-block") => Unit::MetadataBlock,
                Some(other) => {
                    return Err(format!("unit: '{other}' is neither most nor metadata-block"));
                }
            },
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
    /// Of it all, the time of its batches, from their preparation to their end.
    work: SimSpan,
    /// Sum of the squares of those times, in square seconds.
    squares: f64,
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

/// The plan of a batch that is being played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Commands that must be on the drive before the batch begins.
    Prepare,
    /// The batch, until its pointers are durable.
    Rename,
    /// Commands of a run that found nothing more to do.
    Last,
}

/// Blocks of files that are in work.
#[derive(Debug, Default)]
pub(super) struct InWork(BTreeMap<Ino, Vec<Range<u64>>>);

impl InWork {
    /// Blocks of the targets; of a pointer to a block of pointers, all of the file.
    fn of(targets: &[Target]) -> Self {
        let mut files = BTreeMap::<Ino, Vec<Range<u64>>>::new();
        for target in targets {
            let first = target.place.file_block;
            let blocks = if target.is_metadata {
                0..u64::MAX
            } else {
                first..first + u64::from(target.blocks)
            };
            files.entry(target.ino).or_default().push(blocks);
        }
        Self(files)
    }

    /// Is true if one of the file's blocks is in work.
    pub(super) fn has(&self, ino: Ino, blocks: &Range<u64>) -> bool {
        let ranges = self.0.get(&ino).into_iter().flatten();
        ranges.into_iter().any(|range| range.start < blocks.end && blocks.start < range.end)
    }
}

/// The devirtualizer.
#[derive(Debug)]
pub(super) struct Devirtualizer {
    triggers: Triggers,
    underway: Option<Underway>,
    past: Vec<Episode>,
    /// A run is to go on, with its next batch.
    wants_turn: bool,
    /// The plan that is being played, and the time at which its batch began.
    stage: Option<(Stage, SimTime)>,
    in_work: InWork,
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
            stage: None,
            in_work: InWork::default(),
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

    /// Blocks for which calls wait.
    pub(super) fn in_work(&self) -> &InWork {
        &self.in_work
    }

    /// A run begins, or the one under way goes on.
    pub(super) fn begin(&mut self, now: SimTime, trigger: Trigger, map_bytes: u64) {
        self.wants_turn = true;
        if matches!(self.stage, Some((Stage::Last, _))) {
            // that run found nothing more, and only its last commands are under way
            self.past.extend(self.underway.take().map(|underway| underway.episode));
        }
        let underway = self.underway.get_or_insert_with(|| Underway {
            batches: None,
            episode: Episode {
                trigger,
                begin: now,
                end: now,
                work: SimSpan::ZERO,
                squares: 0.0,
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

    /// Lets a call wait for the end of the batch under way.
    pub(super) fn hold(&mut self, call: Held) {
        self.held.push(call);
    }

    /// Begins the next batch if a run wants one and none is under way: looks for its blocks and
    /// writes what must be on the drive.
    pub(super) fn prepare(&mut self, system: &mut System) -> Result<(), BenchError> {
        if !self.wants_turn || self.stage.is_some() {
            return Ok(());
        }
        let (now, triggers) = (system.machine.now(), self.triggers);
        let Some(underway) = &mut self.underway else { return Ok(()) };
        let found = perform(system, |fs| underway.prepare(fs, triggers))?;
        self.wants_turn = found == Some(true);
        self.in_work = InWork::of(underway.batch().filter(|_| self.wants_turn).unwrap_or_default());
        let stage = if self.wants_turn { Stage::Prepare } else { Stage::Last };
        self.stage = Some((stage, now));
        Ok(())
    }

    /// The plan of the batch has been played, or there is room at the drive: begins the batch, or
    /// ends it and returns the calls that waited for it.
    pub(super) fn go_on(&mut self, system: &mut System) -> Result<Option<Vec<Held>>, BenchError> {
        let (Some((stage, begun)), Some(underway)) = (self.stage, &mut self.underway) else {
            return Ok(None);
        };
        if stage == Stage::Prepare {
            if let Some(later) = system.machine.room_from() {
                system.machine.wake_at(later, Lane::Devirtualizer(Alarm::Room));
                return Ok(None);
            }
            let renamed = perform(system, |fs| underway.rename(fs))?;
            self.wants_turn = renamed.is_some();
            self.stage = Some((Stage::Rename, begun));
            return Ok(None);
        }
        underway.episode.add_time(system.machine.now().since(begun));
        (self.stage, self.in_work) = (None, InWork::default());
        Ok(Some(std::mem::take(&mut self.held)))
    }

    /// Ends or pauses the run after a batch and the calls that waited for it have begun.
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

/// Does a part of a batch on the file system and starts the plan of it. `None` if there is no room
/// for it on the volume.
fn perform<T>(
    system: &mut System,
    part: impl FnOnce(&mut dyn Devirtualize) -> Result<T, Error>,
) -> Result<Option<T>, BenchError> {
    let at = system.machine.now();
    system.fs.set_now(Moment::at(at));
    let done = match system.fs.devirtualizer().map(part) {
        None | Some(Err(Error::NoSpace)) => None,
        Some(done) => Some(done.map_err(|source| BenchError::Devirtualize { at, source })?),
    };
    system.start_batch(at);
    Ok(done)
}

impl Underway {
    /// Prepares the next batch; `false` if there is none.
    fn prepare(&mut self, fs: &mut dyn Devirtualize, triggers: Triggers) -> Result<bool, Error> {
        let mut batches = match self.batches.take() {
            Some(batches) => batches,
            None => {
                let selection = Selection::due(fs, Hot { within: triggers.hot })?;
                Batches::new(fs, Way::ToDevice, selection)?.with_unit(triggers.unit)
            }
        };
        let found = batches.prepare(fs);
        self.batches = Some(batches);
        found
    }

    fn batch(&self) -> Option<&[Target]> {
        self.batches.as_ref().map(Batches::batch)
    }

    /// Rewrites the pointers of the batch and makes them durable.
    fn rename(&mut self, fs: &mut dyn Devirtualize) -> Result<(), Error> {
        let Some(batches) = &mut self.batches else { return Ok(()) };
        let renamed = batches.begin(fs).and_then(|()| batches.end(fs));
        self.episode.report = batches.report();
        renamed
    }
}

impl Episode {
    fn add_time(&mut self, batch: SimSpan) {
        self.work += batch;
        self.squares += batch.as_secs_f64().powi(2);
    }

    fn result(&self, start: SimTime) -> DevirtualizeRun {
        DevirtualizeRun {
            cause: self.trigger.name().into(),
            start_s: self.begin.since(start).as_secs_f64(),
            end_s: self.end.since(start).as_secs_f64(),
            work: DevirtualizeWork {
                time_s: self.work.as_secs_f64(),
                block_wait_s: self.squares / 2.0 / self.work.as_secs_f64().max(f64::MIN_POSITIVE),
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
