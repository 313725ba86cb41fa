//! Random 4 KiB overwrites a second in the library, payload named instead of carried (direct, or through the
//! page cache where direct writes would be in place), on a volume so full that segments are
//! cleaned (`mode=lfs`) or their holes filled (adaptive, out of place), or updates are remapped; with a sync now and then or
//! an fsync every ten writes; beside it what the machine does with three
//! dependent random touches of an array as large as the file's pointers.
//!
//! `cargo bench -p dovetail-f2fs --bench overwrite [-- NAME]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::hint::black_box;
use std::time::Instant;

use dovetail_block::{
    BlockDevice, Capabilities, Command, Completion, Content, DeviceError, DeviceInfo, Pattern, RemapLimits,
};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, IpuPolicy, Mode, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Simulated};

const GIB: u64 = 1 << 30;
/// Writes in one measurement.
const COUNT: u64 = 1_000_000;

/// Writes between two syncs: what a minute between checkpoints is to a drive of a thousand writes a second.
const SYNC_EVERY: u64 = 60_000;

/// A device that only remembers.
struct Flat(Vec<Content>);

impl BlockDevice for Flat {
    fn info(&self) -> DeviceInfo {
        let remap = RemapLimits::of(256, 4096);
        let capabilities = Capabilities { streams: 1, remap: Some(remap), ..Capabilities::default() };
        DeviceInfo { blocks: self.0.len() as u64, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into: Some(into) } => {
                into.clone_from_slice(&self.0[range.start.0 as usize..range.end().0 as usize]);
            }
            Command::Write { range, data, .. } => {
                for (i, lba) in range.iter().enumerate() {
                    self.0[lba.0 as usize] = data.block(i as u64);
                }
            }
            Command::Remap { pairs, .. } => {
                for pair in pairs {
                    self.0[pair.to.0 as usize] = std::mem::take(&mut self.0[pair.from.0 as usize]);
                }
            }
            _ => {}
        }
        Ok(Completion { done: at })
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (name, mode) in [("lfs", Mode::Lfs), ("adaptive", Mode::Adaptive), ("rm-ipu", Mode::RmIpu)] {
        for percent in [50, 80] {
            if name.starts_with(&wanted) {
                measure(&format!("{name}, {percent} % full"), mode, percent, SYNC_EVERY, |fs, _| fs.sync());
                let name = format!("{name}, {percent} % full, fsync every 10");
                measure(&name, mode, percent, 10, |fs, ino| fs.fsync(ino, false));
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
    let mut device = Flat(vec![Content::Empty; (8 * GIB / 4096) as usize]);
    mkfs(&mut device, &MkfsOptions::default()).unwrap();
    let options = Options { mode, ipu_policy: Some(IpuPolicy(0)), ..Options::default() };
    let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
    let root = fs.root();
    let file = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&Caller::default(), root, b"file", &file).unwrap().ino;
    let blocks = fs.statfs().unwrap().free * percent / 100;
    let write = |fs: &mut F2fs<Flat>, block: u64, n: u64| {
        let content = [Content::Pattern(Pattern::new(n))];
        fs.write_pages(&Caller::default(), ino, (block * 4096, 4096), &content, mode == Mode::Lfs).unwrap();
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
    println!("three dependent touches: {:.2} million/s", COUNT as f64 / start.elapsed().as_secs_f64() / 1e6);
}
