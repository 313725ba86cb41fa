//! Flash that a store keeps: as it was, and told of every change.

use dovetail_block::Content;

use super::{Nand, NandConfig};
use crate::backing::{BackingStore, StoredBlock, StoredPage};
use crate::error::NandError;
use crate::geometry::{BlockId, Ppn};
use crate::page::Oob;
use crate::payload::Token;

impl Nand {
    /// Flash as it was kept: one entry for each block, in order. The power is off.
    ///
    /// # Errors
    /// A geometry out of range, more blocks or pages than there are. A page that cannot have been
    /// programmed so counts as used up without content.
    pub fn restored(config: NandConfig, blocks: Vec<StoredBlock>) -> Result<Self, NandError> {
        let mut nand =
            Self::new(config).map_err(|_| NandError::Argument("the geometry is out of range"))?;
        for (number, kept) in blocks.into_iter().enumerate() {
            let block = BlockId(number as u32);
            if block.0 >= nand.config.geometry.blocks() {
                return Err(NandError::Argument("more blocks were kept than there are"));
            }
            nand.restore_block(block, kept)?;
        }
        nand.powered = false;
        Ok(nand)
    }

    fn restore_block(&mut self, block: BlockId, kept: StoredBlock) -> Result<(), NandError> {
        if kept.pages.len() as u64 > u64::from(self.config.geometry.pages_per_block) {
            return Err(NandError::Argument("more pages were kept than a block has"));
        }
        for (page, content) in kept.pages.into_iter().enumerate() {
            let ppn = self.config.geometry.ppn(block, page as u32);
            self.restore_page(ppn, block, page as u32, content);
        }
        self.store.restore_wear(block, kept.erases, kept.last_seq.0);
        let state = &mut self.store.blocks[block.0 as usize];
        state.bad |= kept.bad;
        state.mode = kept.mode;
        Ok(())
    }

    fn restore_page(&mut self, ppn: Ppn, block: BlockId, page: u32, kept: StoredPage) {
        let Some((oob, contents)) = kept else {
            return self.store.spoil(ppn, block);
        };
        let token = |content: &Option<Content>| {
            content.as_ref().map_or(Token::LOST, |c| self.store.payloads().intern(c))
        };
        let tokens: Vec<Token> = contents.iter().map(token).collect();
        match self.check_page(block, page, &tokens, oob) {
            Ok(()) => self.store.program(ppn, block, &tokens, oob),
            Err(_) => {
                tokens.into_iter().for_each(|token| self.store.payloads().release(token));
                self.store.spoil(ppn, block);
            }
        }
    }

    /// Keeps the flash in a store: it is told of every change from now on.
    pub fn back_with(&mut self, backing: Box<dyn BackingStore>) {
        self.backing = Some(backing);
        self.plain = false;
    }

    /// Returns what happened so far is kept before anything that happens from now on; nothing
    /// without a backing store. To be called where a page says something of others that are already
    /// there.
    pub fn barrier(&mut self) {
        if let Some(backing) = &mut self.backing {
            backing.barrier();
        }
    }

    pub(super) fn back_programmed(&mut self, ppn: Ppn, tokens: &[Token], oob: Oob) {
        let Some(backing) = &mut self.backing else { return };
        let contents: Vec<Option<Content>> =
            tokens.iter().map(|&token| self.store.resolve(token)).collect();
        backing.programmed(ppn, oob, &contents);
    }

    pub(super) fn back_spoiled(&mut self, ppn: Ppn) {
        if let Some(backing) = &mut self.backing {
            backing.spoiled(ppn);
        }
    }
}
