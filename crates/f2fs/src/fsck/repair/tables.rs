//! SIT and NAT blocks with changes go to their other copies. The journals are emptied into them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::{Repair, RepairError};
use crate::format::{
    Bitmaps, BlockAddr, NAT_ENTRIES_IN_BLOCK, NatEntry, Nid, SIT_ENTRIES_IN_BLOCK, SegNo, SitEntry,
    nat_block_address, sit_block_address,
};

const SIT_ENTRY: usize = 74;
const NAT_ENTRY: usize = 9;
/// The first of the node logs.
const FIRST_NODE_LOG: u8 = 3;

impl<D: BlockDevice> Repair<'_, D> {
    /// Writes what changed, and returns the version bitmaps that make it count.
    pub(super) fn write_tables(&mut self) -> Result<Bitmaps, RepairError> {
        let mut bitmaps = self.checker.volume.bitmaps.clone();
        self.write_sit(&mut bitmaps)?;
        self.write_nat(&mut bitmaps)?;
        Ok(bitmaps)
    }

    fn write_sit(&mut self, bitmaps: &mut Bitmaps) -> Result<(), RepairError> {
        let mut blocks: BTreeMap<u32, Vec<(SegNo, SitEntry)>> = BTreeMap::new();
        let mut free = 0;
        for segno in (0..self.checker.volume.superblock.segment_count_main).map(SegNo) {
            let stored = self.checker.volume.stored_segment(segno)?;
            let right = self.right_segment(segno, &stored);
            free += u64::from(right.valid_blocks == 0 && !self.checker.logs.writes_to(segno));
            if right != stored || self.checker.volume.sit_journal.contains_key(&segno) {
                blocks.entry(segno.0 / SIT_ENTRIES_IN_BLOCK).or_default().push((segno, right));
            }
        }
        self.checker.report.counts.free_segments = free;
        let superblock = self.checker.volume.superblock.clone();
        for (block, entries) in blocks {
            let first = SegNo(block * SIT_ENTRIES_IN_BLOCK);
            let from = sit_block_address(&superblock, &bitmaps.sit, first);
            flip(&mut bitmaps.sit, block);
            let to = sit_block_address(&superblock, &bitmaps.sit, first);
            let write = |bytes: &mut BlockBytes| {
                for (segno, entry) in &entries {
                    put_sit(bytes, (segno.0 % SIT_ENTRIES_IN_BLOCK) as usize, entry);
                }
            };
            self.rewrite(from, to, write)?;
        }
        Ok(())
    }

    /// What the SIT should say of a segment: the blocks that were reached, and a type that fits them.
    fn right_segment(&self, segno: SegNo, stored: &SitEntry) -> SitEntry {
        let claimed = self.checker.claims.segment(segno);
        let valid_map = claimed.map_or([0; 64], |claimed| claimed.map);
        let valid_blocks = valid_map.iter().map(|byte| byte.count_ones()).sum();
        let logs = &self.checker.volume.checkpoint.logs;
        let mut log = if stored.log > 5 { 0 } else { stored.log };
        if let Some(current) = logs.iter().position(|log| log.segment == segno) {
            log = current as u8;
        } else if let Some(claimed) = claimed {
            let base = if claimed.nodes > 0 { FIRST_NODE_LOG } else { 0 };
            log = base + log % FIRST_NODE_LOG;
        }
        SitEntry { valid_blocks, log, valid_map, mtime_s: stored.mtime_s }
    }

    fn write_nat(&mut self, bitmaps: &mut Bitmaps) -> Result<(), RepairError> {
        let superblock = self.checker.volume.superblock.clone();
        let mut changes = self.checker.volume.nat_journal.clone();
        changes.retain(|nid, _| nid.0 < superblock.max_nid());
        changes.extend(std::mem::take(&mut self.nat));
        let mut blocks: BTreeMap<u32, Vec<(Nid, NatEntry)>> = BTreeMap::new();
        for (nid, entry) in changes {
            blocks.entry(nid.0 / NAT_ENTRIES_IN_BLOCK).or_default().push((nid, entry));
        }
        for (block, entries) in blocks {
            let first = Nid(block * NAT_ENTRIES_IN_BLOCK);
            let from = nat_block_address(&superblock, &bitmaps.nat, first);
            flip(&mut bitmaps.nat, block);
            let to = nat_block_address(&superblock, &bitmaps.nat, first);
            let write = |bytes: &mut BlockBytes| {
                for (nid, entry) in &entries {
                    put_nat(bytes, (nid.0 % NAT_ENTRIES_IN_BLOCK) as usize, *entry);
                }
            };
            self.rewrite(from, to, write)?;
        }
        Ok(())
    }

    fn rewrite(
        &mut self,
        from: BlockAddr,
        to: BlockAddr,
        edit: impl FnOnce(&mut BlockBytes),
    ) -> Result<(), RepairError> {
        let blocks = &mut self.checker.volume.blocks;
        let mut block = *blocks.metadata(from)?;
        edit(&mut block);
        Ok(blocks.write(to, Arc::new(block), false)?)
    }

    /// Writes the changed summaries of segments that no log writes to: in place, what they said was wrong or void.
    pub(super) fn write_summaries(&mut self) -> Result<(), RepairError> {
        let start = self.checker.volume.superblock.ssa_start.0;
        for (segno, block) in std::mem::take(&mut self.summaries) {
            self.checker.volume.blocks.write(BlockAddr(start + segno.0), Arc::new(*block), false)?;
        }
        Ok(())
    }
}

/// Flips bit `n`, most significant bit first: the other copy counts.
fn flip(bitmap: &mut [u8], n: u32) {
    if let Some(byte) = bitmap.get_mut((n / 8) as usize) {
        *byte ^= 0x80 >> (n % 8);
    }
}

fn put_sit(block: &mut BlockBytes, index: usize, entry: &SitEntry) {
    let bytes = &mut block[index * SIT_ENTRY..][..SIT_ENTRY];
    let vblocks = u16::from(entry.log) << 10 | entry.valid_blocks as u16;
    bytes[..2].copy_from_slice(&vblocks.to_le_bytes());
    bytes[2..66].copy_from_slice(&entry.valid_map);
    bytes[66..].copy_from_slice(&entry.mtime_s.to_le_bytes());
}

fn put_nat(block: &mut BlockBytes, index: usize, entry: NatEntry) {
    let bytes = &mut block[index * NAT_ENTRY..][..NAT_ENTRY];
    bytes[0] = entry.version;
    bytes[1..5].copy_from_slice(&entry.ino.0.to_le_bytes());
    bytes[5..].copy_from_slice(&entry.address.0.to_le_bytes());
}
