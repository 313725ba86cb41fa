//! The bytes of the on-disk format: one structure a file, encoders and decoders, no device.
//!
//! Each structure stands twice. The private one mirrors the disk (little-endian, packed, the
//! kernel's field names) and its size and offsets are proved when it is compiled; the public one is
//! what the rest of the crate uses. Values that a newer kernel may extend (file types, features,
//! flags) are newtypes, so that reading an unknown one loses nothing.
//!
//! Blocks are slices of the volume's block size: 1, 2 or 4 KiB. A checksum has two functions: one
//! that gives what is stored and what it should be, and `seal_...`, which renews it after a change;
//! both do nothing where there is none.

mod bits;
mod crc;
mod directory;
mod extent;
mod features;
mod geometry;
mod group;
mod hash;
mod htree;
mod ids;
mod inode;
mod layout;
mod orphan_file;
mod pointers;
mod superblock;
mod time;
mod xattr;

pub use bits::{bit, count_bits, next_bit, set_bit, set_bits};
pub use crc::{CRC32C_START, crc16, crc32c, inode_seed};
pub use directory::{
    DIR_TAIL, DirBlock, DirBlockMut, DirEntry, DirFormat, DirRecord, dir_block_checksums,
    dir_record_len, has_dir_tail, seal_dir_block,
};
pub use dovetail_vfs::FileType;
pub use extent::{
    EXTENT_MAGIC, Extent, ExtentEntries, ExtentEntry, ExtentIndex, ExtentNode, MAX_EXTENT_BLOCKS,
    MAX_EXTENT_DEPTH, MAX_UNWRITTEN, MAX_WRITTEN, check_extent, extent_block_checksums, extents_in,
    mark_written_in, seal_extent_block, search_extents,
};
pub use features::{Compat, Incompat, RoCompat};
pub use geometry::Slot;
pub use group::{Group, GroupFlags, bitmap_checksum, group_checksums};
pub use hash::{HashVersion, name_hash};
pub use htree::{
    DxBlock, DxEntry, DxInfo, dx_block_checksums, dx_limit, dx_table_offset, seal_dx_block,
};
pub(crate) use ids::PHYSICAL_BIT;
pub use ids::{BlockAddr, GroupNo, Ino};
pub use inode::{BLOCK_AREA, Inode, InodeFlags, inode_checksums, seal_inode, vacant_fields};
pub use orphan_file::{ORPHAN_MAGIC, orphan_block_checksums, parse_orphan_block};
pub use pointers::{
    DIRECT_POINTERS, PointerWay, blocks_below, blocks_reached, pointer, set_pointer,
};
pub use superblock::{
    ErrorRecord, FLAG_SIGNED_HASH, FLAG_UNSIGNED_HASH, MAGIC, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE,
    State, Superblock, superblock_checksums,
};
pub use xattr::{
    NoRoom, XATTR_MAGIC, Xattr, XattrBlockHeader, XattrIndex, check_block_hashes,
    check_inline_hashes, encode_inline_xattrs, encode_xattr_block, parse_inline_xattrs,
    parse_xattr_block, seal_xattr_block, set_xattr_refcount, xattr_block_checksums,
    xattr_block_header,
};

/// The little-endian u32 at `offset`; 0 beyond the end.
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let word = bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}
