//! Changing the entries of a directory block, or of an inode.

use dovetail_block::BlockBytes;

use super::dentry::{
    BLOCK_RESERVED, DENTRIES_IN_BLOCK, DENTRY, DentryBlock, SLOT, dentry_slots, inline_layout,
};
use super::{BLOCK, FileType, Nid, lsb_first, set_lsb_first};

/// The entries in one block, or in an inode, to be changed. "." and ".." are entries like others,
/// with hash 0.
#[derive(Debug)]
pub struct DentryBlockMut<'a> {
    bitmap: &'a mut [u8],
    dentries: &'a mut [u8],
    names: &'a mut [u8],
    count: usize,
}

impl<'a> DentryBlockMut<'a> {
    /// A directory's block.
    pub fn block(bytes: &'a mut BlockBytes) -> Self {
        Self::split(bytes, DENTRIES_IN_BLOCK, BLOCK_RESERVED)
    }

    /// The inline area of a directory.
    pub fn inline(area: &'a mut [u8]) -> Self {
        let (count, reserved) = inline_layout(area.len());
        Self::split(area, count, reserved)
    }

    fn split(bytes: &'a mut [u8], count: usize, reserved: usize) -> Self {
        let (bitmap, rest) = bytes.split_at_mut(count.div_ceil(8));
        let (dentries, names) = rest[reserved..].split_at_mut(count * DENTRY);
        Self { bitmap, dentries, names, count }
    }

    /// Adds an entry in the first slots side by side that are free and enough for `name` (1 to 255
    /// bytes). Returns the first of them; `None` if there is no room.
    pub fn insert(
        &mut self,
        name: &[u8],
        hash: u32,
        ino: Nid,
        file_type: FileType,
    ) -> Option<usize> {
        let slots = dentry_slots(name.len());
        let slot = self.free_run(slots)?;
        for i in slot..slot + slots {
            set_lsb_first(self.bitmap, i, true);
            self.dentry(i)[8..10].fill(0); // only the first says how long the name is
        }
        let stored = &mut self.names[slot * SLOT..(slot + slots) * SLOT];
        stored.fill(0);
        stored[..name.len()].copy_from_slice(name);
        let dentry = self.dentry(slot);
        dentry[..4].copy_from_slice(&hash.to_le_bytes());
        dentry[8..10].copy_from_slice(&(name.len() as u16).to_le_bytes());
        self.set_entry(slot, ino, file_type);
        Some(slot)
    }

    /// The slot of the entry called `name`.
    pub fn find(&self, name: &[u8], hash: u32) -> Option<usize> {
        let mut slot = 0;
        while slot < self.count {
            let len = self.name_len(slot);
            if !lsb_first(self.bitmap, slot) || len == 0 {
                slot += 1;
                continue;
            }
            if self.hash(slot) == hash && self.name(slot, len) == Some(name) {
                return Some(slot);
            }
            slot += dentry_slots(len);
        }
        None
    }

    /// Removes the entry at `slot`. Its bytes stay, as the kernel leaves them.
    pub fn remove(&mut self, slot: usize) {
        if slot < self.count {
            let slots = dentry_slots(self.name_len(slot)).max(1);
            (slot..self.count.min(slot + slots)).for_each(|i| set_lsb_first(self.bitmap, i, false));
        }
    }

    /// Lets the entry at `slot` lead to another inode.
    pub fn set_entry(&mut self, slot: usize, ino: Nid, file_type: FileType) {
        if slot < self.count {
            let dentry = self.dentry(slot);
            dentry[4..8].copy_from_slice(&ino.0.to_le_bytes());
            dentry[10] = file_type.0;
        }
    }

    /// Marks `slot` as used: the name before it goes on there.
    pub fn set_used(&mut self, slot: usize) {
        if slot < self.count {
            set_lsb_first(self.bitmap, slot, true);
        }
    }

    /// Sets the hash of the name at `slot`.
    pub fn set_hash(&mut self, slot: usize, hash: u32) {
        if slot < self.count {
            self.dentry(slot)[..4].copy_from_slice(&hash.to_le_bytes());
        }
    }

    /// Sets what the entry at `slot` says that its inode is.
    pub fn set_file_type(&mut self, slot: usize, file_type: FileType) {
        if slot < self.count {
            self.dentry(slot)[10] = file_type.0;
        }
    }

    /// Takes the length at `slot` away: no name begins there.
    pub fn clear_name_len(&mut self, slot: usize) {
        if slot < self.count {
            self.dentry(slot)[8..10].fill(0);
        }
    }

    /// There is no entry, not even "." and "..".
    pub fn is_empty(&self) -> bool {
        (0..self.count).all(|slot| !lsb_first(self.bitmap, slot))
    }

    /// So many slots (see [`dentry_slots`]) are free side by side.
    pub fn has_room(&self, slots: usize) -> bool {
        self.free_run(slots).is_some()
    }

    /// The first of `slots` free slots side by side; `None` also for no slots.
    fn free_run(&self, slots: usize) -> Option<usize> {
        let mut free = 0;
        for slot in 0..self.count {
            free = if lsb_first(self.bitmap, slot) { 0 } else { free + 1 };
            if free == slots {
                return Some(slot + 1 - slots);
            }
        }
        None
    }

    fn dentry(&mut self, slot: usize) -> &mut [u8] {
        &mut self.dentries[slot * DENTRY..][..DENTRY]
    }

    fn hash(&self, slot: usize) -> u32 {
        super::u32_at(self.dentries, slot * DENTRY)
    }

    fn name_len(&self, slot: usize) -> usize {
        let at = slot * DENTRY + 8;
        u16::from_le_bytes([self.dentries[at], self.dentries[at + 1]]).into()
    }

    /// `None` for a name that goes beyond the end.
    fn name(&self, slot: usize, len: usize) -> Option<&[u8]> {
        self.names.get(slot * SLOT..slot * SLOT + len)
    }
}

/// The block that holds the entries of an inline area, slot for slot, as a directory without
/// `dir_level` gets it when it outgrows its inode.
pub fn inline_to_block(area: &[u8]) -> BlockBytes {
    let mut block = [0; BLOCK];
    let from = DentryBlock::inline(area, Nid::NONE);
    let to = DentryBlockMut::block(&mut block);
    let (bitmap, dentries, names) = from.parts();
    to.bitmap[..bitmap.len()].copy_from_slice(bitmap);
    to.dentries[..dentries.len()].copy_from_slice(dentries);
    to.names[..names.len()].copy_from_slice(names);
    block
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::format::name_hash;

    fn name(n: u8) -> Vec<u8> {
        (0..1 + u32::from(n) * 7 % 255).map(|i| b'a' + ((i + u32::from(n)) % 26) as u8).collect()
    }

    fn listed(entries: DentryBlock<'_>) -> BTreeMap<Vec<u8>, u32> {
        entries
            .entries()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.name, entry.ino.0))
            .collect()
    }

    /// Inserts the names that are missing, removes those that are there, and compares with a map.
    fn toggle(mut entries: DentryBlockMut<'_>, names: &[u8]) -> BTreeMap<Vec<u8>, u32> {
        let mut model = BTreeMap::new();
        for (n, id) in names.iter().zip(10..) {
            let (name, hash) = (name(*n), name_hash(&name(*n)));
            assert_eq!(entries.find(&name, hash).is_some(), model.contains_key(&name));
            if let Some(slot) = entries.find(&name, hash) {
                entries.remove(slot);
                model.remove(&name);
                continue;
            }
            let room = entries.has_room(dentry_slots(name.len()));
            let slot = entries.insert(&name, hash, Nid(id), FileType::REGULAR);
            assert_eq!(slot.is_some(), room);
            assert_eq!(entries.find(&name, hash), slot);
            if room {
                model.insert(name, id);
            }
        }
        assert_eq!(entries.is_empty(), model.is_empty());
        model
    }

    proptest! {
        #[test]
        fn a_block_holds_what_a_map_does(names: Vec<u8>) {
            let mut block = [0; BLOCK];
            let model = toggle(DentryBlockMut::block(&mut block), &names);
            prop_assert_eq!(listed(DentryBlock::block(&block, Nid(3))), model);
        }

        #[test]
        fn an_inline_area_becomes_a_block(names in prop::collection::vec(0..60_u8, 0..60), words in 600..923_usize) {
            let mut area = vec![0; words * 4];
            let model = toggle(DentryBlockMut::inline(&mut area), &names);
            prop_assert_eq!(&listed(DentryBlock::inline(&area, Nid(3))), &model);
            let block = inline_to_block(&area);
            prop_assert_eq!(&listed(DentryBlock::block(&block, Nid(3))), &model);
        }

        #[test]
        fn editing_garbage_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 4096), names: Vec<u8>) {
            let mut block: BlockBytes = bytes.try_into().unwrap();
            let mut entries = DentryBlockMut::block(&mut block);
            for n in names {
                entries.find(&name(n), name_hash(&name(n)));
                entries.remove(n.into());
                entries.insert(&name(n), 0, Nid(9), FileType::FIFO);
            }
        }
    }

    #[test]
    fn a_listing_goes_on_after_a_slot() {
        let mut block = [0; BLOCK];
        let mut entries = DentryBlockMut::block(&mut block);
        let names: [&[u8]; 4] = [b".", b"..", b"a name over two slots", b"b"];
        let slots = names.map(|name| entries.insert(name, 0, Nid(3), FileType::DIRECTORY).unwrap());
        assert_eq!(slots, [0, 1, 2, 5]);
        let from = |slot| {
            let entries = DentryBlock::block(&block, Nid(3));
            entries.entries_from(slot).map(|entry| entry.unwrap().0).collect::<Vec<_>>()
        };
        assert_eq!(from(0), [0, 1, 2, 5]);
        assert_eq!(from(2), [2, 5]);
        assert_eq!(from(3), [5], "inside a name");
        assert_eq!(from(6), []);
        assert_eq!(from(usize::MAX), []);
    }

    #[test]
    fn an_entry_can_lead_elsewhere() {
        let mut block = [0; BLOCK];
        let mut entries = DentryBlockMut::block(&mut block);
        entries.insert(b"..", 0, Nid(3), FileType::DIRECTORY).unwrap();
        entries.set_entry(0, Nid(0x0102), FileType::SYMLINK);
        assert_eq!(block[30..41], [0, 0, 0, 0, 2, 1, 0, 0, 2, 0, 7]);
        assert_eq!(block[2384..2387], *b"..\0");
    }

    #[test]
    fn a_name_without_bytes_has_no_room() {
        assert_eq!(
            DentryBlockMut::block(&mut [0; BLOCK]).insert(b"", 0, Nid(3), FileType::FIFO),
            None
        );
    }
}
