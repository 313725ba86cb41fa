//! The device below the host of a run: a drive, or a log of the host's over the zones of one.

use std::ops::Deref;

use dovetail_block::{BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo};
use dovetail_ftl::{PowerCycle, Storage};
use dovetail_host::{HostError, NoZoneLog, ZoneLog, ZoneLogCounts};
use dovetail_time::SimTime;

use crate::results::ZoneLogResult;

/// A drive, as commands reach it; what it says of itself is what the drive says.
#[derive(Clone, Debug)]
pub(crate) enum Below {
    /// The drive itself.
    Drive(Box<Storage>),
    /// Through a log of the host's.
    Log(Box<ZoneLog<Storage>>),
}

impl Below {
    /// A drive, through a log in the host if a share of spare blocks is given for one.
    pub(crate) fn new(drive: Storage, log: Option<f64>) -> Result<Self, NoZoneLog> {
        Ok(match log {
            Some(spare) => Self::Log(Box::new(ZoneLog::new(drive, spare)?)),
            None => Self::Drive(Box::new(drive)),
        })
    }

    /// Cuts the power and switches it on again; `None` through a log in the host, whose map is lost.
    pub(crate) fn power_cycle(self) -> Option<Result<(Self, PowerCycle), DeviceError>> {
        let Self::Drive(drive) = self else { return None };
        Some(drive.power_cycle().map(|(drive, cycle)| (Self::Drive(Box::new(drive)), cycle)))
    }

    /// The same at a time, whatever was issued before; see [`Storage::power_cycle_at`].
    pub(crate) fn power_cycle_at(
        self,
        at: SimTime,
    ) -> Option<Result<(Self, PowerCycle), DeviceError>> {
        let Self::Drive(drive) = self else { return None };
        let cycled = drive.power_cycle_at(at);
        Some(cycled.map(|(drive, cycle)| (Self::Drive(Box::new(drive)), cycle)))
    }

    /// Programs what a flush leaves in the drive's write buffer.
    pub(crate) fn write_out(&mut self, at: SimTime) -> Result<SimTime, HostError> {
        match self {
            Self::Drive(drive) => {
                drive.write_out(at).map_err(|source| HostError::Device { at, source })
            }
            Self::Log(_) => Ok(at),
        }
    }

    /// Remembers from now on what [`Self::power_cycle_at`] needs.
    pub(crate) fn remember_operations(&mut self) {
        if let Self::Drive(drive) = self {
            drive.remember_operations();
        }
    }

    /// Counts of the log; zeros without one.
    pub(crate) fn log_counts(&self) -> ZoneLogCounts {
        match self {
            Self::Drive(_) => ZoneLogCounts::default(),
            Self::Log(log) => log.counts(),
        }
    }

    /// Results of the log since it had these counts; `None` without one.
    pub(crate) fn log_result(&self, before: ZoneLogCounts) -> Option<ZoneLogResult> {
        let Self::Log(log) = self else { return None };
        let counts = log.counts();
        let (written, moved) = (
            counts.written_blocks - before.written_blocks,
            counts.moved_blocks - before.moved_blocks,
        );
        Some(ZoneLogResult {
            spare_percent: log.spare_percent(),
            written_blocks: written,
            moved_blocks: moved,
            waf: (written > 0).then(|| (written + moved) as f64 / written as f64),
            resets: counts.resets - before.resets,
            stalls: counts.stalls - before.stalls,
            map_bytes: log.map_bytes(),
        })
    }
}

impl Deref for Below {
    type Target = Storage;

    fn deref(&self) -> &Storage {
        match self {
            Self::Drive(drive) => drive,
            Self::Log(log) => log.below(),
        }
    }
}

impl BlockDevice for Below {
    fn info(&self) -> DeviceInfo {
        match self {
            Self::Drive(drive) => drive.info(),
            Self::Log(log) => log.info(),
        }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match self {
            Self::Drive(drive) => drive.submit(at, command),
            Self::Log(log) => log.submit(at, command),
        }
    }

    fn expect(&self, range: BlockRange) {
        match self {
            Self::Drive(drive) => drive.expect(range),
            Self::Log(log) => log.expect(range),
        }
    }
}
