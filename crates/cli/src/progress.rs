//! Progress: a bar for each run on a terminal, and elsewhere a line on standard error from time to
//! time.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dovetail_lab::{Progress, Stage};
use dovetail_time::format_count;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::log;

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Tells on standard error, every ten seconds, that something long goes on.
pub(crate) struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Begins now; it ends when it is dropped.
    pub(crate) fn new(what: String) -> Self {
        let (stop, stopped) = channel();
        let begun = Instant::now();
        let thread = (!log::is_on()).then(|| {
            std::thread::spawn(move || {
                while stopped.recv_timeout(LINE_EVERY) == Err(RecvTimeoutError::Timeout) {
                    eprintln!("dovetail: {what}: {} s", begun.elapsed().as_secs());
                }
            })
        });
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.take();
        // it never panics
        self.thread.take().map(JoinHandle::join);
    }
}

/// The bars of all runs. On anything but a terminal they show nothing, nor where a
/// log would run through them.
pub(crate) struct Bars {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
    /// True for a run that has come to its trace or workload.
    running: Vec<AtomicBool>,
}

impl Bars {
    pub(crate) fn new(labels: &[String]) -> Self {
        let target =
            if log::is_on() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let all = MultiProgress::with_draw_target(target);
        let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).min(40);
        let template = "{prefix} {bar:24} {percent:>3}% {msg}, {eta} left";
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bars = labels.iter().map(|label| {
            let bar = ProgressBar::new(1)
                .with_style(style.clone())
                .with_prefix(format!("{label:width$.width$}"));
            all.add(bar)
        });
        let bars = bars.collect();
        let running = labels.iter().map(|_| AtomicBool::new(false)).collect();
        Self { all, bars, running }
    }

    pub(crate) fn tell(&self, index: usize, progress: Progress) {
        let bar = &self.bars[index];
        let stage = match progress.stage {
            Stage::Precondition => "preconditioning",
            Stage::Prepare => "making files",
            Stage::Run => "running",
        };
        let is_running = progress.stage == Stage::Run;
        if self.running[index].swap(is_running, Ordering::Relaxed) != is_running {
            // Rate and time left start anew.
            bar.reset();
        }
        if progress.total > 0 {
            bar.set_length(progress.total);
            bar.set_position(progress.done.min(progress.total));
        } else if let Ok(style) = ProgressStyle::with_template("{prefix} {elapsed} {msg}") {
            bar.set_style(style);
        }
        let rate = progress.requests as f64 / bar.elapsed().as_secs_f64().max(1e-3);
        bar.set_message(format!("{stage} {} requests/s", format_count(rate as u64)));
    }

    pub(crate) fn done(&self, index: usize) {
        self.bars[index].finish_and_clear();
    }

    pub(crate) fn clear(&self) {
        // A terminal that has gone away is no reason to fail.
        let _ = self.all.clear();
    }
}
