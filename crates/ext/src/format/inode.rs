//! The inode: the attributes of a file, and where its content lies.

use dovetail_vfs::Timestamp;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::prove_layout;
use super::time::{decode_time, encode_time, storable};
use super::{BlockAddr, FileType, Incompat, Ino, RoCompat, Superblock, crc32c, inode_seed};
use crate::error::{Corrupt, Place};

/// The part that all inodes have.
pub(super) const OLD_SIZE: usize = 128;
/// Bytes of pointers, extents, or a short link's target.
pub const BLOCK_AREA: usize = 60;
/// Known bytes of the extra part.
const EXTRA_SIZE: usize = 32;
/// The two halves of the checksum.
const CHECKSUM_LOW: usize = 0x7C;
const CHECKSUM_HIGH: usize = 0x82;
/// The size of a sector, in which blocks are counted.
const SECTOR: u64 = 512;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawInode {
    i_mode: U16,
    i_uid: U16,
    i_size_lo: U32,
    i_atime: U32,
    i_ctime: U32,
    i_mtime: U32,
    i_dtime: U32,
    i_gid: U16,
    i_links_count: U16,
    i_blocks_lo: U32,
    i_flags: U32,
    i_version: U32,
    i_block: [u8; BLOCK_AREA],
    i_generation: U32,
    i_file_acl_lo: U32,
    i_size_high: U32,
    i_obso_faddr: U32,
    i_blocks_high: U16,
    i_file_acl_high: U16,
    i_uid_high: U16,
    i_gid_high: U16,
    i_checksum_lo: U16,
    i_reserved: U16,
}

prove_layout!(RawInode, 128, {
    0x14 => i_dtime, 0x1A => i_links_count, 0x20 => i_flags, 0x28 => i_block, 0x64 => i_generation,
    0x68 => i_file_acl_lo, 0x6C => i_size_high, 0x74 => i_blocks_high, 0x78 => i_uid_high, 0x7C => i_checksum_lo,
});

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawExtra {
    i_extra_isize: U16,
    i_checksum_hi: U16,
    i_ctime_extra: U32,
    i_mtime_extra: U32,
    i_atime_extra: U32,
    i_crtime: U32,
    i_crtime_extra: U32,
    i_version_hi: U32,
    i_projid: U32,
}

prove_layout!(RawExtra, 32, { 2 => i_checksum_hi, 4 => i_ctime_extra, 0x10 => i_crtime, 0x1C => i_projid });

/// Attributes that lsattr shows, and what the content is (`i_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InodeFlags(pub u32);

impl InodeFlags {
    /// Writes are synchronous.
    pub const SYNC: Self = Self(0x8);
    /// Nothing may be changed.
    pub const IMMUTABLE: Self = Self(0x10);
    /// Content may only be added.
    pub const APPEND: Self = Self(0x20);
    /// The time of the last read is not kept.
    pub const NOATIME: Self = Self(0x80);
    /// The content is encrypted.
    pub const ENCRYPT: Self = Self(0x800);
    /// The directory has an index of hashes.
    pub const INDEX: Self = Self(0x1000);
    /// The content goes through the journal.
    pub const JOURNAL_DATA: Self = Self(0x4000);
    /// Changes to the directory are synchronous.
    pub const DIRSYNC: Self = Self(0x1_0000);
    /// The top of a hierarchy: subdirectories are spread.
    pub const TOPDIR: Self = Self(0x2_0000);
    /// Blocks are counted in blocks, not in sectors.
    pub const HUGE_FILE: Self = Self(0x4_0000);
    /// The content is described by extents.
    pub const EXTENTS: Self = Self(0x8_0000);
    /// The content is sealed.
    pub const VERITY: Self = Self(0x10_0000);
    /// The inode holds the value of an extended attribute.
    pub const EA_INODE: Self = Self(0x20_0000);
    /// The content lies in the inode.
    pub const INLINE_DATA: Self = Self(0x1000_0000);
    /// New files inherit the project.
    pub const PROJINHERIT: Self = Self(0x2000_0000);
    /// Names are found whatever their case.
    pub const CASEFOLD: Self = Self(0x4000_0000);

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

/// A file, directory, link, device, fifo or socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub ino: Ino,
    /// Type and permissions, as `stat` has them.
    pub mode: u16,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Names that lead to it; for a directory 2 and one for each subdirectory, or 1 for too many to
    /// count.
    pub links: u16,
    /// Size in bytes.
    pub size: u64,
    /// Sectors of 512 bytes that its content, its pointers or extents, and its attribute block
    /// take.
    pub sectors: u64,
    /// Last read.
    pub atime: Timestamp,
    /// Last changed in any way.
    pub ctime: Timestamp,
    /// Content last changed.
    pub mtime: Timestamp,
    /// Made; only in inodes that have room for it.
    pub crtime: Option<Timestamp>,
    /// Time of its deletion, in seconds since 1970; for an orphan the next inode of the list of
    /// orphans.
    pub dtime: u32,
    /// Form of the content, and attributes that lsattr shows.
    pub flags: InodeFlags,
    /// Tells apart the files that had this number.
    pub generation: u32,
    /// Counts changes.
    pub version: u64,
    /// The block of its extended attributes.
    pub xattr_block: BlockAddr,
    /// Project id; only in inodes that have room for it.
    pub project: Option<u32>,
    /// Bytes beyond 128 that hold fields; what follows is [`Self::xattr_area`].
    pub extra_isize: u16,
    /// `i_block`: pointers, the root of the extents, a short link's target, or a device's number.
    pub block: [u8; BLOCK_AREA],
    /// Bytes behind the fields: extended attributes. Empty in inodes of 128 bytes.
    pub xattr_area: Vec<u8>,
}

/// The extra field from `start` to `end`, bytes counted from the start of the extra part, lies in
/// `extra_isize`.
const fn has_field(extra_isize: u16, end: usize) -> bool {
    extra_isize as usize >= end
}

impl Inode {
    /// An inode of no size and without content, names and owner, with the fields that the volume's
    /// new inodes have.
    pub fn new(ino: Ino, mode: u16, superblock: &Superblock) -> Self {
        let room = (superblock.inode_size as usize - OLD_SIZE) as u16;
        let extra_isize = room.min(superblock.want_extra_isize);
        let has = |end| has_field(extra_isize, end);
        Self {
            ino,
            mode,
            uid: 0,
            gid: 0,
            links: 0,
            size: 0,
            sectors: 0,
            atime: Timestamp::default(),
            ctime: Timestamp::default(),
            mtime: Timestamp::default(),
            crtime: has(0x18).then(Timestamp::default),
            dtime: 0,
            flags: InodeFlags::default(),
            generation: 0,
            version: 0,
            xattr_block: BlockAddr::NONE,
            project: has(0x20).then_some(0),
            extra_isize,
            block: [0; BLOCK_AREA],
            xattr_area: vec![0; usize::from(room - extra_isize)],
        }
    }

    /// Decodes the inode in `bytes`, as many as the volume's inodes have, and checks its checksum.
    ///
    /// # Errors
    /// [`Corrupt::Checksum`]; an extra part beyond the inode's end.
    pub fn parse(bytes: &[u8], ino: Ino, superblock: &Superblock) -> Result<Self, Corrupt> {
        if let Some((found, computed)) = inode_checksums(bytes, ino, superblock) {
            Corrupt::check_checksum(Place::Inode(ino), found, computed)?;
        }
        Self::parse_unchecked(bytes, ino, superblock)
    }

    /// As [`Self::parse`], whatever the checksum.
    ///
    /// # Errors
    /// An extra part beyond the inode's end; fewer bytes than an inode has.
    pub fn parse_unchecked(
        bytes: &[u8],
        ino: Ino,
        superblock: &Superblock,
    ) -> Result<Self, Corrupt> {
        let size = usize::from(superblock.inode_size);
        let place = Place::Inode(ino);
        let (Some(bytes), Ok((raw, _))) = (bytes.get(..size), RawInode::read_from_prefix(bytes))
        else {
            let (min, max) = (size as u64, size as u64);
            return Err(Corrupt::Range {
                place,
                field: "the inode's bytes",
                found: bytes.len() as u64,
                min,
                max,
            });
        };
        let extra = RawExtra::read_from_prefix(&bytes[OLD_SIZE..])
            .map_or_else(|_| RawExtra::new_zeroed(), |e| e.0);
        let extra_isize = extra.i_extra_isize.get();
        Corrupt::check_range(place, "i_extra_isize", extra_isize, (0, (size - OLD_SIZE) as u64))?;
        Corrupt::check_equal(place, "i_extra_isize", extra_isize, extra_isize.next_multiple_of(4))?;
        let mut inode = raw.decode(ino, superblock);
        inode.read_extra(&raw, &extra);
        inode.xattr_area = bytes[OLD_SIZE + usize::from(extra_isize)..].to_vec();
        Ok(inode)
    }

    fn read_extra(&mut self, raw: &RawInode, extra: &RawExtra) {
        self.extra_isize = extra.i_extra_isize.get();
        let has = |end| has_field(self.extra_isize, end);
        let word = |end, word: U32| has(end).then(|| word.get());
        self.ctime = decode_time(raw.i_ctime.get(), word(0x8, extra.i_ctime_extra));
        self.mtime = decode_time(raw.i_mtime.get(), word(0xC, extra.i_mtime_extra));
        self.atime = decode_time(raw.i_atime.get(), word(0x10, extra.i_atime_extra));
        self.crtime = word(0x14, extra.i_crtime)
            .map(|time| decode_time(time, word(0x18, extra.i_crtime_extra)));
        self.version |= u64::from(word(0x1C, extra.i_version_hi).unwrap_or(0)) << 32;
        self.project = word(0x20, extra.i_projid);
    }

    /// Gives an inode without extra fields those that it has room for, as Linux does when it loads
    /// one: `tune2fs -I` leaves such inodes.
    pub(crate) fn use_spare_fields(&mut self) {
        if self.extra_isize == 0 {
            let room = self.xattr_area.len().min(EXTRA_SIZE);
            self.extra_isize = room as u16;
            self.xattr_area.drain(..room);
        }
    }

    /// Writes the inode into `bytes`, which hold what was read (zeros if new) and are as many as
    /// the volume's inodes have; what this type does not know of stays. The checksum is computed.
    pub fn encode(&self, bytes: &mut [u8], superblock: &Superblock) {
        let Some(bytes) = bytes.get_mut(..usize::from(superblock.inode_size)) else { return };
        let (old, rest) = bytes.split_at_mut(OLD_SIZE);
        if let Ok(raw) = RawInode::mut_from_bytes(old) {
            raw.encode(self, superblock);
        }
        if !rest.is_empty() {
            self.encode_extra(rest);
        }
        seal_inode(bytes, self.ino, superblock);
    }

    fn encode_extra(&self, rest: &mut [u8]) {
        let fields = usize::from(self.extra_isize).min(rest.len());
        let known = fields.min(EXTRA_SIZE);
        let mut extra = RawExtra::new_zeroed();
        extra.as_mut_bytes()[..known].copy_from_slice(&rest[..known]);
        extra.i_extra_isize.set(self.extra_isize);
        extra.i_ctime_extra.set(encode_time(self.ctime, true).1);
        extra.i_mtime_extra.set(encode_time(self.mtime, true).1);
        extra.i_atime_extra.set(encode_time(self.atime, true).1);
        let (crtime, crtime_extra) = encode_time(self.crtime.unwrap_or_default(), true);
        (extra.i_crtime, extra.i_crtime_extra) = (U32::new(crtime), U32::new(crtime_extra));
        extra.i_version_hi.set((self.version >> 32) as u32);
        extra.i_projid.set(self.project.unwrap_or(0));
        let known = known.max(2); // the size itself is always there
        rest[..known].copy_from_slice(&extra.as_bytes()[..known]);
        let area = &mut rest[fields..];
        let len = area.len().min(self.xattr_area.len());
        area[..len].copy_from_slice(&self.xattr_area[..len]);
        area[len..].fill(0);
    }

    /// The time that it has where `time` is set: the nearest that it can store.
    pub fn storable(&self, time: Timestamp) -> Timestamp {
        storable(time, self.extra_isize >= 0x10)
    }

    /// Type of the file.
    pub const fn file_type(&self) -> FileType {
        FileType::of_mode(self.mode)
    }

    /// It is a directory.
    pub fn is_dir(&self) -> bool {
        self.file_type() == FileType::DIRECTORY
    }

    /// A link whose target lies in [`Self::block`]: it has no blocks but perhaps one of attributes.
    pub fn is_fast_symlink(&self, superblock: &Superblock) -> bool {
        let xattr = if self.xattr_block.is_some() {
            u64::from(superblock.block_size()) / SECTOR
        } else {
            0
        };
        let inside = self.sectors <= xattr && !self.flags.has(InodeFlags::EXTENTS);
        self.file_type() == FileType::SYMLINK && self.size < BLOCK_AREA as u64 && inside
    }

    /// The 15 pointers: 12 direct ones, and the indirect, double indirect and triple indirect
    /// block.
    pub fn pointers(&self) -> [u32; 15] {
        let words = self.block.as_chunks::<4>().0;
        std::array::from_fn(|i| u32::from_le_bytes(words[i]))
    }

    /// Sets pointer `index`, 0 to 14.
    pub fn set_pointer(&mut self, index: usize, pointer: u32) {
        self.block[index * 4..][..4].copy_from_slice(&pointer.to_le_bytes());
    }

    /// The number of a device, major and minor. Old small numbers stand in the first pointer,
    /// others in the second.
    pub fn device(&self) -> (u32, u32) {
        match self.pointers() {
            [0, new, ..] => (new >> 8 & 0xFFF, new & 0xFF | new >> 12 & 0xF_FF00),
            [old, ..] => (old >> 8 & 0xFF, old & 0xFF),
        }
    }

    /// Sets the number of a device: major below 4096, minor below 2^20.
    pub fn set_device(&mut self, major: u32, minor: u32) {
        self.block = [0; BLOCK_AREA];
        if major < 256 && minor < 256 {
            self.set_pointer(0, major << 8 | minor);
        } else {
            self.set_pointer(1, minor & 0xFF | (major & 0xFFF) << 8 | (minor & 0xF_FF00) << 12);
        }
    }

    /// Initial value of the checksums of its extents and directory blocks; `None` without the
    /// feature metadata_csum.
    pub fn checksum_seed(&self, superblock: &Superblock) -> Option<u32> {
        superblock.checksum_seed().map(|seed| inode_seed(seed, self.ino, self.generation))
    }
}

/// Fields of an inode in use that must be 0, by the kernel's names: the address of a fragment, and
/// the upper half of the size of a directory, where that has none.
pub fn vacant_fields(bytes: &[u8], superblock: &Superblock) -> Vec<(&'static str, u32)> {
    let Ok((raw, _)) = RawInode::read_from_prefix(bytes) else { return Vec::new() };
    let mode = raw.i_mode.get();
    let is_narrow =
        FileType::of_mode(mode) == FileType::DIRECTORY && !has_wide_size(mode, superblock);
    let high = is_narrow.then_some(("i_size_high", raw.i_size_high.get()));
    [("i_obso_faddr", raw.i_obso_faddr.get())].into_iter().chain(high).collect()
}

/// Sizes of regular files have 64 bits, those of directories only with the feature large_dir.
fn has_wide_size(mode: u16, superblock: &Superblock) -> bool {
    match FileType::of_mode(mode) {
        FileType::REGULAR => true,
        FileType::DIRECTORY => superblock.incompat.has(Incompat::LARGE_DIR),
        _ => false,
    }
}

impl RawInode {
    fn decode(&self, ino: Ino, superblock: &Superblock) -> Inode {
        let mode = self.i_mode.get();
        let size_high = if has_wide_size(mode, superblock) { self.i_size_high.get() } else { 0 };
        let wide = |high: U16, low: u64| u64::from(high.get()) << 32 | low;
        let id = |high: U16, low: U16| u32::from(high.get()) << 16 | u32::from(low.get());
        Inode {
            ino,
            mode,
            uid: id(self.i_uid_high, self.i_uid),
            gid: id(self.i_gid_high, self.i_gid),
            links: self.i_links_count.get(),
            size: u64::from(size_high) << 32 | u64::from(self.i_size_lo.get()),
            sectors: self.sectors(superblock),
            atime: decode_time(self.i_atime.get(), None),
            ctime: decode_time(self.i_ctime.get(), None),
            mtime: decode_time(self.i_mtime.get(), None),
            crtime: None,
            dtime: self.i_dtime.get(),
            flags: InodeFlags(self.i_flags.get()),
            generation: self.i_generation.get(),
            version: self.i_version.get().into(),
            xattr_block: BlockAddr(wide(self.i_file_acl_high, self.i_file_acl_lo.get().into())),
            project: None,
            extra_isize: 0,
            block: self.i_block,
            xattr_area: Vec::new(),
        }
    }

    fn sectors(&self, superblock: &Superblock) -> u64 {
        let low = u64::from(self.i_blocks_lo.get());
        if !superblock.ro_compat.has(RoCompat::HUGE_FILE) {
            return low;
        }
        let count = u64::from(self.i_blocks_high.get()) << 32 | low;
        let in_blocks = InodeFlags(self.i_flags.get()).has(InodeFlags::HUGE_FILE);
        if in_blocks { count * (u64::from(superblock.block_size()) / SECTOR) } else { count }
    }

    fn encode(&mut self, from: &Inode, superblock: &Superblock) {
        self.i_mode.set(from.mode);
        (self.i_uid, self.i_uid_high) =
            (U16::new(from.uid as u16), U16::new((from.uid >> 16) as u16));
        (self.i_gid, self.i_gid_high) =
            (U16::new(from.gid as u16), U16::new((from.gid >> 16) as u16));
        self.i_links_count.set(from.links);
        self.i_size_lo.set(from.size as u32);
        if has_wide_size(from.mode, superblock) {
            self.i_size_high.set((from.size >> 32) as u32);
        }
        let has_extra = from.extra_isize >= 0x10;
        self.i_atime.set(encode_time(from.atime, has_extra).0);
        self.i_ctime.set(encode_time(from.ctime, has_extra).0);
        self.i_mtime.set(encode_time(from.mtime, has_extra).0);
        self.i_dtime.set(from.dtime);
        self.i_generation.set(from.generation);
        self.i_version.set(from.version as u32);
        self.i_file_acl_lo.set(from.xattr_block.0 as u32);
        self.i_file_acl_high.set((from.xattr_block.0 >> 32) as u16);
        self.i_block = from.block;
        self.encode_sectors(from, superblock);
    }

    /// Counts that 48 bits do not hold are stored in blocks, which the flag HUGE_FILE says.
    fn encode_sectors(&mut self, from: &Inode, superblock: &Superblock) {
        let huge = superblock.ro_compat.has(RoCompat::HUGE_FILE) && from.sectors >> 48 != 0;
        let per_block = u64::from(superblock.block_size()) / SECTOR;
        let count = if huge { from.sectors / per_block } else { from.sectors };
        self.i_blocks_lo.set(count as u32);
        self.i_blocks_high.set((count >> 32) as u16);
        let flags = from.flags.without(InodeFlags::HUGE_FILE);
        self.i_flags.set(if huge { flags.with(InodeFlags::HUGE_FILE) } else { flags }.0);
    }
}

/// The checksum has a high half.
fn has_high_half(bytes: &[u8]) -> bool {
    let extra =
        bytes.get(OLD_SIZE..OLD_SIZE + 2).map(|size| u16::from_le_bytes([size[0], size[1]]));
    extra.is_some_and(|extra| extra >= 4)
}

/// The checksum of the inode in `bytes`, as many as the volume's inodes have: stored and computed;
/// `None` without the feature metadata_csum. Inodes of 128 bytes hold 16 bits of it.
pub fn inode_checksums(bytes: &[u8], ino: Ino, superblock: &Superblock) -> Option<(u32, u32)> {
    let seed = superblock.checksum_seed()?;
    let bytes = bytes.get(..usize::from(superblock.inode_size))?;
    let half = |at: usize| u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let generation = u32::from_le_bytes(*bytes.get(0x64..)?.first_chunk()?);
    let mut crc = inode_seed(seed, ino, generation);
    crc = crc32c(crc, &bytes[..CHECKSUM_LOW]);
    crc = crc32c(crc, &[0; 2]);
    if !has_high_half(bytes) {
        crc = crc32c(crc, &bytes[CHECKSUM_LOW + 2..]);
        return Some((half(CHECKSUM_LOW), crc & 0xFFFF));
    }
    crc = crc32c(crc, &bytes[CHECKSUM_LOW + 2..CHECKSUM_HIGH]);
    crc = crc32c(crc, &[0; 2]);
    crc = crc32c(crc, &bytes[CHECKSUM_HIGH + 2..]);
    Some((half(CHECKSUM_HIGH) << 16 | half(CHECKSUM_LOW), crc))
}

/// Puts the checksum into an inode's bytes.
pub fn seal_inode(bytes: &mut [u8], ino: Ino, superblock: &Superblock) {
    let Some((_, computed)) = inode_checksums(bytes, ino, superblock) else { return };
    bytes[CHECKSUM_LOW..CHECKSUM_LOW + 2].copy_from_slice(&(computed as u16).to_le_bytes());
    if has_high_half(bytes) {
        bytes[CHECKSUM_HIGH..CHECKSUM_HIGH + 2]
            .copy_from_slice(&((computed >> 16) as u16).to_le_bytes());
    }
}
