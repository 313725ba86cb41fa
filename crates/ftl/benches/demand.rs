//! Simulated 4 KiB requests a second on a drive with a demand-paged map, nine in ten of whose
//! entries are cached: half reads, half writes at random, 32 in flight, on a drive that is half
//! full and is being cleaned. Most requests go to a part of the drive whose entries fit the cache;
//! how many go anywhere is found for each policy while it warms up, so that one request in ten
//! misses. Counted is the processor's time for this thread: other load does not tell.
//!
//! `cargo bench -p dovetail-ftl --bench demand [-- PROFILE [SCALE [POLICY]]]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::time::Duration;

use dovetail_block::{BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, Pattern};
use dovetail_ftl::stats::Counters;
use dovetail_ftl::{Drive, Overrides, Profile, cache};
use dovetail_time::{Rng, SimTime};
use nix::time::{ClockId, clock_gettime};

const CACHE_BYTES: u64 = 512 * 1024;
/// Blocks with entries that stay cached, of 65,536 that there is room for.
const HOT_BLOCKS: u64 = 16_384;
const REQUESTS: u64 = 1_000_000;
/// Requests before those that are timed: the write part of `split` takes this long to settle.
const WARM_UP: u64 = 3_000_000;
/// Requests between two looks at the hit ratio while the cache warms up.
const TRIAL: u64 = 10_000;
/// Requests that are to miss, of all.
const MISSES: f64 = 0.1;
/// Commands in flight.
const QUEUE_DEPTH: usize = 32;

struct Host {
    drive: Drive,
    rng: Rng,
    completions: [SimTime; QUEUE_DEPTH],
    next: usize,
    now: SimTime,
    version: u64,
    /// The share of requests that go anywhere.
    cold: f64,
}

impl Host {
    fn new(drive: Drive) -> Self {
        let completions = [SimTime::ZERO; QUEUE_DEPTH];
        Self {
            drive,
            rng: Rng::new(1),
            completions,
            next: 0,
            now: SimTime::ZERO,
            version: 1,
            cold: MISSES,
        }
    }

    fn fill(&mut self) {
        (0..filled(&self.drive) / 64).for_each(|i| self.write(i * 64, 64));
    }

    fn submit(&mut self, command: Command<'_>) {
        self.now = self.now.max(self.completions[self.next]);
        self.completions[self.next] = self.drive.submit(self.now, command).unwrap().done;
        self.next = (self.next + 1) % QUEUE_DEPTH;
    }

    fn write(&mut self, lba: u64, blocks: u64) {
        let data = Data::Patterns(Pattern::new(self.version));
        self.version += blocks;
        let range = BlockRange::new(Lba(lba), blocks);
        self.submit(Command::Write { range, data, hints: Hints::default(), fua: false });
    }

    fn run(&mut self, requests: u64) {
        let mut content = [Content::Empty];
        let blocks = filled(&self.drive);
        for _ in 0..requests {
            let lba = if self.rng.chance(self.cold) {
                self.rng.below(blocks)
            } else {
                self.rng.below(HOT_BLOCKS)
            };
            if self.rng.chance(0.5) {
                self.write(lba, 1);
            } else {
                self.submit(Command::Read {
                    range: BlockRange::new(Lba(lba), 1),
                    into: Some(&mut content),
                });
            }
        }
    }

    /// Fills the cache and finds the share of cold requests with which the wanted part of all
    /// misses.
    fn warm_up(&mut self) {
        for _ in 0..WARM_UP / TRIAL {
            let before = self.drive.counters();
            self.run(TRIAL);
            if let Some(share) = hit_ratio(self.drive.counters() - before) {
                self.cold = (self.cold + 0.2 * (MISSES - (1.0 - share))).clamp(0.0, 1.0);
            }
        }
    }
}

/// Half of the drive, so that lines to be cleaned hold little.
fn filled(drive: &Drive) -> u64 {
    drive.config().user_blocks / 2
}

fn hit_ratio(counters: Counters) -> Option<f64> {
    let (hits, misses) =
        (counters.map_hits.iter().sum::<u64>(), counters.map_misses.iter().sum::<u64>());
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let profile = Profile::load(&arguments.next().unwrap_or("femu-32g".into())).unwrap();
    let scale = arguments.next().unwrap_or("1/16".into()).parse().ok();
    let only = arguments.next();
    let names = cache::POLICIES.iter().map(|policy| policy.name).chain(["none"]);
    for name in names.filter(|&name| only.as_deref().is_none_or(|only| only == name)) {
        let overrides = Overrides {
            scale,
            cache: Some(name.to_owned()),
            cache_size: Some(CACHE_BYTES),
            buffer: Some(0),
            ..Overrides::default()
        };
        let mut host = Host::new(Drive::new(profile.resolve(&overrides).unwrap()).unwrap());
        host.fill();
        host.warm_up();
        let (before, start) = (host.drive.counters(), cpu_time());
        host.run(REQUESTS);
        let (counted, seconds) =
            (host.drive.counters() - before, (cpu_time() - start).as_secs_f64());
        println!(
            "{name:11} {:.2} million requests a second, {:.1} % of entries cached, {} translation pages read, {} written, WAF {:.2}, \
             {:.6} s simulated in all",
            REQUESTS as f64 / seconds / 1e6,
            100.0 * hit_ratio(counted).unwrap_or(0.0),
            counted.translation_reads.iter().sum::<u64>(),
            counted.translation_writes.iter().sum::<u64>(),
            counted.waf(host.drive.geometry().subpages_per_page()).unwrap_or(0.0),
            host.now.as_ns() as f64 / 1e9
        );
    }
}
