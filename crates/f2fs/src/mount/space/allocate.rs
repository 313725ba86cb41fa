//! Blocks taken and given up, as the rest of a mount asks for them.

use dovetail_block::Scheduler;

use super::super::F2fs;
use super::super::policy::Log;
use crate::error::{Corrupt, Damage, Error};
use crate::format::{BlockAddr, Summary};

impl<D: Scheduler> F2fs<D> {
    /// Takes the next block of the log for `owner`.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if neither a free segment nor a hole is left, or the device has no free
    /// space.
    pub(in super::super) fn allocate(
        &mut self,
        log: Log,
        owner: Summary,
    ) -> Result<BlockAddr, Error> {
        self.leave_full_segment(log)?;
        let (now_s, valid) = (self.elapsed_s(), self.counts.valid_blocks);
        let taken = self.space.take(log, owner, now_s, valid)?;
        let events = &mut self.events;
        *if taken.in_hole { &mut events.ssr_blocks } else { &mut events.lfs_blocks } += 1;
        // the block is taken all the same; the log goes on elsewhere when there is space again, or
        // the summary of its next segment can be read
        if self.leave_full_segment(log).is_err() && log == Log::WarmNode {
            self.since.break_chain();
        }
        Ok(taken.address)
    }

    /// Goes on in another segment if the log has filled its own.
    pub(in super::super) fn leave_full_segment(&mut self, log: Log) -> Result<(), Error> {
        if !self.space.is_segment_full(log) {
            return Ok(());
        }
        let demand = self.demand();
        self.space.next_segment(&mut self.io, log, &demand)
    }

    /// The block is no longer used. It can be written again after the next checkpoint.
    ///
    /// # Errors
    /// [`Damage::NotValid`].
    pub(in super::super) fn free_block(&mut self, address: BlockAddr) -> Result<(), Corrupt> {
        if self.io.device_addresses().has(address) {
            self.physical.give_up(address);
            return Ok(());
        }
        if !self.superblock.in_main(address) {
            return Err(Damage::NotValid(address).into());
        }
        self.forget_update(address);
        self.io.held_moves.remove(address);
        self.space.free(address, self.elapsed_s())
    }
}
