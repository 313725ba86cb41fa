//! Programs: the rules of flash, and pages that are used up without content.

use dovetail_time::SimTime;

use super::{Address, Fate, Nand};
use crate::error::NandError;
use crate::faults::Torn;
use crate::geometry::{BlockId, Ppn};
use crate::page::Oob;
use crate::payload::Token;
use crate::store::MOST_STREAM;
use crate::timing::Target;

impl Nand {
    /// Programs the next page of a block with one token per 4 KiB; returns when it is durable. The
    /// references of the tokens pass to the page unless an error is returned.
    ///
    /// # Errors
    /// A broken rule ([`NandError::OutOfOrder`], [`NandError::BadBlock`], [`NandError::Argument`],
    /// [`NandError::HalfErased`]), a failure of the medium ([`NandError::ProgramFailed`]: the page
    /// is used up), no power.
    #[inline]
    pub fn program(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<SimTime, NandError> {
        match self.program_plainly(at, ppn, tokens, oob) {
            Some(done) => Ok(done),
            None => self.program_with_care(at, ppn, tokens, oob),
        }
    }

    /// A program with nothing out of the ordinary; `None`, and nothing has happened, of any other.
    #[inline]
    fn program_plainly(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        tokens: &[Token],
        oob: Oob,
    ) -> Option<SimTime> {
        let &[token] = tokens else { return None };
        if !self.plain || !self.powered || ppn.0 >= self.pages {
            return None;
        }
        let Address { block, page, unit } = self.address(ppn);
        self.store.program_plainly(ppn, (block, page), token, oob)?;
        self.operations += 1;
        Some(self.timeline.program_plainly(at, unit, page, self.config.geometry.page_bytes))
    }

    #[inline(never)]
    fn program_with_care(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<SimTime, NandError> {
        let Address { block, page, unit } = self.locate(ppn)?;
        self.check_program(block, page, tokens, oob)?;
        if let Fate::Cut(torn) = self.begin()? {
            match torn {
                Torn::Untouched => {}
                Torn::Garbage => self.spoil(ppn, block),
                Torn::Finished => self.put(ppn, block, tokens, oob),
            }
            return Err(NandError::PowerLost);
        }
        let state = &self.store.blocks[block.0 as usize];
        let target = Target { unit, block: block.0, page, mode: state.mode };
        let done = self.timeline.program(at, target, self.config.geometry.page_bytes);
        if let Some(exposure) = self.exposures.get_mut(block.0 as usize) {
            // a block that is filled on keeps the age of its first page
            if page == 0 {
                exposure.programmed = Some(done);
            }
        }
        if let Some(recent) = &mut self.recent {
            recent.programmed(ppn, block, done, self.timeline.program_span(target));
        }
        let erases = || self.store.blocks[block.0 as usize].erases;
        if self.faults.as_ref().is_some_and(|f| f.fails_program(ppn, erases())) {
            self.spoil(ppn, block);
            return Err(NandError::ProgramFailed(ppn));
        }
        self.put(ppn, block, tokens, oob);
        Ok(done)
    }

    /// Uses up the next page of a block: its word line, which was programmed last on its die, goes
    /// without it.
    ///
    /// # Errors
    /// A page that is not the next one, a bad block.
    pub fn skip(&mut self, ppn: Ppn) -> Result<(), NandError> {
        let Address { block, page, unit } = self.locate(ppn)?;
        let state = &self.store.blocks[block.0 as usize];
        if state.bad {
            return Err(NandError::BadBlock(block));
        }
        if page != state.next_page {
            return Err(NandError::OutOfOrder { block, page, expected: state.next_page });
        }
        let target = Target { unit, block: block.0, page, mode: state.mode };
        if let Some(recent) = &mut self.recent {
            let done = self.timeline.last_end(unit);
            recent.programmed(ppn, block, done, self.timeline.program_span(target));
        }
        self.spoil(ppn, block);
        Ok(())
    }

    fn put(&mut self, ppn: Ppn, block: BlockId, tokens: &[Token], oob: Oob) {
        self.back_programmed(ppn, tokens, oob);
        self.store.program(ppn, block, tokens, oob);
    }

    fn spoil(&mut self, ppn: Ppn, block: BlockId) {
        self.back_spoiled(ppn);
        self.store.spoil(ppn, block);
    }

    fn check_program(
        &self,
        block: BlockId,
        page: u32,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<(), NandError> {
        let state = &self.store.blocks[block.0 as usize];
        if state.bad {
            return Err(NandError::BadBlock(block));
        }
        if state.half_erased {
            return Err(NandError::HalfErased(block));
        }
        self.check_page(block, page, tokens, oob)
    }

    pub(super) fn check_page(
        &self,
        block: BlockId,
        page: u32,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<(), NandError> {
        let state = &self.store.blocks[block.0 as usize];
        if page != state.next_page {
            return Err(NandError::OutOfOrder { block, page, expected: state.next_page });
        }
        if tokens.len() != self.config.geometry.subpages_per_page() as usize {
            return Err(NandError::Argument("one token for each 4 KiB of the page is needed"));
        }
        if page > 0 && oob.seq.0 < state.last_seq() {
            return Err(NandError::Argument(
                "the sequence number is below that of the page before",
            ));
        }
        if oob.stream.0 > MOST_STREAM {
            return Err(NandError::Argument("streams are numbered 0 to 15"));
        }
        Ok(())
    }
}
