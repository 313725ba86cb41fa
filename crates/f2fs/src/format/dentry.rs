//! Directory entries, in blocks and inside the inode.

use super::{FileType, Nid, lsb_first, u32_at};
use crate::error::{Corrupt, Place};

/// Entries in a directory block.
pub const DENTRIES_IN_BLOCK: usize = 214;

pub(super) const BLOCK_RESERVED: usize = 3;
pub(super) const DENTRY: usize = 11;
pub(super) const SLOT: usize = 8;
const MAX_NAME: u64 = 255;

/// Bitmap, reserved bytes, entries and name slots fill the block.
const _: () = assert!(
    27 + BLOCK_RESERVED + DENTRIES_IN_BLOCK * (DENTRY + SLOT) == super::BLOCK
        && DENTRIES_IN_BLOCK.div_ceil(8) == 27
);

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name: 1 to 255 bytes, without NUL and slash.
    pub name: Vec<u8>,
    /// The inode.
    pub ino: Nid,
    /// File type stored in the entry.
    pub file_type: FileType,
    /// The hash of its name.
    pub hash: u32,
}

impl DirEntry {
    /// It is "." or "..".
    pub fn is_dot(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

/// Slots that a name of `len` bytes takes, side by side.
pub const fn dentry_slots(len: usize) -> usize {
    len.div_ceil(SLOT)
}

/// Number of entries in an inline area of `len` bytes, and of unused bytes after its bitmap.
pub(super) const fn inline_layout(len: usize) -> (usize, usize) {
    let count = len * 8 / ((DENTRY + SLOT) * 8 + 1);
    (count, len - count.div_ceil(8) - count * (DENTRY + SLOT))
}

/// The blocks of a directory in which an entry of this hash may stand at `level` (0 to 62): level l
/// has 2^(l + dir_level) buckets, at most 2^30, of 2 blocks, from level 31 on of 4.
pub fn dentry_bucket(level: u32, dir_level: u32, hash: u32) -> std::ops::Range<u64> {
    let buckets = |level: u32| 1_u64 << level.saturating_add(dir_level).min(30);
    let blocks = |level: u32| if level < 31 { 2 } else { 4 };
    let before: u64 = (0..level).map(|level| buckets(level) * blocks(level)).sum();
    let start = before + u64::from(hash) % buckets(level) * blocks(level);
    start..start + blocks(level)
}

/// The entries in one block, or in an inode.
#[derive(Clone, Copy, Debug)]
pub struct DentryBlock<'a> {
    bitmap: &'a [u8],
    dentries: &'a [u8],
    names: &'a [u8],
    count: usize,
    dir: Nid,
}

impl<'a> DentryBlock<'a> {
    /// A block of directory `dir`.
    pub fn block(bytes: &'a dovetail_block::BlockBytes, dir: Nid) -> Self {
        Self::split(bytes, DENTRIES_IN_BLOCK, BLOCK_RESERVED, dir)
    }

    /// The inline area of directory `dir`.
    pub fn inline(area: &'a [u8], dir: Nid) -> Self {
        let (count, reserved) = inline_layout(area.len());
        Self::split(area, count, reserved, dir)
    }

    fn split(bytes: &'a [u8], count: usize, reserved: usize, dir: Nid) -> Self {
        let (bitmap, rest) = bytes.split_at(count.div_ceil(8));
        let (dentries, names) = rest[reserved..].split_at(count * DENTRY);
        Self { bitmap, dentries, names, count, dir }
    }

    /// Bitmap, entries and names.
    pub(super) fn parts(&self) -> (&'a [u8], &'a [u8], &'a [u8]) {
        (self.bitmap, self.dentries, self.names)
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.count
    }

    /// The entries in order.
    ///
    /// # Errors
    /// Each entry that cannot be one; the list goes on behind it.
    pub fn entries(self) -> impl Iterator<Item = Result<DirEntry, Corrupt>> + 'a {
        self.entries_from(0).map(|entry| entry.map(|(_, entry)| entry))
    }

    /// The entries from slot `slot` on, each with the slot at which it begins: a listing that
    /// stopped after the entry at a slot goes on with the slot after it, whatever was removed
    /// since.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn entries_from(
        self,
        slot: usize,
    ) -> impl Iterator<Item = Result<(usize, DirEntry), Corrupt>> + 'a {
        let mut next = self.next_start(slot);
        std::iter::from_fn(move || {
            let slot = (next..self.count).find(|&slot| lsb_first(self.bitmap, slot))?;
            let entry = self.entry(slot);
            next = slot + self.slots_at(slot);
            Some(entry.map(|entry| (slot, entry)))
        })
    }

    /// `slot`, or where the name that covers it ends.
    fn next_start(&self, slot: usize) -> usize {
        let mut at = 0;
        while at < slot.min(self.count) {
            at += if lsb_first(self.bitmap, at) { self.slots_at(at) } else { 1 };
        }
        at.max(slot)
    }

    /// Slots that the entry at `slot` takes. Where its name has no possible length, those that only
    /// go on belong to it.
    fn slots_at(&self, slot: usize) -> usize {
        if let Some(name) = self.name(slot) {
            return dentry_slots(name.len());
        }
        let goes_on = |&at: &usize| lsb_first(self.bitmap, at) && self.name_len(at) == 0;
        1 + (slot + 1..self.count).take_while(goes_on).count()
    }

    fn dentry(&self, slot: usize) -> &'a [u8] {
        &self.dentries[slot * DENTRY..][..DENTRY]
    }

    /// Something begins or goes on at `slot`; this and the following take slots below
    /// [`Self::slots`], used or not, and show what is stored there.
    pub fn is_used(&self, slot: usize) -> bool {
        lsb_first(self.bitmap, slot)
    }

    /// The length of the name at `slot`; 0 where one only goes on.
    pub fn name_len(&self, slot: usize) -> usize {
        let dentry = self.dentry(slot);
        u16::from_le_bytes([dentry[8], dentry[9]]).into()
    }

    /// The hash of the name at `slot`.
    pub fn hash(&self, slot: usize) -> u32 {
        u32_at(self.dentry(slot), 0)
    }

    /// The inode of the entry at `slot`.
    pub fn ino(&self, slot: usize) -> Nid {
        Nid(u32_at(self.dentry(slot), 4))
    }

    /// File type stored in the entry at `slot`.
    pub fn file_type(&self, slot: usize) -> FileType {
        FileType(self.dentry(slot)[10])
    }

    /// The name at `slot`; `None` if it has no length, more than 255 bytes, or goes beyond the last
    /// slot.
    pub fn name(&self, slot: usize) -> Option<&'a [u8]> {
        let len = self.name_len(slot);
        let fits = (1..=MAX_NAME as usize).contains(&len) && slot + dentry_slots(len) <= self.count;
        fits.then(|| &self.names[slot * SLOT..][..len])
    }

    /// A name of so many bytes has room.
    pub fn has_room(&self, name_len: usize) -> bool {
        let (wanted, mut run) = (dentry_slots(name_len), 0);
        (0..self.count).any(|slot| {
            run = if lsb_first(self.bitmap, slot) { 0 } else { run + 1 };
            run == wanted
        })
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
            let same = self.hash(slot) == hash && len == name.len();
            if same && self.names.get(slot * SLOT..slot * SLOT + len) == Some(name) {
                return Some(slot);
            }
            slot += dentry_slots(len);
        }
        None
    }

    /// The entry that begins at `slot`.
    ///
    /// # Errors
    /// Damage, if there can be no entry.
    pub fn entry(&self, slot: usize) -> Result<DirEntry, Corrupt> {
        let place = Place::Directory(self.dir);
        let len = self.name_len(slot);
        let room = ((self.count - slot) * SLOT) as u64;
        Corrupt::check_range(place, "name_len", len as u64, (1, room.min(MAX_NAME)))?;
        let name = self.names[slot * SLOT..][..len].to_vec();
        if name.iter().any(|&byte| byte == 0 || byte == b'/') {
            let name = dovetail_vfs::shown(&name);
            return Err(Corrupt::Name { dir: self.dir, name });
        }
        Ok(DirEntry {
            name,
            ino: self.ino(slot),
            file_type: self.file_type(slot),
            hash: self.hash(slot),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_areas_hold_as_many_entries_as_the_format_says() {
        for (bytes, count) in [(3488, 182), (3452, 180), (3464, 181), (3688, 192), (3652, 190)] {
            let area = vec![0; bytes];
            assert_eq!(DentryBlock::inline(&area, Nid(3)).slots(), count, "{bytes}");
        }
    }

    #[test]
    fn buckets_follow_each_other_level_by_level() {
        assert_eq!(dentry_bucket(0, 0, 77), 0..2);
        assert_eq!(dentry_bucket(1, 0, 5), 4..6);
        assert_eq!(dentry_bucket(2, 0, 6), 10..12);
        assert_eq!(dentry_bucket(1, 2, 7), 8 + 14..8 + 16);
        assert_eq!(dentry_bucket(62, 255, 0).end - dentry_bucket(62, 255, 0).start, 4);
    }

    #[test]
    fn a_name_of_no_length_or_beyond_the_block_is_refused() {
        let mut block = [0; 4096];
        block[26] = 0b0010_0000; // the last slot
        assert!(DentryBlock::block(&block, Nid(3)).entries().next().unwrap().is_err(), "no length");
        block[30 + 213 * 11 + 8] = 9;
        assert!(DentryBlock::block(&block, Nid(3)).entries().next().unwrap().is_err(), "two slots");
        block[30 + 213 * 11 + 8] = 1;
        assert!(DentryBlock::block(&block, Nid(3)).entries().next().unwrap().is_err(), "NUL");
        block[2384 + 213 * 8] = b'a';
        assert_eq!(
            DentryBlock::block(&block, Nid(3)).entries().next().unwrap().unwrap().name,
            b"a"
        );
    }

    #[test]
    fn what_is_whole_is_listed_around_what_is_not() {
        let names = ["one", "a name of four slots, no less", "three", "four"];
        let slots = [0, 1, 5, 6];
        let build = || {
            let mut bytes = Box::new([0; 4096]);
            for (name, ino) in names.iter().zip(10..) {
                let mut block = super::super::DentryBlockMut::block(&mut bytes);
                block.insert(name.as_bytes(), 1, Nid(ino), FileType::REGULAR).unwrap();
            }
            bytes
        };
        for (bad, slot) in slots.into_iter().enumerate() {
            let dentry = 30 + slot * DENTRY + 8;
            // no length, too long, beyond the block; NUL, a slash
            for (at, value) in [(dentry, [0, 0]), (dentry, [44, 1]), (dentry, [0xFF, 0xFF])]
                .into_iter()
                .chain([(2384 + slot * SLOT, *b"\0x"), (2384 + slot * SLOT, *b"/x")])
            {
                let mut bytes = build();
                bytes[at..at + 2].copy_from_slice(&value);
                let block = DentryBlock::block(&bytes, Nid(3));
                let listed: Vec<_> = block.entries_from(0).collect();
                assert_eq!(listed.len(), 4, "{bad} {value:?}: {listed:?}");
                assert!(listed[bad].is_err(), "{bad} {value:?}");
                let whole: Vec<_> = listed.into_iter().filter_map(Result::ok).collect();
                let found =
                    |from| block.entries_from(from).filter_map(Result::ok).collect::<Vec<_>>();
                for (n, (slot, _)) in whole.iter().enumerate() {
                    assert_eq!(found(slot + 1), whole[n + 1..], "going on behind slot {slot}");
                }
                let expected = (0..4).filter(|&n| n != bad).map(|n| names[n]);
                assert!(
                    whole
                        .iter()
                        .map(|(_, entry)| entry.name.as_slice())
                        .eq(expected.map(str::as_bytes))
                );
            }
        }
    }
}
