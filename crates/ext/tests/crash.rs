//! Power cuts of a mounted volume: everywhere, also during recovery, and what is left is what was
//! promised.
//!
//! `DOVETAIL_SEED=n` runs one workload alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it fails")]

use crate::common;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::TempImage;
use dovetail_block::{BlockDevice, Command, MemoryDevice};
use dovetail_ext::fsck::{self, Severity};
use dovetail_ext::{Ext, Options};
use dovetail_testkit::RecordingDevice;
use dovetail_testkit::crash::{Cuts, Mountable, Tried, Workload, check_changes_in_one_tick};
use dovetail_testkit::exercise::Profile;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{FileSystem, FsyncRest, Guarantees, Ino, Limits, XattrLayout};

/// e2fsck looks at one state in this many: it takes far longer than all the rest.
const EVERY: usize = 40;

/// The file system with mke2fs and mount options.
struct Volume {
    block: usize,
    reserves: bool,
    mke2fs: Vec<&'static str>,
    options: &'static str,
    empty: OnceLock<MemoryDevice>,
    seen: AtomicUsize,
    /// Others fsync beside the workload, part by part.
    others_fsync: bool,
    /// They wait for a flush.
    waits: AtomicBool,
    /// Flushes for which they waited.
    flushes: AtomicUsize,
}

impl Volume {
    fn new(mke2fs: &[&'static str], options: &'static str) -> Self {
        let (mke2fs, empty, seen) = (mke2fs.to_vec(), OnceLock::new(), AtomicUsize::new(0));
        let block = mke2fs[3].parse().unwrap();
        let reserves = mke2fs[1] == "ext4";
        let (others_fsync, waits, flushes) = Default::default();
        Self { block, reserves, mke2fs, options, empty, seen, others_fsync, waits, flushes }
    }

    fn make(&self) -> MemoryDevice {
        let device = TempImage::mke2fs(32 << 20, &self.mke2fs).load();
        let mut mounted = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let root = mounted.root();
        mounted.rmdir(&Default::default(), root, b"lost+found").unwrap();
        mounted.unmount().unwrap()
    }
}

impl Mountable for Volume {
    type Mounted = Ext<RecordingDevice<MemoryDevice>>;

    fn format(&self) -> MemoryDevice {
        self.empty.get_or_init(|| self.make()).clone()
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        let options = Options::parse(self.options).map_err(|error| error.to_string())?;
        Ext::mount(device, options, SimTime::ZERO).map_err(|error| error.to_string())
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees { content_unit: self.block, ..Guarantees::default() }
    }

    fn limits(&self) -> Limits {
        Limits {
            file_size: 1 << 41,
            links: 65_000,
            xattr_value: usize::MAX,
            xattr_total: self.block - 36,
            xattr_layout: XattrLayout::Apart,
            symlink: self.block - 1,
            reserves: self.reserves,
            ..Limits::default()
        }
    }

    fn beside(&self, mounted: &mut Self::Mounted, seed: u64, step: usize) -> Result<(), String> {
        let mut rng = Rng::new(seed << 32 | step as u64);
        self.waits.fetch_and(step > 1, Ordering::Relaxed);
        if !self.others_fsync || rng.below(3) == 0 {
            return Ok(());
        }
        let rest = if self.waits.load(Ordering::Relaxed) {
            self.flushes.fetch_add(1, Ordering::Relaxed);
            mounted.device_mut().submit(SimTime::ZERO, Command::Flush).unwrap();
            mounted.go_on_after_flush(Ok(()))
        } else {
            let files = some_files(mounted, &mut rng);
            mounted.begin_fsyncs(&files)
        };
        let rest = rest.map_err(|error| error.to_string())?;
        self.waits.store(rest == FsyncRest::Flush, Ordering::Relaxed);
        Ok(())
    }

    /// Replays the journal, as a mount does, ends that mount, and checks what is there; for some
    /// states e2fsck does so too, and replays the journal itself: with `-p` it repairs only what a
    /// replay leaves to do.
    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        let mounted = Ext::mount(device.clone(), Options::default(), SimTime::ZERO);
        let ended = match mounted.and_then(Ext::unmount) {
            Ok(ended) => ended,
            Err(error) => return vec![error.to_string()],
        };
        let report = match fsck::check(ended.clone(), fsck::Options::default()) {
            Ok(report) => report,
            Err(error) => return vec![error.to_string()],
        };
        let errors = report.findings.iter().filter(|finding| finding.severity() == Severity::Error);
        let mut complaints: Vec<String> = errors.map(ToString::to_string).collect();
        if self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY) {
            complaints.extend(e2fsck("-n", &ended, &[0]));
            complaints.extend(e2fsck("-p", device, &[0, 1]));
        }
        complaints
    }
}

/// Some of what the root directory has.
fn some_files(fs: &mut impl FileSystem, rng: &mut Rng) -> Vec<(Ino, bool)> {
    let (root, mut files) = (fs.root(), Vec::new());
    let mut add = |entry: dovetail_vfs::DirEntry| {
        if rng.below(3) == 0 {
            files.push((entry.ino, rng.below(2) == 0));
        }
        true
    };
    fs.readdir(root, 0, &mut add).unwrap();
    files
}

/// Output of e2fsck, if it does not end with one of these codes.
fn e2fsck(option: &str, device: &MemoryDevice, codes: &[i32]) -> Option<String> {
    let output = common::run("e2fsck", &["-f", option, TempImage::of(device).text()]);
    let good = output.status.code().is_some_and(|code| codes.contains(&code));
    (!good).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs `seeds` workloads; the normal run reaches at least `least` cuts.
fn run(name: &str, volume: &Volume, seeds: u64, steps: usize, least: usize) {
    let profile = Profile { file_end: 300_000, many: 0, ..Profile::default() };
    run_with(name, volume, profile, seeds, steps, least);
}

fn run_with(name: &str, volume: &Volume, profile: Profile, seeds: u64, steps: usize, least: usize) {
    let mut tried = Tried::default();
    let seeds = match variable("DOVETAIL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("DOVETAIL_SEEDS").unwrap_or(seeds),
    };
    for seed in seeds.clone() {
        let workload = Workload::run(volume, seed, profile, steps);
        let checked = workload.and_then(|workload| workload.check_cuts(Cuts::default()));
        let alone =
            format!("DOVETAIL_SEED={seed} cargo test -p dovetail-ext --test all crash::{name}");
        tried +=
            checked.unwrap_or_else(|what| panic!("{name}, seed {seed}: {what}\nalone: {alone}"));
    }
    println!("{name}: {tried:?}");
    assert!(seeds.end - seeds.start == 1 || tried.cuts >= least, "{tried:?}");
}

#[test]
fn ext4() {
    run("ext4", &Volume::new(&["-t", "ext4", "-b", "4096"], ""), 60, 120, 5000);
}

/// A commit of theirs is under way while the workload goes on.
#[test]
fn others_fsync_in_steps() {
    for (name, options, seeds) in [("ext4", "", 60), ("ext4", "data=journal", 10), ("ext3", "", 20)]
    {
        let new = Volume::new(&["-t", name, "-b", "4096", "-I", "256"], options);
        let volume = Volume { others_fsync: true, ..new };
        run("others_fsync_in_steps", &volume, seeds, 120, 500);
        let flushes = volume.flushes.into_inner();
        assert!(variable("DOVETAIL_SEED").is_some() || flushes > 20 * seeds as usize, "{flushes}");
    }
}

#[test]
fn small_blocks() {
    run("small_blocks", &Volume::new(&["-t", "ext4", "-b", "1024"], ""), 20, 120, 1000);
}

#[test]
fn ext3() {
    run("ext3", &Volume::new(&["-t", "ext3", "-b", "4096", "-I", "256"], ""), 30, 120, 2000);
}

#[test]
fn without_delay() {
    run("without_delay", &Volume::new(&["-t", "ext4", "-b", "4096"], "nodelalloc"), 20, 120, 1000);
}

#[test]
fn content_through_the_journal() {
    run(
        "content_through_the_journal",
        &Volume::new(&["-t", "ext4", "-b", "4096"], "data=journal"),
        20,
        120,
        1000,
    );
}

#[test]
fn large_directories() {
    let profile = Profile { file_end: 100_000, many: 400, ..Profile::default() };
    let volume = Volume::new(&["-t", "ext4", "-b", "1024"], "");
    run_with("large_directories", &volume, profile, 4, 600, 500);
}

#[test]
fn long() {
    run("long", &Volume::new(&["-t", "ext4", "-b", "4096"], ""), 3, 600, 800);
}

#[test]
fn changes_in_one_tick() {
    for (kind, options) in
        [("ext4", ""), ("ext4", "nodelalloc"), ("ext4", "data=journal"), ("ext3", "")]
    {
        let volume = Volume::new(&["-t", kind, "-b", "4096", "-I", "256"], options);
        check_changes_in_one_tick(&volume)
            .unwrap_or_else(|what| panic!("{kind} {options}: {what}"));
    }
}
