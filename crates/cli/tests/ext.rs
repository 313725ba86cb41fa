//! ext volumes from the command line: made, looked into, checked.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::{Command, Output};

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let run = dovetail(arguments);
    serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// Runs a program of e2fsprogs and returns its exit code.
fn e2fsprogs(name: &str, arguments: &[&str]) -> Option<i32> {
    let path = std::env::var("PATH").unwrap() + ":/usr/sbin:/sbin";
    let run = Command::new(name).env("PATH", path).args(arguments).output();
    run.unwrap_or_else(|error| panic!("{name}: {error}; install it with: apt-get install e2fsprogs"))
        .status
        .code()
}

/// An image of 64 MiB with a file `folder/file` in it.
fn image(folder: &Path) -> String {
    let image = folder.join("image").to_str().unwrap().to_string();
    let source = folder.join("source");
    std::fs::create_dir_all(source.join("folder")).unwrap();
    std::fs::write(source.join("folder/file"), "content\n").unwrap();
    let arguments = ["-q", "-F", "-t", "ext4", "-d", source.to_str().unwrap(), &image, "64M"];
    assert_eq!(e2fsprogs("mke2fs", &arguments), Some(0));
    image
}

#[test]
fn volumes_are_made_and_found_by_their_magic_number() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["ext2", "ext3", "ext4"] {
        let image = folder.path().join(kind).to_str().unwrap().to_string();
        let made = dovetail(&["mkfs", kind, "--size", "100MiB", "-L", "a label", &image]);
        assert!(stdout(&made).contains(&format!("an {kind} volume of 100 MiB")), "{made:?}");
        assert_eq!(e2fsprogs("e2fsck", &["-fn", &image]), Some(0));
        assert!(stdout(&dovetail(&["ls", &image])).contains("drwx------   2     0     0"));
        let superblock = json(&["inspect", &image, "--json", "superblock"]);
        assert_eq!(
            (superblock["label"].as_str(), superblock["block_size"].as_u64()),
            (Some("a label"), Some(1024))
        );
        assert_eq!(dovetail(&["fsck", &image]).status.code(), Some(0));
        let again = dovetail(&["mkfs", kind, &image]);
        assert!(String::from_utf8_lossy(&again.stderr).contains("-f overwrites it"), "{again:?}");
    }
}

#[test]
fn an_image_is_listed_shown_extracted_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let list = stdout(&dovetail(&["ls", &image, "folder"]));
    assert!(list.starts_with("-rw") && list.trim_end().ends_with(" file"), "{list}");
    assert_eq!(stdout(&dovetail(&["cat", &image, "/folder/file"])), "content\n");
    let (out, copy) = (folder.path().join("out"), folder.path().join("copy"));
    assert_eq!(dovetail(&["extract", &image, out.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(std::fs::read(out.join("folder/file")).unwrap(), b"content\n");
    let copied = dovetail(&["cp", &format!("{image}:/folder/file"), copy.to_str().unwrap()]);
    assert_eq!((copied.status.code(), std::fs::read(copy).unwrap()), (Some(0), b"content\n".into()));
    let inode = json(&["inspect", &image, "--json", "path", "folder/file"]);
    assert_eq!((inode["size"].as_u64(), inode["mapped_by"].as_str()), (Some(8), Some("extents")));
    assert_eq!(json(&["inspect", &image, "--json", "group", "0"])["used_dirs"].as_u64(), Some(3));
    assert_eq!(dovetail(&["inspect", &image, "segments"]).status.code(), Some(2));
}

#[test]
fn damage_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let request = "set_inode_field folder/file links_count 7";
    assert_eq!(e2fsprogs("debugfs", &["-w", "-R", request, &image]), Some(0));
    let run = dovetail(&["fsck", &image]);
    assert_eq!(run.status.code(), Some(4));
    assert!(stdout(&run).contains("counts 7 links, it has 1"), "{run:?}");
    let report = json(&["fsck", "--json", &image]);
    assert_eq!(
        (report["clean"].as_bool(), report["findings"][0]["kind"].as_str()),
        (Some(false), Some("Links"))
    );
}
