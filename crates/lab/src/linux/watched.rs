//! The drive of a guest: its commands counted and shown as those of a modelled host are.

use std::cell::RefCell;

use dovetail_block::{BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo};
use dovetail_host::{Observer, Request, RequestKind, Traffic};
use dovetail_time::SimTime;

use crate::below::Below;
use crate::record::Seen;

/// A drive, of which the first blocks are a partition.
pub(super) struct Watched {
    pub(super) drive: Below,
    blocks: u64,
    traffic: Traffic,
    /// Sees each command that has blocks.
    observer: RefCell<Option<Observer>>,
}

impl Watched {
    pub(super) fn new(drive: Below, blocks: u64) -> Self {
        Self { drive, blocks, traffic: Traffic::default(), observer: RefCell::default() }
    }

    /// The drive at `at`, for a recorder.
    pub(super) fn seen(&self, at: SimTime) -> Seen<'_> {
        Seen { at, drive: &self.drive, traffic: self.traffic }
    }

    /// Shows each command from now on to `observer`.
    pub(super) fn observe(&self, observer: Observer) {
        self.observer.replace(Some(observer));
    }

    fn note(&mut self, command: &Noted, at: SimTime, done: SimTime) {
        let blocks = command.ranges.iter().map(|range| range.blocks).sum();
        self.traffic.count(command.kind, blocks, done.since(at));
        if let Some(observer) = self.observer.get_mut() {
            let kind = command.kind;
            command.ranges.iter().for_each(|&range| observer(&Request { at, done, kind, range }));
        }
    }
}

/// A command as it counts.
struct Noted {
    kind: RequestKind,
    ranges: Vec<BlockRange>,
}

impl Noted {
    fn of(command: &Command<'_>) -> Option<Self> {
        let one = |kind, range| Some(Self { kind, ranges: vec![range] });
        match command {
            Command::Read { range, .. } => one(RequestKind::Read, *range),
            Command::Write { range, .. } => one(RequestKind::Write, *range),
            Command::Append { zone, blocks, .. } => {
                one(RequestKind::Write, BlockRange::new(*zone, *blocks))
            }
            Command::Discard { ranges } => {
                let ranges = ranges.iter().map(|range| range.blocks_inside()).collect();
                Some(Self { kind: RequestKind::Discard, ranges })
            }
            Command::Flush => Some(Self { kind: RequestKind::Flush, ranges: Vec::new() }),
            Command::Zone { .. } => Some(Self { kind: RequestKind::Zone, ranges: Vec::new() }),
            _ => None,
        }
    }
}

impl BlockDevice for Watched {
    fn info(&self) -> DeviceInfo {
        self.drive.info().part(self.blocks)
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let noted = Noted::of(&command);
        let completion = self.drive.submit(at, command)?;
        if let Some(noted) = noted {
            self.note(&noted, at, completion.done);
        }
        Ok(completion)
    }
}
