//! The interval map: seven areas, each a tree, and what keeps them small.

use std::ops::Range;

use dovetail_nand::Ppn;

use super::super::MapCost;
use super::address::{AREAS, Layout, LogicalPage};
use super::change::{CompactionPolicy, Scan};
use super::lookaside::{KNOWN, Lookaside, STREAM};
use super::memory::MapMemory;
use super::node::{Entries, NODE_BYTES, Node, Slabs};
use super::root::Zones;
use super::zone::{ZONE_BYTES, ZoneNode};

/// Entries of a cache line, the unit in which copying is charged.
pub(super) const LINE_ENTRIES: u32 = 16;

/// A map from logical pages of 2^61 blocks to physical pages, whose memory follows what is mapped.
#[derive(Clone, Debug)]
pub struct IntervalMap {
    pub(super) layout: Layout,
    pub(super) slabs: Slabs,
    /// The first pages of the metadata area, as [`entry`]s.
    pub(super) metadata: Vec<u32>,
    pub(super) areas: [Zones; AREAS],
    /// Set if the root of some area is being moved.
    pub(super) moving: bool,
    /// First pages of the segments that may be worth compacting.
    pub(super) candidates: Vec<LogicalPage>,
    pub(super) lookaside: Lookaside,
    pub(super) counts: Counts,
    pub(super) policy: CompactionPolicy,
    pub(super) scan: Scan,
    /// Entries of one segment, to work in.
    pub(super) scratch: Vec<u32>,
}

/// The nodes of all trees.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) zone_nodes: u64,
    pub(super) map_nodes: u64,
    pub(super) directory_words: u64,
    pub(super) covered_pages: u64,
    pub(super) valid_pages: u64,
    /// Pages that the metadata's table maps.
    metadata_pages: u64,
}

/// An entry of the metadata's table.
const ONE: MapCost = MapCost { accesses: 1 };

fn entry(page: Option<Ppn>) -> u32 {
    page.map_or(0, |page| page.0 + 1)
}

fn page_of(entry: u32) -> Option<Ppn> {
    entry.checked_sub(1).map(Ppn)
}

impl IntervalMap {
    /// An empty map; the first `metadata_pages` pages of the metadata area, in whole segments of 16
    /// MiB, are mapped by a plain table, all else by trees.
    pub fn new(layout: Layout, metadata_pages: u32) -> Self {
        Self {
            layout,
            slabs: Slabs::new(layout.segment_pages() as usize),
            metadata: vec![0; metadata_pages.next_multiple_of(layout.segment_pages()) as usize],
            areas: std::array::from_fn(|_| Zones::new()),
            moving: false,
            candidates: Vec::new(),
            lookaside: Lookaside::new(),
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

    /// Returns how addresses are cut up.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns where `page` is, if it is mapped.
    // Each way ends on its own, and none in a panic: a way that does not join another needs no
    // saved register and no jump.
    #[inline]
    pub fn lookup(&self, page: LogicalPage) -> (Option<Ppn>, MapCost) {
        let tables = &self.slabs.tables;
        if let Some(at) = self.lookaside.find_in_stream(page) {
            return (page_of(tables.word_of_block(at)), STREAM);
        }
        if let Some(at) = self.lookaside.find_in_table(page) {
            return (page_of(tables.word_of_block(at)), KNOWN);
        }
        self.lookup_by_walk(page)
    }

    /// Maps `page` to `to`, or unmaps it; returns what it was mapped to before.
    #[inline]
    pub fn update(&mut self, page: LogicalPage, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let entry = entry(to);
        if let Some(at) = self.lookaside.find_in_stream(page) {
            return self.overwrite(page, at, entry, STREAM);
        }
        if let Some(at) = self.lookaside.find_in_table(page) {
            return self.overwrite(page, at, entry, KNOWN);
        }
        self.update_by_walk(page, entry)
    }

    /// Replaces an entry of a known run.
    #[inline]
    fn overwrite(
        &mut self,
        page: LogicalPage,
        at: usize,
        entry: u32,
        found: MapCost,
    ) -> (Option<Ppn>, MapCost) {
        let word = self.slabs.tables.word_of_block_mut(at);
        if (*word == 0) == (entry == 0) {
            return (page_of(std::mem::replace(word, entry)), found);
        }
        self.recount_known(page, at, entry, found)
    }

    #[inline(never)]
    fn recount_known(
        &mut self,
        page: LogicalPage,
        at: usize,
        entry: u32,
        found: MapCost,
    ) -> (Option<Ppn>, MapCost) {
        self.replace(page, self.lookaside.node(page), at, entry, found)
    }

    /// The zones of an area from the first to behind the last with valid pages, outliers left out;
    /// empty without any. `None` is an area that does not exist.
    pub fn active_interval(&self, area: usize) -> Option<Range<u64>> {
        self.areas.get(area).map(Zones::active_interval)
    }

    /// The zones that an area's root covers, or its new root if it is being made.
    pub fn mapping_interval(&self, area: usize) -> Option<Range<u64>> {
        self.areas.get(area).map(Zones::mapping_interval)
    }

    /// Returns how many zones with valid pages stand outside an area's roots.
    pub fn outliers(&self, area: usize) -> Option<usize> {
        self.areas.get(area).map(Zones::outliers)
    }

    /// Tells whether an area's root is being moved.
    pub fn is_root_moving(&self, area: usize) -> bool {
        self.areas.get(area).is_some_and(Zones::is_moving)
    }

    /// Pages that are mapped by trees.
    pub const fn valid_pages(&self) -> u64 {
        self.counts.valid_pages
    }

    /// Pages that are mapped, by trees and by the metadata's table.
    pub const fn mapped(&self) -> u64 {
        self.counts.valid_pages + self.counts.metadata_pages
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
            zone_nodes: counts.zone_nodes * ZONE_BYTES - counts.map_nodes * NODE_BYTES,
            map_nodes: counts.map_nodes * NODE_BYTES,
            directories: counts.directory_words * 4,
            tables: counts.covered_pages * 4,
            lookaside: self.lookaside.memory_bytes(),
            candidates: (self.candidates.capacity() * size_of::<LogicalPage>()) as u64,
            slack: held - nodes.allocated_bytes() - tables.allocated_bytes(),
            bookkeeping: self.scratch.len() as u64 * 4 + records + size_of::<Self>() as u64,
        }
    }

    /// Index of the entry of `page` among the words of tables, if it has one: for prefetching. The
    /// known runs stay as they are.
    #[inline]
    pub(super) fn entry_index(&self, page: LogicalPage) -> Option<usize> {
        match self.lookaside.peek(page) {
            Some(at) => Some(at),
            None => self.entry_index_by_walk(page),
        }
    }

    #[cold]
    fn entry_index_by_walk(&self, page: LogicalPage) -> Option<usize> {
        let (_, entries) = self.walk(page).0?;
        Some(entries.at + (self.layout.offset(page) - entries.run.first) as usize)
    }

    pub(super) fn words(&self) -> &[u32] {
        self.slabs.tables.words()
    }

    /// The place of the segment's node, if the zone has one, and the accesses to know.
    #[inline]
    pub(super) fn node(&self, page: LogicalPage) -> (Option<Node>, u32) {
        let segment = self.layout.segment_of(page);
        let (zone, accesses) = self.areas[segment.area()].get(segment.zone());
        (zone.map(|zone| ZoneNode(zone).node(segment.in_zone())), accesses)
    }

    /// From the root down to the covered run of `page`.
    fn walk(&self, page: LogicalPage) -> (Option<(Node, Entries)>, u32) {
        let words = self.slabs.nodes.words();
        let (node, above) = self.node(page);
        let Some(node) = node.filter(|node| node.exists(words)) else {
            return (None, above + u32::from(node.is_some()));
        };
        let (entries, within) = node.find(words, self.layout.offset(page));
        (entries.map(|entries| (node, entries)), above + within)
    }

    #[cold]
    fn lookup_by_walk(&self, page: LogicalPage) -> (Option<Ppn>, MapCost) {
        if let Some(&entry) = self.metadata.get(page.0 as usize) {
            return (page_of(entry), ONE);
        }
        let (found, accesses) = self.walk(page);
        let at = found.map(|(node, entries)| self.remember(page, node, entries));
        let entry = at.map_or(0, |at| self.slabs.tables.words()[at]);
        (page_of(entry), MapCost { accesses: accesses + u32::from(at.is_some()) })
    }

    #[cold]
    fn update_by_walk(&mut self, page: LogicalPage, entry: u32) -> (Option<Ppn>, MapCost) {
        if let Some(place) = self.metadata.get_mut(page.0 as usize) {
            let before = std::mem::replace(place, entry);
            self.counts.metadata_pages += u64::from(entry != 0);
            self.counts.metadata_pages -= u64::from(before != 0);
            return (page_of(before), ONE);
        }
        let (found, mut accesses) = self.walk(page);
        let (node, entries) = match found {
            Some(found) => found,
            None if entry == 0 => return (None, MapCost { accesses }),
            None => self.cover(page, &mut accesses),
        };
        let at = self.remember(page, node, entries);
        self.replace(page, node, at, entry, MapCost { accesses: accesses + 1 })
    }

    /// Keeps the run for the next pages; returns the index of the entry of `page`.
    fn remember(&self, page: LogicalPage, node: Node, entries: Entries) -> usize {
        let (offset, first) = (self.layout.offset(page), entries.run.first);
        self.lookaside.keep(LogicalPage(page.0 - u64::from(offset - first)), node, entries);
        entries.at + (offset - first) as usize
    }

    /// Replaces an entry that it took `found` to find, and counts what became valid or invalid by
    /// it.
    fn replace(
        &mut self,
        page: LogicalPage,
        node: Node,
        at: usize,
        entry: u32,
        found: MapCost,
    ) -> (Option<Ppn>, MapCost) {
        let before = std::mem::replace(&mut self.slabs.tables.words_mut()[at], entry);
        if (before == 0) == (entry == 0) {
            return (page_of(before), found);
        }
        let accesses = found.accesses + self.recount(page, node, entry != 0) + self.step_roots();
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
