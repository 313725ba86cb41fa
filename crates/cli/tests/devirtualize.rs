//! `dovetail devirtualize` on a drive in a file, and on a mounted one.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::mounted::Mount;

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn done(arguments: &[&str]) -> String {
    let output = dovetail(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = dovetail(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

/// Makes a volume with two files, and brings it there and back; returns what was said of the way
/// there.
fn there_and_back(mkfs: &[&str], check_there: impl Fn(&str)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let drive = text(&folder.path().join("drive"));
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    for (name, fill) in [("a", 7_u8), ("b", 9)] {
        std::fs::write(files.join(name), vec![fill; 3_000_000]).unwrap();
    }
    done(&["drive", "make", &drive, "--profile", "fsdv-5g", "--scale", "1/32"]);
    done(&[&["mkfs"], mkfs, &[&drive]].concat());
    done(&["cp", "-r", &text(&files), &format!("{drive}:/")]);
    let said = done(&["devirtualize", &drive]);
    check_there(&drive);
    let again = done(&["devirtualize", &drive]);
    assert!(again.contains("0 blocks of content and 0 of pointers"), "{again}");
    done(&["devirtualize", "--undo", &drive]);
    done(&["fsck", &drive]);
    let back = folder.path().join("back");
    done(&["extract", &drive, &text(&back)]);
    for name in ["a", "b"] {
        let found = std::fs::read(back.join("files").join(name)).unwrap();
        assert!(found == std::fs::read(files.join(name)).unwrap(), "{name}");
    }
    said
}

#[test]
fn ext4_goes_there_and_back() {
    let said = there_and_back(&["ext4", "-b", "4096"], |drive| {
        done(&["fsck", drive]);
        assert!(done(&["ls", drive, "/"]).contains("lost+found"));
    });
    assert!(said.contains("2 files, 1,466 blocks of content"), "{said}");
}

#[test]
fn f2fs_goes_there_and_back() {
    let said = there_and_back(&["f2fs"], |drive| {
        done(&["fsck", drive]);
    });
    // with the block of the root directory; two directories and two files, whose 733 blocks fit
    // into an inode, have a node each
    assert!(said.contains("4 files, 1,467 blocks of content and 4 of pointers"), "{said}");
}

#[test]
fn what_cannot_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let drive = text(&folder.path().join("drive"));
    done(&["drive", "make", &drive, "--scale", "1/256"]);
    done(&["mkfs", "ext4", "-b", "4096", &drive]);
    let said = refused(&["devirtualize", &drive]);
    assert!(said.contains("needs a device that gives blocks its own addresses"), "{said}");
    done(&["mkfs", "f2fs", "-f", &drive]);
    let said = refused(&["devirtualize", &drive]);
    assert!(said.contains("needs a device that gives blocks its own addresses"), "{said}");
    done(&["drive", "make", "--force", &drive, "--scale", "1/256"]);
    let said = refused(&["devirtualize", &drive]);
    assert!(said.contains("no file system that is known here"), "{said}");
}

/// Makes, overwrites and removes files until it is told to stop; returns what each must hold.
fn write_meanwhile(folder: &Path, stop: &AtomicBool) -> BTreeMap<String, Vec<u8>> {
    let mut held = BTreeMap::new();
    let mut turn = 0_usize;
    while !stop.load(Ordering::Relaxed) {
        let name = format!("file{}", turn * 7 % 24);
        let path = folder.join(&name);
        let bytes: Vec<u8> =
            (0..100_000 + turn * 7919 % 900_000).map(|at| (turn + at / 4096) as u8).collect();
        if turn % 5 == 4 && held.remove(&name).is_some() {
            std::fs::remove_file(&path).unwrap();
        } else {
            std::fs::write(&path, &bytes).unwrap();
            if turn.is_multiple_of(3) {
                std::fs::File::open(&path).unwrap().sync_all().unwrap();
            }
            held.insert(name, bytes);
        }
        turn += 1;
    }
    held
}

fn check(folder: &Path, held: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in held {
        let found = std::fs::read(folder.join(name)).unwrap();
        assert!(found == *bytes, "{name} holds something else");
    }
}

/// The two sizes of the map that a run tells.
fn map_sizes(said: &str) -> (f64, f64) {
    let (_, sizes) = said.trim().split_once("its map took ").unwrap();
    let (before, after) = sizes.split_once(", and takes ").unwrap();
    let bytes = |size: &str| {
        let (number, unit) = size.split_once(' ').unwrap();
        number.parse::<f64>().unwrap() * if unit == "MiB" { 1024.0 } else { 1.0 }
    };
    (bytes(before), bytes(after))
}

fn a_mounted_volume(mkfs: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (drive, root) = (folder.path().join("drive"), folder.path().join("mnt"));
    std::fs::create_dir(&root).unwrap();
    done(&["drive", "make", &text(&drive), "--profile", "fsdv-5g", "--scale", "1/32"]);
    done(&[&["mkfs"], mkfs, &[&text(&drive)]].concat());
    let mount = Mount::new(&drive, &root, &[]);
    let old: BTreeMap<String, Vec<u8>> =
        (0..16_u8).map(|n| (format!("old{n}"), vec![n; 1_500_000])).collect();
    old.iter().for_each(|(name, bytes)| std::fs::write(root.join(name), bytes).unwrap());
    let (before, after) = map_sizes(&done(&["devirtualize", &text(&root)]));
    assert!(after * 2.0 < before, "{before} KiB, {after} KiB");
    let stop = AtomicBool::new(false);
    let held = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_meanwhile(&root, &stop));
        for _ in 0..4 {
            std::thread::sleep(std::time::Duration::from_millis(500));
            done(&["devirtualize", &text(&root)]);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(held.len() > 5, "the writer hardly got to write: {} files", held.len());
    std::fs::write(root.join("last"), [7; 40_000]).unwrap();
    let said = done(&["devirtualize", &text(&root)]);
    assert!(
        !said.contains(" 0 blocks of content"),
        "what was written just before has its place: {said}"
    );
    check(&root, &held);
    mount.end();
    let mount = Mount::new(&drive, &root, &["-o", "ro"]);
    check(&root, &held);
    check(&root, &old);
    mount.end();
    let mount = Mount::new(&drive, &root, &[]);
    check(&root, &held);
    check(&root, &old);
    done(&["devirtualize", "--undo", &text(&root)]);
    check(&root, &held);
    mount.end();
    done(&["fsck", &text(&drive)]);
}

#[test]
fn a_mounted_ext4_is_devirtualised_while_it_is_written() {
    a_mounted_volume(&["ext4", "-b", "4096"]);
}

#[test]
fn a_mounted_ext3_is_devirtualised_while_it_is_written() {
    a_mounted_volume(&["ext3", "-b", "4096"]);
}

#[test]
fn a_mounted_f2fs_is_devirtualised_while_it_is_written() {
    a_mounted_volume(&["f2fs"]);
}

#[test]
fn a_mount_that_cannot_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, root) = (folder.path().join("drive"), folder.path().join("mnt"));
    std::fs::create_dir(&root).unwrap();
    let said = refused(&["devirtualize", &text(&root)]);
    assert!(said.contains("nothing that dovetail has mounted is at"), "{said}");
    done(&["drive", "make", &text(&drive), "--scale", "1/256"]);
    done(&["mkfs", "ext4", "-b", "4096", &text(&drive)]);
    let mount = Mount::new(&drive, &root, &[]);
    let said = refused(&["devirtualize", &text(&root)]);
    assert!(said.contains("on a drive that gives blocks its own addresses"), "{said}");
    mount.end();
}
