//! Cells of several bits: which pages share a word line, and what each of them takes.
//!
//! The pages of a block lie on its word lines in order, a page for each bit of a cell: page `p` is
//! of type `p mod bits` (0 is the least significant bit). Chips program such a word line in one go
//! (3D flash: one-shot), or a page at a time (planar flash: the least significant bit is fast, the
//! others are slow). A block may also be filled at one bit a cell, faster and with a part of its
//! pages: [`CellMode::Single`].
//!
//! A page of the model may be a part of what a chip senses and programs, so that a map can name
//! 4 KiB on flash of 16 KiB pages: [`Cells::parts`] of them make a page of the chip.

use dovetail_time::SimSpan;

/// Bits that a cell can hold at most.
pub const MOST_BITS: usize = 4;

/// Times of the pages of cells of several bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Bits a cell, 1 to [`MOST_BITS`].
    pub bits: u32,
    /// Set if the pages of a word line are programmed in one go.
    pub one_shot: bool,
    /// Pages of the model that a chip senses and programs as one, at least 1.
    pub parts: u32,
    /// Cell array to page register, by type of the page.
    pub read: [SimSpan; MOST_BITS],
    /// Page register to cell array, by type of the page; of a whole word line where that is
    /// programmed in one go, all the same then.
    pub program: [SimSpan; MOST_BITS],
}

impl Cells {
    /// Pages of a block that are programmed in one go.
    pub const fn pages_at_once(&self, mode: CellMode) -> u32 {
        match mode {
            CellMode::Native if self.one_shot => self.bits * self.parts,
            _ => self.parts,
        }
    }

    /// The type of a page of a block that is filled with all bits.
    pub(crate) const fn type_of(&self, page: u32) -> usize {
        (page / self.parts % self.bits) as usize
    }
}

/// Times of a block that is filled at one bit a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleTiming {
    /// Cell array to page register.
    pub read: SimSpan,
    /// Page register to cell array.
    pub program: SimSpan,
    /// Erasing a block.
    pub erase: SimSpan,
}

/// The way in which a block is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellMode {
    /// All bits of its cells.
    #[default]
    Native,
    /// One bit a cell: pages `0` to `pages / bits`.
    Single,
}
