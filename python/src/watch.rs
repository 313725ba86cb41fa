//! Work beside Python: without its lock, ended by Ctrl-C, with its progress told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dovetail_cli::call::{Progress, Stage, Watch};
use pyo3::prelude::*;

use crate::errors::internal;

/// Time between two looks at signals and progress (assumed): a key press is felt at once.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Shared {
    /// News since the last look, by the label of the run.
    news: Mutex<BTreeMap<String, Progress>>,
    is_done: Mutex<bool>,
    done: Condvar,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the waiting, however the work ends.
struct Done<'a>(&'a Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        *locked(&self.0.is_done) = true;
        self.0.done.notify_all();
    }
}

impl Shared {
    /// Waits until the work is done, but not long; true if it is.
    fn wait(&self) -> bool {
        let is_done = locked(&self.is_done);
        let waited = self.done.wait_timeout_while(is_done, LOOK_EVERY, |is_done| !*is_done);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn tell(&self, py: Python<'_>, progress: &Py<PyAny>) -> PyResult<()> {
        let news = std::mem::take(&mut *locked(&self.news));
        for (label, told) in news {
            let stage = match told.stage {
                Stage::Precondition => "precondition",
                Stage::Prepare => "prepare",
                Stage::Run => "run",
            };
            // 0 of an unknown whole
            let share = told.done.min(told.total) as f64 / told.total.max(1) as f64;
            progress.call1(py, (label, stage, share, told.requests))?;
        }
        Ok(())
    }
}

/// Performs `work` in a thread of its own, while this one looks for signals and calls `progress` with
/// label, stage, share and requests. An exception of either ends the work.
///
/// # Errors
/// That exception.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Watch<'_>) -> T + Send,
) -> PyResult<T> {
    let (shared, stop) = (Shared::default(), AtomicBool::new(false));
    let tell = |label: &str, progress| {
        locked(&shared.news).insert(label.into(), progress);
    };
    let mut exception = None;
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _done = Done(&shared);
            work(&Watch { stop: &stop, tell: &tell })
        });
        while !py.detach(|| shared.wait()) {
            // who has ended the work hears no more of it
            let progress = progress.filter(|_| exception.is_none());
            let told = progress.map_or(Ok(()), |progress| shared.tell(py, progress));
            if let Err(error) = py.check_signals().and(told) {
                stop.store(true, Ordering::Relaxed);
                exception.get_or_insert(error);
            }
        }
        worker.join()
    });
    match (exception, done) {
        (Some(error), _) => Err(error),
        (None, Err(_)) => Err(internal("a run panicked; its message is on standard error")),
        (None, Ok(done)) => {
            progress.map_or(Ok(()), |progress| shared.tell(py, progress))?;
            Ok(done)
        }
    }
}
