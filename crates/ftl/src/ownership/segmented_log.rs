//! A segmented log of remaps in non-volatile memory, in the manner of Remap-SSD (Zhou et al.,
//! FAST'21).
//!
//! The memory is cut into segments of a fixed number of entries. Each belongs to a line, the unit
//! in which the drive cleans, and holds entries of that line's pages in the order of their remaps.
//! The erase of a line frees its segments as they are: nothing is compacted. A page that is
//! remapped again gets another entry; the newest one counts, by its sequence number.
//!
//! From the papers: log-structured remap metadata in small non-volatile memory (FAST'21, abstract);
//! a log for each unit of cleaning, which goes to flash when the memory is full (Wu et al.,
//! TCAD'22, abstract). Assumed: the sizes, and that the line with the most segments goes first.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_nand::{BlockId, Geometry, Ppn};
use dovetail_time::SimTime;

use super::Remapped;
use crate::config::DriveConfig;
use crate::metadata::remap_log::AddressWidth;

/// Bytes of a segment's head: its line and its place among that line's. Assumed.
const HEAD_BYTES: u64 = 8;
/// Bytes of a flash page's number in an entry, beside what the reverse map has of it.
const PAGE_NUMBER_BYTES: u64 = 4;

/// An entry: a flash page and its owner.
pub(super) type Entry = (Ppn, Remapped);

/// A line of flash blocks, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogLine(u32);

/// The entries of a line.
#[derive(Clone, Debug, Default)]
struct LineLog {
    /// In the order of their remaps.
    entries: Vec<Entry>,
    /// Blocks that have entries and were not erased since.
    blocks: BTreeSet<BlockId>,
    /// Time when the erases so far end.
    erased_at: SimTime,
}

/// The log.
#[derive(Clone, Debug)]
pub(crate) struct SegmentedLog {
    geometry: Geometry,
    blocks_per_line: u32,
    entries_per_segment: usize,
    segments: usize,
    lines: BTreeMap<LogLine, LineLog>,
}

/// Entries that a segment has room for; 0 without a segmented log.
pub(crate) fn entries_per_segment(config: &DriveConfig) -> u64 {
    let bytes = config.remap.and_then(|remap| remap.store.segment_bytes()).unwrap_or(0);
    let entry = AddressWidth::of(config).entry_bytes() as u64 + PAGE_NUMBER_BYTES;
    bytes.saturating_sub(HEAD_BYTES) / entry
}

/// Segments with which the longest remap finds room when all else has gone to flash: each line may
/// begin one.
pub(crate) fn least_segments(config: &DriveConfig) -> u32 {
    let lines = config.nand.geometry.pages().div_ceil(config.line_pages());
    let longest = config.remap.map_or(0, |remap| remap.most_pairs());
    lines + longest.div_ceil(entries_per_segment(config).max(1)) as u32
}

impl SegmentedLog {
    /// Empty, of so many segments.
    pub(crate) fn new(config: &DriveConfig, segments: u32) -> Self {
        let geometry = config.nand.geometry;
        Self {
            geometry,
            blocks_per_line: config.shape.blocks_per_line(&geometry),
            entries_per_segment: entries_per_segment(config).max(1) as usize,
            segments: segments as usize,
            lines: BTreeMap::new(),
        }
    }

    fn line_of(&self, block: BlockId) -> LogLine {
        LogLine(block.0 / self.blocks_per_line)
    }

    fn locate(&self, ppn: Ppn) -> (LogLine, BlockId) {
        let block = self.geometry.locate(ppn).0;
        (self.line_of(block), block)
    }

    /// Adds an entry; there is room for it.
    pub(super) fn append(&mut self, (ppn, entry): Entry) {
        let (line, block) = self.locate(ppn);
        let log = self.lines.entry(line).or_default();
        log.entries.push((ppn, entry));
        log.blocks.insert(block);
    }

    /// Takes back the last entry of a page's line.
    pub(super) fn take_back(&mut self, ppn: Ppn) {
        let (line, _) = self.locate(ppn);
        if let Some(log) = self.lines.get_mut(&line) {
            log.entries.pop();
        }
    }

    /// A block is erased at `end`; returns the entries of its line, and when they are of no use any
    /// more, if no other block of the line has any.
    pub(super) fn note_erase(
        &mut self,
        block: BlockId,
        end: SimTime,
    ) -> Option<(Vec<Entry>, SimTime)> {
        let line = self.line_of(block);
        let log = self.lines.get_mut(&line)?;
        log.blocks.remove(&block);
        log.erased_at = log.erased_at.max(end);
        if !log.blocks.is_empty() {
            return None;
        }
        let log = self.lines.remove(&line)?;
        Some((log.entries, log.erased_at))
    }

    /// Frees the segments of a line; returns their entries.
    pub(super) fn free(&mut self, line: LogLine) -> Vec<Entry> {
        self.lines.remove(&line).map(|log| log.entries).unwrap_or_default()
    }

    /// Brings back what was freed.
    pub(super) fn restore(&mut self, entries: Vec<Entry>) {
        entries.into_iter().for_each(|entry| self.append(entry));
    }

    fn segments_for(&self, entries: usize) -> usize {
        entries.div_ceil(self.entries_per_segment)
    }

    /// Segments in use.
    pub(crate) fn used(&self) -> usize {
        self.lines.values().map(|log| self.segments_for(log.entries.len())).sum()
    }

    /// Entries of these pages find room.
    pub(crate) fn has_room_for(&self, pages: impl Iterator<Item = Ppn>) -> bool {
        let mut more: BTreeMap<LogLine, usize> = BTreeMap::new();
        pages.for_each(|ppn| *more.entry(self.locate(ppn).0).or_default() += 1);
        let needed = more.into_iter().map(|(line, more)| {
            let present = self.lines.get(&line).map_or(0, |log| log.entries.len());
            self.segments_for(present + more) - self.segments_for(present)
        });
        self.used() + needed.sum::<usize>() <= self.segments
    }

    /// The line with the most entries.
    pub(crate) fn fullest(&self) -> Option<LogLine> {
        self.lines.iter().max_by_key(|(_, log)| log.entries.len()).map(|(line, _)| *line)
    }

    /// The pages of a line that have entries.
    pub(crate) fn pages_of(&self, line: LogLine) -> impl Iterator<Item = Ppn> {
        self.lines.get(&line).into_iter().flat_map(|log| &log.entries).map(|(ppn, _)| *ppn)
    }

    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.lines.values().flat_map(|log| &log.entries).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::RemapLimits;
    use dovetail_nand::{Lpn, Seq};
    use dovetail_time::SimSpan;

    use crate::{RemapConfig, RemapStore};

    fn config() -> DriveConfig {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 64,
            page_bytes: 4096,
        };
        let access = SimSpan::from_ns(100);
        let store = RemapStore::SegmentedLog {
            access,
            discard_records: 1,
            segments: 0,
            segment_bytes: 512,
        };
        let remap = Some(RemapConfig { limits: RemapLimits::of(62, 0), store });
        DriveConfig { remap, ..DriveConfig::plain(geometry, 500) }
    }

    fn entry(ppn: u32, seq: u64) -> Entry {
        (Ppn(ppn), Remapped { lpn: Lpn(1), seq: Seq(seq) })
    }

    #[test]
    fn a_line_gives_its_segments_back_when_its_last_block_is_erased() {
        assert_eq!(least_segments(&config()), 8 + 2);
        let mut log = SegmentedLog::new(&config(), 3);
        (0..32).for_each(|n| log.append(entry(0, n)));
        log.append(entry(1, 40));
        log.append(entry(128, 41));
        assert_eq!((log.used(), log.fullest()), (3, Some(LogLine(0))));
        assert!(log.has_room_for([Ppn(3), Ppn(129)].into_iter()), "in segments begun");
        assert!(!log.has_room_for([Ppn(256)].into_iter()), "a third line needs another");
        assert!(log.note_erase(BlockId(1), SimTime::from_ns(9)).is_none(), "block 0 has entries");
        let (entries, end) = log.note_erase(BlockId(0), SimTime::from_ns(5)).unwrap();
        assert_eq!((entries.len(), end), (33, SimTime::from_ns(9)));
        assert_eq!(log.used(), 1);
        log.restore(entries);
        log.take_back(Ppn(0));
        assert_eq!((log.used(), log.pages_of(LogLine(0)).count()), (3, 32));
    }
}
