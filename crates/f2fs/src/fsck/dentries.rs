//! Entries of a directory, as they are stored: nothing is believed of them.

use crate::format::{DENTRIES_IN_BLOCK, FileType, Nid, lsb_first, u32_at};

const DENTRY: usize = 11;
/// Bytes of a slot of a name.
pub(super) const SLOT: usize = 8;
const BLOCK_RESERVED: usize = 3;

/// Where an entry of a directory stands: the block of the directory (`None` for inline entries), and the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) dir: Nid,
    pub(super) block: Option<u64>,
    pub(super) slot: usize,
}

/// What a repair does to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fix {
    Hash(u32),
    Type(u8),
    /// The slot belongs to the name before it.
    Used,
    /// The slot is no entry of its own.
    NoLength,
    Remove,
}

/// A repair of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DentryFix {
    pub(super) place: Place,
    pub(super) fix: Fix,
}

impl Fix {
    /// Does it to slot `slot` of a block of entries, or of an inline area.
    pub(super) fn apply(self, area: &mut [u8], inline: bool, slot: usize) {
        let slots =
            if inline { Slots::inline(area) } else { Slots::split(area, DENTRIES_IN_BLOCK, BLOCK_RESERVED) };
        if slot >= slots.count {
            return;
        }
        let len = slots.len(slot).unwrap_or(1);
        let dentry = area.len() - slots.count * (DENTRY + SLOT) + slot * DENTRY;
        match self {
            Self::Hash(hash) => area[dentry..dentry + 4].copy_from_slice(&hash.to_le_bytes()),
            Self::Type(file_type) => area[dentry + 10] = file_type,
            Self::Used => area[slot / 8] |= 1 << (slot % 8),
            Self::NoLength => area[dentry + 8..dentry + 10].fill(0),
            Self::Remove => (slot..slot + len).for_each(|slot| area[slot / 8] &= !(1 << (slot % 8))),
        }
    }
}

/// The slots in a block, or in an inode.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    bitmap: &'a [u8],
    dentries: &'a [u8],
    names: &'a [u8],
    pub(super) count: usize,
}

impl<'a> Slots<'a> {
    pub(super) fn block(bytes: &'a [u8; 4096]) -> Self {
        Self::split(bytes, DENTRIES_IN_BLOCK, BLOCK_RESERVED)
    }

    /// The inline area of an inode.
    pub(super) fn inline(area: &'a [u8]) -> Self {
        let count = area.len() * 8 / ((DENTRY + SLOT) * 8 + 1);
        Self::split(area, count, area.len() - count.div_ceil(8) - count * (DENTRY + SLOT))
    }

    fn split(bytes: &'a [u8], count: usize, reserved: usize) -> Self {
        let (bitmap, rest) = bytes.split_at(count.div_ceil(8));
        let (dentries, names) = rest[reserved..].split_at(count * DENTRY);
        Self { bitmap, dentries, names, count }
    }

    pub(super) fn is_used(&self, slot: usize) -> bool {
        lsb_first(self.bitmap, slot)
    }

    pub(super) fn hash(&self, slot: usize) -> u32 {
        u32_at(self.dentries, slot * DENTRY)
    }

    pub(super) fn ino(&self, slot: usize) -> Nid {
        Nid(u32_at(self.dentries, slot * DENTRY + 4))
    }

    pub(super) fn name_len(&self, slot: usize) -> u16 {
        u16::from_le_bytes([self.dentries[slot * DENTRY + 8], self.dentries[slot * DENTRY + 9]])
    }

    pub(super) fn file_type(&self, slot: usize) -> FileType {
        FileType(self.dentries[slot * DENTRY + 10])
    }

    /// Slots that the entry at `slot` takes; `None` if its length is impossible there.
    pub(super) fn len(&self, slot: usize) -> Option<usize> {
        let len = usize::from(self.name_len(slot));
        let slots = len.div_ceil(SLOT);
        ((1..=255).contains(&len) && slot + slots <= self.count).then_some(slots)
    }

    /// The name of an entry whose length was checked.
    pub(super) fn name(&self, slot: usize) -> &'a [u8] {
        &self.names[slot * SLOT..][..usize::from(self.name_len(slot))]
    }
}
