//! Images of every file system that is known, through the one interface.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::io::{Seek, SeekFrom, Write};
use std::ops::ControlFlow;

use dovetail_image::{
    CopyIn, CopyOut, Edit, Error, FORMATS, Format, Keep, Medium, Mount, Repair, Source, Structure,
    format_of, list, resolve,
};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Moment};
use tempfile::NamedTempFile;

const SIZE: u64 = 64 << 20;

fn source(image: &NamedTempFile) -> Source {
    Source::from(image.path())
}

/// A new volume of a variant; none of IPLFS, which needs a drive with more addresses than room.
fn volume(name: &str) -> Option<NamedTempFile> {
    use dovetail_ext::mkfs::Kind;
    let image = NamedTempFile::new().unwrap();
    image.as_file().set_len(SIZE).unwrap();
    let mut device = Medium::open_read_write(source(&image)).unwrap();
    let mut ext = |kind| {
        let options = dovetail_ext::mkfs::MkfsOptions::new(kind);
        dovetail_ext::mkfs::mkfs(&mut device, &options).map(drop).unwrap();
    };
    match name {
        "ext2" => ext(Kind::Ext2),
        "ext3" => ext(Kind::Ext3),
        "ext4" => ext(Kind::Ext4),
        "f2fs" => dovetail_f2fs::mkfs::mkfs(&mut device, &Default::default()).map(drop).unwrap(),
        "iplfs" => return None,
        name => panic!("no way to make {name}: say it here"),
    }
    Some(image)
}

/// Every variant that can be made, with an image of it.
fn volumes() -> impl Iterator<Item = (&'static str, NamedTempFile)> {
    let names = FORMATS.iter().flat_map(|format| format.variants()).copied();
    names.filter_map(|name| Some((name, volume(name)?)))
}

fn quiet(sentence: String) {
    panic!("{sentence}");
}

fn listed(format: &dyn Format, image: &Source) -> String {
    let mut files = format.files(image, Ok(()), &mut quiet).unwrap();
    list(&mut *files.tree, b"/").unwrap().lines
}

/// Copies this folder into the root of an image.
fn fill(format: &dyn Format, image: &Source) {
    let request = Mount { read_only: false, options: "", seed: 1, now: Moment::at(SimTime::ZERO) };
    let mut fs = format.mount(image, &request, &mut quiet).unwrap();
    let root = fs.root();
    let mut told = |_| {};
    let mut copy = CopyIn::new(&mut *fs, Caller::default(), false, &mut told);
    copy.copy(
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")),
        false,
        root,
        b"tests",
    );
    assert_eq!(copy.errors, [""; 0]);
    fs.unmount().unwrap();
}

#[test]
fn every_volume_is_recognised_and_sound() {
    for (name, image) in volumes() {
        let format = format_of(&source(&image)).unwrap();
        assert_eq!(format.variant_on(&source(&image)), Ok(name));
        let check = format.check(&source(&image), &mut |_, _| {}).unwrap();
        assert!(check.is_clean && check.findings.is_empty(), "{name}: {check:?}");
        assert!(!check.needs_repair, "{name}");
        let superblock =
            format.inspect(&source(&image), &Structure::Superblock, &mut quiet).unwrap();
        assert!(superblock.facts["uuid"].is_string(), "{name}");
    }
}

#[test]
fn what_is_copied_in_is_listed_and_comes_out_again() {
    for (name, image) in volumes().filter(|(name, _)| *name != "ext2") {
        let format = format_of(&source(&image)).unwrap();
        fill(format, &source(&image));
        assert!(listed(format, &source(&image)).contains(" tests\n"), "{name}");
        let mut files = format.files(&source(&image), Ok(()), &mut quiet).unwrap();
        let target = tempfile::tempdir().unwrap();
        let start = resolve(&mut *files.tree, b"/tests", true).unwrap();
        let keep = Keep { owners: false, replace: false, pieces: false };
        let mut told = |_| ControlFlow::Continue(());
        let mut copy = CopyOut::new(&mut *files.tree, files.most_bytes, keep, &mut told);
        copy.directory(&start, b"/tests", target.path());
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
        let count = std::fs::read_dir(here).unwrap().count() as u64;
        assert_eq!((copy.done.result(), copy.done.files), (Ok(()), count), "{name}");
        let copied = std::fs::read_to_string(target.path().join("images.rs")).unwrap();
        assert!(copied == include_str!("images.rs"), "{name}");
    }
}

/// Without the lock F2FS shows its last checkpoint, and says so: it is not mounted for that.
#[test]
fn an_image_in_use_is_shown_as_far_as_it_can_be() {
    for (name, image) in volumes() {
        let mut told = Vec::new();
        let held = Err("somebody has it".to_string());
        let format = format_of(&source(&image)).unwrap();
        let mut files = format.files(&source(&image), held, &mut |why| told.push(why)).unwrap();
        assert!(list(&mut *files.tree, b"/").unwrap().damage.is_empty());
        assert!(
            told.len() == 1 && told[0].starts_with("somebody has it; this is "),
            "{name}: {told:?}"
        );
    }
}

#[test]
fn an_unknown_image_is_of_no_file_system() {
    let image = NamedTempFile::new().unwrap();
    image.as_file().set_len(SIZE).unwrap();
    let Err(Error::Failed(why)) = format_of(&source(&image)).map(|format| format.variants()) else {
        panic!()
    };
    assert!(why.starts_with(&source(&image).display().to_string()), "{why}");
    for variant in FORMATS.iter().flat_map(|format| format.variants()) {
        assert!(why.contains(variant), "{why}");
    }
}

#[test]
fn a_structure_of_another_format_is_refused() {
    for (name, image) in volumes() {
        let format = format_of(&source(&image)).unwrap();
        let structure = if name == "f2fs" { Structure::Group(0) } else { Structure::Checkpoint };
        let refused = format.inspect(&source(&image), &structure, &mut quiet);
        assert!(matches!(refused, Err(Error::Usage(_))), "{name}: {refused:?}");
    }
}

#[test]
fn a_backup_of_the_superblock_is_used_and_told() {
    let image = volume("ext4").unwrap();
    image.as_file().seek(SeekFrom::Start(1024 + 0x30)).unwrap();
    image.as_file().write_all(&[0xff; 4]).unwrap();
    let format = format_of(&source(&image)).unwrap();
    let mut told = Vec::new();
    let mut files = format.files(&source(&image), Ok(()), &mut |why| told.push(why)).unwrap();
    assert!(list(&mut *files.tree, b"/").unwrap().lines.contains("lost+found"));
    assert!(told.iter().any(|why| why.contains("the backup in group 1 is used")), "{told:?}");
    let check = format.check(&source(&image), &mut |_, _| {}).unwrap();
    assert!(check.needs_repair && !check.is_clean);
    assert!(matches!(format.repair(&source(&image)).unwrap(), Repair::Refused(_)));
}

/// Leads every entry called `name` to another inode.
fn lead(image: &NamedTempFile, name: &[u8], from: u64, to: u64) {
    let mut bytes = std::fs::read(image.path()).unwrap();
    let (from, to) = ((from as u32).to_le_bytes(), (to as u32).to_le_bytes());
    let places: Vec<_> = (8..bytes.len() - name.len())
        .filter(|at| bytes[*at..].starts_with(name) && bytes[at - 8..at - 4] == from)
        .collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[at - 8..at - 4].copy_from_slice(&to));
    std::fs::write(image.path(), bytes).unwrap();
}

/// Entries of ext3 have no checksums: one of a directory is made to lead to one above it.
#[test]
fn a_directory_in_itself_is_told_and_not_emptied() {
    for (removed, to) in [("/top/mid", "/top"), ("/top/mid", "/"), ("/top/mid", "/top/mid")]
        .into_iter()
        .chain([("/top/mid/a-long-loop", "/top"), ("/top", "/top/mid")])
    {
        let image = volume("ext3").unwrap();
        let request =
            Mount { read_only: false, options: "", seed: 1, now: Moment::at(SimTime::ZERO) };
        let mounted = || {
            let format = format_of(&source(&image)).unwrap();
            format.mount(&source(&image), &request, &mut quiet).unwrap()
        };
        let mut fs: Box<dyn FileSystem> = mounted();
        let mut edit = Edit::new(&mut fs, Caller::default());
        for path in ["/kept", "/top/kept", "/top/mid/a-long-loop"] {
            edit.make_directory(path.as_bytes(), true).unwrap();
        }
        let mut ino = |path: &str| resolve(&mut fs, path.as_bytes(), true).unwrap().ino.0;
        let (from, to) = (ino("/top/mid/a-long-loop"), ino(to));
        fs.unmount().unwrap();
        lead(&image, b"a-long-loop", from, to);

        let mut fs: Box<dyn FileSystem> = mounted();
        let errors = Edit::new(&mut fs, Caller::default()).remove(removed.as_bytes(), true, false);
        assert!(errors[0].contains("a-long-loop: the directory is in itself"), "{errors:?}");
        assert!(resolve(&mut fs, b"/kept", true).is_ok(), "{errors:?}");
        assert!(removed == "/top" || resolve(&mut fs, b"/top/kept", true).is_ok(), "{errors:?}");
    }
}

#[test]
fn a_slash_at_the_end_asks_for_a_directory() {
    for kind in ["ext4", "f2fs"] {
        let image = volume(kind).unwrap();
        let request =
            Mount { read_only: false, options: "", seed: 1, now: Moment::at(SimTime::ZERO) };
        let format = format_of(&source(&image)).unwrap();
        let mut fs: Box<dyn FileSystem> =
            format.mount(&source(&image), &request, &mut quiet).unwrap();
        let mut edit = Edit::new(&mut fs, Caller::default());
        edit.make_directory(b"/d/below", true).unwrap();
        edit.symlink(b"d", b"/link").unwrap();
        for path in ["/link/", "/missing/"] {
            assert_eq!(edit.remove(path.as_bytes(), true, false).len(), 1, "{kind} {path}");
        }
        assert!(edit.rename(b"/link/", b"/other").unwrap_err().contains("not a directory"));
        assert_eq!(edit.remove(b"/d/", true, false), [""; 0], "{kind}");
        assert_eq!(edit.remove(b"/link", true, false), [""; 0], "{kind}");
    }
}

/// The first superblock of an ext volume is gone as a whole.
#[test]
fn a_copy_of_the_superblock_tells_what_an_image_holds() {
    let image = NamedTempFile::new().unwrap();
    image.as_file().set_len(160 << 20).unwrap(); // two groups of blocks of 4 KiB
    let options = dovetail_ext::mkfs::MkfsOptions {
        block_size: Some(4096),
        ..dovetail_ext::mkfs::MkfsOptions::new(dovetail_ext::mkfs::Kind::Ext4)
    };
    let mut device = Medium::open_read_write(source(&image)).unwrap();
    dovetail_ext::mkfs::mkfs(&mut device, &options).unwrap();
    drop(device);
    let mut bytes = std::fs::read(image.path()).unwrap();
    bytes[1024..2048].fill(0);
    std::fs::write(image.path(), &bytes).unwrap();
    let format = format_of(&source(&image)).unwrap();
    assert_eq!(format.variant_on(&source(&image)).unwrap(), "ext4");
    let mut told = Vec::new();
    format.files(&source(&image), Ok(()), &mut |sentence| told.push(sentence)).unwrap();
    assert!(told[0].contains("s_magic"), "{told:?}");
}
