//! The logs' positions against what was reached, and the journal in the head of the pack.

use std::ops::Range;

use dovetail_block::{AREA_BLOCKS, BlockDevice};

use crate::error::Error;
use crate::format::{
    BlockAddr, FIRST_NODE_LOG, IPLFS_JOURNAL_ENTRIES, Nid, area_start, iplfs_journal_count,
};
use crate::fsck::{Area, Checker, Finding};
use crate::volume::open::pack_start;

impl<D: BlockDevice> Checker<'_, D> {
    /// The NAT's journal; that the positions lie in their areas was checked when the pack was read.
    pub(in super::super) fn check_head(&mut self) -> Result<(), Error> {
        let start = pack_start(&self.volume.superblock, self.volume.checkpoint.pack);
        let found = iplfs_journal_count(&*self.volume.blocks.metadata(start)?).into();
        let max = IPLFS_JOURNAL_ENTRIES as u32;
        if found > max {
            self.found(Finding::JournalCount { what: "NAT", found, max });
        }
        self.check_journal_entries();
        Ok(())
    }

    /// A log of the right class has written the block.
    pub(in super::super) fn check_iplfs_log(
        &mut self,
        address: BlockAddr,
        nid: Nid,
        node: bool,
    ) -> bool {
        let index = (address.0 / AREA_BLOCKS - 1) as usize;
        let log = index as u8;
        if address >= self.volume.checkpoint.positions[index] {
            self.found(Finding::LogBeyond { address, nid, log });
            return false;
        }
        if node != (index >= usize::from(FIRST_NODE_LOG)) {
            let what = if node { "a node" } else { "data" };
            self.found(Finding::LogClass { address, nid, log, what });
        }
        true
    }

    /// The addresses that a log has written.
    pub(super) fn written_by(&self, log: usize) -> Range<u64> {
        area_start(log).0..self.volume.checkpoint.positions[log].0
    }

    /// The blocks in a range of addresses that were reached, in order.
    pub(super) fn live_within(&self, addresses: Range<u64>) -> impl Iterator<Item = u64> {
        let start = self.volume.superblock.main_start.0;
        let indices = addresses.start.saturating_sub(start)..addresses.end.saturating_sub(start);
        self.claims.within(indices).map(move |index| index + start)
    }

    /// The active region of each log: from its first live block to its last.
    pub(super) fn measure_areas(&mut self) {
        for log in 0..6 {
            let written = self.written_by(log);
            let mut area =
                Area { log: log as u8, position: written.end - written.start, ..Area::default() };
            for block in self.live_within(written.clone()) {
                let offset = block - written.start;
                area.active = Some((area.active.map_or(offset, |(first, _)| first), offset));
                area.live += 1;
            }
            self.report.counts.areas.push(area);
        }
    }
}
