//! Making a volume, as mke2fs 1.47 does with its defaults: the same sizes, places and bytes.
//!
//! Difference: KiB written in the volume's life are those of this run.
//!
//! Left out: clusters (bigalloc), meta_bg, RAID strides, quota files, journals on other devices,
//! lists of bad blocks, revision 0.

mod content;
mod error;
mod geometry;
mod options;
mod place;
mod write;

pub use error::MkfsError;
pub use options::{Kind, MkfsOptions};

use dovetail_block::{BLOCK_SIZE, BlockDevice};

use crate::Error;
use crate::format::Superblock;
use content::Content;
use geometry::new_superblock;
use place::Places;
use write::Writer;

/// The volume that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsReport {
    /// The volume.
    pub superblock: Superblock,
    /// Blocks of the journal; 0 for none.
    pub journal_blocks: u32,
}

/// Makes a volume on all of `device`. Whatever is there is lost: it is discarded if the device can,
/// otherwise the tables and the journal are overwritten. The superblock comes last, so that a power
/// cut leaves no half a volume.
///
/// # Errors
/// [`Error::Mkfs`] for options that contradict each other or do not fit the device, before anything
/// is written; [`Error::Io`].
pub fn mkfs<D: BlockDevice>(device: &mut D, options: &MkfsOptions) -> Result<MkfsReport, Error> {
    let info = device.info();
    if info.capabilities.zones.is_some() {
        return Err(MkfsError::Zones.into());
    }
    let superblock = new_superblock(info.blocks.saturating_mul(BLOCK_SIZE), options)?;
    let places = Places::new(&superblock)?;
    let content = Content::new(superblock, places, options)?;
    let journal_blocks = content.journal_blocks;
    let superblock = Writer::new(device, &content, options.lazy_itable_init).write(&content)?;
    Ok(MkfsReport { superblock, journal_blocks })
}
