//! The thread that does the file system's background work when it is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dovetail_vfs::FileSystem;
use tracing::info;

use crate::shared::Shared;

/// A call may bring the next wake-up forward; it is noticed after this time at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Calls `wake` when it is due, until it is stopped.
#[derive(Debug)]
pub(crate) struct Waker {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl Waker {
    pub(crate) fn start(shared: Shared) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || {
            while !stopped.load(Ordering::Acquire) {
                thread::park_timeout(work_that_is_due(&shared));
            }
        };
        Ok(Self { thread: thread::Builder::new().name("wake".into()).spawn(work)?, stop })
    }

    /// Ends the thread, after the work that it is at.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let _ = self.thread.join(); // a panic in there has poisoned the lock, which every call tells
    }
}

/// Does what is due and returns how long there is nothing to do.
fn work_that_is_due(shared: &Shared) -> Duration {
    let is_due = |fs: &dyn FileSystem| fs.next_wake().is_some_and(|due| due <= shared.now().time);
    let begin = shared.now().time;
    let next = shared.call(|fs| {
        let worked = is_due(fs);
        if worked {
            fs.wake()?;
        }
        Ok((worked, fs.next_wake()))
    });
    if let Ok((true, _)) = next {
        info!(us = shared.now().time.since(begin).as_ns() / 1000, "background work");
    }
    match next {
        Ok((_, Some(due))) => Duration::from_nanos(due.since(shared.now().time).as_ns())
            .clamp(Duration::from_millis(1), LOOK_AGAIN),
        Ok((_, None)) | Err(_) => LOOK_AGAIN,
    }
}

#[cfg(test)]
mod tests;
