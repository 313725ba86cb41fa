//! The journal's superblock: the first 1024 bytes of its first block.

use std::fmt;

use super::header::{BlockType, Header};
use super::tag::TagFormat;
use super::{JournalError, Tid, be32, crc32c, put_be32};

const SIZE: usize = 1024;
const BLOCKSIZE: usize = 0x0C;
const MAXLEN: usize = 0x10;
const FIRST: usize = 0x14;
const SEQUENCE: usize = 0x18;
const START: usize = 0x1C;
const ERRNO: usize = 0x20;
const FEATURE_COMPAT: usize = 0x24;
const FEATURE_INCOMPAT: usize = 0x28;
const FEATURE_RO_COMPAT: usize = 0x2C;
const UUID: usize = 0x30;
const CHECKSUM_TYPE: usize = 0x50;
const CHECKSUM: usize = 0xFC;
/// `s_checksum_type` of CRC-32C.
const CRC32C: u8 = 4;

/// Bits of `s_feature_incompat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalFeatures(pub u32);

impl JournalFeatures {
    /// There may be revoke blocks.
    pub const REVOKE: Self = Self(0x1);
    /// Block numbers have 64 bits.
    pub const WIDE: Self = Self(0x2);
    /// Commit blocks are written without waiting for what they commit.
    pub const ASYNC_COMMIT: Self = Self(0x4);
    /// Checksums, of logged blocks with 16 bits.
    pub const CSUM_V2: Self = Self(0x8);
    /// Checksums of 32 bits.
    pub const CSUM_V3: Self = Self(0x10);
    /// A part of the log holds fast commits.
    pub const FAST_COMMIT: Self = Self(0x20);

    const KNOWN: u32 = Self::REVOKE.0 | Self::WIDE.0 | Self::CSUM_V2.0 | Self::CSUM_V3.0;
    const NAMES: [(Self, &'static str); 6] = [
        (Self::REVOKE, "revoke"),
        (Self::WIDE, "64bit"),
        (Self::ASYNC_COMMIT, "async_commit"),
        (Self::CSUM_V2, "checksum_v2"),
        (Self::CSUM_V3, "checksum_v3"),
        (Self::FAST_COMMIT, "fast_commit"),
    ];

    /// All of `other` are there.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Blocks carry checksums.
    pub const fn has_checksums(self) -> bool {
        self.0 & (Self::CSUM_V2.0 | Self::CSUM_V3.0) != 0
    }
}

impl fmt::Display for JournalFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut names = Vec::new();
        for (feature, name) in Self::NAMES {
            if self.has(feature) {
                names.push(name.to_string());
                rest &= !feature.0;
            }
        }
        if rest != 0 {
            names.push(format!("{rest:#x}"));
        }
        f.write_str(&names.join(","))
    }
}

/// The journal's superblock; fields without a meaning here are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalSuperblock {
    /// Bytes in a block.
    pub block_size: u32,
    /// Blocks of the journal, its superblock included.
    pub max_len: u32,
    /// The first block of the log.
    pub first: u32,
    /// The transaction that the log begins with, or the next one if it is empty.
    pub sequence: Tid,
    /// The block where the log begins; 0 if it is empty.
    pub start: u32,
    /// An error that the file system met, as a negative errno.
    pub errno: i32,
    /// Features that a reader must know.
    pub features: JournalFeatures,
    /// The number of the file system, or of the journal if it is a device of its own.
    pub uuid: [u8; 16],
    raw: Box<[u8; SIZE]>,
}

impl JournalSuperblock {
    /// A superblock for a new journal of `max_len` blocks.
    pub fn new(block_size: u32, max_len: u32, uuid: [u8; 16]) -> Self {
        let mut raw = Box::new([0; SIZE]);
        Header { kind: BlockType::SUPERBLOCK_V2, sequence: Tid(0) }.write(&mut raw[..]);
        raw[0x43] = 1; // s_nr_users
        let (first, sequence, start, errno) = (1, Tid(1), 0, 0);
        let features = JournalFeatures::default();
        Self { block_size, max_len, first, sequence, start, errno, features, uuid, raw }
    }

    /// The superblock in a journal's first block, checked against the size of the volume's blocks
    /// and the number of blocks that the journal has by its inode.
    ///
    /// # Errors
    /// All but [`JournalError::Io`].
    pub fn parse(block: &[u8], block_size: u32, blocks: u32) -> Result<Self, JournalError> {
        let Some(bytes) = block.get(..SIZE).and_then(|bytes| <&[u8; SIZE]>::try_from(bytes).ok())
        else {
            return Err(JournalError::NoSuperblock);
        };
        let version_2 = match Header::parse(bytes).map(|header| header.kind) {
            Some(BlockType::SUPERBLOCK_V2) => true,
            Some(BlockType::SUPERBLOCK_V1) => false,
            _ => return Err(JournalError::NoSuperblock),
        };
        let features = JournalFeatures(if version_2 { be32(bytes, FEATURE_INCOMPAT) } else { 0 });
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[UUID..UUID + 16]);
        let superblock = Self {
            block_size: be32(bytes, BLOCKSIZE),
            max_len: be32(bytes, MAXLEN),
            first: be32(bytes, FIRST),
            sequence: Tid(be32(bytes, SEQUENCE)),
            start: be32(bytes, START),
            errno: be32(bytes, ERRNO) as i32,
            features,
            uuid,
            raw: Box::new(*bytes),
        };
        superblock.check(version_2, block_size, blocks)?;
        Ok(superblock)
    }

    fn check(&self, version_2: bool, block_size: u32, blocks: u32) -> Result<(), JournalError> {
        let other = JournalFeatures(self.features.0 & !JournalFeatures::KNOWN);
        let both = JournalFeatures(JournalFeatures::CSUM_V2.0 | JournalFeatures::CSUM_V3.0);
        if other.0 != 0 || self.features.has(both) {
            return Err(JournalError::Features(if other.0 == 0 { both } else { other }));
        }
        let read_only = be32(&self.raw[..], FEATURE_RO_COMPAT);
        if version_2 && read_only != 0 {
            return Err(JournalError::Features(JournalFeatures(read_only)));
        }
        if self.features.has_checksums() {
            JournalError::check_range("s_checksum_type", self.raw[CHECKSUM_TYPE].into(), (4, 4))?;
            let (found, computed) = (be32(&self.raw[..], CHECKSUM), checksum(&self.raw));
            if found != computed {
                return Err(JournalError::Checksum { found, computed });
            }
        }
        JournalError::check_range("s_blocksize", self.block_size, (block_size, block_size))?;
        JournalError::check_range("s_maxlen", self.max_len, (2, blocks.max(2)))?;
        JournalError::check_range("s_first", self.first, (1, self.max_len - 1))?;
        JournalError::check_range("s_start", self.start, (0, self.max_len - 1))?;
        if self.start != 0 {
            JournalError::check_range("s_start", self.start, (self.first, self.max_len - 1))?;
        }
        Ok(())
    }

    /// The superblock's bytes, the checksum among them.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut bytes = *self.raw;
        Header { kind: BlockType::SUPERBLOCK_V2, sequence: Tid(be32(&bytes, 8)) }.write(&mut bytes);
        put_be32(&mut bytes, BLOCKSIZE, self.block_size);
        put_be32(&mut bytes, MAXLEN, self.max_len);
        put_be32(&mut bytes, FIRST, self.first);
        put_be32(&mut bytes, SEQUENCE, self.sequence.0);
        put_be32(&mut bytes, START, self.start);
        put_be32(&mut bytes, ERRNO, self.errno as u32);
        put_be32(&mut bytes, FEATURE_INCOMPAT, self.features.0);
        bytes[UUID..UUID + 16].copy_from_slice(&self.uuid);
        if self.features.has_checksums() {
            // checksums of version 1 exclude the later ones
            let compat = be32(&bytes, FEATURE_COMPAT) & !1;
            put_be32(&mut bytes, FEATURE_COMPAT, compat);
            bytes[CHECKSUM_TYPE] = CRC32C;
            let sum = checksum(&bytes);
            put_be32(&mut bytes, CHECKSUM, sum);
        }
        bytes
    }

    /// Initial value of the checksums of all blocks.
    pub fn seed(&self) -> u32 {
        crc32c(u32::MAX, &self.uuid)
    }

    /// Format of the tags in descriptors.
    pub const fn tag_format(&self) -> TagFormat {
        TagFormat::new(self.features)
    }

    /// Blocks that a log can fill.
    pub const fn capacity(&self) -> u32 {
        self.max_len - self.first
    }

    /// The block of the log that follows `block`.
    pub const fn after(&self, block: u32, steps: u32) -> u32 {
        self.first
            + ((block - self.first) as u64 + steps as u64).rem_euclid(self.capacity() as u64) as u32
    }
}

fn checksum(bytes: &[u8; SIZE]) -> u32 {
    let mut zeroed = *bytes;
    zeroed[CHECKSUM..CHECKSUM + 4].fill(0);
    crc32c(u32::MAX, &zeroed)
}
