//! Roll-forward on segments: all logs first move away from the chain, and from the content that it
//! leads to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_block::Scheduler;

use super::super::super::io::Io;
use super::super::super::policy::Log;
use super::SegmentSpace;
use crate::error::Error;
use crate::format::{BlockAddr, SegNo, Summary, SummaryKind, summaries, summary_block};

/// The state of a recovery that no table says.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Segments of the chain, and of the content it leads to: nothing is written there.
    guarded: BTreeSet<SegNo>,
    /// Sections that lack a block to which the chain leads: their zones' pointers say so.
    lacking: BTreeSet<u32>,
    /// Summaries of adopted blocks, by segment.
    summaries: BTreeMap<SegNo, BTreeMap<u32, Summary>>,
}

impl Recovery {
    /// The segments that a recovery needs as they are.
    pub(super) fn guarded(&self) -> impl Iterator<Item = SegNo> {
        self.guarded.iter().copied()
    }

    /// The sections that lack a block.
    pub(super) fn lacking(&self) -> &BTreeSet<u32> {
        &self.lacking
    }
}

impl SegmentSpace {
    /// Keeps the segments of `claimed` from being written: all logs move to others.
    pub(crate) fn guard_claimed<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        claimed: impl Iterator<Item = BlockAddr>,
    ) -> Result<(), Error> {
        let (mut guarded, mut lacking) = (BTreeSet::new(), BTreeSet::new());
        for address in claimed {
            guarded.insert(self.segments.position(address).0);
            if self.is_beyond_pointer(address) {
                lacking.insert(self.segments.position_in_section(address).0);
            }
        }
        (self.recovery.guarded, self.recovery.lacking) = (guarded, lacking);
        self.recovery.guarded.iter().for_each(|&segno| self.segments.take(segno));
        let is_claimed = |log: Log| {
            let section = self.segments.section_of(self.logs[log.index()].segno);
            self.recovery.guarded().any(|segno| self.segments.section_of(segno) == section)
        };
        let stays = |log| self.is_fresh(log) && !is_claimed(log);
        let moving = Log::ALL.into_iter().filter(|&log| !stays(log)).collect::<Vec<_>>();
        moving.into_iter().try_for_each(|log| self.move_log(io, log))?;
        self.repair_zones(io)
    }

    /// The block holds something by now.
    pub(crate) fn is_taken(&self, address: BlockAddr) -> bool {
        self.segments.is_valid(address)
    }

    /// A block that the checkpoint calls free belongs to a file.
    pub(crate) fn adopt(&mut self, address: BlockAddr, owner: Summary, now_s: u64) {
        let (segno, offset) = self.segments.position(address);
        debug_assert!(!self.is_current(segno), "all logs have moved away");
        if self.segments.get(segno).log >= 3 {
            self.segments.open(segno, Log::WarmData as u8);
        }
        self.segments.set_valid(address, now_s);
        self.recovery.summaries.entry(segno).or_default().insert(offset, owner);
    }

    /// The owner of a block by its summary.
    pub(crate) fn summary_of<D: Scheduler>(
        &self,
        io: &mut Io<D>,
        address: BlockAddr,
    ) -> Result<Summary, Error> {
        let (segno, offset) = self.segments.position(address);
        Ok(self.summaries_of(io, segno)?[offset as usize])
    }

    /// All was replayed: the summaries of adopted blocks wait for the checkpoint, and the guarded
    /// segments are let go.
    pub(crate) fn end_recovery<D: Scheduler>(&mut self, io: &mut Io<D>) -> Result<(), Error> {
        let Recovery { guarded, summaries: adopted, .. } = std::mem::take(&mut self.recovery);
        for (segno, changes) in adopted {
            let mut entries = summaries(&*self.summary(io, segno)?);
            changes.iter().for_each(|(&offset, &summary)| entries[offset as usize] = summary);
            let block = Arc::new(summary_block(&entries, SummaryKind::Data));
            self.waiting_summaries.insert(segno, block);
        }
        guarded.into_iter().for_each(|segno| self.segments.close(segno));
        Ok(())
    }
}
