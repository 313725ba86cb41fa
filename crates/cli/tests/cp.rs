//! Copying into an image and out of it, without root and without mounting.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use crate::manifest::{differences, of_folder};
use crate::referee::check_clean;

fn dovetail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap()
}

fn cp(arguments: &[&str]) -> (Option<i32>, String) {
    let run = dovetail(&[&["cp"], arguments].concat());
    (run.status.code(), String::from_utf8(run.stderr).unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const KINDS: [&str; 3] = ["f2fs", "ext4", "ext3"];

fn volume(folder: &Path, kind: &str) -> String {
    let image = text(&folder.join("image")).to_string();
    let made = dovetail(&["mkfs", kind, &image, "--size", "128M"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    image
}

/// Small, large and sparse files, many names, links of both kinds, modes, times, attributes, deep
/// directories.
fn populate(tree: &Path) {
    let folder = tree.join("folder/deep/deeper");
    fs::create_dir_all(&folder).unwrap();
    for (n, len) in [0, 1, 3000, 4096, 70_000, 5 << 20].into_iter().enumerate() {
        let bytes: Vec<u8> = (0..len).map(|at: usize| (at / 5) as u8).collect();
        fs::write(folder.join(format!("file-{n}")), bytes).unwrap();
    }
    let sparse = fs::File::create(tree.join("sparse")).unwrap();
    sparse.write_all_at(b"in the middle", 30 << 20).unwrap();
    sparse.set_len(60 << 20).unwrap();
    let many = tree.join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..1500 {
        fs::write(many.join(format!("number {n}")), n.to_string()).unwrap();
    }
    symlink("folder/deep", tree.join("link")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    fs::hard_link(folder.join("file-4"), tree.join("again")).unwrap();
    fs::set_permissions(folder.join("file-2"), fs::Permissions::from_mode(0o4711)).unwrap();
    fs::set_permissions(&many, fs::Permissions::from_mode(0o1700)).unwrap();
    // a file system without attributes of users is no reason to fail
    let _ =
        rustix::fs::lsetxattr(&many, "user.comment", &[b'x'; 900], rustix::fs::XattrFlags::empty());
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_234_567_890, 123_456_789);
    fs::File::open(&folder).unwrap().set_modified(time).unwrap();
    fs::File::open(tree.join("sparse")).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_tree_goes_in_and_comes_out_as_it_was() {
    KINDS.iter().for_each(|kind| tree_goes_in_and_out(kind));
}

fn tree_goes_in_and_out(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), kind);
    let tree = folder.path().join("tree");
    populate(&tree);
    assert_eq!(cp(&["-rp", text(&tree), &format!("{image}:/")]), (Some(0), String::new()));
    check_clean(&image, kind);
    let out = folder.path().join("out");
    assert_eq!(cp(&["-r", "-p", &format!("{image}:/tree"), text(&out)]), (Some(0), String::new()));
    assert_eq!(differences(&of_folder(&tree), &of_folder(&out)), "");
    let diff =
        Command::new("diff").args(["-r", "--no-dereference", text(&tree), text(&out)]).output();
    assert_eq!(diff.unwrap().status.code(), Some(0));
    let size = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(out.join("sparse")).unwrap());
    assert!(size < 1000, "{size} sectors: the holes are gone");

    // once more over what is there, both ways
    fs::write(tree.join("sparse"), "short").unwrap();
    assert_eq!(cp(&["-rp", text(&tree), &format!("{image}:/")]), (Some(0), String::new()));
    check_clean(&image, kind);
    fs::create_dir(folder.path().join("second")).unwrap();
    assert_eq!(cp(&["-rp", &format!("{image}:/"), text(&folder.path().join("second"))]).0, Some(0));
    assert_eq!(
        cp(&["-rp", &format!("{image}:/tree"), text(&folder.path().join("second"))]).0,
        Some(0)
    );
    assert_eq!(differences(&of_folder(&tree), &of_folder(&folder.path().join("second/tree"))), "");
}

#[test]
fn a_file_goes_in_and_comes_out_by_the_names_that_cp_would_give() {
    KINDS.iter().for_each(|kind| file_goes_in_and_out(kind));
}

fn file_goes_in_and_out(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), kind);
    let file = folder.path().join("file");
    fs::write(&file, "content\n").unwrap();
    for target in ["/", "/new"] {
        assert_eq!(cp(&[text(&file), &format!("{image}:{target}")]), (Some(0), String::new()));
    }
    for name in ["/file", "/new"] {
        assert_eq!(dovetail(&["cat", &image, name]).stdout, b"content\n");
    }
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    for target in [out.clone(), out.join("other")] {
        assert_eq!(cp(&[&format!("{image}:/new"), text(&target)]), (Some(0), String::new()));
    }
    for name in ["new", "other"] {
        assert_eq!(fs::read(out.join(name)).unwrap(), b"content\n");
    }
}

/// Runs a command that can write no file larger than 4 KiB.
fn in_little_room(arguments: &[&str]) -> Output {
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_dovetail")]).args(arguments);
    shell.output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A copy that failed had taken the file in its place away, and left a piece under its name.
#[test]
fn a_copy_that_fails_leaves_what_was_there_and_no_piece() {
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), "ext4");
    let large = folder.path().join("large");
    fs::write(&large, vec![b'x'; 100_000]).unwrap();
    let inside = format!("{image}:/large");
    assert_eq!(cp(&[text(&large), &inside]), (Some(0), String::new()));
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("old"), "kept").unwrap();
    let run = in_little_room(&["cp", &inside, text(&out.join("old"))]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert_eq!(
        (names(&out), fs::read(out.join("old")).unwrap()),
        (vec!["old".into()], b"kept".into())
    );
    let extracted = folder.path().join("extracted");
    let run = in_little_room(&["extract", &image, text(&extracted), "/large"]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert_eq!(names(&extracted), Vec::<String>::new());
    assert_eq!(cp(&[&inside, text(&out.join("old"))]), (Some(0), String::new()));
    assert!(fs::read(out.join("old")).unwrap() == fs::read(&large).unwrap());
}

/// It was removed, and a file put in its place.
#[test]
fn a_device_is_no_place_for_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), "ext4");
    let (file, fifo) = (folder.path().join("file"), folder.path().join("fifo"));
    fs::write(&file, "content").unwrap();
    assert_eq!(cp(&[text(&file), &format!("{image}:/file")]), (Some(0), String::new()));
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let (code, said) = cp(&[&format!("{image}:/file"), text(&fifo)]);
    assert!(code == Some(2) && said.contains("fifo is no regular file: `dovetail cat`"), "{said}");
    assert!(!fs::metadata(&fifo).unwrap().is_file());
}

#[test]
fn a_copy_is_stopped_between_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), "ext4");
    let (large, out) = (folder.path().join("large"), folder.path().join("out"));
    fs::File::create(&large).unwrap().write_all_at(&vec![1; 100 << 20], 0).unwrap();
    assert_eq!(cp(&[text(&large), &format!("{image}:/large")]), (Some(0), String::new()));
    let mut copy = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    copy.args(["extract", &image, text(&out)]).stderr(std::process::Stdio::piped());
    let mut copy = copy.spawn().unwrap();
    let begun = || out.is_dir() && names(&out).iter().any(|name| name.starts_with(".dovetail."));
    while !begun() && copy.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_child(&copy),
        rustix::process::Signal::INT,
    );
    let run = copy.wait_with_output().unwrap();
    // a fast machine may have ended the copy first
    if run.status.code() != Some(0) {
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(said.contains("/large: stopped: "), "{said}");
        assert!(!names(&out).contains(&"large".into()));
    }
    assert!(names(&out).iter().all(|name| !name.starts_with(".dovetail.")), "{:?}", names(&out));
}

#[test]
fn what_a_directory_holds_goes_into_another_one() {
    KINDS.iter().for_each(|kind| contents_go_in_and_out(kind));
}

fn contents_go_in_and_out(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), kind);
    let tree = folder.path().join("tree");
    populate(&tree);
    let contents = format!("{}/.", text(&tree));
    let inside = format!("{image}:/there");
    assert_eq!(dovetail(&["mkdir", &inside]).status.code(), Some(0));
    assert_eq!(cp(&["-rp", &contents, &inside]), (Some(0), String::new()), "{kind}");
    let back = folder.path().join("back");
    fs::create_dir(&back).unwrap();
    let out = cp(&["-rp", &format!("{inside}/."), text(&back)]);
    assert_eq!(out, (Some(0), String::new()), "{kind}");
    assert_eq!(differences(&of_folder(&tree), &of_folder(&back)), "", "{kind}");
    // a link to a directory, and two at once
    let two = folder.path().join("two");
    fs::create_dir(&two).unwrap();
    let out = cp(&["-r", &format!("{inside}/link/."), &format!("{inside}/many/."), text(&two)]);
    assert_eq!(out, (Some(0), String::new()), "{kind}");
    assert!(two.join("deeper/file-0").exists() && two.join("number 7").exists());
    let (code, said) = cp(&["-r", &format!("{inside}/sparse/."), text(&two)]);
    assert_eq!(code, Some(1), "{kind}");
    assert!(said.contains("/there/sparse/. is not a directory"), "{said}");
    // GNU rm, mv and mkdir refuse it, too: the directory has no such name
    for command in [["rm", "-r", "folder/."].as_slice(), &["mkdir", "new/."]] {
        let (path, words) = command.split_last().unwrap();
        let run = dovetail(&[words, &[&format!("{inside}/{path}")]].concat());
        assert_eq!(run.status.code(), Some(1), "{kind}: {run:?}");
    }
    let moved = dovetail(&["mv", &format!("{inside}/link/."), &format!("{image}:/moved")]);
    assert_eq!(moved.status.code(), Some(1), "{kind}: {moved:?}");
    let (code, said) = cp(&["-r", text(&tree), &format!("{image}:/nowhere/.")]);
    assert_eq!(code, Some(1), "{kind}");
    assert!(said.contains("/nowhere/. is not a directory"), "{said}");
    let listed = dovetail(&["ls", &image, "/there/folder"]);
    assert!(listed.stdout.ends_with(b" deep\n"), "{kind}: what was refused is still there");
}

#[test]
fn what_is_refused_is_said_with_its_path() {
    KINDS.iter().for_each(|kind| refuses(kind));
}

fn refuses(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), kind);
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let before = fs::read(&image).unwrap();
    let (inside, outside) = (format!("{image}:/"), text(&tree));
    for (arguments, code, words) in [
        ([outside, outside], 2, "one of the two must be in an image"),
        ([inside.as_str(), inside.as_str()], 2, "only one of the two"),
        ([outside, inside.as_str()], 1, "tree is a directory; -r"),
        ([inside.as_str(), outside], 1, "/ is a directory; -r"),
        ([&format!("{image}:/none"), outside], 1, "there is no /none"),
        ([&format!("{outside}/none"), inside.as_str()], 1, "tree/none: No such file"),
    ] {
        let (found, said) = cp(&arguments);
        assert!(found == Some(code) && said.contains(words), "{arguments:?}: {found:?} {said}");
    }
    assert!(fs::read(&image).unwrap() == before, "nothing was written");
    fs::write(tree.join("file"), "").unwrap();
    let (code, said) = cp(&[text(&tree.join("file")), &format!("{image}:/none/file")]);
    assert!(code == Some(1) && said.contains("there is no /none"), "{said}");

    fs::File::create(tree.join("large")).unwrap().write_all_at(&vec![1; 200 << 20], 0).unwrap();
    let (code, said) = cp(&["-r", outside, &inside]);
    assert!(code == Some(1) && said.contains("no space is left on the volume for 200"), "{said}");
    check_clean(&image, kind);
}

/// The capabilities of a program in an image that a stranger made would hold for all users here.
#[test]
fn capabilities_come_out_with_their_owner_only() {
    const NAME: &str = "security.capability";
    let folder = tempfile::tempdir().unwrap();
    let image = volume(folder.path(), "ext4");
    let [file, value, out] = ["file", "value", "out"].map(|name| folder.path().join(name));
    fs::write(&file, "content\n").unwrap();
    assert_eq!(cp(&[text(&file), &format!("{image}:/")]), (Some(0), String::new()));
    // cap_net_raw, effective and permitted (revision 2)
    let words = [0x0200_0001_u32, 1 << 13, 0, 0, 0];
    fs::write(&value, words.map(u32::to_le_bytes).concat()).unwrap();
    let set = format!("ea_set -f {} /file {NAME}", text(&value));
    let debugfs = Command::new("debugfs").args(["-w", "-R", &set, &image]).output().unwrap();
    assert!(debugfs.status.success(), "{debugfs:?}");
    let kept = |path: &Path| {
        let mut value = Vec::with_capacity(64);
        rustix::fs::getxattr(path, NAME, rustix::buffer::spare_capacity(&mut value)).is_ok()
    };
    assert_eq!(cp(&[&format!("{image}:/file"), text(&out)]), (Some(0), String::new()));
    assert!(!kept(&out));
    let (status, told) = cp(&["-p", &format!("{image}:/file"), text(&out)]);
    assert_eq!(status, Some(0), "{told}");
    assert!(kept(&out) || told.contains(NAME), "{told}");
}
