//! `extent`: runs of entries whose addresses follow each other, one record each: a cached interval
//! map (ours).
//!
//! A run that a log-structured file system writes in one piece, or has not written yet, costs
//! one record however long it is, up to a translation page. A miss for a read brings in the run
//! around the entry; one for a write the entry alone, or the run from there on if the entry before
//! it is cached: the host goes on in order. What goes is the least recently used run; a dirty one
//! is written with all dirty ones of its translation page, which stay, clean.

use super::runs::{PageShape, Runs, distance, end_of_run, start_of_run};
use super::{
    Access, Cache, CacheConfig, CacheStep, Entry, Occupancy, Policy, Shape, TranslationPage,
};

pub(super) const POLICY: Policy = Policy {
    name: "extent",
    about: "runs of entries with addresses in a row: a cached interval map (ours)",
    build: |config| Box::new(Extents::new(config)),
};

/// Bytes of a run: 4 of its first flash page, 4 of its place in its translation page, its length
/// and its state (assumed).
pub(super) const EXTENT_BYTES: u64 = 8;
/// Bytes of a translation page with runs: 8 of its number, 8 of where they are (assumed).
pub(super) const NODE_BYTES: u64 = 16;
/// Bytes that there are at least, whatever is asked for.
pub(super) const FEWEST_BYTES: u64 = 8 * (EXTENT_BYTES + NODE_BYTES);
/// Bytes that one access may add: the entry, what comes before it in its run and what comes behind,
/// in a new translation page.
pub(super) const MOST_ADDED: u64 = 3 * EXTENT_BYTES + NODE_BYTES;

#[derive(Clone, Debug)]
struct Extents {
    config: CacheConfig,
    runs: Runs,
}

fn page_bytes(_: &CacheConfig, PageShape { runs, .. }: PageShape) -> u64 {
    if runs == 0 { 0 } else { NODE_BYTES + u64::from(runs) * EXTENT_BYTES }
}

impl Extents {
    fn new(config: CacheConfig) -> Self {
        Self { config, runs: Runs::new(config, page_bytes) }
    }

    fn make_room(&mut self, steps: &mut Vec<CacheStep>) {
        while self.runs.bytes() + MOST_ADDED > self.config.bytes.max(FEWEST_BYTES) {
            let Some(victim) = self.runs.list(false).back() else { return };
            self.runs.evict(victim, steps);
        }
    }

    /// Brings in the run around an entry; for a write the run from there on, if the entry before it
    /// is cached, or it alone.
    fn load(&mut self, entry: Entry, access: Access, shape: &dyn Shape) -> u32 {
        let page = self.runs.page_around(entry);
        let goes_on = entry.checked_sub(1).is_some_and(|before| self.runs.has(before));
        let is_read = access == Access::Read;
        let start = if is_read { start_of_run(shape, entry, page.start) } else { entry };
        let end = if is_read || goes_on { end_of_run(shape, entry, page.end) } else { entry + 1 };
        self.runs.add(start..end, distance(shape, entry))
    }
}

impl Cache for Extents {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        self.runs.join_changed(shape);
        let found = self.runs.find(entry);
        if let Some(slot) = found {
            self.runs.touch(slot);
        }
        self.make_room(steps);
        let slot = found.unwrap_or_else(|| {
            steps.push(CacheStep::Read { page: self.config.page_of(entry) });
            self.load(entry, access, shape)
        });
        if access.is_change() {
            self.runs.cut_out(slot, entry);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        self.runs.moved(entry)
    }

    fn written(&mut self, page: TranslationPage) {
        self.runs.clean(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.runs.is_dirty(entry)
    }

    fn occupancy(&self) -> Occupancy {
        self.runs.occupancy()
    }
}
