//! Roll-forward chain: nodes that fsync wrote after the checkpoint. It is no part of the checked
//! state.

use std::collections::HashSet;

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::Footer;

impl<D: BlockDevice> Checker<'_, D> {
    /// Follows the chain from the log's position on, block by block, while the blocks were written
    /// after the checkpoint, and counts the files in it that fsync marked.
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
}
