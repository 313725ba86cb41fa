//! Blocks of directory entries: a chain of records that fills the block, and a checksum that hides
//! in its last one.
//!
//! A record whose inode is 0 is room. With the feature metadata_csum the last 12 bytes are such a
//! record, of type 0xDE, and hold the checksum. Blocks of an index look like one empty record to
//! who does not know it.

use super::{FileType, Ino, crc32c};
use crate::error::{Corrupt, Place};

/// Inode, length of the record, length of the name, type.
const HEADER: usize = 8;
/// The record that hides the checksum.
pub const DIR_TAIL: usize = 12;
/// The type that it is known by.
const TAIL_TYPE: u8 = 0xDE;

/// Format of the directory blocks of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirFormat {
    /// Entries have the type of the file (the feature filetype).
    pub has_type: bool,
    /// Blocks have a checksum (the feature metadata_csum).
    pub has_checksum: bool,
}

/// A record of a directory block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirRecord<'a> {
    /// Offset in the block.
    pub offset: usize,
    /// Its length; the next one begins there.
    pub rec_len: usize,
    /// The inode; 0 for room.
    pub ino: Ino,
    /// Type of the inode, as the record says.
    pub file_type: FileType,
    /// The name; of room what was left there.
    pub name: &'a [u8],
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name: 1 to 255 bytes, without NUL and slash.
    pub name: Vec<u8>,
    /// The inode.
    pub ino: Ino,
    /// Type of the inode, as the entry says.
    pub file_type: FileType,
}

impl DirEntry {
    /// It is "." or "..".
    pub fn is_dot(&self) -> bool {
        is_dot(&self.name)
    }
}

fn is_dot(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

/// Bytes that an entry with a name of `len` bytes needs.
pub const fn dir_record_len(len: usize) -> usize {
    (HEADER + len).next_multiple_of(4)
}

/// A block of entries; `place` is told with what is wrong.
#[derive(Clone, Copy, Debug)]
pub struct DirBlock<'a> {
    bytes: &'a [u8],
    format: DirFormat,
    dir: Ino,
    block: u32,
}

impl<'a> DirBlock<'a> {
    /// Block `block` of directory `dir`.
    pub const fn new(bytes: &'a [u8], format: DirFormat, dir: Ino, block: u32) -> Self {
        Self { bytes, format, dir, block }
    }

    /// All records, room and the hidden tail too.
    ///
    /// # Errors
    /// The first record that cannot be one; the list ends there.
    pub fn records(self) -> impl Iterator<Item = Result<DirRecord<'a>, Corrupt>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            if next >= self.bytes.len() {
                return None;
            }
            let record = self.record(next);
            next = record.as_ref().map_or(self.bytes.len(), |record| next + record.rec_len);
            Some(record)
        })
    }

    /// The records that name an inode, whose names are checked.
    ///
    /// # Errors
    /// Each name that no file may have; the first record that cannot be one: the list ends there,
    /// as nothing says where the next one begins.
    pub fn entries(self) -> impl Iterator<Item = Result<DirRecord<'a>, Corrupt>> {
        let used = |record: &Result<DirRecord<'_>, _>| {
            record.as_ref().is_ok_and(|record| !record.ino.is_some())
        };
        self.records().filter(move |record| !used(record)).map(move |record| {
            let record = record?;
            self.check_name(record.name)?;
            Ok(record)
        })
    }

    /// The entry called `name`.
    ///
    /// # Errors
    /// A record before it that cannot be one.
    pub fn find(self, name: &[u8]) -> Result<Option<DirRecord<'a>>, Corrupt> {
        for record in self.records() {
            let record = record?;
            if record.ino.is_some() && record.name == name {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The record at `offset`, which a record before it leads to.
    fn record(&self, offset: usize) -> Result<DirRecord<'a>, Corrupt> {
        let place = Place::Directory(self.dir, self.block);
        let room = (self.bytes.len() - offset) as u64;
        let rest = &self.bytes[offset..];
        let header = rest.first_chunk::<HEADER>().ok_or(Corrupt::Range {
            place,
            field: "the room left for a record",
            found: room,
            min: HEADER as u64,
            max: room,
        })?;
        let [i0, i1, i2, i3, r0, r1, name_len, high] = *header;
        let rec_len = u16::from_le_bytes([r0, r1]);
        let is_tail = self.format.has_checksum && high == TAIL_TYPE;
        let one_byte = self.format.has_type || is_tail;
        let name_len =
            if one_byte { name_len.into() } else { u16::from_le_bytes([name_len, high]) };
        Corrupt::check_range(place, "rec_len", rec_len, (dir_record_len(1) as u64, room))?;
        Corrupt::check_equal(place, "rec_len", rec_len, rec_len / 4 * 4)?;
        let most = (u64::from(rec_len) - HEADER as u64).min(255);
        Corrupt::check_range(place, "name_len", name_len, (0, most))?;
        Ok(DirRecord {
            offset,
            rec_len: rec_len.into(),
            ino: Ino(u32::from_le_bytes([i0, i1, i2, i3])),
            file_type: FileType(if self.format.has_type { high } else { 0 }),
            name: &rest[HEADER..HEADER + usize::from(name_len)],
        })
    }

    fn check_name(&self, name: &[u8]) -> Result<(), Corrupt> {
        if name.is_empty() || name.iter().any(|&byte| byte == 0 || byte == b'/') {
            let name = dovetail_vfs::shown(name);
            return Err(Corrupt::Name { dir: self.dir, name });
        }
        Ok(())
    }
}

/// The end of the block is the record that hides a checksum.
pub fn has_dir_tail(block: &[u8]) -> bool {
    let Some([0, 0, 0, 0, len, 0, 0, TAIL_TYPE, ..]) = block.last_chunk::<DIR_TAIL>() else {
        return false;
    };
    usize::from(*len) == DIR_TAIL
}

/// The checksum of a block of entries, stored and computed; `None` if it has none. `seed` is
/// [`super::Inode::checksum_seed`] of the directory.
pub fn dir_block_checksums(block: &[u8], seed: u32) -> Option<(u32, u32)> {
    if !has_dir_tail(block) {
        return None;
    }
    let found = u32::from_le_bytes(*block.last_chunk()?);
    Some((found, crc32c(seed, &block[..block.len() - DIR_TAIL])))
}

/// Puts the checksum into a block of entries that has room for it.
pub fn seal_dir_block(block: &mut [u8], seed: u32) {
    if let (Some((_, computed)), Some(place)) =
        (dir_block_checksums(block, seed), block.last_chunk_mut())
    {
        *place = computed.to_le_bytes();
    }
}

/// A block of entries that is changed. Its checksum must be renewed afterwards
/// ([`seal_dir_block`]).
#[derive(Debug)]
pub struct DirBlockMut<'a> {
    bytes: &'a mut [u8],
    format: DirFormat,
    dir: Ino,
    block: u32,
}

impl<'a> DirBlockMut<'a> {
    /// Block `block` of directory `dir`, as it is.
    pub const fn new(bytes: &'a mut [u8], format: DirFormat, dir: Ino, block: u32) -> Self {
        Self { bytes, format, dir, block }
    }

    /// The block without entries, with a tail if the format has one.
    pub fn init(bytes: &'a mut [u8], format: DirFormat, dir: Ino, block: u32) -> Self {
        bytes.fill(0);
        let tail = if format.has_checksum { DIR_TAIL } else { 0 };
        let mut new = Self { bytes, format, dir, block };
        let len = new.bytes.len() - tail;
        new.put_header(0, Ino::NONE, len, (0, FileType::UNKNOWN));
        if tail > 0 {
            new.put_header(len, Ino::NONE, DIR_TAIL, (0, FileType::UNKNOWN));
            new.bytes[len + 7] = TAIL_TYPE;
        }
        new
    }

    /// The block for reading.
    pub fn read(&self) -> DirBlock<'_> {
        DirBlock::new(self.bytes, self.format, self.dir, self.block)
    }

    /// Adds an entry in the first room that is large enough, and says where; `None` if there is
    /// none. That no other entry has the name is the caller's to know.
    ///
    /// # Errors
    /// A record that cannot be one.
    pub fn insert(
        &mut self,
        name: &[u8],
        ino: Ino,
        file_type: FileType,
    ) -> Result<Option<usize>, Corrupt> {
        let wanted = dir_record_len(name.len());
        let end = self.bytes.len() - if self.has_tail() { DIR_TAIL } else { 0 };
        let mut found = None;
        for record in self.read().records() {
            let record = record?;
            let used = if record.ino.is_some() { dir_record_len(record.name.len()) } else { 0 };
            if record.offset < end && record.rec_len >= used + wanted {
                found = Some((record.offset, record.rec_len, used));
                break;
            }
        }
        let Some((offset, rec_len, used)) = found else { return Ok(None) };
        if used > 0 {
            self.bytes[offset + 4..offset + 6].copy_from_slice(&(used as u16).to_le_bytes());
        }
        let at = offset + used;
        self.put_header(at, ino, rec_len - used, (name.len(), file_type));
        self.bytes[at + HEADER..][..name.len()].copy_from_slice(name);
        Ok(Some(at))
    }

    /// Removes the entry that begins at `offset`: the record before it takes its room, or the first
    /// one becomes room.
    ///
    /// # Errors
    /// A record that cannot be one. Nothing happens if no entry begins there.
    pub fn remove(&mut self, offset: usize) -> Result<(), Corrupt> {
        let (mut before, mut len) = (None, 0);
        for record in self.read().records() {
            let record = record?;
            if record.offset == offset {
                len = record.rec_len;
                break;
            }
            before = Some((record.offset, record.rec_len));
        }
        match before {
            _ if len == 0 => {}
            Some((at, before_len)) => self.put_len(at, before_len + len),
            None => self.bytes[offset..offset + 4].fill(0),
        }
        Ok(())
    }

    /// Lets the entry that begins at `offset` name another inode.
    pub fn set_target(&mut self, offset: usize, ino: Ino, file_type: FileType) {
        self.bytes[offset..offset + 4].copy_from_slice(&ino.0.to_le_bytes());
        if self.format.has_type {
            self.bytes[offset + 7] = file_type.0;
        }
    }

    fn has_tail(&self) -> bool {
        self.format.has_checksum && has_dir_tail(self.bytes)
    }

    fn put_len(&mut self, offset: usize, rec_len: usize) {
        self.bytes[offset + 4..offset + 6].copy_from_slice(&(rec_len as u16).to_le_bytes());
    }

    fn put_header(
        &mut self,
        offset: usize,
        ino: Ino,
        rec_len: usize,
        (name_len, file_type): (usize, FileType),
    ) {
        self.put_len(offset, rec_len);
        // a name has at most 255 bytes: without types the high byte of its length is 0
        self.bytes[offset + 6] = name_len as u8;
        self.bytes[offset + 7] = 0;
        self.set_target(offset, ino, file_type);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: Ino = Ino(12);
    const FORMAT: DirFormat = DirFormat { has_type: true, has_checksum: true };

    fn names(bytes: &[u8], format: DirFormat) -> Vec<String> {
        let entries = DirBlock::new(bytes, format, DIR, 0).entries();
        entries.map(|entry| String::from_utf8(entry.unwrap().name.to_vec()).unwrap()).collect()
    }

    #[test]
    fn entries_come_and_go() {
        for format in [FORMAT, DirFormat { has_type: false, has_checksum: false }] {
            let mut bytes = [0; 1024];
            let mut block = DirBlockMut::init(&mut bytes, format, DIR, 0);
            let mut inserted = 0;
            while block
                .insert(format!("name-{inserted}").as_bytes(), Ino(99), FileType::REGULAR)
                .unwrap()
                .is_some()
            {
                inserted += 1;
            }
            let room = if format.has_checksum { 1012 } else { 1024 };
            assert_eq!(inserted, 10 + (room - 160) / 16, "{format:?}");
            let removed = |block: &mut DirBlockMut<'_>, name: &[u8]| {
                let offset = block.read().find(name).unwrap().unwrap().offset;
                block.remove(offset).unwrap();
            };
            (0..inserted).for_each(|n| removed(&mut block, format!("name-{n}").as_bytes()));
            assert_eq!(block.read().entries().count(), 0);
            let long = vec![b'x'; 255];
            let at = block.insert(&long, Ino(7), FileType::DIRECTORY).unwrap().unwrap();
            block.set_target(at, Ino(8), FileType::SYMLINK);
            let found = block.read().find(&long).unwrap().unwrap();
            assert_eq!(
                (found.ino, found.file_type.0),
                (Ino(8), if format.has_type { 7 } else { 0 })
            );
            assert_eq!(names(&bytes, format), [String::from_utf8(long).unwrap()]);
            assert_eq!(has_dir_tail(&bytes), format.has_checksum);
            seal_dir_block(&mut bytes, 5);
            let sums = dir_block_checksums(&bytes, 5);
            assert_eq!(sums.is_some(), format.has_checksum);
            assert!(sums.is_none_or(|(found, computed)| found == computed));
        }
    }

    #[test]
    fn a_record_that_leads_astray_is_refused() {
        let mut bytes = [0; 1024];
        DirBlockMut::init(&mut bytes, FORMAT, DIR, 0)
            .insert(b"abcdef", Ino(3), FileType::REGULAR)
            .unwrap();
        let whole = bytes;
        let first = |bytes: &[u8]| {
            DirBlock::new(bytes, FORMAT, DIR, 0).entries().next().unwrap().map(|_| ())
        };
        assert!(first(&whole).is_ok());
        for (at, value) in [(4, 17), (5, 5), (6, 0), (8, b'/'), (9, 0)] {
            bytes = whole;
            bytes[at] = value;
            assert!(first(&bytes).is_err(), "byte {at}");
        }
        bytes = whole;
        bytes[4..6].copy_from_slice(&8_u16.to_le_bytes());
        assert!(first(&bytes).is_err(), "no room for a name");
        bytes[4..6].copy_from_slice(&1020_u16.to_le_bytes());
        assert_eq!(
            DirBlock::new(&bytes, FORMAT, DIR, 0).records().filter(Result::is_err).count(),
            1
        );
    }

    #[test]
    fn what_is_whole_is_listed_around_a_name_that_no_file_may_have() {
        let mut bytes = [0; 1024];
        let mut block = DirBlockMut::init(&mut bytes, FORMAT, DIR, 0);
        for (name, ino) in [("one", 12), ("two", 13), ("three", 14)] {
            block.insert(name.as_bytes(), Ino(ino), FileType::REGULAR).unwrap();
        }
        let listed = |bytes: &[u8]| {
            let entries = DirBlock::new(bytes, FORMAT, DIR, 0).entries();
            entries.map(|entry| entry.map_or(0, |entry| entry.ino.0)).collect::<Vec<_>>()
        };
        let whole = bytes;
        for (at, value, expected) in [
            (20, b'/', [12, 0, 14].to_vec()),
            (20, 0, [12, 0, 14].to_vec()),
            (16, 9, [12, 0].to_vec()),
        ] {
            bytes = whole;
            bytes[at] = value;
            assert_eq!(listed(&bytes), expected, "byte {at}");
        }
    }
}
