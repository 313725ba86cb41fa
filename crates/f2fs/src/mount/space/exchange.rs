//! The structures that a mount and its space exchange.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::BlockBytes;

use crate::format::{
    Bitmaps, BlockAddr, Checkpoint, Extent, NatEntry, Nid, SegNo, SitEntry, Summary, Superblock,
};

/// The part of a volume that [`Space::load`](super::Space::load) builds on.
pub(crate) struct Found<'v> {
    pub(crate) superblock: &'v Superblock,
    pub(crate) checkpoint: &'v Checkpoint,
    pub(crate) sit_bitmap: &'v [u8],
    pub(crate) sit_journal: &'v BTreeMap<SegNo, SitEntry>,
    pub(crate) discard_log: Vec<Extent>,
}

/// The demand of the next checkpoint: what it writes of the mount's memory. Blocks, unless it says
/// otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    pub(crate) dirty_nodes: u32,
    pub(crate) dirty_dents: u32,
    /// Dirty content, directories included.
    pub(crate) dirty_data: u32,
    /// Entries of the NAT.
    pub(crate) nat_entries: usize,
    /// Inodes without a name.
    pub(crate) orphans: usize,
    /// In use or reserved, all in all.
    pub(crate) valid_blocks: u64,
    /// Blocks may be at addresses of the device, outside of the volume's space.
    pub(crate) devirtualized: bool,
    /// Fsynced files are being rolled forward: holes are left alone.
    pub(crate) recovering: bool,
}

/// A block that was taken.
pub(crate) struct Taken {
    pub(crate) address: BlockAddr,
    /// It lies between blocks in use, as opposed to the end of a log.
    pub(crate) in_hole: bool,
}

/// The valid blocks of a segment, in order, with their owners.
pub(crate) struct ValidBlocks {
    pub(crate) are_nodes: bool,
    pub(crate) blocks: Vec<(BlockAddr, Summary)>,
}

/// The next checkpoint but for what the space adds: log positions and the rest of the pack.
pub(crate) struct Draft<'h> {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) bitmaps: Bitmaps,
    pub(crate) orphans: Vec<BlockBytes>,
    /// NAT entries that the pack's journal has.
    pub(crate) nat_journal: Vec<(Nid, NatEntry)>,
    /// The volume is unmounted with it: the next mount finds all summaries.
    pub(crate) for_next_mount: bool,
    /// The first block of the last pack.
    pub(crate) head: &'h Arc<BlockBytes>,
}

/// The next checkpoint, and the blocks of its pack; the tail left out, which is the first block
/// again.
pub(crate) struct Pack {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) blocks: Vec<BlockBytes>,
    pub(crate) bitmaps: Bitmaps,
    /// Segments whose entries its SIT journal has.
    pub(super) sit_journal: BTreeSet<SegNo>,
}
