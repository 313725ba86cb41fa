//! Making a volume as a user types it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::{Command, Output};

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn mkfs(image: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = dovetail(&[&["mkfs", "f2fs", image.to_str().unwrap()], arguments].concat());
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).unwrap().replace(image.to_str().unwrap(), "IMAGE")
    };
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_volume_is_made_where_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let uuid = "11111111-2222-3333-4444-555555555555";
    let arguments = ["--size", "1G", "-l", "mine", "-O", "extra_attr,inode_checksum", "-U", uuid];
    let (code, out, error) = mkfs(&image, &arguments);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let lines = [
        &format!(
            "IMAGE: an F2FS volume of 1.00 GiB, UUID {uuid}, label \"mine\", features extra_attr,inode_checksum"
        ),
        "868 MiB for files; 136 MiB overprovision, of which 78.0 MiB stay free for cleaning",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), lines);
    let list = dovetail(&["ls", image.to_str().unwrap()]);
    assert_eq!((list.status.code(), list.stdout.len()), (Some(0), 0), "an empty root");

    let (code, _, error) = mkfs(&image, &[]);
    assert_eq!(
        (code, error.as_str()),
        (Some(1), "dovetail: IMAGE: an F2FS volume is there; -f overwrites it\n")
    );
    assert_eq!(mkfs(&image, &["-f", "-i", "-s", "2", "-z", "2", "-o", "10"]).0, Some(0));
    let other = dovetail(&["inspect", "--json", image.to_str().unwrap(), "superblock"]);
    let facts: serde_json::Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_eq!((&facts["segments_per_section"], &facts["label"]), (&2.into(), &"".into()));
    assert_ne!(facts["uuid"], uuid.replace('-', ""), "a random one");
}

#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    assert_eq!(
        mkfs(&image, &[]),
        (
            Some(1),
            String::new(),
            "dovetail: IMAGE: there is no such file; --size makes one\n".into()
        )
    );
    for (arguments, code, word) in [
        (&["--size", "40M"][..], 1, "too few"),
        (&["--size", "1G", "-O", "inode_crtime"], 1, "needs the feature extra_attr"),
        (&["--size", "1G", "-O", "quota"], 1, "cannot have the features quota_ino"),
        (&["--size", "1G", "-O", "wings"], 2, "no feature \"wings\""),
        (&["--size", "1G", "-U", "12"], 2, "uuid"),
        (&["--size", "1G", "-o", "100"], 1, "leaves no room"),
    ] {
        let (found, _, error) = mkfs(&image, arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {error}");
        assert!(error.to_lowercase().contains(&word.to_lowercase()), "{arguments:?}: {error}");
        assert!(!image.exists(), "{arguments:?}");
    }
    std::fs::write(&image, "precious").unwrap();
    assert_eq!(mkfs(&image, &["--size", "40M"]).0, Some(1));
    assert_eq!(std::fs::read(&image).unwrap(), b"precious");
    assert_eq!(mkfs(&image, &["--size", "4"]).0, Some(2), "shorter");
    assert_eq!(mkfs(&image, &["--size", "60M"]).0, Some(0));
    assert_eq!(std::fs::metadata(&image).unwrap().len(), 60 << 20);
}

/// A mounted image is locked: nobody makes a new volume over it, and nobody repairs it.
#[test]
fn an_image_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    assert_eq!(mkfs(&image, &["--size", "64M"]).0, Some(0));
    let holder = std::fs::File::open(&image).unwrap();
    holder.lock_shared().unwrap();
    let before = std::fs::read(&image).unwrap();
    let (code, _, error) = mkfs(&image, &["-f"]);
    assert!(code == Some(1) && error.contains("IMAGE is mounted already"), "{error}");
    let repair = dovetail(&["fsck", "--repair", image.to_str().unwrap()]);
    assert_eq!(repair.status.code(), Some(8), "{}", String::from_utf8_lossy(&repair.stderr));
    assert!(std::fs::read(&image).unwrap() == before);
    holder.unlock().unwrap();
    assert_eq!(mkfs(&image, &["-f"]).0, Some(0));
}

#[test]
fn an_iplfs_volume_needs_a_drive_that_is_thin() {
    let folder = tempfile::tempdir().unwrap();
    let (image, drive) = (folder.path().join("image"), folder.path().join("drive"));
    let (image, drive) = (image.to_str().unwrap(), drive.to_str().unwrap());
    std::fs::File::create(image).unwrap().set_len(1 << 30).unwrap();
    let make = |more: &[&str]| {
        dovetail(&[&["drive", "make", "-f", drive, "--scale", "1/256"], more].concat())
    };
    assert_eq!(make(&[]).status.code(), Some(0));
    for path in [image, drive, "/nowhere"] {
        let refused = dovetail(&["mkfs", "iplfs", path]);
        let error = String::from_utf8(refused.stderr).unwrap();
        let advice =
            format!("make one with: dovetail drive make {path} --addresses iplfs --map interval\n");
        assert!(refused.status.code() == Some(1) && error.ends_with(&advice), "{error}");
    }
    let refused = make(&["--addresses", "iplfs"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("use one of hash, interval"));
    let refused = make(&["--addresses", "endless"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("allowed is capacity or iplfs"));
    assert_eq!(make(&["--addresses", "iplfs", "--map", "interval"]).status.code(), Some(0));
    let made = dovetail(&["mkfs", "iplfs", drive, "-l", "mine", "-O", "extra_attr"]);
    let text = String::from_utf8(made.stdout).unwrap();
    assert!(
        text.contains("an IPLFS volume on a drive of 128 MiB")
            && text.contains("features extra_attr"),
        "{text}"
    );
    let refused = dovetail(&["mkfs", "iplfs", "-f", drive, "--address-bytes", "6"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("an address has 4 or 8 bytes"), "{error}");
    let narrow = dovetail(&["mkfs", "iplfs", "-f", drive, "--address-bytes", "4"]);
    let text = String::from_utf8(narrow.stdout).unwrap();
    assert!(text.ends_with("six logs of 2^29 blocks, addresses of 4 bytes\n"), "{text}");
    assert_eq!(dovetail(&["fsck", drive]).status.code(), Some(0));
    let again = dovetail(&["mkfs", "iplfs", drive]);
    assert!(
        String::from_utf8(again.stderr)
            .unwrap()
            .ends_with("an IPLFS volume is there; -f overwrites it\n")
    );
}
