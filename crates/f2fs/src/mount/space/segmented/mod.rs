//! The space of F2FS: segments that are cleaned, six logs that write in them, and what becomes
//! free.
//!
//! A block is written only where neither the last checkpoint nor an fsync since has one: see
//! [`segments`]. What the whole file system has to do for space, such as moving the valid blocks of
//! a victim, is in `cleaner.rs` above.

mod bits;
mod discard_queue;
mod load;
mod logs;
mod pack;
mod recovery;
mod remap_staging;
mod segments;
mod staging_sections;
mod victims;
mod zones;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::{BlockBytes, Scheduler};

use super::super::io::Io;
use super::super::options::{AllocMode, DiscardUnit};
use super::super::policy::{Log, SpaceFacts};
use super::{Demand, Taken};
use crate::error::{Corrupt, Damage, Error};
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Extent, SegNo, Summary};
use discard_queue::DiscardQueue;
use logs::CurrentSegment;
use recovery::Recovery;
use remap_staging::RemapStaging;
use segments::Segments;
use victims::Victims;
use zones::ZoneMap;

/// Prefree segments at which a checkpoint is worth it, in percent of the main area and as a number
/// (Linux 6.1).
const MAX_PREFREE_PERCENT: u32 = 5;
const MAX_PREFREE: u32 = 4096;

/// The segments of a mounted volume, and the logs.
#[derive(Debug)]
pub(crate) struct SegmentSpace {
    segments: Segments,
    logs: [CurrentSegment; 6],
    /// Segments whose entries the last checkpoint's SIT journal has.
    sit_journal: BTreeSet<SegNo>,
    victims: Victims,
    /// Sections in which updates lie that the device is to move.
    staging: RemapStaging,
    discards: DiscardQueue,
    discard_unit: DiscardUnit,
    recovery: Recovery,
    /// The zones of a zoned volume.
    zones: Option<ZoneMap>,
    /// The start of the summary area.
    ssa_start: BlockAddr,
    /// Summaries for the summary area, of segments that logs have left or recovery has adopted: the
    /// next checkpoint writes them.
    waiting_summaries: BTreeMap<SegNo, Arc<BlockBytes>>,
    sections_per_zone: u32,
    /// Segments that the volume keeps for cleaning.
    reserved_segments: u32,
    /// `mode=lfs`: holes are not filled.
    lfs: bool,
    /// Dirty content of files needs space, too.
    counts_dirty_data: bool,
    alloc: AllocMode,
    /// KiB written before this mount.
    written_kib: u64,
}

impl SegmentSpace {
    pub(crate) fn next_address(&self, log: Log) -> BlockAddr {
        let current = &self.logs[log.index()];
        self.segments.address(current.segno, current.next)
    }

    /// Takes the next block of a log whose segment is not full.
    pub(crate) fn take(&mut self, log: Log, owner: Summary, now_s: u64) -> Taken {
        debug_assert!(!self.is_segment_full(log), "a log leaves its full segment before");
        let current = &mut self.logs[log.index()];
        let (segno, offset, in_hole) = (current.segno, current.next, current.in_holes);
        current.summaries[offset as usize] = owner;
        debug_assert_eq!(
            self.segments.get(segno).next_hole(offset),
            offset,
            "the block is neither valid nor in the last checkpoint"
        );
        let address = self.segments.address(segno, offset);
        self.segments.set_valid(address, now_s);
        let segment = self.segments.get(segno);
        current.next = if in_hole { segment.next_hole(offset + 1) } else { offset + 1 };
        if let Some(zones) = &mut self.zones {
            let (section, block) = self.segments.position_in_section(address);
            zones.advance(section, block + 1);
        }
        self.discards.keep(address.low(), 1);
        Taken { address, in_hole }
    }

    /// The block is no longer used.
    pub(crate) fn free(&mut self, address: BlockAddr, now_s: u64) -> Result<(), Corrupt> {
        let (segno, _) = self.segments.position(address);
        let current = self.is_current(segno);
        let was_valid = self.segments.set_invalid(address, now_s, current);
        if was_valid { Ok(()) } else { Err(Damage::NotValid(address).into()) }
    }

    /// The state that the policies decide by.
    pub(crate) fn facts(&self, demand: &Demand) -> SpaceFacts {
        let left = |log: usize| self.blocks_left(log);
        let per_section = self.segments.per_section();
        let reserved = self.reserved_segments;
        let outside = self.sections_outside(demand);
        let dirty_data = demand.dirty_data.saturating_sub(demand.dirty_dents);
        SpaceFacts {
            free_sections: self.segments.free_sections().saturating_sub(outside),
            reserved_sections: match self.zones {
                // seen on Linux 6.12: 29 to 30 free sections are held of 924 segments by 32
                Some(_) => reserved / per_section,
                None => reserved.div_ceil(per_section),
            },
            section_blocks: self.section_blocks(),
            dirty_nodes: demand.dirty_nodes,
            dirty_dents: demand.dirty_dents,
            dirty_data: if self.counts_dirty_data { dirty_data } else { 0 },
            node_log_left: left(3).min(left(4)).min(left(5)),
            dent_log_left: left(0),
            data_log_left: left(0).min(left(1)).min(left(2)),
            lfs: self.lfs,
        }
    }

    /// Blocks of a log's section that hold nothing, neither now nor in the last checkpoint (Linux
    /// 6.12: `has_curseg_enough_space`). A log that only appends does not get at all of them.
    fn blocks_left(&self, log: usize) -> u32 {
        let section = self.segments.section_of(self.logs[log].segno);
        let held: u32 = self
            .segments
            .segments_of(section)
            .map(|segno| u32::from(self.segments.get(segno).checkpointed))
            .sum();
        self.section_blocks().saturating_sub(held)
    }

    /// Blocks at device addresses take space of the device and none of any segment: so many
    /// sections stay free for them. What is reserved and not yet written counts with them.
    fn sections_outside(&self, demand: &Demand) -> u32 {
        if !demand.devirtualized {
            return 0;
        }
        let outside = demand.valid_blocks.saturating_sub(self.segments.valid_blocks());
        let section = u64::from(self.segments.per_section() * BLOCKS_IN_SEGMENT);
        u32::try_from(outside.div_ceil(section)).unwrap_or(u32::MAX)
    }

    /// The SIT of the next checkpoint differs from that of the last one.
    pub(crate) fn is_dirty(&self) -> bool {
        self.segments.has_dirty() || self.segments.prefree_count() > 0
    }

    pub(crate) fn prefree_count(&self) -> u32 {
        self.segments.prefree_count()
    }

    /// So many segments wait for a checkpoint to become free that one is worth it.
    pub(crate) fn has_many_prefree(&self) -> bool {
        let main = self.segments.len();
        self.segments.prefree_count() > (main * MAX_PREFREE_PERCENT / 100).clamp(1, MAX_PREFREE)
    }

    pub(crate) fn has_discards(&self) -> bool {
        !self.discards.is_empty() || self.has_dead_for_background()
    }

    /// An extent of at least so many blocks waits to be discarded, or a zone to be reset.
    pub(crate) fn has_discard_of(&self, granularity: u32) -> bool {
        self.discards.has(granularity) || self.has_dead_for_background()
    }

    /// Discards up to `count` extents of at least `granularity` blocks; `true` if there were any.
    pub(crate) fn discard<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        count: usize,
        granularity: u32,
    ) -> Result<bool, Error> {
        let extents = self.discards.take(count, granularity);
        let extent = |&(start, blocks): &(u32, u32)| Extent {
            start: BlockAddr(start.into()),
            blocks: blocks.into(),
        };
        io.discard(extents.iter().map(extent))?;
        let is_last = count == usize::MAX;
        if is_last || self.has_dead_for_background() {
            return Ok(self.reset_dead(io, count)? || !extents.is_empty());
        }
        Ok(!extents.is_empty())
    }

    /// All free segments wait to be discarded from now on.
    pub(crate) fn queue_free_segments(&mut self) {
        for segno in (0..self.segments.len()).map(SegNo) {
            if !self.segments.get(segno).in_use {
                self.queue_segment(segno);
            }
        }
    }

    fn queue_segment(&mut self, segno: SegNo) {
        self.discards.add(self.segments.address(segno, 0).low(), BLOCKS_IN_SEGMENT);
    }

    /// A checkpoint is complete: prefree segments are free, and what it no longer refers to may be
    /// written again, or discarded if the mount does that.
    pub(crate) fn commit(&mut self, sit_journal: BTreeSet<SegNo>, discards: bool) {
        self.victims.note_checkpoint();
        if self.zones.is_some() {
            self.commit_sections(discards);
            self.sit_journal = sit_journal;
            return;
        }
        if discards && self.discard_unit == DiscardUnit::Block {
            for (start, len) in self.segments.freed_since_checkpoint() {
                self.discards.add(start, len);
            }
        }
        let prefree: Vec<_> = self.segments.prefree().collect();
        self.segments.commit();
        self.sit_journal = sit_journal;
        if !discards {
            return;
        }
        if self.discard_unit != DiscardUnit::Section {
            return prefree.into_iter().for_each(|segno| self.queue_segment(segno));
        }
        let sections: BTreeSet<u32> =
            prefree.into_iter().map(|segno| self.segments.section_of(segno)).collect();
        for section in sections {
            if self.segments.is_section_free(section) {
                self.queue_section(section);
            }
        }
    }

    fn queue_section(&mut self, section: u32) {
        let start = self.segments.address_in_section(section, 0).low();
        self.discards.add(start, self.segments.per_section() * BLOCKS_IN_SEGMENT);
    }

    /// The same of a zoned volume: only whole sections are discarded or reset.
    fn commit_sections(&mut self, discards: bool) {
        let sections: BTreeSet<u32> =
            self.segments.prefree().map(|segno| self.segments.section_of(segno)).collect();
        self.segments.commit();
        self.set_worn_aside();
        let Some(zones) = &mut self.zones else { return };
        for section in sections {
            if !self.segments.is_section_free(section) {
                continue;
            }
            zones.note_free(section);
            if discards && !zones.layout().is_sequential(section) {
                let start = self.segments.address_in_section(section, 0).low();
                self.discards.add(start, self.segments.per_section() * BLOCKS_IN_SEGMENT);
            }
        }
    }

    /// The share of valid blocks in each of `cells` parts of the main area.
    pub(crate) fn occupancy(&self, cells: usize) -> Vec<f64> {
        let segments = self.segments.len() as usize;
        let each = segments.div_ceil(cells.max(1));
        let valid = |segno: usize| u64::from(self.segments.get(SegNo(segno as u32)).valid);
        let cell = |start: usize| {
            let end = (start + each).min(segments);
            let blocks = (end - start) as f64 * f64::from(BLOCKS_IN_SEGMENT);
            (start..end).map(valid).sum::<u64>() as f64 / blocks
        };
        (0..segments).step_by(each.max(1)).map(cell).collect()
    }
}
