//! The six logs: their positions, the summaries of their segments, and the journals that ride in
//! them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{
    BLOCKS_IN_SEGMENT, Checkpoint, CheckpointFlags, NAT_JOURNAL_ENTRIES, SIT_JOURNAL_ENTRIES,
    SegNo, SummaryKind, compact_block_count, compact_journal_counts, journal_count, parse_compact,
    summary_block,
};
use crate::volume::open::pack_start;

/// The summary of a segment that a log writes to.
#[derive(Clone, Debug)]
pub(super) enum LogSummary {
    /// A summary block, as it stands in the pack or put together from compacted ones, and what it
    /// is of.
    Stored(Arc<BlockBytes>, SummaryKind),
    /// Not stored: a node log of a volume that was not unmounted.
    Footers,
}

/// The segments that the logs write to.
#[derive(Debug, Default)]
pub(super) struct Logs {
    summaries: HashMap<SegNo, LogSummary>,
    complained: HashSet<SegNo>,
}

impl Logs {
    pub(super) fn of_segment(&self, segno: SegNo) -> Option<&LogSummary> {
        self.summaries.get(&segno)
    }

    pub(super) fn of_segment_mut(&mut self, segno: SegNo) -> Option<&mut LogSummary> {
        self.summaries.get_mut(&segno)
    }

    /// A log writes to this segment.
    pub(super) fn writes_to(&self, segno: SegNo) -> bool {
        self.summaries.contains_key(&segno)
    }

    /// The first time it is asked for a segment: its summary's type is reported once.
    pub(super) fn first_complaint(&mut self, segno: SegNo) -> bool {
        self.complained.insert(segno)
    }
}

/// Blocks of a pack for summaries: compacted data summaries take one or two, others three.
pub(super) fn summary_blocks(checkpoint: &Checkpoint) -> u32 {
    let nodes = if checkpoint.has_node_summaries() { 3 } else { 0 };
    let compact = checkpoint.flags.has(CheckpointFlags::COMPACT);
    nodes + if compact { compact_blocks(checkpoint) } else { 3 }
}

/// Blocks that compacted summaries take.
fn compact_blocks(checkpoint: &Checkpoint) -> u32 {
    compact_block_count(checkpoint.compact_entries()).unwrap_or(2) as u32
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_segment_logs(&mut self) -> Result<(), Error> {
        self.check_positions()?;
        let summaries = self.log_summaries()?;
        self.check_journals()?;
        for (log, summary) in summaries.into_iter().enumerate() {
            let segno = self.volume.checkpoint.logs[log].segment;
            if segno.0 < self.volume.superblock.segment_count_main {
                self.logs.summaries.entry(segno).or_insert(summary);
            }
        }
        Ok(())
    }

    fn check_positions(&mut self) -> Result<(), Error> {
        let types = self.allocation_types()?;
        let logs = self.volume.checkpoint.logs;
        for (number, position) in logs.iter().enumerate() {
            let log = number as u8;
            if types[number] > 1 {
                self.found(Finding::LogAllocation { log, found: types[number] });
            }
            if position.segment.0 >= self.volume.superblock.segment_count_main {
                self.found(Finding::LogSegment { log, found: position.segment });
                continue;
            }
            if let Some(other) =
                logs[..number].iter().position(|other| other.segment == position.segment)
            {
                self.found(Finding::LogsCollide {
                    log,
                    other: other as u8,
                    segno: position.segment,
                });
            }
            self.check_log_segment(log)?;
        }
        Ok(())
    }

    /// The segment of log `log`: its type, and that the blocks to be written next are free.
    fn check_log_segment(&mut self, log: u8) -> Result<(), Error> {
        let position = self.volume.checkpoint.logs[usize::from(log)];
        let segno = position.segment;
        let entry = self.volume.stored_segment(segno)?;
        if entry.log != log {
            self.found(Finding::LogType { log, segno, found: entry.log });
        }
        let offset = u32::from(position.offset);
        if entry.is_valid(offset) {
            self.found(Finding::LogBlockUsed { log, segno, offset });
        }
        let mut tail = offset + 1..BLOCKS_IN_SEGMENT;
        if let Some(offset) = tail.find(|&offset| !position.in_holes && entry.is_valid(offset)) {
            self.found(Finding::LogTailUsed { log, segno, offset });
        }
        Ok(())
    }

    fn pack_block(&mut self, index: u32) -> Result<Arc<BlockBytes>, Error> {
        let start = pack_start(&self.volume.superblock, self.volume.checkpoint.pack);
        let index = index.min(BLOCKS_IN_SEGMENT - 1); // a pack that is too short was reported
        Ok(self.volume.blocks.metadata(start.plus(index.into()))?)
    }

    /// The summaries of the logs' segments. A wrong type in a data log's own summary is of no
    /// consequence: it is written anew with the segment.
    fn log_summaries(&mut self) -> Result<Vec<LogSummary>, Error> {
        let mut summaries = Vec::new();
        if self.volume.checkpoint.flags.has(CheckpointFlags::COMPACT) {
            summaries.extend(self.compact_summaries()?);
        } else {
            let first = self.first_data_summary();
            for log in 0..3 {
                summaries
                    .push(LogSummary::Stored(self.pack_block(first + log)?, SummaryKind::Data));
            }
        }
        for log in 0..3 {
            summaries.push(if self.volume.checkpoint.has_node_summaries() {
                let block =
                    self.pack_block(self.volume.checkpoint.total_blocks.saturating_sub(4) + log)?;
                LogSummary::Stored(block, SummaryKind::Node)
            } else {
                LogSummary::Footers
            });
        }
        Ok(summaries)
    }

    fn first_data_summary(&self) -> u32 {
        let checkpoint = &self.volume.checkpoint;
        let after = if checkpoint.has_node_summaries() { 6 } else { 3 };
        checkpoint.total_blocks.saturating_sub(1 + after)
    }

    /// Summary blocks of the three data logs, put together from the compacted entries.
    fn compact_summaries(&mut self) -> Result<Vec<LogSummary>, Error> {
        let (first, count) =
            (self.volume.checkpoint.summary_start, compact_blocks(&self.volume.checkpoint));
        let blocks = (first..first + count)
            .map(|index| self.pack_block(index))
            .collect::<Result<Vec<_>, _>>()?;
        let blocks: Vec<BlockBytes> = blocks.iter().map(|block| **block).collect();
        let logs = parse_compact(&blocks, self.volume.checkpoint.compact_entries());
        let stored = |entries| Arc::new(summary_block(entries, SummaryKind::Data));
        Ok(logs
            .iter()
            .map(|entries| LogSummary::Stored(stored(entries), SummaryKind::Data))
            .collect())
    }

    /// The journals' counts and entries.
    fn check_journals(&mut self) -> Result<(), Error> {
        let compact = self.volume.checkpoint.flags.has(CheckpointFlags::COMPACT);
        let (nat, sit) = if compact {
            compact_journal_counts(&*self.pack_block(self.volume.checkpoint.summary_start)?)
        } else {
            let first = self.first_data_summary();
            let (hot, cold) = (self.pack_block(first)?, self.pack_block(first + 2)?);
            (journal_count(&hot), journal_count(&cold))
        };
        let capacities = [("NAT", nat, NAT_JOURNAL_ENTRIES), ("SIT", sit, SIT_JOURNAL_ENTRIES)];
        for (what, found, max) in
            capacities.map(|(what, found, max)| (what, u32::from(found), max as u32))
        {
            if found > max {
                self.found(Finding::JournalCount { what, found, max });
            }
        }
        self.check_journal_entries();
        Ok(())
    }

    /// Each entry is for something that there is.
    pub(super) fn check_journal_entries(&mut self) {
        let (nids, segments) =
            (self.volume.superblock.max_nid(), self.volume.superblock.segment_count_main);
        let nat = self.volume.nat_journal.keys().map(|nid| ("NAT", nid.0, nids - 1));
        let sit = self.volume.sit_journal.keys().map(|segno| ("SIT", segno.0, segments - 1));
        let wrong: Vec<_> = nat.chain(sit).filter(|(_, found, max)| found > max).collect();
        for (what, found, max) in wrong {
            self.found(Finding::JournalEntry { what, found, max });
        }
    }
}
