//! Random 4 KiB overwrites a second in the library, payload named instead of carried (direct, or
//! through the page cache where direct writes would be in place), on a volume so full that segments
//! are cleaned (`mode=lfs`) or their holes filled (adaptive, out of place), or updates are
//! remapped; and on an IPLFS volume, which only appends; with a sync now and then or an fsync every
//! ten writes; beside it what the machine does with three dependent random touches of an array as
//! large as the file's pointers.
//!
//! `cargo bench -p dovetail-f2fs --bench overwrite [-- NAME]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::hint::black_box;
use std::time::Instant;

use dovetail_block::{
    AREA_BLOCKS, AREAS, BlockDevice, Capabilities, Command, Completion, Content, DeviceError,
    DeviceInfo, Pattern, RemapLimits, Thin,
};
use dovetail_f2fs::format::Variant;
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, IpuPolicy, Mode, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Simulated};

const GIB: u64 = 1 << 30;
/// Writes in one measurement.
const COUNT: u64 = 1_000_000;

/// Writes between two syncs: what a minute between checkpoints is to a drive of a thousand writes a
/// second.
const SYNC_EVERY: u64 = 60_000;

/// Nodes that a thin device remembers of each log.
const RECENT_NODES: u64 = 1 << 14;

/// A device that only remembers: as a thin one, of each area what was written last.
struct Flat {
    blocks: Vec<Content>,
    /// Blocks remembered of each area, a power of two; 0 for a device that is not thin.
    area: u64,
}

impl Flat {
    fn new(thin: bool) -> Self {
        let blocks = 8 * GIB / 4096;
        let (all, area) = if thin { (AREAS * blocks, blocks) } else { (blocks, 0) };
        Self { blocks: vec![Content::Empty; all as usize], area }
    }

    fn at(&mut self, lba: u64) -> &mut Content {
        let index = match self.area {
            0 => lba,
            // the nodes of the file stay in the cache: to keep all that were ever written would
            // only cost memory
            area if lba / AREA_BLOCKS > 3 => lba / AREA_BLOCKS * area + (lba & (RECENT_NODES - 1)),
            area => lba / AREA_BLOCKS * area + (lba & (area - 1)),
        };
        &mut self.blocks[index as usize]
    }
}

impl BlockDevice for Flat {
    fn info(&self) -> DeviceInfo {
        let base = Capabilities { streams: 1, ..Capabilities::default() };
        if self.area == 0 {
            let remap = Some(RemapLimits::of(256, 4096));
            return DeviceInfo {
                blocks: self.blocks.len() as u64,
                capabilities: Capabilities { remap, ..base },
            };
        }
        let thin = Some(Thin::new(self.area, 1));
        DeviceInfo {
            blocks: AREAS * AREA_BLOCKS,
            capabilities: Capabilities { discard: true, thin, ..base },
        }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into: Some(into) } => {
                range.iter().zip(into).for_each(|(lba, into)| into.clone_from(self.at(lba.0)));
            }
            Command::Write { range, data, .. } => {
                for (i, lba) in range.iter().enumerate() {
                    *self.at(lba.0) = data.block(i as u64);
                }
            }
            Command::Remap { pairs, .. } => {
                for pair in pairs {
                    *self.at(pair.to.0) = std::mem::take(self.at(pair.from.0));
                }
            }
            _ => {}
        }
        Ok(Completion::at(at))
    }
}

dovetail_block::performs_at_once!(Flat);

fn main() {
    let wanted =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, mode) in [
        ("lfs", Mode::Lfs),
        ("iplfs", Mode::Lfs),
        ("adaptive", Mode::Adaptive),
        ("rm-ipu", Mode::RmIpu),
    ] {
        for percent in [50, 80] {
            let synced = format!("{name}, {percent} % full, sync every {SYNC_EVERY}");
            if synced.starts_with(&wanted) {
                measure(&synced, mode, percent, SYNC_EVERY, |fs, _| fs.sync());
            }
            let fsynced = format!("{name}, {percent} % full, fsync every 10");
            if fsynced.starts_with(&wanted) {
                measure(&fsynced, mode, percent, 10, |fs, ino| fs.fsync(ino, false));
            }
        }
    }
    touches((4 * GIB / 4096) as usize);
}

fn measure(
    name: &str,
    mode: Mode,
    percent: u64,
    sync_every: u64,
    sync: fn(&mut F2fs<Flat>, Ino) -> Result<(), dovetail_vfs::Error>,
) {
    let variant = if name.starts_with("iplfs") { Variant::IPLFS } else { Variant::F2fs };
    let mut device = Flat::new(variant.is_iplfs());
    mkfs(&mut device, &MkfsOptions { variant, ..MkfsOptions::default() }).unwrap();
    let options = Options { mode, ipu_policy: Some(IpuPolicy(0)), ..Options::default() };
    let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
    let root = fs.root();
    let file = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&Caller::default(), root, b"file", &file).unwrap().ino;
    let blocks = fs.statfs().unwrap().free * percent / 100;
    let write = |fs: &mut F2fs<Flat>, block: u64, n: u64| {
        let content = [Content::Pattern(Pattern::new(n))];
        fs.write_pages(&Caller::default(), ino, (block * 4096, 4096), &content, mode == Mode::Lfs)
            .unwrap();
    };
    (0..blocks).for_each(|block| write(&mut fs, block, block));
    let mut rng = Rng::new(1);
    let mut overwrite = |fs: &mut F2fs<Flat>, count: u64| {
        for n in 0..count {
            write(fs, rng.below(blocks), n);
            if n % sync_every == 0 {
                sync(fs, ino).unwrap();
            }
        }
    };
    overwrite(&mut fs, blocks);
    let before = (fs.events(), fs.written().total());
    let start = Instant::now();
    overwrite(&mut fs, COUNT);
    let rate = COUNT as f64 / start.elapsed().as_secs_f64();
    let events = fs.events();
    println!(
        "{name}: {:.2} million overwrites/s; {} sections cleaned, {} blocks moved, {} into holes, {} checkpoints; {:.2} \
         blocks written for each",
        rate / 1e6,
        events.foreground_cleanings - before.0.foreground_cleanings,
        events.moved_blocks - before.0.moved_blocks,
        events.ssr_blocks - before.0.ssr_blocks,
        events.checkpoints - before.0.checkpoints,
        (fs.written().total() - before.1) as f64 / COUNT as f64,
    );
}

fn touches(len: usize) {
    let array: Vec<u32> = {
        let mut rng = Rng::new(2);
        (0..len).map(|_| rng.below(len as u64) as u32).collect()
    };
    let start = Instant::now();
    let mut at = 0_usize;
    for n in 0..3 * COUNT {
        at = array[(at ^ n as usize) % len] as usize;
    }
    black_box(at);
    println!(
        "three dependent touches: {:.2} million/s",
        COUNT as f64 / start.elapsed().as_secs_f64() / 1e6
    );
}
