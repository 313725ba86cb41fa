//! The tests that were run on real drives, here.

use std::fmt;

use dovetail_block::{BLOCK_SIZE, DeviceError};
use dovetail_ftl::{Drive, Overrides, Profile};
use dovetail_time::Ratio;

use super::load::{Bench, Kind, Order, Pace, Seen, Stream};
use super::{MeasuredError, Setting, ZoneTest};

/// Blocks of a command that fills a drive: 1 MiB.
const FILL_BLOCKS: u64 = 256;
/// Blocks of 256 MiB.
const NEAR_BLOCKS: u64 = 1 << 16;
/// Windows of the random writes that go once over what is used.
const DECAY_WINDOWS: u64 = 20;
/// Windows of a fill, by each of which a rate is taken.
const WINDOWS: u64 = 400;
/// Commands of a measurement of latency.
const COMMANDS: u64 = 20_000;

/// A test that somebody ran on a real drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// Random reads of a drive that was filled in a row and is at rest.
    Reads {
        /// Blocks of 4 KiB of each.
        blocks: u64,
        /// Reads in flight.
        depth: u32,
    },
    /// Reads of 1 MiB in a row, of a drive that was filled in a row and is at rest.
    InARow {
        /// Reads in flight.
        depth: u32,
    },
    /// Random writes of 4 KiB to an empty drive.
    Writes {
        /// Writes in flight.
        depth: u32,
    },
    /// Writes of 4 KiB in a row to an empty drive, each with FUA and a flush behind it.
    Synced {
        /// Writers, one write in flight each.
        jobs: u32,
    },
    /// Random reads or writes of 4 KiB within 256 MiB that were written in a row: what the classes
    /// of cards are measured by.
    Near {
        /// Writes.
        is_write: bool,
        /// Commands in flight.
        depth: u32,
    },
    /// Writes of 1 MiB in a row, from an empty drive to a full one.
    Fill,
    /// Uniform writes of 4 KiB over the first part of a drive, which was filled in a row, until
    /// three times as much was written.
    Overwrite {
        /// GiB that are used, at the drive's full size.
        gib: f64,
    },
    /// Writes of 4 KiB at a rate on a drive that was overwritten at random, and a read for each
    /// hundred of them.
    AtRate {
        /// Writes a second.
        writes: f64,
    },
    /// Random reads of 4 KiB beside writes of 128 KiB in a row at a rate.
    Beside {
        /// MB of writes a second; 0 for none.
        mb_per_s: f64,
        /// Reads in flight.
        depth: u32,
    },
    /// A command on each of a few zones, of the drive's full size.
    Zone(ZoneTest),
}

/// The results of a test.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// Reads, or writes where there are no reads.
    pub(super) first: Seen,
    /// Writes beside reads.
    pub(super) writes: Seen,
    /// GB written at full size, and MB/s, of each window of a fill.
    pub(super) fill: Vec<(f64, f64)>,
    /// Pages programmed a page written, in the last two fifths.
    pub(super) amplification: f64,
    /// MiB a second that the host wrote in them.
    pub(super) host_mib_per_s: f64,
    /// Random writes so far, as a multiple of what is used of the drive, and MB/s, of each window
    /// from the first of them on.
    pub(super) decay: Vec<(f64, f64)>,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reads { blocks, depth } => {
                write!(f, "random reads of {} KiB, {depth} in flight", 4 * blocks)
            }
            Self::InARow { depth } => write!(f, "reads of 1 MiB in a row, {depth} in flight"),
            Self::Writes { depth } => write!(f, "random writes of 4 KiB, {depth} in flight"),
            Self::Synced { jobs } => {
                let plural = if *jobs == 1 { "" } else { "s" };
                write!(f, "synced writes of 4 KiB, {jobs} job{plural}")
            }
            Self::Near { is_write, depth } => {
                let kind = if *is_write { "writes" } else { "reads" };
                write!(f, "random {kind} of 4 KiB within 256 MiB, {depth} in flight")
            }
            Self::Fill => write!(f, "fill in a row"),
            Self::Overwrite { gib } => write!(f, "random writes over {gib} GiB, steady"),
            Self::AtRate { writes } => write!(f, "{writes} random writes a second, steady"),
            Self::Beside { mb_per_s, depth } => {
                write!(f, "{depth} random reads in flight beside {mb_per_s} MB/s of writes")
            }
            Self::Zone(test) => test.fmt(f),
        }
    }
}

impl Workload {
    /// Bytes of the drive that it runs on, if the whole one is larger: as many as a minute allows.
    fn most_bytes(self) -> f64 {
        match self {
            Self::Fill | Self::InARow { .. } => 32e9,
            _ => 16e9,
        }
    }

    /// Runs it on a drive.
    pub(super) fn run(self, profile: &str, setting: Setting) -> Result<Observed, MeasuredError> {
        if let Self::Zone(test) = self {
            return test.run(profile, setting.seed);
        }
        let profile = Profile::load(profile)?;
        let whole = profile.resolve(&Overrides::default())?.user_blocks * BLOCK_SIZE;
        let scale = (self.most_bytes() * setting.scale / whole as f64).min(1.0);
        let scale = Ratio::new(scale).map_err(|error| MeasuredError::Scale(error.to_string()))?;
        let overrides =
            Overrides { scale: Some(scale), seed: setting.seed, ..Overrides::default() };
        let config = profile.resolve(&overrides)?;
        let drive = Drive::new(config).map_err(|error| MeasuredError::Scale(error.to_string()))?;
        let blocks = drive.config().user_blocks / FILL_BLOCKS * FILL_BLOCKS;
        let mut bench = Bench::new(drive, setting.seed);
        Ok(match self {
            Self::Reads { blocks: each, depth } => {
                fill(&mut bench, blocks)?;
                let reads = stream(Kind::Read, each, Order::AtRandom, Pace::Depth(depth), blocks);
                one(&mut bench, reads)?
            }
            Self::InARow { depth } => {
                fill(&mut bench, blocks)?;
                let reads =
                    stream(Kind::Read, FILL_BLOCKS, Order::InARow, Pace::Depth(depth), blocks);
                in_windows(&mut bench, reads, scale.value())?
            }
            Self::Writes { depth } => one(
                &mut bench,
                stream(Kind::Write, 1, Order::AtRandom, Pace::Depth(depth), blocks),
            )?,
            Self::Synced { jobs } => {
                let pace = Pace::Depth(jobs);
                one(&mut bench, stream(Kind::Synced, 1, Order::InARow, pace, blocks))?
            }
            Self::Near { is_write, depth } => {
                fill(&mut bench, NEAR_BLOCKS)?;
                let (kind, pace) =
                    (if is_write { Kind::Write } else { Kind::Read }, Pace::Depth(depth));
                one(&mut bench, stream(kind, 1, Order::AtRandom, pace, NEAR_BLOCKS))?
            }
            Self::Fill => {
                // one thread with one write in flight, as drive tests have it
                let writes =
                    stream(Kind::Write, FILL_BLOCKS, Order::InARow, Pace::Depth(1), blocks);
                in_windows(&mut bench, writes, scale.value())?
            }
            Self::Overwrite { gib } => {
                let used = (gib * scale.value() * (1 << 30) as f64) as u64 / BLOCK_SIZE;
                overwrite(&mut bench, used / FILL_BLOCKS * FILL_BLOCKS)?
            }
            Self::AtRate { writes } => at_rate(&mut bench, blocks, writes)?,
            Self::Beside { mb_per_s, depth } => beside(&mut bench, blocks, mb_per_s, depth)?,
            Self::Zone(_) => Observed::default(),
        })
    }
}

fn stream(kind: Kind, blocks: u64, order: Order, pace: Pace, span: u64) -> Stream {
    Stream { kind, blocks, order, pace, span }
}

fn one(bench: &mut Bench, stream: Stream) -> Result<Observed, DeviceError> {
    let seen = bench.play(&[stream], COMMANDS, |_| {})?;
    Ok(Observed { first: seen.into_iter().next().unwrap_or_default(), ..Observed::default() })
}

/// Fills the first `blocks` in a row and lets the drive rest.
fn fill(bench: &mut Bench, blocks: u64) -> Result<(), DeviceError> {
    let writes = stream(Kind::Write, FILL_BLOCKS, Order::InARow, Pace::Depth(8), blocks);
    bench.play(&[writes], blocks / FILL_BLOCKS, |_| {})?;
    bench.settle();
    Ok(())
}

/// Goes over the whole span of a stream once, and takes its rate by windows.
fn in_windows(bench: &mut Bench, all: Stream, scale: f64) -> Result<Observed, DeviceError> {
    let commands = all.span / all.blocks;
    let window = (commands / WINDOWS).max(1);
    let (mut count, mut begin, mut rates) = (0, bench.now, Vec::new());
    let seen = bench.play(&[all], commands, |done| {
        count += 1;
        if count % window == 0 {
            let bytes = (window * all.blocks * BLOCK_SIZE) as f64;
            let at = (count * all.blocks * BLOCK_SIZE) as f64 / scale / 1e9;
            rates.push((at, bytes / 1e6 / done.since(begin).as_secs_f64().max(1e-12)));
            begin = begin.max(done);
        }
    })?;
    let first = seen.into_iter().next().unwrap_or_default();
    Ok(Observed { first, fill: rates, ..Observed::default() })
}

fn overwrite(bench: &mut Bench, used: u64) -> Result<Observed, DeviceError> {
    fill(bench, used)?;
    let writes = stream(Kind::Write, 1, Order::AtRandom, Pace::Depth(128), used);
    let (mut count, mut begin, mut decay) = (0, bench.now, Vec::new());
    let window = (used / DECAY_WINDOWS).max(1);
    bench.play(&[writes], used * 9 / 5, |done| {
        count += 1;
        if count % window == 0 {
            let bytes = (window * BLOCK_SIZE) as f64;
            let rate = bytes / 1e6 / done.since(begin).as_secs_f64().max(1e-12);
            decay.push((count as f64 / used as f64, rate));
            begin = begin.max(done);
        }
    })?;
    let before = bench.drive.counters();
    let seen = bench.play(&[writes], used * 6 / 5, |_| {})?;
    let counted = bench.drive.counters() - before;
    let subpages = bench.drive.geometry().subpages_per_page();
    let first = seen.into_iter().next().unwrap_or_default();
    let host_mib_per_s = first.per_second() * BLOCK_SIZE as f64 / (1 << 20) as f64;
    let amplification = counted.waf(subpages).unwrap_or(0.0);
    Ok(Observed { first, amplification, host_mib_per_s, decay, ..Observed::default() })
}

fn at_rate(bench: &mut Bench, blocks: u64, writes: f64) -> Result<Observed, DeviceError> {
    fill(bench, blocks)?;
    let aging = stream(Kind::Write, 1, Order::AtRandom, Pace::Depth(64), blocks);
    bench.play(&[aging], blocks * 3 / 2, |_| {})?;
    bench.settle();
    let pace = |per_second| Pace::Rate { per_second, even: false };
    let streams = [
        stream(Kind::Read, 1, Order::AtRandom, pace(writes / 100.0), blocks),
        stream(Kind::Write, 1, Order::AtRandom, pace(writes), blocks),
    ];
    two(bench, &streams)
}

fn beside(
    bench: &mut Bench,
    blocks: u64,
    mb_per_s: f64,
    depth: u32,
) -> Result<Observed, DeviceError> {
    fill(bench, blocks)?;
    let reads = stream(Kind::Read, 1, Order::AtRandom, Pace::Depth(depth), blocks);
    if mb_per_s == 0.0 {
        return one(bench, reads);
    }
    let per_second = mb_per_s * 1e6 / (32 * BLOCK_SIZE) as f64;
    let pace = Pace::Rate { per_second, even: true };
    two(bench, &[reads, stream(Kind::Write, 32, Order::InARow, pace, blocks / 32 * 32)])
}

/// Reads and writes side by side.
fn two(bench: &mut Bench, streams: &[Stream; 2]) -> Result<Observed, DeviceError> {
    let mut seen = bench.play(streams, COMMANDS, |_| {})?.into_iter();
    let (first, writes) = (seen.next().unwrap_or_default(), seen.next().unwrap_or_default());
    Ok(Observed { first, writes, ..Observed::default() })
}
