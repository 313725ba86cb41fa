//! Checkpoints: the state in memory becomes the state on the device, all of it or nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_block::{BlockBytes, Scheduler};

use super::endless::Endless;
use super::io::{Cause, Channel};
use super::nat::FlushPlan;
use super::policy::Log;
use super::{F2fs, SinceCheckpoint, Unflushed};
use crate::error::Error;
use crate::format::{
    BLOCK, Bitmaps, Checkpoint, CheckpointFlags, ENDLESS_JOURNAL_ENTRIES, LogPosition, NAT_JOURNAL_ENTRIES,
    NatEntry, Nid, SIT_ENTRIES_IN_BLOCK, SIT_JOURNAL_ENTRIES, SegNo, SitEntry, Summary, SummaryKind,
    compact_block_count, compact_summaries, flip_msb_first, nat_block_other, orphan_blocks, put_nat_journal,
    put_sit_journal, put_written_kib, set_nat_entry, set_sit_entry, sit_block_other, summary_block,
};
use crate::volume::open::pack_start;

/// Why a checkpoint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The volume goes on being used.
    Sync,
    /// The volume is unmounted: the next mount finds all summaries and an empty NAT journal.
    Unmount,
    /// As for an unmount, and all free space was discarded.
    Trimmed,
}

/// The next checkpoint, and the blocks of its pack; the tail left out, which is the first block again.
pub(super) struct Pack {
    pub(super) checkpoint: Checkpoint,
    pub(super) blocks: Vec<BlockBytes>,
    /// Segments whose entries its SIT journal has.
    pub(super) sit_journal: BTreeSet<SegNo>,
}

/// What of NAT and SIT rides in the checkpoint itself.
struct Journals {
    nat: Vec<(Nid, NatEntry)>,
    sit: Vec<(SegNo, SitEntry)>,
}

impl<D: Scheduler> F2fs<D> {
    /// Something changed since the last checkpoint.
    pub(super) fn is_dirty(&mut self) -> bool {
        self.nodes.dirty_count() > 0
            || self.nat.dirty_count() > 0
            || !self.segments.dirty().is_empty()
            || self.segments.prefree_count() > 0
            || !self.dirty_dents.is_empty()
            || self.endless.as_ref().is_some_and(Endless::has_fresh)
    }

    /// Writes a checkpoint if anything changed since the last one.
    pub(super) fn checkpoint_if_dirty(&mut self) -> Result<(), Error> {
        if self.is_dirty() { self.write_checkpoint(Reason::Sync) } else { Ok(()) }
    }

    /// Writes a checkpoint. When this returns, all but the content of files that was not yet written survives a power
    /// cut.
    pub(super) fn write_checkpoint(&mut self, reason: Reason) -> Result<(), Error> {
        self.write_checkpoint_with(reason, None)
    }

    /// Writes a checkpoint with which the updates of `file` show that wait for its fsync.
    pub(super) fn write_checkpoint_with(&mut self, reason: Reason, file: Option<Nid>) -> Result<(), Error> {
        self.check_writable()?;
        self.io.hold();
        let written = self.write_whole_checkpoint(reason, file);
        self.io.release();
        written
    }

    fn write_whole_checkpoint(&mut self, reason: Reason, file: Option<Nid>) -> Result<(), Error> {
        self.write_back_directories()?;
        self.write_dirty_nodes()?;
        Log::ALL.into_iter().try_for_each(|log| self.leave_full_segment(log))?;
        let mut bitmaps = self.bitmaps.clone();
        let plan = self.flush_nat(reason, &mut bitmaps.nat)?;
        let Pack { checkpoint, blocks: pack, sit_journal } = if self.endless.is_some() {
            self.build_endless_pack(reason, &bitmaps, &plan)?
        } else {
            self.build_segmented_pack(reason, &mut bitmaps, &plan)?
        };
        self.commit_pack(&checkpoint, &pack, file)?;
        self.end_batch()?;
        self.commit_space();
        self.bitmaps = bitmaps;
        self.sit_journal = sit_journal;
        self.nat.commit(&plan.journal);
        self.since = SinceCheckpoint::default();
        self.unflushed = Unflushed::default();
        self.checkpoint = checkpoint;
        self.head = Arc::new(pack[0]);
        self.events.checkpoints += 1;
        self.background.last_checkpoint = self.io.now();
        self.give_back_places()
    }

    /// What the checkpoint no longer refers to may be written again, or discarded.
    fn commit_space(&mut self) {
        if self.endless.is_some() {
            return self.commit_endless();
        }
        self.discard_after_checkpoint();
        self.segments.commit();
    }

    /// Writes changed pages of the NAT to their other copies; what stays for the journal is returned.
    fn flush_nat(&mut self, reason: Reason, bitmap: &mut [u8]) -> Result<FlushPlan, Error> {
        for page in self.nat.pages_to_flush() {
            self.load_nat_page(page)?;
        }
        let capacity = match reason {
            _ if self.endless.is_some() => ENDLESS_JOURNAL_ENTRIES,
            Reason::Sync => NAT_JOURNAL_ENTRIES,
            Reason::Unmount | Reason::Trimmed => 0,
        };
        let plan = self.nat.plan_flush(capacity);
        let variant = self.superblock.variant;
        for &page in &plan.pages {
            let first = variant.first_nid(page);
            let address = nat_block_other(&self.superblock, bitmap, first);
            let mut block = [0; BLOCK];
            for (offset, entry) in self.nat.page(page).into_iter().flatten().enumerate() {
                set_nat_entry(&mut block, Nid(offset as u32), *entry, variant);
            }
            flip_msb_first(bitmap, page as usize);
            self.io.write_bytes(Channel::META, Cause::Nat, address, Arc::new(block))?;
        }
        Ok(plan)
    }

    /// Writes changed blocks of the SIT to their other copies; the segments for the journal are returned.
    fn flush_sit(&mut self, bitmap: &mut [u8]) -> Result<BTreeSet<SegNo>, Error> {
        let changed: BTreeSet<SegNo> =
            self.segments.dirty().into_iter().chain(self.sit_journal.iter().copied()).collect();
        if changed.len() <= SIT_JOURNAL_ENTRIES {
            return Ok(changed);
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
        let mut journal = BTreeSet::new();
        let mut blocks = Vec::new();
        for (block, group) in groups {
            if journal.len() + group.len() <= SIT_JOURNAL_ENTRIES {
                journal.extend(group);
            } else {
                blocks.push(block);
            }
        }
        blocks.sort_unstable();
        for block in blocks {
            self.write_sit_block(block, bitmap)?;
        }
        Ok(journal)
    }

    fn write_sit_block(&mut self, number: u32, bitmap: &mut [u8]) -> Result<(), Error> {
        let first = number * SIT_ENTRIES_IN_BLOCK;
        let mut block = [0; BLOCK];
        for segno in (first..(first + SIT_ENTRIES_IN_BLOCK).min(self.segments.len())).map(SegNo) {
            set_sit_entry(&mut block, segno, &self.segments.get(segno).entry());
        }
        let address = sit_block_other(&self.superblock, bitmap, SegNo(first));
        flip_msb_first(bitmap, number as usize);
        self.io.write_bytes(Channel::META, Cause::Sit, address, Arc::new(block))?;
        Ok(())
    }

    /// The next checkpoint of a volume of segments and the blocks of its pack; its SIT is written.
    fn build_segmented_pack(
        &mut self,
        reason: Reason,
        bitmaps: &mut Bitmaps,
        plan: &FlushPlan,
    ) -> Result<Pack, Error> {
        let sit_journal = self.flush_sit(&mut bitmaps.sit)?;
        let sit = sit_journal.iter();
        let journals = Journals {
            nat: plan.journal.iter().map(|&nid| (nid, self.nat.get(nid))).collect(),
            sit: sit.map(|&segno| (segno, self.segments.get(segno).entry())).collect(),
        };
        let (checkpoint, blocks) = self.build_pack(reason, bitmaps, &journals);
        Ok(Pack { checkpoint, blocks, sit_journal })
    }

    /// The next checkpoint and the blocks of its pack, the tail left out: that is the first block again.
    fn build_pack(
        &mut self,
        reason: Reason,
        bitmaps: &Bitmaps,
        journals: &Journals,
    ) -> (Checkpoint, Vec<BlockBytes>) {
        let orphans: Vec<Nid> = self.orphans.iter().copied().collect();
        let orphans = orphan_blocks(&orphans);
        let (data, compact) = self.data_summaries(journals);
        let nodes = if reason == Reason::Sync { Vec::new() } else { self.node_summaries() };
        let payload = self.superblock.cp_payload;
        let summary_start = 1 + payload + orphans.len() as u32;
        let total = summary_start + (data.len() + nodes.len()) as u32 + 1;
        let mut next = self.next_checkpoint(reason, !orphans.is_empty(), compact);
        (next.summary_start, next.total_blocks) = (summary_start, total);
        let (mut pack, checksum) = next.encode(bitmaps, &self.superblock, &self.head);
        next.checksum = checksum;
        pack.extend(orphans.into_iter().chain(data).chain(nodes));
        (next, pack)
    }

    fn next_checkpoint(&mut self, reason: Reason, orphans: bool, compact: bool) -> Checkpoint {
        let logs = std::array::from_fn(|log| LogPosition {
            segment: self.logs[log].segno,
            offset: self.logs[log].next as u16,
            in_holes: self.logs[log].in_holes,
        });
        Checkpoint {
            pack: 3 - self.checkpoint.pack,
            version: self.checkpoint.version.wrapping_add(1),
            valid_block_count: self.counts.valid_blocks,
            free_segments: self.segments.free_after_checkpoint() + self.slots.segments(),
            logs,
            flags: next_flags(self.checkpoint.flags, reason, orphans, compact),
            valid_nodes: self.counts.valid_nodes,
            valid_inodes: self.counts.valid_inodes,
            next_free_nid: self.nat.next_free_hint(),
            elapsed_s: self.elapsed_s(),
            ..self.checkpoint.clone()
        }
    }

    /// The summaries of the data logs with the journals, compacted if they fit.
    fn data_summaries(&self, journals: &Journals) -> (Vec<BlockBytes>, bool) {
        let count = |log: &super::CurrentSegment| if log.in_holes { 512 } else { log.next as usize };
        let counts = [count(&self.logs[0]), count(&self.logs[1]), count(&self.logs[2])];
        if compact_block_count(counts).is_some() {
            let log = |log: usize| -> (&[Summary; 512], usize) { (&self.logs[log].summaries, counts[log]) };
            return (compact_summaries([log(0), log(1), log(2)], &journals.nat, &journals.sit), true);
        }
        let block = |log: usize| summary_block(&self.logs[log].summaries, SummaryKind::Data);
        let mut blocks = vec![block(0), block(1), block(2)];
        put_nat_journal(&mut blocks[0], &journals.nat);
        put_sit_journal(&mut blocks[2], &journals.sit);
        (blocks, false)
    }

    fn node_summaries(&self) -> Vec<BlockBytes> {
        let block = |log: usize| summary_block(&self.logs[log].summaries, SummaryKind::Node);
        let mut blocks = vec![block(3), block(4), block(5)];
        let written = self.io.written().total() * (BLOCK as u64 / 1024);
        put_written_kib(&mut blocks[0], self.written_kib.saturating_add(written));
        blocks
    }

    /// Writes the pack so that its last block, which makes it valid, follows when all else is durable.
    fn commit_pack(
        &mut self,
        checkpoint: &Checkpoint,
        pack: &[BlockBytes],
        file: Option<Nid>,
    ) -> Result<(), Error> {
        let start = pack_start(&self.superblock, checkpoint.pack);
        for (offset, block) in pack.iter().enumerate() {
            let address = start.plus(offset as u64);
            self.io.write_bytes(Channel::META, Cause::Checkpoint, address, Arc::new(*block))?;
        }
        self.io.flush()?;
        let tail = start.plus(u64::from(checkpoint.total_blocks) - 1);
        match file.filter(|file| self.io.waiting.count_of(*file) > 0) {
            Some(file) => self.commit_tail_with(file, tail, Arc::new(pack[0])),
            None => Ok(self.io.write_durable(tail, Arc::new(pack[0]))?),
        }
    }
}

pub(super) fn next_flags(
    old: CheckpointFlags,
    reason: Reason,
    orphans: bool,
    compact: bool,
) -> CheckpointFlags {
    let kept = CheckpointFlags::ERROR.0
        | CheckpointFlags::FSCK.0
        | CheckpointFlags::LARGE_NAT.0
        | CheckpointFlags::QUOTA_NEED_FSCK.0;
    let mut flags = CheckpointFlags(old.0 & kept).with(CheckpointFlags::CRC_RECOVERY);
    let mut set = |on: bool, flag| flags = if on { flags.with(flag) } else { flags };
    set(reason != Reason::Sync, CheckpointFlags::UMOUNT);
    set(reason == Reason::Trimmed, CheckpointFlags::TRIMMED);
    set(orphans, CheckpointFlags::ORPHAN);
    set(compact, CheckpointFlags::COMPACT);
    flags
}
