//! The six logs: their positions, the summaries of their segments, and the journals that ride in them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::summary::{DATA, ENTRY, NODES, TYPE};
use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BLOCK, BLOCKS_IN_SEGMENT, BlockAddr, Checkpoint, CheckpointFlags, SegNo};
use crate::volume::open::pack_start;

/// Where the entries begin in the first block of compacted summaries: after both journals.
const COMPACT_ENTRIES: usize = 2 * JOURNAL;
/// Bytes of a journal.
const JOURNAL: usize = 507;
/// Where the journal stands in a summary block.
const JOURNAL_AT: usize = 3584;
/// Entries of the journals at most.
const NAT_ENTRIES: u32 = 38;
const SIT_ENTRIES: u32 = 6;

/// The summary of a segment that a log writes to.
#[derive(Clone, Debug)]
pub(super) enum LogSummary {
    /// A summary block, as it stands in the pack or put together from compacted ones, and what it is of.
    Stored(Arc<BlockBytes>, u8),
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

/// How many entries of each data log the compacted summaries carry.
fn compact_entries(checkpoint: &Checkpoint) -> [u32; 3] {
    let count = |log: usize| {
        let log = checkpoint.logs[log];
        if log.in_holes { BLOCKS_IN_SEGMENT } else { log.offset.into() }
    };
    [count(0), count(1), count(2)]
}

/// Blocks that compacted summaries take.
pub(super) fn compact_blocks(checkpoint: &Checkpoint) -> u32 {
    let first = (TYPE - COMPACT_ENTRIES) / ENTRY;
    if compact_entries(checkpoint).iter().sum::<u32>() as usize <= first { 1 } else { 2 }
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_logs(&mut self) -> Result<(), Error> {
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
            if let Some(other) = logs[..number].iter().position(|other| other.segment == position.segment) {
                self.found(Finding::LogsCollide { log, other: other as u8, segno: position.segment });
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
        Ok(self.volume.blocks.metadata(BlockAddr(start.0 + index))?)
    }

    /// The summaries of the logs' segments. A wrong type in a data log's own summary is of no consequence: it is
    /// written anew with the segment.
    fn log_summaries(&mut self) -> Result<Vec<LogSummary>, Error> {
        let mut summaries = Vec::new();
        if self.volume.checkpoint.flags.has(CheckpointFlags::COMPACT) {
            summaries.extend(self.compact_summaries()?);
        } else {
            let first = self.first_data_summary();
            for log in 0..3 {
                summaries.push(LogSummary::Stored(self.pack_block(first + log)?, DATA));
            }
        }
        for log in 0..3 {
            summaries.push(if self.volume.checkpoint.has_node_summaries() {
                let block = self.pack_block(self.volume.checkpoint.total_blocks.saturating_sub(4) + log)?;
                LogSummary::Stored(block, NODES)
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

    /// Summary blocks of the three data logs, put together from the compacted entries: they follow each other, and
    /// none is divided between two blocks.
    fn compact_summaries(&mut self) -> Result<Vec<LogSummary>, Error> {
        let mut index = self.volume.checkpoint.summary_start;
        let (mut source, mut at) = (self.pack_block(index)?, COMPACT_ENTRIES);
        let mut summaries = Vec::new();
        for count in compact_entries(&self.volume.checkpoint) {
            let mut block = [0; BLOCK];
            for entry in block.chunks_exact_mut(ENTRY).take(count as usize) {
                if at + ENTRY > TYPE {
                    index += 1;
                    (source, at) = (self.pack_block(index)?, 0);
                }
                entry.copy_from_slice(&source[at..at + ENTRY]);
                at += ENTRY;
            }
            summaries.push(LogSummary::Stored(Arc::new(block), DATA));
        }
        Ok(summaries)
    }

    /// The journals' counts, and that each entry is for something that there is.
    fn check_journals(&mut self) -> Result<(), Error> {
        let compact = self.volume.checkpoint.flags.has(CheckpointFlags::COMPACT);
        let (nat, sit) = if compact {
            let block = self.pack_block(self.volume.checkpoint.summary_start)?;
            (count_at(&block, 0), count_at(&block, JOURNAL))
        } else {
            let first = self.first_data_summary();
            let (hot, cold) = (self.pack_block(first)?, self.pack_block(first + 2)?);
            (count_at(&hot, JOURNAL_AT), count_at(&cold, JOURNAL_AT))
        };
        for (what, found, max) in [("NAT", nat, NAT_ENTRIES), ("SIT", sit, SIT_ENTRIES)] {
            if found > max {
                self.found(Finding::JournalCount { what, found, max });
            }
        }
        let (nids, segments) = (self.volume.superblock.max_nid(), self.volume.superblock.segment_count_main);
        let nat = self.volume.nat_journal.keys().map(|nid| ("NAT", nid.0, nids - 1));
        let sit = self.volume.sit_journal.keys().map(|segno| ("SIT", segno.0, segments - 1));
        let wrong: Vec<_> = nat.chain(sit).filter(|(_, found, max)| found > max).collect();
        for (what, found, max) in wrong {
            self.found(Finding::JournalEntry { what, found, max });
        }
        Ok(())
    }
}

fn count_at(block: &BlockBytes, at: usize) -> u32 {
    u16::from_le_bytes([block[at], block[at + 1]]).into()
}
