//! The segment information table: which blocks of a segment are valid.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::{BLOCKS_IN_SEGMENT, BlockAddr, SegNo, Superblock, msb_first};
use crate::error::{Corrupt, Place};

/// Entries in a block of the SIT.
pub const SIT_ENTRIES_IN_BLOCK: u32 = 55;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawSitEntry {
    vblocks: U16,
    valid_map: [u8; 64],
    mtime: U64,
}

prove_layout!(RawSitEntry, 74, { 0 => vblocks, 2 => valid_map, 66 => mtime });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSitBlock {
    entries: [RawSitEntry; SIT_ENTRIES_IN_BLOCK as usize],
    spare: [u8; 26],
}

prove_layout!(RawSitBlock, 4096, { 0 => entries });

/// The first of the node logs.
pub(crate) const FIRST_NODE_LOG: u8 = 3;

/// Entry of the SIT: the use of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitEntry {
    /// Valid blocks, 0 to 512.
    pub valid_blocks: u32,
    /// The log that the segment was opened for: hot, warm, cold data (0 to 2), hot, warm, cold
    /// nodes (3 to 5).
    pub log: u8,
    /// A bit for each block, most significant bit first.
    pub valid_map: [u8; 64],
    /// Mean of the times (seconds mounted) at which its blocks were written or became invalid.
    pub mtime_s: u64,
}

impl SitEntry {
    /// Block `offset` of the segment is valid.
    pub fn is_valid(&self, offset: u32) -> bool {
        msb_first(&self.valid_map, offset as usize)
    }

    /// Checks that the count is that of the map, and the log one of the six.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn check(&self, segno: SegNo) -> Result<(), Corrupt> {
        let place = Place::Sit(segno.0);
        let counted: u32 = self.valid_map.iter().map(|byte| byte.count_ones()).sum();
        Corrupt::check_equal(place, "valid blocks", self.valid_blocks, counted)?;
        Corrupt::check_range(place, "type", self.log, (0, 5))
    }
}

impl RawSitEntry {
    pub(super) fn decode(&self) -> SitEntry {
        let vblocks = self.vblocks.get();
        SitEntry {
            valid_blocks: u32::from(vblocks & 0x3FF),
            log: (vblocks >> 10) as u8,
            valid_map: self.valid_map,
            mtime_s: self.mtime.get(),
        }
    }

    pub(super) fn encode(entry: &SitEntry) -> Self {
        Self {
            vblocks: U16::new(u16::from(entry.log) << 10 | entry.valid_blocks as u16),
            valid_map: entry.valid_map,
            mtime: U64::new(entry.mtime_s),
        }
    }
}

/// The entry of `segno` in `block`, the block of the SIT that covers it.
pub fn sit_entry(block: &BlockBytes, segno: SegNo) -> SitEntry {
    let block: &RawSitBlock = transmute_ref!(block);
    block.entries[(segno.0 % SIT_ENTRIES_IN_BLOCK) as usize].decode()
}

/// Sets the entry of `segno` in `block`, the block of the SIT that covers it. The count must be at
/// most 512, the log at most 5 (see [`SitEntry::check`]).
pub fn set_sit_entry(block: &mut BlockBytes, segno: SegNo, entry: &SitEntry) {
    let block: &mut RawSitBlock = transmute_mut!(block);
    block.entries[(segno.0 % SIT_ENTRIES_IN_BLOCK) as usize] = RawSitEntry::encode(entry);
}

/// Address of the current copy of the SIT block that covers `segno`. The copies are the two halves
/// of the area. `segno` must lie in the main area.
pub fn sit_block_address(superblock: &Superblock, bitmap: &[u8], segno: SegNo) -> BlockAddr {
    copy_address(superblock, segno, current_is_second(bitmap, segno))
}

/// Address of the other copy, to which the block is written next.
pub fn sit_block_other(superblock: &Superblock, bitmap: &[u8], segno: SegNo) -> BlockAddr {
    copy_address(superblock, segno, !current_is_second(bitmap, segno))
}

fn current_is_second(bitmap: &[u8], segno: SegNo) -> bool {
    msb_first(bitmap, (segno.0 / SIT_ENTRIES_IN_BLOCK) as usize)
}

fn copy_address(superblock: &Superblock, segno: SegNo, second: bool) -> BlockAddr {
    let half = superblock.segment_count_sit / 2 * BLOCKS_IN_SEGMENT;
    let second = if second { half } else { 0 };
    superblock.sit_start.plus((segno.0 / SIT_ENTRIES_IN_BLOCK + second).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_set_is_read_back() {
        let mut valid_map = [0; 64];
        valid_map[1] = 0x80;
        let entry = SitEntry { valid_blocks: 1, log: 4, valid_map, mtime_s: 99 };
        let mut block = [0; 4096];
        set_sit_entry(&mut block, SegNo(56), &entry);
        assert_eq!(sit_entry(&block, SegNo(1)), entry);
        assert_eq!(block[74..78], [1, 0x10, 0, 0x80]);
        assert_eq!(block.iter().filter(|&&byte| byte != 0).count(), 4);
        entry.check(SegNo(1)).unwrap();
        assert!(entry.is_valid(8));
    }
}
