//! Cost of a remap of ten pairs for the simulating machine, beside ten writes to the same
//! addresses; and its cost for the drive in pages of its own.
//!
//! `cargo bench -p dovetail-ftl --bench remap [-- PROFILE [SCALE]]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::time::{Duration, Instant};

use dovetail_block::{
    BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern, RemapPair, RemapWhen,
};
use dovetail_ftl::stats::Cause;
use dovetail_ftl::{Drive, Overrides, Profile};
use dovetail_time::{Rng, SimTime};

const PAIRS: u64 = 10;
const ROUNDS: u64 = 200_000;

struct Host {
    drive: Drive,
    now: SimTime,
    version: u64,
}

impl Host {
    fn write(&mut self, lba: u64, blocks: u64) {
        let data = Data::Patterns(Pattern::new(self.version));
        self.version += blocks;
        let range = BlockRange::new(Lba(lba), blocks);
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        self.now = self.drive.submit(self.now, command).unwrap().done;
    }

    /// Ten writes anywhere; returns the real time of them all.
    fn in_place(&mut self, rng: &mut Rng, below: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..PAIRS * ROUNDS {
            self.write(rng.below(below), 1);
        }
        start.elapsed()
    }

    /// One write of ten blocks to a log that begins at `log`, which then move to anywhere; returns
    /// the real time of the writes and of the remaps.
    fn remapped(&mut self, rng: &mut Rng, log: u64, log_blocks: u64) -> (Duration, Duration) {
        let (mut writing, mut remapping) = (Duration::ZERO, Duration::ZERO);
        for round in 0..ROUNDS {
            let from = log + round * PAIRS % log_blocks;
            let start = Instant::now();
            self.write(from, PAIRS);
            let written = Instant::now();
            let pair =
                |i| RemapPair { to: Lba(rng.below(log / PAIRS) * PAIRS + i), from: Lba(from + i) };
            let pairs: Vec<_> = (0..PAIRS).map(pair).collect();
            let command = Command::Remap { pairs: &pairs, when: RemapWhen::Now };
            self.now = self.drive.submit(self.now, command).unwrap().done;
            writing += written - start;
            remapping += written.elapsed();
        }
        (writing, remapping)
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let name = arguments.next().unwrap_or("femu-32g".into());
    let scale = arguments.next().and_then(|scale| scale.parse().ok());
    let config = Profile::load(&name)
        .unwrap()
        .resolve(&Overrides { scale, ..Overrides::default() })
        .unwrap();
    let blocks = config.user_blocks;
    let mut host = Host { drive: Drive::new(config).unwrap(), now: SimTime::ZERO, version: 1 };
    let (log, log_blocks) = (blocks / 10 * 9, blocks / 10 / PAIRS * PAIRS);
    (0..log / 64).for_each(|i| host.write(i * 64, 64));
    let mut rng = Rng::new(1);
    host.in_place(&mut rng, log);

    let writes = host.in_place(&mut rng, log);
    let before = host.drive.counters();
    let (writing, remapping) = host.remapped(&mut rng, log, log_blocks);
    let counted = host.drive.counters() - before;
    let each = |spent: Duration| spent.as_nanos() as f64 / ROUNDS as f64;
    println!("{name}, {blocks} blocks, for {PAIRS} blocks:");
    println!("writes in place {:>8.0} ns", each(writes));
    println!("a write to the log {:>5.0} ns, and a remap {:.0} ns", each(writing), each(remapping));
    println!(
        "pages of the drive's own for a remap: {:.3} of the log, {:.3} of the journal",
        counted.programs[Cause::Remap as usize] as f64 / ROUNDS as f64,
        counted.programs[Cause::Journal as usize] as f64 / ROUNDS as f64
    );
    println!("non-volatile memory: {} bytes", host.drive.non_volatile_bytes());
}
