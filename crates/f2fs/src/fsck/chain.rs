//! What fsync wrote after the checkpoint: the roll-forward chain. It is no part of the checked state.

use std::collections::HashSet;

use dovetail_block::{AREA_BLOCKS, BlockDevice};

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, Footer, Variant, area_start};

/// The warm node log: all that fsync writes goes there.
const WARM_NODE: usize = 4;

impl<D: BlockDevice> Checker<'_, D> {
    /// Follows the chain from the log's position on, block by block, while the blocks were written after the
    /// checkpoint, and counts the files in it that fsync marked.
    pub(super) fn check_chain(&mut self) -> Result<(), Error> {
        let Some(mut next) = self.chain_start() else { return Ok(()) };
        let (version, mask) = self.volume.checkpoint.footer_version();
        let (mut seen, mut files) = (HashSet::new(), HashSet::new());
        while self.volume.superblock.in_main(next) && seen.insert(next) {
            let footer = Footer::parse(&*self.volume.blocks.metadata(next)?);
            if footer.checkpoint & mask != version {
                break;
            }
            if footer.fsync_mark {
                files.insert(footer.ino);
            }
            next = footer.next_address(self.volume.superblock.variant, next);
        }
        if !files.is_empty() {
            self.found(Finding::AwaitsRecovery { count: files.len() as u64 });
        }
        Ok(())
    }

    /// Where the log goes on; `None` if it cannot.
    fn chain_start(&self) -> Option<BlockAddr> {
        let (checkpoint, superblock) = (&self.volume.checkpoint, &self.volume.superblock);
        match superblock.variant {
            Variant::Iplfs => {
                let next = checkpoint.positions[WARM_NODE];
                (next.0 < area_start(WARM_NODE).0 + AREA_BLOCKS).then_some(next)
            }
            Variant::F2fs => {
                let position = checkpoint.logs[WARM_NODE];
                let next = self.volume.block_in_segment(position.segment, position.offset.into());
                (position.segment.0 < superblock.segment_count_main).then_some(next)
            }
        }
    }
}
