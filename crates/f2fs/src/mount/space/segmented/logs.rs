//! The six logs: the next block of each kind goes to the segment that its log has open.
//!
//! A log appends to a free segment (LFS) or, when those are few, fills the holes of a used one
//! (SSR). Its summary, which says who owns each block, is in memory until the next
//! checkpoint.

use std::sync::Arc;

use dovetail_block::{BlockBytes, Scheduler};

use super::super::super::io::{Channel, Io, WriteClass};
use super::super::super::options::AllocMode;
use super::super::super::policy::{Log, need_ssr};
use super::super::Demand;
use super::SegmentSpace;
use crate::error::Error;
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, LogPosition, SegNo, Summary, SummaryKind, summaries,
    summary_block,
};

/// The segment that a log writes in.
#[derive(Debug)]
pub(super) struct CurrentSegment {
    pub(super) segno: SegNo,
    /// The offset of the next block.
    pub(super) next: u32,
    /// It fills holes.
    pub(super) in_holes: bool,
    pub(super) summaries: Box<[Summary; 512]>,
}

impl CurrentSegment {
    /// The log's position as a checkpoint has it.
    pub(super) fn position(&self) -> LogPosition {
        LogPosition { segment: self.segno, offset: self.next as u16, in_holes: self.in_holes }
    }
}

impl SegmentSpace {
    /// A log writes in this segment.
    pub(super) fn is_current(&self, segno: SegNo) -> bool {
        self.logs.iter().any(|log| log.segno == segno)
    }

    /// The log goes on in another segment before its next block.
    pub(crate) fn is_segment_full(&self, log: Log) -> bool {
        let current = &self.logs[log.index()];
        current.next >= self.usable_blocks(current.segno)
    }

    pub(super) fn summary_address(&self, segno: SegNo) -> BlockAddr {
        self.ssa_start.plus(segno.0.into())
    }

    /// Ends the log's segment and goes on in another one.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if neither a free segment nor a hole is left; [`Error::Io`].
    pub(crate) fn next_segment<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        log: Log,
        demand: &Demand,
    ) -> Result<(), Error> {
        let old = self.logs[log.index()].segno;
        self.leave_summary(log);
        if let Some(next) = self.following_segment(log) {
            self.append_in(log, next);
        } else if let Some(victim) = self.hole_segment(log, demand) {
            self.fill_holes_of(io, log, victim)?;
        } else if let Some(next) = self.free_segment(log) {
            self.prepare_zone(io, next)?;
            self.append_in(log, next);
        } else if let Some(victim) = self.any_hole_segment(log, demand) {
            self.fill_holes_of(io, log, victim)?;
        } else {
            return Err(Error::NoSpace);
        }
        self.segments.close(old);
        Ok(())
    }

    /// Moves the log to a free segment, whatever is left in its own.
    pub(super) fn move_log<D: Scheduler>(&mut self, io: &mut Io<D>, log: Log) -> Result<(), Error> {
        let old = self.logs[log.index()].segno;
        let next = self.free_segment(log).ok_or(Error::NoSpace)?;
        self.leave_summary(log);
        self.prepare_zone(io, next)?;
        self.append_in(log, next);
        self.segments.close(old);
        Ok(())
    }

    /// Keeps the summary of the log's segment for the summary area.
    fn leave_summary(&mut self, log: Log) {
        let current = &self.logs[log.index()];
        let kind = if log.is_node() { SummaryKind::Node } else { SummaryKind::Data };
        self.waiting_summaries
            .insert(current.segno, Arc::new(summary_block(&current.summaries, kind)));
    }

    /// Writes the summaries that wait, in order.
    pub(super) fn write_waiting_summaries<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
    ) -> Result<(), Error> {
        for (segno, block) in std::mem::take(&mut self.waiting_summaries) {
            io.write_bytes(Channel::META, WriteClass::Ssa, self.summary_address(segno), block)?;
        }
        Ok(())
    }

    /// The block that the summary area has, or will have, of a segment.
    pub(super) fn summary<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        segno: SegNo,
    ) -> Result<Arc<BlockBytes>, Error> {
        match self.waiting_summaries.get(&segno) {
            Some(block) => Ok(Arc::clone(block)),
            None => Ok(io.read(self.summary_address(segno))?),
        }
    }

    fn append_in(&mut self, log: Log, segno: SegNo) {
        debug_assert!(!self.victims.is_at(self.segments.section_of(segno)), "it is being cleaned");
        self.segments.open(segno, log as u8);
        let current = &mut self.logs[log.index()];
        (current.segno, current.next, current.in_holes) = (segno, 0, false);
        current.summaries.fill(Summary::default());
        self.discards.keep(self.segments.address(segno, 0).low(), BLOCKS_IN_SEGMENT);
    }

    fn fill_holes_of<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        log: Log,
        segno: SegNo,
    ) -> Result<(), Error> {
        debug_assert!(!self.victims.is_at(self.segments.section_of(segno)), "it is being cleaned");
        let block = self.summary(io, segno)?;
        self.segments.open(segno, log as u8);
        let next = self.segments.get(segno).next_hole(0);
        self.logs[log.index()] =
            CurrentSegment { segno, next, in_holes: true, summaries: summaries(&block) };
        Ok(())
    }

    /// The next segment of the same section, if the log appends and that one is free.
    fn following_segment(&self, log: Log) -> Option<SegNo> {
        let current = &self.logs[log.index()];
        let next = SegNo(current.segno.0 + 1);
        let same = next.0 < self.segments.len()
            && self.segments.section_of(next) == self.segments.section_of(current.segno);
        let is_free = || !self.segments.get(next).in_use && self.usable_blocks(next) > 0;
        (!current.in_holes && same && is_free()).then_some(next)
    }

    /// A segment whose holes the log should fill; `None` while free segments are plenty. The log of
    /// fsync records takes free segments as long as there are any: Linux 6.12's own counters fit
    /// this and nothing else (`tests/truth.rs`).
    fn hole_segment(&self, log: Log, demand: &Demand) -> Option<SegNo> {
        let wanted = log != Log::WarmNode && need_ssr(&self.facts(demand));
        if wanted { self.any_hole_segment(log, demand) } else { None }
    }

    /// A segment with holes: of the log's own type, or of another one of the same class (Linux 6.1:
    /// for hot logs the next colder first, otherwise the hottest first).
    fn any_hole_segment(&self, log: Log, demand: &Demand) -> Option<SegNo> {
        if self.lfs || demand.recovering {
            return None;
        }
        let base = if log.is_node() { 3 } else { 0 };
        let order: [u8; 3] = match log as u8 - base {
            0 => [0, 1, 2],
            1 => [1, 0, 2],
            _ => [2, 0, 1],
        };
        let may_fill =
            |segno| !self.is_current(segno) && !self.victims.is_at(self.segments.section_of(segno));
        order.iter().find_map(|kind| self.segments.emptiest_with_holes(base + kind, may_fill))
    }

    /// A free segment in the first free section from where the log's search begins. A zone in which
    /// another log writes is avoided once.
    pub(super) fn free_segment(&self, log: Log) -> Option<SegNo> {
        let sections = self.segments.sections();
        let own = self.segments.section_of(self.logs[log.index()].segno);
        if let Some(zones) = &self.zones {
            return self.free_zone(own.max(zones.layout().first_sequential()));
        }
        let from_start = log.is_node() || log == Log::HotData || self.alloc == AllocMode::Reuse;
        let start = if from_start { 0 } else { own };
        let free = |from: u32| {
            let order = (from..sections).chain(0..from);
            order.into_iter().find(|&section| self.segments.is_section_free(section))
        };
        let first = free(start.min(sections.saturating_sub(1)))?;
        let section = if self.zone_is_taken(log, first) {
            let per_zone = self.sections_per_zone;
            let beyond = (first / per_zone + 1) * per_zone;
            free(if beyond < sections { beyond } else { 0 }).unwrap_or(first)
        } else {
            first
        };
        self.segments.segments_of(section).next()
    }

    /// The first free section from this one on, or from the volume's start: conventional zones come
    /// last (Linux 6.12, by experiment; `blkzone_alloc_policy` 0).
    fn free_zone(&self, from: u32) -> Option<SegNo> {
        let mut order = (from..self.segments.sections()).chain(0..from);
        let section = order.find(|&section| self.segments.is_section_free(section))?;
        self.segments.segments_of(section).next()
    }

    fn zone_is_taken(&self, log: Log, section: u32) -> bool {
        let zone = |section: u32| section / self.sections_per_zone;
        let others = self.logs.iter().enumerate().filter(|(index, _)| *index != log.index());
        others
            .into_iter()
            .any(|(_, other)| zone(self.segments.section_of(other.segno)) == zone(section))
    }

    /// The summary of a segment, in memory if a log writes there.
    pub(super) fn summaries_of<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        segno: SegNo,
    ) -> Result<Box<[Summary; 512]>, Error> {
        if let Some(log) = self.logs.iter().find(|log| log.segno == segno) {
            return Ok(log.summaries.clone());
        }
        Ok(summaries(&*self.summary(io, segno)?))
    }
}
