//! The points of a sweep that are not finished, performed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::budget::Budget;
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

/// Counts of a sweep so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Performed {
    /// Points that were finished before.
    pub before: usize,
    /// Points that were finished now, failed ones included.
    pub now: usize,
    /// Points that failed, of these.
    pub failed: usize,
    /// Points of the shard in all.
    pub of: usize,
}

/// Performs the points of a shard that `folder` has no result of, up to `threads` at a time, and
/// within the budget: `need` says how many bytes a point takes. The result of each is kept as soon as
/// it is there. `told` hears of each.
///
/// # Errors
/// A result cannot be kept: points under way end, and no further one begins.
pub fn run(
    (sweep, shard): (&Sweep, Shard),
    folder: &Folder,
    (threads, budget): (usize, &Budget),
    need: impl Fn(&Point) -> u64 + Sync,
    work: impl Fn(&Point) -> Outcome + Sync,
    told: impl Fn(Performed, &Point) + Sync,
) -> Result<Performed, SweepError> {
    let finished = folder.records()?;
    let of_shard = || sweep.points().iter().filter(|point| shard.has(point.number));
    let waiting: Vec<&Point> =
        of_shard().filter(|point| !finished.contains_key(&point.number)).collect();
    let of = of_shard().count();
    let counts = Mutex::new(Performed { before: of - waiting.len(), of, ..Performed::default() });
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure = Mutex::new(None);
    let worker = || {
        while !ended.load(Ordering::Relaxed)
            && let Some(point) = waiting.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let part = budget.take(need(point));
            let outcome =
                if ended.load(Ordering::Relaxed) { Outcome::Stopped } else { work(point) };
            drop(part);
            let Some((record, whole)) = record(point, outcome) else {
                ended.store(true, Ordering::Relaxed);
                return;
            };
            let kept = whole.map_or(Ok(()), |text| folder.keep(point, &text));
            if let Err(error) = kept.and_then(|()| folder.append(&record)) {
                ended.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                return;
            }
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.now += 1;
            counts.failed += usize::from(record.error.is_some());
            told(*counts, point);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, waiting.len().max(1)) {
            scope.spawn(worker);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(counts.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// The line of a point, and its whole result; `None` if it was stopped.
fn record(point: &Point, outcome: Outcome) -> Option<(Record, Option<String>)> {
    let of = |runs, error| Record { point: point.number, runs, error };
    match outcome {
        Outcome::Done(runs, whole) => Some((of(runs, None), whole)),
        Outcome::Failed(why) => Some((of(Vec::new(), Some(why)), None)),
        Outcome::Stopped => None,
    }
}
