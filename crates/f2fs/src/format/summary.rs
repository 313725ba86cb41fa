//! Summary blocks: who owns each block of a segment.
//!
//! The summary area has one for each segment of the main area. Those of the segments that logs
//! write to stand in the checkpoint, and carry the journals (`journal.rs`); the area's copy of such
//! a segment may be stale.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute, transmute_mut,
    transmute_ref,
};

use super::journal::JOURNAL;
use super::layout::prove_layout;
use super::{BlockAddr, Nid, SegNo, Superblock};

/// Entries of a summary block, one for each block of the segment.
const ENTRIES: usize = super::BLOCKS_IN_SEGMENT as usize;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawSummary {
    nid: U32,
    version: u8,
    ofs_in_node: U16,
}

prove_layout!(RawSummary, 7, { 0 => nid, 4 => version, 5 => ofs_in_node });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawSummaryBlock {
    entries: [RawSummary; ENTRIES],
    pub(super) journal: [u8; JOURNAL],
    entry_type: u8,
    check_sum: U32,
}

prove_layout!(RawSummaryBlock, 4096, { 3584 => journal, 4091 => entry_type, 4092 => check_sum });

/// Owner of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The node itself, or the node that points to the data block.
    pub nid: Nid,
    /// The NAT's version of `nid`; 0 for a node.
    pub version: u8,
    /// Index of the pointer in `nid`, counted after an inode's extra attributes; 0 for a node.
    pub offset: u16,
}

/// Kind of a segment's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryKind {
    /// Contents of files and directories.
    Data,
    /// Nodes.
    Node,
}

impl SummaryKind {
    /// As it is stored: 0 for data, 1 for nodes.
    pub const fn code(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Node => 1,
        }
    }
}

impl RawSummary {
    pub(super) fn decode(&self) -> Summary {
        Summary { nid: Nid(self.nid.get()), version: self.version, offset: self.ofs_in_node.get() }
    }

    pub(super) fn encode(entry: Summary) -> Self {
        Self {
            nid: U32::new(entry.nid.0),
            version: entry.version,
            ofs_in_node: U16::new(entry.offset),
        }
    }
}

/// The entry of the segment's block `offset` (0 to 511; no owner from there on).
pub fn summary_entry(block: &BlockBytes, offset: u32) -> Summary {
    let block: &RawSummaryBlock = transmute_ref!(block);
    block.entries.get(offset as usize).map(RawSummary::decode).unwrap_or_default()
}

/// All entries of a summary block.
pub fn summaries(block: &BlockBytes) -> Box<[Summary; 512]> {
    let block: &RawSummaryBlock = transmute_ref!(block);
    Box::new(block.entries.each_ref().map(RawSummary::decode))
}

/// Sets the entry of the segment's block `offset`, which must be below 512.
pub fn set_summary_entry(block: &mut BlockBytes, offset: u32, entry: Summary) {
    let block: &mut RawSummaryBlock = transmute_mut!(block);
    block.entries[offset as usize] = RawSummary::encode(entry);
}

/// Kind of the segment's blocks, as its summary block stores it.
///
/// # Errors
/// The type that is stored, if it is neither.
pub fn summary_kind(block: &BlockBytes) -> Result<SummaryKind, u8> {
    let block: &RawSummaryBlock = transmute_ref!(block);
    match block.entry_type {
        0 => Ok(SummaryKind::Data),
        1 => Ok(SummaryKind::Node),
        other => Err(other),
    }
}

/// Sets what a summary block says that its segment holds.
pub fn set_summary_kind(block: &mut BlockBytes, kind: SummaryKind) {
    let block: &mut RawSummaryBlock = transmute_mut!(block);
    block.entry_type = kind.code();
}

/// A summary block of `entries`, with an empty journal.
pub fn summary_block(entries: &[Summary; 512], kind: SummaryKind) -> BlockBytes {
    transmute!(RawSummaryBlock {
        entries: entries.map(RawSummary::encode),
        journal: [0; JOURNAL],
        entry_type: kind.code(),
        check_sum: U32::ZERO, // nobody fills or checks it
    })
}

/// Address of the summaries of `segno`, which must lie in the main area.
pub fn ssa_address(superblock: &Superblock, segno: SegNo) -> BlockAddr {
    superblock.ssa_start.plus(segno.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_entries_is_read_back() {
        let entries: [Summary; 512] = std::array::from_fn(|n| Summary {
            nid: Nid(n as u32 * 70_000),
            version: n as u8,
            offset: 1017,
        });
        let block = summary_block(&entries, SummaryKind::Node);
        assert_eq!(*summaries(&block), entries);
        assert_eq!(summary_entry(&block, 511), entries[511]);
        assert_eq!(summary_entry(&block, 512), Summary::default());
        assert_eq!(summary_kind(&block), Ok(SummaryKind::Node));
        assert_eq!(block[7..14], [0x70, 0x11, 1, 0, 1, 0xF9, 3]);
        assert!(block[3584..4091].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn what_is_set_is_read_back_and_the_rest_stays() {
        let mut block = [0xEE; 4096];
        assert_eq!(summary_kind(&block), Err(0xEE));
        set_summary_kind(&mut block, SummaryKind::Data);
        let entry = Summary { nid: Nid(7), version: 2, offset: 9 };
        set_summary_entry(&mut block, 511, entry);
        assert_eq!(
            (summary_entry(&block, 511), summary_kind(&block)),
            (entry, Ok(SummaryKind::Data))
        );
        assert!(block[..3577].iter().chain(&block[3584..4091]).all(|&byte| byte == 0xEE));
    }
}
