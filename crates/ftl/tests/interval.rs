//! The interval map against a sorted map: random sets, discards, region and root changes,
//! compaction at any point, over pages of 4 and 16 KiB and all seven areas, near the ends of areas
//! too.
//!
//! `DOVETAIL_SEED=N cargo test -p dovetail-ftl --test all interval::` runs one seed;
//! `DOVETAIL_CASES=N` as many.

#![allow(clippy::unwrap_used, reason = "a test may stop at a broken set-up")]

use std::collections::BTreeMap;

use dovetail_block::Lba;
use dovetail_ftl::mapping::Mapping;
use dovetail_ftl::mapping::interval::{
    AREA_BLOCKS, AREAS, CompactionPolicy, IntervalMap, Layout, LogicalPage, MapMemory,
};
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::{Rng, SimSpan, SimTime};

/// 16 GiB.
const ZONE_BLOCKS: u64 = 1 << 22;

/// The map and its model.
struct Pair {
    map: IntervalMap,
    model: BTreeMap<LogicalPage, Ppn>,
    layout: Layout,
    written: u32,
    seed: u64,
}

impl Pair {
    fn new(blocks_per_page: u32, metadata_pages: u32, seed: u64) -> Self {
        let layout = Layout::new(blocks_per_page).unwrap();
        let map = IntervalMap::new(layout, metadata_pages);
        Self { map, model: BTreeMap::new(), layout, written: 0, seed }
    }

    fn page(&self, block: u64) -> LogicalPage {
        self.layout.page_of(Lba(block)).unwrap()
    }

    fn set(&mut self, block: u64) {
        let page = self.page(block);
        self.written += 1;
        let ppn = Ppn(self.written);
        let before = self.map.update(page, Some(ppn)).0;
        assert_eq!(before, self.model.insert(page, ppn), "seed {}: setting {page}", self.seed);
        self.check(page);
    }

    fn discard(&mut self, block: u64) {
        let page = self.page(block);
        let before = self.map.update(page, None).0;
        assert_eq!(before, self.model.remove(&page), "seed {}: discarding {page}", self.seed);
        self.check(page);
    }

    fn check(&self, page: LogicalPage) {
        assert_eq!(
            self.map.lookup(page).0,
            self.model.get(&page).copied(),
            "seed {}: {page}",
            self.seed
        );
    }

    fn check_all(&self) {
        self.model.keys().for_each(|&page| self.check(page));
        assert_eq!(self.map.mapped(), self.model.len() as u64, "seed {}", self.seed);
        let (mut at, end) = (self.page(0), self.page(AREAS as u64 * AREA_BLOCKS - 1));
        for &page in self.model.keys() {
            assert_eq!(
                self.next(at, end),
                Some(page).filter(|&page| page < end),
                "seed {}",
                self.seed
            );
            at = self.page(
                self.layout.block_of(page).0 + u64::from(page < end) * self.blocks_per_page(),
            );
        }
    }

    fn blocks_per_page(&self) -> u64 {
        self.layout.block_of(Lpn(1).into()).0
    }

    fn next(&self, from: LogicalPage, until: LogicalPage) -> Option<LogicalPage> {
        self.map.next_mapped(from.index()..until.index()).0
    }

    /// The next mapped page of a random range is the model's.
    fn check_next(&self, rng: &mut Rng) {
        let (a, b) = (self.page(place(rng)), self.page(place(rng)));
        let (from, until) = (a.min(b), a.max(b));
        let next = self.model.range(from..until).next().map(|(&page, _)| page);
        assert_eq!(self.next(from, until), next, "seed {}: {from} to {until}", self.seed);
    }

    fn memory(&self) -> MapMemory {
        self.map.memory()
    }
}

/// Place of a random step: one of a few in the whole space, so that steps meet.
fn place(rng: &mut Rng) -> u64 {
    let area = rng.below(AREAS as u64) * AREA_BLOCKS;
    let zones =
        [0, 1, 33, 40, 1 << 20, AREA_BLOCKS / ZONE_BLOCKS - 2, AREA_BLOCKS / ZONE_BLOCKS - 1];
    let zone = area + zones[rng.below(zones.len() as u64) as usize] * ZONE_BLOCKS;
    let segments = [0, 4096, 1023 * 4096, 1022 * 4096];
    zone + segments[rng.below(segments.len() as u64) as usize] + rng.below(4096)
}

/// Some pages in each of many zones, ahead of and behind the others, so that roots move.
fn hop(pair: &mut Pair, rng: &mut Rng) {
    let area = rng.below(AREAS as u64) * AREA_BLOCKS;
    let first = rng.below(200);
    let zones = first..first + 1 + rng.below(60);
    let keep = rng.chance(0.5);
    for zone in zones {
        let block = area + zone * ZONE_BLOCKS + rng.below(ZONE_BLOCKS);
        pair.set(block);
        if !keep || rng.chance(0.3) {
            pair.discard(block);
        }
        pair.check(pair.page(place(rng)));
    }
}

fn step(pair: &mut Pair, rng: &mut Rng, now: &mut SimTime) {
    let start = place(rng);
    let end = (start + 1 + rng.below(600)).min((start / AREA_BLOCKS + 1) * AREA_BLOCKS);
    match rng.below(22) {
        0..6 => pair.set(start),
        6..9 => (start..end).for_each(|block| pair.set(block)),
        9 => (start..end).rev().for_each(|block| pair.set(block)),
        10..12 => pair.discard(start),
        12..17 => (start..end).for_each(|block| pair.discard(block)),
        17 if rng.chance(0.8) => drop(pair.map.compact(rng.below(20) as usize)),
        17 => drop(pair.map.compact_all()),
        18 => {
            *now += SimSpan::from_ms(rng.below(20_000));
            pair.map.tick(*now);
        }
        19 | 20 => hop(pair, rng),
        _ => {
            (0..50).for_each(|_| pair.check(pair.page(place(rng))));
            (0..20).for_each(|_| pair.check_next(rng));
        }
    }
}

fn random_steps(seed: u64) {
    let mut rng = Rng::new(seed);
    let blocks_per_page = [1, 4][rng.below(2) as usize];
    let metadata_pages = [0, 4096][rng.below(2) as usize];
    let mut pair = Pair::new(blocks_per_page, metadata_pages, seed);
    let mut now = SimTime::ZERO;
    let empty = pair.memory().tree();
    for _ in 0..600 {
        step(&mut pair, &mut rng, &mut now);
        let metadata = pair.model.range(..LogicalPage::from(Lpn(metadata_pages.into()))).count();
        assert_eq!(pair.map.valid_pages(), (pair.model.len() - metadata) as u64, "seed {seed}");
        assert_bounded(&pair.map, ALWAYS);
    }
    pair.check_all();
    pair.map.compact_all();
    assert_bounded(&pair.map, COMPACTED);
    pair.check_all();
    let pages: Vec<LogicalPage> = pair.model.keys().copied().collect();
    pages.into_iter().for_each(|page| pair.discard(pair.layout.block_of(page).0));
    (0..100).for_each(|_| pair.check(pair.page(place(&mut rng))));
    let memory = pair.memory();
    assert_eq!(
        (memory.zone_nodes, memory.map_nodes, memory.directories, memory.tables),
        (0, 0, 0, 0)
    );
    assert_eq!((memory.slack, memory.candidates), (0, 0), "seed {seed}: all memory comes back");
    assert!(memory.roots <= empty + 4096, "seed {seed}: {memory:?}");
}

/// The bounds of `docs/interval-map.md`: bytes for an empty map, and for each valid page at any
/// time and after compaction.
const EMPTY: u64 = 6 << 20;
const ALWAYS: u64 = 148 << 10;
const COMPACTED: u64 = 68 << 10;

fn assert_bounded(map: &IntervalMap, bytes_per_page: u64) {
    let memory = map.memory();
    let bound = EMPTY + memory.metadata_table + bytes_per_page * map.valid_pages();
    assert!(memory.total() <= bound, "{} valid pages take {memory:?}", map.valid_pages());
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_map_agrees_with_a_sorted_map() {
    if let Some(seed) = environment("DOVETAIL_SEED") {
        return random_steps(seed);
    }
    (0..environment("DOVETAIL_CASES").unwrap_or(60)).for_each(random_steps);
}

#[test]
fn a_page_in_each_segment_takes_no_more_than_the_bound() {
    let layout = Layout::SINGLE_BLOCKS;
    let mut map = IntervalMap::new(layout, 0);
    let page = |block: u64| layout.page_of(Lba(block)).unwrap();
    let segments = || (0..600).map(|i| i * 3 * 4096);
    for first in segments() {
        for block in first..first + 4096 {
            map.update(page(block), Some(Ppn(1)));
        }
    }
    for first in segments() {
        for block in first..first + 4095 {
            map.update(page(block), None);
        }
    }
    assert_eq!(map.valid_pages(), 600);
    assert_bounded(&map, ALWAYS);
    let before = map.memory();
    map.compact_all();
    assert_bounded(&map, COMPACTED);
    assert_eq!(map.memory().tables, 600 * 4);
    assert!(map.memory().total() < before.total() / 20, "{:?}", map.memory());
}

/// A log that writes some pages of each zone of an area, in ascending order, and discards what it
/// wrote a window of zones ago.
struct Log {
    start: u64,
    pages_per_zone: u64,
    window: u64,
}

impl Log {
    /// Goes through `zones`; returns the accesses for each update.
    fn run(&self, map: &mut IntervalMap, zones: std::ops::Range<u64>) -> f64 {
        let (mut updates, mut accesses) = (0u64, 0u64);
        let mut update = |map: &mut IntervalMap, zone: u64, to| {
            for i in 0..self.pages_per_zone {
                let block = self.start + (zone + 1) * ZONE_BLOCKS - self.pages_per_zone + i;
                let page = map.layout().page_of(Lba(block)).unwrap();
                let (before, cost) = map.update(page, to);
                assert_ne!(before.is_none(), to.is_none(), "block {block}");
                updates += 1;
                accesses += u64::from(cost.accesses);
            }
        };
        for zone in zones {
            update(map, zone, Some(Ppn(zone as u32)));
            if zone >= self.window {
                update(map, zone - self.window, None);
            }
        }
        accesses as f64 / updates as f64
    }
}

/// Zones of 16 GiB that a drive of 230 GiB of TLC flash can write: 3,000 times all of it.
const LIFETIME_ZONES: u64 = 3_000 * 230 / 16;

#[test]
fn a_hundred_lifetimes_cost_no_memory_and_no_time() {
    // The log of the last area ends with its last block.
    for (area, lifetimes) in [(1, 100), (6, 5)] {
        let zones = lifetimes * LIFETIME_ZONES;
        let first_zone = if area == 6 { AREA_BLOCKS / ZONE_BLOCKS - zones } else { 0 };
        let mut map = IntervalMap::new(Layout::SINGLE_BLOCKS, 0);
        let start = area * AREA_BLOCKS + first_zone * ZONE_BLOCKS;
        let log = Log { start, pages_per_zone: 1, window: 15 };
        let early = log.run(&mut map, 0..LIFETIME_ZONES);
        let memory = map.memory();
        let late = log.run(&mut map, LIFETIME_ZONES..zones);
        assert!(
            (late / early - 1.0).abs() < 0.01,
            "{early} accesses for an update first, {late} later"
        );
        assert!(
            map.memory().total() <= memory.total() + 4096,
            "{memory:?} then {:?}",
            map.memory()
        );
        assert_eq!(map.valid_pages(), 15);
        let end = first_zone + zones;
        assert_eq!(map.active_interval(area as usize), Some(end - 15..end));
    }
}

#[test]
fn a_log_that_writes_every_page_takes_four_bytes_for_each_live_one() {
    let mut map = IntervalMap::new(Layout::SINGLE_BLOCKS, 0);
    let page = |index: u64| Layout::SINGLE_BLOCKS.page_of(Lba(2 * AREA_BLOCKS + index)).unwrap();
    let window = 32 * 4096;
    for index in 0..64 * window {
        map.update(page(index), Some(Ppn(index as u32)));
        if index >= window {
            assert_eq!(
                map.update(page(index - window), None).0,
                Some(Ppn((index - window) as u32))
            );
        }
    }
    let memory = map.memory();
    assert_eq!((memory.tables, memory.map_nodes), (window * 4, 32 * 16));
    assert!(memory.total() <= window * 4 + 200_000, "{memory:?}");
}

/// Files of 2 MiB on average, written one after the other to a log; each new one replaces one of
/// those that live, at random, as fast for their number as in the paper's figure 19: in 30 s 3.5 %
/// of the live data are written. Returns bytes of the trees for each byte of a dense table of the
/// live pages.
fn tree_after_a_file_server(policy: CompactionPolicy, compacting: bool) -> f64 {
    let layout = Layout::SINGLE_BLOCKS;
    let mut map = IntervalMap::new(layout, 0).with_policy(policy);
    let (mut rng, mut head, mut now) = (Rng::new(19), AREA_BLOCKS, SimTime::ZERO);
    let mut files = vec![0..0; 2_000];
    for _ in 0..6_000 {
        let blocks = head..head + 1 + rng.below(1024);
        head = blocks.end;
        let place = rng.below(files.len() as u64) as usize;
        let old = std::mem::replace(&mut files[place], blocks.clone());
        for block in blocks {
            assert!(map.update(layout.page_of(Lba(block)).unwrap(), Some(Ppn(1))).0.is_none());
        }
        for block in old {
            assert!(map.update(layout.page_of(Lba(block)).unwrap(), None).0.is_some());
        }
        now += SimSpan::from_ms(430);
        if compacting {
            map.tick(now);
        }
    }
    map.memory().tree() as f64 / (map.valid_pages() * 4) as f64
}

#[test]
fn compaction_keeps_the_tree_near_the_size_for_the_live_data() {
    let without = tree_after_a_file_server(CompactionPolicy::EAGER, false);
    let policies = [CompactionPolicy::PAPER, CompactionPolicy::EAGER, CompactionPolicy::TIGHT];
    let [paper, eager, tight] = policies.map(|policy| tree_after_a_file_server(policy, true));
    let all =
        format!("{without:.3} without, {paper:.3}, {eager:.3} and {tight:.3} with compaction");
    assert!(without > 2.0 && paper < 1.4 && eager < 1.17 && tight < 1.12, "{all}");
}

/// Half the segments of 8 zones, in runs of 64 to 1,024 pages, in an order that nothing else has:
/// what a drive that reads its flash after a power cut writes.
#[test]
fn writing_everything_in_again_in_any_order_ends_in_the_same_memory() {
    let layout = Layout::SINGLE_BLOCKS;
    let mut rng = Rng::new(8);
    let (mut blocks, mut at) = (Vec::new(), AREA_BLOCKS);
    while blocks.len() < 400_000 {
        let live = at..at + 64 + rng.below(960);
        let longest = if rng.chance(0.02) { ZONE_BLOCKS } else { 960 };
        at = live.end + 64 + rng.below(longest);
        blocks.extend(live);
    }
    let build = |blocks: &[u64]| {
        let mut map = IntervalMap::new(layout, 0);
        let update = |&block: &u64| map.update(layout.page_of(Lba(block)).unwrap(), Some(Ppn(1))).1;
        let accesses: u64 = blocks.iter().map(update).map(|cost| u64::from(cost.accesses)).sum();
        let accesses = accesses + u64::from(map.compact_all().cost.accesses);
        (map.memory().total() as f64, accesses as f64)
    };
    let (in_order, first_accesses) = build(&blocks);
    for i in (1..blocks.len()).rev() {
        blocks.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let (rebuilt, accesses) = build(&blocks);
    assert!(rebuilt <= 1.02 * in_order, "{in_order} in order, {rebuilt} after");
    assert!(
        accesses <= 3.0 * first_accesses,
        "{first_accesses} accesses in order, {accesses} after"
    );
}

#[test]
fn the_next_mapped_page_is_found_as_fast_in_a_huge_range_as_in_a_small_one() {
    let layout = Layout::SINGLE_BLOCKS;
    let mut map = IntervalMap::new(layout, 4096);
    let page = |block: u64| layout.page_of(Lba(block)).unwrap();
    let end = page(AREAS as u64 * AREA_BLOCKS - 1);
    assert_eq!(map.next_mapped(0..end.index()).0, None);
    let blocks =
        [5, 3 * AREA_BLOCKS + 77, 3 * AREA_BLOCKS + (1 << 50), 6 * AREA_BLOCKS + (1 << 57)];
    blocks.iter().for_each(|&block| assert_eq!(map.update(page(block), Some(Ppn(1))).0, None));
    let mut at = page(0);
    for &block in &blocks {
        let (found, cost) = map.next_mapped(at.index()..end.index());
        assert_eq!(found, Some(page(block)));
        assert!(cost.accesses < 2_000, "{cost:?}");
        assert_eq!(map.next_mapped(at.index()..page(block).index()).0, None);
        at = page(block + 1);
    }
    assert_eq!((map.next_mapped(at.index()..end.index()).0, map.mapped()), (None, 4));
}

#[test]
fn accesses_are_counted_as_the_tree_makes_them() {
    let layout = Layout::SINGLE_BLOCKS;
    let mut map = IntervalMap::new(layout, 4096);
    let page = |block: u64| layout.page_of(Lba(block)).unwrap();
    let lookup = |map: &IntervalMap, block| map.lookup(page(block)).1.accesses;
    let log = 2 * AREA_BLOCKS;
    assert_eq!(lookup(&map, log), 1, "the root knows no zone");
    (log..log + 8192).for_each(|block| assert!(map.update(page(block), Some(Ppn(1))).0.is_none()));
    map.update(page(7), Some(Ppn(1)));
    assert_eq!(lookup(&map, 7), 1, "the metadata's table");
    assert_eq!(lookup(&map, log + 3), 2, "the run is known: lookaside table and table");
    assert_eq!(lookup(&map, log + 8192), 2, "the zone node knows no map node");
    let other = 3 * AREA_BLOCKS;
    map.update(page(other), Some(Ppn(2)));
    let found = [log + 1, other + 1].map(|block| lookup(&map, block));
    assert_eq!(found, [3, 3], "one place of the lookaside table for both: root, map node, table");
    for block in (log..log + 1000).chain(log + 2000..log + 4000) {
        map.update(page(block), None);
    }
    map.compact_all();
    assert_eq!(
        (lookup(&map, log + 1001), lookup(&map, log + 1001)),
        (4, 2),
        "root, map node, directory, table"
    );
    assert_eq!(lookup(&map, log + 1), 3, "a page that is not covered has no entry");
    assert_eq!(
        map.update(page(log + 1001), Some(Ppn(2))).1.accesses,
        2,
        "an overwrite counts nothing"
    );
    assert_eq!(map.update(page(log + 1001), None).1.accesses, 3, "the node counts");
}

/// A look ahead is the simulator's own: the modelled drive has read nothing by it.
#[test]
fn what_is_expected_costs_the_modelled_map_nothing() {
    let accesses = |expect: bool| {
        let mut map = IntervalMap::new(Layout::SINGLE_BLOCKS, 0);
        let mut rng = Rng::new(7);
        let pages: Vec<u64> = (0..2000).map(|_| rng.below(1 << 30)).collect();
        for &page in &pages {
            Mapping::update(&mut map, Lpn(page), Some(Ppn(1)));
        }
        let mut accesses = 0;
        for _ in 0..20_000 {
            let lpn = Lpn(pages[rng.below(2000) as usize]);
            if expect {
                map.expect(lpn);
            }
            accesses += Mapping::lookup(&map, lpn).1.accesses;
        }
        accesses
    };
    assert_eq!(accesses(true), accesses(false));
}
