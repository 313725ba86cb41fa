//! Cached runs: entries in a row whose addresses follow each other, one record each.
//!
//! A run lies within one translation page. An entry that changes is cut out of its run, and joins
//! its neighbours again where its new address follows theirs; whether it does is seen with the next
//! access, in what was just read with the cached changes over it: the map as it is now. Two runs
//! that join are dirty if one was. A policy says what the runs of a translation page take, and
//! which of two lists a run is in.

use std::collections::BTreeMap;
use std::ops::Range;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::list::{Links, List};
use super::{CacheConfig, CacheStep, Entry, Occupancy, Shape, TranslationPage};

/// The entries `start..end`, within one translation page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start: Entry,
    pub(super) end: Entry,
    pub(super) dirty: bool,
    /// Set if it is in the second list: for the policy.
    pub(super) is_protected: bool,
    /// From its entries to their flash pages; not known while a change is under way.
    distance: Option<Distance>,
}

/// From an entry to its flash page; `None` where it has none.
pub(super) type Distance = Option<u64>;

/// The distance of an entry.
pub(super) fn distance(shape: &dyn Shape, entry: Entry) -> Distance {
    shape.place(entry).map(|place| place.wrapping_sub(entry))
}

impl Run {
    fn contains(&self, entry: Entry) -> bool {
        (self.start..self.end).contains(&entry)
    }

    fn has_place(&self) -> bool {
        self.distance != Some(None)
    }

    /// Tells whether its addresses go on with those of `before`, whatever lies between them.
    fn goes_on_from(&self, before: &Self) -> bool {
        self.distance.is_some() && self.distance == before.distance
    }
}

/// The runs of a translation page, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageShape {
    pub(super) runs: u32,
    /// Entries in them.
    pub(super) entries: u32,
    /// Runs with flash pages. Two of them count as one if their addresses go on over a gap.
    pub(super) pieces: u32,
}

/// Bytes that the runs of a translation page take.
pub(super) type PageBytes = fn(&CacheConfig, PageShape) -> u64;

#[derive(Clone, Debug)]
pub(super) struct Runs {
    config: CacheConfig,
    page_bytes: PageBytes,
    slots: Vec<Run>,
    free: Vec<u32>,
    by_start: BTreeMap<Entry, u32>,
    /// The translation pages with runs.
    pages: HashMap<TranslationPage, PageShape, FxBuildHasher>,
    bytes: u64,
    /// Entries in all runs, and in the dirty ones.
    entries: u64,
    dirty: u64,
    links: Vec<Links>,
    /// The runs in the order of their use: those that are not protected, and those that are.
    lists: [List; 2],
    /// Entries whose addresses have changed since the last access: whether they join their
    /// neighbours is still to be seen.
    changed: Vec<Entry>,
}

impl Runs {
    pub(super) fn new(config: CacheConfig, page_bytes: PageBytes) -> Self {
        Self {
            config,
            page_bytes,
            slots: Vec::new(),
            free: Vec::new(),
            by_start: BTreeMap::new(),
            pages: HashMap::default(),
            bytes: 0,
            entries: 0,
            dirty: 0,
            links: Vec::new(),
            lists: [List::default(); 2],
            changed: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.by_start.len()
    }

    pub(super) fn get(&self, slot: u32) -> Run {
        self.slots[slot as usize]
    }

    /// The run that `entry` is in.
    pub(super) fn find(&self, entry: Entry) -> Option<u32> {
        let (_, &slot) = self.by_start.range(..=entry).next_back()?;
        self.get(slot).contains(entry).then_some(slot)
    }

    pub(super) fn has(&self, entry: Entry) -> bool {
        self.find(entry).is_some()
    }

    /// Tells whether one of these entries is cached.
    pub(super) fn has_any(&self, entries: Range<Entry>) -> bool {
        self.has(entries.start) || self.within(entries).next().is_some()
    }

    /// The entries of the translation page that `entry` is in.
    pub(super) fn page_around(&self, entry: Entry) -> Range<Entry> {
        self.entries_of(self.config.page_of(entry))
    }

    fn entries_of(&self, page: TranslationPage) -> Range<Entry> {
        page.0 << self.config.shift..(page.0 + 1) << self.config.shift
    }

    /// The first of these entries that is cached, or their end.
    pub(super) fn next_cached(&self, entries: Range<Entry>) -> Entry {
        self.by_start.range(entries.clone()).next().map_or(entries.end, |(&start, _)| start)
    }

    fn within(&self, entries: Range<Entry>) -> impl Iterator<Item = u32> {
        self.by_start.range(entries).map(|(_, &slot)| slot)
    }

    /// The runs that are protected, or those that are not, in the order of their use.
    pub(super) fn list(&self, is_protected: bool) -> &List {
        &self.lists[usize::from(is_protected)]
    }

    /// The run is used now.
    pub(super) fn touch(&mut self, slot: u32) {
        let list = usize::from(self.get(slot).is_protected);
        self.lists[list].promote(&mut self.links, slot);
    }

    /// Takes a run to the front of the other list.
    pub(super) fn protect(&mut self, slot: u32, is_protected: bool) {
        let before = usize::from(self.get(slot).is_protected);
        self.lists[before].remove(&mut self.links, slot);
        self.slots[slot as usize].is_protected = is_protected;
        self.lists[usize::from(is_protected)].push_front(&mut self.links, slot);
    }

    /// Counts a run that comes into its translation page, or goes.
    fn count(&mut self, run: Run, comes: bool) {
        let page = self.config.page_of(run.start);
        let pieces = self.pieces_of(&run);
        let mut shape = self.pages.get(&page).copied().unwrap_or_default();
        self.bytes -= (self.page_bytes)(&self.config, shape);
        let sign = if comes { 1 } else { -1 };
        let entries = run.end - run.start;
        shape.runs = shape.runs.saturating_add_signed(sign);
        shape.entries = shape.entries.saturating_add_signed(sign * entries as i32);
        shape.pieces = shape.pieces.saturating_add_signed(sign * pieces);
        let dirty = if run.dirty { entries } else { 0 };
        self.entries = self.entries.saturating_add_signed(i64::from(sign) * entries as i64);
        self.dirty = self.dirty.saturating_add_signed(i64::from(sign) * dirty as i64);
        self.bytes += (self.page_bytes)(&self.config, shape);
        if shape.runs == 0 {
            self.pages.remove(&page);
        } else {
            self.pages.insert(page, shape);
        }
    }

    /// Pieces that its translation page has more with a run than without it.
    fn pieces_of(&self, run: &Run) -> i32 {
        if !run.has_place() {
            return 0;
        }
        let page = self.page_around(run.start);
        let run_at = |(_, &slot): (&Entry, &u32)| self.get(slot);
        let before = self.by_start.range(page.start..run.start).rev().map(run_at);
        let after = self.by_start.range(run.end..page.end).map(run_at);
        let before = { before }.find(Run::has_place);
        let after = { after }.find(Run::has_place);
        let begins = |run: &Run, before: &Option<Run>| {
            i32::from(!before.is_some_and(|before| run.goes_on_from(&before)))
        };
        let behind = after.map_or(0, |after| begins(&after, &Some(*run)) - begins(&after, &before));
        begins(run, &before) + behind
    }

    /// Enters a run where it begins.
    fn enter(&mut self, slot: u32) {
        let run = self.get(slot);
        self.count(run, true);
        self.by_start.insert(run.start, slot);
    }

    /// Takes a run out, to be changed or dropped.
    fn take_out(&mut self, slot: u32) -> Run {
        let run = self.get(slot);
        self.by_start.remove(&run.start);
        self.count(run, false);
        run
    }

    /// A slot for a run that is in no list yet.
    fn allot(&mut self, run: Run) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = run;
                slot
            }
            None => {
                self.slots.push(run);
                self.links.push(Links::default());
                self.slots.len() as u32 - 1
            }
        };
        self.enter(slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> Run {
        let run = self.take_out(slot);
        self.lists[usize::from(run.is_protected)].remove(&mut self.links, slot);
        self.free.push(slot);
        run
    }

    /// Adds the run of these entries, used now and not protected; runs inside it become part of it.
    pub(super) fn add(&mut self, entries: Range<Entry>, distance: Distance) -> u32 {
        let parts: Vec<u32> = self.within(entries.clone()).collect();
        let mut dirty = false;
        for part in parts {
            dirty |= self.remove(part).dirty;
        }
        let Range { start, end } = entries;
        let distance = Some(distance);
        let run = Run { start, end, dirty, is_protected: false, distance };
        let slot = self.allot(run);
        self.lists[0].push_front(&mut self.links, slot);
        slot
    }

    /// Makes a run of `entry` alone, dirty; the rest of its run stays right behind it in the order
    /// of use.
    pub(super) fn cut_out(&mut self, slot: u32, entry: Entry) {
        let whole = self.take_out(slot);
        let alone = Run { start: entry, end: entry + 1, dirty: true, distance: None, ..whole };
        self.slots[slot as usize] = alone;
        self.enter(slot);
        let rests = [whole.start..entry, entry + 1..whole.end];
        for rest in rests.into_iter().filter(|rest| !rest.is_empty()) {
            let rest = self.allot(Run { start: rest.start, end: rest.end, ..whole });
            let list = usize::from(whole.is_protected);
            self.lists[list].insert_behind(&mut self.links, rest, slot);
        }
    }

    /// The address of an entry has changed. Says whether the entry is cached.
    pub(super) fn moved(&mut self, entry: Entry) -> bool {
        let Some(slot) = self.find(entry) else { return false };
        self.cut_out(slot, entry);
        self.changed.push(entry);
        true
    }

    /// Joins what has changed with its neighbours.
    pub(super) fn join_changed(&mut self, shape: &dyn Shape) {
        while let Some(entry) = self.changed.pop() {
            if let Some(slot) = self.find(entry) {
                self.take_out(slot);
                self.slots[slot as usize].distance = Some(distance(shape, entry));
                self.enter(slot);
                self.join(slot, shape);
            }
        }
    }

    /// Joins a run with its neighbours where addresses go on.
    fn join(&mut self, slot: u32, shape: &dyn Shape) {
        let Run { start, end, .. } = self.get(slot);
        let page = self.page_around(start);
        if end < page.end && shape.follows(end - 1) {
            self.absorb(slot, end);
        }
        if start > page.start && shape.follows(start - 1) {
            self.absorb(slot, start - 1);
        }
    }

    /// Adds the run that has `entry`, if one has, to its neighbour in `slot`.
    fn absorb(&mut self, slot: u32, entry: Entry) {
        let Some(other) = self.find(entry) else { return };
        let Run { start, end, dirty, .. } = self.remove(other);
        let into = self.take_out(slot);
        let joined = Run {
            start: start.min(into.start),
            end: end.max(into.end),
            dirty: dirty || into.dirty,
            ..into
        };
        self.slots[slot as usize] = joined;
        self.enter(slot);
    }

    /// Drops a run; if it is dirty, its translation page is written with all that is dirty of it,
    /// which stays, clean.
    pub(super) fn evict(&mut self, slot: u32, steps: &mut Vec<CacheStep>) {
        let Run { start, dirty, .. } = self.get(slot);
        if dirty {
            let page = self.config.page_of(start);
            steps.push(CacheStep::Write { page, whole: self.has_all_of(page) });
            self.clean(page);
        }
        self.remove(slot);
    }

    /// Writes the translation page of a clean run that is about to go if it is dirty and all of it
    /// is cached: later it has to be read before.
    pub(super) fn write_if_whole(&mut self, slot: u32, steps: &mut Vec<CacheStep>) {
        let page = self.config.page_of(self.get(slot).start);
        if self.has_all_of(page) && self.has_dirty(page) {
            steps.push(CacheStep::Write { page, whole: true });
            self.clean(page);
        }
    }

    fn has_dirty(&self, page: TranslationPage) -> bool {
        self.within(self.entries_of(page)).any(|slot| self.get(slot).dirty)
    }

    fn has_all_of(&self, page: TranslationPage) -> bool {
        let shape = self.pages.get(&page);
        shape.is_some_and(|shape| u64::from(shape.entries) == self.config.page_entries())
    }

    /// The translation page is written.
    pub(super) fn clean(&mut self, page: TranslationPage) {
        let entries = self.entries_of(page);
        for &slot in self.by_start.range(entries).map(|(_, slot)| slot) {
            let run = &mut self.slots[slot as usize];
            if std::mem::take(&mut run.dirty) {
                self.dirty -= run.end - run.start;
            }
        }
    }

    pub(super) fn is_dirty(&self, entry: Entry) -> bool {
        self.find(entry).is_some_and(|slot| self.get(slot).dirty)
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        Occupancy { entries: self.entries, dirty: self.dirty, ..Occupancy::default() }
    }
}

/// The end of the run that begins at `start`, at most `end`.
pub(super) fn end_of_run(shape: &dyn Shape, start: Entry, end: Entry) -> Entry {
    let mut next = start + 1;
    while next < end && shape.follows(next - 1) {
        next += 1;
    }
    next
}

/// The start of the run that `entry` is in, at least `start`.
pub(super) fn start_of_run(shape: &dyn Shape, entry: Entry, start: Entry) -> Entry {
    let mut first = entry;
    while first > start && shape.follows(first - 1) {
        first -= 1;
    }
    first
}
