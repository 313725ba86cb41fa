//! Counts of what the drive did since it was switched on.

use std::ops::Sub;

use dovetail_block::PlacementEvent;

use crate::cache::Access;
use crate::config::MOST_STREAMS;

/// The reason for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote it.
    Host,
    /// Cleaning moved it.
    Gc,
    /// Static wear levelling moved it.
    Wear,
    /// Its block went bad.
    Retire,
    /// The drive's own record of discards.
    Journal,
    /// The drive's own record of remaps.
    Remap,
    /// A translation page of a demand-paged map.
    Translation,
    /// It was folded out of the SLC cache.
    Fold,
    /// Its block had been read often.
    Refresh,
    /// A merge of a log-block map copied it.
    Merge,
}

impl Cause {
    /// All causes, in the order in which results list them.
    pub const ALL: [Self; 10] = [
        Self::Host,
        Self::Gc,
        Self::Wear,
        Self::Retire,
        Self::Journal,
        Self::Remap,
        Self::Translation,
        Self::Fold,
        Self::Refresh,
        Self::Merge,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gc => "gc",
            Self::Wear => "wear",
            Self::Retire => "retire",
            Self::Journal => "journal",
            Self::Remap => "remap",
            Self::Translation => "translation",
            Self::Fold => "fold",
            Self::Refresh => "refresh",
            Self::Merge => "merge",
        }
    }
}

/// The reason for reading or writing a translation page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapUse {
    /// The host reads.
    Read,
    /// The host writes.
    Write,
    /// The host trims or remaps.
    Trim,
    /// The drive has moved pages, or brings translation pages up to date after a power cut.
    Move,
}

impl MapUse {
    /// All uses, in the order in which results list them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Move];

    pub(crate) fn of(access: Access) -> Self {
        match access {
            Access::Read => Self::Read,
            Access::Write => Self::Write,
            Access::Trim | Access::Remap => Self::Trim,
        }
    }
}

/// The reason for a flash read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCause {
    /// The host read it.
    Host,
    /// A write of a part of it needed the rest.
    Merge,
    /// It was moved: cleaning, wear levelling or a bad block.
    Move,
    /// A translation page of a demand-paged map.
    Translation,
}

impl ReadCause {
    /// All causes, in the order in which results list them.
    pub const ALL: [Self; 4] = [Self::Host, Self::Merge, Self::Move, Self::Translation];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Merge => "merge",
            Self::Move => "move",
            Self::Translation => "translation",
        }
    }
}

/// Counts; two of them can be subtracted. Blocks are 4 KiB, pages are flash pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Discard commands.
    pub discards: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Remap commands, those that only hold pairs too.
    pub remaps: u64,
    /// Pairs that were executed.
    pub remapped_pairs: u64,
    /// Entries written to non-volatile memory: pairs, and records of discards.
    pub nvm_accesses: u64,
    /// Lines whose entries went to flash because the log of remaps in non-volatile memory was full.
    pub destaged_lines: u64,
    /// Blocks that the host read.
    pub read_blocks: u64,
    /// Of these, blocks that hold nothing: never written, or discarded. They are answered without
    /// flash.
    pub empty_read_blocks: u64,
    /// Blocks that the host wrote.
    pub written_blocks: u64,
    /// Blocks that discards unmapped or dropped from the buffer.
    pub discarded_blocks: u64,
    /// Blocks read that the write buffer held.
    pub buffer_read_hits: u64,
    /// Blocks written over ones that were still in the write buffer.
    pub buffer_overwrites: u64,
    /// Pages programmed, by [`Cause`].
    pub programs: [u64; Cause::ALL.len()],
    /// Pages read from flash, by [`ReadCause`].
    pub flash_reads: [u64; ReadCause::ALL.len()],
    /// Blocks erased.
    pub erases: u64,
    /// Lines cleaned.
    pub gc_runs: u64,
    /// Lines whose cleaning or levelling writes had to wait for.
    pub gc_stalls: u64,
    /// Lines emptied by static wear levelling.
    pub wear_runs: u64,
    /// Lines of the SLC cache that were folded.
    pub fold_runs: u64,
    /// Of these, lines that writes had to wait for.
    pub fold_stalls: u64,
    /// Lines rewritten because they had been read often.
    pub refresh_runs: u64,
    /// Log lines of a log-block map that became data lines as they were.
    pub switch_merges: u64,
    /// Log lines that became data lines when the rest of their block was copied behind.
    pub partial_merges: u64,
    /// Logical blocks that were copied to a free line.
    pub full_merges: u64,
    /// Pages programmed at one bit a cell.
    pub single_programs: u64,
    /// Pages that were used up empty, because their word line had to be programmed.
    pub skipped_pages: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Blocks of data that were found unreadable when they were to be moved or merged.
    pub lost_blocks: u64,
    /// Accesses to the map.
    pub map_accesses: u64,
    /// Entries of a demand-paged map that were cached when they were wanted: for reads, for writes,
    /// for trims and remaps.
    pub map_hits: [u64; 3],
    /// Those that were not.
    pub map_misses: [u64; 3],
    /// Translation pages read, by [`MapUse`].
    pub translation_reads: [u64; MapUse::ALL.len()],
    /// Translation pages that were asked for and are not on flash, since nothing of theirs was ever
    /// written there.
    pub translation_absent: [u64; MapUse::ALL.len()],
    /// Translation pages written, by [`MapUse`].
    pub translation_writes: [u64; MapUse::ALL.len()],
    /// Blocks that the host wrote by each reclaim unit handle.
    pub handle_blocks: [u64; MOST_STREAMS],
    /// Pages of each handle's data that were programmed, whatever the cause.
    pub handle_programs: [u64; MOST_STREAMS],
    /// Events of reclaim units, by [`PlacementEvent`].
    pub placement_events: [u64; PlacementEvent::ALL.len()],
}

impl Counters {
    /// Pages programmed, whatever the cause, and those that were used up empty with them.
    pub fn programmed_pages(&self) -> u64 {
        self.programs.iter().sum::<u64>() + self.skipped_pages
    }

    /// Write amplification: bytes programmed over bytes that the host wrote, for pages of
    /// `subpages` blocks. `None` when the host wrote nothing.
    pub fn waf(&self, subpages: u32) -> Option<f64> {
        let programmed = self.programmed_pages() * u64::from(subpages);
        (self.written_blocks > 0).then(|| programmed as f64 / self.written_blocks as f64)
    }
}

fn each<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| a[i] - b[i])
}

impl Sub for Counters {
    type Output = Self;

    /// Returns what was counted between `earlier` and now.
    fn sub(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            discards: self.discards - earlier.discards,
            flushes: self.flushes - earlier.flushes,
            remaps: self.remaps - earlier.remaps,
            remapped_pairs: self.remapped_pairs - earlier.remapped_pairs,
            nvm_accesses: self.nvm_accesses - earlier.nvm_accesses,
            destaged_lines: self.destaged_lines - earlier.destaged_lines,
            read_blocks: self.read_blocks - earlier.read_blocks,
            empty_read_blocks: self.empty_read_blocks - earlier.empty_read_blocks,
            written_blocks: self.written_blocks - earlier.written_blocks,
            discarded_blocks: self.discarded_blocks - earlier.discarded_blocks,
            buffer_read_hits: self.buffer_read_hits - earlier.buffer_read_hits,
            buffer_overwrites: self.buffer_overwrites - earlier.buffer_overwrites,
            programs: each(self.programs, earlier.programs),
            flash_reads: each(self.flash_reads, earlier.flash_reads),
            erases: self.erases - earlier.erases,
            gc_runs: self.gc_runs - earlier.gc_runs,
            gc_stalls: self.gc_stalls - earlier.gc_stalls,
            wear_runs: self.wear_runs - earlier.wear_runs,
            fold_runs: self.fold_runs - earlier.fold_runs,
            fold_stalls: self.fold_stalls - earlier.fold_stalls,
            refresh_runs: self.refresh_runs - earlier.refresh_runs,
            switch_merges: self.switch_merges - earlier.switch_merges,
            partial_merges: self.partial_merges - earlier.partial_merges,
            full_merges: self.full_merges - earlier.full_merges,
            single_programs: self.single_programs - earlier.single_programs,
            skipped_pages: self.skipped_pages - earlier.skipped_pages,
            program_failures: self.program_failures - earlier.program_failures,
            erase_failures: self.erase_failures - earlier.erase_failures,
            lost_blocks: self.lost_blocks - earlier.lost_blocks,
            map_accesses: self.map_accesses - earlier.map_accesses,
            map_hits: each(self.map_hits, earlier.map_hits),
            map_misses: each(self.map_misses, earlier.map_misses),
            translation_reads: each(self.translation_reads, earlier.translation_reads),
            translation_absent: each(self.translation_absent, earlier.translation_absent),
            translation_writes: each(self.translation_writes, earlier.translation_writes),
            handle_blocks: each(self.handle_blocks, earlier.handle_blocks),
            handle_programs: each(self.handle_programs, earlier.handle_programs),
            placement_events: each(self.placement_events, earlier.placement_events),
        }
    }
}
