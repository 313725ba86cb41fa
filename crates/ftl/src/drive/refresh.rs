//! Refresh: a line whose blocks were read often is rewritten, before its data can no longer be read.

use dovetail_block::DeviceError;
use dovetail_nand::Ppn;
use dovetail_time::SimTime;

use super::Drive;
use crate::cleaner::Choice;
use crate::lines::{LineId, LineState};
use crate::stats::Cause;

impl Drive {
    /// Notes that the host has read a page; its line is due once a block of it was read too often.
    #[inline]
    pub(super) fn note_host_read(&mut self, ppn: Ppn) {
        let Some(most) = self.config.refresh_reads else { return };
        let nand = self.medium.nand();
        if nand.reads(nand.geometry().locate(ppn).0) < most {
            return;
        }
        let line = self.medium.lines().line_of(ppn);
        if !self.to_refresh.contains(&line) {
            self.to_refresh.push_back(line);
        }
    }

    /// Goes on with rewriting, a step for each command: beside reads alone nothing else would.
    #[inline]
    pub(super) fn refresh_along(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.config.refresh_reads.is_none() { Ok(()) } else { self.refresh_step(at) }
    }

    fn refresh_step(&mut self, at: SimTime) -> Result<(), DeviceError> {
        match self.cleaner.cause() {
            // another run goes on with writes or in idle time, of which there may be none
            Some(cause) if cause == Cause::Refresh || !self.to_refresh.is_empty() => {
                self.make_room(at)?;
                return self.clean_step(at);
            }
            Some(_) => return Ok(()),
            None => {}
        }
        if self.cleaner.is_short(self.medium.lines()) {
            return Ok(());
        }
        while let Some(line) = self.to_refresh.pop_front() {
            if self.is_worn_by_reads(line) && self.has_run(Choice::Refresh(line)) {
                break;
            }
        }
        Ok(())
    }

    /// Tells whether a line is closed, and was not rewritten since it became due.
    fn is_worn_by_reads(&self, line: LineId) -> bool {
        let (lines, nand) = (self.medium.lines(), self.medium.nand());
        let is_due =
            |block| self.config.refresh_reads.is_some_and(|most| nand.reads(block) >= most);
        lines.state(line) == LineState::Closed && lines.blocks(line).any(is_due)
    }
}
