//! The six logs: where the next block of each kind goes.
//!
//! A log appends to a free segment (LFS) or, when those are few, fills the holes of a used one (SSR). Its summary, which
//! says who owns each block, is in memory until the log moves on.

use dovetail_block::Scheduler;
use std::sync::Arc;

use super::F2fs;
use super::io::{Cause, Channel};
use super::options::{AllocMode, Mode};
use super::policy::{Log, need_ssr};
use crate::error::{Corrupt, Error};
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, SegNo, Summary, SummaryKind, ssa_address, summaries, summary_block,
};

/// The segment that a log writes in.
#[derive(Debug)]
pub(super) struct CurrentSegment {
    pub(super) segno: SegNo,
    /// Where the next block goes.
    pub(super) next: u32,
    /// It fills holes.
    pub(super) in_holes: bool,
    pub(super) summaries: Box<[Summary; 512]>,
}

impl CurrentSegment {
    /// Of a volume that has no segments.
    pub(super) fn none() -> Self {
        Self {
            segno: SegNo(u32::MAX),
            next: 0,
            in_holes: false,
            summaries: Box::new([Summary::default(); 512]),
        }
    }
}

impl<D: Scheduler> F2fs<D> {
    /// A log writes in this segment.
    pub(super) fn is_current(&self, segno: SegNo) -> bool {
        self.logs.iter().any(|log| log.segno == segno)
    }

    /// Where the log will write next.
    pub(super) fn next_address(&self, log: Log) -> BlockAddr {
        if let Some(endless) = &self.endless {
            return endless.next_address(log);
        }
        let current = &self.logs[log.index()];
        self.segments.address(current.segno, current.next)
    }

    /// Takes the next block of the log for `owner`.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if neither a free segment nor a hole is left; on an endless volume if the device has no room.
    pub(super) fn allocate(&mut self, log: Log, owner: Summary) -> Result<BlockAddr, Error> {
        if self.endless.is_some() {
            return self.append(log);
        }
        let now_s = self.elapsed_s();
        self.leave_full_segment(log)?;
        let current = &mut self.logs[log.index()];
        let (segno, offset) = (current.segno, current.next);
        current.summaries[offset as usize] = owner;
        let address = self.segments.address(segno, offset);
        self.segments.set_valid(address, now_s);
        let segment = self.segments.get(segno);
        current.next = if current.in_holes { segment.next_hole(offset + 1) } else { offset + 1 };
        let (full, in_holes) = (current.next >= BLOCKS_IN_SEGMENT, current.in_holes);
        *if in_holes { &mut self.events.ssr_blocks } else { &mut self.events.lfs_blocks } += 1;
        self.discards.keep(address.low(), 1);
        match if full { self.next_segment(log) } else { Ok(()) } {
            // the block is taken all the same; the log goes on elsewhere when there is room again
            Err(Error::NoSpace) => self.since.chain_broken |= log == Log::WarmNode,
            moved => moved?,
        }
        Ok(address)
    }

    /// Goes on in another segment if there was none when the log filled its own.
    pub(super) fn leave_full_segment(&mut self, log: Log) -> Result<(), Error> {
        let has_room = self.endless.is_some() || self.logs[log.index()].next < BLOCKS_IN_SEGMENT;
        if has_room { Ok(()) } else { self.next_segment(log) }
    }

    /// The block is no longer used. Its place can be written again after the next checkpoint.
    ///
    /// # Errors
    /// [`Corrupt::NotValid`].
    pub(super) fn free_block(&mut self, address: BlockAddr) -> Result<(), Corrupt> {
        if self.io.places().has(address) {
            self.physical.give_up(address);
            return Ok(());
        }
        if !self.superblock.in_main(address) {
            return Err(Corrupt::NotValid(address));
        }
        if self.endless.is_some() {
            return self.give_up(address);
        }
        self.forget_update(address);
        let now_s = self.elapsed_s();
        let (segno, _) = self.segments.place(address);
        let current = self.is_current(segno);
        let was_valid = self.segments.set_invalid(address, now_s, current);
        if was_valid { Ok(()) } else { Err(Corrupt::NotValid(address)) }
    }

    /// Ends the log's segment and goes on in another one.
    pub(super) fn next_segment(&mut self, log: Log) -> Result<(), Error> {
        let old = self.logs[log.index()].segno;
        self.write_summary(log)?;
        if let Some(next) = self.following_segment(log) {
            self.append_in(log, next);
        } else if let Some(victim) = self.hole_segment(log) {
            self.fill_holes_of(log, victim)?;
        } else if let Some(next) = self.free_segment(log) {
            self.append_in(log, next);
        } else if let Some(victim) = self.any_hole_segment(log) {
            self.fill_holes_of(log, victim)?;
        } else {
            return Err(Error::NoSpace);
        }
        self.segments.close(old);
        Ok(())
    }

    /// Moves the log to a free segment, whatever is left in its own.
    pub(super) fn move_log(&mut self, log: Log) -> Result<(), Error> {
        let old = self.logs[log.index()].segno;
        let next = self.free_segment(log).ok_or(Error::NoSpace)?;
        self.write_summary(log)?;
        self.append_in(log, next);
        self.segments.close(old);
        Ok(())
    }

    /// Writes the summary of the log's segment to its place in the summary area.
    fn write_summary(&mut self, log: Log) -> Result<(), Error> {
        let current = &self.logs[log.index()];
        let kind = if log.is_node() { SummaryKind::Node } else { SummaryKind::Data };
        let block = Arc::new(summary_block(&current.summaries, kind));
        let address = ssa_address(&self.superblock, current.segno);
        self.io.write_bytes(Channel::META, Cause::Ssa, address, block)?;
        Ok(())
    }

    fn append_in(&mut self, log: Log, segno: SegNo) {
        self.segments.open(segno, log as u8);
        let current = &mut self.logs[log.index()];
        (current.segno, current.next, current.in_holes) = (segno, 0, false);
        current.summaries.fill(Summary::default());
        self.discards.keep(self.segments.address(segno, 0).low(), BLOCKS_IN_SEGMENT);
    }

    fn fill_holes_of(&mut self, log: Log, segno: SegNo) -> Result<(), Error> {
        let block = self.io.read(ssa_address(&self.superblock, segno))?;
        self.segments.open(segno, log as u8);
        let next = self.segments.get(segno).next_hole(0);
        self.logs[log.index()] = CurrentSegment { segno, next, in_holes: true, summaries: summaries(&block) };
        Ok(())
    }

    /// The next segment of the same section, if the log appends and that one is free.
    fn following_segment(&self, log: Log) -> Option<SegNo> {
        let current = &self.logs[log.index()];
        let next = SegNo(current.segno.0 + 1);
        let same = next.0 < self.segments.len()
            && self.segments.section_of(next) == self.segments.section_of(current.segno);
        (!current.in_holes && same && !self.segments.get(next).in_use).then_some(next)
    }

    /// A segment whose holes the log should fill; `None` while free segments are plenty. The log of fsync records takes
    /// free segments as long as there are any: Linux 6.12's own counters fit this and nothing else (`tests/truth.rs`).
    fn hole_segment(&self, log: Log) -> Option<SegNo> {
        let wanted = log != Log::WarmNode && need_ssr(&self.space_facts());
        if wanted { self.any_hole_segment(log) } else { None }
    }

    /// A segment with holes: of the log's own type, or of another one of the same class (Linux 6.1: for hot logs the
    /// next colder first, otherwise the hottest first).
    fn any_hole_segment(&self, log: Log) -> Option<SegNo> {
        if self.options.mode == Mode::Lfs || self.recovering {
            return None;
        }
        let base = if log.is_node() { 3 } else { 0 };
        let order: [u8; 3] = match log as u8 - base {
            0 => [0, 1, 2],
            1 => [1, 0, 2],
            _ => [2, 0, 1],
        };
        let may_fill =
            |segno| !self.is_current(segno) && !self.cleaner.is_at(self.segments.section_of(segno));
        order.iter().find_map(|kind| self.segments.emptiest_with_holes(base + kind, may_fill))
    }

    /// A free segment in the first free section from where the log's search begins. A zone in which another log
    /// writes is avoided once.
    pub(super) fn free_segment(&self, log: Log) -> Option<SegNo> {
        let sections = self.segments.sections();
        let from_start = log.is_node() || log == Log::HotData || self.alloc_mode == AllocMode::Reuse;
        let start = if from_start { 0 } else { self.segments.section_of(self.logs[log.index()].segno) };
        let free = |from: u32| {
            let order = (from..sections).chain(0..from);
            order.into_iter().find(|&section| self.segments.is_section_free(section))
        };
        let first = free(start.min(sections.saturating_sub(1)))?;
        let section = if self.zone_is_taken(log, first) {
            let per_zone = self.superblock.sections_per_zone;
            let beyond = (first / per_zone + 1) * per_zone;
            free(if beyond < sections { beyond } else { 0 }).unwrap_or(first)
        } else {
            first
        };
        self.segments.segments_of(section).next()
    }

    fn zone_is_taken(&self, log: Log, section: u32) -> bool {
        let zone = |section: u32| section / self.superblock.sections_per_zone;
        let others = self.logs.iter().enumerate().filter(|(index, _)| *index != log.index());
        others.into_iter().any(|(_, other)| zone(self.segments.section_of(other.segno)) == zone(section))
    }
}
