//! The reference of `extent`: sets of entries in the order of their last use.

use super::super::extent::{EXTENT_BYTES, FEWEST_BYTES, MOST_ADDED, NODE_BYTES};
use super::*;

#[derive(Clone, Debug)]
struct ExtentRun {
    entries: BTreeSet<Entry>,
    dirty: bool,
}

pub(super) struct Extents {
    config: CacheConfig,
    /// The runs; the one used last comes first.
    runs: Vec<ExtentRun>,
    changed: Vec<Entry>,
}

impl Extents {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { config, runs: Vec::new(), changed: Vec::new() }
    }

    fn position(&self, entry: Entry) -> Option<usize> {
        self.runs.iter().position(|run| run.entries.contains(&entry))
    }

    fn page(&self, run: &ExtentRun) -> TranslationPage {
        self.config.page_of(*run.entries.first().unwrap())
    }

    /// Tells whether the addresses of two neighbours follow each other within a translation page.
    fn go_on(&self, entry: Entry, shape: &dyn Shape) -> bool {
        self.config.page_of(entry) == self.config.page_of(entry + 1) && shape.follows(entry)
    }

    /// Joins the runs of two entries, if both are cached, where the one of `keeps` stands.
    fn join(&mut self, keeps: Entry, other: Entry) {
        let Some(other) = self.position(other) else { return };
        let other = self.runs.remove(other);
        let keeps = self.position(keeps).unwrap();
        self.runs[keeps].entries.extend(other.entries);
        self.runs[keeps].dirty |= other.dirty;
    }

    fn join_changed(&mut self, shape: &dyn Shape) {
        while let Some(entry) = self.changed.pop() {
            let Some(at) = self.position(entry) else { continue };
            let (first, last) =
                (*self.runs[at].entries.first().unwrap(), *self.runs[at].entries.last().unwrap());
            if self.go_on(last, shape) {
                self.join(entry, last + 1);
            }
            if first > 0 && self.go_on(first - 1, shape) {
                self.join(entry, first - 1);
            }
        }
    }

    fn bytes(&self) -> u64 {
        let pages: BTreeSet<TranslationPage> = self.runs.iter().map(|run| self.page(run)).collect();
        self.runs.len() as u64 * EXTENT_BYTES + pages.len() as u64 * NODE_BYTES
    }

    fn make_room(&mut self, steps: &mut Vec<CacheStep>) {
        while self.bytes() + MOST_ADDED > self.config.bytes.max(FEWEST_BYTES) {
            let gone = self.runs.last().unwrap().clone();
            let page = self.page(&gone);
            if gone.dirty {
                let cached = |entry: &Entry| self.position(*entry).is_some();
                let mut entries = page.0 << self.config.shift..(page.0 + 1) << self.config.shift;
                steps.push(CacheStep::Write { page, whole: entries.all(|entry| cached(&entry)) });
                self.written(page);
            }
            self.runs.pop();
        }
    }

    fn load(&mut self, entry: Entry, access: Access, shape: &dyn Shape) {
        let mut entries = BTreeSet::from([entry]);
        let in_order = entry > 0 && self.position(entry - 1).is_some();
        while (access == Access::Read || in_order) && self.go_on(*entries.last().unwrap(), shape) {
            entries.insert(entries.last().unwrap() + 1);
        }
        let before = |entries: &BTreeSet<Entry>| entries.first().unwrap().checked_sub(1);
        while let Some(before) =
            before(&entries).filter(|&before| access == Access::Read && self.go_on(before, shape))
        {
            entries.insert(before);
        }
        let (inside, outside): (Vec<ExtentRun>, Vec<ExtentRun>) =
            self.runs.drain(..).partition(|run| run.entries.is_subset(&entries));
        self.runs = outside;
        self.runs.insert(0, ExtentRun { entries, dirty: inside.iter().any(|run| run.dirty) });
    }

    fn cut_out(&mut self, entry: Entry) {
        let at = self.position(entry).unwrap();
        let run = self.runs.remove(at);
        let part = |keep: &dyn Fn(Entry) -> bool| ExtentRun {
            entries: run.entries.iter().copied().filter(|&it| keep(it)).collect(),
            dirty: run.dirty,
        };
        let alone = ExtentRun { entries: BTreeSet::from([entry]), dirty: true };
        let parts = [alone, part(&|it| it > entry), part(&|it| it < entry)];
        self.runs.splice(at..at, parts.into_iter().filter(|part| !part.entries.is_empty()));
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
        self.join_changed(shape);
        let found = self.position(entry);
        if let Some(at) = found {
            self.runs[..=at].rotate_right(1);
        }
        self.make_room(steps);
        if found.is_none() {
            steps.push(CacheStep::Read { page: self.config.page_of(entry) });
            self.load(entry, access, shape);
        }
        if access.is_change() {
            self.cut_out(entry);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        if self.position(entry).is_none() {
            return false;
        }
        self.cut_out(entry);
        self.changed.push(entry);
        true
    }

    fn written(&mut self, page: TranslationPage) {
        let config = self.config;
        let of_page = |run: &&mut ExtentRun| config.page_of(*run.entries.first().unwrap()) == page;
        self.runs.iter_mut().filter(of_page).for_each(|run| run.dirty = false);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.position(entry).is_some_and(|at| self.runs[at].dirty)
    }
}
