//! Events that seeds have seen.

use dovetail_ftl::Drive;
use dovetail_ftl::stats::Cause;

/// Events that a seed has seen.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) cuts: u64,
    pub(super) worn_out: u64,
    pub(super) gc_runs: u64,
    pub(super) retired: u64,
    pub(super) journal_pages: u64,
    pub(super) translation_pages: u64,
    pub(super) remaps: u64,
    pub(super) longest_remap: usize,
    /// Cuts before a remap was acknowledged.
    pub(super) in_remaps: u64,
    /// Pages found with another owner than their out-of-band area names.
    pub(super) remapped_pages: u64,
    pub(super) log_pages: u64,
    /// Writes that a thin drive had no room for.
    pub(super) refused: u64,
    /// Handles that went on with an empty reclaim unit.
    pub(super) updated: u64,
    /// Lines folded out of SLC caches.
    pub(super) folded: u64,
    /// Pages of word lines that were used up empty.
    pub(super) skipped: u64,
    /// Lines rewritten after many reads.
    pub(super) refreshed: u64,
    /// Switch, partial and full merges.
    pub(super) merges: [u64; 3],
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.cuts += other.cuts;
        self.worn_out += other.worn_out;
        self.gc_runs += other.gc_runs;
        self.retired += other.retired;
        self.journal_pages += other.journal_pages;
        self.translation_pages += other.translation_pages;
        self.remaps += other.remaps;
        self.longest_remap = self.longest_remap.max(other.longest_remap);
        self.in_remaps += other.in_remaps;
        self.remapped_pages += other.remapped_pages;
        self.log_pages += other.log_pages;
        self.refused += other.refused;
        self.updated += other.updated;
        self.folded += other.folded;
        self.skipped += other.skipped;
        self.refreshed += other.refreshed;
        self.merges.iter_mut().zip(other.merges).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn count(&mut self, drive: &Drive) {
        let counters = drive.counters();
        self.gc_runs += counters.gc_runs;
        self.folded += counters.fold_runs;
        self.skipped += counters.skipped_pages;
        self.refreshed += counters.refresh_runs;
        let merges = [counters.switch_merges, counters.partial_merges, counters.full_merges];
        self.merges.iter_mut().zip(merges).for_each(|(sum, more)| *sum += more);
        self.retired += counters.program_failures + counters.erase_failures;
        self.journal_pages += counters.programs[Cause::Journal as usize];
        self.translation_pages += counters.programs[Cause::Translation as usize];
        self.log_pages += counters.programs[Cause::Remap as usize];
        self.remaps += counters.remaps;
    }
}
