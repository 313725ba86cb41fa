//! Frontiers: where the next page of a stream goes.

use crate::lines::LineId;

/// A line that is being filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenLine {
    pub(super) line: LineId,
    /// Index of the next page.
    pub(super) next: u32,
}

/// The lines that a stream fills: one superblock, or a block on every unit in turn.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub(super) slots: Vec<Option<OpenLine>>,
    pub(super) cursor: usize,
}

impl Frontier {
    pub(super) fn new(groups: usize) -> Self {
        Self { slots: vec![None; groups], cursor: 0 }
    }

    pub(super) fn advance(&mut self) {
        self.cursor += 1;
        if self.cursor == self.slots.len() {
            self.cursor = 0;
        }
    }
}
