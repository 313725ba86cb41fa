//! The space of a volume: addresses for blocks, and what becomes of those that are given up.
//!
//! The rest of a mount asks [`Space`] and nothing else: the next address of a log, a block taken or
//! freed, facts for the policies, the part of a checkpoint pack that says where the logs stand. How
//! the addresses come about is an arm of the enum: [`SegmentSpace`] has segments that are cleaned,
//! [`LogSpace`] six logs that are only appended to (IPLFS). The enum is matched on in this module
//! and nowhere else. A zoned volume is one with segments, whose sections are the device's zones.
//!
//! Invariant: no block that the last checkpoint refers to, or that the record of an fsync since may
//! lead to, is taken before the next checkpoint is complete.

mod allocate;
mod balance;
mod exchange;
mod interface;
mod iplfs;
mod segmented;

use dovetail_block::{DeviceInfo, Scheduler};

use super::io::Io;
use super::options::{BackgroundGc, Mode, Options};
use crate::error::{Damage, Error, Incompatible};
use crate::format::{Superblock, Variant};
use crate::section_zones::SectionZones;
pub(super) use exchange::{Demand, Draft, Found, Pack, Taken, ValidBlocks};
use iplfs::LogSpace;
use segmented::SegmentSpace;

/// The space of a mounted volume.
#[derive(Debug)]
pub(super) enum Space {
    /// F2FS: segments, cleaned when few are free.
    Segmented(Box<SegmentSpace>),
    /// IPLFS: logs that are never written again.
    Iplfs(Box<LogSpace>),
}

impl Space {
    /// Refuses a device that a volume of this kind cannot be mounted on, and sets aside options
    /// that decide nothing there.
    ///
    /// # Errors
    /// [`Error::Incompatible`]; [`Error::Corrupt`] for a device that is too small.
    pub(super) fn check_device(
        device: &DeviceInfo,
        superblock: &Superblock,
        options: &mut Options,
    ) -> Result<(), Error> {
        match superblock.variant {
            Variant::F2fs => check_zones(device, superblock, options),
            Variant::Iplfs(_) => {
                options.check_iplfs()?;
                options.mode = Mode::Lfs;
                options.background_gc = BackgroundGc::Off;
                options.gc_urgent = false;
                check_thin(device, superblock)
            }
        }
    }

    /// The space as the last checkpoint left it.
    ///
    /// # Errors
    /// Tables that contradict each other; [`Error::Io`].
    pub(super) fn load<D: Scheduler>(
        io: &mut Io<D>,
        found: Found<'_>,
        options: &Options,
    ) -> Result<Self, Error> {
        Ok(match found.superblock.variant {
            Variant::F2fs => Self::Segmented(Box::new(SegmentSpace::load(io, &found, options)?)),
            Variant::Iplfs(_) => {
                let (superblock, checkpoint) = (found.superblock, found.checkpoint);
                Self::Iplfs(Box::new(LogSpace::new(superblock, checkpoint, found.discard_log)))
            }
        })
    }
}

/// A zoned volume needs its zones, and only appends.
fn check_zones(
    device: &DeviceInfo,
    superblock: &Superblock,
    options: &mut Options,
) -> Result<(), Error> {
    if options.read_only {
        return Ok(());
    }
    let Some(zones) = SectionZones::of(superblock, device.capabilities.zones)? else {
        return Ok(());
    };
    options.check_zoned()?;
    options.mode = Mode::Lfs;
    let logs = options.logs.count();
    if let Some((limit, counted)) = zones.limit().filter(|(limit, _)| *limit < logs) {
        let fits = if limit >= 4 { 4 } else { 2 };
        return Err(Incompatible::TooFewZonesAtOnce { logs, limit, counted, fits }.into());
    }
    Ok(())
}

/// A log that is never written again needs a thin device with space for what the volume holds.
fn check_thin(device: &DeviceInfo, superblock: &Superblock) -> Result<(), Error> {
    let capacity = superblock.capacity;
    let thin = device.capabilities.thin.filter(|_| device.capabilities.discard);
    let thin = thin.ok_or(Incompatible::NotThin)?;
    if thin.capacity < capacity {
        return Err(Damage::Truncated { found: thin.capacity, expected: capacity }.into());
    }
    Ok(())
}
