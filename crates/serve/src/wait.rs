//! Waits for files that can be read, and for answers that are due.

use std::io;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;

use crate::pace::Awake;

/// Lets waits of this thread end as exactly as the kernel can; they may be 50 us late otherwise.
pub(crate) fn end_waits_exactly() {
    // without it times are less exact
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Waits for the events of files, or for so long; `None` waits as long as it takes. A signal ends
/// it, too.
///
/// # Errors
/// Those of the system.
pub(crate) fn poll(files: &mut [PollFd<'_>], within: Option<Duration>) -> io::Result<()> {
    let within = within.map(|within| Timespec {
        tv_sec: within.as_secs() as i64,
        tv_nsec: within.subsec_nanos().into(),
    });
    match rustix::event::poll(files, within.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits by `look`, which is given a time to wait and tells what it saw, until it saw something or
/// something else is due. It may end earlier with nothing seen.
///
/// # Errors
/// Those of `look`.
pub(crate) fn until<S>(
    due: Option<Instant>,
    awake: &Awake,
    is_something: impl Fn(&S) -> bool,
    mut look: impl FnMut(Option<Duration>) -> io::Result<S>,
) -> io::Result<S> {
    let Some(due) = due else { return look(None) };
    let left = due.saturating_duration_since(Instant::now());
    if left > awake.last_part() {
        return look(Some(left - awake.last_part()));
    }
    let Some(_leave) = awake.leave() else { return look(Some(left)) };
    loop {
        let seen = look(Some(Duration::ZERO))?;
        if is_something(&seen) || Instant::now() >= due {
            return Ok(seen);
        }
        thread::yield_now();
    }
}
