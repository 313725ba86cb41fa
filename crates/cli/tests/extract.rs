//! Tests that `dovetail extract` writes what the kernel found when it mounted the image.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::manifest;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::manifest::{Manifest, differences, of_folder};
use serde_json::Value;

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn stored(file: &str) -> Vec<u8> {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../f2fs/tests/images");
    crate::unzstd(&images.join(file))
}

fn image(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join("image");
    std::fs::write(&path, stored(&format!("{name}.img.zst"))).unwrap();
    path
}

/// Without root, owners, devices and the attributes of the system cannot be made.
fn comparable(mut manifest: Manifest) -> Manifest {
    if rustix::process::geteuid().is_root() {
        return manifest;
    }
    manifest.retain(|_, line| line.get("rdev").is_none());
    for line in manifest.values_mut().filter_map(Value::as_object_mut) {
        for field in ["uid", "gid", "mode", "xattr"] {
            line.remove(field);
        }
    }
    manifest
}

fn check(name: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path(), name);
    let before = std::fs::read(&image).unwrap();
    let out = folder.path().join("out");
    let run = dovetail(&["extract", image.to_str().unwrap(), out.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(0), "{name}: {run:?}");
    assert!(std::fs::read(&image).unwrap() == before, "{name}: the image has changed");
    let mut expected = manifest::parse(&stored(&format!("{name}.manifest.jsonl.zst")));
    let mut found = of_folder(&out);
    assert!(expected.len() > 50, "{name}");
    if name == "f2fs-crash" {
        // the kernel's recovery gave the root names, at the time of that mount
        let time = |manifest: &mut Manifest| manifest.get_mut(".").unwrap()["mtime_ns"].take();
        assert!(time(&mut expected).as_i64() > time(&mut found).as_i64());
    }
    let different = differences(&comparable(expected), &comparable(found));
    assert_eq!(different, "", "{name}");
    run
}

#[test]
fn a_crashed_image_is_extracted_as_the_next_mount_shows_it() {
    let run = check("f2fs-crash");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
}

#[test]
fn everything_is_restored() {
    check("f2fs-default");
    check("f2fs-features");
    check("f2fs-compressed");
}

#[test]
fn what_cannot_be_recovered_is_shown_as_of_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let mut mkfs = dovetail_testkit::program("mkfs.f2fs");
    let made = mkfs.args(["-q", "-O", "extra_attr,quota"]).arg(&image).output();
    let made = made.unwrap_or_else(|error| {
        panic!("mkfs.f2fs: {error}; install it with: apt-get install f2fs-tools")
    });
    assert!(made.status.success(), "{made:?}");
    let list = dovetail(&["ls", image.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&list.stderr).into_owned();
    assert_eq!(list.status.code(), Some(0), "{said}");
    assert!(
        said.contains("quota_ino") && said.ends_with("; this is the last checkpoint\n"),
        "{said}"
    );
}

#[test]
fn sparse_files_stay_sparse() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path(), "f2fs-default");
    let out = folder.path().join("out");
    let run = dovetail(&["extract", image.to_str().unwrap(), out.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(said.contains(" files, ") && said.contains("hard links"), "{said}");
    let mut sparse = 0;
    for path in of_folder(&out).keys() {
        let meta = std::fs::symlink_metadata(out.join(path)).unwrap();
        sparse += u32::from(meta.is_file() && meta.blocks() * 512 + 65_536 < meta.size());
    }
    assert!(sparse > 0, "the image has files with holes");
}

/// Gives a segment without blocks a count of one in both copies of the SIT: the tables contradict
/// each other, and the volume cannot be mounted, but every file is whole.
fn damage_sit(image: &Path) {
    use std::os::unix::fs::FileExt;
    let superblock = dovetail(&["inspect", image.to_str().unwrap(), "--json", "superblock"]);
    let superblock: Value = serde_json::from_slice(&superblock.stdout).unwrap();
    let field = |name: &str| superblock[name].as_u64().unwrap();
    let (start, segments) = (field("sit_blkaddr"), field("segment_count_sit"));
    let last = field("segment_count_main") - 1;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(image).unwrap();
    for copy in [0, segments / 2 * 512] {
        let at = (start + copy + last / 55) * 4096 + last % 55 * 74;
        let mut count = [0; 1];
        file.read_exact_at(&mut count, at).unwrap();
        file.write_all_at(&[count[0] ^ 1], at).unwrap();
    }
}

/// Blocks that each file takes.
fn allocated(folder: &Path) -> Vec<(String, u64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = |path: &String| std::fs::symlink_metadata(folder.join(path)).unwrap();
    let files = of_folder(folder).into_keys().map(|path| (meta(&path), path));
    files.filter(|(meta, _)| meta.is_file()).map(|(meta, path)| (path, meta.blocks())).collect()
}

#[test]
fn holes_of_a_damaged_volume_stay_holes() {
    for name in ["f2fs-default", "f2fs-features", "f2fs-compressed"] {
        let folder = tempfile::tempdir().unwrap();
        let image = image(folder.path(), name);
        let (whole, damaged) = (folder.path().join("whole"), folder.path().join("damaged"));
        let extract =
            |to: &Path| dovetail(&["extract", image.to_str().unwrap(), to.to_str().unwrap()]);
        assert_eq!(extract(&whole).status.code(), Some(0), "{name}");
        damage_sit(&image);
        let run = extract(&damaged);
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            run.status.code() == Some(0) && said.contains("; this is the last checkpoint"),
            "{said}"
        );
        assert_eq!(differences(&of_folder(&whole), &of_folder(&damaged)), "", "{name}");
        let pairs = allocated(&whole).into_iter().zip(allocated(&damaged));
        let different: Vec<_> = pairs.filter(|(whole, damaged)| whole != damaged).collect();
        assert!(different.is_empty(), "{name}: {different:?}");
    }
}

#[test]
fn a_huge_file_with_one_byte_takes_one_block_out_of_a_damaged_volume() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (image, source, out) = (path("image"), path("source"), path("out"));
    assert_eq!(dovetail(&["mkfs", "f2fs", &image, "--size", "64MiB"]).status.code(), Some(0));
    // in the middle, at the end of what nodes reach, and a hole at the end
    let file = std::fs::File::create(&source).unwrap();
    for at in [0, 7 << 20, 900 << 20] {
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", at).unwrap();
    }
    file.set_len(1 << 30).unwrap();
    assert_eq!(dovetail(&["cp", &source, &format!("{image}:/sparse")]).status.code(), Some(0));
    damage_sit(Path::new(&image));
    let run = dovetail(&["extract", &image, &out]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let meta = std::fs::metadata(format!("{out}/sparse")).unwrap();
    assert!(
        meta.len() == 1 << 30 && meta.blocks() * 512 <= 64 << 10,
        "{} bytes",
        meta.blocks() * 512
    );
    let (copy, original) =
        (std::fs::read(format!("{out}/sparse")).unwrap(), std::fs::read(&source).unwrap());
    assert!(copy == original);
}
