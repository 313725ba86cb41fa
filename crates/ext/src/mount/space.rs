//! Checks for room before a call changes anything: a call that runs out of space half way would
//! have to be undone.

use dovetail_block::Scheduler;

use super::Ext;
use crate::error::Error;

/// Blocks that are always left for pointers and nodes of what is delayed.
const SLACK: u64 = 16;

impl<D: Scheduler> Ext<D> {
    /// Blocks that could be taken now, what delayed blocks and their pointers will need taken off.
    fn room(&self) -> u64 {
        let delayed = self.delayed.total();
        let pointers = self.nodes_for(delayed) + 4 * self.delayed.files() as u64;
        self.groups.takeable().saturating_sub(delayed + pointers + SLACK)
    }

    /// Blocks of pointers or extents that `blocks` blocks may need, each an extent of its own.
    pub(super) fn nodes_for(&self, blocks: u64) -> u64 {
        // a leaf in a block of 1 KiB has 84 entries, half of them after a split
        blocks / 32 + 4
    }

    /// A change of a tree of extents or pointers that ran out of space half way could not be
    /// undone: it must not begin.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    pub(super) fn check_nodes(&self) -> Result<(), Error> {
        if self.groups.takeable() >= SLACK / 2 { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Makes sure that a call can take `blocks` more blocks; blocks that wait for a commit may be
    /// what is missing.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    pub(super) fn check_room(&mut self, blocks: u64) -> Result<(), Error> {
        if self.room() >= blocks {
            return Ok(());
        }
        if self.groups.pending() > 0 && self.edits_before_call == self.edits {
            self.commit()?;
        }
        if self.room() >= blocks { Ok(()) } else { Err(Error::NoSpace) }
    }
}
