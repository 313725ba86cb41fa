//! The reference of `lanes`.

use super::super::lanes::{FEWEST_BYTES, MOST_CUT, PROTECTED_PERCENT, SEQUENCES, page_bytes};
use super::runs::SetRuns;
use super::*;
use crate::sequences::Sequences;

pub(super) struct Lanes {
    held: SetRuns,
    reads: Sequences,
    changes: Sequences,
}

impl Lanes {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self {
            held: SetRuns::new(config),
            reads: Sequences::new(SEQUENCES),
            changes: Sequences::new(SEQUENCES),
        }
    }

    fn bytes(&self) -> u64 {
        let config = self.held.config;
        self.held.shapes().into_iter().map(|shape| page_bytes(&config, shape)).sum()
    }

    /// Takes a run to the front of all, protected or not.
    fn renew(&mut self, at: usize, is_protected: bool) {
        let mut run = self.held.runs.remove(at);
        run.is_protected = is_protected;
        self.held.runs.insert(0, run);
    }

    fn demote(&mut self) {
        loop {
            let protected = self.held.runs.iter().filter(|run| run.is_protected).count();
            if protected * 100 <= self.held.runs.len() * PROTECTED_PERCENT {
                return;
            }
            let coldest = self.held.runs.iter().rposition(|run| run.is_protected).unwrap();
            self.renew(coldest, false);
        }
    }

    fn make_room(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) {
        self.demote();
        while self.bytes() + MOST_CUT > self.held.config.bytes.max(FEWEST_BYTES) {
            let coldest = self.held.runs.iter().rposition(|run| !run.is_protected);
            let Some(at) = coldest.filter(|&at| !self.held.runs[at].entries.contains(&entry))
            else {
                return;
            };
            let page = self.held.page(&self.held.runs[at]);
            if self.held.has_all_of(page) && self.held.has_dirty(page) {
                steps.push(CacheStep::Write { page, whole: true });
                self.held.written(page);
            }
            self.held.evict(at, steps);
            self.demote();
        }
    }

    fn load(&mut self, entry: Entry, access: Access, goes_on: bool, shape: &dyn Shape) {
        if access == Access::Trim {
            return self.load_page(entry, shape);
        }
        let is_read = access == Access::Read;
        let mut entries = if is_read || goes_on {
            self.held.onward(entry, shape)
        } else {
            BTreeSet::from([entry])
        };
        if goes_on {
            self.load_ahead(entries.last().unwrap() + 1, entry, shape);
        }
        if is_read {
            self.held.add_before(&mut entries, shape);
        }
        self.held.add(entries, shape);
    }

    /// Brings in the runs of the page of `entry` that are not cached.
    fn load_page(&mut self, entry: Entry, shape: &dyn Shape) {
        let (mut others, mut wanted) = (Vec::new(), BTreeSet::new());
        let mut missing = self.held.entries_of(self.held.config.page_of(entry));
        missing.retain(|&entry| self.held.position(entry).is_none());
        while let Some(&first) = missing.first() {
            let mut run = self.held.onward(first, shape);
            let gap = run.iter().find(|entry| !missing.contains(entry)).copied();
            gap.into_iter().for_each(|gap| drop(run.split_off(&gap)));
            missing.retain(|entry| !run.contains(entry));
            if run.contains(&entry) { wanted = run } else { others.push(run) }
        }
        others.into_iter().rev().for_each(|run| self.held.add(run, shape));
        self.held.add(wanted, shape);
    }

    /// The runs from `next` to the end of the page of `entry`.
    fn load_ahead(&mut self, mut next: Entry, entry: Entry, shape: &dyn Shape) {
        let config = self.held.config;
        let mut ahead = Vec::new();
        while config.page_of(next) == config.page_of(entry) {
            let run = self.held.onward(next, shape);
            next = run.last().unwrap() + 1;
            ahead.push(run);
        }
        for run in ahead.into_iter().rev() {
            if run.iter().all(|&entry| self.held.position(entry).is_none()) {
                self.held.add(run, shape);
            }
        }
    }
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
        self.held.join_changed(shape);
        let is_read = access == Access::Read;
        let sequences = if is_read { &mut self.reads } else { &mut self.changes };
        let goes_on = sequences.visit(entry).is_some();
        let found = self.held.position(entry);
        match found {
            Some(at) => {
                let is_protected = self.held.runs[at].is_protected || (is_read && !goes_on);
                self.renew(at, is_protected);
            }
            None => self.load(entry, access, goes_on, shape),
        }
        self.make_room(entry, steps);
        if found.is_none() {
            steps.push(CacheStep::Read { page: self.held.config.page_of(entry) });
        }
        if access.is_change() {
            self.held.cut_out(entry);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        self.held.moved(entry)
    }

    fn written(&mut self, page: TranslationPage) {
        self.held.written(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.held.is_dirty(entry)
    }

    fn entries_in_runs(&self) -> Option<u64> {
        Some(self.held.entries())
    }
}
