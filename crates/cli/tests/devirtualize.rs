//! `dovetail devirtualize` on a drive in a file.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::{Command, Output};

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

/// Makes a volume with two files, and brings it there and back; returns what was said of the way there.
fn there_and_back(mkfs: &[&str], check_there: impl Fn(&str)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let drive = text(&folder.path().join("drive"));
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    for (name, fill) in [("a", 7_u8), ("b", 9)] {
        std::fs::write(files.join(name), vec![fill; 3_000_000]).unwrap();
    }
    done(&["drive", "make", &drive, "--profile", "fsdv-5g", "--scale", "1/64"]);
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
        let said = refused(&["fsck", drive]);
        assert!(said.contains("pointers to its drive's own addresses"), "{said}");
    });
    assert!(said.contains("2 files, 1,466 blocks of content"), "{said}");
}

#[test]
fn f2fs_goes_there_and_back() {
    let said = there_and_back(&["f2fs"], |drive| {
        done(&["fsck", drive]);
    });
    // the two directories have a node each, and so have the files; one of those of 733 blocks fits into an inode of 873
    assert!(said.contains("4 files, 1,466 blocks of content and 4 of pointers"), "{said}");
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
    assert!(said.contains("no ext3, ext4 or F2FS volume"), "{said}");
}
