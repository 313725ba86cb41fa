//! Erasing: a line becomes free again.

use dovetail_block::DeviceError;
use dovetail_nand::{BlockId, NandError};
use dovetail_time::SimTime;

use super::lines::{LineId, LineState};
use super::{Medium, device_error};

/// The outcome of erasing one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErasedBlock {
    /// It is erased at that time.
    Done(BlockId, SimTime),
    /// The medium refused, and the block is marked bad.
    Failed,
}

impl Medium {
    /// Erases the good blocks of a victim that holds no valid page, and tells `note` of each. Then
    /// the line is free.
    ///
    /// # Errors
    /// No power.
    pub(crate) fn erase_line(
        &mut self,
        at: SimTime,
        line: LineId,
        mut note: impl FnMut(ErasedBlock),
    ) -> Result<(), DeviceError> {
        debug_assert_eq!(self.lines.state(line), LineState::Victim, "only a victim is erased");
        debug_assert_eq!(self.lines.valid(line), 0, "a line with valid pages must not be erased");
        for block in self.lines.blocks(line) {
            if self.nand.is_bad(block) {
                continue;
            }
            match self.nand.erase(at, block) {
                Ok(done) => note(ErasedBlock::Done(block, done)),
                Err(NandError::EraseFailed(_)) => {
                    self.nand.retire(block);
                    note(ErasedBlock::Failed);
                }
                Err(error) => return Err(device_error(&error)),
            }
        }
        let missing = self.missing_pages(line);
        self.lines.erased(line, missing);
        Ok(())
    }
}
