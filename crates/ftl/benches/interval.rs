//! The interval map beside the dense page table, both behind the trait that the drive uses, in one
//! run: time of lookups and updates over 64 GiB of live pages of 4 KiB, and memory when all is live
//! and when half is dead.
//!
//! Rounds of the two maps alternate; the figure is the best round, the one that other work on the
//! machine disturbed least. `lookup` has many independent lookups in flight, as far as the
//! processor can; in `lookup, chained` each address depends on what the lookup before found.
//!
//! `cargo bench -p dovetail-ftl --bench interval [-- GIB]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::hint::black_box;
use std::time::Instant;

use dovetail_block::Lba;
use dovetail_ftl::mapping::interval::{IntervalMap, Layout};
use dovetail_ftl::mapping::{self, MapShape, Mapping};
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::Rng;

/// Operations of a round.
const OPERATIONS: usize = 1 << 20;
const ROUNDS: usize = 60;

/// The map that `name` builds, with every page mapped in order.
fn full(name: &str, pages: u32) -> Box<dyn Mapping> {
    let mut map = (mapping::scheme(name).unwrap().build)(MapShape {
        pages: pages.into(),
        blocks_per_page: 1,
    });
    for page in 0..pages {
        map.update(Lpn(page.into()), Some(Ppn(page)));
    }
    map
}

fn lookup(map: &mut dyn Mapping, pages: &[u32]) {
    let sum: u64 =
        pages.iter().map(|&page| u64::from(map.lookup(Lpn(page.into())).0.unwrap().0)).sum();
    black_box(sum);
}

fn lookup_chained(map: &mut dyn Mapping, pages: &[u32]) {
    let mut carry = 0;
    for &page in pages {
        carry = map.lookup(Lpn((page ^ (carry & 1)).into())).0.unwrap().0;
    }
    black_box(carry);
}

fn update(map: &mut dyn Mapping, pages: &[u32]) {
    for (i, &page) in (0u32..).zip(pages) {
        black_box(map.update(Lpn(page.into()), Some(Ppn(i))));
    }
}

fn update_expected(map: &mut dyn Mapping, pages: &[u32]) {
    for (i, &page) in (0u32..).zip(pages) {
        if let Some(&ahead) = pages.get(i as usize + 16) {
            map.expect(Lpn(ahead.into()));
        }
        black_box(map.update(Lpn(page.into()), Some(Ppn(i))));
    }
}

/// Unmaps and maps each page again.
fn remap(map: &mut dyn Mapping, pages: &[u32]) {
    for (i, &page) in (0u32..).zip(pages) {
        black_box(map.update(Lpn(page.into()), None));
        black_box(map.update(Lpn(page.into()), Some(Ppn(i))));
    }
}

/// Nanoseconds an operation.
fn time(work: Work, map: &mut dyn Mapping, pages: &[u32]) -> f64 {
    let start = Instant::now();
    work(map, pages);
    start.elapsed().as_secs_f64() * 1e9 / pages.len() as f64
}

type Work = fn(&mut dyn Mapping, &[u32]);

/// Compares the maps; `limit` is what the project asks for.
fn compare(
    label: &str,
    work: Work,
    maps: &mut [Box<dyn Mapping>; 2],
    pages: &[u32],
    limit: Option<f64>,
) {
    let [mut dense, mut interval] = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        dense = dense.min(time(work, maps[0].as_mut(), pages));
        interval = interval.min(time(work, maps[1].as_mut(), pages));
    }
    let limit = limit.map_or(String::new(), |limit| format!("   at most {limit}"));
    println!("{label:<28} {dense:>8.2} {interval:>8.2} {:>7.2}{limit}", interval / dense);
}

/// Unmaps half of `pages` pages in runs of `runs` pages; compacts; returns bytes before and after.
fn half_dead(layout: Layout, pages: u64, mut runs: impl FnMut() -> u64) -> (u64, u64, u64) {
    let mut map = IntervalMap::new(layout, 0);
    let page = |index: u64| layout.page_of(Lba(index * layout.block_of(Lpn(1).into()).0)).unwrap();
    for index in 0..pages {
        map.update(page(index), Some(Ppn(index as u32)));
    }
    let full = map.memory().total();
    let (mut at, mut live) = (0, false);
    while at < pages {
        let end = (at + runs()).min(pages);
        for index in (at..end).filter(|_| !live) {
            map.update(page(index), None);
        }
        (at, live) = (end, !live);
    }
    map.compact_all();
    (full, map.memory().total(), map.valid_pages())
}

fn memory(blocks_per_page: u32, gib: u64) {
    let layout = Layout::new(blocks_per_page).unwrap();
    let pages = (gib << 18) / u64::from(blocks_per_page);
    let region = 64 / u64::from(blocks_per_page);
    let dense = (pages * 4) as f64;
    let mut rng = Rng::new(3);
    let show = |label: &str, bytes: u64, limit: &str| {
        println!("  {label:<44} {:>7.3}{limit}", bytes as f64 / dense);
    };
    println!("memory beside the dense table, pages of {} KiB", 4 * blocks_per_page);
    let (full, half, _) = half_dead(layout, pages, || region);
    show("all live", full, "   at most 1.01");
    show("half dead in runs of 256 KiB", half, "   at most 0.6");
    let (_, half, valid) = half_dead(layout, pages, || region + rng.below(15 * region));
    let share = valid as f64 / pages as f64;
    show(
        &format!("half dead in runs of 256 KiB to 4 MiB ({share:.2} live)"),
        half,
        "   at most 0.6",
    );
    let (_, half, valid) = half_dead(layout, pages, || 4 * region + rng.below(252 * region));
    let share = valid as f64 / pages as f64;
    show(&format!("half dead in runs of 1 to 64 MiB ({share:.2} live)"), half, "   at most 0.6");
}

fn main() {
    let argument = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let gib: u32 = argument.and_then(|gib| gib.parse().ok()).unwrap_or(64);
    let pages = gib << 18;
    let mut maps = [full("page", pages), full("interval", pages)];
    let mut rng = Rng::new(1);
    let random: Vec<u32> = (0..OPERATIONS).map(|_| rng.below(pages.into()) as u32).collect();
    let sequential: Vec<u32> = (0..OPERATIONS as u32).map(|i| (pages / 3 + i) % pages).collect();
    println!("{gib} GiB live, best of {ROUNDS} x {OPERATIONS}, ns     dense interval   ratio");
    compare("lookup, random", lookup, &mut maps, &random, Some(1.5));
    compare("lookup, random, chained", lookup_chained, &mut maps, &random, Some(1.5));
    compare("update, random", update, &mut maps, &random, Some(2.5));
    compare("update, random, expected", update_expected, &mut maps, &random, Some(2.5));
    compare("unmap and map, random", remap, &mut maps, &random, None);
    compare("lookup, sequential", lookup, &mut maps, &sequential, Some(1.1));
    compare("lookup, sequential, chained", lookup_chained, &mut maps, &sequential, Some(1.1));
    compare("update, sequential", update, &mut maps, &sequential, Some(1.1));
    compare("unmap and map, sequential", remap, &mut maps, &sequential, None);
    drop(maps);
    memory(1, gib.into());
    memory(4, gib.into());
}
