//! Entries of a directory, as they are stored: nothing is believed of them.

use crate::format::{DENTRIES_IN_BLOCK, FileType, Nid, lsb_first, u32_at};

const DENTRY: usize = 11;
/// Bytes of a slot of a name.
pub(super) const SLOT: usize = 8;
const BLOCK_RESERVED: usize = 3;

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
