//! Log-block maps: a logical block leads to one line, and a few log lines take what is written.
//!
//! A data line holds the pages of one logical block (as many pages as a line has), each at its own
//! place. The host's writes are appended to log lines. When a log line is needed and all are in
//! use, one is merged with the data lines of its pages:
//!
//! - a *switch merge*, when it holds a whole block in order: it becomes the data line;
//! - a *partial merge*, when it holds the first pages of a block in order: the others are copied
//!   behind them, and it becomes the data line;
//! - a *full merge* otherwise: the newest pages of a block are copied to a free line.
//!
//! The places of pages and the merges are decided here, one scheme a file; `drive/log_block.rs`
//! carries it out. The drive's page map stays what says where each page is: the schemes only see to
//! it that pages lie where a log-block map could find them.

mod bast;
mod fast;

use crate::lines::LineId;
use crate::medium::FrontierId;

/// A log-block map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBlockConfig {
    /// The scheme.
    pub scheme: LogScheme,
    /// Log lines at most; 1 or more, with FAST 2 or more.
    pub log_lines: u32,
}

/// A scheme of a log-block map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogScheme {
    /// Block-associative: a log line belongs to one logical block (Kim and others, "A space-efficient
    /// flash translation layer for CompactFlash systems", IEEE Transactions on Consumer Electronics
    /// 48(2), 2002).
    Bast,
    /// Fully associative: one log line for writes in a row, the others take the pages of any block
    /// (Lee and others, "A log buffer-based flash translation layer using fully-associative sector
    /// translation", ACM TECS 6(3), 2007).
    Fast,
}

impl LogScheme {
    /// All schemes.
    pub const ALL: [Self; 2] = [Self::Bast, Self::Fast];

    /// The name in profiles and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bast => "bast",
            Self::Fast => "fast",
        }
    }

    /// The scheme of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    /// Log lines that can be filled at once, of `log_lines`.
    const fn open(self, log_lines: u32) -> u32 {
        match self {
            Self::Bast => log_lines,
            Self::Fast => 2,
        }
    }
}

impl LogBlockConfig {
    /// Frontiers of log lines.
    pub(crate) const fn frontiers(&self) -> u32 {
        self.scheme.open(self.log_lines)
    }
}

/// The frontier of merges.
pub(crate) const MERGED: FrontierId = FrontierId(0);
/// The first frontier of log lines: that of moved pages and of the drive's own lies before it.
pub(crate) const FIRST_LOG: usize = 2;

/// A page as a log-block map sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its logical block.
    pub(crate) block: u64,
    /// Its index there.
    pub(crate) offset: u32,
}

/// A log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) line: LineId,
    /// The logical block whose pages alone it takes; `None`: it is shared.
    pub(crate) owner: Option<u64>,
    /// Its frontier, until it is full.
    pub(crate) frontier: Option<FrontierId>,
}

/// The next thing to do for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Append the page to the log line of this frontier.
    Append(FrontierId),
    /// Open a log line, for this logical block or for all.
    Open(Option<u64>),
    /// Merge the log line of this index, and ask again.
    Merge(usize),
}

/// The log lines of a drive, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct LogBlocks {
    config: LogBlockConfig,
    logs: Vec<Log>,
}

impl LogBlocks {
    /// No log line.
    pub(crate) fn new(config: LogBlockConfig) -> Self {
        Self { config, logs: Vec::new() }
    }

    pub(crate) fn scheme(&self) -> LogScheme {
        self.config.scheme
    }

    /// The log lines, the oldest first.
    pub(crate) fn logs(&self) -> &[Log] {
        &self.logs
    }

    /// The log line for writes in a row (FAST).
    pub(crate) fn sequential(&self) -> Option<&Log> {
        self.logs.iter().find(|log| log.owner.is_some())
    }

    /// The step for a write of `place`; `next` is the index of the next page of the log line for
    /// writes in a row.
    pub(crate) fn step(&self, place: Place, next: Option<u32>) -> Step {
        let most = self.config.log_lines as usize;
        if self.logs.len() > most {
            return Step::Merge(0); // power cuts have left more
        }
        match self.config.scheme {
            LogScheme::Bast => bast::step(&self.logs, most, place),
            LogScheme::Fast => fast::step(&self.logs, most, place, next),
        }
    }

    /// A frontier of log lines that is not in use.
    pub(crate) fn free_frontier(&self) -> Option<FrontierId> {
        let all = (FIRST_LOG..FIRST_LOG + self.config.frontiers() as usize).map(FrontierId);
        let is_used = |id: &FrontierId| self.logs.iter().any(|log| log.frontier == Some(*id));
        all.into_iter().find(|id| !is_used(id))
    }

    pub(crate) fn push(&mut self, log: Log) {
        self.logs.push(log);
    }

    pub(crate) fn remove(&mut self, index: usize) -> Log {
        self.logs.remove(index)
    }

    /// The log line of this index is full.
    pub(crate) fn filled(&mut self, index: usize) {
        self.logs[index].frontier = None;
    }

    /// The line is no log line any more.
    pub(crate) fn forget(&mut self, line: LineId) {
        self.logs.retain(|log| log.line != line);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn log(line: u32, owner: Option<u64>, frontier: Option<usize>) -> Log {
        Log { line: LineId(line), owner, frontier: frontier.map(FrontierId) }
    }

    pub(crate) fn place(block: u64, offset: u32) -> Place {
        Place { block, offset }
    }

    #[test]
    fn more_log_lines_than_there_may_be_are_merged_first() {
        let config = LogBlockConfig { scheme: LogScheme::Bast, log_lines: 1 };
        let mut logs = LogBlocks::new(config);
        logs.push(log(4, Some(1), None));
        logs.push(log(5, Some(2), Some(2)));
        assert_eq!(logs.step(place(2, 0), None), Step::Merge(0));
        assert_eq!(logs.free_frontier(), None);
        logs.forget(LineId(5));
        assert_eq!(logs.free_frontier(), Some(FrontierId(2)));
    }
}
