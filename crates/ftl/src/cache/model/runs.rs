//! Runs as sets of entries, in one order of use: for the references of `extent` and `lanes`.

use super::super::runs::{Distance, PageShape, distance};
use super::*;

#[derive(Clone, Debug)]
pub(super) struct SetRun {
    pub(super) entries: BTreeSet<Entry>,
    dirty: bool,
    pub(super) is_protected: bool,
    /// Not known while a change is under way.
    distance: Option<Distance>,
}

pub(super) struct SetRuns {
    pub(super) config: CacheConfig,
    /// The runs; the one used last comes first.
    pub(super) runs: Vec<SetRun>,
    changed: Vec<Entry>,
}

impl SetRuns {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { config, runs: Vec::new(), changed: Vec::new() }
    }

    pub(super) fn entries(&self) -> u64 {
        self.runs.iter().map(|run| run.entries.len() as u64).sum()
    }

    pub(super) fn position(&self, entry: Entry) -> Option<usize> {
        self.runs.iter().position(|run| run.entries.contains(&entry))
    }

    pub(super) fn page(&self, run: &SetRun) -> TranslationPage {
        self.config.page_of(*run.entries.first().unwrap())
    }

    /// The shape of each translation page that has runs.
    pub(super) fn shapes(&self) -> Vec<PageShape> {
        let mut sorted: Vec<&SetRun> = self.runs.iter().collect();
        sorted.sort_by_key(|run| run.entries.first().copied());
        sorted.chunk_by(|a, b| self.page(a) == self.page(b)).map(shape_of).collect()
    }

    /// Tells whether the addresses of two neighbours follow each other within a translation page.
    pub(super) fn go_on(&self, entry: Entry, shape: &dyn Shape) -> bool {
        self.config.page_of(entry) == self.config.page_of(entry + 1) && shape.follows(entry)
    }

    /// The entries from `entry` on whose addresses follow each other.
    pub(super) fn onward(&self, entry: Entry, shape: &dyn Shape) -> BTreeSet<Entry> {
        let mut entries = BTreeSet::from([entry]);
        while self.go_on(*entries.last().unwrap(), shape) {
            entries.insert(entries.last().unwrap() + 1);
        }
        entries
    }

    /// Adds the entries before `entries` whose addresses go on there.
    pub(super) fn add_before(&self, entries: &mut BTreeSet<Entry>, shape: &dyn Shape) {
        while let Some(before) = entries.first().unwrap().checked_sub(1)
            && self.go_on(before, shape)
        {
            entries.insert(before);
        }
    }

    /// Joins the runs of two entries, if both are cached, where the one of `keeps` stands.
    fn join(&mut self, keeps: Entry, other: Entry) {
        let Some(other) = self.position(other) else { return };
        let other = self.runs.remove(other);
        let keeps = self.position(keeps).unwrap();
        self.runs[keeps].entries.extend(other.entries);
        self.runs[keeps].dirty |= other.dirty;
    }

    pub(super) fn join_changed(&mut self, shape: &dyn Shape) {
        while let Some(entry) = self.changed.pop() {
            let Some(at) = self.position(entry) else { continue };
            self.runs[at].distance = Some(distance(shape, entry));
            let entries = &self.runs[at].entries;
            let (first, last) = (*entries.first().unwrap(), *entries.last().unwrap());
            if self.go_on(last, shape) {
                self.join(entry, last + 1);
            }
            if first > 0 && self.go_on(first - 1, shape) {
                self.join(entry, first - 1);
            }
        }
    }

    /// Adds a run as the one used last; runs inside it become part of it.
    pub(super) fn add(&mut self, entries: BTreeSet<Entry>, shape: &dyn Shape) {
        let (inside, outside): (Vec<SetRun>, Vec<SetRun>) =
            self.runs.drain(..).partition(|run| run.entries.is_subset(&entries));
        self.runs = outside;
        let distance = Some(distance(shape, *entries.first().unwrap()));
        let dirty = inside.iter().any(|run| run.dirty);
        self.runs.insert(0, SetRun { entries, dirty, is_protected: false, distance });
    }

    pub(super) fn cut_out(&mut self, entry: Entry) {
        let at = self.position(entry).unwrap();
        let run = self.runs.remove(at);
        let part = |keep: &dyn Fn(Entry) -> bool| SetRun {
            entries: run.entries.iter().copied().filter(|&it| keep(it)).collect(),
            ..run.clone()
        };
        let alone = SetRun { dirty: true, distance: None, ..part(&|it| it == entry) };
        let parts = [alone, part(&|it| it > entry), part(&|it| it < entry)];
        self.runs.splice(at..at, parts.into_iter().filter(|part| !part.entries.is_empty()));
    }

    pub(super) fn entries_of(&self, page: TranslationPage) -> Vec<Entry> {
        (page.0 << self.config.shift..(page.0 + 1) << self.config.shift).collect()
    }

    pub(super) fn has_all_of(&self, page: TranslationPage) -> bool {
        self.entries_of(page).iter().all(|&entry| self.position(entry).is_some())
    }

    pub(super) fn has_dirty(&self, page: TranslationPage) -> bool {
        self.runs.iter().any(|run| run.dirty && self.page(run) == page)
    }

    pub(super) fn evict(&mut self, at: usize, steps: &mut Vec<CacheStep>) {
        let page = self.page(&self.runs[at]);
        if self.runs[at].dirty {
            steps.push(CacheStep::Write { page, whole: self.has_all_of(page) });
            self.written(page);
        }
        self.runs.remove(at);
    }

    pub(super) fn moved(&mut self, entry: Entry) -> bool {
        if self.position(entry).is_none() {
            return false;
        }
        self.cut_out(entry);
        self.changed.push(entry);
        true
    }

    pub(super) fn written(&mut self, page: TranslationPage) {
        let config = self.config;
        let of_page = |run: &&mut SetRun| config.page_of(*run.entries.first().unwrap()) == page;
        self.runs.iter_mut().filter(of_page).for_each(|run| run.dirty = false);
    }

    pub(super) fn is_dirty(&self, entry: Entry) -> bool {
        self.position(entry).is_some_and(|at| self.runs[at].dirty)
    }
}

/// Runs of one page, in the order of their entries.
fn shape_of(runs: &[&SetRun]) -> PageShape {
    let entries = runs.iter().map(|run| run.entries.len() as u32).sum();
    let mut shape = PageShape { runs: runs.len() as u32, entries, pieces: 0 };
    let mut before = None;
    for run in runs.iter().filter(|run| run.distance != Some(None)) {
        shape.pieces += u32::from(run.distance.is_none() || run.distance != before);
        before = run.distance;
    }
    shape
}
