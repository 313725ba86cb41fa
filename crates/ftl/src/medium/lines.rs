//! Lines: what the drive fills, cleans and erases as one.
//!
//! A line is a superblock (the blocks of the same number on every unit) or a single block, by
//! profile. This module knows each line's state, how many of its pages must be kept, and which
//! lines are free; it performs no flash operation.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dovetail_nand::{BlockId, CellMode, Divisor, Geometry, Ppn, Seq, Timing};

use super::fill_order::FillOrder;
use crate::bits::Bits;

/// The number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u32);

/// The blocks of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineShape {
    /// One block of every unit: written across all dies.
    Superblock,
    /// One block; each stream keeps a line open on every unit.
    Block,
}

impl LineShape {
    /// Blocks in a line.
    pub const fn blocks_per_line(self, geometry: &Geometry) -> u32 {
        match self {
            Self::Superblock => geometry.units(),
            Self::Block => 1,
        }
    }

    /// Pages in a line.
    pub const fn pages_per_line(self, geometry: &Geometry) -> u32 {
        self.blocks_per_line(geometry) * geometry.pages_per_block
    }

    /// Groups of lines that one stream fills side by side: 1 for superblocks, the units for blocks.
    pub const fn groups(self, geometry: &Geometry) -> u32 {
        geometry.units() / self.blocks_per_line(geometry)
    }
}

/// The stage of a line's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Erased, ready to be filled.
    Free,
    /// Being filled.
    Open,
    /// Filled; may be chosen as a victim.
    Closed,
    /// Being cleaned, or cleaned and not erased yet.
    Victim,
    /// All its blocks are bad.
    Dead,
}

/// The stage in which a line is found when the drive starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundLine {
    /// All its good blocks are erased.
    Erased,
    /// Pages are left that can be written, and a frontier goes on with it.
    Open,
    /// To be cleaned before it is used again; filled at that time.
    Filled(Seq),
}

#[derive(Clone, Debug)]
struct Line {
    state: LineState,
    mode: CellMode,
    valid: u32,
    /// Pages on bad blocks.
    missing: u32,
    erases: u32,
    closed_at: Seq,
    /// Place in `closed` and neighbours in the list of lines that keep as many pages.
    position: u32,
    previous: u32,
    next: u32,
}

impl Line {
    fn is_closed_since(&self, at: Seq) -> bool {
        self.state == LineState::Closed && self.closed_at == at
    }
}

const NIL: u32 = u32::MAX;

/// The pages of a block that are programmed in one go, and the bits of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordLines {
    pub(super) bits: u32,
    pub(super) native_at_once: u32,
    pub(super) single_at_once: u32,
    /// Set if all pages of a word line must be programmed in one go, on all planes of a die.
    pub(super) one_shot: bool,
}

impl WordLines {
    /// The word lines of flash of that speed.
    pub(super) fn of(timing: &Timing) -> Self {
        Self {
            bits: timing.bits(),
            native_at_once: timing.pages_at_once(CellMode::Native),
            single_at_once: timing.pages_at_once(CellMode::Single),
            one_shot: timing.cells.is_some_and(|cells| cells.one_shot),
        }
    }

    /// Pages that each plane of a die programs in one go, in a line of that mode.
    pub(super) fn at_once(self, mode: CellMode) -> u32 {
        match mode {
            CellMode::Native => self.native_at_once,
            CellMode::Single => self.single_at_once,
        }
    }
}

/// All lines of a drive.
#[derive(Clone, Debug)]
pub struct Lines {
    geometry: Geometry,
    shape: LineShape,
    order: FillOrder,
    word_lines: WordLines,
    pages_per_line: u32,
    /// Pages of a line that is filled at one bit a cell.
    pages_per_single: u32,
    /// Lines at one bit a cell that are not free.
    singles: u32,
    /// Those of them that are closed, the oldest first; may name lines that are not any more.
    single_by_age: VecDeque<(LineId, Seq)>,
    by_line: Divisor,
    lines: Vec<Line>,
    /// One bit a physical page: whether the map points at it.
    valid: Bits,
    /// Free lines of each group, the least worn first. Superblocks are one group, blocks a group
    /// for each unit.
    free: Vec<BinaryHeap<Reverse<(u32, LineId)>>>,
    free_count: u32,
    closed: Vec<LineId>,
    by_age: VecDeque<(LineId, Seq)>,
    /// Closed lines by kept pages, each list linked through its lines; none below `lowest`.
    by_kept: Vec<u32>,
    lowest: usize,
}

impl Lines {
    /// All lines free.
    pub(super) fn new(geometry: Geometry, shape: LineShape, word_lines: WordLines) -> Self {
        let groups = shape.groups(&geometry);
        let count = geometry.blocks() / shape.blocks_per_line(&geometry);
        let pages_per_line = shape.pages_per_line(&geometry);
        let line = Line {
            state: LineState::Victim,
            mode: CellMode::Native,
            valid: 0,
            missing: 0,
            erases: 0,
            closed_at: Seq(0),
            position: NIL,
            previous: NIL,
            next: NIL,
        };
        Self {
            geometry,
            shape,
            order: FillOrder::of(&geometry, shape, word_lines),
            word_lines,
            pages_per_line,
            pages_per_single: pages_per_line / word_lines.bits,
            singles: 0,
            single_by_age: VecDeque::new(),
            by_line: Divisor::new(pages_per_line),
            lines: vec![line; count as usize],
            valid: Bits::new(u64::from(geometry.pages())),
            free: vec![BinaryHeap::new(); groups as usize],
            free_count: 0,
            closed: Vec::new(),
            by_age: VecDeque::new(),
            by_kept: vec![NIL; pages_per_line as usize + 1],
            lowest: 0,
        }
    }

    /// Lines in all.
    pub fn count(&self) -> u32 {
        self.lines.len() as u32
    }

    /// Every line.
    pub fn ids(&self) -> impl Iterator<Item = LineId> + use<> {
        (0..self.count()).map(LineId)
    }

    /// Pages that a line has when none of its blocks is bad.
    pub fn pages_per_line(&self) -> u32 {
        self.pages_per_line
    }

    /// Pages that a line has in its mode when none of its blocks is bad.
    #[inline]
    pub fn pages_in(&self, line: LineId) -> u32 {
        match self.mode(line) {
            CellMode::Native => self.pages_per_line,
            CellMode::Single => self.pages_per_single,
        }
    }

    /// Returns how the cells of a line are filled.
    #[inline]
    pub fn mode(&self, line: LineId) -> CellMode {
        self.lines[line.0 as usize].mode
    }

    /// Lines at one bit a cell that are not free.
    pub fn singles(&self) -> u32 {
        self.singles
    }

    /// The closed line at one bit a cell that was filled first.
    pub fn oldest_single(&self) -> Option<LineId> {
        let is_current = |&&(line, at): &&(LineId, Seq)| self.is_closed_single(line, at);
        self.single_by_age.iter().find(is_current).map(|(line, _)| *line)
    }

    fn is_closed_single(&self, line: LineId, at: Seq) -> bool {
        let line = &self.lines[line.0 as usize];
        line.is_closed_since(at) && line.mode == CellMode::Single
    }

    /// Pages that a die programs in one go in a line of that mode, if it has as many.
    pub(crate) fn pages_at_once(&self, mode: CellMode) -> u32 {
        match self.word_lines.at_once(mode) {
            1 => 1,
            pages => self.geometry.planes_per_die * pages,
        }
    }

    /// Pages that a die cannot but program in one go in a line of that mode: a word line on all
    /// planes, or a page of the chip.
    pub(crate) fn least_at_once(&self, mode: CellMode) -> u32 {
        match mode {
            CellMode::Native if self.word_lines.one_shot => self.pages_at_once(mode),
            _ => self.word_lines.at_once(mode),
        }
    }

    /// Pages of a line of that mode that all units program in one go.
    pub(crate) fn pages_in_row(&self, mode: CellMode) -> u32 {
        self.geometry.units() * self.word_lines.at_once(mode)
    }

    /// Returns how blocks form lines.
    pub fn shape(&self) -> LineShape {
        self.shape
    }

    /// Groups of lines that are filled side by side by one stream: 1 for superblocks, the units for
    /// blocks.
    pub fn groups(&self) -> usize {
        self.free.len()
    }

    /// Page `index` of a line, in the order in which it is filled.
    #[inline(always)] // one branch and an addition, in loops over lines
    pub(crate) fn page(&self, line: LineId, index: u32) -> Ppn {
        match &self.order {
            FillOrder::Rows => Ppn(line.0 * self.pages_per_line + index),
            FillOrder::WordLines { native, single } => {
                let row = match self.mode(line) {
                    CellMode::Native => native,
                    CellMode::Single => single,
                };
                Ppn(line.0 * self.pages_per_line + row.place(index))
            }
            FillOrder::Block => self.geometry.ppn(BlockId(line.0), index),
        }
    }

    /// Index of the first page of a line from `from` on that the map points at.
    #[inline]
    pub(crate) fn next_valid(&self, line: LineId, from: u32) -> Option<u32> {
        let pages = self.pages_in(line);
        match self.order {
            FillOrder::Rows => {
                let first = u64::from(line.0 * self.pages_per_line);
                let ahead = first + u64::from(from)..first + u64::from(pages);
                let found = self.valid.next(ahead.start, ahead.end)?;
                Some((found - first) as u32)
            }
            _ => (from..pages).find(|&index| self.is_valid(self.page(line, index))),
        }
    }

    /// Shows the first `most` valid pages of a line from page `from` on, in the order in which they
    /// were filled.
    #[inline]
    pub(crate) fn each_valid(&self, line: LineId, from: u32, most: u32, mut show: impl FnMut(Ppn)) {
        let pages = self.pages_in(line);
        if let FillOrder::Rows = self.order {
            let first = line.0 * self.pages_per_line;
            let (mut next, end) = (u64::from(first + from), u64::from(first + pages));
            for _ in 0..most {
                let Some(found) = self.valid.next(next, end) else { return };
                show(Ppn(found as u32));
                next = found + 1;
            }
            return;
        }
        let in_order = (from..pages).map(|index| self.page(line, index));
        in_order.filter(|ppn| self.is_valid(*ppn)).take(most as usize).for_each(show);
    }

    /// The line that a page lies in.
    #[inline]
    pub fn line_of(&self, ppn: Ppn) -> LineId {
        match self.shape {
            LineShape::Superblock => LineId(self.by_line.quotient(ppn.0)),
            LineShape::Block => LineId(self.geometry.locate(ppn).0.0),
        }
    }

    /// The blocks of a line.
    pub fn blocks(&self, line: LineId) -> impl Iterator<Item = BlockId> + use<> {
        let width = self.shape.blocks_per_line(&self.geometry);
        (line.0 * width..(line.0 + 1) * width).map(BlockId)
    }

    /// Pages of a block that the map points at.
    pub fn valid_in(&self, block: BlockId) -> u32 {
        let pages = 0..self.geometry.pages_per_block;
        pages.filter(|page| self.is_valid(self.geometry.ppn(block, *page))).count() as u32
    }

    /// The group that a line belongs to.
    pub(super) fn group(&self, line: LineId) -> usize {
        line.0 as usize % self.free.len()
    }

    /// Returns where a line is in its life.
    pub fn state(&self, line: LineId) -> LineState {
        self.lines[line.0 as usize].state
    }

    /// Pages that the map points at.
    pub fn valid(&self, line: LineId) -> u32 {
        self.lines[line.0 as usize].valid
    }

    /// Pages that cleaning the line does not free: valid ones, and those on bad blocks.
    pub fn kept(&self, line: LineId) -> u32 {
        let line = &self.lines[line.0 as usize];
        line.valid + line.missing
    }

    /// Tells whether some of a line's blocks are bad.
    pub(super) fn has_bad_blocks(&self, line: LineId) -> bool {
        self.lines[line.0 as usize].missing > 0
    }

    /// Returns how often the line was erased.
    pub fn erases(&self, line: LineId) -> u32 {
        self.lines[line.0 as usize].erases
    }

    /// Returns when the line was filled, on the clock of program operations.
    pub fn closed_at(&self, line: LineId) -> Seq {
        self.lines[line.0 as usize].closed_at
    }

    /// The closed lines, in no particular order.
    pub fn closed(&self) -> &[LineId] {
        &self.closed
    }

    /// Free lines in all.
    pub fn free(&self) -> u32 {
        self.free_count
    }

    /// The closed line that keeps the fewest pages.
    pub fn least_kept(&self) -> Option<LineId> {
        let head = self.by_kept[self.lowest..].iter().find(|&&head| head != NIL)?;
        Some(LineId(*head))
    }

    /// The closed line that was filled first.
    pub fn oldest(&self) -> Option<LineId> {
        let current =
            |&&(line, at): &&(LineId, Seq)| self.lines[line.0 as usize].is_closed_since(at);
        self.by_age.iter().find(current).map(|(line, _)| *line)
    }

    /// Tells whether the map points at `ppn`.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid.get(u64::from(ppn.0))
    }

    /// Notes that the map points at `ppn`, a page of an open line.
    #[inline]
    pub(super) fn validate(&mut self, ppn: Ppn, line: LineId) {
        self.valid.set(u64::from(ppn.0));
        self.lines[line.0 as usize].valid += 1;
    }

    /// Notes that the map no longer points at `ppn`.
    #[inline]
    pub(super) fn invalidate(&mut self, ppn: Ppn) {
        self.valid.clear(u64::from(ppn.0));
        let id = self.line_of(ppn);
        if self.state(id) == LineState::Closed {
            self.unlink(id);
            self.lines[id.0 as usize].valid -= 1;
            self.link(id);
        } else {
            self.lines[id.0 as usize].valid -= 1;
        }
    }

    /// Takes the least worn free line of a group, to be filled in a mode.
    pub(super) fn open(&mut self, group: usize, mode: CellMode) -> Option<LineId> {
        let Reverse((_, id)) = self.free[group].pop()?;
        self.free_count -= 1;
        Some(self.opened(id, mode))
    }

    fn opened(&mut self, id: LineId, mode: CellMode) -> LineId {
        let line = &mut self.lines[id.0 as usize];
        (line.state, line.mode) = (LineState::Open, mode);
        self.singles += u32::from(mode == CellMode::Single);
        id
    }

    /// The least worn free line of the first group that has no bad block.
    pub(super) fn free_without_bad_blocks(&self) -> Option<LineId> {
        let free = self.free[0].iter().map(|Reverse(free)| *free);
        free.filter(|(_, id)| !self.has_bad_blocks(*id)).min().map(|(_, id)| id)
    }

    /// Takes this free line of the first group, to be filled in a mode.
    pub(super) fn open_this(&mut self, id: LineId, mode: CellMode) -> LineId {
        self.free[0].retain(|Reverse((_, free))| *free != id);
        self.free_count -= 1;
        self.opened(id, mode)
    }

    /// The line is full.
    pub(super) fn close(&mut self, id: LineId, now: Seq) {
        let position = self.closed.len() as u32;
        let line = &mut self.lines[id.0 as usize];
        line.state = LineState::Closed;
        line.closed_at = now;
        line.position = position;
        self.closed.push(id);
        if self.by_age.len() > 2 * self.lines.len() {
            let lines = &self.lines;
            self.by_age.retain(|&(line, at)| lines[line.0 as usize].is_closed_since(at));
        }
        self.by_age.push_back((id, now));
        if self.mode(id) == CellMode::Single {
            self.single_by_age.push_back((id, now));
        }
        self.link(id);
    }

    /// Lines were found by their numbers: the oldest are those that were closed first.
    pub(super) fn sort_by_age(&mut self) {
        self.by_age.make_contiguous().sort_by_key(|&(_, closed_at)| closed_at);
        self.single_by_age.make_contiguous().sort_by_key(|&(_, closed_at)| closed_at);
    }

    /// Takes a closed line out to clean it.
    pub(super) fn take_victim(&mut self, id: LineId) {
        self.unlink(id);
        let position = self.lines[id.0 as usize].position;
        self.closed.swap_remove(position as usize);
        if let Some(moved) = self.closed.get(position as usize) {
            self.lines[moved.0 as usize].position = position;
        }
        self.lines[id.0 as usize].state = LineState::Victim;
        self.forget_stale_ages();
    }

    fn forget_stale_ages(&mut self) {
        while let Some(&(line, at)) = self.by_age.front() {
            if self.lines[line.0 as usize].is_closed_since(at) {
                break;
            }
            self.by_age.pop_front();
        }
        while let Some(&(line, at)) = self.single_by_age.front() {
            if self.is_closed_single(line, at) {
                break;
            }
            self.single_by_age.pop_front();
        }
    }

    /// The blocks of a victim were erased once more; `missing` pages lie on bad blocks.
    pub(super) fn erased(&mut self, id: LineId, missing: u32) {
        let line = &mut self.lines[id.0 as usize];
        line.erases += 1;
        line.missing = missing;
        self.release(id);
    }

    /// Puts an erased line among the free ones, or among the dead where no block is good.
    fn release(&mut self, id: LineId) {
        let line = &mut self.lines[id.0 as usize];
        if std::mem::take(&mut line.mode) == CellMode::Single {
            self.singles -= 1;
        }
        if line.missing == self.pages_per_line {
            line.state = LineState::Dead;
            return;
        }
        line.state = LineState::Free;
        let erases = line.erases;
        let group = self.group(id);
        self.free[group].push(Reverse((erases, id)));
        self.free_count += 1;
    }

    /// A block of the line was marked bad.
    pub(super) fn lose_block(&mut self, id: LineId) {
        let closed = self.state(id) == LineState::Closed;
        if closed {
            self.unlink(id);
        }
        self.lines[id.0 as usize].missing += self.geometry.pages_per_block;
        if closed {
            self.link(id);
        }
    }

    /// Notes the mode of a line that is found when the drive starts.
    pub(super) fn found_mode(&mut self, id: LineId, mode: CellMode) {
        let before = std::mem::replace(&mut self.lines[id.0 as usize].mode, mode);
        debug_assert_eq!(before, CellMode::Native, "a line was found twice");
        self.singles += u32::from(mode == CellMode::Single);
    }

    /// Sets a line up as it is found when the drive starts; `missing` pages lie on bad blocks.
    pub(super) fn found(&mut self, id: LineId, erases: u32, missing: u32, found: FoundLine) {
        let line = &mut self.lines[id.0 as usize];
        (line.erases, line.missing) = (erases, missing);
        match found {
            FoundLine::Erased => self.release(id),
            FoundLine::Open => self.lines[id.0 as usize].state = LineState::Open,
            FoundLine::Filled(at) => self.close(id, at),
        }
    }

    /// Notes that the map points at `ppn`, found when the drive starts.
    pub(super) fn adopt(&mut self, ppn: Ppn) {
        let id = self.line_of(ppn);
        let closed = self.state(id) == LineState::Closed;
        if closed {
            self.unlink(id);
        }
        self.validate(ppn, id);
        if closed {
            self.link(id);
        }
    }

    fn link(&mut self, id: LineId) {
        let kept = self.list(id);
        let head = std::mem::replace(&mut self.by_kept[kept], id.0);
        let line = &mut self.lines[id.0 as usize];
        (line.previous, line.next) = (NIL, head);
        if head != NIL {
            self.lines[head as usize].previous = id.0;
        }
        self.lowest = self.lowest.min(kept);
    }

    fn unlink(&mut self, id: LineId) {
        let kept = self.list(id);
        let (previous, next) = (self.lines[id.0 as usize].previous, self.lines[id.0 as usize].next);
        match previous {
            NIL => self.by_kept[kept] = next,
            previous => self.lines[previous as usize].next = next,
        }
        if next != NIL {
            self.lines[next as usize].previous = previous;
        }
        while self.lowest < self.by_kept.len() - 1 && self.by_kept[self.lowest] == NIL {
            self.lowest += 1;
        }
    }

    /// The list that a line belongs in. A block that was lost while its pages were still valid
    /// counts twice until they have moved, hence the bound.
    fn list(&self, id: LineId) -> usize {
        self.kept(id).min(self.pages_per_line) as usize
    }

    /// Bytes of the drive's memory for validity bits and a valid count (four bytes) for each line.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.valid.memory_bytes() + self.lines.len() as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_nand::Cells;

    const GEOMETRY: Geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 4,
        page_bytes: 4096,
    };

    fn all_free(shape: LineShape) -> Lines {
        let mut lines = Lines::new(GEOMETRY, shape, WordLines::of(&Timing::default()));
        for id in lines.ids() {
            lines.found(id, 0, 0, FoundLine::Erased);
        }
        lines
    }

    #[test]
    fn pages_and_lines_agree_in_both_shapes() {
        for shape in [LineShape::Superblock, LineShape::Block] {
            let lines = all_free(shape);
            for id in lines.ids() {
                for index in 0..lines.pages_per_line() {
                    assert_eq!(lines.line_of(lines.page(id, index)), id);
                }
            }
        }
    }

    #[test]
    fn a_line_of_word_lines_names_every_page_once_and_in_the_order_of_its_blocks() {
        let geometry = Geometry { planes_per_die: 2, pages_per_block: 24, ..GEOMETRY };
        let cells = |one_shot| Cells {
            bits: 3,
            one_shot,
            parts: 4,
            read: Default::default(),
            program: Default::default(),
        };
        for (one_shot, mode) in
            [(true, CellMode::Native), (false, CellMode::Native), (true, CellMode::Single)]
        {
            let timing = Timing { cells: Some(cells(one_shot)), ..Timing::default() };
            let mut lines = Lines::new(geometry, LineShape::Superblock, WordLines::of(&timing));
            lines.ids().for_each(|id| lines.found(id, 0, 0, FoundLine::Erased));
            let line = lines.open(0, mode).unwrap();
            let mut filled = vec![0; geometry.blocks() as usize];
            for index in 0..lines.pages_in(line) {
                let (block, page) = geometry.locate(lines.page(line, index));
                assert_eq!(filled[block.0 as usize], page, "{one_shot} {mode:?} {index}");
                filled[block.0 as usize] += 1;
            }
            assert_eq!(filled.iter().sum::<u32>(), lines.pages_in(line));
            let units: Vec<_> = (0..lines.pages_at_once(mode))
                .map(|index| geometry.locate(lines.page(line, index)).0.0 % geometry.units())
                .collect();
            assert_eq!(
                [units[0], units[3], units[4], units[7]],
                [0, 0, 2, 2],
                "two planes of a die"
            );
            let whole = one_shot && mode == CellMode::Native;
            assert_eq!(lines.least_at_once(mode), if whole { 24 } else { 4 });
        }
    }

    #[test]
    fn the_line_that_keeps_least_and_the_oldest_are_found() {
        let mut lines = all_free(LineShape::Superblock);
        for (at, valid) in [(1, 5), (2, 3), (3, 4)] {
            let id = lines.open(0, CellMode::Native).unwrap();
            for index in 0..valid {
                lines.validate(lines.page(id, index), id);
            }
            lines.close(id, Seq(at));
        }
        assert_eq!(lines.least_kept(), Some(LineId(1)));
        assert_eq!(lines.oldest(), Some(LineId(0)));
        for index in 0..3 {
            lines.invalidate(lines.page(LineId(0), index));
        }
        assert_eq!(lines.least_kept(), Some(LineId(0)), "2 valid pages are left");
        lines.take_victim(LineId(0));
        assert_eq!((lines.least_kept(), lines.oldest()), (Some(LineId(1)), Some(LineId(1))));
        lines.erased(LineId(0), 0);
        assert_eq!(lines.free(), 2);
        assert_eq!(lines.open(0, CellMode::Native), Some(LineId(3)), "less worn than line 0");
    }

    #[test]
    fn a_line_whose_blocks_are_all_bad_is_dead() {
        let mut lines = all_free(LineShape::Superblock);
        let id = lines.open(0, CellMode::Native).unwrap();
        lines.close(id, Seq(0));
        lines.take_victim(id);
        lines.erased(id, lines.pages_per_line());
        assert_eq!((lines.state(id), lines.free()), (LineState::Dead, 3));
    }
}
