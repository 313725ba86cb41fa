//! Random operations on a mounted volume and on the reference model: the same answers, the same
//! trees, and a volume that fsck.f2fs and our own check find nothing wrong with.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common;
use crate::common::iplfs::{
    all_features, iplfs_device, iplfs_limits, iplfs_options, leaks_after_mount, narrow_options,
};
use crate::common::strict_fsck;
use crate::common::zoned::{InMemory, zoned_volume, zones};
use dovetail_block::{AREA_BLOCKS, Scheduler, Zones};
use dovetail_f2fs::fsck::check;
use dovetail_f2fs::mkfs::MkfsOptions;
use dovetail_f2fs::{F2fs, IpuPolicy, Options};
use dovetail_testkit::Model;
use dovetail_testkit::exercise::{Generator, Profile, Subject, compare_run};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Limits, SetAttr, Timestamp};

/// Operations of one run, and after how many the trees are compared.
const STEPS: u64 = 1200;
const EVERY: u64 = 20;

fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("DOVETAIL_SEED") {
        Ok(seed) => seed.parse().unwrap()..seed.parse::<u64>().unwrap() + 1,
        Err(_) => 0..std::env::var("DOVETAIL_SEEDS").map_or(count, |count| count.parse().unwrap()),
    }
}

/// Both roots look the same.
fn same_root<F: FileSystem>(subject: &mut Subject<F>) {
    let time = Some(Timestamp { seconds: 1_600_000_000, nanoseconds: 0 });
    let changes = SetAttr {
        mode: Some(0o755),
        uid: Some(0),
        gid: Some(0),
        atime: time,
        mtime: time,
        ctime: time,
        size: None,
    };
    let root = subject.fs.root();
    subject.fs.setattr(&Caller::default(), root, &changes).unwrap();
}

fn assert_clean(device: &(impl Scheduler + InMemory + Clone), place: &str) {
    if device.info().capabilities.thin.is_some() {
        assert_eq!(leaks_after_mount(device.memory()), [""; 0], "{place}");
        return;
    }
    let complaints = strict_fsck(device.memory());
    // of an image fsck.f2fs knows no zones, and no capacity below their size
    let is_short =
        device.info().capabilities.zones.is_some_and(|zones| zones.capacity < zones.blocks);
    let is_count = |line: &str| line.contains("free segment_count") || line.contains("exit status");
    let is_known = is_short && complaints.lines().all(is_count);
    assert!(complaints.is_empty() || is_known, "{place}: {complaints}");
    let report = check(device.clone(), dovetail_f2fs::fsck::Options::default(), |_| {}).unwrap();
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(report.is_clean(), "{place}: {findings:#?}");
}

/// An inode without room for attributes has those of one node.
fn limits(device: &(impl Scheduler + Clone), options: &Options) -> Limits {
    if device.info().capabilities.thin.is_some() {
        return iplfs_limits(device.clone(), options);
    }
    let inline = if options.inline_xattr { 200 } else { 0 };
    let xattr_total = inline + 4072 - 24;
    Limits { xattr_value: xattr_total - 4, xattr_total, ..Limits::default() }
}

/// Runs `count` seeds on volumes that mkfs.f2fs makes with `mkfs_options`.
fn compare(name: &str, mkfs_options: &[&str], options: &Options, count: u64) {
    compare_on(name, &common::mkfs(256 << 20, mkfs_options), options, count);
}

fn compare_on<D: Scheduler + InMemory + Clone>(
    name: &str,
    empty: &D,
    options: &Options,
    count: u64,
) {
    for seed in seeds(count) {
        let place = format!("{name}, DOVETAIL_SEED={seed}");
        let mounted = F2fs::mount(empty.clone(), options.clone(), SimTime::ZERO).unwrap();
        let mut found = Subject::new(mounted);
        let mut expected = Subject::new(Model::new(limits(empty, options), &Caller::default()));
        same_root(&mut found);
        same_root(&mut expected);
        let mut operations = Generator::new(seed, Profile::default());
        compare_run(&mut expected, &mut found, &mut operations, STEPS, EVERY)
            .unwrap_or_else(|difference| panic!("{place}: {difference}"));
        found.fs.sync().unwrap();
        assert_clean(found.fs.device(), &format!("{place}, mounted"));
        found.release_all().unwrap();
        expected.release_all().unwrap();
        let device = found.fs.unmount().unwrap();
        assert_clean(&device, &format!("{place}, unmounted"));
        let again = F2fs::mount(device, options.clone(), SimTime::ZERO).unwrap();
        let difference = dovetail_testkit::exercise::first_difference(
            &expected.tree().unwrap(),
            &Subject::new(again).tree().unwrap(),
        );
        assert_eq!(difference, None, "{place}, mounted again");
    }
}

#[test]
fn on_a_plain_volume() {
    compare("plain", &[], &Options::default(), 12);
}

#[test]
fn with_extra_attributes_and_checksums() {
    let features = "extra_attr,inode_checksum,sb_checksum,inode_crtime,flexible_inline_xattr";
    compare("features", &["-O", features], &Options::default(), 6);
}

#[test]
fn with_large_sections_and_a_large_nat() {
    compare("sections", &["-i", "-s", "2", "-z", "2"], &Options::default(), 4);
}

#[test]
fn out_of_place_and_with_other_options() {
    let out_of_place = Options { ipu_policy: Some(IpuPolicy(0)), ..Options::default() };
    compare("out of place", &[], &out_of_place, 4);
    for list in [
        "mode=lfs",
        "active_logs=2",
        "active_logs=4",
        "noinline_data,noinline_dentry,noinline_xattr",
    ] {
        compare(list, &[], &Options::parse(list).unwrap(), 3);
    }
}

#[test]
fn with_updates_remapped() {
    for list in [
        "mode=rm-ipu",
        "mode=rm-ipu,remap=fsync",
        "mode=rm-ipu-adaptive",
        "mode=rm-ipu-adaptive,remap=fsync",
    ] {
        compare(list, &[], &Options::parse(list).unwrap(), 3);
    }
    let sections = Options::parse("mode=rm-ipu,remap=fsync").unwrap();
    compare("sections", &["-s", "2"], &sections, 2);
}

#[test]
fn with_writes_past_the_cache() {
    let past = Options { writes_past_cache: true, ..Options::default() };
    compare("past the cache", &[], &past, 4);
}

#[test]
fn with_little_memory() {
    let little =
        Options { page_cache_bytes: 1 << 18, node_cache_bytes: 1 << 16, ..Options::default() };
    compare("little memory", &[], &little, 6);
}

/// Sections are zones: a write that is not at the pointer of its zone is refused by the device.
#[test]
fn on_a_zoned_volume() {
    let default = Options::default();
    for (size, capacity, conventional) in [(2, 2, 16), (8, 8, 4), (8, 7, 4), (16, 9, 3)] {
        let empty = zoned_volume(512, zones(512, size, capacity, conventional));
        compare_on(&format!("zones of {capacity}/{size} MiB"), &empty, &default, 3);
    }
    let zones = Zones { max_open: 4, max_active: 6, ..zones(512, 8, 8, 3) };
    compare_on(
        "four open zones",
        &zoned_volume(512, zones),
        &Options::parse("active_logs=4").unwrap(),
        2,
    );
    let little = Options { page_cache_bytes: 1 << 18, node_cache_bytes: 1 << 16, ..default };
    compare_on(
        "zones, little memory",
        &zoned_volume(512, Zones { max_open: 0, max_active: 0, ..zones }),
        &little,
        3,
    );
}

/// The same on IPLFS, with logs at the start of their areas and near their ends.
#[test]
fn on_an_iplfs_volume() {
    compare_on("iplfs", &iplfs_device(256 << 20, &iplfs_options()), &Options::default(), 8);
    let far = MkfsOptions { log_start: AREA_BLOCKS - (1 << 20), ..iplfs_options() };
    compare_on("far out", &iplfs_device(256 << 20, &far), &Options::default(), 2);
    let features = MkfsOptions { features: all_features(), ..iplfs_options() };
    compare_on("iplfs features", &iplfs_device(256 << 20, &features), &Options::default(), 4);
    let narrow = iplfs_device(256 << 20, &narrow_options());
    compare_on("narrow addresses", &narrow, &Options::default(), 4);
    for list in ["active_logs=2", "active_logs=4", "noinline_data,noinline_dentry,noinline_xattr"] {
        let empty = iplfs_device(64 << 20, &iplfs_options());
        compare_on(list, &empty, &Options::parse(list).unwrap(), 2);
    }
    let little =
        Options { page_cache_bytes: 1 << 18, node_cache_bytes: 1 << 16, ..Options::default() };
    compare_on("iplfs, little memory", &iplfs_device(256 << 20, &iplfs_options()), &little, 3);
}
