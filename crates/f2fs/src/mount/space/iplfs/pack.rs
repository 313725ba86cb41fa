//! The checkpoint pack of an IPLFS volume, with its discard log.

use dovetail_block::BlockBytes;

use super::super::super::policy::{can_carry, log_is_due};
use super::super::{Draft, Pack};
use super::LogSpace;
use crate::error::Error;
use crate::format::{BLOCK, Checkpoint, Superblock, discard_log_checksum};

/// Bytes that a discard log may have.
pub(super) fn discard_log_bytes(superblock: &Superblock) -> u64 {
    u64::from(superblock.discard_log_blocks()) * BLOCK as u64
}

impl LogSpace {
    /// Blocks given up since the last checkpoint fill so much of a discard log that the next
    /// checkpoint is due.
    pub(crate) fn is_log_due(&self, superblock: &Superblock) -> bool {
        log_is_due(self.fresh.most_bytes(), discard_log_bytes(superblock))
    }

    /// Queued extents do not fit into the next discard log beside the fresh ones. They are
    /// discarded before: an earlier log, which counts until the next checkpoint is complete, holds
    /// them, and that one is complete only after a flush.
    pub(crate) fn overflows_log(&self, superblock: &Superblock) -> bool {
        !can_carry(self.fresh.log_len(), self.queued.log_len(), discard_log_bytes(superblock))
    }

    fn discard_log(&self) -> Vec<u8> {
        let mut log = Vec::new();
        self.fresh.write(&mut log);
        self.queued.write(&mut log);
        log
    }

    /// The next checkpoint and the blocks of its pack, the tail left out: that is the first block
    /// again.
    pub(crate) fn build_pack(
        &self,
        superblock: &Superblock,
        draft: Draft<'_>,
    ) -> Result<Pack, Error> {
        let mut logs = self.positions.iter().zip(&draft.checkpoint.positions);
        debug_assert!(logs.all(|(now, before)| now >= before), "a log never goes back");
        let log = self.discard_log();
        if log.len() as u64 > discard_log_bytes(superblock) {
            // what is fresh is never more than the device holds, and a log has room for all of that
            return Err(Error::NoSpace);
        }
        let summary_start = 1 + superblock.cp_payload + draft.orphans.len() as u32;
        let mut next = Checkpoint {
            positions: self.positions,
            discard_log_bytes: log.len() as u64,
            discard_log_checksum: discard_log_checksum(&log),
            total_blocks: summary_start + log.len().div_ceil(BLOCK) as u32 + 1,
            summary_start,
            ..draft.checkpoint
        };
        let (mut blocks, checksum) =
            next.encode_iplfs(&draft.bitmaps, &draft.nat_journal, superblock);
        next.checksum = checksum;
        blocks.extend(draft.orphans);
        blocks.extend(log.chunks(BLOCK).map(padded));
        let sit_journal = Default::default();
        Ok(Pack { checkpoint: next, blocks, bitmaps: draft.bitmaps, sit_journal })
    }

    /// The checkpoint is complete: what it no longer refers to may be discarded. `true` if there is
    /// anything.
    pub(crate) fn commit(&mut self) -> bool {
        let fresh = std::mem::take(&mut self.fresh);
        self.queued.absorb(fresh);
        self.recoverable = 0;
        self.has_queued()
    }
}

fn padded(bytes: &[u8]) -> BlockBytes {
    let mut block = [0; BLOCK];
    block[..bytes.len()].copy_from_slice(bytes);
    block
}
