//! Any drive that a configuration describes: page-mapped, or with zones.

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo, performs_at_once,
};
use dovetail_nand::{DieUse, Geometry};
use dovetail_time::{SimSpan, SimTime};

use crate::cache::Occupancy;
use crate::config::{ConfigError, DriveConfig};
use crate::drive::Drive;
use crate::stats::Counters;
use crate::zoned::ZonedDrive;

/// A drive that is switched on, of either kind.
#[derive(Clone, Debug)]
pub enum Storage {
    /// A drive that maps pages.
    PageMapped(Box<Drive>),
    /// A drive with zones.
    Zoned(Box<ZonedDrive>),
}

/// Work of a drive until it takes commands again after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCycle {
    /// Duration.
    pub duration: SimSpan,
    /// Pages whose out-of-band areas were read.
    pub pages_read: u64,
}

macro_rules! of_either {
    ($self:ident, $drive:ident => $value:expr) => {
        match $self {
            Self::PageMapped($drive) => $value,
            Self::Zoned($drive) => $value,
        }
    };
}

impl Storage {
    /// A new, empty drive: with zones if its configuration has them.
    ///
    /// # Errors
    /// A configuration with which no drive can work.
    pub fn new(config: DriveConfig) -> Result<Self, ConfigError> {
        Ok(match config.zones {
            Some(_) => Self::Zoned(Box::new(ZonedDrive::new(config)?)),
            None => Self::PageMapped(Box::new(Drive::new(config)?)),
        })
    }

    /// Programs what a flush leaves in the write buffer because of capacitors: see
    /// [`Drive::write_out`]. Of its zones a zoned drive has no more than part of a row each, and
    /// keeps that.
    ///
    /// # Errors
    /// Errors of its flash.
    pub fn write_out(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        match self {
            Self::PageMapped(drive) if drive.config().power_loss_protection => drive.write_out(at),
            Self::Zoned(drive) if drive.config().power_loss_protection => drive.write_out(at),
            Self::PageMapped(_) | Self::Zoned(_) => Ok(at),
        }
    }

    /// Cuts the power and switches it on again.
    ///
    /// # Errors
    /// Errors of its flash.
    pub fn power_cycle(self) -> Result<(Self, PowerCycle), DeviceError> {
        self.switch_off_and_on(None)
    }

    /// Cuts the power at a time and switches it on again: of the flash operations that were under
    /// way then, and those after it, nothing is left. [`Self::remember_operations`] comes before.
    ///
    /// # Errors
    /// Errors of its flash.
    pub fn power_cycle_at(self, at: SimTime) -> Result<(Self, PowerCycle), DeviceError> {
        self.switch_off_and_on(Some(at))
    }

    /// Remembers from now on what [`Self::power_cycle_at`] needs; memory grows with every command.
    pub fn remember_operations(&mut self) {
        of_either!(self, drive => drive.remember_operations());
    }

    fn switch_off_and_on(self, at: Option<SimTime>) -> Result<(Self, PowerCycle), DeviceError> {
        match self {
            Self::PageMapped(drive) => {
                let off = match at {
                    Some(at) => drive.into_unrecovered_at(at),
                    None => drive.into_unrecovered(),
                };
                let recovered = off.recover();
                let (drive, report) = recovered.map_err(|failed| failed.1)?;
                let cycle = PowerCycle { duration: report.duration, pages_read: report.pages_read };
                Ok((Self::PageMapped(Box::new(drive)), cycle))
            }
            Self::Zoned(drive) => {
                let off = match at {
                    Some(at) => drive.into_unrecovered_at(at),
                    None => drive.into_unrecovered(),
                };
                let (drive, report) = off.recover()?;
                let cycle = PowerCycle { duration: report.duration, pages_read: report.pages_read };
                Ok((Self::Zoned(Box::new(drive)), cycle))
            }
        }
    }

    /// The page-mapped drive; `None` for one with zones.
    pub fn page_mapped(&self) -> Option<&Drive> {
        if let Self::PageMapped(drive) = self { Some(drive) } else { None }
    }

    /// The drive with zones; `None` for one that maps pages.
    pub fn zoned(&self) -> Option<&ZonedDrive> {
        if let Self::Zoned(drive) = self { Some(drive) } else { None }
    }

    /// Returns what the drive is made of.
    pub fn config(&self) -> &DriveConfig {
        of_either!(self, drive => drive.config())
    }

    /// The layout of its flash.
    pub fn geometry(&self) -> &Geometry {
        of_either!(self, drive => drive.geometry())
    }

    /// Returns what it has done so far.
    pub fn counters(&self) -> Counters {
        of_either!(self, drive => drive.counters())
    }

    /// Pages that are filled and erased as one: those of a line, or of a zone.
    pub fn pages_per_line(&self) -> u32 {
        match self {
            Self::PageMapped(drive) => drive.lines().pages_per_line(),
            Self::Zoned(drive) => drive.pages_per_zone(),
        }
    }

    /// Lines or zones in all.
    pub fn lines(&self) -> u32 {
        match self {
            Self::PageMapped(drive) => drive.lines().count(),
            Self::Zoned(drive) => drive.zones().zones().count,
        }
    }

    /// Lines that are free, or zones that are empty.
    pub fn free_lines(&self) -> u32 {
        match self {
            Self::PageMapped(drive) => drive.lines().free(),
            Self::Zoned(drive) => drive.zones().empty(),
        }
    }

    /// Returns the work of each die: until `at`, which is not before the last command, and what was
    /// issued.
    pub fn die_use(&self, at: SimTime) -> Vec<DieUse> {
        of_either!(self, drive => drive.die_use(at).collect())
    }

    /// Returns how often each block was erased.
    pub fn erase_counts(&self) -> Vec<u32> {
        of_either!(self, drive => drive.erase_counts().collect())
    }

    /// Blocks that are marked bad, when new or since.
    pub fn bad_blocks(&self) -> u32 {
        of_either!(self, drive => drive.bad_blocks())
    }

    /// Bytes of the drive's own memory that its map takes now.
    pub fn mapping_memory_bytes(&self) -> u64 {
        of_either!(self, drive => drive.mapping_memory_bytes())
    }

    /// Bytes of the drive's own memory for the rest.
    pub fn other_memory_bytes(&self) -> u64 {
        of_either!(self, drive => drive.other_memory_bytes())
    }

    /// Bytes of host memory that the model of the flash takes, without real bytes written to it.
    pub fn flash_model_bytes(&self) -> u64 {
        of_either!(self, drive => drive.flash_model_bytes())
    }

    /// Returns what the cache of the demand-paged map holds; `None` for a drive that has its whole
    /// map in memory.
    pub fn map_cache(&self) -> Option<Occupancy> {
        match self {
            Self::PageMapped(drive) => drive.map_cache(),
            Self::Zoned(drive) => drive.page_mapped().map_cache(),
        }
    }

    /// Returns when all that the drive was told so far is through.
    pub fn idle_from(&self) -> SimTime {
        of_either!(self, drive => drive.idle_from())
    }
}

impl BlockDevice for Storage {
    fn info(&self) -> DeviceInfo {
        of_either!(self, drive => drive.info())
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        of_either!(self, drive => drive.submit(at, command))
    }

    fn expect(&self, range: BlockRange) {
        of_either!(self, drive => drive.expect(range));
    }
}

performs_at_once!(Storage);
