//! Simulated 4 KiB uniform random writes a second on a full drive with cleaning running, beside
//! what the machine's memory allows: three dependent random touches for each write over arrays of
//! the same size.
//!
//! `cargo bench -p dovetail-ftl --bench random_write [-- PROFILE [SCALE [WRITES]]]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::hint::black_box;
use std::time::Instant;

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern};
use dovetail_ftl::{Drive, Overrides, Profile};
use dovetail_time::{Rng, SimTime};

/// Commands in flight.
const QUEUE_DEPTH: usize = 32;

/// A closed loop of writes.
struct Writer {
    drive: Drive,
    completions: [SimTime; QUEUE_DEPTH],
    next: usize,
    now: SimTime,
    version: u64,
}

impl Writer {
    fn write(&mut self, lba: u64, blocks: u64) {
        self.now = self.now.max(self.completions[self.next]);
        let range = BlockRange::new(Lba(lba), blocks);
        let data = Data::Patterns(Pattern::new(self.version));
        // as a run checks what it wrote: small numbers take least
        self.version = if self.version > 64_000 { 1 } else { self.version + blocks };
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        self.completions[self.next] = self.drive.submit(self.now, command).unwrap().done;
        self.next = (self.next + 1) % QUEUE_DEPTH;
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let name = arguments.next().unwrap_or("femu-32g".into());
    let scale = arguments.next().and_then(|scale| scale.parse().ok());
    let writes = arguments.next().and_then(|writes| writes.parse().ok());
    let overrides = Overrides { scale, ..Overrides::default() };
    let config = Profile::load(&name).unwrap().resolve(&overrides).unwrap();
    let blocks = config.user_blocks;
    let drive = Drive::new(config).unwrap();
    let completions = [SimTime::ZERO; QUEUE_DEPTH];
    let mut writer = Writer { drive, completions, next: 0, now: SimTime::ZERO, version: 1 };
    let mut rng = Rng::new(1);
    let start = Instant::now();
    (0..blocks / 64).for_each(|i| writer.write(i * 64, 64));
    (0..2 * blocks).for_each(|_| writer.write(rng.below(blocks), 1));
    println!(
        "{name}: {blocks} blocks filled and written twice at random in {:.1?}",
        start.elapsed()
    );

    let before = (writer.drive.counters(), writer.drive.idle_from());
    let count = writes.unwrap_or(2_000_000);
    let mut best = 0.0f64;
    for _ in 0..5 {
        let start = Instant::now();
        (0..count).for_each(|_| writer.write(rng.below(blocks), 1));
        best = best.max(f64::from(count) / start.elapsed().as_secs_f64());
    }
    let counted = writer.drive.counters() - before.0;
    let simulated = writer.drive.idle_from().since(before.1).as_secs_f64();
    println!("steady state: WAF {:.3}, {} GC runs", counted.waf(1).unwrap(), counted.gc_runs);
    println!("simulated: {:.0} writes/s of virtual time", counted.writes as f64 / simulated);
    let resident = resident_bytes();
    let touches = three_touches(blocks as usize, count);
    println!("writes:    {best:>12.0} /s (best of 5 x {count})");
    println!("3 touches: {touches:>12.0} /s (best of 5 x {count})");
    println!("ratio:     {:>12.2}", best / touches);
    let model = writer.drive.flash_model_bytes()
        + writer.drive.mapping_memory_bytes()
        + writer.drive.other_memory_bytes();
    println!(
        "memory:    {:>12.2} bytes per block of capacity in the model, {:.2} resident in the process",
        model as f64 / blocks as f64,
        resident as f64 / blocks as f64
    );
}

/// Memory accesses that one write cannot do without: the map (4 bytes a page), then the reverse
/// map, then a valid count. Each address follows from what the one before held.
fn three_touches(blocks: usize, count: u32) -> f64 {
    let mut rng = Rng::new(2);
    let map: Vec<u32> = (0..blocks).map(|_| rng.below(blocks as u64) as u32).collect();
    let reverse: Vec<u32> = (0..blocks).map(|_| rng.below(blocks as u64) as u32).collect();
    let mut counts: Vec<u32> = vec![0; blocks];
    let mut best = 0.0f64;
    for _ in 0..5 {
        let start = Instant::now();
        let mut carry = 0;
        for _ in 0..count {
            let first = map[((rng.below(blocks as u64) as usize) ^ (carry & 1)).min(blocks - 1)];
            let second = reverse[first as usize];
            counts[second as usize] += 1;
            carry = counts[second as usize] as usize;
        }
        black_box(carry);
        best = best.max(f64::from(count) / start.elapsed().as_secs_f64());
    }
    best
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
        * 1024
}
