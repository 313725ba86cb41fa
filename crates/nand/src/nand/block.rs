//! Erases, and the state of a block.

use dovetail_time::SimTime;

use super::{Fate, Nand, read::Exposure};
use crate::cells::CellMode;
use crate::error::NandError;
use crate::faults::Torn;
use crate::geometry::BlockId;
use crate::page::Seq;
use crate::timing::Target;

impl Nand {
    /// Erases a block; returns when it is done.
    ///
    /// # Errors
    /// A bad block (a broken rule), a failure of the medium or the end of the block's endurance
    /// ([`NandError::EraseFailed`]: what it held stays), no power.
    pub fn erase(&mut self, at: SimTime, block: BlockId) -> Result<SimTime, NandError> {
        if block.0 as usize >= self.store.blocks.len() {
            return Err(NandError::Argument("no such block"));
        }
        let state = &self.store.blocks[block.0 as usize];
        if state.bad {
            return Err(NandError::BadBlock(block));
        }
        let (erases, mode) = (state.erases, state.mode);
        if let Fate::Cut(torn) = self.begin()? {
            match torn {
                Torn::Untouched => {}
                Torn::Garbage => self.store.blocks[block.0 as usize].half_erased = true,
                Torn::Finished => self.wipe(block),
            }
            return Err(NandError::PowerLost);
        }
        let unit = self.units.divide(block.0).1;
        let done = self.timeline.erase(at, Target { unit, block: block.0, page: 0, mode });
        if erases >= self.config.endurance
            || self.faults.as_ref().is_some_and(|f| f.fails_erase(block, erases))
        {
            return Err(NandError::EraseFailed(block));
        }
        if let Some(recent) = &mut self.recent {
            recent.erased(self.store.save(block), done, self.timeline.erase_span(mode));
        }
        self.wipe(block);
        Ok(done)
    }

    fn wipe(&mut self, block: BlockId) {
        self.store.erase(block);
        if let Some(exposure) = self.exposures.get_mut(block.0 as usize) {
            *exposure = Exposure::default();
        }
        let state = &self.store.blocks[block.0 as usize];
        if let Some(backing) = &mut self.backing {
            backing.erased(block, state.erases, Seq(state.last_seq()));
        }
    }

    /// Marks a block bad, for good. Its pages can still be read.
    pub fn retire(&mut self, block: BlockId) {
        let state = &mut self.store.blocks[block.0 as usize];
        state.bad = true;
        if let Some(backing) = &mut self.backing {
            backing.retired(block, state.erases, Seq(state.last_seq()), state.mode);
        }
    }

    /// Tells whether a block is marked bad.
    pub fn is_bad(&self, block: BlockId) -> bool {
        self.store.blocks[block.0 as usize].bad
    }

    /// Tells whether a block was being erased when the power was cut.
    pub fn is_half_erased(&self, block: BlockId) -> bool {
        self.store.blocks[block.0 as usize].half_erased
    }

    /// Returns how often a block was erased.
    pub fn erases(&self, block: BlockId) -> u32 {
        self.store.blocks[block.0 as usize].erases
    }

    /// Returns how many pages of a block are used up; the next one to program has this index.
    pub fn programmed_pages(&self, block: BlockId) -> u32 {
        self.store.blocks[block.0 as usize].next_page
    }

    /// The sequence number of the page that was programmed last in a block, also when it was erased
    /// since.
    pub fn last_seq(&self, block: BlockId) -> Seq {
        Seq(self.store.blocks[block.0 as usize].last_seq())
    }

    /// Sets how a block is filled, before its first page is programmed.
    ///
    /// # Errors
    /// A block that is not erased.
    pub fn set_mode(&mut self, block: BlockId, mode: CellMode) -> Result<(), NandError> {
        let state = &mut self.store.blocks[block.0 as usize];
        if state.next_page > 0 || state.half_erased {
            return Err(NandError::Argument("the mode of a block that is not erased"));
        }
        if state.mode != mode {
            state.mode = mode;
            if let Some(backing) = &mut self.backing {
                backing.mode_set(block, state.erases, Seq(state.last_seq()), mode);
            }
        }
        Ok(())
    }

    /// Returns how a block is filled.
    #[inline]
    pub fn mode(&self, block: BlockId) -> CellMode {
        self.store.blocks[block.0 as usize].mode
    }
}
