//! The flash in a drive file: that of a page-mapped drive, or a page-mapped part and zones.

use dovetail_nand::{BackingStore, Nand, NandConfig};

use super::EmulatedError;
use super::file::{FlashFile, SharedFile, read_flash};
use super::layout::Layout;
use crate::config::{ConfigError, DriveConfig};
use crate::drive::{RecoveryReport, UnrecoveredDrive};
use crate::storage::Storage;
use crate::zoned::{UnrecoveredZonedDrive, ZonedRecovery, flash_of};

/// The findings when a drive was switched on.
#[derive(Clone, Copy, Debug)]
pub enum SwitchedOn {
    /// Of a drive that maps pages.
    PageMapped(RecoveryReport),
    /// Of a drive with zones.
    Zoned(ZonedRecovery),
}

/// A part of the flash, and where it is.
#[derive(Clone, Debug)]
struct Part {
    layout: Layout,
    nand: NandConfig,
}

/// The parts of a drive's flash in its file.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    page_mapped: Part,
    zones: Option<Part>,
}

impl Parts {
    pub(super) fn of(config: &DriveConfig) -> Result<Self, ConfigError> {
        let Some((inner, zones)) = flash_of(config)? else {
            let nand = config.nand.clone();
            let layout = Layout::new(&nand.geometry);
            return Ok(Self { page_mapped: Part { layout, nand }, zones: None });
        };
        let first = Layout::new(&inner.geometry);
        let layout = Layout::behind(first.end().next_multiple_of(4096), &zones.geometry);
        Ok(Self {
            page_mapped: Part { layout: first, nand: inner },
            zones: Some(Part { layout, nand: zones }),
        })
    }

    /// The length of the file.
    pub(super) fn end(&self) -> u64 {
        self.zones.as_ref().unwrap_or(&self.page_mapped).layout.end()
    }

    /// Switches on the drive; changes go to the file if it is writable.
    pub(super) fn switch_on(
        &self,
        config: DriveConfig,
        shared: &SharedFile,
        writable: bool,
    ) -> Result<(Storage, SwitchedOn), EmulatedError> {
        let wrong = |error: &dyn std::fmt::Display| EmulatedError::Flash(error.to_string());
        let (nand, backing) = self.page_mapped.read(shared)?;
        let Some(zones) = &self.zones else {
            let drive = UnrecoveredDrive::from_flash(config, nand).recover();
            let (mut drive, report) = drive.map_err(|failed| wrong(&failed.1))?;
            if writable {
                drive.back_with(Box::new(backing));
            }
            return Ok((Storage::PageMapped(Box::new(drive)), SwitchedOn::PageMapped(report)));
        };
        let (own, own_backing) = zones.read(shared)?;
        let drive = UnrecoveredZonedDrive::from_flash(config, nand, own)?;
        let backing: [Box<dyn BackingStore>; 2] = [Box::new(backing), Box::new(own_backing)];
        let drive = drive.recover_with(writable.then_some(backing));
        let (drive, report) = drive.map_err(|error| wrong(&error))?;
        Ok((Storage::Zoned(Box::new(drive)), SwitchedOn::Zoned(report)))
    }
}

impl Part {
    /// The flash as it was kept, and the way to keep it further on.
    fn read(&self, shared: &SharedFile) -> Result<(Nand, FlashFile), EmulatedError> {
        let geometry = self.nand.geometry;
        let kept = read_flash(&shared.file, self.layout, &geometry)?;
        let erases = kept.iter().map(|block| block.erases).collect();
        let nand = Nand::restored(self.nand.clone(), kept);
        let nand = nand.map_err(|error| EmulatedError::Flash(error.to_string()))?;
        Ok((nand, FlashFile::new(shared.clone(), self.layout, geometry, erases)))
    }
}
