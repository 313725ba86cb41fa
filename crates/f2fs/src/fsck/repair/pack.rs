//! The checkpoint pack that makes a repair count.

use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::{Repair, RepairError};
use crate::format::{
    BLOCK, BLOCKS_IN_SEGMENT, Bitmaps, BlockAddr, CRC_SEED, CheckpointFlags, Footer, Nid, crc32, u32_at,
};
use crate::fsck::logs::LogSummary;
use crate::fsck::orphans::ENTRIES;
use crate::volume::open::pack_start;

/// Flags that a repair does not keep up: NAT_BITS, TRIMMED, NOCRC_RECOVERY, ERROR and FSCK; and those that are computed.
const DROPPED: u32 =
    0x80 | 0x100 | 0x200 | 0x8 | 0x10 | CheckpointFlags::COMPACT.0 | CheckpointFlags::ORPHAN.0;
/// The flags of Linux 6.12.
const KNOWN: u32 = 0x7FFF;
/// Where the journal stands in a summary block, and its size.
const JOURNAL: std::ops::Range<usize> = 3584..4091;
/// Where the version bitmaps begin.
const BITMAPS: usize = 192;

impl<D: BlockDevice> Repair<'_, D> {
    /// Writes tables, summaries and the pack that is not in use; its tail last, after all else is safe.
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
        blocks.write(BlockAddr(start + rest.len() as u32), Arc::clone(tail), true)?;
        Ok(blocks.flush()?)
    }

    /// Head, payload, orphans, data summaries, node summaries if there were some, tail.
    fn build_pack(&mut self, bitmaps: &Bitmaps) -> Result<Vec<Arc<BlockBytes>>, RepairError> {
        let mut head = self.head_and_payload()?;
        put_bitmaps(&mut head, bitmaps, &self.checker.volume);
        let payload = head.len() / BLOCK - 1;
        let orphans = self.orphan_blocks();
        let summaries = self.log_summaries()?;
        let start = (1 + payload + orphans.len()) as u32;
        let total = start + summaries.len() as u32 + 1;
        self.put_counts(&mut head, start, total, !orphans.is_empty());
        let crc_at = u32_at(&head, 164) as usize;
        let crc = crc32(crc32(CRC_SEED, &head[..crc_at]), &head[crc_at + 4..BLOCK]);
        head[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
        let mut pack: Vec<_> = head.chunks_exact(BLOCK).map(block_of).collect();
        let tail = Arc::clone(&pack[0]);
        pack.extend(orphans);
        pack.extend(summaries);
        pack.push(tail);
        Ok(pack)
    }

    fn head_and_payload(&mut self) -> Result<Vec<u8>, RepairError> {
        let volume = &mut self.checker.volume;
        let mut head = vec![0; (1 + volume.superblock.cp_payload as usize) * BLOCK];
        let start = pack_start(&volume.superblock, volume.checkpoint.pack);
        volume.blocks.data(start, &mut head)?;
        Ok(head)
    }

    fn put_counts(&self, head: &mut [u8], start: u32, total: u32, orphans: bool) {
        let (checkpoint, counts) = (&self.checker.volume.checkpoint, &self.checker.report.counts);
        let mut flags = checkpoint.flags.0 & KNOWN & !DROPPED;
        if orphans {
            flags |= CheckpointFlags::ORPHAN.0;
        }
        let next = checkpoint.next_free_nid;
        let next = if next < self.checker.volume.superblock.max_nid() { next } else { 3 };
        let mut put = |at: usize, value: u32| head[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(32, counts.free_segments as u32);
        put(132, flags);
        put(136, total);
        put(140, start);
        put(144, counts.nodes as u32);
        put(148, counts.inodes as u32);
        put(152, next);
        head[..8].copy_from_slice(&(checkpoint.version + 1).to_le_bytes());
        head[16..24].copy_from_slice(&counts.blocks.to_le_bytes());
    }

    fn orphan_blocks(&self) -> Vec<Arc<BlockBytes>> {
        let chunks = self.checker.orphans.chunks(ENTRIES as usize);
        let count = chunks.len() as u16;
        let block = |(index, inos): (usize, &[Nid])| {
            let mut block = [0; BLOCK];
            for (entry, ino) in block.chunks_exact_mut(4).zip(inos) {
                entry.copy_from_slice(&ino.0.to_le_bytes());
            }
            block[4084..4086].copy_from_slice(&(index as u16 + 1).to_le_bytes());
            block[4086..4088].copy_from_slice(&count.to_le_bytes());
            block[4088..4092].copy_from_slice(&(inos.len() as u32).to_le_bytes());
            Arc::new(block)
        };
        chunks.enumerate().map(block).collect()
    }

    /// Data summaries, with empty journals, and node summaries if the pack has them.
    fn log_summaries(&mut self) -> Result<Vec<Arc<BlockBytes>>, RepairError> {
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
                block[JOURNAL].fill(0);
            }
            block[4091] = u8::from(log >= 3);
            summaries.push(Arc::new(block));
        }
        Ok(summaries)
    }

    /// What the nodes of a segment say themselves.
    fn summary_from_footers(&mut self, segno: crate::format::SegNo) -> Result<BlockBytes, RepairError> {
        let start = self.checker.volume.superblock.main_start.0 + segno.0 * BLOCKS_IN_SEGMENT;
        let mut summary = [0; BLOCK];
        for offset in 0..BLOCKS_IN_SEGMENT {
            let nid = Footer::parse(&*self.checker.volume.blocks.metadata(BlockAddr(start + offset))?).nid;
            crate::fsck::summary::Summary { nid, version: 0, index: 0 }.write(&mut summary, offset);
        }
        Ok(summary)
    }
}

/// The places are those from which [`Bitmaps::parse`] reads.
fn put_bitmaps<D>(head: &mut [u8], bitmaps: &Bitmaps, volume: &crate::volume::Volume<D>) {
    let (sit, nat) = if volume.checkpoint.flags.has(CheckpointFlags::LARGE_NAT) {
        (BITMAPS + 4 + bitmaps.nat.len(), BITMAPS + 4)
    } else if volume.superblock.cp_payload > 0 {
        (BLOCK, BITMAPS)
    } else {
        (BITMAPS, BITMAPS + bitmaps.sit.len())
    };
    head[sit..sit + bitmaps.sit.len()].copy_from_slice(&bitmaps.sit);
    head[nat..nat + bitmaps.nat.len()].copy_from_slice(&bitmaps.nat);
}

fn block_of(bytes: &[u8]) -> Arc<BlockBytes> {
    let mut block = [0; BLOCK];
    block.copy_from_slice(bytes);
    Arc::new(block)
}
