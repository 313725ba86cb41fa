//! The index of a directory: a tree of hashes in blocks that look empty to who does not know it.
//!
//! Block 0 of the directory is the root: "." and "..", whose record covers the rest. Nodes below it
//! are one empty record. In both a table of hashes leads to further nodes or to blocks of entries;
//! its first entry has no hash, and holds how many there are in its place. The lowest bit of a hash
//! says that names of the hash may also stand in the block before.

use super::{Ino, crc32c};
use crate::error::{Corrupt, Place};

/// Offset of the table in a root, and in a node.
const ROOT_TABLE: usize = 0x20;
const NODE_TABLE: usize = 8;
/// Offset of the tree's description in the root, between the dots and the table.
const INFO: usize = 0x18;
const INFO_LEN: u8 = 8;
const ENTRY: usize = 8;
/// Reserved word and checksum behind the table.
const TAIL: usize = 8;
/// Levels below the root at most: without and with the feature large_dir.
const MAX_LEVELS: [u64; 2] = [1, 2];

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DxEntry {
    /// The smallest hash below; the lowest bit says that the block before goes on here. 0 for the
    /// first entry.
    pub hash: u32,
    /// The block of the directory.
    pub block: u32,
}

/// Description of the tree, from its root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DxInfo {
    /// Hash of the names: 0 to 2.
    pub hash_version: u8,
    /// Levels of nodes between the root and the blocks of entries.
    pub indirect_levels: u8,
}

/// The root or a node of the index, without the dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DxBlock {
    /// Description of the tree; in the root only.
    pub info: Option<DxInfo>,
    /// Entries that there is room for.
    pub limit: u16,
    /// The entries, at least one, in the order of their hashes.
    pub entries: Vec<DxEntry>,
}

/// Entries that a root (or a node) of `block_size` bytes has room for.
pub const fn dx_limit(block_size: usize, is_root: bool, has_checksum: bool) -> u16 {
    let table = if is_root { ROOT_TABLE } else { NODE_TABLE };
    let tail = if has_checksum { TAIL } else { 0 };
    ((block_size - table - tail) / ENTRY) as u16
}

impl DxBlock {
    /// Decodes block 0 of the indexed directory `dir`. The checksum is not looked at.
    ///
    /// # Errors
    /// Fields that no index has; a table of another size than the block has room for.
    pub fn parse_root(
        bytes: &[u8],
        dir: Ino,
        has_checksum: bool,
        large_dir: bool,
    ) -> Result<Self, Corrupt> {
        let place = Place::Directory(dir, 0);
        let info: &[u8; 8] =
            bytes.get(INFO..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; 8]);
        let [.., hash_version, info_len, indirect_levels, flags] = *info;
        Corrupt::check_equal(place, "info_length", info_len, INFO_LEN)?;
        Corrupt::check_range(place, "hash_version", hash_version, (0, 2))?;
        Corrupt::check_equal(place, "unused_flags", flags & 1, 0_u8)?;
        let levels = MAX_LEVELS[usize::from(large_dir)];
        Corrupt::check_range(place, "indirect_levels", indirect_levels, (0, levels))?;
        let info = DxInfo { hash_version, indirect_levels };
        Self::parse_table(bytes, place, Some(info), has_checksum)
    }

    /// Decodes a node, block `block` of directory `dir`.
    ///
    /// # Errors
    /// As [`Self::parse_root`].
    pub fn parse_node(
        bytes: &[u8],
        dir: Ino,
        block: u32,
        has_checksum: bool,
    ) -> Result<Self, Corrupt> {
        Self::parse_table(bytes, Place::Directory(dir, block), None, has_checksum)
    }

    fn parse_table(
        bytes: &[u8],
        place: Place,
        info: Option<DxInfo>,
        has_checksum: bool,
    ) -> Result<Self, Corrupt> {
        let start = if info.is_some() { ROOT_TABLE } else { NODE_TABLE };
        let expected = dx_limit(bytes.len(), info.is_some(), has_checksum);
        let raw = bytes[start..].as_chunks::<ENTRY>().0;
        let [l0, l1, c0, c1, ..] = raw[0];
        let (limit, count) = (u16::from_le_bytes([l0, l1]), u16::from_le_bytes([c0, c1]));
        Corrupt::check_equal(place, "limit", limit, expected)?;
        Corrupt::check_range(place, "count", count, (1, limit.into()))?;
        let mut entries: Vec<_> = raw[..count.into()].iter().map(decode_entry).collect();
        entries[0].hash = 0;
        Ok(Self { info, limit, entries })
    }

    /// Writes table and info into `bytes`, a block of the directory; the dots of a root stay, a
    /// node's empty record is written. A checksum must be renewed afterwards ([`seal_dx_block`]).
    pub fn encode(&self, bytes: &mut [u8]) {
        let size = bytes.len();
        let start = if let Some(info) = self.info {
            bytes[INFO..ROOT_TABLE].copy_from_slice(&[
                0,
                0,
                0,
                0,
                info.hash_version,
                INFO_LEN,
                info.indirect_levels,
                0,
            ]);
            ROOT_TABLE
        } else {
            bytes[..NODE_TABLE].fill(0);
            bytes[4..6].copy_from_slice(&(size as u16).to_le_bytes());
            NODE_TABLE
        };
        let table = bytes[start..].as_chunks_mut::<ENTRY>().0;
        for (slot, entry) in table.iter_mut().zip(&self.entries) {
            *slot = encode_entry(entry);
        }
        let count = (self.entries.len() as u16).to_le_bytes();
        let limit = self.limit.to_le_bytes();
        table[0][..4].copy_from_slice(&[limit[0], limit[1], count[0], count[1]]);
    }

    /// The entry that leads to names of `hash`: the last one whose hash is not larger. The first if
    /// all are.
    pub fn position(&self, hash: u32) -> usize {
        self.entries[1..].partition_point(|entry| entry.hash <= hash)
    }
}

fn decode_entry(bytes: &[u8; ENTRY]) -> DxEntry {
    let [h0, h1, h2, h3, b0, b1, b2, b3] = *bytes;
    // the upper four bits of a block number are kept for later use
    let block = u32::from_le_bytes([b0, b1, b2, b3]) & 0x0FFF_FFFF;
    DxEntry { hash: u32::from_le_bytes([h0, h1, h2, h3]), block }
}

fn encode_entry(entry: &DxEntry) -> [u8; ENTRY] {
    let ([h0, h1, h2, h3], [b0, b1, b2, b3]) =
        (entry.hash.to_le_bytes(), entry.block.to_le_bytes());
    [h0, h1, h2, h3, b0, b1, b2, b3]
}

/// Offset of the table of an index block; `None` for a block of entries. A root is known by the
/// record of "..", which covers the rest, and by its info.
pub fn dx_table_offset(bytes: &[u8]) -> Option<usize> {
    let len = |at: usize| {
        bytes.get(at..at + 2).map(|len| usize::from(u16::from_le_bytes([len[0], len[1]])))
    };
    if len(4)? == bytes.len() {
        let is_empty = bytes[..4] == [0; 4] && bytes[6] == 0;
        return is_empty.then_some(NODE_TABLE);
    }
    let is_root = len(4)? == 12 && len(16)? == bytes.len() - 12 && bytes[INFO..INFO + 4] == [0; 4];
    (is_root && bytes[INFO + 5] == INFO_LEN).then_some(ROOT_TABLE)
}

/// Offset of the tail of an index block, and number of bytes before it that its checksum covers.
fn tail(bytes: &[u8], table: usize) -> Option<(usize, usize)> {
    let word =
        |at: usize| bytes.get(at..at + 2).map(|w| usize::from(u16::from_le_bytes([w[0], w[1]])));
    let (limit, count) = (word(table)?, word(table + 2)?);
    let at = table + limit * ENTRY;
    (count <= limit && at + TAIL <= bytes.len()).then_some((at, table + count * ENTRY))
}

/// The checksum of a root or node, stored and computed; `None` if it is none, or has no room for
/// it. `seed` is [`super::Inode::checksum_seed`] of the directory.
pub fn dx_block_checksums(bytes: &[u8], seed: u32) -> Option<(u32, u32)> {
    let (at, covered) = tail(bytes, dx_table_offset(bytes)?)?;
    let found = u32::from_le_bytes(*bytes[at + 4..].first_chunk()?);
    let crc = crc32c(crc32c(seed, &bytes[..covered]), &bytes[at..at + 4]);
    Some((found, crc32c(crc, &[0; 4])))
}

/// Puts the checksum into a root or node.
pub fn seal_dx_block(bytes: &mut [u8], seed: u32) {
    let at = dx_table_offset(bytes).and_then(|table| tail(bytes, table));
    if let (Some((at, _)), Some((_, computed))) = (at, dx_block_checksums(bytes, seed)) {
        bytes[at + 4..at + 8].copy_from_slice(&computed.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let entries: Vec<_> = (0..100).map(|n| DxEntry { hash: n * 100, block: n + 1 }).collect();
        let limit = dx_limit(1024, false, true);
        assert_eq!(
            (limit, dx_limit(4096, true, false), dx_limit(4096, true, true)),
            (126, 508, 507)
        );
        let node = DxBlock { info: None, limit, entries };
        let mut bytes = [0; 1024];
        node.encode(&mut bytes);
        seal_dx_block(&mut bytes, 3);
        assert_eq!(DxBlock::parse_node(&bytes, Ino(12), 9, true).unwrap(), node);
        let (found, computed) = dx_block_checksums(&bytes, 3).unwrap();
        assert_eq!(found, computed);
        assert_eq!(
            [0, 99, 100, 101, 9899, 9900, u32::MAX].map(|hash| node.position(hash)),
            [0, 0, 1, 1, 98, 99, 99]
        );
        assert!(DxBlock::parse_node(&bytes, Ino(12), 9, false).is_err(), "room for another limit");
    }
}
