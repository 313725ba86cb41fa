//! Reading a trace: what all formats have in common.

use std::path::Path;

use dovetail_time::SimTime;

use super::blkparse::BlkEvent;
use super::detect::detect;
use super::error::TraceError;
use super::foreign::{Foreign, foreign};
use super::format::{Event, Format, State};
use super::lines::Lines;
use crate::file_trace::FileTrace;
use crate::request::Request;

/// Options for reading a trace. The default detects the format, stops at the first bad line, takes
/// every device and the dispatches of a blkparse trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// The format; `None` to tell it from the first lines.
    pub format: Option<Format>,
    /// Count bad lines ([`TraceReader::skipped`]) and go on, instead of stopping at the first.
    pub skip_bad: bool,
    /// Only requests of this device, exactly as the trace writes it: `MAJOR,MINOR` in blkparse, the
    /// file name in fio, the number of the disk, volume or device elsewhere. `None` takes all as if
    /// they were one, their addresses unchanged.
    pub device: Option<String>,
    /// Event of a blkparse trace that counts as a request; other formats have no events.
    pub blk_event: BlkEvent,
}

/// The requests of a trace, in the order of the file. After an error the iterator ends.
///
/// Times are relative to the first request that is returned and never go back: a request that
/// stands after a later one (the CPUs of a blkparse trace are merged only roughly) gets the time of
/// the latest before it.
pub struct TraceReader {
    lines: Lines,
    format: Format,
    state: State,
    skip_bad: bool,
    device: Option<String>,
    clock: Clock,
    skipped: u64,
    ended: bool,
}

/// Kind of the next line.
enum Step {
    Request(Request),
    Other,
    End,
}

impl TraceReader {
    /// Opens the trace at `path` (plain text, gzip or zstd, whatever its name) and finds its format
    /// out where `options` do not give it.
    ///
    /// # Errors
    /// [`TraceError::Open`], [`TraceError::Read`] and [`TraceError::Truncated`] of the file;
    /// [`TraceError::Empty`] and [`TraceError::UnknownFormat`] where the format is to be found out.
    pub fn open(path: impl AsRef<Path>, options: &TraceOptions) -> Result<Self, TraceError> {
        let lines = Lines::open(path.as_ref())?;
        if let Some(Foreign { kind, instead }) = foreign(lines.beginning()) {
            return Err(TraceError::Foreign { path: lines.path().to_owned(), kind, instead });
        }
        let format = options.format.map_or_else(|| detect_format(&lines), Ok)?;
        Ok(Self {
            lines,
            format,
            state: State::new(options.blk_event),
            skip_bad: options.skip_bad,
            device: options.device.clone(),
            clock: Clock::default(),
            skipped: 0,
            ended: false,
        })
    }

    /// The format that was given or found.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of bad lines passed over so far; 0 without [`TraceOptions::skip_bad`].
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Number of requests so far that stood after a later one, so that their times were moved.
    pub fn reordered(&self) -> u64 {
        self.clock.reordered
    }

    /// For a progress bar: how many bytes of the file (compressed, where it is) have been read,
    /// which runs ahead of the requests by some buffers, and how many there are; the latter is 0
    /// for a pipe.
    pub fn progress(&self) -> (u64, u64) {
        self.lines.progress()
    }

    /// Reads one line.
    fn step(&mut self) -> Result<Step, TraceError> {
        let Some(line) = self.lines.next_line()? else { return Ok(Step::End) };
        if line.bytes().all(|b| b.is_ascii_whitespace()) {
            return Ok(Step::Other);
        }
        let parsed = (self.format.parser())(line, &mut self.state);
        self.state.first = false;
        match parsed {
            Ok(Some(event))
                if self.device.as_deref().is_none_or(|device| device == event.device) =>
            {
                Ok(Step::Request(self.clock.place(&event)))
            }
            Ok(_) => Ok(Step::Other),
            Err(bad) => Err(TraceError::BadLine {
                path: self.lines.path().to_owned(),
                line: self.lines.number(),
                expected: bad.expected,
                found: bad.found,
            }),
        }
    }
}

fn detect_format(lines: &Lines) -> Result<Format, TraceError> {
    detect(lines.sample()).ok_or_else(|| {
        let path = lines.path().to_owned();
        if lines.is_blank() {
            TraceError::Empty { path }
        } else if FileTrace::begins(lines.sample()) {
            let kind = "a trace of file calls";
            TraceError::Foreign { path, kind, instead: "play it with `dovetail bench`" }
        } else {
            TraceError::UnknownFormat { path }
        }
    })
}

impl Iterator for TraceReader {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.step() {
                Ok(Step::Request(request)) => return Some(Ok(request)),
                Ok(Step::Other) => {}
                Ok(Step::End) => self.ended = true,
                Err(error) if self.skip_bad && error.is_bad_line() => self.skipped += 1,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// Makes times relative and keeps them from going back.
#[derive(Default)]
struct Clock {
    /// The time of the first request and of the latest, as the trace counts.
    first_and_latest_ns: Option<(u64, u64)>,
    reordered: u64,
}

impl Clock {
    fn place(&mut self, event: &Event<'_>) -> Request {
        let (first, latest) = self.first_and_latest_ns.unwrap_or((event.ns, event.ns));
        self.reordered += u64::from(event.ns < latest);
        let ns = event.ns.max(latest);
        self.first_and_latest_ns = Some((first, ns));
        Request {
            at: SimTime::from_ns(ns - first),
            op: event.op,
            range: event.range,
            preflush: event.preflush,
            fua: event.fua,
        }
    }
}
