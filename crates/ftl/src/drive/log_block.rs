//! A log-block map at work: log lines are opened, filled and merged as its scheme says
//! (`log_block/`).
//!
//! Merges copy in the foreground: the write that needs a log line waits for them as for cleaning.
//! A line that they empty waits for its erase as a cleaned one does, so that power cuts find the
//! newest version of each page whatever they interrupt. Lines that merges do not empty (of the
//! drive's own pages, with bad blocks, left by power cuts) are cleaned page by page when free lines
//! run short.

use std::collections::BTreeSet;

use dovetail_block::DeviceError;
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::SimTime;

use super::Drive;
use super::program::no_room;
use super::relocate::Moving;
use super::write::add_until;
use crate::lines::{LineId, LineState};
use crate::log_block::{FIRST_LOG, Log, LogBlockConfig, LogScheme, MERGED, Place, Step};
use crate::medium::FrontierId;
use crate::stats::Cause;

/// The way in which a log line becomes a data line, or makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    Switch,
    Partial(FrontierId),
    Full,
}

/// The pages of the host's that count in a line.
#[derive(Clone, Debug)]
struct Contents {
    /// Their logical blocks.
    blocks: BTreeSet<u64>,
    /// Set if each of them has its own place.
    in_place: bool,
    /// Set if pages of the drive's own count there, too.
    own: bool,
}

impl Contents {
    /// The logical block, if there is one alone.
    fn single(&self) -> Option<u64> {
        self.blocks.first().copied().filter(|_| self.blocks.len() == 1)
    }
}

impl Drive {
    /// The place of a page in a log-block map.
    fn place_of(&self, lpn: Lpn) -> Place {
        let pages = u64::from(self.medium.lines().pages_per_line());
        Place { block: lpn.0 / pages, offset: (lpn.0 % pages) as u32 }
    }

    fn page_of(&self, block: u64, offset: u32) -> Lpn {
        Lpn(block * u64::from(self.medium.lines().pages_per_line()) + u64::from(offset))
    }

    /// The flash page of a page of a block, if it has one; the last block may have fewer pages than
    /// a line.
    fn flash_page_of(&self, block: u64, offset: u32) -> Option<Ppn> {
        let lpn = self.page_of(block, offset);
        let exists = lpn.0 < self.config.host_pages();
        if exists { self.translation.lookup(lpn).0 } else { None }
    }

    /// Bytes of a log-block map: four for each logical block, and for each page of a log line.
    pub(super) fn log_map_bytes(&self, map: LogBlockConfig) -> u64 {
        let pages = u64::from(self.medium.lines().pages_per_line());
        let blocks = self.config.capacity_pages().div_ceil(pages);
        4 * (blocks + u64::from(map.log_lines) * pages)
    }

    /// The frontier that a page of the host's is appended to; log lines are merged first, as
    /// needed.
    pub(super) fn log_target(&mut self, at: SimTime, lpn: Lpn) -> Result<FrontierId, DeviceError> {
        let place = self.place_of(lpn);
        loop {
            self.note_filled_logs();
            let next = self.next_in_a_row();
            let Some(logs) = &self.log_blocks else { return Err(no_room()) };
            match logs.step(place, next) {
                Step::Append(frontier) => return Ok(frontier),
                Step::Merge(index) => self.merge_log(at, index)?,
                Step::Open(owner) => return self.open_log(at, owner),
            }
        }
    }

    /// The index of the next page of the log line for writes in a row.
    fn next_in_a_row(&self) -> Option<u32> {
        let sequential = self.log_blocks.as_ref()?.sequential()?;
        self.medium.line_in(sequential.frontier?).map(|(_, next)| next)
    }

    /// Opens a log line. When no line is free its pages go where there is room.
    fn open_log(&mut self, at: SimTime, owner: Option<u64>) -> Result<FrontierId, DeviceError> {
        self.make_room(at)?;
        let elsewhere = FrontierId(FIRST_LOG - 1);
        let Some(frontier) = self.log_blocks.as_ref().and_then(|logs| logs.free_frontier()) else {
            return Ok(elsewhere);
        };
        if self.medium.line_in(frontier).is_some() {
            self.medium.close_line(frontier);
        }
        let Some(line) = self.open_free_line(at, frontier)? else { return Ok(elsewhere) };
        if let Some(logs) = &mut self.log_blocks {
            logs.push(Log { line, owner, frontier: Some(frontier) });
        }
        Ok(frontier)
    }

    /// Opens a free line; erases what waits for it, if there is none.
    fn open_free_line(
        &mut self,
        at: SimTime,
        frontier: FrontierId,
    ) -> Result<Option<LineId>, DeviceError> {
        loop {
            if let Some(line) = self.medium.open_in(frontier) {
                return Ok(Some(line));
            }
            if !self.erase_next(at)? {
                return Ok(None);
            }
        }
    }

    /// Notes which log lines are full. A frontier may have gone on to another line, where programs
    /// failed: the new one is a log line, too.
    fn note_filled_logs(&mut self) {
        let Some(logs) = &mut self.log_blocks else { return };
        for index in 0..logs.logs().len() {
            let Log { line, owner, frontier } = logs.logs()[index];
            let Some(frontier) = frontier else { continue };
            let open = self.medium.has_page_left(frontier);
            match self.medium.line_in(frontier).filter(|_| open) {
                Some((now, _)) if now == line => {}
                Some((line, _)) => {
                    logs.filled(index);
                    logs.push(Log { line, owner, frontier: Some(frontier) });
                }
                None => logs.filled(index),
            }
        }
    }

    /// The dirty page of `first` and others that go to the same log line: those in a row behind it,
    /// then others in the order in which pages leave the buffer, `most` at most.
    pub(super) fn pages_for_log(
        &mut self,
        first: Lpn,
        frontier: FrontierId,
        most: usize,
    ) -> Vec<Lpn> {
        let Place { block, offset } = self.place_of(first);
        let row = offset + 1..self.medium.lines().pages_per_line();
        let row = row.map(|offset| self.page_of(block, offset));
        let is_dirty = |lpn: &Lpn| self.buffer.is_dirty(*lpn);
        let mut pages = vec![first];
        pages.extend(row.take_while(is_dirty).take(most.saturating_sub(1)));
        let Some(logs) = &self.log_blocks else { return pages };
        let sequential = logs.sequential().copied();
        let is_in_a_row = sequential.is_some_and(|log| log.frontier == Some(frontier));
        match logs.scheme() {
            LogScheme::Bast => {
                let is_of_block = |lpn| self.place_of(lpn).block == block;
                let others = self.buffer.by_age().filter(|entry| is_of_block(entry.lpn));
                add_until(&mut pages, most, others);
            }
            LogScheme::Fast if is_in_a_row => {}
            LogScheme::Fast => {
                let next = self.next_in_a_row();
                let is_shared = |lpn| {
                    let Place { block, offset } = self.place_of(lpn);
                    let owner = sequential.and_then(|log| log.owner);
                    offset != 0 && (owner != Some(block) || next != Some(offset))
                };
                let others = self.buffer.by_age().filter(|entry| is_shared(entry.lpn));
                add_until(&mut pages, most, others);
            }
        }
        pages
    }

    /// Merges a log line with the data lines of its pages.
    fn merge_log(&mut self, at: SimTime, index: usize) -> Result<(), DeviceError> {
        let line = self.log_blocks.as_ref().map(|logs| logs.logs()[index].line);
        self.make_room(at)?;
        let Some(logs) = &mut self.log_blocks else { return Ok(()) };
        let Some(index) = logs.logs().iter().position(|log| Some(log.line) == line) else {
            return Ok(()); // it was cleaned for room
        };
        let log = logs.remove(index);
        let Contents { blocks, in_place, own } = self.contents(log.line);
        let single = log.owner.filter(|owner| blocks.len() == 1 && blocks.contains(owner));
        match single.map_or(Merge::Full, |block| self.merge_of(log, block, in_place && !own)) {
            Merge::Switch => self.counters.switch_merges += 1,
            Merge::Partial(frontier) => {
                let next = self.medium.line_in(frontier).map_or(0, |(_, next)| next);
                self.copy_block(at, log.owner.unwrap_or(0), next, frontier)?;
                self.counters.partial_merges += 1;
            }
            Merge::Full => {
                for block in blocks {
                    self.merge_block(at, block)?;
                }
                if let Some(frontier) = log.frontier {
                    self.medium.close_line(frontier);
                }
            }
        }
        self.give_up_empty_lines(Some(log.line));
        self.level_wear(at)
    }

    /// Merges the block of the least worn line when static wear levelling is due: the line of a
    /// block that is never written again would stay young for ever. A log line or one of the
    /// drive's own pages is soon merged or written again.
    fn level_wear(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let Some(line) = self.cleaner.worn_apart(self.medium.lines()) else { return Ok(()) };
        let contents = self.contents(line);
        let Some(block) = contents.single().filter(|_| contents.in_place && !contents.own) else {
            return Ok(());
        };
        self.counters.wear_runs += 1;
        self.merge_block(at, block)
    }

    /// The merge of a log line of one block.
    fn merge_of(&self, log: Log, block: u64, in_place: bool) -> Merge {
        let pages = self.medium.lines().pages_per_line();
        let filled = log.frontier.and_then(|frontier| self.medium.line_in(frontier));
        let filled = filled.map_or(pages, |(_, next)| next);
        let is_here = |offset| {
            let found = self.flash_page_of(block, offset);
            found.is_none_or(|ppn| self.medium.lines().line_of(ppn) == log.line)
        };
        match log.frontier {
            _ if !in_place || !(0..filled).all(is_here) => Merge::Full,
            Some(frontier) => Merge::Partial(frontier),
            None => Merge::Switch,
        }
    }

    /// Copies the newest pages of a block to a free line.
    fn merge_block(&mut self, at: SimTime, block: u64) -> Result<(), DeviceError> {
        self.make_room(at)?;
        if (0..self.medium.lines().pages_per_line())
            .all(|offset| self.flash_page_of(block, offset).is_none())
        {
            return Ok(()); // discarded, or moved for room
        }
        self.medium.close_line(MERGED);
        if self.open_free_line(at, MERGED)?.is_none() {
            return Err(no_room());
        }
        self.copy_block(at, block, 0, MERGED)?;
        self.counters.full_merges += 1;
        self.give_up_empty_lines(None);
        Ok(())
    }

    /// Copies the pages of a block from an index on to their places in the line of a frontier, a
    /// row at a time, and closes the line.
    fn copy_block(
        &mut self,
        at: SimTime,
        block: u64,
        from: u32,
        to: FrontierId,
    ) -> Result<(), DeviceError> {
        let pages = self.medium.lines().pages_per_line();
        let (mut offset, mut left) = (from, BTreeSet::new());
        while offset < pages {
            let end = (offset + self.medium.pages_left_in_row(to).max(1)).min(pages);
            self.copy_row(at, (block, offset..end), to, &mut left)?;
            offset = end;
        }
        self.complete_word_lines()?;
        self.medium.skip_to(to, pages)?;
        self.medium.close_line(to);
        for line in left {
            self.give_up_if_empty(line);
        }
        Ok(())
    }

    /// Reads the pages of a block with these indices, and programs them when the last one is read.
    /// Notes the lines that they leave.
    fn copy_row(
        &mut self,
        at: SimTime,
        (block, offsets): (u64, std::ops::Range<u32>),
        to: FrontierId,
        left: &mut BTreeSet<LineId>,
    ) -> Result<(), DeviceError> {
        let mut ready = at;
        let mut row: Vec<(u32, Moving)> = Vec::with_capacity(offsets.len());
        for offset in offsets {
            let Some(ppn) = self.flash_page_of(block, offset) else { continue };
            let mut moving = self.moving(ppn);
            ready = ready.max(self.read_moving(at, &mut moving)?);
            row.push((offset, moving));
        }
        for (offset, moving) in row {
            self.medium.skip_to(to, offset)?;
            self.move_read_page_to(ready, moving, Some(to), Cause::Merge)?;
            left.insert(self.medium.lines().line_of(moving.ppn));
        }
        Ok(())
    }

    /// Hands closed lines without valid pages over to be erased, and this one if it is one.
    fn give_up_empty_lines(&mut self, line: Option<LineId>) {
        if let Some(line) = line {
            self.give_up_if_empty(line);
        }
        while let Some(line) = self.medium.lines().least_kept()
            && self.give_up_if_empty(line)
        {}
    }

    /// Hands a line over to be erased if nothing counts there; tells whether it was.
    fn give_up_if_empty(&mut self, line: LineId) -> bool {
        let lines = self.medium.lines();
        if lines.state(line) != LineState::Closed || lines.valid(line) > 0 {
            return false;
        }
        if let Some(logs) = &mut self.log_blocks {
            logs.forget(line);
        }
        self.medium.take_victim(line);
        self.cleaner.await_erase(line, self.all_durable_at());
        true
    }

    /// The pages that count in a line.
    fn contents(&self, line: LineId) -> Contents {
        let mut contents = Contents { blocks: BTreeSet::new(), in_place: true, own: false };
        for index in 0..self.medium.lines().pages_in(line) {
            let ppn = self.medium.lines().page(line, index);
            if !self.medium.lines().is_valid(ppn) {
                continue;
            }
            let lpn = self.owner(ppn).0;
            if self.translation.is_own(lpn) {
                contents.own = true;
                continue;
            }
            let place = self.place_of(lpn);
            contents.in_place &= place.offset == index;
            contents.blocks.insert(place.block);
        }
        contents
    }

    /// Finds the log lines after a power cut. Open lines are those that were being filled; of the
    /// closed ones those are log lines in which pages lie out of place. A line that is neither of
    /// one block nor of the drive's own pages counts as shared.
    pub(super) fn adopt_logs(&mut self) {
        let Some(map) = self.config.log_block else { return };
        let mut closed: Vec<LineId> = self.medium.lines().closed().to_vec();
        closed.sort_unstable_by_key(|&line| (self.medium.lines().closed_at(line), line));
        let open = (0..self.medium.frontiers()).map(FrontierId);
        let open: Vec<LineId> =
            open.filter_map(|frontier| Some(self.medium.line_in(frontier)?.0)).collect();
        let (mut logs, mut wanted, mut own) = (Vec::new(), Vec::new(), None);
        for line in closed {
            let contents = self.contents(line);
            if !contents.in_place && !contents.own {
                let owner = contents.single().filter(|_| map.scheme == LogScheme::Bast);
                logs.push(Log { line, owner, frontier: None });
            }
        }
        let mut frontiers =
            (FIRST_LOG..FIRST_LOG + map.frontiers() as usize).map(FrontierId).peekable();
        for line in open {
            let contents = self.contents(line);
            if contents.own {
                own = own.or(Some(line));
            } else if self.medium.lines().valid(line) > 0 && frontiers.peek().is_some() {
                let has_one = logs.iter().any(|log: &Log| log.owner.is_some());
                let owner = contents.single().filter(|_| match map.scheme {
                    LogScheme::Bast => true,
                    LogScheme::Fast => contents.in_place && !has_one,
                });
                let frontier = frontiers.next();
                wanted.extend(frontier.map(|frontier| (line, frontier)));
                logs.push(Log { line, owner, frontier });
            }
        }
        wanted.extend(own.map(|line| (line, FrontierId(FIRST_LOG - 1))));
        self.medium.rearrange(&wanted);
        if let Some(blocks) = &mut self.log_blocks {
            logs.into_iter().for_each(|log| blocks.push(log));
        }
        self.give_up_empty_lines(None);
    }

    /// Checks that log lines are what the list of them says.
    pub(super) fn check_logs(&self) -> Result<(), String> {
        let logs = self.log_blocks.as_ref().map_or(&[][..], |logs| logs.logs());
        for log in logs {
            let state = self.medium.lines().state(log.line);
            let open = log.frontier.and_then(|frontier| self.medium.line_in(frontier));
            let is_open = open.is_some_and(|(line, _)| line == log.line);
            let fits = match state {
                LineState::Open => is_open,
                LineState::Closed => !is_open,
                _ => false,
            };
            if !fits {
                return Err(format!("{log:?} is {state:?}, its frontier fills {open:?}"));
            }
        }
        Ok(())
    }
}
