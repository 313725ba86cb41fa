//! The inode: a node block with the attributes of a file and its first pointers, or its content.

use std::sync::Arc;

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::{
    BlockAddr, CompressAlgorithm, Features, FileType, Footer, Nid, Superblock, Variant, crc32,
    set_node_address, u32_at,
};
use crate::error::{Corrupt, Place};

/// Byte at which the area of the pointers begins; extra attributes, if any, come first in it.
const POINTERS: usize = 360;
/// Words of four bytes for pointers, in an inode without extra attributes and inline xattrs.
const MAX_WORDS: usize = 923;
/// The same in bytes.
pub(super) const POINTER_BYTES: usize = 4 * MAX_WORDS;
/// Words that inline xattrs take unless the inode says otherwise.
const DEFAULT_XATTR_WORDS: usize = 50;
/// All extra attributes that are known, in bytes.
const MAX_EXTRA_SIZE: u64 = 36;
/// Byte of the inode's checksum, among the extra attributes.
const CHECKSUM_OFFSET: usize = 368;

/// The bytes themselves, by the kernel's names: a mounted volume edits an inode in its node block.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawInode {
    pub(crate) i_mode: U16,
    pub(crate) i_advise: u8,
    pub(crate) i_inline: u8,
    pub(crate) i_uid: U32,
    pub(crate) i_gid: U32,
    pub(crate) i_links: U32,
    pub(crate) i_size: U64,
    pub(crate) i_blocks: U64,
    pub(crate) i_atime: U64,
    pub(crate) i_ctime: U64,
    pub(crate) i_mtime: U64,
    pub(crate) i_atime_nsec: U32,
    pub(crate) i_ctime_nsec: U32,
    pub(crate) i_mtime_nsec: U32,
    pub(crate) i_generation: U32,
    pub(crate) i_current_depth: U32,
    pub(crate) i_xattr_nid: U32,
    pub(crate) i_flags: U32,
    pub(crate) i_pino: U32,
    pub(crate) i_namelen: U32,
    pub(crate) i_name: [u8; 255],
    pub(crate) i_dir_level: u8,
    pub(crate) i_ext: [U32; 3],
    pub(crate) extra: RawExtra,
    pub(crate) i_addr: [U32; 914],
    pub(crate) i_nid: [U32; 5],
    pub(crate) footer: [u8; 24],
}

/// The extra attributes; they lie over the first pointers.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawExtra {
    pub(crate) i_extra_isize: U16,
    pub(crate) i_inline_xattr_size: U16,
    pub(crate) i_projid: U32,
    pub(crate) i_inode_checksum: U32,
    pub(crate) i_crtime: U64,
    pub(crate) i_crtime_nsec: U32,
    pub(crate) i_compr_blocks: U64,
    pub(crate) i_compress_algorithm: u8,
    pub(crate) i_log_cluster_size: u8,
    pub(crate) i_compress_flag: U16,
}

prove_layout!(RawExtra, 36, {
    2 => i_inline_xattr_size, 4 => i_projid, 8 => i_inode_checksum, 12 => i_crtime, 20 => i_crtime_nsec,
    24 => i_compr_blocks, 32 => i_compress_algorithm, 33 => i_log_cluster_size, 34 => i_compress_flag,
});

prove_layout!(RawInode, 4096, {
    3 => i_inline, 4 => i_uid, 12 => i_links, 16 => i_size, 32 => i_atime, 56 => i_atime_nsec,
    68 => i_generation, 72 => i_current_depth, 76 => i_xattr_nid, 84 => i_pino, 92 => i_name,
    347 => i_dir_level, 348 => i_ext, 360 => extra, 396 => i_addr, 4052 => i_nid, 4072 => footer,
});

/// Flags of the inode's inline content (`i_inline`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InlineFlags(pub u8);

impl InlineFlags {
    /// There is an area for xattrs.
    pub const XATTR: Self = Self(0x01);
    /// The file's content.
    pub const DATA: Self = Self(0x02);
    /// The directory's entries.
    pub const DENTRY: Self = Self(0x04);
    /// Extra attributes.
    pub const EXTRA_ATTR: Self = Self(0x20);

    /// All bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Attributes that chattr shows (`i_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InodeFlags(pub u32);

impl InodeFlags {
    /// The content is compressed.
    pub const COMPRESSED: Self = Self(0x4);
    /// Nothing of the file changes (chattr +i).
    pub const IMMUTABLE: Self = Self(0x10);
    /// The file only gets longer, the directory only gets names (chattr +a).
    pub const APPEND: Self = Self(0x20);
    /// Names are found whatever their case.
    pub const CASEFOLD: Self = Self(0x4000_0000);

    /// All bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The `i_advise` bit of encrypted files.
const ADVISE_ENCRYPTED: u8 = 0x04;
/// In `i_compress_flag`: clusters have a checksum.
const COMPRESS_CHECKSUM: u16 = 0x1;

/// A time since 1970, as the file system stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999 in a sound volume.
    pub nanoseconds: u32,
}

impl Timestamp {
    const fn new(seconds: U64, nanoseconds: U32) -> Self {
        Self { seconds: seconds.get() as i64, nanoseconds: nanoseconds.get() }
    }

    /// The same in nanoseconds.
    pub const fn as_ns(self) -> i128 {
        self.seconds as i128 * 1_000_000_000 + self.nanoseconds as i128
    }
}

/// A file, directory, link, device, fifo or socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub ino: Nid,
    /// Type and permissions, as `stat` has them.
    pub mode: u16,
    /// Hints and states of the kernel (`i_advise`).
    pub advise: u8,
    /// Flags of its inline content.
    pub inline: InlineFlags,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Names that lead to it; for a directory 2 and one for each subdirectory.
    pub links: u32,
    /// Size in bytes.
    pub size: u64,
    /// Blocks that it takes, with the inode itself.
    pub blocks: u64,
    /// Last read.
    pub atime: Timestamp,
    /// Last changed in any way.
    pub ctime: Timestamp,
    /// Content last changed.
    pub mtime: Timestamp,
    /// Made; only with the feature inode_crtime.
    pub crtime: Option<Timestamp>,
    /// Tells apart the files that had this number.
    pub generation: u32,
    /// Levels of a directory's hash table, 0 to 63.
    pub depth: u32,
    /// The node of its xattrs.
    pub xattr_nid: Nid,
    /// Attributes that chattr shows.
    pub flags: InodeFlags,
    /// The directory that it was last named in; may be stale for what has several names.
    pub parent: Nid,
    /// The name that it was last given there; empty for the root.
    pub name: Vec<u8>,
    /// Number of levels of its hash table that a directory skips.
    pub dir_level: u8,
    /// Project id; only with the feature project_quota.
    pub project: Option<u32>,
    /// Blocks of a compressed cluster; 1 for what is not compressed.
    pub cluster_blocks: u32,
    /// Compression algorithm, if the file is compressed.
    pub compression: CompressAlgorithm,
    /// Compressed clusters have a checksum.
    pub cluster_checksum: bool,
    /// Direct, direct, indirect, indirect and double indirect node.
    pub nids: [Nid; 5],
    geometry: Geometry,
    block: Arc<BlockBytes>,
}

impl Inode {
    /// Decodes and checks `block`, the node block of inode `ino` on the volume of `superblock`.
    ///
    /// # Errors
    /// The checksum, or a field that is wrong. The footer is the caller's.
    pub fn parse(
        block: Arc<BlockBytes>,
        ino: Nid,
        superblock: &Superblock,
    ) -> Result<Self, Corrupt> {
        let raw: &RawInode = transmute_ref!(&*block);
        let geometry = check_geometry(raw, ino, superblock)?;
        check_checksum(raw, &block, ino, superblock, geometry.extra_words)?;
        Self::decode(&block, ino, superblock, geometry)
    }

    /// As [`Self::parse`], of an inode in memory: it gets its checksum when it is written.
    pub(crate) fn parse_unsealed(
        block: &Arc<BlockBytes>,
        ino: Nid,
        superblock: &Superblock,
    ) -> Result<Self, Corrupt> {
        let geometry = check_geometry(transmute_ref!(&**block), ino, superblock)?;
        Self::decode(block, ino, superblock, geometry)
    }

    fn decode(
        block: &Arc<BlockBytes>,
        ino: Nid,
        superblock: &Superblock,
        geometry: Geometry,
    ) -> Result<Self, Corrupt> {
        let raw: &RawInode = transmute_ref!(&**block);
        let mut inode = raw.decode(ino, Arc::clone(block));
        inode.geometry = geometry;
        inode.decode_extra(raw, superblock);
        inode.check(raw, superblock.variant.max_file_size())?;
        Ok(inode)
    }

    /// File type, from the mode.
    pub fn file_type(&self) -> FileType {
        FileType::of_mode(self.mode)
    }

    /// It is a directory.
    pub fn is_dir(&self) -> bool {
        self.file_type() == FileType::DIRECTORY
    }

    /// Its content (or names) are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.advise & ADVISE_ENCRYPTED != 0
    }

    /// Number of pointers; of a compressed file, of those used.
    pub fn pointer_count(&self) -> usize {
        let usable = self.geometry.pointers();
        usable - usable % self.cluster_blocks as usize
    }

    /// Pointer `index`, below [`Self::pointer_count`].
    pub fn pointer(&self, index: usize) -> BlockAddr {
        self.geometry.variant.address_at(&*self.block, self.geometry.pointer_at(index))
    }

    /// Area for inline content or entries, used or not.
    pub fn inline_area(&self) -> &[u8] {
        &self.block[self.geometry.inline_area()]
    }

    /// Area for inline xattrs; empty if there is no room for them.
    pub fn inline_xattrs(&self) -> &[u8] {
        if self.inline.has(InlineFlags::XATTR) {
            &self.block[self.geometry.inline_xattrs()]
        } else {
            &[]
        }
    }

    /// The device that a device file stands for: major and minor number.
    pub fn device(&self) -> (u32, u32) {
        let word = |index: usize| u32_at(&*self.block, self.geometry.pointer_at(0) + 4 * index);
        match word(0) {
            0 => {
                let wide = word(1);
                ((wide & 0xF_FF00) >> 8, wide & 0xFF | (wide >> 12) & 0xF_FF00)
            }
            narrow => ((narrow >> 8) & 0xFF, narrow & 0xFF),
        }
    }

    fn decode_extra(&mut self, raw: &RawInode, superblock: &Superblock) {
        let extra = &raw.extra;
        let has = |feature, end: usize| {
            superblock.features.has(feature) && self.geometry.extra_words * 4 >= end
        };
        self.project = has(Features::PROJECT_QUOTA, 8).then(|| extra.i_projid.get());
        self.crtime = has(Features::INODE_CRTIME, 24)
            .then(|| Timestamp::new(extra.i_crtime, extra.i_crtime_nsec));
        if has(Features::COMPRESSION, 36)
            && self.flags.has(InodeFlags::COMPRESSED)
            && !self.is_dir()
        {
            self.cluster_blocks = 1_u32.checked_shl(extra.i_log_cluster_size.into()).unwrap_or(0);
            self.compression = CompressAlgorithm(extra.i_compress_algorithm);
            self.cluster_checksum = extra.i_compress_flag.get() & COMPRESS_CHECKSUM != 0;
        }
    }

    fn check(&self, raw: &RawInode, max_size: u64) -> Result<(), Corrupt> {
        let place = Place::Inode(self.ino);
        Corrupt::check_range(place, "the type in i_mode", self.file_type().0, (1, 7))?;
        Corrupt::check_range(place, "i_namelen", raw.i_namelen, (0, 255))?;
        if self.cluster_blocks != 1 {
            Corrupt::check_range(place, "the cluster's blocks", self.cluster_blocks, (4, 256))?;
        }
        Corrupt::check_range(place, "i_size", self.size, (0, max_size))?;
        if self.is_dir() {
            Corrupt::check_range(place, "i_current_depth", self.depth, (0, 63))?;
        }
        if self.inline.has(InlineFlags::DATA) {
            let room = self.inline_area().len() as u64;
            Corrupt::check_range(place, "i_size", self.size, (0, room))?;
        }
        let inline = self.inline.has(InlineFlags::DENTRY);
        Corrupt::check_range(place, "the inline dentry flag", inline, (0, u64::from(self.is_dir())))
    }
}

impl RawInode {
    fn decode(&self, ino: Nid, block: Arc<BlockBytes>) -> Inode {
        Inode {
            ino,
            mode: self.i_mode.get(),
            advise: self.i_advise,
            inline: InlineFlags(self.i_inline),
            uid: self.i_uid.get(),
            gid: self.i_gid.get(),
            links: self.i_links.get(),
            size: self.i_size.get(),
            blocks: self.i_blocks.get(),
            atime: Timestamp::new(self.i_atime, self.i_atime_nsec),
            ctime: Timestamp::new(self.i_ctime, self.i_ctime_nsec),
            mtime: Timestamp::new(self.i_mtime, self.i_mtime_nsec),
            crtime: None,
            generation: self.i_generation.get(),
            depth: self.i_current_depth.get(),
            xattr_nid: Nid(self.i_xattr_nid.get()),
            flags: InodeFlags(self.i_flags.get()),
            parent: Nid(self.i_pino.get()),
            name: self.name().to_vec(),
            dir_level: self.i_dir_level,
            project: None,
            cluster_blocks: 1,
            compression: CompressAlgorithm::default(),
            cluster_checksum: false,
            nids: self.i_nid.map(|nid| Nid(nid.get())),
            geometry: Geometry::default(),
            block,
        }
    }
}

impl RawInode {
    /// The file's name in the directory that `i_pino` notes.
    pub(crate) fn name(&self) -> &[u8] {
        &self.i_name[..self.i_namelen.get().min(255) as usize]
    }

    pub(crate) fn of(block: &BlockBytes) -> &Self {
        transmute_ref!(block)
    }

    pub(crate) fn of_mut(block: &mut BlockBytes) -> &mut Self {
        transmute_mut!(block)
    }

    /// Words that extra attributes and inline xattrs take from the pointers, of an inode that was
    /// checked.
    pub(crate) fn geometry(&self, (variant, features): (Variant, Features)) -> Geometry {
        let inline = InlineFlags(self.i_inline);
        let extra = inline.has(InlineFlags::EXTRA_ATTR);
        let extra_words = if extra { usize::from(self.extra.i_extra_isize.get() / 4) } else { 0 };
        let xattr_words = if extra && features.has(Features::FLEXIBLE_INLINE_XATTR) {
            usize::from(self.extra.i_inline_xattr_size.get())
        } else if inline.has(InlineFlags::XATTR) || inline.has(InlineFlags::DENTRY) {
            DEFAULT_XATTR_WORDS
        } else {
            0
        };
        Geometry { variant, extra_words, xattr_words }
    }
}

/// Division of the room of an inode's pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Geometry {
    variant: Variant,
    extra_words: usize,
    xattr_words: usize,
}

impl Geometry {
    /// Number of pointers.
    pub(crate) const fn pointers(self) -> usize {
        4 * (MAX_WORDS - self.extra_words - self.xattr_words) / self.variant.address_bytes()
    }

    /// The byte of the block at which pointer `index` stands.
    pub(crate) const fn pointer_at(self, index: usize) -> usize {
        POINTERS + 4 * self.extra_words + self.variant.address_bytes() * index
    }

    /// The bytes of the block that hold content or entries.
    pub(crate) const fn inline_area(self) -> std::ops::Range<usize> {
        POINTERS + 4 * (self.extra_words + 1)..self.inline_xattrs().start
    }

    /// The bytes of the block that hold xattrs, if the inode has [`InlineFlags::XATTR`].
    pub(crate) const fn inline_xattrs(self) -> std::ops::Range<usize> {
        POINTERS + 4 * (MAX_WORDS - self.xattr_words)..POINTERS + 4 * MAX_WORDS
    }
}

/// Sets pointer `index` of a node: an inode or a direct node.
pub(crate) fn set_pointer(
    node: &mut BlockBytes,
    is_inode: bool,
    index: usize,
    to: BlockAddr,
    layout: (Variant, Features),
) {
    if is_inode {
        let at = RawInode::of(node).geometry(layout).pointer_at(index);
        layout.0.put_address(node, at, to);
    } else {
        set_node_address(node, index, to, layout.0);
    }
}

/// Puts the checksum into an inode's node block, on a volume that has them; the footer must be
/// final.
pub(crate) fn seal_inode(block: &mut BlockBytes, superblock: &Superblock) {
    let raw = RawInode::of(block);
    let extra_words = raw.geometry(superblock.layout()).extra_words;
    if has_checksum(superblock, extra_words) {
        let sum = checksum(raw, block, superblock);
        RawInode::of_mut(block).extra.i_inode_checksum.set(sum);
    }
}

/// The checksum that an inode's node block carries and the one that its bytes give; `None` if it
/// has none.
pub(crate) fn inode_checksums(block: &BlockBytes, superblock: &Superblock) -> Option<(u32, u32)> {
    let raw = RawInode::of(block);
    let words = raw.geometry(superblock.layout()).extra_words;
    let has = has_checksum(superblock, words);
    has.then(|| (raw.extra.i_inode_checksum.get(), checksum(raw, block, superblock)))
}

/// Checks the sizes that the inode gives, and returns the division of its room.
pub(crate) fn check_geometry(
    raw: &RawInode,
    ino: Nid,
    superblock: &Superblock,
) -> Result<Geometry, Corrupt> {
    let place = Place::Inode(ino);
    let inline = InlineFlags(raw.i_inline);
    let (variant, features) = superblock.layout();
    let extra = inline.has(InlineFlags::EXTRA_ATTR);
    let mut extra_words = 0;
    if extra {
        let allowed = u64::from(features.has(Features::EXTRA_ATTR));
        Corrupt::check_range(place, "the extra attribute flag", 1_u32, (0, allowed))?;
        let size = raw.extra.i_extra_isize.get();
        Corrupt::check_range(place, "i_extra_isize", size, (4, MAX_EXTRA_SIZE))?;
        Corrupt::check_equal(place, "i_extra_isize modulo 4", size % 4, 0_u32)?;
        extra_words = usize::from(size / 4);
    }
    if extra && features.has(Features::FLEXIBLE_INLINE_XATTR) {
        let words = raw.extra.i_inline_xattr_size.get();
        let room = (MAX_WORDS - extra_words - 2) as u64;
        Corrupt::check_range(place, "i_inline_xattr_size", words, (0, room))?;
        return Ok(Geometry { variant, extra_words, xattr_words: words.into() });
    }
    let reserved = inline.has(InlineFlags::XATTR) || inline.has(InlineFlags::DENTRY);
    Ok(Geometry {
        variant,
        extra_words,
        xattr_words: if reserved { DEFAULT_XATTR_WORDS } else { 0 },
    })
}

fn check_checksum(
    raw: &RawInode,
    block: &BlockBytes,
    ino: Nid,
    superblock: &Superblock,
    extra_words: usize,
) -> Result<(), Corrupt> {
    if !has_checksum(superblock, extra_words) {
        return Ok(());
    }
    let computed = checksum(raw, block, superblock);
    Corrupt::check_checksum(Place::Inode(ino), raw.extra.i_inode_checksum.get(), computed)
}

/// The volume has inode checksums, and this inode's extra attributes reach that far.
fn has_checksum(superblock: &Superblock, extra_words: usize) -> bool {
    let reaches = POINTERS + 4 * extra_words >= CHECKSUM_OFFSET + 4;
    reaches && superblock.features.has(Features::INODE_CHECKSUM)
}

fn checksum(raw: &RawInode, block: &BlockBytes, superblock: &Superblock) -> u32 {
    let mut crc = crc32(0xFFFF_FFFF, &superblock.uuid);
    crc = crc32(crc, &Footer::parse(block).ino.0.to_le_bytes());
    crc = crc32(crc, raw.i_generation.as_bytes());
    crc = crc32(crc, &block[..CHECKSUM_OFFSET]);
    crc = crc32(crc, &[0; 4]);
    crc32(crc, &block[CHECKSUM_OFFSET + 4..])
}
