//! Progress: a bar for each run on a terminal, and elsewhere a line on standard error from time to
//! time.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dovetail_lab::{Progress, Stage};
use dovetail_time::{format_bytes, format_count};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::call::Watch;
use crate::{log, to_stderr};

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Between two looks at a bar.
const BAR_EVERY: Duration = Duration::from_millis(100);

/// Time after which a stage has a rate.
const RATE_AFTER: Duration = Duration::from_secs(1);

/// Tells on standard error, every ten seconds, that something long goes on, and its share if that
/// is known.
pub(crate) struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Percent that are done.
    percent: Arc<AtomicU64>,
}

/// A share that nobody has told.
const UNKNOWN: u64 = u64::MAX;

impl Heartbeat {
    /// Begins now; it ends when it is dropped.
    pub(crate) fn new(what: String) -> Self {
        let (stop, stopped) = channel();
        let begun = Instant::now();
        let percent = Arc::new(AtomicU64::new(UNKNOWN));
        let told = Arc::clone(&percent);
        let thread = (!log::is_on()).then(|| {
            std::thread::spawn(move || {
                while stopped.recv_timeout(LINE_EVERY) == Err(RecvTimeoutError::Timeout) {
                    let percent = told.load(Ordering::Relaxed);
                    to_stderr(&beat(&what, percent, begun.elapsed()));
                }
            })
        });
        Self { stop: Some(stop), thread, percent }
    }

    /// Tells that `done` of `all` are done.
    pub(crate) fn tell(&self, done: u64, all: u64) {
        let percent = (done * 100).checked_div(all).map_or(UNKNOWN, |percent| percent.min(100));
        self.percent.store(percent, Ordering::Relaxed);
    }
}

fn beat(what: &str, percent: u64, since: Duration) -> String {
    let share = if percent == UNKNOWN { String::new() } else { format!(" {percent} %,") };
    format!("{what}:{share} {} s", since.as_secs())
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.take();
        // it never panics
        self.thread.take().map(JoinHandle::join);
    }
}

/// Progress of work on bytes: after a second a bar on a terminal, and elsewhere a line on standard
/// error every ten seconds.
pub(crate) struct Meter {
    what: String,
    bar: ProgressBar,
    has_lines: bool,
    begun: Instant,
    /// Time of the last line, or of the last look at the bar.
    last: Instant,
}

impl Meter {
    /// Begins now.
    pub(crate) fn new(what: String) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let shows = !log::is_on() && is_terminal;
        let bar = if shows { ProgressBar::new(1) } else { ProgressBar::hidden() };
        let now = Instant::now();
        Self { what, bar, has_lines: !log::is_on() && !is_terminal, begun: now, last: now }
    }

    /// Tells how many bytes are done, of so many; 0 if nobody knows.
    pub(crate) fn tell(&mut self, done: u64, total: u64) {
        let (since, last) = (self.begun.elapsed(), self.last.elapsed());
        if self.has_lines && last >= LINE_EVERY {
            self.last = Instant::now();
            to_stderr(&format!("{}: {}", self.what, bytes_sentence(done, total, since)));
        } else if !self.has_lines && since >= RATE_AFTER && last >= BAR_EVERY {
            self.last = Instant::now();
            let template = if total > 0 { "{bar:24} {msg}" } else { "{msg}" };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
            self.bar.set_length(total.max(1));
            self.bar.set_position(done.min(total));
            self.bar.set_message(format!("{}: {}", self.what, bytes_sentence(done, total, since)));
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Tells the share of bytes, their rate and the time that is left, so long after the begin.
fn bytes_sentence(done: u64, total: u64, since: Duration) -> String {
    let seconds = since.as_secs_f64().max(1e-3);
    let rate = format_bytes((done as f64 / seconds) as u64);
    if total == 0 {
        return format!("{}, {rate}/s", format_bytes(done));
    }
    let share = done.min(total) as f64 / total as f64;
    let left = (done > 0).then(|| seconds * (1.0 - share) / share);
    let left = left.map(|left| format!(", {left:.0} s left")).unwrap_or_default();
    format!("{:.0} %, {rate}/s{left}", share * 100.0)
}

/// A count of many like things: a bar on a terminal, a line every ten seconds elsewhere.
pub(crate) struct Counter {
    bar: Option<ProgressBar>,
    unit: &'static str,
    begun: Instant,
    last: Mutex<Instant>,
}

impl Counter {
    /// Counts `unit`, a word such as "points".
    pub(crate) fn new(unit: &'static str) -> Self {
        let now = Instant::now();
        let bar = (std::io::stderr().is_terminal() && !log::is_on()).then(|| ProgressBar::new(0));
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} {eta} left");
        if let (Some(bar), Ok(style)) = (&bar, style) {
            bar.set_style(style);
        }
        Self { bar, unit, begun: now, last: Mutex::new(now) }
    }

    /// So many of them are done; the last was `name`.
    pub(crate) fn tell(&self, done: usize, of: usize, name: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            bar.set_message(name.to_owned());
            return;
        }
        let mut last = locked(&self.last);
        if last.elapsed() >= LINE_EVERY {
            *last = Instant::now();
            let seconds = self.begun.elapsed().as_secs();
            to_stderr(&format!("{done} of {of} {} in {seconds} s", self.unit));
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The bars of all runs. On anything but a terminal they show nothing, nor where a
/// log would run through them.
pub(crate) struct Bars {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
    /// True for a run that has come to its trace or workload.
    running: Vec<AtomicBool>,
    /// Lines in place of bars, where there is no terminal.
    lines: Option<Lines>,
}

/// Lines on standard error, one every ten seconds.
struct Lines {
    labels: Vec<String>,
    /// Time of the last line.
    last: Mutex<Instant>,
    /// Begin of each run's stage.
    begun: Vec<Mutex<Instant>>,
}

impl Lines {
    fn new(labels: &[String]) -> Self {
        let now = Instant::now();
        let begun = labels.iter().map(|_| Mutex::new(now)).collect();
        Self { labels: labels.to_vec(), last: Mutex::new(now), begun }
    }

    /// Another stage of a run begins.
    fn begin(&self, index: usize) {
        *locked(&self.begun[index]) = Instant::now();
    }

    /// Tells of a run, if the last line is long ago.
    fn tell(&self, index: usize, progress: Progress) {
        let begun = locked(&self.begun[index]).elapsed();
        let mut last = locked(&self.last);
        // of a stage that has just begun nobody knows the rate
        if last.elapsed() >= LINE_EVERY && begun >= RATE_AFTER {
            *last = Instant::now();
            to_stderr(&format!("{}: {}", self.labels[index], sentence(progress, begun)));
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells a run's stage, its share, its rate and the time that is left, so long after it began.
fn sentence(progress: Progress, since: Duration) -> String {
    let seconds = since.as_secs_f64().max(1e-3);
    let rate = format_count((progress.requests as f64 / seconds) as u64);
    let share = (progress.total > 0)
        .then(|| progress.done.min(progress.total) as f64 / progress.total as f64);
    let percent = share.map(|share| format!(" {:.0} %", share * 100.0)).unwrap_or_default();
    let left = share.filter(|share| *share > 0.0).map(|share| seconds * (1.0 - share) / share);
    let left = left.map(|left| format!(", {left:.0} s left")).unwrap_or_default();
    format!("{}{percent}, {rate} requests/s{left}", name_of(progress.stage))
}

const fn name_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Precondition => "preconditioning",
        Stage::Prepare => "making files",
        Stage::Run => "running",
    }
}

/// Time in which a rate says nothing yet.
const SHORT: Duration = Duration::from_millis(500);

/// A bar of a run that knows how far it has come.
fn with_share() -> ProgressStyle {
    let template = "{prefix} {bar:24} {percent:>3}%, {eta} left {msg}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Bars {
    pub(crate) fn new(labels: &[String]) -> Self {
        let target =
            if log::is_on() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let all = MultiProgress::with_draw_target(target);
        let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).min(40);
        let style = with_share();
        let bars = labels.iter().map(|label| {
            let bar = ProgressBar::new(1)
                .with_style(style.clone())
                .with_prefix(format!("{label:width$.width$}"));
            all.add(bar)
        });
        let bars = bars.collect();
        let running = labels.iter().map(|_| AtomicBool::new(false)).collect();
        let has_lines = !log::is_on() && !std::io::stderr().is_terminal();
        Self { all, bars, running, lines: has_lines.then(|| Lines::new(labels)) }
    }

    pub(crate) fn tell(&self, index: usize, progress: Progress) {
        let bar = &self.bars[index];
        let stage = name_of(progress.stage);
        let is_running = progress.stage == Stage::Run;
        if self.running[index].swap(is_running, Ordering::Relaxed) != is_running {
            // Rate and time left start anew.
            bar.reset();
            self.lines.iter().for_each(|lines| lines.begin(index));
        }
        self.lines.iter().for_each(|lines| lines.tell(index, progress));
        if progress.total > 0 {
            bar.set_style(with_share());
            bar.set_length(progress.total);
            bar.set_position(progress.done.min(progress.total));
        } else if let Ok(style) = ProgressStyle::with_template("{prefix} {elapsed} {msg}") {
            bar.set_style(style);
        }
        let elapsed = bar.elapsed();
        bar.set_message(match elapsed < SHORT {
            true => stage.to_string(),
            false => {
                let rate = progress.requests as f64 / elapsed.as_secs_f64();
                format!("{stage} {} requests/s", format_count(rate as u64))
            }
        });
    }
}

/// Whoever hears of the runs of a call: the terminal, or a program that watches it.
pub(crate) enum Seen<'a> {
    Terminal(Bars),
    Program { watch: &'a Watch<'a>, labels: Vec<String> },
}

impl<'a> Seen<'a> {
    /// The program that watches the runs of these labels, or else the terminal.
    pub(crate) fn of(labels: Vec<String>, watch: Option<&'a Watch<'a>>) -> Self {
        match watch {
            Some(watch) => Self::Program { watch, labels },
            None => Self::Terminal(Bars::new(&labels)),
        }
    }

    /// A run has come so far.
    pub(crate) fn tell(&self, run: usize, progress: Progress) {
        match self {
            Self::Terminal(bars) => bars.tell(run, progress),
            Self::Program { watch, labels } => (watch.tell)(&labels[run], progress),
        }
    }

    /// A run has ended.
    pub(crate) fn done(&self, run: usize) {
        if let Self::Terminal(bars) = self {
            bars.bars[run].finish_and_clear();
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        // a terminal that has gone away is no reason to fail
        let _ = self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_has_its_share_if_that_is_known() {
        let beat = |percent| beat("checking", percent, Duration::from_secs(20));
        assert_eq!([beat(UNKNOWN), beat(45)], ["checking: 20 s", "checking: 45 %, 20 s"]);
        let told = Heartbeat::new("checking".into());
        for (done, all, percent) in [(0, 0, UNKNOWN), (9, 20, 45), (30, 20, 100)] {
            told.tell(done, all);
            assert_eq!(told.percent.load(Ordering::Relaxed), percent);
        }
    }

    #[test]
    fn bytes_have_share_rate_and_the_time_that_is_left() {
        let after = Duration::from_secs(10);
        let sentence = |done: u64, total: u64| bytes_sentence(done << 20, total << 20, after);
        assert_eq!(sentence(25, 100), "25 %, 2.50 MiB/s, 30 s left");
        assert_eq!(sentence(25, 0), "25.0 MiB, 2.50 MiB/s");
        assert_eq!(sentence(0, 100), "0 %, 0 B/s");
        assert_eq!(sentence(200, 100), "100 %, 20.0 MiB/s, 0 s left");
    }

    #[test]
    fn a_line_has_share_rate_and_the_time_that_is_left() {
        let progress = |done, total| Progress { stage: Stage::Run, done, total, requests: 5000 };
        let after = Duration::from_secs(10);
        assert_eq!(sentence(progress(25, 100), after), "running 25 %, 500 requests/s, 30 s left");
        assert_eq!(sentence(progress(0, 100), after), "running 0 %, 500 requests/s");
        assert_eq!(sentence(progress(0, 0), after), "running, 500 requests/s");
        assert_eq!(sentence(progress(200, 100), after), "running 100 %, 500 requests/s, 0 s left");
    }
}
