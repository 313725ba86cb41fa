//! Checkpoints: the state in memory becomes the state on the device, all of it or nothing.

use std::sync::Arc;

use dovetail_block::{Lba, RemapPair, Scheduler};

use super::F2fs;
use super::committed::Committed;
use super::io::{Channel, WriteClass};
use super::nat::FlushPlan;
use super::policy::Log;
use super::since::SinceCheckpoint;
use super::space::{Draft, Pack};
use crate::error::Error;
use crate::format::{
    BLOCK, Bitmaps, BlockAddr, Checkpoint, CheckpointFlags, Nid, flip_msb_first, nat_block_other,
    orphan_blocks, set_nat_entry,
};
use crate::volume::open::pack_start;

/// The reason for which a checkpoint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointReason {
    /// The volume goes on being used.
    Sync,
    /// The volume is unmounted: the next mount finds all summaries and an empty NAT journal.
    Unmount,
    /// As for an unmount, and all free space was discarded.
    Trimmed,
}

impl<D: Scheduler> F2fs<D> {
    /// Something changed since the last checkpoint.
    pub(super) fn is_dirty(&self) -> bool {
        self.nodes.dirty_count() > 0
            || self.nat.dirty_count() > 0
            || !self.dirty_dents.is_empty()
            || self.space.is_dirty()
    }

    /// Writes a checkpoint if anything changed since the last one.
    pub(super) fn checkpoint_if_dirty(&mut self) -> Result<(), Error> {
        if self.is_dirty() { self.write_checkpoint(CheckpointReason::Sync) } else { Ok(()) }
    }

    /// Writes a checkpoint. When this returns, all but the content of files that was not yet
    /// written survives a power cut.
    pub(super) fn write_checkpoint(&mut self, reason: CheckpointReason) -> Result<(), Error> {
        self.write_checkpoint_with(reason, None)
    }

    /// Writes a checkpoint with which the updates of `file` show that wait for its fsync.
    pub(super) fn write_checkpoint_with(
        &mut self,
        reason: CheckpointReason,
        file: Option<Nid>,
    ) -> Result<(), Error> {
        self.check_writable()?;
        self.io.hold();
        let written = self.write_whole_checkpoint(reason, file);
        self.io.release();
        written
    }

    fn write_whole_checkpoint(
        &mut self,
        reason: CheckpointReason,
        file: Option<Nid>,
    ) -> Result<(), Error> {
        self.write_back_directories()?;
        self.write_dirty_nodes()?;
        let staged = self.stage_tail(file)?;
        // behind what takes blocks: no checkpoint has a log that stands behind its segment
        Log::ALL.into_iter().try_for_each(|log| self.leave_full_segment(log))?;
        let mut bitmaps = self.committed.bitmaps().clone();
        let plan = self.flush_nat(reason, &mut bitmaps.nat)?;
        let mut pack = self.build_pack(reason, bitmaps, &plan)?;
        self.commit_pack(&pack, file, staged)?;
        // the checkpoint refers to the old block of a node that was changed since
        if self.nodes.dirty_count() == 0 {
            self.io.committed();
        }
        self.end_batch()?;
        if self.space.commit(&mut pack, self.discards()) {
            self.note_discards();
        }
        self.committed = Committed::of(pack);
        self.nat.commit(&plan.journal);
        self.since = SinceCheckpoint::default();
        self.updates.note_flush();
        self.events.checkpoints += 1;
        self.background.last_checkpoint = self.io.now();
        self.give_back_device_addresses()
    }

    /// Blocks that are given up are discarded.
    pub(super) fn discards(&self) -> bool {
        self.options.discard && self.io.device().info().capabilities.discard
    }

    /// Writes changed pages of the NAT to their other copies; what stays for the journal is
    /// returned.
    fn flush_nat(
        &mut self,
        reason: CheckpointReason,
        bitmap: &mut [u8],
    ) -> Result<FlushPlan, Error> {
        for page in self.nat.pages_to_flush() {
            self.load_nat_page(page)?;
        }
        let plan =
            self.nat.plan_flush(self.space.nat_journal_entries(reason != CheckpointReason::Sync));
        let variant = self.superblock.variant;
        for &page in &plan.pages {
            let first = variant.first_nid(page);
            let address = nat_block_other(&self.superblock, bitmap, first);
            let mut block = [0; BLOCK];
            for (offset, entry) in self.nat.page(page).into_iter().flatten().enumerate() {
                set_nat_entry(&mut block, Nid(offset as u32), *entry, variant);
            }
            flip_msb_first(bitmap, page as usize);
            self.io.write_bytes(Channel::META, WriteClass::Nat, address, Arc::new(block))?;
        }
        Ok(plan)
    }

    /// The next checkpoint and the blocks of its pack; the SIT and the SSA are written.
    fn build_pack(
        &mut self,
        reason: CheckpointReason,
        bitmaps: Bitmaps,
        plan: &FlushPlan,
    ) -> Result<Pack, Error> {
        self.make_discard_log_fit()?;
        let draft = Draft {
            checkpoint: self.next_checkpoint(reason),
            bitmaps,
            orphans: orphan_blocks(&self.orphans.list()),
            nat_journal: plan.journal.iter().map(|&nid| (nid, self.nat.get(nid))).collect(),
            for_next_mount: reason != CheckpointReason::Sync,
            head: self.committed.head(),
        };
        self.space.build_pack(&mut self.io, &self.superblock, draft)
    }

    /// The next checkpoint but for what the space adds.
    fn next_checkpoint(&self, reason: CheckpointReason) -> Checkpoint {
        Checkpoint {
            pack: 3 - self.committed.checkpoint().pack,
            version: self.committed.checkpoint().version.wrapping_add(1),
            valid_block_count: self.counts.valid_blocks,
            flags: next_flags(self.committed.checkpoint().flags, reason, !self.orphans.is_empty()),
            valid_nodes: self.counts.valid_nodes,
            valid_inodes: self.counts.valid_inodes,
            next_free_nid: self.nat.next_free_hint(),
            elapsed_s: self.elapsed_s(),
            ..self.committed.checkpoint().clone()
        }
    }

    /// Writes the pack so that its last block, which makes it valid, follows when all else is
    /// durable. If cleaning has `staged` a block for it, the device moves it from there, and with it
    /// what cleaning gave new addresses.
    fn commit_pack(
        &mut self,
        pack: &Pack,
        file: Option<Nid>,
        staged: Option<BlockAddr>,
    ) -> Result<(), Error> {
        let start = pack_start(&self.superblock, pack.checkpoint.pack);
        for (offset, block) in pack.blocks.iter().enumerate() {
            let address = start.plus(offset as u64);
            self.io.write_bytes(
                Channel::META,
                WriteClass::Checkpoint,
                address,
                Arc::new(*block),
            )?;
        }
        self.io.flush()?;
        let tail = start.plus(u64::from(pack.checkpoint.total_blocks) - 1);
        let head = Arc::new(pack.blocks[0]);
        if let Some(from) = staged {
            let tail = RemapPair { to: Lba(tail.0), from: Lba(from.0) };
            return self.commit_held_moves(file, tail, head);
        }
        match file.filter(|file| self.io.pending_remaps.count_of(*file) > 0) {
            Some(file) => self.commit_tail_with(file, tail, head),
            None => Ok(self.io.write_durable(tail, head)?),
        }
    }
}

fn next_flags(old: CheckpointFlags, reason: CheckpointReason, orphans: bool) -> CheckpointFlags {
    let kept = CheckpointFlags::ERROR.0
        | CheckpointFlags::FSCK.0
        | CheckpointFlags::LARGE_NAT.0
        | CheckpointFlags::QUOTA_NEED_FSCK.0;
    let mut flags = CheckpointFlags(old.0 & kept).with(CheckpointFlags::CRC_RECOVERY);
    let mut set = |on: bool, flag| flags = if on { flags.with(flag) } else { flags };
    set(reason != CheckpointReason::Sync, CheckpointFlags::UMOUNT);
    set(reason == CheckpointReason::Trimmed, CheckpointFlags::TRIMMED);
    set(orphans, CheckpointFlags::ORPHAN);
    flags
}
