//! Making a volume, as mkfs.f2fs does: the same areas, reserves, logs and bytes; or an IPLFS
//! volume.
//!
//! Differences: the volume is said to be made by Dovetail; a device whose segments are no multiple
//! of the zone counts the segments that it really has (mkfs.f2fs counts the remainder too, and its
//! checker then finds fault); a large NAT stays within what the checker can open; the feature
//! project_quota gives inodes a project and makes no quota file.
//!
//! A device that is written in zones gets a volume whose sections are its zones, if the options have
//! the feature `blkzoned`; a volume on several devices is made on a
//! [`dovetail_block::JoinedDevice`], of which the last may have zones.
//!
//! Left out: quota files, read-only volumes.

mod error;
mod existing;
mod geometry;
mod image;
mod iplfs;
mod logs;
mod options;
mod reserve;
mod room;
mod write;

pub use error::MkfsError;
pub use existing::existing_content;
pub use options::{COLD_EXTENSIONS, HOT_EXTENSIONS, MkfsOptions};
pub use room::{DevicePart, device_blocks};

use dovetail_block::BlockDevice;

use crate::Error;
use crate::format::{Superblock, Variant};
use image::Image;
use write::Writer;

/// Report on a new volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsReport {
    /// The volume.
    pub superblock: Superblock,
    /// Blocks that users may fill.
    pub user_blocks: u64,
    /// Segments beyond those, for cleaning and reserve.
    pub overprovision_segments: u32,
    /// Of these, segments kept free for cleaning.
    pub reserved_segments: u32,
}

/// Makes a volume on all of `device`. Whatever is there is lost: it is discarded if the device can,
/// otherwise the tables alone are overwritten. The superblocks come last, so that a power cut
/// leaves no half a volume.
///
/// # Errors
/// [`Error::Mkfs`] for options that contradict each other or do not fit the device, before anything
/// is written; [`Error::Io`].
pub fn mkfs<D: BlockDevice>(device: &mut D, options: &MkfsOptions) -> Result<MkfsReport, Error> {
    let info = device.info();
    let image = match options.variant {
        Variant::F2fs => Image::new(&info, options)?,
        Variant::Iplfs(_) => Image::iplfs(&info, options)?,
    };
    Writer::new(device).write(&image)?;
    Ok(MkfsReport {
        user_blocks: image.checkpoint.user_block_count,
        overprovision_segments: image.checkpoint.overprovision_segments,
        reserved_segments: image.checkpoint.reserved_segments,
        superblock: image.superblock,
    })
}
