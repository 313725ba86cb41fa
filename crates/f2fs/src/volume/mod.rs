//! A volume read as it was at its last checkpoint, without writing: what `inspect`, `ls` and fsck
//! build on.

pub(crate) mod cache;
pub(crate) mod cluster;
mod directory;
mod discards;
mod file;
mod map;
mod nodes;
pub(crate) mod open;
mod segments;
mod tree;
mod walk;
mod xattr;

pub use open::check_device;
pub use segments::Owner;
pub use walk::{Visit, WalkEntry};

use std::collections::BTreeMap;

use dovetail_block::{BlockDevice, DeviceInfo};

use crate::format::{Bitmaps, Checkpoint, NatEntry, Nid, SegNo, SitEntry, Superblock};
use cache::Blocks;
use cluster::Decompressed;

/// An F2FS volume, opened for reading, as it was at its last checkpoint.
#[derive(Debug)]
pub struct Volume<D> {
    pub(crate) blocks: Blocks<D>,
    pub(crate) superblock: Superblock,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) bitmaps: Bitmaps,
    pub(crate) nat_journal: BTreeMap<Nid, NatEntry>,
    pub(crate) sit_journal: BTreeMap<SegNo, SitEntry>,
    pub(crate) decompressed: Option<Decompressed>,
}

impl<D: BlockDevice> Volume<D> {
    pub(crate) fn device_info(&self) -> DeviceInfo {
        self.blocks.device_info()
    }

    /// The device below, to be asked.
    pub(crate) fn device_mut(&mut self) -> &mut D {
        self.blocks.device_mut()
    }
}

impl<D> Volume<D> {
    /// Superblock of the volume.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The device again.
    pub fn into_device(self) -> D
    where
        D: BlockDevice,
    {
        self.blocks.into_device()
    }

    /// The state that is shown.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }
}
