//! SIT and NAT blocks with changes go to their other copies. The journals are emptied into them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::{Repair, RepairError};
use crate::format::{
    Bitmaps, BlockAddr, FIRST_NODE_LOG, NatEntry, Nid, SIT_ENTRIES_IN_BLOCK, SegNo, SitEntry,
    flip_msb_first, nat_block_address, nat_block_other, set_nat_entry, set_sit_entry,
    sit_block_address, sit_block_other, ssa_address,
};

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
            let is_free = right.valid_blocks == 0 && self.checker.is_usable(segno);
            free += u64::from(is_free && !self.checker.logs.writes_to(segno));
            if right != stored || self.checker.volume.sit_journal.contains_key(&segno) {
                blocks.entry(segno.0 / SIT_ENTRIES_IN_BLOCK).or_default().push((segno, right));
            }
        }
        self.checker.report.counts.free_segments = free;
        let superblock = self.checker.volume.superblock.clone();
        for (block, entries) in blocks {
            let first = SegNo(block * SIT_ENTRIES_IN_BLOCK);
            let from = sit_block_address(&superblock, &bitmaps.sit, first);
            let to = sit_block_other(&superblock, &bitmaps.sit, first);
            flip_msb_first(&mut bitmaps.sit, block as usize);
            let write = |bytes: &mut BlockBytes| {
                entries.iter().for_each(|(segno, entry)| set_sit_entry(bytes, *segno, entry));
            };
            self.rewrite(from, to, write)?;
        }
        Ok(())
    }

    /// Correct SIT entry of a segment: the blocks that were reached, and a type that fits them.
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
            blocks.entry(superblock.variant.nat_position(nid).0).or_default().push((nid, entry));
        }
        for (block, entries) in blocks {
            let first = superblock.variant.first_nid(block);
            let from = nat_block_address(&superblock, &bitmaps.nat, first);
            let to = nat_block_other(&superblock, &bitmaps.nat, first);
            flip_msb_first(&mut bitmaps.nat, block as usize);
            let write = |bytes: &mut BlockBytes| {
                entries.iter().for_each(|(nid, entry)| {
                    set_nat_entry(bytes, *nid, *entry, superblock.variant);
                });
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

    /// Writes the changed summaries of segments that no log writes to: in place, what they said was
    /// wrong or void.
    pub(super) fn write_summaries(&mut self) -> Result<(), RepairError> {
        for (segno, block) in std::mem::take(&mut self.summaries) {
            let address = ssa_address(&self.checker.volume.superblock, segno);
            self.checker.volume.blocks.write(address, Arc::new(*block), false)?;
        }
        Ok(())
    }
}
