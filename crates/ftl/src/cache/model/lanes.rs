//! The reference of `lanes`: sets of entries, each with the time of its last use.

use super::super::lanes::{FEWEST_BYTES, MOST_CUT, PROTECTED_PERCENT, SEQUENCES, page_bytes};
use super::super::runs::{Distance, PageShape, distance};
use super::*;
use crate::sequences::Sequences;

#[derive(Clone, Debug)]
struct LaneRun {
    entries: BTreeSet<Entry>,
    dirty: bool,
    is_protected: bool,
    /// Not known while a change is under way.
    distance: Option<Distance>,
}

pub(super) struct Lanes {
    config: CacheConfig,
    /// The runs; the one used last comes first.
    runs: Vec<LaneRun>,
    changed: Vec<Entry>,
    reads: Sequences,
    changes: Sequences,
}

impl Lanes {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self {
            config,
            runs: Vec::new(),
            changed: Vec::new(),
            reads: Sequences::new(SEQUENCES),
            changes: Sequences::new(SEQUENCES),
        }
    }

    fn position(&self, entry: Entry) -> Option<usize> {
        self.runs.iter().position(|run| run.entries.contains(&entry))
    }

    fn page(&self, run: &LaneRun) -> TranslationPage {
        self.config.page_of(*run.entries.first().unwrap())
    }

    fn go_on(&self, entry: Entry, shape: &dyn Shape) -> bool {
        self.config.page_of(entry) == self.config.page_of(entry + 1) && shape.follows(entry)
    }

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

    fn bytes(&self) -> u64 {
        let mut sorted: Vec<&LaneRun> = self.runs.iter().collect();
        sorted.sort_by_key(|run| run.entries.first().copied());
        let of_pages = sorted.chunk_by(|a, b| self.page(a) == self.page(b));
        of_pages.map(|runs| page_bytes(&self.config, shape_of(runs))).sum()
    }

    /// Takes a run to the front of all, protected or not.
    fn renew(&mut self, at: usize, is_protected: bool) {
        let mut run = self.runs.remove(at);
        run.is_protected = is_protected;
        self.runs.insert(0, run);
    }

    fn demote(&mut self) {
        loop {
            let protected = self.runs.iter().filter(|run| run.is_protected).count();
            if protected * 100 <= self.runs.len() * PROTECTED_PERCENT {
                return;
            }
            let coldest = self.runs.iter().rposition(|run| run.is_protected).unwrap();
            self.renew(coldest, false);
        }
    }

    fn make_room(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) {
        self.demote();
        while self.bytes() + MOST_CUT > self.config.bytes.max(FEWEST_BYTES) {
            let Some(at) = self.runs.iter().rposition(|run| !run.is_protected) else { return };
            if self.runs[at].entries.contains(&entry) {
                return;
            }
            let page = self.page(&self.runs[at]);
            if self.runs[at].dirty {
                let mut entries = page.0 << self.config.shift..(page.0 + 1) << self.config.shift;
                let whole = entries.all(|entry| self.position(entry).is_some());
                steps.push(CacheStep::Write { page, whole });
                self.written(page);
            }
            self.runs.remove(at);
            self.demote();
        }
    }

    /// The entries from `entry` on whose addresses follow each other.
    fn onward(&self, entry: Entry, shape: &dyn Shape) -> BTreeSet<Entry> {
        let mut entries = BTreeSet::from([entry]);
        while self.go_on(*entries.last().unwrap(), shape) {
            entries.insert(entries.last().unwrap() + 1);
        }
        entries
    }

    fn add(&mut self, entries: BTreeSet<Entry>, shape: &dyn Shape) {
        let (inside, outside): (Vec<LaneRun>, Vec<LaneRun>) =
            self.runs.drain(..).partition(|run| run.entries.is_subset(&entries));
        self.runs = outside;
        let distance = Some(distance(shape, *entries.first().unwrap()));
        let dirty = inside.iter().any(|run| run.dirty);
        self.runs.insert(0, LaneRun { entries, dirty, is_protected: false, distance });
    }

    fn load(&mut self, entry: Entry, access: Access, goes_on: bool, shape: &dyn Shape) {
        let is_read = access == Access::Read;
        let mut entries =
            if is_read || goes_on { self.onward(entry, shape) } else { BTreeSet::from([entry]) };
        if goes_on {
            let mut ahead = Vec::new();
            let mut next = entries.last().unwrap() + 1;
            while self.config.page_of(next) == self.config.page_of(entry) {
                let run = self.onward(next, shape);
                next = run.last().unwrap() + 1;
                ahead.push(run);
            }
            for run in ahead.into_iter().rev() {
                if run.iter().all(|&entry| self.position(entry).is_none()) {
                    self.add(run, shape);
                }
            }
        }
        while is_read
            && entries.first().unwrap().checked_sub(1).is_some_and(|it| self.go_on(it, shape))
        {
            entries.insert(entries.first().unwrap() - 1);
        }
        self.add(entries, shape);
    }

    fn cut_out(&mut self, entry: Entry) {
        let at = self.position(entry).unwrap();
        let run = self.runs.remove(at);
        let part = |keep: &dyn Fn(Entry) -> bool| LaneRun {
            entries: run.entries.iter().copied().filter(|&it| keep(it)).collect(),
            ..run.clone()
        };
        let alone = LaneRun { dirty: true, distance: None, ..part(&|it| it == entry) };
        let parts = [alone, part(&|it| it > entry), part(&|it| it < entry)];
        self.runs.splice(at..at, parts.into_iter().filter(|part| !part.entries.is_empty()));
    }
}

/// Runs of one page, in the order of their entries.
fn shape_of(runs: &[&LaneRun]) -> PageShape {
    let mut shape = PageShape { runs: runs.len() as u32, pieces: 0 };
    let mut before = None;
    for run in runs.iter().filter(|run| run.distance != Some(None)) {
        shape.pieces += u32::from(run.distance.is_none() || run.distance != before);
        before = run.distance;
    }
    shape
}

impl Model for Lanes {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        self.join_changed(shape);
        let is_read = access == Access::Read;
        let sequences = if is_read { &mut self.reads } else { &mut self.changes };
        let goes_on = sequences.visit(entry).is_some();
        let found = self.position(entry);
        match found {
            Some(at) => {
                let is_protected = self.runs[at].is_protected || (is_read && !goes_on);
                self.renew(at, is_protected);
            }
            None => self.load(entry, access, goes_on, shape),
        }
        self.make_room(entry, steps);
        if found.is_none() {
            steps.push(CacheStep::Read { page: self.config.page_of(entry) });
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
        let of_page = |run: &&mut LaneRun| config.page_of(*run.entries.first().unwrap()) == page;
        self.runs.iter_mut().filter(of_page).for_each(|run| run.dirty = false);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.position(entry).is_some_and(|at| self.runs[at].dirty)
    }
}
