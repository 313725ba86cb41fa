//! Both copies of the superblock.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, Features};
use crate::volume::open::usable_superblock;

/// Bytes of the superblock in its block.
const STRUCTURE: std::ops::Range<usize> = 1024..4096;

/// Features whose content is not checked, with what that is.
const UNCHECKED: [(Features, &str); 2] = [
    (Features(0x80), "the usage in quota files"),
    (Features(0x1000), "hashes of casefolded names"),
];

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_superblocks(&mut self) -> Result<(), Error> {
        for copy in [0, 1] {
            match usable_superblock(&mut self.volume.blocks, copy) {
                Ok(_) => {}
                Err(Error::Io(error)) => return Err(error.into()),
                Err(error) => {
                    self.found(Finding::SuperblockCopy { copy, reason: error.to_string() });
                    return Ok(());
                }
            }
        }
        let first = self.volume.blocks.metadata(BlockAddr(0))?;
        let second = self.volume.blocks.metadata(BlockAddr(1))?;
        if let Some(offset) = STRUCTURE.into_iter().find(|&at| first[at] != second[at]) {
            self.found(Finding::SuperblocksDiffer { offset: offset - STRUCTURE.start });
        }
        for (feature, what) in UNCHECKED {
            if self.volume.superblock.features.has(feature) {
                self.found(Finding::NotChecked { what });
            }
        }
        Ok(())
    }
}
