//! Zoned volumes that a real kernel wrote, as `tests/images/README.md` lists them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{JoinedDevice, MemoryDevice, Scheduler, ZoneReport, ZonedDevice};
use dovetail_f2fs::fsck::{Finding, Options, Severity, check};
use dovetail_f2fs::{Error, F2fs, Incompatible, Options as MountOptions, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::kit::VolumeTree;
use dovetail_vfs::{Caller, FileSystem, NewNode};
use serde_json::{Map, Value};

use crate::common::manifest::describe;
use crate::common::zoned::{shown, zone_report, zoned_image};
use crate::common::{kernel_image, manifest_lines};

/// The two devices of zoned-multi.
fn multi() -> JoinedDevice<Box<dyn Scheduler>> {
    let first = kernel_image("zoned-multi.a");
    let superblock = Volume::open(first.clone());
    let next = |error| match error {
        Error::Incompatible(Incompatible::MultiDevice { next, .. }) => next,
        other => panic!("{other}"),
    };
    assert_eq!(superblock.map_err(next).unwrap_err(), "/dev/z");
    let zoned = zoned_image("zoned-multi.z", "zoned-multi");
    let parts: [(Box<dyn Scheduler>, u64); 2] =
        [(Box::new(first), 16_384), (Box::new(zoned), 131_072)];
    JoinedDevice::new(parts).unwrap()
}

/// A line of these manifests in the form of the others'; inode numbers are compared apart.
pub(crate) fn usual(line: &Value) -> Value {
    let mut usual = Map::new();
    let is_file = line["type"] == "file";
    for (key, value) in line.as_object().unwrap() {
        let (key, value) = match key.as_str() {
            "path" if value == "." => ("path", value.clone()),
            "path" => ("path", format!("./{}", value.as_str().unwrap()).into()),
            "xattrs" => ("xattr", value.clone()),
            "type" | "ino" | "blocks512" => continue,
            "size" if !is_file => continue,
            other => (other, value.clone()),
        };
        usual.insert(key.to_string(), value);
    }
    usual.into()
}

/// Lines that differ, and how many are equal.
fn compare<D: Scheduler>(volume: &mut Volume<D>, name: &str) -> (usize, Vec<String>) {
    let (mut equal, mut different) = (0, Vec::new());
    for line in manifest_lines(name) {
        let (expected, path) = (usual(&line), line["path"].as_str().unwrap().to_string());
        let Ok(inode) = volume.resolve_link(path.as_bytes()) else {
            different.push(path);
            continue;
        };
        let shown = if path == "." { path.clone() } else { format!("./{path}") };
        let found = describe(volume, &shown, &inode);
        if found == expected && line["ino"] == inode.ino.0 {
            equal += 1;
        } else {
            different.push(path);
        }
    }
    (equal, different)
}

#[test]
fn a_zoned_volume_is_read_whole() {
    let mut volume = Volume::open(kernel_image("zoned-clean")).unwrap();
    assert_eq!(compare(&mut volume, "zoned-clean"), (298, Vec::new()));
}

#[test]
fn a_volume_on_two_devices_is_read_whole() {
    let mut volume = Volume::open(multi()).unwrap();
    assert_eq!(compare(&mut volume, "zoned-multi"), (298, Vec::new()));
    let devices: Vec<_> =
        volume.superblock().devices.iter().map(|d| (d.path.as_str(), d.segments)).collect();
    assert_eq!(devices, [("/dev/a", 24), ("/dev/z", 256)]);
    assert_eq!(volume.superblock().device_blocks(), [16_384, 131_072]);
}

/// All but what was written since the checkpoint: that is shown by a mount.
#[test]
fn a_cut_zoned_volume_is_shown_as_of_its_last_checkpoint() {
    let mut volume = Volume::open(zoned_image("zoned-cap-crash", "zoned-cap-crash")).unwrap();
    let (equal, different) = compare(&mut volume, "zoned-cap-crash");
    let is_new = |path: &&String| !path.starts_with("many/fsynced");
    assert_eq!(different.iter().filter(is_new).collect::<Vec<_>>(), ["dir/f13_9437184", "many"]);
    assert_eq!((equal, different.len()), (296, 8));
}

fn findings<D: Scheduler>(device: D) -> Vec<Finding> {
    check(device, Options::default(), |_| {}).unwrap().findings
}

#[test]
fn zoned_volumes_of_a_kernel_are_clean() {
    assert_eq!(findings(zoned_image("zoned-clean", "zoned-clean")), []);
    assert_eq!(findings(multi()), []);
}

/// The same as fsck.f2fs says of it: logs 0 and 1 behind their pointers, and three zones left over;
/// and the log of fsync records, which fsck.f2fs leaves to the recovery without a word.
#[test]
fn a_check_with_zones_finds_what_fsck_f2fs_finds() {
    let report = findings(zoned_image("zoned-cap-crash", "zoned-cap-crash"));
    let shown: Vec<_> = report.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "7 fsynced files await recovery by the next mount",
            "log 4 is to write block 367 of segment 8 next, and of its zone, section 1, 387 blocks are written",
            "log 0 is to write block 0 of segment 25 next, and of its zone, section 3, 589 blocks are written",
            "section 7 holds nothing, and 3072 blocks of its zone are written",
            "section 8 holds nothing, and 3072 blocks of its zone are written",
            "log 1 is to write block 296 of segment 76 next, and of its zone, section 9, 3072 blocks are written",
            "section 10 holds nothing, and 40 blocks of its zone are written",
        ]
    );
}

#[test]
fn without_its_zones_a_zoned_volume_is_checked_but_for_free_segments() {
    let report = findings(kernel_image("zoned-cap-crash"));
    let worst = report.iter().map(Finding::severity).max();
    assert_eq!((report.len(), worst), (2, Some(Severity::Note)), "{report:?}");
}

/// After the recovery every path is what the kernel showed after its own, and every zone is in the
/// state in which the kernel left it: logs in new zones with as many blocks, the zones that they left
/// finished, dead ones reset.
#[test]
fn a_cut_zoned_volume_is_recovered_as_by_the_kernel() {
    let device = zoned_image("zoned-cap-crash", "zoned-cap-crash");
    let fs = F2fs::mount(device, MountOptions::default(), SimTime::ZERO).unwrap();
    let mut device = fs.into_device();
    let ZoneReport { zones, states } = zone_report("zoned-cap-crash.after-mount");
    let mut expected = ZonedDevice::found(MemoryDevice::new(zones.end().0), zones, states);
    assert_eq!(shown(&mut device), shown(&mut expected));
    let mut volume = Volume::open(device).unwrap();
    // the directory that got the names back has the time of the recovery
    assert_eq!(compare(&mut volume, "zoned-cap-crash"), (303, vec!["many".to_string()]));
    let lines = manifest_lines("zoned-cap-crash");
    let line = lines.iter().find(|line| line["path"] == "many").unwrap();
    let many = volume.resolve_link(b"many").unwrap();
    let (mut found, mut expected) = (describe(&mut volume, "./many", &many), usual(line));
    for line in [&mut found, &mut expected] {
        line.as_object_mut().unwrap().remove("mtime_ns");
    }
    assert_eq!(found, expected);
    assert_eq!(findings(volume.into_device()), []);
}

/// Mounted, changed, unmounted and mounted again: the zones are written in order throughout, or the
/// device would refuse.
#[test]
fn zoned_volumes_of_a_kernel_are_written_to() {
    let two: Box<dyn Scheduler> = Box::new(multi());
    let one: Box<dyn Scheduler> = Box::new(zoned_image("zoned-clean", "zoned-clean"));
    let cut: Box<dyn Scheduler> = Box::new(zoned_image("zoned-cap-crash", "zoned-cap-crash"));
    for device in [two, one, cut] {
        let mut fs = F2fs::mount(device, MountOptions::default(), SimTime::ZERO).unwrap();
        let root = fs.root();
        let (caller, node) = (Caller::default(), NewNode { mode: 0o100_644, rdev: (0, 0) });
        let file = fs.create(&caller, root, b"new", &node).unwrap().ino;
        for n in 0..8 {
            fs.write(&caller, file, n << 19, &vec![n as u8; 1 << 20]).unwrap();
            fs.fsync(file, false).unwrap();
        }
        let device = fs.unmount().unwrap();
        let mut again = F2fs::mount(device, MountOptions::default(), SimTime::ZERO).unwrap();
        let found = again.lookup(root, b"new").unwrap();
        let mut bytes = vec![0; 1 << 19];
        assert_eq!(again.read(found.ino, 7 << 19, &mut bytes).unwrap(), 1 << 19);
        assert_eq!(bytes, vec![7; 1 << 19]);
        assert_eq!(findings(again.unmount().unwrap()), []);
    }
}
