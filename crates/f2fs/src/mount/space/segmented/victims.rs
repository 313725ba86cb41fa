//! Victims of cleaning: the section that is worth it most, and what is valid there.

use std::collections::BTreeSet;

use dovetail_block::Scheduler;

use super::super::super::io::Io;
use super::super::super::policy::{
    CleaningWindow, SpaceFacts, cleaning_window, cost_benefit, enough_free, is_nearly_full,
};
use super::super::{Demand, ValidBlocks};
use super::SegmentSpace;
use crate::error::Error;
use crate::format::SegNo;

/// Candidates that a background search looks at (Linux 6.1: `max_victim_search`).
const MAX_SEARCH: usize = 4096;

/// The state of victim selection.
#[derive(Debug, Default)]
pub(super) struct Victims {
    /// The section at which the last background search ended.
    last: u32,
    /// The section that is being cleaned.
    cleaned: Option<u32>,
    /// Sections that could not be cleaned since the last checkpoint: a block could not be read.
    set_aside: BTreeSet<u32>,
}

impl Victims {
    /// The section is being cleaned: nothing must be written to it.
    pub(super) fn is_at(&self, section: u32) -> bool {
        self.cleaned == Some(section)
    }

    /// Sections that were set aside are tried again.
    pub(super) fn note_checkpoint(&mut self) {
        self.set_aside.clear();
    }
}

impl SegmentSpace {
    /// Enough sections are free, with `freed` more when the next checkpoint is written.
    pub(crate) fn has_enough(&self, demand: &Demand, freed: u32) -> bool {
        let facts = self.facts(demand);
        enough_free(&SpaceFacts { free_sections: facts.free_sections + freed, ..facts })
    }

    /// A section that can be cleaned: partly valid, with no log in it, and not set aside. One whose
    /// zone is worn out would make no room.
    pub(crate) fn is_candidate(&self, section: u32) -> bool {
        let full = self.section_blocks();
        let valid = self.segments.section_valid(section);
        valid > 0
            && valid < full
            && !self.is_worn(section)
            && !self.victims.set_aside.contains(&section)
            && !self.logs.iter().any(|log| self.segments.section_of(log.segno) == section)
    }

    /// The candidate with the fewest valid blocks, not yet among `seen`.
    pub(crate) fn greedy_victim(&self, seen: &BTreeSet<u32>) -> Option<u32> {
        let (mut fewest, mut best) = (u32::MAX, None);
        for section in 0..self.segments.sections() {
            let valid = self.segments.section_valid(section);
            if valid < fewest && self.is_candidate(section) && !seen.contains(&section) {
                (fewest, best) = (valid, Some(section));
            }
        }
        best
    }

    /// The candidate with the best ratio of benefit to cost, among those after the last one.
    pub(crate) fn cost_benefit_victim(&mut self) -> Option<u32> {
        let sections = self.segments.sections();
        let order = (self.victims.last..sections).chain(0..self.victims.last.min(sections));
        let candidates = order.filter(|&section| self.is_candidate(section)).take(MAX_SEARCH);
        let candidates = candidates.filter(|&section| self.is_worth_it(section));
        let best = candidates.min_by_key(|&section| self.section_cost(section));
        self.victims.last = best.map_or(0, |section| section + 1);
        best
    }

    /// Of a zoned volume a section that is nearly full is left alone, and so is one that gains
    /// nothing by its age.
    fn is_worth_it(&self, section: u32) -> bool {
        let valid = self.segments.section_valid(section);
        self.zones.is_none()
            || !is_nearly_full(valid, self.section_blocks())
                && self.section_cost(section) < u64::from(u32::MAX)
    }

    /// The next step of cleaning in the background; `None` of a volume that is not zoned. Sections
    /// that the next checkpoint frees count as free.
    pub(crate) fn cleaning_window(&self) -> Option<CleaningWindow> {
        self.zones.as_ref()?;
        let is_empty = |section: &u32| {
            self.segments.section_valid(*section) == 0
                && !self.logs.iter().any(|log| self.segments.section_of(log.segno) == *section)
        };
        let empty = (0..self.segments.sections()).filter(is_empty).count() as u32;
        cleaning_window(empty, self.segments.sections())
    }

    fn section_cost(&self, section: u32) -> u64 {
        let per_section = self.segments.per_section();
        let mtimes =
            self.segments.segments_of(section).map(|segno| self.segments.get(segno).mtime_s);
        let mtime = mtimes.fold(0, u64::saturating_add);
        let blocks = self.section_blocks();
        cost_benefit(
            self.segments.section_valid(section),
            blocks,
            mtime / u64::from(per_section),
            self.segments.age(),
        )
    }

    /// The section is not chosen before the next checkpoint.
    pub(crate) fn set_aside(&mut self, section: u32) {
        self.victims.set_aside.insert(section);
    }

    /// Cleaning of a section begins: returns its segments.
    pub(crate) fn begin_cleaning(&mut self, section: u32) -> Vec<SegNo> {
        debug_assert!(self.victims.cleaned.is_none(), "one section is cleaned at a time");
        self.victims.cleaned = Some(section);
        self.segments.segments_of(section).collect()
    }

    /// Cleaning of the section has ended; `true` if nothing valid is left there.
    pub(crate) fn end_cleaning(&mut self) -> bool {
        self.victims.cleaned.take().is_some_and(|section| self.segments.section_valid(section) == 0)
    }

    /// The valid blocks of a segment with their owners, `None` if there are none.
    pub(crate) fn valid_blocks<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        segno: SegNo,
    ) -> Result<Option<ValidBlocks>, Error> {
        let segment = self.segments.get(segno);
        if segment.valid == 0 {
            return Ok(None);
        }
        let summary = self.summaries_of(io, segno)?;
        let offsets = segment.valid_offsets();
        let block = |offset: u32| (self.segments.address(segno, offset), summary[offset as usize]);
        let blocks = offsets.into_iter().map(block).collect();
        Ok(Some(ValidBlocks { are_nodes: segment.log >= 3, blocks }))
    }
}
