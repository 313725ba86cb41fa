//! A volume made, mounted, used through system calls, unmounted, and checked, as a user types it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::referee;
use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::process::Command;

use crate::mounted::{DOVETAIL, Mount, succeeds};

/// A volume with room for about 128 MiB: in an image, or of IPLFS on a drive.
fn make_volume(kind: &str, image: &str) {
    if kind != "iplfs" {
        succeeds(DOVETAIL, &["mkfs", kind, image, "--size", "128M"]);
        return;
    }
    let drive = ["drive", "make", image, "--scale", "1/256", "--addresses", "iplfs", "--map", "interval"];
    succeeds(DOVETAIL, &drive);
    succeeds(DOVETAIL, &["mkfs", kind, image]);
}

/// A checker finds nothing: that of others, or ours where there is no other.
fn check_clean(image: &str, kind: &str) {
    if kind != "iplfs" {
        return referee::check_clean(image, kind);
    }
    let report: serde_json::Value =
        serde_json::from_str(&succeeds(DOVETAIL, &["fsck", "--json", image])).unwrap();
    assert_eq!(report["findings"], serde_json::json!([]));
}

#[test]
fn a_volume_is_used_like_any_other() {
    use_volume("f2fs", "mode=lfs,noatime");
    use_volume("ext4", "commit=2,noatime");
    use_volume("ext3", "data=journal,noatime");
    use_volume("iplfs", "noatime");
}

fn use_volume(kind: &str, options: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (image, directory) = (folder.path().join("image"), folder.path().join("mnt"));
    fs::create_dir(&directory).unwrap();
    let shown = image.to_str().unwrap();
    make_volume(kind, shown);
    let mount = Mount::new(&image, &directory, &["-o", options]);
    assert_eq!(mount.kind(), format!("fuse.{kind}"));
    fs::create_dir_all(directory.join("a/b/c")).unwrap();
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| (n / 3) as u8).collect();
    fs::write(directory.join("a/b/c/large"), &content).unwrap();
    (0..300).for_each(|n| fs::write(directory.join(format!("a/{n}")), n.to_string()).unwrap());
    symlink("b/c/large", directory.join("a/link")).unwrap();
    fs::hard_link(directory.join("a/7"), directory.join("seven")).unwrap();
    fs::rename(directory.join("a/8"), directory.join("a/b/eight")).unwrap();
    assert!(fs::read(directory.join("a/link")).unwrap() == content);
    mount.end();

    check_clean(shown, kind);
    let mount = Mount::new(&image, &directory, &["-o", "ro"]);
    assert!(fs::read(directory.join("a/b/c/large")).unwrap() == content);
    assert_eq!(fs::read_to_string(directory.join("seven")).unwrap(), "7");
    assert_eq!(fs::read_to_string(directory.join("a/b/eight")).unwrap(), "8");
    assert_eq!(fs::read_dir(directory.join("a")).unwrap().count(), 299 + 2);
    assert_eq!(
        fs::write(directory.join("new"), "").unwrap_err().kind(),
        std::io::ErrorKind::ReadOnlyFilesystem
    );
    mount.end();
}

#[test]
fn a_drive_in_a_file_is_used_like_an_image_and_remaps() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, directory) = (folder.path().join("drive"), folder.path().join("mnt"));
    fs::create_dir(&directory).unwrap();
    let (shown, dovetail) = (drive.to_str().unwrap(), env!("CARGO_BIN_EXE_dovetail"));
    succeeds(dovetail, &["drive", "make", shown, "--profile", "femu-32g-log", "--scale", "1/256"]);
    succeeds(dovetail, &["mkfs", "f2fs", shown]);
    let mount = Mount::new(&drive, &directory, &["-o", "mode=rm-ipu"]);
    let mut content: Vec<u8> = (0..5_000_000_u32).map(|n| (n / 3) as u8).collect();
    let path = directory.join("file");
    fs::write(&path, &content).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for block in (0..1000).step_by(7) {
        let at = block * 4096;
        content[at..at + 4096].fill(block as u8);
        file.write_all_at(&content[at..at + 4096], at as u64).unwrap();
        file.sync_all().unwrap();
    }
    drop(file);
    mount.kill();

    assert!(succeeds(dovetail, &["ls", shown]).contains("5000000"));
    let mount = Mount::new(&drive, &directory, &[]);
    assert!(fs::read(&path).unwrap() == content);
    mount.end();
    succeeds(dovetail, &["fsck", shown]);
    assert!(succeeds(dovetail, &["drive", "status", shown]).contains("pages mapped"));
    let refused = Command::new(dovetail).args(["drive", "make", shown]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is there already; -f overwrites it"));
}

#[test]
fn what_was_fsynced_outlives_a_kill() {
    ["f2fs", "ext4", "ext3", "iplfs"].iter().for_each(|kind| survive_kill(kind));
}

fn survive_kill(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (image, directory) = (folder.path().join("image"), folder.path().join("mnt"));
    fs::create_dir(&directory).unwrap();
    let shown = image.to_str().unwrap();
    make_volume(kind, shown);
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
    let mount = Mount::new(&image, &directory, &[]);
    fs::create_dir(directory.join("folder")).unwrap();
    (0..100).for_each(|n| fs::write(directory.join(format!("folder/{n}")), [1; 5000]).unwrap());
    let kept = directory.join("folder/kept");
    fs::write(&kept, &content).unwrap();
    fs::File::open(&kept).unwrap().sync_all().unwrap();
    (0..100).for_each(|n| fs::remove_file(directory.join(format!("folder/{n}"))).unwrap());
    mount.kill();

    // without mounting, mounted without writing, and mounted: all show the same
    let read = || fs::read(&kept).unwrap() == content;
    let before = fs::read(&image).unwrap();
    assert!(succeeds(DOVETAIL, &["ls", shown, "folder"]).contains("3000000"));
    let mount = Mount::new(&image, &directory, &["-o", "ro"]);
    assert!(read(), "{kind}");
    mount.end();
    assert!(fs::read(&image).unwrap() == before, "{kind}: a read-only mount has written");
    let mount = Mount::new(&image, &directory, &[]);
    assert!(read(), "{kind}");
    mount.end();
    check_clean(shown, kind);
}

#[test]
fn a_write_that_does_not_fit_says_so() {
    ["f2fs", "ext4", "ext3", "iplfs"].iter().for_each(|kind| fill(kind));
}

fn fill(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (image, directory) = (folder.path().join("image"), folder.path().join("mnt"));
    fs::create_dir(&directory).unwrap();
    make_volume(kind, image.to_str().unwrap());
    let mount = Mount::new(&image, &directory, &[]);
    let room = || {
        let shown = succeeds("df", &["--output=avail", "-B1", directory.to_str().unwrap()]);
        shown.lines().last().unwrap().trim().parse::<u64>().unwrap()
    };
    let (path, before) = (directory.join("large"), room());
    let file = fs::File::create(&path).unwrap();
    let chunk: Vec<u8> = (0..1_000_000_u32).map(|n| (n / 5) as u8).collect();
    let mut written = 0;
    let full = loop {
        match std::io::Write::write(&mut &file, &chunk) {
            Ok(bytes) => written += bytes as u64,
            Err(error) => break error,
        }
        assert!(written < 2 * before, "{kind}: {written} bytes into {before}");
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{kind}");
    assert!(written > before - before / 10, "{kind}: {written} of {before}");
    file.sync_all().unwrap();
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len() as u64, written, "{kind}: what was accepted is there");
    assert!(content.chunks(chunk.len()).all(|part| part.iter().zip(&chunk).all(|(a, b)| a == b)));
    fs::remove_file(&path).unwrap();
    drop(file);
    let after = room();
    assert!(after > before - before / 100, "{kind}: {after} free, {before} before");
    mount.end();
    check_clean(image.to_str().unwrap(), kind);
}

#[test]
fn an_option_that_there_is_not_is_named() {
    for (kind, option) in [("f2fs", "atgc"), ("ext4", "usrquota")] {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        let shown = image.to_str().unwrap();
        succeeds(DOVETAIL, &["mkfs", kind, shown, "--size", "64M"]);
        let mut command = Command::new(DOVETAIL);
        let output = command.args(["mount", "-o", option, shown]).arg(folder.path()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && error.contains(&format!("\"{option}\"")), "{error}");
    }
}
