//! The order in which the pages of a line are filled.

use dovetail_nand::{CellMode, Divisor, Geometry};

use super::lines::{LineShape, WordLines};

#[derive(Clone, Debug)]
pub(super) enum FillOrder {
    /// The pages of one index in all blocks, then those of the next.
    Rows,
    /// A word line of each die after the other.
    WordLines { native: Row, single: Row },
    /// Those of the one block.
    Block,
}

impl FillOrder {
    pub(super) fn of(geometry: &Geometry, shape: LineShape, word_lines: WordLines) -> Self {
        let row = |mode| Row::new(geometry, word_lines, mode);
        match shape {
            LineShape::Superblock if word_lines.native_at_once > 1 => {
                Self::WordLines { native: row(CellMode::Native), single: row(CellMode::Single) }
            }
            LineShape::Superblock => Self::Rows,
            LineShape::Block => Self::Block,
        }
    }
}

/// The pages of a line that all units program in one go: one die after the other fills what it
/// programs in one go on all its planes, page by page of the chip.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pages: Divisor,
    /// For the n-th page that is filled its place among those of the row.
    places: Vec<u32>,
}

impl Row {
    fn new(geometry: &Geometry, word_lines: WordLines, mode: CellMode) -> Self {
        let (units, planes) = (geometry.units(), geometry.planes_per_die);
        let (at_once, parts) = (word_lines.at_once(mode), word_lines.single_at_once);
        let place = |index: u32| {
            let (die, in_die) = (index / (planes * at_once), index % (planes * at_once));
            let (chip_page, part) = (in_die / parts, in_die % parts);
            let page = chip_page / planes * parts + part;
            page * units + chip_page % planes * (units / planes) + die
        };
        let pages = units * at_once;
        Self { pages: Divisor::new(pages), places: (0..pages).map(place).collect() }
    }

    /// The place of a page among those of its line.
    #[inline]
    pub(super) fn place(&self, index: u32) -> u32 {
        let (_, in_row) = self.pages.divide(index);
        index - in_row + self.places[in_row as usize]
    }
}
