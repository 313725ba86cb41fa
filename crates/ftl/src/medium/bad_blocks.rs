//! Blocks that failed, and the valid pages that they still hold.

use dovetail_nand::{BlockId, Ppn};

use super::Medium;

impl Medium {
    /// Marks a block bad; its valid pages are to be moved away.
    pub(super) fn condemn(&mut self, block: BlockId) {
        self.nand.retire(block);
        let line = self.lines.line_of(self.nand.geometry().ppn(block, 0));
        self.lines.lose_block(line);
        self.condemned.push(block);
    }

    /// The block that was condemned last, and may still hold valid pages.
    pub(crate) fn newest_condemned(&self) -> Option<BlockId> {
        self.condemned.last().copied()
    }

    /// Forgets a condemned block that holds no valid page any more.
    pub(crate) fn forget_condemned(&mut self, block: BlockId) {
        debug_assert!(
            self.valid_pages_of(block).next().is_none(),
            "{block:?} still holds valid pages"
        );
        self.condemned.retain(|&condemned| condemned != block);
    }

    /// Finds the bad blocks that still hold valid pages, when the power is switched on.
    pub(crate) fn condemn_stranded(&mut self) {
        let bad = (0..self.nand.geometry().blocks())
            .map(BlockId)
            .filter(|&block| self.nand.is_bad(block));
        self.condemned = bad.filter(|&block| self.valid_pages_of(block).next().is_some()).collect();
    }

    fn valid_pages_of(&self, block: BlockId) -> impl Iterator<Item = Ppn> {
        let pages = (0..self.nand.programmed_pages(block))
            .map(move |page| self.nand.geometry().ppn(block, page));
        pages.filter(|&ppn| self.lines.is_valid(ppn))
    }
}
