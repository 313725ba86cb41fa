//! The reference of `extent`.

use super::super::extent::{EXTENT_BYTES, FEWEST_BYTES, MOST_ADDED, NODE_BYTES};
use super::runs::SetRuns;
use super::*;

pub(super) struct Extents(SetRuns);

impl Extents {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self(SetRuns::new(config))
    }

    fn bytes(&self) -> u64 {
        let pages = self.0.shapes().len() as u64;
        self.0.runs.len() as u64 * EXTENT_BYTES + pages * NODE_BYTES
    }

    fn make_room(&mut self, steps: &mut Vec<CacheStep>) {
        while self.bytes() + MOST_ADDED > self.0.config.bytes.max(FEWEST_BYTES) {
            self.0.evict(self.0.runs.len() - 1, steps);
        }
    }

    fn load(&mut self, entry: Entry, access: Access, shape: &dyn Shape) {
        let is_read = access == Access::Read;
        let goes_on = entry > 0 && self.0.position(entry - 1).is_some();
        let mut entries =
            if is_read || goes_on { self.0.onward(entry, shape) } else { BTreeSet::from([entry]) };
        if is_read {
            self.0.add_before(&mut entries, shape);
        }
        self.0.add(entries, shape);
    }
}

impl Model for Extents {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        self.0.join_changed(shape);
        let found = self.0.position(entry);
        if let Some(at) = found {
            self.0.runs[..=at].rotate_right(1);
        }
        self.make_room(steps);
        if found.is_none() {
            steps.push(CacheStep::Read { page: self.0.config.page_of(entry) });
            self.load(entry, access, shape);
        }
        if access.is_change() {
            self.0.cut_out(entry);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        self.0.moved(entry)
    }

    fn written(&mut self, page: TranslationPage) {
        self.0.written(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.0.is_dirty(entry)
    }

    fn entries_in_runs(&self) -> Option<u64> {
        Some(self.0.entries())
    }
}
