//! The interval map: seven areas, each a tree, and what keeps them small.

use std::cell::Cell;
use std::ops::Range;

use dovetail_nand::Ppn;

use super::super::MapCost;
use super::address::{AREAS, Layout, LogicalPage};
use super::arena::{Arena, Block};
use super::change::Scan;
use super::memory::MapMemory;
use super::node::{Entries, NODE_BYTES, Node};
use super::root::Zones;
use super::zone::{ZONE_BYTES, ZoneNode};

/// Entries of a cache line, the unit in which copying is charged.
pub(super) const LINE_ENTRIES: u32 = 16;

/// A map from logical pages of 2^61 blocks to physical pages, whose memory follows what is mapped.
#[derive(Debug)]
pub struct IntervalMap {
    pub(super) layout: Layout,
    pub(super) arena: Arena,
    /// The first pages of the metadata area, as [`entry`]s.
    metadata: Vec<u32>,
    pub(super) areas: [Zones; AREAS],
    /// Whether the root of some area is being moved.
    pub(super) moving: bool,
    /// First pages of the segments that may be worth compacting.
    pub(super) candidates: Vec<LogicalPage>,
    recent: Cell<Recent>,
    pub(super) counts: Counts,
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

/// The covered run that was used last: the next page is most often in it, and then the tree needs no walk.
#[derive(Clone, Copy, Debug)]
struct Recent {
    start: u64,
    pages: u64,
    /// Index of the first page's entry among the arena's words.
    at: usize,
    node: Node,
}

const ONE: MapCost = MapCost { accesses: 1 };

fn entry(page: Option<Ppn>) -> u32 {
    page.map_or(0, |page| page.0 + 1)
}

fn page_of(entry: u32) -> Option<Ppn> {
    entry.checked_sub(1).map(Ppn)
}

impl IntervalMap {
    /// An empty map; the first `metadata_pages` pages of the metadata area are mapped by a plain table, all else by
    /// trees.
    pub fn new(layout: Layout, metadata_pages: u32) -> Self {
        Self {
            layout,
            arena: Arena::new(),
            metadata: vec![0; metadata_pages as usize],
            areas: std::array::from_fn(|_| Zones::new()),
            moving: false,
            candidates: Vec::new(),
            recent: Cell::new(Recent { start: 0, pages: 0, at: 0, node: Node(Block::NOWHERE) }),
            counts: Counts::default(),
            scan: Scan::default(),
            scratch: vec![0; layout.segment_pages() as usize],
        }
    }

    /// How addresses are cut up.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Where `page` is, if it is mapped.
    #[inline]
    pub fn lookup(&self, page: LogicalPage) -> (Option<Ppn>, MapCost) {
        let recent = self.recent.get();
        let index = page.0.wrapping_sub(recent.start);
        if index < recent.pages {
            return (page_of(self.arena.words()[recent.at + index as usize]), ONE);
        }
        self.lookup_by_walk(page)
    }

    /// Maps `page` to `to`, or unmaps it; returns what it was mapped to before.
    #[inline]
    pub fn update(&mut self, page: LogicalPage, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let recent = self.recent.get();
        let index = page.0.wrapping_sub(recent.start);
        if index < recent.pages {
            let moved = self.step_roots();
            let before = self.replace(page, recent.node, recent.at + index as usize, entry(to));
            return (before, MapCost { accesses: 1 + moved });
        }
        self.update_by_walk(page, entry(to))
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
        let (scratch, records) = (self.scratch.len() as u64 * 4, self.arena.bookkeeping_bytes());
        MapMemory {
            metadata_table: self.metadata.len() as u64 * 4,
            roots: self.areas.iter().map(Zones::memory_bytes).sum(),
            zone_nodes: counts.zone_nodes * ZONE_BYTES,
            map_nodes: counts.map_nodes * NODE_BYTES,
            directories: counts.directory_words * 4,
            tables: counts.covered_pages * 4,
            candidates: (self.candidates.capacity() * size_of::<LogicalPage>()) as u64,
            slack: self.arena.held_bytes() - self.arena.allocated_bytes(),
            bookkeeping: scratch + records + size_of::<Self>() as u64,
        }
    }

    /// Index of the entry of `page` among the arena's words, if it is covered and the walk to it is short: for
    /// prefetching.
    pub(super) fn entry_index(&self, page: LogicalPage) -> Option<usize> {
        let (node, _) = self.node(page);
        let offset = self.layout.offset(page);
        let (entries, _) = node?.find(self.arena.words(), offset);
        entries.map(|entries| entries.at + (offset - entries.run.first) as usize)
    }

    pub(super) fn words(&self) -> &[u32] {
        self.arena.words()
    }

    fn lookup_by_walk(&self, page: LogicalPage) -> (Option<Ppn>, MapCost) {
        if let Some(&entry) = self.metadata.get(page.0 as usize) {
            return (page_of(entry), ONE);
        }
        let (found, accesses) = self.walk(page);
        let at = found.map(|(node, entries)| self.remember(page, node, entries));
        let entry = at.map_or(0, |at| self.arena.words()[at]);
        (page_of(entry), MapCost { accesses: accesses + u32::from(at.is_some()) })
    }

    #[inline]
    pub(super) fn node(&self, page: LogicalPage) -> (Option<Node>, u32) {
        let area = &self.areas[self.layout.area(page)];
        let (zone, accesses) = area.get(self.layout.zone(page));
        match zone {
            Some(zone) => {
                let node = ZoneNode(zone).get(self.arena.words(), self.layout.segment(page));
                (node, accesses + 1)
            }
            None => (None, accesses),
        }
    }

    /// From the root down to the covered run of `page`.
    #[inline]
    fn walk(&self, page: LogicalPage) -> (Option<(Node, Entries)>, u32) {
        let (Some(node), above) = self.node(page) else {
            return (None, self.node(page).1);
        };
        let (entries, within) = node.find(self.arena.words(), self.layout.offset(page));
        (entries.map(|entries| (node, entries)), above + within)
    }

    /// Keeps the run for the next pages; returns the index of the entry of `page`.
    #[inline]
    fn remember(&self, page: LogicalPage, node: Node, Entries { run, at }: Entries) -> usize {
        let offset = self.layout.offset(page);
        let start = page.0 - u64::from(offset) + u64::from(run.first);
        self.recent.set(Recent { start, pages: run.pages.into(), at, node });
        at + (offset - run.first) as usize
    }

    pub(super) fn forget_recent(&mut self) {
        self.recent.get_mut().pages = 0;
    }

    fn update_by_walk(&mut self, page: LogicalPage, entry: u32) -> (Option<Ppn>, MapCost) {
        if let Some(slot) = self.metadata.get_mut(page.0 as usize) {
            return (page_of(std::mem::replace(slot, entry)), ONE);
        }
        let moved = self.step_roots();
        let (found, mut accesses) = self.walk(page);
        accesses += moved;
        let (node, entries) = match found {
            Some(found) => found,
            None if entry == 0 => return (None, MapCost { accesses }),
            None => self.cover(page, &mut accesses),
        };
        let at = self.remember(page, node, entries);
        (self.replace(page, node, at, entry), MapCost { accesses: accesses + 1 })
    }

    /// Replaces an entry and counts what became valid or invalid by it.
    #[inline]
    fn replace(&mut self, page: LogicalPage, node: Node, at: usize, entry: u32) -> Option<Ppn> {
        let before = std::mem::replace(&mut self.arena.words_mut()[at], entry);
        match (before == 0, entry == 0) {
            (true, false) => {
                node.count(self.arena.words_mut(), true);
                self.counts.valid_pages += 1;
            }
            (false, true) => self.invalidated(page, node),
            _ => {}
        }
        page_of(before)
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
