//! The checkpoint packs, and the fields of the elected one that stand for themselves.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::{Corrupt, Error};
use crate::format::{BLOCKS_IN_SEGMENT, CheckpointFlags, Nid};
use crate::volume::open::{pack_start, read_pack};

/// Flags that say that something is wrong: ERROR, FSCK and QUOTA_NEED_FSCK.
const WANT_CHECK: u32 = 0x8 | 0x10 | 0x800;
/// The flags of Linux 6.12, up to RESIZEFS.
pub(super) const KNOWN_FLAGS: u32 = 0x7FFF;

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_checkpoints(&mut self) -> Result<(), Error> {
        for pack in [1, 2] {
            match read_pack(&mut self.volume.blocks, &self.volume.superblock, pack) {
                Ok(_) => {}
                Err(Error::Corrupt(_)) if self.was_never_written(pack)? => {}
                Err(Error::Corrupt(reason)) => self.found(pack_finding(pack, &reason)),
                Err(error) => return Err(error),
            }
        }
        self.check_flags();
        self.check_size();
        self.check_constants();
        Ok(())
    }

    /// The pack was left out when the volume was made.
    fn was_never_written(&mut self, pack: u32) -> Result<bool, Error> {
        let start = pack_start(&self.volume.superblock, pack);
        let is_zero = self.volume.blocks.metadata(start)?.iter().all(|&byte| byte == 0);
        Ok(is_zero && self.may_have_one_pack())
    }

    fn check_flags(&mut self) {
        let flags = self.volume.checkpoint.flags;
        if flags.0 & !KNOWN_FLAGS != 0 {
            self.found(Finding::CheckpointFlag { found: CheckpointFlags(flags.0 & !KNOWN_FLAGS) });
        }
        if flags.0 & WANT_CHECK != 0 {
            self.found(Finding::CheckWanted { found: CheckpointFlags(flags.0 & WANT_CHECK) });
        }
        let (found, count) = (flags.has(CheckpointFlags::ORPHAN), self.orphan_blocks());
        if found != (count > 0) {
            self.found(Finding::OrphanFlag { found, count });
        }
    }

    /// Blocks between the payload and the data summaries.
    pub(super) fn orphan_blocks(&self) -> u32 {
        self.volume.checkpoint.summary_start - 1 - self.volume.superblock.cp_payload
    }

    fn check_size(&mut self) {
        let (found, expected) = (self.volume.checkpoint.total_blocks, self.right_pack_size());
        if found != expected {
            self.found(Finding::CheckpointSize { found, expected });
        }
    }

    fn check_constants(&mut self) {
        self.check_reserves();
        let (next, max_nid) =
            (self.volume.checkpoint.next_free_nid, self.volume.superblock.max_nid());
        if next >= max_nid {
            self.found(Finding::NextFreeNid { found: Nid(next), max: max_nid - 1 });
        }
    }

    /// Checks the reserves as the kernel does before it mounts (fact by fact: `sanity_check_ckpt`).
    pub(super) fn check_segment_reserves(&mut self) {
        let (checkpoint, superblock) = (&self.volume.checkpoint, &self.volume.superblock);
        let segments = u64::from(superblock.segment_count_main);
        let main = segments * u64::from(BLOCKS_IN_SEGMENT);
        let fields = [
            ("rsvd_segment_count", u64::from(checkpoint.reserved_segments), 1, segments),
            ("overprov_segment_count", u64::from(checkpoint.overprovision_segments), 1, segments),
            ("user_block_count", checkpoint.user_block_count, 1, main - 1),
        ];
        for (field, found, min, max) in fields {
            if !(min..=max).contains(&found) {
                self.found(Finding::CheckpointField { field, found, min, max });
            }
        }
    }

    /// The allocation types of the logs, as they are stored.
    pub(super) fn allocation_types(&mut self) -> Result<[u8; 6], Error> {
        let start = pack_start(&self.volume.superblock, self.volume.checkpoint.pack);
        let head = self.volume.blocks.metadata(start)?;
        Ok(std::array::from_fn(|log| head[176 + log]))
    }

    /// Compares the checkpoint's counters with the tree.
    pub(super) fn check_counters(&mut self) {
        let (checkpoint, counts) = (&self.volume.checkpoint, &self.report.counts);
        let mut findings = Vec::new();
        let (found, expected) = (checkpoint.valid_block_count, counts.blocks);
        if found != expected {
            findings.push(Finding::ValidBlocks { found, expected });
        }
        let (found, expected) = (checkpoint.valid_nodes, counts.nodes as u32);
        if found != expected {
            findings.push(Finding::ValidNodes { found, expected });
        }
        let (found, expected) = (checkpoint.valid_inodes, counts.inodes as u32);
        if found != expected {
            findings.push(Finding::ValidInodes { found, expected });
        }
        let (found, expected) = (checkpoint.free_segments, counts.free_segments as u32); // 0 on IPLFS, both
        let superblock = &self.volume.superblock;
        let excess = self.zones.map_or(0, |zones| zones.mkfs_excess(superblock));
        let is_counted = self.zones.is_some() || !superblock.is_zoned();
        // as mkfs.f2fs left it, and the next mount counts anew
        let is_of_mkfs = found == expected + excess;
        if is_counted && !is_of_mkfs && found != expected {
            findings.push(Finding::FreeSegments { found, expected });
        }
        findings.into_iter().for_each(|finding| self.found(finding));
    }
}

/// A power cut leaves a pack whose blocks do not belong together; what has a good checksum was
/// written so.
fn pack_finding(pack: u32, reason: &Corrupt) -> Finding {
    let torn = match reason {
        Corrupt::Checksum { .. } => true,
        Corrupt::Mismatch { field, .. } => {
            ["checksum_offset", "the tail's version"].contains(field)
        }
        _ => false,
    };
    let reason = reason.to_string();
    if torn {
        Finding::CheckpointTorn { pack, reason }
    } else {
        Finding::CheckpointInvalid { pack, reason }
    }
}
