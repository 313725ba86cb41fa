//! Lines as they are found when the power is switched on.
//!
//! A line that was being filled is filled on. Otherwise a drive whose power is cut again and again
//! would run out of free lines without ever finishing a cleaning run. A line that was being erased
//! is to be cleaned again.

use dovetail_block::StreamId;
use dovetail_nand::{BlockId, CellMode, Nand, Seq};

use super::Medium;
use super::frontier::{Frontier, FrontierKind, OpenLine};
use super::lines::{FoundLine, LineId, LineShape};

impl Medium {
    /// Around a flash that holds pages of which none counts yet.
    pub(super) fn found(
        nand: Nand,
        shape: LineShape,
        frontiers: &[FrontierKind],
        seq: Seq,
    ) -> Self {
        let mut medium = Self { seq, ..Self::around(nand, shape, frontiers) };
        for line in medium.lines.ids() {
            let erases =
                medium.lines.blocks(line).map(|b| medium.nand.erases(b)).max().unwrap_or(0);
            let missing = medium.missing_pages(line);
            medium.lines.found_mode(line, medium.mode_of(line));
            let found = medium.line_as_found(line);
            medium.lines.found(line, erases, missing, found);
        }
        medium.lines.sort_by_age();
        medium
    }

    /// The state of a line; one that can be filled on is given to a frontier.
    fn line_as_found(&mut self, line: LineId) -> FoundLine {
        let mut good = self.lines.blocks(line).filter(|&block| !self.nand.is_bad(block));
        let untouched =
            |block| self.nand.programmed_pages(block) == 0 && !self.nand.is_half_erased(block);
        if good.all(untouched) {
            return FoundLine::Erased;
        }
        match self.next_page_of(line) {
            Some(next) if self.reopen(line, next) => FoundLine::Open,
            _ => FoundLine::Filled(self.filled_at(line)),
        }
    }

    /// The index from which on a line that was being filled can be filled on; `None` when its
    /// blocks were not filled in step (it was being erased) or it is full.
    fn next_page_of(&self, line: LineId) -> Option<u32> {
        let geometry = self.nand.geometry();
        let is_programmed = |index: u32| {
            let (block, page) = geometry.locate(self.lines.page(line, index));
            (!self.nand.is_bad(block)).then(|| page < self.nand.programmed_pages(block))
        };
        let half_erased = self.lines.blocks(line).any(|block| self.nand.is_half_erased(block));
        let pages = 0..self.lines.pages_in(line);
        let next = pages.clone().rev().find(|&index| is_programmed(index) == Some(true))? + 1;
        let in_step =
            pages.clone().take(next as usize).all(|index| is_programmed(index) != Some(false));
        (next < pages.end && in_step && !half_erased).then_some(next)
    }

    /// The mode of the blocks of a line; one whose blocks are all erased has none yet.
    fn mode_of(&self, line: LineId) -> CellMode {
        let is_filled = |block: &BlockId| {
            let is_used =
                self.nand.programmed_pages(*block) > 0 || self.nand.is_half_erased(*block);
            is_used && !self.nand.is_bad(*block)
        };
        self.lines.blocks(line).find(is_filled).map_or(CellMode::Native, |b| self.nand.mode(b))
    }

    /// Gives a line to the first frontier of its mode that has no line in its place: one of its
    /// stream, or for several streams if it holds pages of several, where there is any. What is left
    /// of a word line that was being programmed is used up.
    fn reopen(&mut self, line: LineId, next: u32) -> bool {
        let (group, mode) = (self.lines.group(line), self.lines.mode(line));
        let streams = self.streams_before(line, next);
        let is_vacant =
            |frontier: &Frontier| frontier.mode() == mode && frontier.open_line(group).is_none();
        let is_its_own = |frontier: &Frontier| match streams[..] {
            [] => false,
            [stream] => frontier.stream() == Some(stream),
            _ => frontier.stream().is_none(),
        };
        let own = self.frontiers.iter().position(|f| is_vacant(f) && is_its_own(f));
        let Some(vacant) = own.or_else(|| self.frontiers.iter().position(is_vacant)) else {
            return false;
        };
        let end = next.next_multiple_of(self.lines.least_at_once(mode));
        for next in next..end {
            if self.skip_page(OpenLine { line, next }).is_err() {
                return false;
            }
        }
        self.frontiers[vacant].set_open_line(group, Some(OpenLine { line, next: end }));
        true
    }

    /// The streams of the pages of a line before an index that can be read, each once.
    fn streams_before(&self, line: LineId, next: u32) -> Vec<StreamId> {
        let mut streams = Vec::new();
        for oob in (0..next).filter_map(|index| self.nand.oob(self.lines.page(line, index))) {
            if !streams.contains(&oob.stream) {
                streams.push(oob.stream);
            }
        }
        streams
    }

    fn filled_at(&self, line: LineId) -> Seq {
        self.lines.blocks(line).map(|block| self.nand.last_seq(block)).max().unwrap_or_default()
    }
}
