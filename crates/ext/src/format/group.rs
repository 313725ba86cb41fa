//! Group descriptors: where a group's bitmaps and inode table lie, and what is free in it.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::prove_layout;
use super::{BlockAddr, GroupNo, Incompat, RoCompat, Superblock, crc16, crc32c};
use crate::error::{Corrupt, Damage, Place};

/// A descriptor without the feature 64bit.
const SMALL: usize = 32;
/// Known bytes of a descriptor with the feature 64bit.
const LARGE: usize = 64;
/// Offset of the checksum.
const CHECKSUM: usize = 0x1E;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawGroup {
    bg_block_bitmap_lo: U32,
    bg_inode_bitmap_lo: U32,
    bg_inode_table_lo: U32,
    bg_free_blocks_count_lo: U16,
    bg_free_inodes_count_lo: U16,
    bg_used_dirs_count_lo: U16,
    bg_flags: U16,
    bg_exclude_bitmap_lo: U32,
    bg_block_bitmap_csum_lo: U16,
    bg_inode_bitmap_csum_lo: U16,
    bg_itable_unused_lo: U16,
    bg_checksum: U16,
    bg_block_bitmap_hi: U32,
    bg_inode_bitmap_hi: U32,
    bg_inode_table_hi: U32,
    bg_free_blocks_count_hi: U16,
    bg_free_inodes_count_hi: U16,
    bg_used_dirs_count_hi: U16,
    bg_itable_unused_hi: U16,
    bg_exclude_bitmap_hi: U32,
    bg_block_bitmap_csum_hi: U16,
    bg_inode_bitmap_csum_hi: U16,
    bg_reserved: U32,
}

prove_layout!(RawGroup, 64, {
    0xC => bg_free_blocks_count_lo, 0x12 => bg_flags, 0x18 => bg_block_bitmap_csum_lo, 0x1E => bg_checksum,
    0x20 => bg_block_bitmap_hi, 0x2C => bg_free_blocks_count_hi, 0x32 => bg_itable_unused_hi,
    0x38 => bg_block_bitmap_csum_hi, 0x3A => bg_inode_bitmap_csum_hi,
});

/// Initialization flags of a group (`bg_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupFlags(pub u16);

impl GroupFlags {
    /// The inode bitmap was never written: no inode is used.
    pub const INODE_UNINIT: Self = Self(1);
    /// The block bitmap was never written: only the group's own metadata are used.
    pub const BLOCK_UNINIT: Self = Self(2);
    /// The inode table is zero where no inode is used.
    pub const INODE_ZEROED: Self = Self(4);

    /// All bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits that are set here and not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Descriptor of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The bitmap of the group's blocks.
    pub block_bitmap: BlockAddr,
    /// The bitmap of its inodes.
    pub inode_bitmap: BlockAddr,
    /// The first block of its inode table.
    pub inode_table: BlockAddr,
    /// Blocks (clusters) that hold nothing.
    pub free_blocks: u32,
    /// Inodes that are not used.
    pub free_inodes: u32,
    /// Inodes that are directories.
    pub used_dirs: u32,
    /// Initialization flags.
    pub flags: GroupFlags,
    /// The checksum of the block bitmap, see [`super::bitmap_checksum`]; 16 bits of it in small
    /// descriptors.
    pub block_bitmap_csum: u32,
    /// The same of the inode bitmap.
    pub inode_bitmap_csum: u32,
    /// Inodes at the table's end that were never used.
    pub itable_unused: u32,
    /// The checksum of the descriptor as it is stored; computed anew by [`Self::encode`].
    pub checksum: u16,
}

impl Group {
    /// Decodes the descriptor of `group`; bytes that are missing are taken for zeros. Its checksum
    /// is not looked at.
    pub fn parse(bytes: &[u8], superblock: &Superblock) -> Self {
        let mut whole = [0; LARGE];
        let len = bytes.len().min(superblock.descriptor_size()).min(LARGE);
        whole[..len].copy_from_slice(&bytes[..len]);
        let mut raw = RawGroup::new_zeroed();
        raw.as_mut_bytes().copy_from_slice(&whole);
        raw.decode()
    }

    /// Decodes the descriptor of `group` and checks its checksum and its addresses.
    ///
    /// # Errors
    /// [`Corrupt::Checksum`], [`Damage::Address`].
    pub fn parse_checked(
        bytes: &[u8],
        group: GroupNo,
        superblock: &Superblock,
    ) -> Result<Self, Corrupt> {
        if let Some((found, computed)) = group_checksums(bytes, group, superblock) {
            Corrupt::check_checksum(Place::Group(group), found.into(), computed.into())?;
        }
        let parsed = Self::parse(bytes, superblock);
        parsed.check(group, superblock)?;
        Ok(parsed)
    }

    /// Checks that bitmaps and inode table lie on the volume.
    ///
    /// # Errors
    /// [`Damage::Address`].
    pub fn check(&self, group: GroupNo, superblock: &Superblock) -> Result<(), Corrupt> {
        let table_blocks = u64::from(superblock.inode_table_blocks());
        let fields = [
            ("bg_block_bitmap", self.block_bitmap, 1),
            ("bg_inode_bitmap", self.inode_bitmap, 1),
            ("bg_inode_table", self.inode_table, table_blocks),
        ];
        for (field, found, blocks) in fields {
            let first = u64::from(superblock.first_data_block) + 1;
            let last = superblock.blocks_count.saturating_sub(blocks);
            if !(first..=last).contains(&found.0) {
                return Err(Damage::Address {
                    place: Place::Group(group),
                    field,
                    found,
                    first,
                    last,
                }
                .into());
            }
        }
        Ok(())
    }

    /// Writes the descriptor of `group` into `bytes`, which hold what was read (zeros if new); what
    /// this type does not know of stays. The checksum is computed.
    pub fn encode(&self, bytes: &mut [u8], group: GroupNo, superblock: &Superblock) {
        let len = bytes.len().min(superblock.descriptor_size()).min(LARGE);
        let mut raw = RawGroup::new_zeroed();
        raw.as_mut_bytes()[..len].copy_from_slice(&bytes[..len]);
        raw.encode(self);
        bytes[..len].copy_from_slice(&raw.as_bytes()[..len]);
        if let Some((_, computed)) = group_checksums(bytes, group, superblock) {
            bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&computed.to_le_bytes());
        }
    }
}

impl RawGroup {
    fn decode(&self) -> Group {
        let wide = |low: U32, high: U32| u64::from(high.get()) << 32 | u64::from(low.get());
        let count = |low: U16, high: U16| u32::from(high.get()) << 16 | u32::from(low.get());
        Group {
            block_bitmap: BlockAddr(wide(self.bg_block_bitmap_lo, self.bg_block_bitmap_hi)),
            inode_bitmap: BlockAddr(wide(self.bg_inode_bitmap_lo, self.bg_inode_bitmap_hi)),
            inode_table: BlockAddr(wide(self.bg_inode_table_lo, self.bg_inode_table_hi)),
            free_blocks: count(self.bg_free_blocks_count_lo, self.bg_free_blocks_count_hi),
            free_inodes: count(self.bg_free_inodes_count_lo, self.bg_free_inodes_count_hi),
            used_dirs: count(self.bg_used_dirs_count_lo, self.bg_used_dirs_count_hi),
            flags: GroupFlags(self.bg_flags.get()),
            block_bitmap_csum: count(self.bg_block_bitmap_csum_lo, self.bg_block_bitmap_csum_hi),
            inode_bitmap_csum: count(self.bg_inode_bitmap_csum_lo, self.bg_inode_bitmap_csum_hi),
            itable_unused: count(self.bg_itable_unused_lo, self.bg_itable_unused_hi),
            checksum: self.bg_checksum.get(),
        }
    }

    fn encode(&mut self, from: &Group) {
        let wide = |value: u64| (U32::new(value as u32), U32::new((value >> 32) as u32));
        let count = |value: u32| (U16::new(value as u16), U16::new((value >> 16) as u16));
        (self.bg_block_bitmap_lo, self.bg_block_bitmap_hi) = wide(from.block_bitmap.0);
        (self.bg_inode_bitmap_lo, self.bg_inode_bitmap_hi) = wide(from.inode_bitmap.0);
        (self.bg_inode_table_lo, self.bg_inode_table_hi) = wide(from.inode_table.0);
        (self.bg_free_blocks_count_lo, self.bg_free_blocks_count_hi) = count(from.free_blocks);
        (self.bg_free_inodes_count_lo, self.bg_free_inodes_count_hi) = count(from.free_inodes);
        (self.bg_used_dirs_count_lo, self.bg_used_dirs_count_hi) = count(from.used_dirs);
        self.bg_flags.set(from.flags.0);
        (self.bg_block_bitmap_csum_lo, self.bg_block_bitmap_csum_hi) =
            count(from.block_bitmap_csum);
        (self.bg_inode_bitmap_csum_lo, self.bg_inode_bitmap_csum_hi) =
            count(from.inode_bitmap_csum);
        (self.bg_itable_unused_lo, self.bg_itable_unused_hi) = count(from.itable_unused);
    }
}

/// The checksum of the descriptor of `group`, stored and computed; `None` if the volume's
/// descriptors have none.
pub fn group_checksums(
    bytes: &[u8],
    group: GroupNo,
    superblock: &Superblock,
) -> Option<(u16, u16)> {
    let bytes = bytes.get(..superblock.descriptor_size())?;
    let (before, rest) = bytes.split_at(CHECKSUM);
    let (found, after) = rest.split_first_chunk()?;
    let number = group.0.to_le_bytes();
    let computed = if let Some(seed) = superblock.checksum_seed() {
        let crc = crc32c(crc32c(seed, &number), before);
        crc32c(crc32c(crc, &[0; 2]), after) as u16
    } else if superblock.ro_compat.has(RoCompat::GDT_CSUM) {
        let crc = crc16(crc16(crc16(0xFFFF, &superblock.uuid), &number), before);
        if superblock.incompat.has(Incompat::BITS_64) { crc16(crc, after) } else { crc }
    } else {
        return None;
    };
    Some((u16::from_le_bytes(*found), computed))
}

/// The checksum of a group's block or inode bitmap, as a descriptor of this volume holds it; `None`
/// without the feature metadata_csum. It covers as many bits as a group has clusters or inodes.
pub fn bitmap_checksum(bitmap: &[u8], bits: u32, superblock: &Superblock) -> Option<u32> {
    let covered = bitmap.get(..bits as usize / 8)?;
    let crc = crc32c(superblock.checksum_seed()?, covered);
    Some(if superblock.descriptor_size() > SMALL { crc } else { crc & 0xFFFF })
}
