//! The Linux kernel and we read, recover and check each other's volumes.
//!
//! A round with a seed boots user-mode Linux twice. The first time the kernel mounts an image of
//! each subject, says what it finds (which must be what we find), changes it at random, and its
//! power is cut, on odd seeds just after a sync, on even ones after fsyncs that no checkpoint
//! covers. The second time it mounts copies and recovers them; what was fsynced must be there, and
//! what we recover must be what it recovers.
//!
//! On zoned volumes the same is done in [`zoned`], if `cargo xtask linux-kernel` has built a kernel
//! that can; Debian's ready-made one has no zoned devices.
//!
//! `DOVETAIL_SEED=n` runs one round alone, `DOVETAIL_SEEDS=n` that many (2). The same program is
//! what runs inside. `DOVETAIL_WITHOUT=kernel` declares that user-mode Linux cannot run here;
//! `cargo xtask test` reminds of it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(
    clippy::print_stdout,
    reason = "it is its own test harness, so that it can also run inside the guest"
)]

mod agent;
#[path = "../common/mod.rs"]
mod common;
mod disk;
mod guest;
mod ours;
mod subjects;
mod zoned;
mod zoned_volume;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use common::lab::verdict;
use common::manifest::{self, Manifest, differences};
use dovetail_block::ImageDevice;
use dovetail_f2fs::Volume;
use dovetail_f2fs::fsck::{self, Severity};
use guest::Kernel;
use serde_json::Value;
use subjects::{SUBJECTS, Subject};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filter = arguments.first().map(String::as_str).filter(|text| !text.starts_with('-'));
    match arguments.first().map(String::as_str) {
        Some("guest") => agent::run(&arguments[1..]),
        Some("--list") => TESTS.iter().for_each(|(name, _)| println!("{name}: test")),
        _ if is_absent() => println!("kernel: SKIPPED, as DOVETAIL_WITHOUT says"),
        _ => {
            let wanted = |name: &str| filter.is_none_or(|filter| name.contains(filter));
            TESTS.iter().filter(|(name, _)| wanted(name)).for_each(|(_, test)| test());
        }
    }
}

/// Names of the tests, and what they do.
const TESTS: [(&str, fn()); 2] =
    [("kernel", || seeds().for_each(round)), ("kernel_zoned", zoned::test)];

/// The variable, a list separated by commas, declares that there is no such referee on this
/// machine.
fn is_absent() -> bool {
    std::env::var("DOVETAIL_WITHOUT").is_ok_and(|list| list.split(',').any(|name| name == "kernel"))
}

fn seeds() -> std::ops::Range<u64> {
    let variable = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match variable("DOVETAIL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("DOVETAIL_SEEDS").unwrap_or(2),
    }
}

fn round(seed: u64) {
    println!(
        "kernel: seed {seed} (alone: DOVETAIL_SEED={seed} cargo test -p dovetail-f2fs --test kernel)"
    );
    let folder = tempfile::tempdir().unwrap();
    let mut cases: Vec<Case> =
        SUBJECTS.iter().map(|subject| Case::new(subject, folder.path(), seed)).collect();
    cut_the_kernel(&mut cases, folder.path(), seed);
    cases.iter_mut().for_each(Case::check_as_the_cut_left_it);
    cases.extend(SUBJECTS.iter().filter_map(|subject| Case::crashed(subject, folder.path(), seed)));
    let log = recover_with_the_kernel(&mut cases, folder.path());
    assert!(log.contains("recover_data: "), "the kernel had no fsyncs to recover: {log}");
    cases.iter_mut().for_each(Case::check_recovered);
}

/// One image and what is known of it.
struct Case {
    name: String,
    subject: &'static Subject,
    image: PathBuf,
    /// State that the kernel synced before the cut, all of it; on odd seeds nothing happened after
    /// that.
    synced: Option<Manifest>,
    /// Files that were fsynced and not changed since.
    fsynced: Manifest,
}

impl Case {
    fn new(subject: &'static Subject, folder: &Path, seed: u64) -> Self {
        let (name, image) = (
            subject.name.to_string(),
            folder.join(format!("{}.img", subject.name.replace(' ', "-"))),
        );
        (subject.make)(&image, seed);
        Self { name, subject, image, synced: None, fsynced: Manifest::new() }
    }

    /// An image that the subject's own power cut left, for the kernel to recover.
    fn crashed(subject: &'static Subject, folder: &Path, seed: u64) -> Option<Self> {
        let name = format!("{}, crashed", subject.name);
        let image = folder.join(format!("{}-crashed.img", subject.name.replace(' ', "-")));
        let fsynced = subject.crash?(&image, seed);
        Some(Self { name, subject, image, synced: None, fsynced })
    }

    fn copy(&self) -> PathBuf {
        self.image.with_extension("copy")
    }

    /// Without recovery: the last checkpoint can be read as a whole, and is the last sync if
    /// nothing came after it.
    fn check_as_the_cut_left_it(&mut self) {
        check_with_fsck(&self.image, &self.name);
        let found = read(&self.image);
        if let Some(synced) = &self.synced {
            equal(&format!("{}: as of the last sync", self.name), synced, &found);
        }
    }

    fn check_recovered(&mut self) {
        let kernel = read(&self.copy());
        contains(&format!("{}: what the kernel recovers", self.name), &self.fsynced, &kernel);
        if let Some(recover) = self.subject.recover {
            recover(&self.image);
            check_with_fsck(&self.image, &self.name);
            let ours = read(&self.image);
            contains(&format!("{}: what we recover", self.name), &self.fsynced, &ours);
            let what = format!("{}: ours beside the kernel's recovery", self.name);
            equal(&what, &without_directory_times(kernel), &without_directory_times(ours));
        }
    }
}

/// The kernel mounts each image, says what it finds, changes it, and is cut off.
fn cut_the_kernel(cases: &mut [Case], folder: &Path, seed: u64) {
    let out = output(folder, "first");
    let mut script = String::new();
    for n in 0..cases.len() {
        mount(&mut script, n);
        guest_job(&mut script, &format!("describe /mnt/{n} $OUT/{n}.found"));
        guest_job(&mut script, &format!("work /mnt/{n} $OUT/{n}.synced {seed} 300"));
        if seed.is_multiple_of(2) {
            guest_job(&mut script, &format!("fsync /mnt/{n} $OUT/{n}.fsynced {} 150", seed + 1000));
        }
    }
    script.push_str("cut_power\n");
    let ours: Vec<Manifest> = cases.iter().map(|case| read(&case.image)).collect();
    boot(&script, cases.iter().map(|case| case.image.as_path()).collect(), &out);
    let read_out =
        |n: usize, name: &str| manifest::parse(&fs::read(out.join(format!("{n}.{name}"))).unwrap());
    for (n, case) in cases.iter_mut().enumerate() {
        equal(&format!("{}: what the kernel finds", case.name), &ours[n], &read_out(n, "found"));
        let synced = read_out(n, "synced");
        if seed.is_multiple_of(2) {
            case.fsynced = read_out(n, "fsynced");
        } else {
            (case.synced, case.fsynced) = (Some(synced.clone()), synced);
        }
    }
    let fsynced: usize = cases.iter().map(|case| case.fsynced.len()).sum();
    assert!(
        fsynced > 20,
        "only {fsynced} files are fsynced and not changed since: too little to compare"
    );
}

/// The kernel recovers a copy of each image; what it finds then is what we find in the copy.
fn recover_with_the_kernel(cases: &mut [Case], folder: &Path) -> String {
    let out = output(folder, "second");
    let mut script = String::new();
    for (n, case) in cases.iter().enumerate() {
        fs::copy(&case.image, case.copy()).unwrap();
        mount(&mut script, n);
        guest_job(&mut script, &format!("describe /mnt/{n} $OUT/{n}.after"));
        writeln!(script, "umount /mnt/{n}").unwrap();
    }
    let copies: Vec<PathBuf> = cases.iter().map(Case::copy).collect();
    let log = boot(&script, copies.iter().map(PathBuf::as_path).collect(), &out);
    for (n, case) in cases.iter().enumerate() {
        check_with_fsck(&case.copy(), &case.name);
        let after = manifest::parse(&fs::read(out.join(format!("{n}.after"))).unwrap());
        equal(&format!("{}: as the kernel left it", case.name), &after, &read(&case.copy()));
    }
    log
}

fn output(folder: &Path, name: &str) -> PathBuf {
    let out = folder.join(name);
    fs::create_dir(&out).unwrap();
    out
}

fn mount(script: &mut String, n: usize) {
    writeln!(script, "mount -t f2fs -o noatime /mnt/disk{n} /mnt/{n}").unwrap();
}

/// This program, inside the guest.
fn guest_job(script: &mut String, job: &str) {
    writeln!(script, "{} guest {job}", std::env::current_exe().unwrap().display()).unwrap();
}

/// Runs the script and returns the kernel's log.
fn boot(script: &str, images: Vec<&Path>, out: &Path) -> String {
    without_complaints(guest::run(&Kernel::of_debian(), script, &images, out), &[])
}

/// Messages of the kernel about volumes in good order, and about a recovery.
const USUAL: [&str; 7] = [
    "Found nat_bits in checkpoint",
    "Disable nat_bits due to incorrect", // the kernel itself leaves the flag on in checkpoints that have none
    "Mounted with checkpoint version",
    "recover_inode: ",
    "recover_dentry: ",
    "recover_data: ",
    "checkpoint: version", // after recovery
];

/// The log, in which the kernel must not complain of a file system; `more` is no complaint here.
fn without_complaints(log: String, more: &[&str]) -> String {
    let about = log.lines().filter(|line| line.contains("F2FS-fs"));
    let is_usual = |line: &&str| USUAL.iter().chain(more).any(|usual| line.contains(usual));
    let complaints: Vec<&str> = about.filter(|line| !is_usual(line)).collect();
    assert!(log.contains("Mounted with checkpoint version"), "{log}");
    assert!(complaints.is_empty(), "the kernel says: {complaints:#?}");
    log
}

fn read(image: &Path) -> Manifest {
    let mut volume = Volume::open(ImageDevice::open_read_only(image).unwrap()).unwrap();
    manifest::of_volume(&mut volume)
}

/// Neither fsck finds anything, fsck.f2fs in the strict sense.
fn check_with_fsck(image: &Path, name: &str) {
    let verdict = verdict(image);
    assert!(verdict.clean, "{name}: fsck.f2fs: {:#?}", verdict.complaints);
    let device = ImageDevice::open_read_only(image).unwrap();
    let report = fsck::check(device, fsck::Options::default(), |_| {}).unwrap();
    // warnings are about what the kernel itself leaves: an inode keeps its first name when it is
    // renamed
    let complaints = report.findings.iter().filter(|finding| finding.severity() == Severity::Error);
    let complaints: Vec<String> = complaints.map(ToString::to_string).collect();
    assert!(complaints.is_empty(), "{name}: our fsck: {complaints:#?}");
}

fn equal(what: &str, expected: &Manifest, found: &Manifest) {
    let differences = differences(expected, found);
    assert!(differences.is_empty(), "{what}: {differences}");
}

/// Recovery that names a file changes its directory's time: to the clock's.
fn without_directory_times(mut manifest: Manifest) -> Manifest {
    let is_dir = |line: &&mut Value| line["mode"].as_str().unwrap().starts_with("0o4");
    manifest.values_mut().filter(is_dir).for_each(|line| line["mtime_ns"] = Value::Null);
    manifest
}

fn contains(what: &str, expected: &Manifest, found: &Manifest) {
    let found = found.iter().filter(|(path, _)| expected.contains_key(*path));
    equal(what, expected, &found.map(|(path, line)| (path.clone(), line.clone())).collect());
}
