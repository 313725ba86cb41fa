//! `extent`: runs of entries whose addresses follow each other, one record each: a cached interval
//! map (ours).
//!
//! A run that a log-structured file system writes in one piece, or has not written yet, costs
//! one record however long it is, up to a translation page. A miss for a read brings in the run
//! around the entry; one for a write the entry alone, or the run from there on if the entry before
//! it is cached: the host goes on in order. An entry that changes is cut out of its run, and joins
//! its neighbours again where its new address follows theirs. What goes is the least recently used
//! run; a dirty one is written with all dirty ones of its translation page, which stay, clean. Two
//! runs that join are dirty if one was. Addresses that follow each other are found in what was just
//! read, with the cached changes over it: the map as it is now.

use std::collections::BTreeMap;

use super::list::{Links, List};
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

/// The entries `start..end`, within one translation page.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: Entry,
    end: Entry,
    dirty: bool,
}

#[derive(Debug)]
struct Extents {
    config: CacheConfig,
    slots: Vec<Extent>,
    free: Vec<u32>,
    by_start: BTreeMap<Entry, u32>,
    bytes: u64,
    links: Vec<Links>,
    order: List,
    /// Entries whose addresses have changed since the last access: whether they join their
    /// neighbours is still to be seen.
    changed: Vec<Entry>,
}

impl Extents {
    fn new(config: CacheConfig) -> Self {
        Self {
            config,
            bytes: 0,
            slots: Vec::new(),
            free: Vec::new(),
            by_start: BTreeMap::new(),
            links: Vec::new(),
            order: List::default(),
            changed: Vec::new(),
        }
    }

    fn get(&self, slot: u32) -> Extent {
        self.slots[slot as usize]
    }

    /// The run that `entry` is in.
    fn find(&self, entry: Entry) -> Option<u32> {
        let (_, &slot) = self.by_start.range(..=entry).next_back()?;
        (entry < self.get(slot).end).then_some(slot)
    }

    fn page_range(&self, page: TranslationPage) -> std::ops::Range<Entry> {
        page.0 << self.config.shift..(page.0 + 1) << self.config.shift
    }

    /// The runs of a translation page, in the order of entries.
    fn of_page(&self, page: TranslationPage) -> impl Iterator<Item = u32> {
        self.by_start.range(self.page_range(page)).map(|(_, &slot)| slot)
    }

    fn all(&self) -> impl Iterator<Item = Extent> {
        self.by_start.values().map(|&slot| self.get(slot))
    }

    /// Bytes of the node for the translation page of `entry`, if no run needs it now.
    fn node_bytes(&self, entry: Entry) -> u64 {
        let is_new = self.of_page(self.config.page_of(entry)).next().is_none();
        if is_new { NODE_BYTES } else { 0 }
    }

    /// A slot for a run that is in no list yet.
    fn allot(&mut self, extent: Extent) -> u32 {
        self.bytes += EXTENT_BYTES + self.node_bytes(extent.start);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = extent;
                slot
            }
            None => {
                self.slots.push(extent);
                self.links.push(Links::default());
                self.slots.len() as u32 - 1
            }
        };
        self.by_start.insert(extent.start, slot);
        slot
    }

    fn remove(&mut self, slot: u32) -> Extent {
        let extent = self.get(slot);
        self.by_start.remove(&extent.start);
        self.bytes -= EXTENT_BYTES + self.node_bytes(extent.start);
        self.order.remove(&mut self.links, slot);
        self.free.push(slot);
        extent
    }

    /// Makes a run of `entry` alone, dirty; the rest of its run stays right behind it in the order
    /// of use.
    fn cut_out(&mut self, slot: u32, entry: Entry) {
        let Extent { start, end, dirty } = self.get(slot);
        self.by_start.remove(&start);
        self.slots[slot as usize] = Extent { start: entry, end: entry + 1, dirty: true };
        self.by_start.insert(entry, slot);
        for rest in [start..entry, entry + 1..end].into_iter().filter(|rest| !rest.is_empty()) {
            let rest = self.allot(Extent { start: rest.start, end: rest.end, dirty });
            self.order.insert_behind(&mut self.links, rest, slot);
        }
    }

    fn join_changed(&mut self, shape: &dyn Shape) {
        while let Some(entry) = self.changed.pop() {
            if let Some(slot) = self.find(entry) {
                self.join(slot, shape);
            }
        }
    }

    /// Joins a run with its neighbours where addresses go on.
    fn join(&mut self, slot: u32, shape: &dyn Shape) {
        let Extent { start, end, .. } = self.get(slot);
        let page = self.page_range(self.config.page_of(start));
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
        let Extent { start, end, dirty } = self.remove(other);
        let into = self.get(slot);
        self.by_start.remove(&into.start);
        let joined = Extent {
            start: start.min(into.start),
            end: end.max(into.end),
            dirty: dirty || into.dirty,
        };
        self.slots[slot as usize] = joined;
        self.by_start.insert(joined.start, slot);
    }

    fn make_room(&mut self, steps: &mut Vec<CacheStep>) {
        while self.bytes + MOST_ADDED > self.config.bytes.max(FEWEST_BYTES) {
            let Some(victim) = self.order.back() else { return };
            let Extent { start, dirty, .. } = self.get(victim);
            if dirty {
                let page = self.config.page_of(start);
                steps.push(CacheStep::Write { page, whole: self.has_all_of(page) });
                self.clean(page);
            }
            self.remove(victim);
        }
    }

    fn has_all_of(&self, page: TranslationPage) -> bool {
        let entries: u64 =
            self.of_page(page).map(|slot| self.get(slot)).map(|it| it.end - it.start).sum();
        entries == self.config.page_entries()
    }

    fn clean(&mut self, page: TranslationPage) {
        let range = self.page_range(page);
        for &slot in self.by_start.range(range).map(|(_, slot)| slot) {
            self.slots[slot as usize].dirty = false;
        }
    }

    /// Brings in the run around an entry; for a write the run from there on, if the entry before it
    /// is cached, or it alone.
    fn load(&mut self, entry: Entry, access: Access, shape: &dyn Shape) -> u32 {
        let page = self.page_range(self.config.page_of(entry));
        let (mut start, mut end) = (entry, entry + 1);
        let goes_on = entry.checked_sub(1).is_some_and(|before| self.find(before).is_some());
        while (access == Access::Read || goes_on) && end < page.end && shape.follows(end - 1) {
            end += 1;
        }
        while access == Access::Read && start > page.start && shape.follows(start - 1) {
            start -= 1;
        }
        let mut dirty = false;
        let parts: Vec<u32> = self.by_start.range(start..end).map(|(_, &slot)| slot).collect();
        for part in parts {
            dirty |= self.remove(part).dirty;
        }
        let slot = self.allot(Extent { start, end, dirty });
        self.order.push_front(&mut self.links, slot);
        slot
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
        self.join_changed(shape);
        let found = self.find(entry);
        if let Some(slot) = found {
            self.order.promote(&mut self.links, slot);
        }
        self.make_room(steps);
        let slot = found.unwrap_or_else(|| {
            steps.push(CacheStep::Read { page: self.config.page_of(entry) });
            self.load(entry, access, shape)
        });
        if access.is_change() {
            self.cut_out(slot, entry);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let Some(slot) = self.find(entry) else { return false };
        self.cut_out(slot, entry);
        self.changed.push(entry);
        true
    }

    fn written(&mut self, page: TranslationPage) {
        self.clean(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.find(entry).is_some_and(|slot| self.get(slot).dirty)
    }

    fn occupancy(&self) -> Occupancy {
        let entries = |it: Extent| it.end - it.start;
        Occupancy {
            entries: self.all().map(entries).sum(),
            dirty: self.all().filter(|it| it.dirty).map(entries).sum(),
            ..Occupancy::default()
        }
    }
}
