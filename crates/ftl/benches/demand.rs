//! Simulated 4 KiB requests a second on a drive with a demand-paged map, nine in ten of whose entries are cached: half reads,
//! half writes, most of them to a part of the drive whose entries fit the cache.
//!
//! `cargo bench -p dovetail-ftl --bench demand [-- PROFILE [SCALE]]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::time::Instant;

use dovetail_block::{BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, Pattern};
use dovetail_ftl::{Drive, Overrides, Profile, cache};
use dovetail_time::{Rng, SimTime};

const CACHE_BYTES: u64 = 512 * 1024;
/// Blocks with entries that stay cached, of 65,536 that there is room for.
const HOT_BLOCKS: u64 = 16_384;
const REQUESTS: u64 = 1_000_000;
/// Commands in flight.
const QUEUE_DEPTH: usize = 32;

struct Host {
    drive: Drive,
    rng: Rng,
    completions: [SimTime; QUEUE_DEPTH],
    next: usize,
    now: SimTime,
    version: u64,
}

impl Host {
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
            let lba = if self.rng.chance(0.09) { self.rng.below(blocks) } else { self.rng.below(HOT_BLOCKS) };
            if self.rng.chance(0.5) {
                self.write(lba, 1);
            } else {
                self.submit(Command::Read { range: BlockRange::new(Lba(lba), 1), into: Some(&mut content) });
            }
        }
    }
}

/// Half of the drive, so that lines to be cleaned hold little.
fn filled(drive: &Drive) -> u64 {
    drive.config().user_blocks / 2
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let profile = Profile::load(&arguments.next().unwrap_or("femu-32g".into())).unwrap();
    let scale = arguments.next().unwrap_or("1/16".into()).parse().ok();
    let names = cache::POLICIES.iter().map(|policy| policy.name).chain(["none"]);
    for name in names {
        let cache = Some(name.to_owned());
        let cache_size = Some(CACHE_BYTES);
        let overrides = Overrides { scale, cache, cache_size, buffer: Some(0), ..Overrides::default() };
        let drive = Drive::new(profile.resolve(&overrides).unwrap()).unwrap();
        let blocks = filled(&drive);
        let completions = [SimTime::ZERO; QUEUE_DEPTH];
        let mut host = Host { drive, rng: Rng::new(1), completions, next: 0, now: SimTime::ZERO, version: 1 };
        (0..blocks / 64).for_each(|i| host.write(i * 64, 64));
        host.run(REQUESTS);
        let (before, start) = (host.drive.counters(), Instant::now());
        host.run(REQUESTS);
        let (counted, seconds) = (host.drive.counters() - before, start.elapsed().as_secs_f64());
        let (hits, misses) = (counted.map_hits.iter().sum::<u64>(), counted.map_misses.iter().sum::<u64>());
        let share = 100.0 * hits as f64 / (hits + misses).max(1) as f64;
        println!(
            "{name:11} {:.2} million requests a second, {share:.1} % of entries cached, {} translation pages read, {} written, WAF {:.2}",
            REQUESTS as f64 / seconds / 1e6,
            counted.translation_reads.iter().sum::<u64>(),
            counted.translation_writes.iter().sum::<u64>(),
            counted.waf(host.drive.geometry().parts_per_page()).unwrap_or(0.0)
        );
    }
}
