//! Images of zoned devices with their zone reports, and volumes on several images.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::PathBuf;

use dovetail_block::{ZoneReport, ZoneState};
use dovetail_f2fs::format::Features;
use dovetail_f2fs::mkfs::{DevicePart, MkfsOptions, mkfs};
use dovetail_image::{Error, Medium, Mount, NewZones, OpenError, Repair, Source, format_of, list};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, Moment, NewNode};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

fn file(folder: &TempDir, name: &str, mib: u64) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::File::create(&path).unwrap().set_len(mib * MIB).unwrap();
    path
}

fn mounting() -> Mount<'static> {
    Mount { read_only: false, options: "", seed: 1, now: Moment::from(SimTime::ZERO) }
}

/// Mounts the volume and makes a file of three blocks.
fn make_file(source: &Source) -> Result<(), Error> {
    let format = format_of(source)?;
    let mut fs = format.mount(source, &mounting(), &mut |_| {})?;
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let ino = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
    fs.write(&Caller::default(), ino, 0, &[7; 12_000]).unwrap();
    fs.unmount().unwrap();
    Ok(())
}

/// The names in the root, and what was told meanwhile.
fn names(source: &Source) -> (String, Vec<String>) {
    let mut told = Vec::new();
    let format = format_of(source).unwrap();
    let mut files = format.files(source, Ok(()), &mut |why| told.push(why)).unwrap();
    (list(&mut *files.tree, b"/").unwrap().lines, told)
}

#[test]
fn an_image_keeps_its_zones_in_a_report() {
    let folder = TempDir::new().unwrap();
    let (image, report) = (file(&folder, "image", 512), folder.path().join("zones"));
    let source = Source::from(&image).with_zones(Some(report.clone()));
    let zones = NewZones { size: 16 * MIB, capacity: 12 * MIB, conventional: 4 };
    let (mut medium, _) = Medium::open_for_mkfs(&source, Some(zones)).unwrap();
    let options = MkfsOptions { features: Features::BLKZONED, ..MkfsOptions::default() };
    mkfs(&mut medium, &options).unwrap();
    drop(medium);
    let states = || ZoneReport::parse(&std::fs::read_to_string(&report).unwrap()).unwrap().states;
    let written =
        |states: &[(ZoneState, u64)]| states.iter().map(|(_, written)| written).sum::<u64>();
    assert_eq!(states().len(), 28);
    assert_eq!(written(&states()), 1, "the root's entries; its inode lies in a conventional zone");
    // the report of before is there until the new one is: both names lead to it
    let before = folder.path().join("before");
    std::fs::hard_link(&report, &before).unwrap();
    let text = std::fs::read(&before).unwrap();
    make_file(&source).unwrap();
    assert!(written(&states()) > 4, "{:?}", states());
    assert_eq!(std::fs::read(&before).unwrap(), text);
    let check = format_of(&source).unwrap().check(&source, &mut |_, _| {}).unwrap();
    assert_eq!((check.findings, check.is_clean), (Vec::new(), true));

    let blind = Source::from(&image);
    assert_eq!(names(&blind), names(&source));
    assert!(names(&blind).0.contains(" file\n") && names(&blind).1.is_empty());
    let Err(Error::Failed(why)) = make_file(&blind) else { panic!("it wrote without zones") };
    assert!(why.contains("give its zone report (--zones)"), "{why}");
    let check = format_of(&blind).unwrap().check(&blind, &mut |_, _| {}).unwrap();
    assert!(check.is_clean && check.findings.len() == 1, "{:?}", check.findings);
    assert!(
        matches!(format_of(&blind).unwrap().repair(&blind).unwrap(), Repair::Done(done) if done.is_empty())
    );

    std::fs::write(&report, "no report").unwrap();
    let Err(Error::Failed(why)) = format_of(&source).map(drop) else { panic!() };
    assert!(why.contains("line 1 has no number after \"len\""), "{why}");
}

#[test]
fn a_volume_lies_on_two_images_one_of_them_zoned() {
    let folder = TempDir::new().unwrap();
    let (first, second) = (file(&folder, "first", 64), file(&folder, "second", 512));
    let source = Source::from(&first)
        .with_devices(vec![second.clone()])
        .with_zones(Some(folder.path().join("zones")));
    let zones = NewZones { size: 16 * MIB, capacity: 16 * MIB, conventional: 0 };
    let (mut medium, sizes) = Medium::open_for_mkfs(&source, Some(zones)).unwrap();
    let part = |(path, &blocks): (&str, &u64)| DevicePart { path: path.into(), blocks };
    let devices = ["/dev/a", "/dev/z"].into_iter().zip(&sizes).map(part).collect();
    let features = Features::BLKZONED;
    mkfs(&mut medium, &MkfsOptions { features, devices, ..MkfsOptions::default() }).unwrap();
    drop(medium);
    make_file(&source).unwrap();
    assert!(names(&source).0.contains(" file\n"));
    let check = format_of(&source).unwrap().check(&source, &mut |_, _| {}).unwrap();
    assert_eq!((check.findings, check.is_clean), (Vec::new(), true));
    let failure =
        |source: &Source| match format_of(source).and_then(|f| f.check(source, &mut |_, _| {})) {
            Err(Error::Failed(why)) => why,
            other => panic!("{other:?}"),
        };
    let alone = failure(&Source::from(&first));
    assert!(alone.contains("on 2 devices") && alone.contains("/dev/z"), "{alone}");
    let three = source.with_devices(vec![second.clone(), second]);
    assert!(failure(&three).contains("lies on 2 devices, and 3 are given"));
}

/// Their sizes may be the same, and nothing on them tells which is which.
#[test]
fn devices_in_another_order_are_refused() {
    let folder = TempDir::new().unwrap();
    let paths = ["one", "two", "three"].map(|name| file(&folder, name, 64));
    let path = |name: &str| folder.path().join(name);
    let source =
        |names: [&str; 2]| Source::from(path("one")).with_devices(names.map(path).to_vec());
    let (mut device, sizes) = Medium::open_for_mkfs(&source(["two", "three"]), None).unwrap();
    let part =
        |(path, blocks): (&PathBuf, u64)| DevicePart { path: path.display().to_string(), blocks };
    let devices = paths.iter().zip(sizes).map(part);
    let options = MkfsOptions { devices: devices.collect(), ..MkfsOptions::default() };
    mkfs(&mut device, &options).unwrap();
    drop(device);
    Medium::open_read_only(source(["two", "three"])).unwrap();
    let swapped = Medium::open_read_only(source(["three", "two"])).unwrap_err();
    assert!(matches!(swapped, OpenError::Order { .. }), "{swapped}");
    let twice = Medium::open_read_only(source(["two", "two"])).unwrap_err();
    assert!(matches!(twice, OpenError::Twice { .. }), "{twice}");
}
