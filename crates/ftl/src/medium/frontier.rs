//! Frontiers: the lines that a stream of pages fills, and where the next page goes.

use dovetail_block::StreamId;
use dovetail_nand::CellMode;

use super::lines::LineId;

/// The purpose of a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrontierKind {
    /// The mode of the lines that it opens.
    pub(crate) mode: CellMode,
    /// The stream of its pages; `None` for several.
    pub(crate) stream: Option<StreamId>,
}

impl FrontierKind {
    /// One for pages of several streams, or of none.
    pub(crate) const SHARED: Self = Self { mode: CellMode::Native, stream: None };
}

/// The number of a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrontierId(pub(crate) usize);

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
    /// By the group of the line.
    open: Vec<Option<OpenLine>>,
    /// The group whose turn it is.
    cursor: usize,
    kind: FrontierKind,
}

impl Frontier {
    pub(super) fn new(groups: usize, kind: FrontierKind) -> Self {
        Self { open: vec![None; groups], cursor: 0, kind }
    }

    #[inline]
    pub(super) fn mode(&self) -> CellMode {
        self.kind.mode
    }

    pub(super) fn stream(&self) -> Option<StreamId> {
        self.kind.stream
    }

    #[inline]
    pub(super) fn groups(&self) -> usize {
        self.open.len()
    }

    #[inline]
    pub(super) fn group(&self) -> usize {
        self.cursor
    }

    #[inline]
    pub(super) fn open_line(&self, group: usize) -> Option<OpenLine> {
        self.open[group]
    }

    #[inline]
    pub(super) fn set_open_line(&mut self, group: usize, open: Option<OpenLine>) {
        self.open[group] = open;
    }

    /// The line of the group whose turn it is.
    #[inline]
    pub(super) fn open_line_mut(&mut self) -> Option<&mut OpenLine> {
        self.open[self.cursor].as_mut()
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.cursor += 1;
        if self.cursor == self.open.len() {
            self.cursor = 0;
        }
    }
}
