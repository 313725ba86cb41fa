//! Zoned volumes, ours and those of mkfs.f2fs, on one device and on two, between the kernel and us.
//!
//! A round boots a kernel with zoned devices in memory (null_blk) three times. First it mounts each
//! volume, which holds what we find in it, changes it at random, and is shut down in the middle:
//! content and write pointers come out as they are. Then it recovers copies, and volumes that our
//! own power cut left; what was fsynced must be there, and what we recover, files and zones, must
//! be what it recovers. At last it reads what we recovered and unmounted.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use dovetail_block::{Content, Lba, ZoneState, ZonedDevice};
use dovetail_f2fs::format::{Features, LogPosition};
use dovetail_f2fs::fsck::{self, Severity};
use dovetail_f2fs::{F2fs, Volume};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, NewNode};

use crate::common::manifest::{self, Manifest};
use crate::common::zoned::shown;
use crate::guest::{self, Kernel};
use crate::zoned_volume::{Device, Files, GEOMETRIES, Geometry, states};
use crate::{
    contains, equal, guest_job, ours, output, seeds, without_complaints, without_directory_times,
};

pub(crate) fn test() {
    let Some(kernel) = Kernel::with_zones() else {
        println!(
            "kernel_zoned: SKIPPED, as there is no kernel with zones: cargo xtask linux-kernel builds it"
        );
        return;
    };
    seeds().for_each(|seed| round(&kernel, seed));
}

/// A volume and what is known of it.
struct Case {
    name: String,
    geometry: &'static Geometry,
    /// Its devices as one, if it does not lie in the guest.
    device: Option<Device>,
    files: Files,
    /// Nothing happened after this was synced.
    synced: Option<Manifest>,
    /// Files that were fsynced and not changed since.
    fsynced: Manifest,
}

impl Case {
    fn new(maker: &str, geometry: &'static Geometry, folder: &Path) -> Self {
        let name = format!("{maker} {}", geometry.name);
        let files = Files::new(folder, &name.replace(' ', "-"));
        Self { name, geometry, device: None, files, synced: None, fsynced: Manifest::new() }
    }

    /// Lays the volume where the guest finds it.
    fn hold(&mut self, device: Device) {
        self.files.write(self.geometry, &device);
        self.device = Some(device);
    }

    fn device(&self) -> Device {
        self.device.clone().unwrap()
    }

    fn manifest(&self) -> Manifest {
        manifest::of_volume(&mut Volume::open(self.device()).unwrap())
    }

    fn put(&self, script: &mut String) {
        self.geometry.attach(script);
        let (image, report) = (self.files.image.display(), self.files.report.display());
        guest_job(script, &format!("put {image} {report} {}", self.geometry.devices()));
    }
}

fn round(kernel: &Kernel, seed: u64) {
    println!(
        "kernel_zoned: seed {seed} (alone: DOVETAIL_SEED={seed} cargo test -p dovetail-f2fs --test kernel zoned)"
    );
    let folder = tempfile::tempdir().unwrap();
    let mut cases = cut_the_kernel(kernel, folder.path(), seed);
    cases.extend(GEOMETRIES.iter().map(|geometry| cut_ours(geometry, folder.path(), seed)));
    cases.iter().for_each(check_as_the_cut_left_it);
    let recovered = recover_with_the_kernel(kernel, &cases, folder.path());
    let ours: Vec<Case> = cases
        .iter()
        .zip(&recovered)
        .map(|(case, kernels)| recover(case, kernels, folder.path()))
        .collect();
    check_with_the_kernel(kernel, &ours, folder.path());
}

/// Messages of the kernel about zones when it mounts.
const ZONES: [&str; 3] =
    ["Mount Device [", "Open zones: valid block", "Checking entire write pointers"];

/// Messages about zones that it repairs.
const REPAIRS: [&str; 4] = [
    "Assign new section to curseg",
    "Valid blocks are not aligned with write pointer", // a log's zone; it is finished
    "Zone without valid block has non-zero write pointer. Reset the write pointer",
    "is not yet discarded. Reset the zone",
];

fn run(kernel: &Kernel, script: &str, out: &Path, more: &[&str]) -> String {
    without_complaints(guest::run(kernel, script, &[], out), &[&ZONES[..], more].concat())
}

fn mount(script: &mut String, geometry: &Geometry) {
    writeln!(script, "mount -t f2fs -o noatime {} /mnt/volume", geometry.mounted()).unwrap();
}

/// The kernel mounts each volume, says what it finds, changes it, and is shut down.
fn cut_the_kernel(kernel: &Kernel, folder: &Path, seed: u64) -> Vec<Case> {
    let out = output(folder, "first");
    let (mut script, mut cases) = (String::new(), Vec::new());
    for geometry in &GEOMETRIES {
        for maker in ["ours", "tools"] {
            let mut case = Case::new(maker, geometry, folder);
            if maker == "ours" {
                let fs = ours::exercised(geometry.made(features(seed)), seed, "");
                case.hold(fs.unmount().unwrap());
                case.put(&mut script);
            } else {
                geometry.attach(&mut script);
                geometry.format(&mut script);
            }
            mount(&mut script, geometry);
            let n = cases.len();
            guest_job(&mut script, &format!("describe /mnt/volume $OUT/{n}.found"));
            guest_job(&mut script, &format!("work /mnt/volume $OUT/{n}.synced {seed} 300"));
            if seed.is_multiple_of(2) {
                let seed = seed + 1000;
                let job = format!("unsynced /mnt/volume $OUT/{n}.fsynced {seed} 150");
                guest_job(&mut script, &job);
            }
            script.push_str("f2fs_io shutdown 2 /mnt/volume > /dev/null\n");
            let devices = geometry.devices();
            guest_job(&mut script, &format!("take $OUT/{n}.img $OUT/{n}.zones {devices}"));
            script.push_str("umount /mnt/volume\n");
            geometry.detach(&mut script);
            cases.push(case);
        }
    }
    run(kernel, &script, &out, &["Stopped filesystem due to reason: 0"]); // that it was shut down
    let manifest =
        |n: usize, name: &str| manifest::parse(&fs::read(out.join(format!("{n}.{name}"))).unwrap());
    for (n, case) in cases.iter_mut().enumerate() {
        if case.device.is_some() {
            let what = format!("{}: what the kernel finds", case.name);
            equal(&what, &case.manifest(), &manifest(n, "found"));
        }
        let synced = manifest(n, "synced");
        if seed.is_multiple_of(2) {
            case.fsynced = manifest(n, "fsynced");
        } else {
            (case.synced, case.fsynced) = (Some(synced.clone()), synced);
        }
        assert!(case.fsynced.len() > 5, "{}: too little to compare", case.name);
        fs::rename(out.join(format!("{n}.img")), &case.files.image).unwrap();
        fs::rename(out.join(format!("{n}.zones")), &case.files.report).unwrap();
        case.device = Some(case.files.read(case.geometry));
    }
    cases
}

fn features(seed: u64) -> Features {
    if seed.is_multiple_of(2) {
        return Features::default();
    }
    [Features::EXTRA_ATTR, Features::INODE_CHECKSUM, Features::SB_CHECKSUM]
        .into_iter()
        .fold(Features::default(), Features::with)
}

/// A volume that our own power cut left: with what was fsynced, and only a part of what was written
/// after that.
fn cut_ours(geometry: &'static Geometry, folder: &Path, seed: u64) -> Case {
    let mut fs = ours::exercised(geometry.made(features(seed)), seed + 500, "");
    let fsynced = ours::fsync_files(&mut fs);
    let flushed = states(fs.device());
    let checkpoints = fs.events().checkpoints;
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let file = fs.create(&Caller::default(), root, b"unsynced", &node).unwrap().ino;
    fs.write(&Caller::default(), file, 0, &vec![9; 3 << 20]).unwrap();
    let mut second = 0;
    while states(fs.device()) == flushed {
        second += 1;
        fs.set_now(SimTime::from_ns(second * 1_000_000_000));
        fs.wake().unwrap();
    }
    assert_eq!(fs.events().checkpoints, checkpoints, "nothing of it is in a checkpoint");
    let device = lose_unflushed(fs.into_device(), &flushed, &mut Rng::new(seed));
    let mut case = Case { fsynced, ..Case::new("ours, cut,", geometry, folder) };
    case.hold(device);
    case
}

/// The device after a power cut: of what came after the last flush each zone has a part.
fn lose_unflushed(device: Device, flushed: &[(ZoneState, u64)], rng: &mut Rng) -> Device {
    let zones = *device.table().zones();
    let mut left = states(&device);
    let mut memory = device.into_below();
    for (zone, ((state, written), (_, safe))) in left.iter_mut().zip(flushed).enumerate() {
        let start = zones.start(zone as u32).0;
        let kept = *safe.min(written) + rng.below(written.saturating_sub(*safe) + 1);
        (kept..*written).for_each(|block| memory.set(Lba(start + block), Content::Empty));
        if kept < *written {
            *state = if kept == 0 { ZoneState::Empty } else { ZoneState::Closed };
            *written = kept;
        }
    }
    ZonedDevice::found(memory, zones, left).after_power_cut()
}

/// Without recovery: the last checkpoint can be read as a whole, and is the last sync if nothing
/// came after it.
fn check_as_the_cut_left_it(case: &Case) {
    check_with_fsck(case);
    if let Some(synced) = &case.synced {
        equal(&format!("{}: as of the last sync", case.name), synced, &case.manifest());
    }
}

/// A volume as the kernel recovered it.
struct Recovered {
    files: Manifest,
    /// Its zones right after the mount.
    zones: Vec<&'static str>,
}

/// Zones as empty, open, or full. How many blocks a recovery writes to a log is nobody's promise.
fn kinds(device: &mut Device) -> Vec<&'static str> {
    let kind = |zone: String| match zone.as_str() {
        "empty" => "empty",
        "full" => "full",
        _ => "open",
    };
    shown(device).into_iter().map(kind).collect()
}

fn recover_with_the_kernel(kernel: &Kernel, cases: &[Case], folder: &Path) -> Vec<Recovered> {
    let out = output(folder, "second");
    let mut script = String::new();
    for (n, case) in cases.iter().enumerate() {
        case.put(&mut script);
        mount(&mut script, case.geometry);
        writeln!(script, "blkzone report /dev/z > $OUT/{n}.zones").unwrap();
        guest_job(&mut script, &format!("describe /mnt/volume $OUT/{n}.after"));
        script.push_str("umount /mnt/volume\n");
        writeln!(script, "expect_clean {} $OUT/{n}.fsck", case.geometry.mounted()).unwrap();
        case.geometry.detach(&mut script);
    }
    let log = run(kernel, &script, &out, &REPAIRS);
    assert!(log.contains("recover_data: "), "the kernel had no fsyncs to recover: {log}");
    let read = |(n, case): (usize, &Case)| {
        let files = manifest::parse(&fs::read(out.join(format!("{n}.after"))).unwrap());
        contains(&format!("{}: what the kernel recovers", case.name), &case.fsynced, &files);
        let report = fs::read_to_string(out.join(format!("{n}.zones"))).unwrap();
        Recovered { files, zones: kinds(&mut case.geometry.of_report(&report)) }
    };
    cases.iter().enumerate().map(read).collect()
}

/// We recover a volume, unmount it and check it.
fn recover(case: &Case, kernels: &Recovered, folder: &Path) -> Case {
    let before = Volume::open(case.device()).unwrap().checkpoint().clone();
    let mut fs = ours::mount(case.device(), "");
    let what = format!("{}: zones after our recovery beside the kernel's", case.name);
    let mut zones = kinds(fs.device_mut());
    for (log, old) in fs.checkpoint_state().logs.iter().zip(&before.logs) {
        match (zone_of(&fs, log), zone_of(&fs, old)) {
            (Some(zone), None) if kernels.zones[zone] == "empty" => zones[zone] = "empty", // see below
            _ => {}
        }
    }
    assert_eq!(zones, kernels.zones, "{what}");
    let mut recovered = Case::new(&format!("{}, recovered,", case.name), case.geometry, folder);
    recovered.hold(fs.unmount().unwrap());
    check_with_fsck(&recovered);
    let files = recovered.manifest();
    contains(&format!("{}: what we recover", case.name), &case.fsynced, &files);
    let what = format!("{}: ours beside the kernel's recovery", case.name);
    let kernels = without_directory_times(kernels.files.clone());
    equal(&what, &kernels, &without_directory_times(files.clone()));
    recovered.synced = Some(files);
    recovered
}

/// The zone in which a log stands; `None` of a conventional one. From there our logs move like all
/// others, so that a recovery never writes over the chain that it reads; the kernel's node logs stay.
fn zone_of(fs: &F2fs<Device>, log: &LogPosition) -> Option<usize> {
    let start = fs.superblock().main_start.0 + 512 * u64::from(log.segment.0);
    fs.device().table().zones().index(Lba(start)).map(|zone| zone as usize)
}

/// fsck.f2fs on the devices and the kernel find in each volume what we left there.
fn check_with_the_kernel(kernel: &Kernel, cases: &[Case], folder: &Path) {
    let out = output(folder, "third");
    let mut script = String::new();
    for (n, case) in cases.iter().enumerate() {
        case.put(&mut script);
        writeln!(script, "expect_clean {} $OUT/{n}.fsck", case.geometry.mounted()).unwrap();
        mount(&mut script, case.geometry);
        guest_job(&mut script, &format!("describe /mnt/volume $OUT/{n}.after"));
        script.push_str("umount /mnt/volume\n");
        case.geometry.detach(&mut script);
    }
    run(kernel, &script, &out, &[]);
    for (n, case) in cases.iter().enumerate() {
        let after = manifest::parse(&fs::read(out.join(format!("{n}.after"))).unwrap());
        let what = format!("{} by us: what the kernel finds", case.name);
        equal(&what, case.synced.as_ref().unwrap(), &after);
    }
}

fn check_with_fsck(case: &Case) {
    let report = fsck::check(case.device(), fsck::Options::default(), |_| {}).unwrap();
    let errors = report.findings.iter().filter(|finding| finding.severity() == Severity::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{}: our fsck: {errors:#?}", case.name);
}
