//! The interval map against a sorted map: random sets, discards, region and root changes, compaction at any point, over
//! pages of 4 and 16 KiB and all seven areas, near the ends of areas too.
//!
//! `DOVETAIL_SEED=N cargo test -p dovetail-ftl --test interval` runs one seed; `DOVETAIL_CASES=N` as many.

#![allow(clippy::unwrap_used, reason = "a test may stop at a broken set-up")]

use std::collections::BTreeMap;

use dovetail_block::Lba;
use dovetail_ftl::mapping::interval::{AREA_BLOCKS, AREAS, IntervalMap, Layout, LogicalPage, MapMemory};
use dovetail_nand::Ppn;
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
        assert_eq!(self.map.lookup(page).0, self.model.get(&page).copied(), "seed {}: {page}", self.seed);
    }

    fn check_all(&self) {
        self.model.keys().for_each(|&page| self.check(page));
    }

    fn memory(&self) -> MapMemory {
        self.map.memory()
    }
}

/// Where a random step works: a few places in the whole space, so that steps meet.
fn place(rng: &mut Rng) -> u64 {
    let area = rng.below(AREAS as u64) * AREA_BLOCKS;
    let zones = [0, 1, 33, 40, 1 << 20, AREA_BLOCKS / ZONE_BLOCKS - 2, AREA_BLOCKS / ZONE_BLOCKS - 1];
    let zone = area + zones[rng.below(zones.len() as u64) as usize] * ZONE_BLOCKS;
    let segments = [0, 4096, 1023 * 4096, 1022 * 4096];
    zone + segments[rng.below(segments.len() as u64) as usize] + rng.below(4096)
}

fn step(pair: &mut Pair, rng: &mut Rng, now: &mut SimTime) {
    let start = place(rng);
    let end = (start + 1 + rng.below(600)).min((start / AREA_BLOCKS + 1) * AREA_BLOCKS);
    match rng.below(20) {
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
        _ => (0..50).for_each(|_| pair.check(pair.page(place(rng)))),
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
        let metadata = pair.model.range(..LogicalPage::from(dovetail_nand::Lpn(metadata_pages))).count();
        assert_eq!(pair.map.valid_pages(), (pair.model.len() - metadata) as u64, "seed {seed}");
    }
    pair.check_all();
    pair.map.compact_all();
    pair.check_all();
    let pages: Vec<LogicalPage> = pair.model.keys().copied().collect();
    pages.into_iter().for_each(|page| pair.discard(pair.layout.block_of(page).0));
    (0..100).for_each(|_| pair.check(pair.page(place(&mut rng))));
    let memory = pair.memory();
    assert_eq!((memory.zone_nodes, memory.map_nodes, memory.directories, memory.tables), (0, 0, 0, 0));
    assert_eq!((memory.slack, memory.candidates), (0, 0), "seed {seed}: all memory comes back");
    assert!(memory.roots <= empty + 4096, "seed {seed}: {memory:?}");
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
