//! The interval map: seven areas, each a tree, and what keeps them small.

use std::cell::Cell;
use std::ops::Range;

use dovetail_nand::Ppn;

use super::super::MapCost;
use super::address::{AREAS, Layout, LogicalPage};
use super::arena::Block;
use super::change::{CompactionPolicy, Scan};
use super::coverage::Run;
use super::memory::MapMemory;
use super::node::{Entries, NODE_BYTES, Slabs};
use super::root::Zones;
use super::zone::{Slot, ZONE_BYTES, ZoneNode};

/// Entries of a cache line, the unit in which copying is charged.
pub(super) const LINE_ENTRIES: u32 = 16;

/// A map from logical pages of 2^61 blocks to physical pages, whose memory follows what is mapped.
#[derive(Debug)]
pub struct IntervalMap {
    pub(super) layout: Layout,
    pub(super) slabs: Slabs,
    /// The first pages of the metadata area, as [`entry`]s.
    pub(super) metadata: Vec<u32>,
    pub(super) areas: [Zones; AREAS],
    /// Whether the root of some area is being moved.
    pub(super) moving: bool,
    /// First pages of the segments that may be worth compacting.
    pub(super) candidates: Vec<LogicalPage>,
    recent: Recent,
    pub(super) counts: Counts,
    pub(super) policy: CompactionPolicy,
    pub(super) scan: Scan,
    /// Entries of one segment, to work in.
    pub(super) scratch: Vec<u32>,
}

/// What the trees are made of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) zone_nodes: u64,
    pub(super) map_nodes: u64,
    pub(super) directory_words: u64,
    pub(super) covered_pages: u64,
    pub(super) valid_pages: u64,
}

/// The run around a page is kept if the page is a multiple of this.
const REMEMBERED_EVERY: u64 = 64;

/// A covered run that was used lately: the next page is most often in it, and then the tree needs no walk. Each field
/// is read and written on its own, in one width: reads that span several writes would wait for all memory accesses
/// before them.
#[derive(Debug, Default)]
struct Recent {
    start: Cell<u64>,
    /// 0 is none.
    pages: Cell<u64>,
    /// Index of the first page's entry among the words of tables.
    at: Cell<usize>,
    slot: Cell<u32>,
}

impl Recent {
    /// Index of the entry of `page`, if it is in the run.
    #[inline]
    fn find(&self, page: LogicalPage) -> Option<usize> {
        let index = page.0.wrapping_sub(self.start.get());
        (index < self.pages.get()).then(|| self.at.get() + index as usize)
    }
}

/// An entry of the run that was used last, or of the metadata's table.
const ONE: MapCost = MapCost { accesses: 1 };

/// An entry of a table for a whole segment: root, zone node, table.
const WHOLE: MapCost = MapCost { accesses: 3 };

fn entry(page: Option<Ppn>) -> u32 {
    page.map_or(0, |page| page.0 + 1)
}

fn page_of(entry: u32) -> Option<Ppn> {
    entry.checked_sub(1).map(Ppn)
}

impl IntervalMap {
    /// An empty map; the first `metadata_pages` pages of the metadata area, in whole segments of 16 MiB, are mapped by a
    /// plain table, all else by trees.
    pub fn new(layout: Layout, metadata_pages: u32) -> Self {
        Self {
            layout,
            slabs: Slabs::new(layout.segment_pages() as usize),
            metadata: vec![0; metadata_pages.next_multiple_of(layout.segment_pages()) as usize],
            areas: std::array::from_fn(|_| Zones::new()),
            moving: false,
            candidates: Vec::new(),
            recent: Recent::default(),
            counts: Counts::default(),
            policy: CompactionPolicy::EAGER,
            scan: Scan::default(),
            scratch: vec![0; layout.segment_pages() as usize],
        }
    }

    /// The same map, compacted by another policy than [`CompactionPolicy::EAGER`].
    pub fn with_policy(self, policy: CompactionPolicy) -> Self {
        Self { policy, ..self }
    }

    /// How addresses are cut up.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Where `page` is, if it is mapped.
    #[inline]
    pub fn lookup(&self, page: LogicalPage) -> (Option<Ppn>, MapCost) {
        if let Some(at) = self.recent.find(page) {
            return (page_of(self.slabs.tables.words()[at]), ONE);
        }
        match self.find_whole(page) {
            Some((slot, table)) => {
                let at = self.remember_whole(page, slot, table);
                (page_of(self.slabs.tables.words()[at]), WHOLE)
            }
            None => self.lookup_by_walk(page),
        }
    }

    /// Maps `page` to `to`, or unmaps it; returns what it was mapped to before.
    #[inline]
    pub fn update(&mut self, page: LogicalPage, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let entry = entry(to);
        let Some(at) = self.recent.find(page) else {
            return self.update_beyond_recent(page, entry);
        };
        let word = &mut self.slabs.tables.words_mut()[at];
        if (*word == 0) == (entry == 0) {
            return (page_of(std::mem::replace(word, entry)), ONE);
        }
        self.replace(page, Slot(self.recent.slot.get()), at, entry, ONE)
    }

    /// The zones of an area from the first to behind the last with valid pages, outliers left out; empty without any.
    /// `None` is an area that does not exist.
    pub fn active_interval(&self, area: usize) -> Option<Range<u64>> {
        self.areas.get(area).map(Zones::active_interval)
    }

    /// The zones that an area's root covers, or its new root if it is being made.
    pub fn mapping_interval(&self, area: usize) -> Option<Range<u64>> {
        self.areas.get(area).map(Zones::mapping_interval)
    }

    /// How many zones with valid pages stand outside an area's roots.
    pub fn outliers(&self, area: usize) -> Option<usize> {
        self.areas.get(area).map(Zones::outliers)
    }

    /// Whether an area's root is being moved.
    pub fn is_root_moving(&self, area: usize) -> bool {
        self.areas.get(area).is_some_and(Zones::is_moving)
    }

    /// Pages that are mapped by trees.
    pub const fn valid_pages(&self) -> u64 {
        self.counts.valid_pages
    }

    /// Segments whose nodes wait for compaction.
    pub fn candidates(&self) -> usize {
        self.candidates.len()
    }

    /// The memory that the map takes.
    pub fn memory(&self) -> MapMemory {
        let counts = self.counts;
        let Slabs { nodes, tables } = &self.slabs;
        let held = nodes.held_bytes() + tables.held_bytes();
        let records = nodes.bookkeeping_bytes() + tables.bookkeeping_bytes();
        MapMemory {
            metadata_table: self.metadata.len() as u64 * 4,
            roots: self.areas.iter().map(Zones::memory_bytes).sum(),
            zone_nodes: counts.zone_nodes * ZONE_BYTES,
            map_nodes: counts.map_nodes * NODE_BYTES,
            directories: counts.directory_words * 4,
            tables: counts.covered_pages * 4,
            candidates: (self.candidates.capacity() * size_of::<LogicalPage>()) as u64,
            slack: held - nodes.allocated_bytes() - tables.allocated_bytes(),
            bookkeeping: self.scratch.len() as u64 * 4 + records + size_of::<Self>() as u64,
        }
    }

    /// Index of the entry of `page` among the words of tables, if it has one: for prefetching.
    pub(super) fn entry_index(&self, page: LogicalPage) -> Option<usize> {
        let offset = self.layout.offset(page);
        if let Some((_, table)) = self.find_whole(page) {
            return Some(table.at() + offset as usize);
        }
        let (found, _) = self.walk(page);
        found.map(|(_, entries)| entries.at + (offset - entries.run.first) as usize)
    }

    pub(super) fn words(&self) -> &[u32] {
        self.slabs.tables.words()
    }

    /// The segment's place in its zone node, if the zone has one, and the accesses to know.
    #[inline]
    pub(super) fn slot(&self, page: LogicalPage) -> (Option<Slot>, u32) {
        let segment = self.layout.segment_of(page);
        let (zone, accesses) = self.areas[segment.area()].get(segment.zone());
        (zone.map(|zone| ZoneNode(zone).slot(segment.in_zone())), accesses)
    }

    /// The table of the segment of `page`, if the zone node refers to it.
    #[inline]
    fn find_whole(&self, page: LogicalPage) -> Option<(Slot, Block)> {
        let segment = self.layout.segment_of(page);
        let zone = self.areas[segment.area()].in_root(segment.zone())?;
        let slot = ZoneNode(zone).slot(segment.in_zone());
        Some((slot, slot.whole_table(self.slabs.nodes.words())?))
    }

    /// From the root down to the covered run of `page`, through the map node.
    fn walk(&self, page: LogicalPage) -> (Option<(Slot, Entries)>, u32) {
        let words = self.slabs.nodes.words();
        let (slot, above) = self.slot(page);
        let Some((slot, node)) = slot.and_then(|slot| Some((slot, slot.node(words)?))) else {
            return (None, above + u32::from(slot.is_some()));
        };
        let (entries, within) = node.find(words, self.layout.offset(page));
        (entries.map(|entries| (slot, entries)), above + 1 + within)
    }

    /// Apart from [`IntervalMap::update`], so that a page of the recent run need not save what only this needs.
    #[inline(never)]
    fn update_beyond_recent(&mut self, page: LogicalPage, entry: u32) -> (Option<Ppn>, MapCost) {
        let Some((slot, table)) = self.find_whole(page) else {
            return self.update_by_walk(page, entry);
        };
        let at = self.remember_whole(page, slot, table);
        let word = &mut self.slabs.tables.words_mut()[at];
        if (*word == 0) == (entry == 0) {
            return (page_of(std::mem::replace(word, entry)), WHOLE);
        }
        self.replace(page, slot, at, entry, WHOLE)
    }

    #[cold]
    fn lookup_by_walk(&self, page: LogicalPage) -> (Option<Ppn>, MapCost) {
        if let Some(&entry) = self.metadata.get(page.0 as usize) {
            return (page_of(entry), ONE);
        }
        let (found, accesses) = self.walk(page);
        let at = found.map(|(slot, entries)| self.remember(page, slot, entries));
        let entry = at.map_or(0, |at| self.slabs.tables.words()[at]);
        (page_of(entry), MapCost { accesses: accesses + u32::from(at.is_some()) })
    }

    #[cold]
    fn update_by_walk(&mut self, page: LogicalPage, entry: u32) -> (Option<Ppn>, MapCost) {
        if let Some(slot) = self.metadata.get_mut(page.0 as usize) {
            return (page_of(std::mem::replace(slot, entry)), ONE);
        }
        let (found, mut accesses) = self.walk(page);
        let (slot, entries) = match found {
            Some(found) => found,
            None if entry == 0 => return (None, MapCost { accesses }),
            None => self.cover(page, &mut accesses),
        };
        let at = self.remember(page, slot, entries);
        self.replace(page, slot, at, entry, MapCost { accesses: accesses + 1 })
    }

    /// Keeps the run for the next pages; returns the index of the entry of `page`. Not for each page, so that scattered
    /// accesses do not write all this each time: a stream comes by one that does within 256 KiB.
    #[inline]
    fn remember(&self, page: LogicalPage, slot: Slot, Entries { run, at }: Entries) -> usize {
        let offset = self.layout.offset(page);
        if page.0.is_multiple_of(REMEMBERED_EVERY) {
            let recent = &self.recent;
            recent.start.set(page.0 - u64::from(offset) + u64::from(run.first));
            recent.pages.set(run.pages.into());
            recent.at.set(at);
            recent.slot.set(slot.0);
        }
        at + (offset - run.first) as usize
    }

    #[inline]
    fn remember_whole(&self, page: LogicalPage, slot: Slot, table: Block) -> usize {
        let run = Run { first: 0, pages: self.layout.segment_pages() };
        self.remember(page, slot, Entries { run, at: table.at() })
    }

    pub(super) fn forget_recent(&mut self) {
        self.recent = Recent::default();
    }

    /// Replaces an entry that it took `found` to find, and counts what became valid or invalid by it.
    #[inline(never)]
    fn replace(
        &mut self,
        page: LogicalPage,
        slot: Slot,
        at: usize,
        entry: u32,
        found: MapCost,
    ) -> (Option<Ppn>, MapCost) {
        let before = std::mem::replace(&mut self.slabs.tables.words_mut()[at], entry);
        if (before == 0) == (entry == 0) {
            return (page_of(before), found);
        }
        let accesses = found.accesses + self.recount(page, slot, entry != 0) + self.step_roots();
        (page_of(before), MapCost { accesses })
    }

    /// Moves some entries of each area whose root moves; returns the accesses.
    #[inline]
    fn step_roots(&mut self) -> u32 {
        if !self.moving {
            return 0;
        }
        let moved: u32 = self.areas.iter_mut().map(Zones::step).sum();
        self.moving = self.areas.iter().any(Zones::is_moving);
        2 * moved.div_ceil(LINE_ENTRIES)
    }
}
