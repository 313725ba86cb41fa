//! The bytes of an F2FS volume, or one of its variant IPLFS ([`Variant`]): one structure a file, no
//! I/O.
//!
//! Each structure stands twice. The private one mirrors the disk (little-endian, packed, the
//! kernel's field names) and its size and offsets are proved when it is compiled; the public one is
//! what the rest of the crate uses. Values that a newer kernel may extend (file types, features,
//! flags) are newtypes, so that reading an unknown one loses nothing. All offsets are decimal bytes
//! from the start of the structure.

mod bits;
mod checkpoint;
mod cluster;
mod compact;
mod crc;
mod dentry;
mod dentry_edit;
mod discard_log;
mod features;
mod hash;
mod ids;
mod inode;
mod iplfs_checkpoint;
mod journal;
mod layout;
mod nat;
mod nat_bits;
mod node;
mod node_path;
mod orphan;
mod sit;
mod summary;
mod superblock;
mod variant;
mod xattr;
mod xattr_list;

pub use bits::{flip_msb_first, lsb_first, msb_first, set_lsb_first, set_msb_first};
pub use checkpoint::{Bitmaps, Checkpoint, CheckpointFlags, LogPosition};
pub use cluster::CompressAlgorithm;
pub(crate) use cluster::{CLUSTER_HEADER, ClusterHeader};
pub use compact::{
    compact_block_count, compact_journal_counts, compact_journals, compact_summaries, parse_compact,
};
pub use crc::{CRC_SEED, crc32};
pub use dentry::{DENTRIES_IN_BLOCK, DentryBlock, DirEntry, dentry_bucket, dentry_slots};
pub use dentry_edit::{DentryBlockMut, inline_to_block};
pub use discard_log::{
    DISCARD_ENTRY, Extent, bitmap_len, extents_of, log_bitmap, log_extent, parse_discard_log,
};
pub use dovetail_vfs::FileType;
pub use features::Features;
pub use hash::name_hash;
pub use ids::{BlockAddr, Nid, SegNo};
pub(crate) use inode::{
    Geometry, RawInode, check_geometry, inode_checksums, seal_inode, set_pointer,
};
pub use inode::{InlineFlags, Inode, InodeFlags, Timestamp};
pub(crate) use iplfs_checkpoint::iplfs_payload;
pub use iplfs_checkpoint::{
    IPLFS_JOURNAL_ENTRIES, area_start, discard_log_checksum, iplfs_journal, iplfs_journal_count,
};
pub use journal::{
    NAT_JOURNAL_ENTRIES, NatJournal, SIT_JOURNAL_ENTRIES, SitJournal, journal_count, nat_journal,
    put_nat_journal, put_sit_journal, put_written_kib, sit_journal, written_kib,
};
pub use nat::{NatEntry, nat_block_address, nat_block_other, nat_entry, set_nat_entry};
pub use nat_bits::{nat_bits_blocks, new_nat_bits};
pub use node::{
    Footer, NIDS_IN_NODE, XATTR_NODE_OFFSET, node_address, node_nid, set_node_address, set_node_nid,
};
pub use node_path::is_indirect;
pub(crate) use node_path::{NodePath, first_block, steps_inside};
pub use orphan::{ORPHANS_IN_BLOCK, OrphanCounts, orphan_blocks, orphan_counts, parse_orphans};
pub(crate) use sit::FIRST_NODE_LOG;
pub use sit::{
    SIT_ENTRIES_IN_BLOCK, SitEntry, set_sit_entry, sit_block_address, sit_block_other, sit_entry,
};
pub use summary::{
    Summary, SummaryKind, set_summary_entry, set_summary_kind, ssa_address, summaries,
    summary_block, summary_entry, summary_kind,
};
pub use superblock::{DEVIRTUALIZED_MAGIC, IPLFS_MAGIC, MAGIC, MAX_DEVICES, Member, Superblock};
pub(crate) use superblock::{
    IPLFS_SECTION, MAX_DEVICE_PATH, MAX_SEGMENTS, MIN_CAPACITY, iplfs_log_blocks,
    iplfs_orphan_blocks,
};
pub use variant::{AddressWidth, Variant};
pub use xattr::{XATTR_BYTES_IN_NODE, Xattr, XattrIndex, parse_xattrs};
pub use xattr_list::{NoRoom, XattrLayout, encode_xattrs};

/// Blocks in a segment.
pub const BLOCKS_IN_SEGMENT: u32 = 512;

/// Bytes in a block, as an index.
pub(crate) const BLOCK: usize = dovetail_block::BLOCK_SIZE as usize;

/// The little-endian u32 at `offset`; 0 beyond the end.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let word = bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}

/// The little-endian u64 at `offset`; 0 beyond the end.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let word = bytes.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}
