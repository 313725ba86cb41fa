//! The layout of a drive file, and the bytes of its records. All numbers are little endian.
//!
//! | from | what |
//! |---|---|
//! | 0 | [`MAGIC`], version, checksum and length of the description (u32 each), the description |
//! | 64 KiB | a record of 32 bytes for each block |
//! | after that | a record of 128 bytes for each page |
//! | the next multiple of 4 KiB | the bytes of each page |
//!
//! In a drive with zones this is the page-mapped part, and the same records and bytes of the zones'
//! flash come behind it.
//!
//! A page counts only if its record names the erase count of its block: erasing a block is writing
//! one record.

use dovetail_block::Content;
use dovetail_nand::{CellMode, Geometry, Lpn, Oob, Ppn, Seq};

use crate::buffer::MAX_SUBPAGES;

pub(super) const MAGIC: [u8; 8] = *b"DVFLASH\0";
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: u64 = 64 * 1024;
/// Bytes of the header before the description.
pub(super) const PREAMBLE: usize = 20;
pub(super) const BLOCK_RECORD: u64 = 32;
pub(super) const PAGE_RECORD: u64 = 128;

/// Offsets in a file for flash of this geometry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    blocks_at: u64,
    pages_at: u64,
    data_at: u64,
    page_bytes: u64,
    end: u64,
}

impl Layout {
    pub(super) fn new(geometry: &Geometry) -> Self {
        Self::behind(HEADER_BYTES, geometry)
    }

    /// The same for flash whose records begin at an offset.
    pub(super) fn behind(blocks_at: u64, geometry: &Geometry) -> Self {
        let pages = u64::from(geometry.pages());
        let page_bytes = u64::from(geometry.page_bytes);
        let pages_at = blocks_at + u64::from(geometry.blocks()) * BLOCK_RECORD;
        let data_at = (pages_at + pages * PAGE_RECORD).next_multiple_of(4096);
        Self { blocks_at, pages_at, data_at, page_bytes, end: data_at + pages * page_bytes }
    }

    pub(super) const fn block_record(self, block: u32) -> u64 {
        self.blocks_at + block as u64 * BLOCK_RECORD
    }

    pub(super) const fn page_record(self, ppn: Ppn) -> u64 {
        self.pages_at + ppn.0 as u64 * PAGE_RECORD
    }

    pub(super) const fn page_data(self, ppn: Ppn) -> u64 {
        self.data_at + ppn.0 as u64 * self.page_bytes
    }

    /// The length of the file.
    pub(super) const fn end(self) -> u64 {
        self.end
    }
}

/// The wear of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockRecord {
    pub(super) erases: u32,
    pub(super) bad: bool,
    pub(super) mode: CellMode,
    pub(super) last_seq: Seq,
}

impl BlockRecord {
    pub(super) fn encode(self) -> [u8; BLOCK_RECORD as usize] {
        let mut bytes = [0; BLOCK_RECORD as usize];
        bytes[4..8].copy_from_slice(&self.erases.to_le_bytes());
        bytes[8] = self.bad.into();
        bytes[9] = (self.mode == CellMode::Single).into();
        bytes[16..24].copy_from_slice(&self.last_seq.0.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    /// A block whose record was never written is new; `None` for a record that is damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Some(Self::default());
        }
        let last_seq = seq_at(bytes, 16).filter(|_| is_sealed(bytes))?;
        let mode = if bytes[9] == 0 { CellMode::Native } else { CellMode::Single };
        Some(Self { erases: u32_at(bytes, 4), bad: bytes[8] != 0, mode, last_seq })
    }
}

/// The content of a subpage: bytes stand apart and are named by their checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredContent {
    Empty,
    Bytes(u32),
    Pattern(u64),
    Lost,
}

impl StoredContent {
    pub(super) fn of(content: Option<&Content>) -> Self {
        match content {
            None => Self::Lost,
            Some(Content::Empty) => Self::Empty,
            Some(Content::Pattern(pattern)) => Self::Pattern(pattern.number()),
            Some(Content::Bytes(bytes)) => Self::Bytes(crc32c::crc32c(&**bytes)),
        }
    }

    fn encode(self) -> (u8, u64) {
        match self {
            Self::Empty => (0, 0),
            Self::Bytes(checksum) => (1, checksum.into()),
            Self::Pattern(number) => (2, number),
            Self::Lost => (3, 0),
        }
    }

    fn decode(kind: u8, value: u64) -> Option<Self> {
        Some(match kind {
            0 => Self::Empty,
            1 => Self::Bytes(value as u32),
            2 => Self::Pattern(value),
            3 => Self::Lost,
            _ => return None,
        })
    }
}

/// A used page, and of which erase of its block; without content it was spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageRecord {
    pub(super) erases: u32,
    pub(super) content: Option<(Oob, [StoredContent; MAX_SUBPAGES])>,
}

impl PageRecord {
    pub(super) fn encode(self) -> [u8; PAGE_RECORD as usize] {
        let mut bytes = [0; PAGE_RECORD as usize];
        bytes[4..8].copy_from_slice(&self.erases.to_le_bytes());
        bytes[8] = if self.content.is_some() { 1 } else { 2 };
        if let Some((oob, contents)) = self.content {
            bytes[9] = oob.stream.0;
            bytes[12..16].copy_from_slice(&oob.inode.0.to_le_bytes());
            bytes[16..24].copy_from_slice(&oob.lpn.0.to_le_bytes());
            bytes[24..32].copy_from_slice(&oob.seq.0.to_le_bytes());
            for (index, (kind, value)) in
                contents.map(StoredContent::encode).into_iter().enumerate()
            {
                bytes[32 + index] = kind;
                bytes[64 + 8 * index..72 + 8 * index].copy_from_slice(&value.to_le_bytes());
            }
        }
        seal(&mut bytes);
        bytes
    }

    /// `None` where no page was written, or only a part of its record.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let erases = u32_at(bytes, 4);
        match bytes[8] {
            _ if !is_sealed(bytes) => None,
            1 => Some(Self { erases, content: Some((decode_oob(bytes)?, decode_parts(bytes)?)) }),
            2 => Some(Self { erases, content: None }),
            _ => None,
        }
    }
}

fn decode_oob(bytes: &[u8]) -> Option<Oob> {
    Some(Oob {
        lpn: Lpn(u64_at(bytes, 16)),
        seq: seq_at(bytes, 24)?,
        inode: dovetail_block::Inode(u32_at(bytes, 12)),
        stream: Some(bytes[9]).filter(|stream| *stream < 16).map(dovetail_block::StreamId)?,
    })
}

/// A sequence number; one near the end of their range was never given.
fn seq_at(bytes: &[u8], at: usize) -> Option<Seq> {
    Some(Seq(u64_at(bytes, at))).filter(|seq| seq.0 < 1 << 62)
}

fn decode_parts(bytes: &[u8]) -> Option<[StoredContent; MAX_SUBPAGES]> {
    let mut contents = [StoredContent::Empty; MAX_SUBPAGES];
    for (index, content) in contents.iter_mut().enumerate() {
        *content = StoredContent::decode(bytes[32 + index], u64_at(bytes, 64 + 8 * index))?;
    }
    Some(contents)
}

fn seal(bytes: &mut [u8]) {
    let checksum = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
}

fn is_sealed(bytes: &[u8]) -> bool {
    u32_at(bytes, 0) == crc32c::crc32c(&bytes[4..])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::{Inode, StreamId};

    #[test]
    fn records_come_back_and_damage_is_seen() {
        let oob = Oob { lpn: Lpn(7), seq: Seq(1 << 50), inode: Inode(9), stream: StreamId(15) };
        let contents = [
            StoredContent::Empty,
            StoredContent::Bytes(0xDEAD_BEEF),
            StoredContent::Pattern(1 << 40),
            StoredContent::Lost,
        ];
        for page in [
            PageRecord { erases: 3, content: Some((oob, contents)) },
            PageRecord { erases: 3, content: None },
        ] {
            let mut bytes = page.encode();
            assert_eq!(PageRecord::decode(&bytes), Some(page));
            bytes[5] ^= 1;
            assert_eq!(PageRecord::decode(&bytes), None);
        }
        let block = BlockRecord { erases: 5, bad: true, mode: CellMode::Single, last_seq: Seq(77) };
        let mut bytes = block.encode();
        assert_eq!(BlockRecord::decode(&bytes), Some(block));
        bytes[20] ^= 1;
        assert_eq!(BlockRecord::decode(&bytes), None);
        assert_eq!(BlockRecord::decode(&[0; 32]), Some(BlockRecord::default()));
        assert_eq!(PageRecord::decode(&[0; 128]), None);
    }
}
