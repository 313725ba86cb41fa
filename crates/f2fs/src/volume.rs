//! The open volume.

use std::collections::BTreeMap;

use crate::cache::Blocks;
use crate::format::{Bitmaps, Checkpoint, NatEntry, Nid, SegNo, SitEntry, Superblock};

/// An F2FS volume, opened for reading, as it was at its last checkpoint.
#[derive(Debug)]
pub struct F2fs<D> {
    pub(crate) blocks: Blocks<D>,
    pub(crate) superblock: Superblock,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) bitmaps: Bitmaps,
    pub(crate) nat_journal: BTreeMap<Nid, NatEntry>,
    pub(crate) sit_journal: BTreeMap<SegNo, SitEntry>,
}

impl<D> F2fs<D> {
    /// What the volume is.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The state that is shown.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }
}
