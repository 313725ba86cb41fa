//! Reads, plain ones first, and what they do to a block.

use dovetail_time::{SimSpan, SimTime};

use super::{Address, Fate, Nand, NandConfig};
use crate::error::NandError;
use crate::geometry::{BlockId, Ppn};
use crate::payload::Token;
use crate::retry::Condition;
use crate::timing::Target;

/// The life of a block since it was erased.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exposure {
    reads: u32,
    /// The first program, if that was since the power was switched on.
    pub(super) programmed: Option<SimTime>,
}

/// One for each block, if reads depend on it.
pub(super) fn exposures(config: &NandConfig) -> Vec<Exposure> {
    let blocks = if config.retry.is_some() { config.geometry.blocks() } else { 0 };
    vec![Exposure::default(); blocks as usize]
}

impl Nand {
    /// Reads `bytes` (at most a page) of `ppn` into the controller; returns when they are there.
    /// The content that was read is [`Nand::token`].
    ///
    /// # Errors
    /// An erased page (a broken rule), an unreadable one (its die is busy all the same), no power.
    #[inline]
    pub fn read(&mut self, at: SimTime, ppn: Ppn, bytes: u32) -> Result<SimTime, NandError> {
        match self.read_plainly(at, ppn, bytes) {
            Some(done) => Ok(done),
            None => self.read_with_care(at, ppn, bytes),
        }
    }

    /// A read with nothing out of the ordinary; `None`, and nothing has happened, of any other.
    #[inline]
    fn read_plainly(&mut self, at: SimTime, ppn: Ppn, bytes: u32) -> Option<SimTime> {
        if !self.plain || !self.powered || ppn.0 >= self.pages {
            return None;
        }
        let Address { block, page, unit } = self.address(ppn);
        if !self.store.holds_readable(block, page) {
            return None;
        }
        self.operations += 1;
        Some(self.timeline.read_plainly(at, unit, bytes))
    }

    #[inline(never)]
    fn read_with_care(&mut self, at: SimTime, ppn: Ppn, bytes: u32) -> Result<SimTime, NandError> {
        let Address { block, page, unit } = self.locate(ppn)?;
        if matches!(self.begin()?, Fate::Cut(_)) {
            return Err(NandError::PowerLost);
        }
        let state = &self.store.blocks[block.0 as usize];
        if state.half_erased {
            return Err(NandError::Unreadable(ppn));
        }
        if page >= state.next_page {
            return Err(NandError::Erased(ppn));
        }
        let from = Target { unit, block: block.0, page, mode: state.mode };
        let more = self.expose(at, block);
        let done = self.timeline.read(at, from, bytes, more);
        let erases = || self.store.blocks[block.0 as usize].erases;
        let struck = self.faults.as_ref().is_some_and(|f| f.fails_read(ppn, erases()));
        if struck || self.store.token(ppn, 0) == Token::TORN {
            return Err(NandError::Unreadable(ppn));
        }
        Ok(done)
    }

    /// Notes a read of a block; returns the time of the tries that it needs beyond the first.
    #[inline]
    fn expose(&mut self, at: SimTime, block: BlockId) -> SimSpan {
        let (Some(retry), Some(exposure)) =
            (&self.config.retry, self.exposures.get_mut(block.0 as usize))
        else {
            return SimSpan::ZERO;
        };
        let erases = self.store.blocks[block.0 as usize].erases;
        let days = |span: SimSpan| span.as_secs_f64() / 86_400.0;
        let days = match exposure.programmed {
            Some(programmed) => days(at.since(programmed)),
            None => retry.days_at_start + days(at.since(SimTime::ZERO)),
        };
        let steps = retry.steps(Condition { erases, reads: exposure.reads, days });
        exposure.reads = exposure.reads.saturating_add(1);
        self.retries += u64::from(steps);
        retry.step * u64::from(steps)
    }

    /// Tries of reads beyond the first so far, since the flash was made.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Reads of a block since it was erased; 0 where that is not counted.
    pub fn reads(&self, block: BlockId) -> u32 {
        self.exposures.get(block.0 as usize).map_or(0, |exposure| exposure.reads)
    }
}
