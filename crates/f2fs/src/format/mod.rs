//! The bytes of an F2FS volume: one structure a file, no I/O.
//!
//! Each structure stands twice. The private one mirrors the disk (little-endian, packed, the kernel's field
//! names) and its size and offsets are proved when it is compiled; the public one is what the rest of the crate
//! uses. Values that a newer kernel may extend (file types, features, flags) are newtypes, so that reading an
//! unknown one loses nothing. All offsets are decimal bytes from the start of the structure.

mod acl;
mod bits;
mod checkpoint;
mod crc;
mod dentry;
mod features;
mod hash;
mod ids;
mod inode;
mod layout;
mod nat;
mod node;
mod sit;
mod summary;
mod superblock;
mod xattr;

pub use bits::{lsb_first, msb_first};
pub use checkpoint::{Bitmaps, Checkpoint, CheckpointFlags, LogPosition};
pub use crc::{CRC_SEED, crc32};
pub use dentry::{DENTRIES_IN_BLOCK, DentryBlock, DirEntry, FileType};
pub use features::Features;
pub use hash::name_hash;
pub use ids::{BlockAddr, Nid, SegNo};
pub(crate) use inode::{Geometry, MAX_SIZE, RawInode, inode_checksums, seal_inode};
pub use inode::{InlineFlags, Inode, InodeFlags, Timestamp};
pub use nat::{NAT_ENTRIES_IN_BLOCK, NatEntry, nat_block_address, nat_entry};
pub use node::{Footer, POINTERS_IN_NODE, XATTR_NODE_OFFSET, node_pointer, set_node_pointer};
pub use sit::{SIT_ENTRIES_IN_BLOCK, SitEntry, sit_block_address, sit_entry};
pub use summary::{NatJournal, SitJournal, compact_journals, nat_journal, sit_journal};
pub use superblock::{MAGIC, Superblock};
pub use xattr::{XATTR_BYTES_IN_NODE, Xattr, XattrIndex, parse_xattrs};

/// Blocks in a segment.
pub const BLOCKS_IN_SEGMENT: u32 = 512;

/// Bytes in a block, as an index.
pub(crate) const BLOCK: usize = dovetail_block::BLOCK_SIZE as usize;

/// The little-endian u32 at `offset`; 0 beyond the end.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let word = bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}
