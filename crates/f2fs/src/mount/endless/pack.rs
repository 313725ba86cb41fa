//! The checkpoint pack of an endless volume, with its discard log.

use dovetail_block::{BlockBytes, Scheduler};

use super::super::F2fs;
use super::super::checkpoint::{Pack, Reason, next_flags};
use super::super::nat::FlushPlan;
use super::super::policy::can_carry;
use crate::error::Error;
use crate::format::{BLOCK, Bitmaps, Checkpoint, Nid, discard_log_checksum, orphan_blocks};

impl<D: Scheduler> F2fs<D> {
    /// Bytes that a discard log may have.
    pub(super) fn discard_log_room(&self) -> u64 {
        u64::from(self.superblock.discard_log_blocks()) * BLOCK as u64
    }

    /// The discard log of the next checkpoint. What does not fit beside what is fresh is issued: an earlier log, which counts
    /// until this checkpoint is complete, holds it, and this one is complete only after a flush.
    fn discard_log(&mut self) -> Result<Vec<u8>, Error> {
        let room = self.discard_log_room();
        let lens = self.endless.as_ref().map(|endless| (endless.fresh.log_len(), endless.queued.log_len()));
        let (fresh, queued) = lens.unwrap_or_default();
        if !can_carry(fresh, queued, room) {
            self.discard_queued(usize::MAX)?;
        }
        let mut log = Vec::new();
        if let Some(endless) = &self.endless {
            endless.fresh.write(&mut log);
            endless.queued.write(&mut log);
        }
        Ok(log)
    }

    /// The next checkpoint and the blocks of its pack, the tail left out: that is the first block again.
    pub(in super::super) fn build_endless_pack(
        &mut self,
        reason: Reason,
        bitmaps: &Bitmaps,
        plan: &FlushPlan,
    ) -> Result<Pack, Error> {
        let orphans: Vec<Nid> = self.orphans.iter().copied().collect();
        let orphans = orphan_blocks(&orphans);
        let log = self.discard_log()?;
        if log.len() as u64 > self.discard_log_room() {
            return Err(Error::NoSpace); // what is fresh is never more than the device holds, and the room is for all of that
        }
        let positions = self.endless.as_ref().map_or(self.checkpoint.positions, |endless| endless.positions);
        let summary_start = 1 + self.superblock.cp_payload + orphans.len() as u32;
        let journal: Vec<_> = plan.journal.iter().map(|&nid| (nid, self.nat.get(nid))).collect();
        let mut next = Checkpoint {
            pack: 3 - self.checkpoint.pack,
            version: self.checkpoint.version.wrapping_add(1),
            valid_block_count: self.counts.valid_blocks,
            positions,
            discard_log_bytes: log.len() as u64,
            discard_log_checksum: discard_log_checksum(&log),
            flags: next_flags(self.checkpoint.flags, reason, !orphans.is_empty(), false),
            total_blocks: summary_start + log.len().div_ceil(BLOCK) as u32 + 1,
            summary_start,
            valid_nodes: self.counts.valid_nodes,
            valid_inodes: self.counts.valid_inodes,
            next_free_nid: self.nat.next_free_hint(),
            elapsed_s: self.elapsed_s(),
            ..self.checkpoint.clone()
        };
        let (mut blocks, checksum) = next.encode_endless(bitmaps, &journal, &self.superblock);
        next.checksum = checksum;
        blocks.extend(orphans);
        blocks.extend(log.chunks(BLOCK).map(padded));
        Ok(Pack { checkpoint: next, blocks, sit_journal: Default::default() })
    }

    /// The checkpoint is complete: what it no longer refers to may be discarded.
    pub(in super::super) fn commit_endless(&mut self) {
        let Some(endless) = &mut self.endless else { return };
        let fresh = std::mem::take(&mut endless.fresh);
        endless.queued.absorb(fresh);
        endless.recoverable = 0;
        if endless.has_queued() {
            self.background.discard_soon(self.io.now());
        }
    }
}

fn padded(bytes: &[u8]) -> BlockBytes {
    let mut block = [0; BLOCK];
    block[..bytes.len()].copy_from_slice(bytes);
    block
}
