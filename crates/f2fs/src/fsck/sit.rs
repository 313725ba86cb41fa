//! The SIT against what was reached.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BLOCKS_IN_SEGMENT, FIRST_NODE_LOG, SegNo, msb_first};

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_sit(&mut self) -> Result<(), Error> {
        for segno in (0..self.volume.superblock.segment_count_main).map(SegNo) {
            self.check_segment(segno)?;
        }
        Ok(())
    }

    fn check_segment(&mut self, segno: SegNo) -> Result<(), Error> {
        let entry = self.volume.stored_segment(segno)?;
        let counted = entry.valid_map.iter().map(|byte| byte.count_ones()).sum();
        if entry.valid_blocks != counted {
            self.found(Finding::SitCount { segno, found: entry.valid_blocks, expected: counted });
        }
        if entry.log > 5 {
            self.found(Finding::SitType { segno, found: entry.log });
        }
        if self.volume.sit_journal.contains_key(&segno)
            && self.volume.table_segment(segno)?.check(segno).is_err()
        {
            self.found(Finding::SitOverridden { segno });
        }
        let Some(claimed) = self.claims.segment(segno) else {
            self.compare_maps(segno, &entry.valid_map, &[0; 64]);
            let is_free = self.is_usable(segno) && !self.logs.writes_to(segno);
            self.report.counts.free_segments += u64::from(is_free);
            return Ok(());
        };
        let (map, nodes, data) = (claimed.map, claimed.nodes, claimed.data);
        self.compare_maps(segno, &entry.valid_map, &map);
        let is_node = entry.log >= FIRST_NODE_LOG;
        if entry.log <= 5 && is_node != (nodes > 0) {
            let what = if data > 0 { "data" } else { "nodes" };
            self.found(Finding::SitClass { segno, found: entry.log, what });
        }
        Ok(())
    }

    fn compare_maps(&mut self, segno: SegNo, stored: &[u8; 64], reached: &[u8; 64]) {
        if stored == reached {
            return;
        }
        let start = self.volume.block_in_segment(segno, 0);
        let differing = |more: &[u8; 64], less: &[u8; 64]| {
            let mut offsets = (0..BLOCKS_IN_SEGMENT)
                .filter(|&n| msb_first(more, n as usize) && !msb_first(less, n as usize));
            let first = offsets.next()?;
            Some((start.plus(first.into()), 1 + offsets.count() as u32))
        };
        if let Some((first, count)) = differing(reached, stored) {
            self.found(Finding::BlocksFree { segno, first, count });
        }
        if let Some((first, count)) = differing(stored, reached) {
            self.found(Finding::BlocksLeaked { segno, first, count });
        }
    }
}
