//! Ctrl-C and SIGTERM: what was measured until then is still shown and written.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::Failure;
use crate::call::Watch;
use crate::output::is_captured;

/// Set by the first of these signals: runs end, and what they have is written. The second one ends
/// the program. Signals of a program that has called are its own: no one sets the flag there.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    if is_captured() {
        return Ok(stop);
    }
    for signal in [SIGINT, SIGTERM] {
        // the order counts: the second signal finds the flag set
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .map_err(Failure::failed)?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::failed)?;
    }
    Ok(stop)
}

/// The answer of work that is told how far it is: whether to go on.
pub(crate) fn unless_stopped(stop: &AtomicBool) -> ControlFlow<()> {
    match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// The flag that ends a call: that of the program that watches it, or of this process's signals.
pub(crate) enum Stop<'a> {
    Program(&'a AtomicBool),
    Signals(Arc<AtomicBool>),
}

impl<'a> Stop<'a> {
    pub(crate) fn of(watch: Option<&Watch<'a>>) -> Result<Self, Failure> {
        match watch {
            Some(watch) => Ok(Self::Program(watch.stop)),
            None => stop_flag().map(Self::Signals),
        }
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        match self {
            Self::Program(flag) => flag,
            Self::Signals(flag) => flag,
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }
}

/// Failure of a command that was stopped, and shows nothing of what it had measured.
pub(crate) fn stopped() -> Failure {
    Failure::Failed("stopped".into())
}

/// Failure of a command that was stopped, and shows the results of so many runs.
pub(crate) fn stopped_after(runs: usize) -> Failure {
    Failure::Failed(match runs {
        0 => "stopped before anything was measured".into(),
        _ => "stopped; what is shown was measured until then".into(),
    })
}
