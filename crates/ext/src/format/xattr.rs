//! Extended attributes: behind the fields of an inode, and in a block that inodes may share.
//!
//! Entries stand at the area's start and grow up, values at its end and grow down. In an inode a
//! magic number comes first, and values are found from the first entry on; in a block a header
//! comes first, and they are found from its start on.

use dovetail_vfs::kit::{XattrNameSpace, shared_xattr_prefix};

use super::{BlockAddr, Ino, crc32c};
use crate::error::{Corrupt, Damage, Place};

/// The magic number of both forms.
pub const XATTR_MAGIC: u32 = 0xEA02_0000;
/// The magic number in an inode.
const INLINE_HEADER: usize = 4;
/// The header of a block.
const BLOCK_HEADER: usize = 32;
/// Offset of the checksum of a block.
const CHECKSUM: usize = 16;
/// An entry before its name.
const ENTRY: usize = 16;
/// The longest name, without its name space.
const MAX_NAME: usize = 255;

/// The name space of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct XattrIndex(pub u8);

impl XattrNameSpace for XattrIndex {
    fn of_number(number: u8) -> Self {
        Self(number)
    }

    fn number(self) -> u8 {
        self.0
    }

    fn prefix(self) -> Option<&'static str> {
        Some(match self.0 {
            7 => "system.",
            8 => "system.richacl",
            10 => "gnu.",
            number => return shared_xattr_prefix(number),
        })
    }
}

/// An extended attribute.
pub type Xattr = dovetail_vfs::kit::Xattr<XattrIndex>;

/// No room for all attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the extended attributes have no room")]
pub struct NoRoom;

/// The hash of name and value, which stands in entries of blocks: the name by characters, then the
/// value by words, the last filled with zeros.
fn xattr_hash(xattr: &Xattr) -> u32 {
    hash_of(&xattr.name, &xattr.value, u32::from)
}

/// The same by the characters of machines on which they have a sign: Linux before 6.2.
fn signed_hash(name: &[u8], value: &[u8]) -> u32 {
    hash_of(name, value, |byte| i32::from(byte as i8) as u32)
}

fn hash_of(name: &[u8], value: &[u8], character: impl Fn(u8) -> u32) -> u32 {
    let name = name.iter().fold(0_u32, |hash, &byte| hash.rotate_left(5) ^ character(byte));
    let words = value.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    words.fold(name, |hash, word| hash.rotate_left(16) ^ word)
}

fn entry_len(name: &[u8]) -> usize {
    (ENTRY + name.len()).next_multiple_of(4)
}

/// An area of entries and values.
struct Area<'a> {
    bytes: &'a [u8],
    /// Offset of the first entry.
    first: usize,
    /// Offset from which the offsets of values count.
    base: usize,
    place: Place,
}

/// Attributes in the area behind the fields of inode `ino`; an area without the magic number has
/// none.
///
/// # Errors
/// [`Damage::XattrOverrun`]; a value in an inode of its own, which needs a feature that is not
/// supported.
pub fn parse_inline_xattrs(area: &[u8], ino: Ino) -> Result<Vec<Xattr>, Corrupt> {
    if area.first_chunk().is_none_or(|magic| u32::from_le_bytes(*magic) != XATTR_MAGIC) {
        return Ok(Vec::new());
    }
    Area { bytes: area, first: INLINE_HEADER, base: INLINE_HEADER, place: Place::Xattrs(ino) }
        .parse()
}

/// Attributes in block `at`. The checksum is not looked at.
///
/// # Errors
/// As [`parse_inline_xattrs`]; another magic number.
pub fn parse_xattr_block(block: &[u8], at: BlockAddr) -> Result<Vec<Xattr>, Corrupt> {
    let place = Place::XattrBlock(at);
    Corrupt::check_equal(place, "h_magic", super::u32_at(block, 0), XATTR_MAGIC)?;
    Corrupt::check_equal(place, "h_blocks", super::u32_at(block, 8), 1_u32)?;
    Area { bytes: block, first: BLOCK_HEADER, base: 0, place }.parse()
}

/// Checks the hashes of the entries in the area behind the fields of inode `ino`, where there are
/// any.
///
/// # Errors
/// [`Corrupt::Mismatch`].
pub fn check_inline_hashes(area: &[u8], ino: Ino) -> Result<(), Corrupt> {
    if area.first_chunk().is_none_or(|magic| u32::from_le_bytes(*magic) != XATTR_MAGIC) {
        return Ok(());
    }
    let (first, base) = (INLINE_HEADER, INLINE_HEADER);
    Area { bytes: area, first, base, place: Place::Xattrs(ino) }.check_hashes(true)
}

/// Checks the hashes of the entries in block `at`.
///
/// # Errors
/// [`Corrupt::Mismatch`].
pub fn check_block_hashes(block: &[u8], at: BlockAddr) -> Result<(), Corrupt> {
    let place = Place::XattrBlock(at);
    Area { bytes: block, first: BLOCK_HEADER, base: 0, place }.check_hashes(false)
}

impl Area<'_> {
    /// Up to the first entry that does not fit; one may have the hash 0 for none.
    fn check_hashes(&self, may_be_none: bool) -> Result<(), Corrupt> {
        let mut at = self.first;
        while self.bytes.len() >= at + 4 && super::u32_at(self.bytes, at) != 0 {
            let Some(entry) = self.entry(at) else { break };
            let Some(value) = self.value(&entry) else { break };
            let right = hash_of(entry.name, value, u32::from);
            let is_right = [right, signed_hash(entry.name, value)].contains(&entry.hash)
                || may_be_none && entry.hash == 0;
            if !is_right {
                return Corrupt::check_equal(self.place, "e_hash", entry.hash, right);
            }
            at += entry_len(entry.name);
        }
        Ok(())
    }

    fn parse(&self) -> Result<Vec<Xattr>, Corrupt> {
        let mut list = Vec::new();
        let mut at = self.first;
        // four bytes of zeros end the list; it may also end with the area
        while self.bytes.len() >= at + 4 && super::u32_at(self.bytes, at) != 0 {
            let (offset, end) = (at as u64, self.bytes.len() as u64);
            let overrun = || Damage::XattrOverrun { place: self.place, offset, end };
            let entry = self.entry(at).ok_or_else(overrun)?;
            at += entry_len(entry.name);
            Corrupt::check_equal(self.place, "e_value_inum", entry.value_inum, 0_u32)?;
            let value = self.value(&entry).ok_or_else(overrun)?.to_vec();
            list.push(Xattr { index: XattrIndex(entry.index), name: entry.name.to_vec(), value });
        }
        Ok(list)
    }

    fn entry(&self, at: usize) -> Option<RawEntry<'_>> {
        let bytes = self.bytes.get(at..)?;
        let &[name_len, index, offset_low, offset_high, ..] = bytes.first_chunk::<ENTRY>()?;
        Some(RawEntry {
            index,
            name: bytes.get(ENTRY..ENTRY + usize::from(name_len))?,
            value_offset: u16::from_le_bytes([offset_low, offset_high]).into(),
            value_inum: super::u32_at(bytes, 4),
            value_size: super::u32_at(bytes, 8) as usize,
            hash: super::u32_at(bytes, 12),
        })
    }

    fn value(&self, entry: &RawEntry<'_>) -> Option<&[u8]> {
        if entry.value_size == 0 {
            return Some(&[]);
        }
        let start = self.base + entry.value_offset;
        self.bytes.get(start..start.checked_add(entry.value_size)?)
    }
}

struct RawEntry<'a> {
    index: u8,
    name: &'a [u8],
    value_offset: usize,
    value_inum: u32,
    value_size: usize,
    hash: u32,
}

/// The area behind the fields of an inode, `room` bytes, with these attributes in this order; zeros
/// for none.
///
/// # Errors
/// [`NoRoom`].
pub fn encode_inline_xattrs(list: &[Xattr], room: usize) -> Result<Vec<u8>, NoRoom> {
    let mut area = vec![0; room];
    if list.is_empty() {
        return Ok(area);
    }
    area.get_mut(..4).ok_or(NoRoom)?.copy_from_slice(&XATTR_MAGIC.to_le_bytes());
    // the hash is for sharing blocks: kernels leave it 0 here
    put_entries(list.iter(), &mut area, INLINE_HEADER, INLINE_HEADER, |_| 0)?;
    Ok(area)
}

/// Header of a block of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XattrBlockHeader {
    /// Inodes that share the block.
    pub refcount: u32,
    /// The hash of all entries.
    pub hash: u32,
}

/// The header of a block of attributes, whatever its magic number says.
pub fn xattr_block_header(block: &[u8]) -> XattrBlockHeader {
    XattrBlockHeader { refcount: super::u32_at(block, 4), hash: super::u32_at(block, 12) }
}

/// Sets how many inodes share a block of attributes. Its checksum must be renewed
/// ([`seal_xattr_block`]).
pub fn set_xattr_refcount(block: &mut [u8], refcount: u32) {
    block[4..8].copy_from_slice(&refcount.to_le_bytes());
}

/// A block of `block_size` bytes with these attributes, for one inode; they are sorted as kernels
/// need it. A checksum is to be added ([`seal_xattr_block`]).
///
/// # Errors
/// [`NoRoom`].
pub fn encode_xattr_block(list: &[Xattr], block_size: usize) -> Result<Vec<u8>, NoRoom> {
    let mut sorted: Vec<_> = list.iter().collect();
    sorted.sort_by(|a, b| (a.index, a.name.len(), &a.name).cmp(&(b.index, b.name.len(), &b.name)));
    let mut block = vec![0; block_size];
    put_entries(sorted.iter().copied(), &mut block, BLOCK_HEADER, 0, xattr_hash)?;
    let hashes = sorted.iter().map(|xattr| xattr_hash(xattr));
    // an entry without a hash makes the whole one that is not shared
    let hash = if hashes.clone().any(|hash| hash == 0) {
        0
    } else {
        hashes.fold(0_u32, |all, hash| all.rotate_left(16) ^ hash)
    };
    for (slot, word) in block.as_chunks_mut::<4>().0.iter_mut().zip([XATTR_MAGIC, 1, 1, hash]) {
        *slot = word.to_le_bytes();
    }
    Ok(block)
}

fn put_entries<'a>(
    list: impl Iterator<Item = &'a Xattr>,
    area: &mut [u8],
    first: usize,
    base: usize,
    hash: impl Fn(&Xattr) -> u32,
) -> Result<(), NoRoom> {
    let (mut at, mut values) = (first, area.len());
    // in a large area alignment is that of the offsets, which count from the base
    values -= (values - base) % 4;
    for xattr in list {
        let size = xattr.value.len().next_multiple_of(4);
        values = values.checked_sub(size).ok_or(NoRoom)?;
        let end = at + entry_len(&xattr.name);
        // four zeros end the list
        if xattr.name.len() > MAX_NAME || end + 4 > values {
            return Err(NoRoom);
        }
        let offset = if xattr.value.is_empty() { 0 } else { (values - base) as u16 };
        let entry = &mut area[at..end];
        entry[0] = xattr.name.len() as u8;
        entry[1] = xattr.index.0;
        entry[2..4].copy_from_slice(&offset.to_le_bytes());
        entry[8..12].copy_from_slice(&(xattr.value.len() as u32).to_le_bytes());
        entry[12..16].copy_from_slice(&hash(xattr).to_le_bytes());
        entry[ENTRY..ENTRY + xattr.name.len()].copy_from_slice(&xattr.name);
        area[values..values + xattr.value.len()].copy_from_slice(&xattr.value);
        at = end;
    }
    Ok(())
}

/// The checksum of the attribute block at `at`, stored and computed; `seed` is
/// [`super::Superblock::checksum_seed`].
pub fn xattr_block_checksums(block: &[u8], at: BlockAddr, seed: u32) -> (u32, u32) {
    let crc = crc32c(crc32c(seed, &at.0.to_le_bytes()), &block[..CHECKSUM]);
    let crc = crc32c(crc32c(crc, &[0; 4]), &block[CHECKSUM + 4..]);
    (super::u32_at(block, CHECKSUM), crc)
}

/// Puts the checksum into the attribute block at `at`.
pub fn seal_xattr_block(block: &mut [u8], at: BlockAddr, seed: u32) {
    let (_, computed) = xattr_block_checksums(block, at, seed);
    block[CHECKSUM..CHECKSUM + 4].copy_from_slice(&computed.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(mut list: Vec<Xattr>) -> Vec<Xattr> {
        list.sort_by(|a, b| {
            (a.index, a.name.len(), &a.name).cmp(&(b.index, b.name.len(), &b.name))
        });
        list
    }

    proptest! {
        #[test]
        fn what_fits_is_read_back(
            sizes in prop::collection::vec((1..256_usize, 0..300_usize, 1..8_u8), 0..12),
            room in 0..600_usize,
        ) {
            let list: Vec<_> = sizes
                .iter()
                .enumerate()
                .map(|(n, &(name, value, index))| Xattr { index: XattrIndex(index), name: vec![b'a' + n as u8; name], value: vec![7; value] })
                .collect();
            let size: usize = list.iter().map(|xattr| entry_len(&xattr.name) + xattr.value.len().next_multiple_of(4)).sum();
            let room = room / 4 * 4;
            match encode_inline_xattrs(&list, room) {
                Ok(area) => prop_assert_eq!(parse_inline_xattrs(&area, Ino(12)).unwrap(), list.clone()),
                Err(NoRoom) => prop_assert!(4 + size + 4 > room),
            }
            match encode_xattr_block(&list, 1024) {
                Ok(block) => prop_assert_eq!(parse_xattr_block(&block, BlockAddr(9)).unwrap(), sorted(list)),
                Err(NoRoom) => prop_assert!(32 + size + 4 > 1024),
            }
        }

        #[test]
        fn any_bytes_are_refused_or_read(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_inline_xattrs(&bytes, Ino(12));
            bytes.splice(0..0, [0, 0, 2, 0xEA]);
            let _ = parse_inline_xattrs(&bytes, Ino(12));
            bytes.splice(4..4, [0, 0, 0, 0, 1, 0, 0, 0]);
            let _ = parse_xattr_block(&bytes, BlockAddr(9));
        }
    }
}
