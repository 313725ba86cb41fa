//! Salvage as its user types it: what a destroyed NAT and a destroyed directory leave is saved,
//! in place and in a copy.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::manifest::{Manifest, differences, of_folder};
use crate::referee::check_clean;

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn inspect(image: &str, arguments: &[&str]) -> Value {
    let run = dovetail(&[&["inspect", image, "--json"], arguments].concat());
    serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// A volume that a kernel wrote, in a folder, and all of its files in `truth`.
fn volume() -> (tempfile::TempDir, String, Manifest) {
    let folder = tempfile::tempdir().unwrap();
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2fs/tests/images");
    let image = folder.path().join("image").to_str().unwrap().to_string();
    std::fs::write(&image, crate::unzstd(&images.join("f2fs-default.img.zst"))).unwrap();
    let truth = folder.path().join("truth");
    let run = dovetail(&["extract", &image, truth.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let manifest = of_folder(&truth);
    (folder, image, manifest)
}

fn destroy(image: &str, blocks: &[u64]) {
    let file = std::fs::OpenOptions::new().write(true).open(image).unwrap();
    blocks.iter().for_each(|block| file.write_all_at(&[0xA5; 4096], block * 4096).unwrap());
}

/// Both copies of the first four blocks of the NAT.
fn destroy_nat(image: &str) {
    let start = inspect(image, &["superblock"])["nat_blkaddr"].as_u64().unwrap();
    let blocks: Vec<_> = (start..start + 4).flat_map(|block| [block, block + 512]).collect();
    destroy(image, &blocks);
}

#[test]
fn four_destroyed_nat_blocks_cost_nothing() {
    let (folder, image, truth) = volume();
    destroy_nat(&image);
    let damaged = std::fs::read(&image).unwrap();
    let refused = dovetail(&["fsck", "--repair", &image]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(std::fs::read(&image).unwrap() == damaged, "only -y salvages");

    let out = folder.path().join("out");
    let run = dovetail(&["extract", "--lost", &image, out.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(said.contains(" nodes were found again by what they say of themselves\n"), "{said}");
    assert_eq!(differences(&truth, &of_folder(&out)), "");
    assert!(std::fs::read(&image).unwrap() == damaged, "a copy changes nothing");

    let json = dovetail(&["fsck", "-y", &image, "--json"]);
    assert_eq!(json.status.code(), Some(1), "{json:?}");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["salvage"][0]["kind"], "Nodes");
    assert_eq!(json["clean"], true);
    check_clean(&image, "f2fs");
    let again = folder.path().join("again");
    let run = dovetail(&["extract", &image, again.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert_eq!(differences(&truth, &of_folder(&again)), "");
    assert_eq!(dovetail(&["fsck", "-y", &image]).status.code(), Some(0), "nothing is left to do");
}

/// Contents of the regular files.
fn contents(manifest: &Manifest) -> BTreeSet<String> {
    manifest.values().filter_map(|line| Some(line.get("md5")?.as_str()?.to_owned())).collect()
}

#[test]
fn files_of_a_lost_directory_are_in_lost_found() {
    let (folder, image, truth) = volume();
    let node = inspect(&image, &["path", "/a"]);
    destroy(&image, &[node["nat_block"].as_u64().unwrap()]);
    destroy_nat(&image);
    let out = folder.path().join("out");
    let run = dovetail(&["extract", "--lost", &image, out.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("1 lost:\n/a is lost: there is no inode "), "{said}");
    let copied = of_folder(&out);
    assert!(contents(&copied) == contents(&truth), "no content is lost");
    assert!(copied.keys().any(|path| path.contains("lost+found/")));

    let run = dovetail(&["fsck", "-y", &image]);
    let said = String::from_utf8(run.stdout).unwrap();
    assert_eq!(run.status.code(), Some(1), "{said}");
    let line = "\nwarning: /a is lost: there is no inode ";
    assert!(said.contains("\nsalvaged:\n") && said.contains(line), "{said}");
    assert!(said.contains(" of Reconnected; --all lists them\n"), "{said}");
    check_clean(&image, "f2fs");
    let again = folder.path().join("again");
    assert_eq!(
        dovetail(&["extract", &image, again.to_str().unwrap()]).status.code(),
        Some(0),
        "what is lost is gone from the image"
    );
    assert!(contents(&of_folder(&again)) == contents(&truth));
}

#[test]
fn a_copy_that_fails_tells_what_was_saved_and_lost_as_well() {
    let (folder, image, _) = volume();
    let node = inspect(&image, &["path", "/a"]);
    destroy(&image, &[node["nat_block"].as_u64().unwrap()]);
    destroy_nat(&image);
    let extract = |out: &str, path: &str| {
        let out = folder.path().join(out);
        let arguments = ["extract", "--lost", &image, out.to_str().unwrap(), path];
        // no file may be larger than 8 blocks of 512 bytes
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_dovetail")]).args(arguments);
        let run = shell.output().unwrap();
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        let said = String::from_utf8(run.stdout).unwrap();
        assert!(
            said.contains(" nodes were found again by what they say of themselves\n"),
            "{said}"
        );
        let complaint = String::from_utf8(run.stderr).unwrap();
        let lost = "\n1 lost:\n/a is lost: there is no inode ";
        assert!(complaint.contains(lost), "{complaint}");
        complaint
    };
    let complaint = extract("out", "/");
    assert!(complaint.contains(" could not be copied:\n"), "{complaint}");
    let complaint = extract("none", "/a");
    assert!(complaint.contains("there is no /a\n"), "{complaint}");
}

#[test]
fn the_beginning_of_a_file_that_cannot_be_read_to_its_end_is_kept_apart() {
    let (folder, image, _) = volume();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let content: Vec<u8> = (0..6 << 20).map(|at| (at / 4096) as u8).collect();
    std::fs::write(path("long"), &content).unwrap();
    let run = dovetail(&["cp", &path("long"), &format!("{image}:/long")]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let pointers = inspect(&image, &["path", "/long"])["nids"][0].to_string();
    let node = inspect(&image, &["nid", &pointers])["nat_block"].as_u64().unwrap();
    destroy(&image, &[node]);
    let run = dovetail(&["extract", &image, &path("out"), "/long"]);
    let complaint = String::from_utf8(run.stderr).unwrap();
    assert!(complaint.contains("; its beginning is in ") && complaint.contains("/out/long.part"));
    let piece = std::fs::read(path("out/long.part")).unwrap();
    assert!(!piece.is_empty() && content.starts_with(&piece));
    assert_eq!(std::fs::read_dir(path("out")).unwrap().count(), 1);
    let cat = dovetail(&["cat", &image, "/long"]);
    assert!(cat.stdout == piece && cat.status.code() == Some(1), "{} bytes", cat.stdout.len());
}

#[test]
fn a_salvage_that_can_give_no_names_shows_its_account() {
    let (folder, image, _) = volume();
    let file = folder.path().join("lost+found");
    std::fs::write(&file, "in the way").unwrap();
    let run = dovetail(&["cp", file.to_str().unwrap(), &format!("{image}:/lost+found")]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let node = inspect(&image, &["path", "/a"]);
    destroy(&image, &[node["nat_block"].as_u64().unwrap()]);
    let run = dovetail(&["fsck", "-y", &image, "--all"]);
    let said = String::from_utf8(run.stdout).unwrap();
    assert_eq!(run.status.code(), Some(4), "{said}");
    assert!(!said.contains("nothing was written"), "{said}");
    let line = "\nwarning: /a is lost: there is no inode ";
    assert!(said.contains("\nsalvaged:\n") && said.contains(line), "{said}");
    assert!(said.contains(" has no name in /lost+found yet: "), "{said}");
}

#[test]
fn ext_is_left_to_e2fsck() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    assert_eq!(dovetail(&["mkfs", "ext4", &path("v"), "--size", "64M"]).status.code(), Some(0));
    let run = dovetail(&["extract", "--lost", &path("v"), &path("out")]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("use e2fsck on a copy"), "{run:?}");
}
