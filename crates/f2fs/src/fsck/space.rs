//! The checks that depend on how the volume's space is laid out: segments with SIT and SSA, or the
//! logs of IPLFS. The rest of fsck does not ask which of the two it checks.

use dovetail_block::BlockDevice;

use super::repair::{RepairError, repair_iplfs, repair_segments};
use super::summary::Owner;
use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BLOCK, BlockAddr, Nid, Variant};

/// The log that the chain of fsync records is in.
const WARM_NODE: usize = 4;

impl<D: BlockDevice> Checker<'_, D> {
    fn variant(&self) -> Variant {
        self.volume.superblock.variant
    }

    /// The positions of the logs, and the journals of the checkpoint.
    pub(super) fn check_logs(&mut self) -> Result<(), Error> {
        match self.variant() {
            Variant::F2fs => self.check_segment_logs(),
            Variant::Iplfs(_) => self.check_head(),
        }
    }

    /// The tables of the space against the blocks that were reached.
    pub(super) fn check_space(&mut self) -> Result<(), Error> {
        match self.variant() {
            Variant::F2fs => self.check_sit(),
            Variant::Iplfs(_) => self.check_areas(),
        }
    }

    /// The block at which the chain of fsync records begins; `None` if its log cannot go on.
    pub(super) fn chain_start(&self) -> Option<BlockAddr> {
        let (checkpoint, superblock) = (&self.volume.checkpoint, &self.volume.superblock);
        match superblock.variant {
            Variant::F2fs => {
                let position = checkpoint.logs[WARM_NODE];
                let next = self.volume.block_in_segment(position.segment, position.offset.into());
                (position.segment.0 < superblock.segment_count_main).then_some(next)
            }
            Variant::Iplfs(_) => {
                let next = checkpoint.positions[WARM_NODE];
                (next < superblock.area_end(WARM_NODE)).then_some(next)
            }
        }
    }

    /// A log has written block `address`, to which node `nid` leads (or which is that node), as far
    /// as that can be told: of segments the SIT will.
    pub(super) fn check_log(&mut self, address: BlockAddr, nid: Nid, node: bool) -> bool {
        match self.variant() {
            Variant::F2fs => true,
            Variant::Iplfs(_) => self.check_iplfs_log(address, nid, node),
        }
    }

    /// Compares the summary of block `address` (in the main area), which is node `nid`.
    pub(super) fn check_node_summary(&mut self, address: BlockAddr, nid: Nid) -> Result<(), Error> {
        match self.variant() {
            Variant::F2fs => self.check_node_owner(address, nid),
            Variant::Iplfs(_) => Ok(()), // it has no summaries
        }
    }

    /// Compares the summary of block `address` (in the main area), to which `owner` points.
    pub(super) fn check_data_summary(
        &mut self,
        address: BlockAddr,
        owner: Owner,
    ) -> Result<(), Error> {
        match self.variant() {
            Variant::F2fs => self.check_data_owner(address, owner),
            Variant::Iplfs(_) => Ok(()),
        }
    }

    /// A pack of zeros is right on a fresh volume: mkfs writes one pack.
    pub(super) fn may_have_one_pack(&self) -> bool {
        self.variant().is_iplfs()
    }

    /// A pack may be followed by maps of full and empty NAT blocks.
    pub(super) fn may_have_nat_bits(&self) -> bool {
        self.variant() == Variant::F2fs
    }

    /// Blocks that the elected pack has, head and tail included.
    pub(super) fn right_pack_size(&self) -> u32 {
        let checkpoint = &self.volume.checkpoint;
        match self.variant() {
            Variant::F2fs => checkpoint.summary_start + super::logs::summary_blocks(checkpoint) + 1,
            Variant::Iplfs(_) => {
                let log = checkpoint.discard_log_bytes.div_ceil(BLOCK as u64);
                checkpoint.summary_start.saturating_add(log as u32).saturating_add(1)
            }
        }
    }

    /// The figures of a checkpoint that mkfs chose.
    pub(super) fn check_reserves(&mut self) {
        match self.variant() {
            Variant::F2fs => self.check_segment_reserves(),
            Variant::Iplfs(_) => {
                let found = self.volume.checkpoint.user_block_count;
                let max = self.volume.superblock.room_for_files();
                if !(1..=max).contains(&found) {
                    self.found(Finding::CheckpointField {
                        field: "user_block_count",
                        found,
                        min: 1,
                        max,
                    });
                }
            }
        }
    }

    /// Repairs what `findings` name; returns those that were dealt with.
    pub(super) fn repair(self, findings: Vec<Finding>) -> Result<Vec<Finding>, RepairError> {
        match self.variant() {
            Variant::F2fs => repair_segments(self, findings),
            Variant::Iplfs(_) => repair_iplfs(self, findings),
        }
    }
}
