//! Accesses a second to each policy of mapping caches, alone: nine in ten within what is cached,
//! one in ten anywhere.
//!
//! `cargo bench -p dovetail-ftl --bench map_cache [-- KIB]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use dovetail_ftl::cache::{Access, Cache, CacheConfig, Entry, POLICIES, Shape, TranslationPage};
use dovetail_time::Rng;

/// Translation pages whose entries are in one piece.
struct InOnePiece;

impl Shape for InOnePiece {
    fn place(&self, entry: u64) -> Option<u64> {
        Some(entry)
    }

    fn runs(&self, _: TranslationPage) -> u32 {
        1
    }

    fn follows(&self, _: Entry) -> bool {
        true
    }
}

struct Figures {
    hits: f64,
    ns: f64,
}

fn run(cache: &mut dyn Cache, hot: u64, all: u64, missing: f64, accesses: u64) -> Figures {
    let (mut rng, mut steps, mut hits) = (Rng::new(1), Vec::new(), 0);
    let start = Instant::now();
    for _ in 0..accesses {
        let entry = if rng.chance(missing) { rng.below(all) } else { rng.below(hot) };
        let access = if rng.chance(0.5) { Access::Read } else { Access::Write };
        hits += u64::from(cache.access(entry, access, 0, &InOnePiece, &mut steps));
        steps.clear();
    }
    let ns = start.elapsed().as_nanos() as f64 / accesses as f64;
    Figures { hits: hits as f64 / accesses as f64, ns }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let kib: u64 = arguments.next().and_then(|kib| kib.parse().ok()).unwrap_or(512);
    let config = CacheConfig { bytes: kib * 1024, shift: 9 };
    for policy in &POLICIES {
        let mut cache = (policy.build)(config);
        let hot = config.entries() as u64 / 4;
        run(cache.as_mut(), hot, 1 << 24, 0.1, 1_000_000);
        let mixed = run(cache.as_mut(), hot, 1 << 24, 0.1, 4_000_000);
        let hot_only = run(cache.as_mut(), hot, 1 << 24, 0.0, 4_000_000);
        println!(
            "{:6} {kib} KiB: {:5.1} ns an access at {:.1} % hits, {:5.1} ns at {:.1} %",
            policy.name,
            mixed.ns,
            100.0 * mixed.hits,
            hot_only.ns,
            100.0 * hot_only.hits
        );
    }
}
