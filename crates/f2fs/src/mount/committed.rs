//! The last complete checkpoint, which a power cut leads back to.

use std::sync::Arc;

use dovetail_block::BlockBytes;

use super::space::Pack;
use crate::format::{Bitmaps, Checkpoint};

/// The last complete checkpoint as the device has it.
#[derive(Debug)]
pub(super) struct Committed {
    checkpoint: Checkpoint,
    /// The first block of its pack.
    head: Arc<BlockBytes>,
    /// The copies of the blocks of NAT and SIT that belong to it, a bit for each.
    bitmaps: Bitmaps,
}

impl Committed {
    pub(super) fn new(checkpoint: Checkpoint, head: Arc<BlockBytes>, bitmaps: Bitmaps) -> Self {
        Self { checkpoint, head, bitmaps }
    }

    /// The checkpoint whose pack was just completed.
    pub(super) fn of(pack: Pack) -> Self {
        debug_assert!(!pack.blocks.is_empty(), "a pack has a head");
        Self::new(pack.checkpoint, Arc::new(pack.blocks[0]), pack.bitmaps)
    }

    pub(super) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    pub(super) fn head(&self) -> &Arc<BlockBytes> {
        &self.head
    }

    pub(super) fn bitmaps(&self) -> &Bitmaps {
        &self.bitmaps
    }
}
