//! Tags: which block of the volume a logged block is.

use super::superblock::JournalFeatures;
use super::{JournalError, be32, put_be32};

/// Flags of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagFlags(pub u32);

impl TagFlags {
    /// The logged block began with the magic number, which was taken out.
    pub const ESCAPE: Self = Self(0x1);
    /// No UUID follows the tag.
    pub const SAME_UUID: Self = Self(0x2);
    /// The block was deleted by this transaction (not used by Linux).
    pub const DELETED: Self = Self(0x4);
    /// The last tag of the descriptor.
    pub const LAST_TAG: Self = Self(0x8);

    /// All of `other` are there.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One logged block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The block of the volume.
    pub block: u64,
    /// Flags.
    pub flags: TagFlags,
    /// The checksum of the transaction's number and the block as it is logged; 16 bits of it in
    /// version 2, 0 without.
    pub checksum: u32,
}

/// Format of stored tags; it follows from the journal's features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagFormat {
    wide: bool,
    v3: bool,
    v2: bool,
}

const UUID: usize = 16;

impl TagFormat {
    /// The format that these features have.
    pub const fn new(features: JournalFeatures) -> Self {
        Self {
            wide: features.has(JournalFeatures::WIDE),
            v3: features.has(JournalFeatures::CSUM_V3),
            v2: features.has(JournalFeatures::CSUM_V2),
        }
    }

    /// Bytes of a tag, without a UUID. With checksums of version 2 two bytes more are left than the
    /// fields take.
    pub const fn size(self) -> usize {
        match (self.v3, self.wide) {
            (true, _) => 16,
            (false, wide) => 8 + (if wide { 4 } else { 0 }) + (if self.v2 { 2 } else { 0 }),
        }
    }

    /// Bytes at the end of descriptor and revoke blocks that the checksum takes.
    pub const fn tail(self) -> usize {
        if self.v2 || self.v3 { 4 } else { 0 }
    }

    /// Number of tags that fit into a descriptor if only the first has a UUID.
    pub const fn per_block(self, block_size: usize) -> usize {
        (block_size - super::Header::SIZE - UUID - self.tail()) / self.size()
    }

    /// The tags of a descriptor block.
    pub fn parse(self, block: &[u8]) -> Vec<Tag> {
        let end = block.len() - self.tail();
        let mut at = super::Header::SIZE;
        let mut tags = Vec::new();
        while at + self.size() <= end {
            let tag = self.get(&block[at..]);
            tags.push(tag);
            at += self.size() + if tag.flags.has(TagFlags::SAME_UUID) { 0 } else { UUID };
            if tag.flags.has(TagFlags::LAST_TAG) {
                break;
            }
        }
        tags
    }

    fn get(self, bytes: &[u8]) -> Tag {
        let low = u64::from(be32(bytes, 0));
        let high = |at: usize| if self.wide { u64::from(be32(bytes, at)) << 32 } else { 0 };
        if self.v3 {
            let (flags, checksum) = (TagFlags(be32(bytes, 4)), be32(bytes, 12));
            return Tag { block: low | high(8), flags, checksum };
        }
        let half = be32(bytes, 4);
        Tag { block: low | high(8), flags: TagFlags(half & 0xFFFF), checksum: half >> 16 }
    }

    /// Writes the tags of a descriptor, at most as many as fit; the first carries the UUID, the
    /// last the flag for it.
    ///
    /// # Errors
    /// [`JournalError::Narrow`].
    pub fn write(
        self,
        block: &mut [u8],
        tags: &[Tag],
        uuid: &[u8; 16],
    ) -> Result<(), JournalError> {
        let mut at = super::Header::SIZE;
        for (i, tag) in tags.iter().enumerate() {
            let mut flags = tag.flags;
            flags = if i > 0 { flags.with(TagFlags::SAME_UUID) } else { flags };
            flags = if i + 1 == tags.len() { flags.with(TagFlags::LAST_TAG) } else { flags };
            self.put(&mut block[at..], &Tag { flags, ..*tag })?;
            at += self.size();
            if i == 0 {
                block[at..at + UUID].copy_from_slice(uuid);
                at += UUID;
            }
        }
        Ok(())
    }

    fn put(self, bytes: &mut [u8], tag: &Tag) -> Result<(), JournalError> {
        let high = (tag.block >> 32) as u32;
        if high != 0 && !self.wide {
            return Err(JournalError::Narrow(tag.block));
        }
        put_be32(bytes, 0, tag.block as u32);
        if self.v3 {
            put_be32(bytes, 4, tag.flags.0);
            put_be32(bytes, 8, high);
            put_be32(bytes, 12, tag.checksum);
            return Ok(());
        }
        put_be32(bytes, 4, (tag.checksum << 16) | (tag.flags.0 & 0xFFFF));
        if self.wide {
            put_be32(bytes, 8, high);
        }
        Ok(())
    }

    /// The checksum that the tag of a logged block must have.
    pub fn checksum(self, seed: u32, sequence: super::Tid, logged: &[u8]) -> u32 {
        let sum = || super::crc32c(super::crc32c(seed, &sequence.0.to_be_bytes()), logged);
        match (self.v2, self.v3) {
            (_, true) => sum(),
            (true, _) => sum() & 0xFFFF,
            _ => 0,
        }
    }
}
