//! The SIT at a checkpoint, and the summaries in its pack.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_block::{BlockBytes, Scheduler};

use super::super::super::io::{Channel, Io, WriteClass};
use super::super::{Draft, Pack};
use super::SegmentSpace;
use super::logs::CurrentSegment;
use crate::error::Error;
use crate::format::{
    BLOCK, BLOCKS_IN_SEGMENT, Bitmaps, Checkpoint, CheckpointFlags, NAT_JOURNAL_ENTRIES, NatEntry,
    Nid, SIT_ENTRIES_IN_BLOCK, SIT_JOURNAL_ENTRIES, SegNo, SitEntry, Summary, SummaryKind,
    Superblock, compact_block_count, compact_summaries, flip_msb_first, put_nat_journal,
    put_sit_journal, put_written_kib, set_sit_entry, sit_block_other, summary_block,
};

/// Entries of NAT and SIT that ride in the checkpoint itself.
struct Journals<'d> {
    nat: &'d [(Nid, NatEntry)],
    sit: Vec<(SegNo, SitEntry)>,
}

impl SegmentSpace {
    /// Entries that the NAT journal of the next checkpoint has room for.
    pub(crate) fn nat_journal_entries(&self, for_next_mount: bool) -> usize {
        if for_next_mount { 0 } else { NAT_JOURNAL_ENTRIES }
    }

    /// Writes the SIT and the SSA, and builds the pack. The tail is left out: it is the first block
    /// again.
    pub(crate) fn build_pack<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        superblock: &Superblock,
        mut draft: Draft<'_>,
    ) -> Result<Pack, Error> {
        self.write_waiting_summaries(io)?;
        let sit_journal = self.flush_sit(io, superblock, &mut draft.bitmaps)?;
        let sit = sit_journal.iter();
        let journals = Journals {
            nat: &draft.nat_journal,
            sit: sit.map(|&segno| (segno, self.segments.get(segno).entry())).collect(),
        };
        let (data, compact) = self.data_summaries(&journals);
        let written = io.written().total() * (BLOCK as u64 / 1024);
        let nodes = if draft.for_next_mount { self.node_summaries(written) } else { Vec::new() };
        let summary_start = 1 + superblock.cp_payload + draft.orphans.len() as u32;
        let flags = draft.checkpoint.flags;
        let mut next = Checkpoint {
            logs: std::array::from_fn(|log| self.logs[log].position()),
            free_segments: self.segments.free_after_checkpoint()
                + self.staging.segments()
                + self.worn_segments(),
            summary_start,
            total_blocks: summary_start + (data.len() + nodes.len()) as u32 + 1,
            flags: if compact { flags.with(CheckpointFlags::COMPACT) } else { flags },
            ..draft.checkpoint
        };
        let (mut blocks, checksum) = next.encode(&draft.bitmaps, superblock, draft.head);
        next.checksum = checksum;
        blocks.extend(draft.orphans.into_iter().chain(data).chain(nodes));
        Ok(Pack { checkpoint: next, blocks, bitmaps: draft.bitmaps, sit_journal })
    }

    /// Writes changed blocks of the SIT to their other copies; the segments for the journal are
    /// returned.
    fn flush_sit<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        superblock: &Superblock,
        bitmaps: &mut Bitmaps,
    ) -> Result<BTreeSet<SegNo>, Error> {
        let dirty = self.segments.dirty().into_iter();
        let changed: BTreeSet<SegNo> = dirty.chain(self.sit_journal.iter().copied()).collect();
        let (journal, blocks) = plan_sit_flush(changed);
        for block in blocks {
            self.write_sit_block(io, superblock, block, &mut bitmaps.sit)?;
        }
        Ok(journal)
    }

    fn write_sit_block<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        superblock: &Superblock,
        number: u32,
        bitmap: &mut [u8],
    ) -> Result<(), Error> {
        let first = number * SIT_ENTRIES_IN_BLOCK;
        let mut block = [0; BLOCK];
        for segno in (first..(first + SIT_ENTRIES_IN_BLOCK).min(self.segments.len())).map(SegNo) {
            set_sit_entry(&mut block, segno, &self.segments.get(segno).entry());
        }
        let address = sit_block_other(superblock, bitmap, SegNo(first));
        flip_msb_first(bitmap, number as usize);
        io.write_bytes(Channel::META, WriteClass::Sit, address, Arc::new(block))?;
        Ok(())
    }

    /// The summaries of the data logs with the journals, compacted if they fit.
    fn data_summaries(&self, journals: &Journals<'_>) -> (Vec<BlockBytes>, bool) {
        let full = BLOCKS_IN_SEGMENT as usize;
        let count = |log: &CurrentSegment| if log.in_holes { full } else { log.next as usize };
        let counts = [count(&self.logs[0]), count(&self.logs[1]), count(&self.logs[2])];
        if compact_block_count(counts).is_some() {
            let log = |log: usize| -> (&[Summary; 512], usize) {
                (&self.logs[log].summaries, counts[log])
            };
            return (
                compact_summaries([log(0), log(1), log(2)], journals.nat, &journals.sit),
                true,
            );
        }
        let block = |log: usize| summary_block(&self.logs[log].summaries, SummaryKind::Data);
        let mut blocks = vec![block(0), block(1), block(2)];
        put_nat_journal(&mut blocks[0], journals.nat);
        put_sit_journal(&mut blocks[2], &journals.sit);
        (blocks, false)
    }

    /// The summaries of the node logs, and with them the KiB ever written: `kib` by this mount.
    fn node_summaries(&self, kib: u64) -> Vec<BlockBytes> {
        let block = |log: usize| summary_block(&self.logs[log].summaries, SummaryKind::Node);
        let mut blocks = vec![block(3), block(4), block(5)];
        put_written_kib(&mut blocks[0], self.written_kib.saturating_add(kib));
        blocks
    }
}

/// The changed entries that stay in the journal, and the blocks of the SIT to write as a whole: if
/// not all fit into the journal, small groups (entries of the same block) go there first.
fn plan_sit_flush(changed: BTreeSet<SegNo>) -> (BTreeSet<SegNo>, Vec<u32>) {
    if changed.len() <= SIT_JOURNAL_ENTRIES {
        return (changed, Vec::new());
    }
    let mut groups: Vec<(u32, Vec<SegNo>)> = Vec::new();
    for segno in changed {
        let block = segno.0 / SIT_ENTRIES_IN_BLOCK;
        match groups.last_mut() {
            Some((last, group)) if *last == block => group.push(segno),
            _ => groups.push((block, vec![segno])),
        }
    }
    groups.sort_by_key(|(block, group)| (group.len(), *block));
    let (mut journal, mut blocks) = (BTreeSet::new(), Vec::new());
    for (block, group) in groups {
        if journal.len() + group.len() <= SIT_JOURNAL_ENTRIES {
            journal.extend(group);
        } else {
            blocks.push(block);
        }
    }
    blocks.sort_unstable();
    (journal, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(blocks: &[(u32, u32)]) -> BTreeSet<SegNo> {
        let of_block = |&(block, count): &(u32, u32)| {
            (0..count).map(move |entry| SegNo(block * SIT_ENTRIES_IN_BLOCK + entry))
        };
        blocks.iter().flat_map(of_block).collect()
    }

    #[test]
    fn all_changes_stay_in_the_journal_while_they_fit() {
        let few = segments(&[(0, 3), (7, 3)]);
        assert_eq!(plan_sit_flush(few.clone()), (few, Vec::new()));
    }

    #[test]
    fn small_groups_stay_in_the_journal() {
        let (journal, blocks) = plan_sit_flush(segments(&[(0, 40), (3, 2), (4, 6), (9, 3)]));
        assert_eq!((journal, blocks), (segments(&[(3, 2), (9, 3)]), vec![0, 4]));
    }
}
