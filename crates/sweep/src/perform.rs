//! The points of a sweep that are not finished, performed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use dovetail_lab::run_in_order;
use serde_json::{Map, Value};

use crate::error::SweepError;
use crate::folder::Folder;
use crate::record::Record;
use crate::shard::Shard;
use crate::sweep::{Point, Sweep};

/// Outcome of a point.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Single figures of its runs; the whole result, if it is to be kept.
    Done(Vec<Map<String, Value>>, Option<String>),
    /// A sentence that says why it failed: a row too.
    Failed(String),
    /// It was ended before it was done; it is performed the next time.
    Stopped,
}

impl Outcome {
    /// The line of the point, and its whole result; `None` if it was stopped.
    pub fn into_record(self, point: &Point) -> Option<(Record, Option<String>)> {
        let of = |runs, error| Record { point: point.number, runs, error };
        match self {
            Self::Done(runs, whole) => Some((of(runs, None), whole)),
            Self::Failed(why) => Some((of(Vec::new(), Some(why)), None)),
            Self::Stopped => None,
        }
    }
}

/// Points of a shard that have no result yet; with `retries` also those that failed.
pub fn waiting<'a>(
    sweep: &'a Sweep,
    shard: Shard,
    finished: &BTreeMap<u32, Record>,
    retries: bool,
) -> Vec<&'a Point> {
    let is_waiting = |point: &&Point| {
        finished.get(&point.number).is_none_or(|found| retries && found.error.is_some())
    };
    let of_shard = sweep.points().iter().filter(|point| shard.has(point.number));
    of_shard.filter(is_waiting).collect()
}

/// Counts of a sweep so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Performed {
    /// Points that were finished before.
    pub before: usize,
    /// Points that were finished now, failed ones included.
    pub now: usize,
    /// Points of the shard that have failed, now or before.
    pub failed: usize,
    /// Points of the shard in all.
    pub of: usize,
}

/// Performs the points of a shard that `folder` has no result of, up to `threads` at a time. `order`
/// hears which are left, and gives their indices in the order in which they are begun. Before a
/// point begins, `reserve` waits for what it needs, and holds it until the point has ended. The
/// result of each is kept as soon as it is there. With `retries`, points that failed before are
/// performed again. `told` hears of each.
///
/// # Errors
/// A result cannot be kept: points under way end, and no further one begins.
pub fn run<R>(
    (sweep, shard): (&Sweep, Shard),
    folder: &Folder,
    (threads, retries): (usize, bool),
    order: impl FnOnce(&[&Point]) -> Vec<usize>,
    reserve: impl Fn(&Point) -> R + Sync,
    work: impl Fn(&Point) -> Outcome + Sync,
    told: impl Fn(Performed, &Point) + Sync,
) -> Result<Performed, SweepError> {
    let finished = folder.records()?;
    let of_shard = || sweep.points().iter().filter(|point| shard.has(point.number));
    let waiting = waiting(sweep, shard, &finished, retries);
    let of = of_shard().count();
    let is_failed = |point: &&Point| finished.get(&point.number).is_some_and(|r| r.error.is_some());
    let failed = if retries { 0 } else { of_shard().filter(is_failed).count() };
    let before = of - waiting.len();
    let counts = Mutex::new(Performed { before, now: 0, failed, of });
    let (ended, failure) = (AtomicBool::new(false), Mutex::new(None));
    let end = || ended.store(true, Ordering::Relaxed);
    let order = order(&waiting);
    run_in_order(&waiting, &order, threads, |_, point| {
        let part = reserve(point);
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let outcome = work(point);
        drop(part);
        let Some((record, whole)) = outcome.into_record(point) else { return end() };
        let kept = whole.map_or(Ok(()), |text| folder.keep(point.number, &text));
        if let Err(error) = kept.and_then(|()| folder.append(&record)) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            return end();
        }
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.now += 1;
        counts.failed += usize::from(record.error.is_some());
        told(*counts, point);
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(counts.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}
