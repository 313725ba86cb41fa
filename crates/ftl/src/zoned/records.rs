//! Records of zones: what must survive a power cut beside the pages themselves.
//!
//! They lie in blocks of the page-mapped part, each with the records of a few zones, and are
//! written whenever a zone gets or loses erase blocks, is full, or fails: so recovery looks at the
//! pages of active zones only.

use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, Content};
use dovetail_nand::BlockId;

/// The state of a zone in its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It has no erase blocks.
    #[default]
    Empty,
    /// It is being written; how far, its pages say.
    Active,
    /// Full, or finished: so many blocks were written.
    Full,
    /// It can be read only.
    ReadOnly,
}

/// The record of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) state: Recorded,
    /// Resets so far.
    pub(super) generation: u32,
    /// The place of what is not on its own flash.
    pub(super) slot: u32,
    /// Blocks written, of a zone that is not active.
    pub(super) written: u64,
    /// The write pointer of an active zone that is being finished: pages beyond it are no content.
    pub(super) ends_at: Option<u64>,
    /// It has a random write area.
    pub(super) window: bool,
    /// Its erase blocks in order; none when it is empty.
    pub(super) blocks: Vec<BlockId>,
}

const FIXED_BYTES: usize = 24;

const fn record_bytes(blocks_per_zone: u32) -> usize {
    FIXED_BYTES + 4 * blocks_per_zone as usize
}

/// Erase blocks of a zone whose record fits a block.
pub(super) const fn most_blocks() -> u32 {
    ((BLOCK_SIZE as usize - FIXED_BYTES) / 4) as u32
}

/// Records in a block.
pub(super) const fn records_per_block(blocks_per_zone: u32) -> u64 {
    BLOCK_SIZE / record_bytes(blocks_per_zone) as u64
}

/// The block that holds these records.
pub(super) fn encode(records: &[Record], blocks_per_zone: u32) -> Content {
    let mut bytes: BlockBytes = [0; BLOCK_SIZE as usize];
    for (record, at) in records.iter().zip(bytes.chunks_exact_mut(record_bytes(blocks_per_zone))) {
        at[0] = match record.state {
            Recorded::Empty => 0,
            Recorded::Active => 1,
            Recorded::Full => 2,
            Recorded::ReadOnly => 3,
        };
        at[1] = record.window.into();
        at[4..8].copy_from_slice(&record.generation.to_le_bytes());
        at[8..12].copy_from_slice(&record.slot.to_le_bytes());
        at[12..16].copy_from_slice(&(record.blocks.len() as u32).to_le_bytes());
        at[2] = record.ends_at.is_some().into();
        at[16..24].copy_from_slice(&record.ends_at.unwrap_or(record.written).to_le_bytes());
        for (block, at) in record.blocks.iter().zip(at[FIXED_BYTES..].chunks_exact_mut(4)) {
            at.copy_from_slice(&block.0.to_le_bytes());
        }
    }
    Content::Bytes(Arc::new(bytes))
}

/// The records in a block, `most` of them; those of a block that was never written are of empty
/// zones.
pub(super) fn decode(content: &Content, blocks_per_zone: u32, most: usize) -> Vec<Record> {
    let Content::Bytes(bytes) = content else { return vec![Record::default(); most] };
    let u32_at = |at: &[u8], from: usize| {
        u32::from_le_bytes([at[from], at[from + 1], at[from + 2], at[from + 3]])
    };
    let u64_at = |at: &[u8], from: usize| {
        u64::from(u32_at(at, from)) | u64::from(u32_at(at, from + 4)) << 32
    };
    let record = |at: &[u8]| {
        let count = u32_at(at, 12).min(blocks_per_zone) as usize;
        let blocks = (0..count).map(|i| BlockId(u32_at(at, FIXED_BYTES + 4 * i))).collect();
        let (written, is_ending) = (u64_at(at, 16), at[2] == 1);
        Record {
            state: match at[0] {
                1 => Recorded::Active,
                2 => Recorded::Full,
                3 => Recorded::ReadOnly,
                _ => Recorded::Empty,
            },
            window: at[1] == 1,
            generation: u32_at(at, 4),
            slot: u32_at(at, 8),
            written: if is_ending { 0 } else { written },
            ends_at: is_ending.then_some(written),
            blocks,
        }
    };
    bytes.chunks_exact(record_bytes(blocks_per_zone)).take(most).map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let full = Record {
            state: Recorded::Full,
            generation: 7,
            slot: 3,
            written: 1 << 33,
            ends_at: None,
            window: true,
            blocks: vec![BlockId(5), BlockId(1 << 30)],
        };
        let ending = Record { state: Recorded::Active, ends_at: Some(5), ..Record::default() };
        let records = vec![Record::default(), full, ending];
        assert_eq!(decode(&encode(&records, 2), 2, 3), records);
        assert_eq!(decode(&Content::Empty, 2, 1), [Record::default()]);
    }
}
