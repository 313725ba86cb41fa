//! The checkpoint pack that makes a repair count.

use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::{Repair, RepairError};
use crate::format::{
    BLOCKS_IN_SEGMENT, Bitmaps, BlockAddr, Checkpoint, CheckpointFlags, Footer, SegNo, Summary,
    SummaryKind, orphan_blocks, put_nat_journal, set_summary_kind, summary_block,
};
use crate::fsck::checkpoints::KNOWN_FLAGS;
use crate::fsck::logs::LogSummary;
use crate::volume::open::pack_start;

/// Flags that a repair does not keep up, and those that are computed.
const DROPPED: CheckpointFlags = CheckpointFlags::NAT_BITS
    .with(CheckpointFlags::TRIMMED)
    .with(CheckpointFlags::NOCRC_RECOVERY)
    .with(CheckpointFlags::ERROR)
    .with(CheckpointFlags::FSCK)
    .with(CheckpointFlags::COMPACT)
    .with(CheckpointFlags::ORPHAN);

impl<D: BlockDevice> Repair<'_, D> {
    /// Writes tables, summaries and the pack that is not in use; its tail last, after all else is
    /// safe.
    pub(super) fn commit(&mut self) -> Result<(), RepairError> {
        let bitmaps = self.write_tables()?;
        self.write_summaries()?;
        let pack = self.build_pack(&bitmaps)?;
        let old = self.checker.volume.checkpoint.pack;
        let start = pack_start(&self.checker.volume.superblock, 3 - old).0;
        let blocks = &mut self.checker.volume.blocks;
        let Some((tail, rest)) = pack.split_last() else { return Ok(()) };
        for (address, block) in (start..).zip(rest) {
            blocks.write(BlockAddr(address), Arc::clone(block), false)?;
        }
        blocks.flush()?;
        blocks.write(BlockAddr(start + rest.len() as u64), Arc::clone(tail), true)?;
        Ok(blocks.flush()?)
    }

    /// Head, payload, orphans, data summaries, node summaries if there were some, tail.
    fn build_pack(&mut self, bitmaps: &Bitmaps) -> Result<Vec<Arc<BlockBytes>>, RepairError> {
        let orphans = orphan_blocks(&self.checker.orphans);
        let summaries = self.log_summaries()?;
        let mut next = self.next_checkpoint(!orphans.is_empty());
        next.summary_start = 1 + self.checker.volume.superblock.cp_payload + orphans.len() as u32;
        next.total_blocks = next.summary_start + summaries.len() as u32 + 1;
        let volume = &mut self.checker.volume;
        let head =
            volume.blocks.metadata(pack_start(&volume.superblock, volume.checkpoint.pack))?;
        let (blocks, _) = next.encode(bitmaps, &volume.superblock, &head);
        let tail = blocks[0];
        let pack = blocks.into_iter().chain(orphans).chain(summaries).chain([tail]);
        Ok(pack.map(Arc::new).collect())
    }

    fn next_checkpoint(&self, orphans: bool) -> Checkpoint {
        let (checkpoint, counts) = (&self.checker.volume.checkpoint, &self.checker.report.counts);
        let flags = CheckpointFlags(checkpoint.flags.0 & KNOWN_FLAGS).without(DROPPED);
        let next_nid = checkpoint.next_free_nid;
        Checkpoint {
            version: checkpoint.version.wrapping_add(1),
            valid_block_count: counts.blocks,
            free_segments: counts.free_segments as u32,
            flags: if orphans { flags.with(CheckpointFlags::ORPHAN) } else { flags },
            valid_nodes: counts.nodes as u32,
            valid_inodes: counts.inodes as u32,
            next_free_nid: if next_nid < self.checker.volume.superblock.max_nid() {
                next_nid
            } else {
                3
            },
            ..checkpoint.clone()
        }
    }

    /// Data summaries, with empty journals, and node summaries if the pack has them.
    fn log_summaries(&mut self) -> Result<Vec<BlockBytes>, RepairError> {
        let checkpoint = self.checker.volume.checkpoint.clone();
        let logs = if checkpoint.has_node_summaries() { 6 } else { 3 };
        let mut summaries = Vec::new();
        for log in 0..logs {
            let segno = checkpoint.logs[log].segment;
            let stored = match self.checker.logs.of_segment(segno) {
                Some(LogSummary::Stored(block, _)) => Arc::clone(block),
                _ => Arc::new(self.summary_from_footers(segno)?),
            };
            let mut block = *stored;
            if log < 3 {
                put_nat_journal(&mut block, &[]); // an empty SIT journal is the same
            }
            set_summary_kind(
                &mut block,
                if log < 3 { SummaryKind::Data } else { SummaryKind::Node },
            );
            summaries.push(block);
        }
        Ok(summaries)
    }

    /// Builds the summary of a segment from the footers of its nodes.
    fn summary_from_footers(&mut self, segno: SegNo) -> Result<BlockBytes, RepairError> {
        let start = self.checker.volume.block_in_segment(segno, 0);
        let mut entries = [Summary::default(); 512];
        for (offset, entry) in (0..BLOCKS_IN_SEGMENT).zip(&mut entries) {
            let nid =
                Footer::parse(&*self.checker.volume.blocks.metadata(start.plus(offset.into()))?)
                    .nid;
            *entry = Summary { nid, version: 0, offset: 0 };
        }
        Ok(summary_block(&entries, SummaryKind::Node))
    }
}
