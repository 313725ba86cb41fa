//! The reference model, mounted and used through system calls. Needs /dev/fuse, and root or fusermount3.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use dovetail_front::{Options, Session, mount};
use dovetail_vfs::{Caller, Limits, Model};

struct Mounted {
    session: Option<Session>,
    folder: tempfile::TempDir,
}

impl Mounted {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let caller = Caller { uid: nix::unistd::getuid().as_raw(), ..Caller::default() };
        let model = Box::new(Model::new(Limits::default(), &caller));
        let session = mount(model, folder.path(), Options::new("model", "model")).unwrap();
        Self { session: Some(session), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.session.take().unwrap().unmount().unwrap();
    }
}

#[test]
fn files_are_written_read_cut_and_removed() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(&path, &content).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content);
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.set_len(1000).unwrap();
    file.set_len(5000).unwrap();
    file.sync_all().unwrap();
    let mut expected = content[..1000].to_vec();
    expected.resize(5000, 0);
    assert_eq!(fs::read(&path).unwrap(), expected);
    fs::remove_file(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap_err().kind(), ErrorKind::NotFound);
    file.write_all_at(b"still there", 0).unwrap();
    file.sync_all().unwrap();
    let mut start = [0; 11];
    file.read_exact_at(&mut start, 0).unwrap();
    assert_eq!(&start, b"still there");
}

#[test]
fn data_that_the_kernel_has_not_sent_yet_is_no_hole() {
    let mounted = Mounted::new();
    let file = File::create_new(mounted.path("sparse")).unwrap();
    file.write_all_at(b"data", 1 << 20).unwrap();
    let copied = mounted.path("copy");
    std::io::copy(&mut File::open(mounted.path("sparse")).unwrap(), &mut File::create(&copied).unwrap())
        .unwrap();
    assert_eq!(fs::read(copied).unwrap()[1 << 20..], *b"data");
    assert_ne!(file.metadata().unwrap().blocks(), 0, "tar -S would take it for a hole");
}

#[test]
fn large_directories_are_listed_whole() {
    let mounted = Mounted::new();
    let mut names: Vec<String> = (0..2000).map(|n| format!("a-name-of-some-length-{n}")).collect();
    names.iter().for_each(|name| fs::write(mounted.path(name), name).unwrap());
    let mut listed: Vec<String> = fs::read_dir(mounted.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    listed.sort();
    assert_eq!(listed, names);
    for entry in fs::read_dir(mounted.folder.path()).unwrap().map(Result::unwrap) {
        assert_eq!(entry.metadata().unwrap().len(), entry.file_name().len() as u64);
    }
}

#[test]
fn names_links_and_kinds() {
    let mounted = Mounted::new();
    let path = |name| mounted.path(name);
    fs::create_dir_all(path("a/b")).unwrap();
    fs::write(path("a/file"), "x").unwrap();
    fs::hard_link(path("a/file"), path("a/b/link")).unwrap();
    assert_eq!(fs::metadata(path("a/b/link")).unwrap().nlink(), 2);
    symlink("a/file", path("symlink")).unwrap();
    assert_eq!(fs::read_to_string(path("symlink")).unwrap(), "x");
    fs::rename(path("a/b"), path("moved")).unwrap();
    assert_eq!(fs::metadata(path("a")).unwrap().nlink(), 2);
    assert_eq!(fs::read_to_string(path("moved/link")).unwrap(), "x");
    assert_eq!(fs::remove_dir(path("moved")).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert!(fs::metadata(path("fifo")).unwrap().file_type().is_fifo());
}

#[test]
fn times_are_those_that_were_set_or_when_it_was_written() {
    let mounted = Mounted::new();
    let path = mounted.path("file");
    let start = SystemTime::now() - Duration::from_millis(50); // the kernel stamps with a coarse clock
    fs::write(&path, "x").unwrap();
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    assert!(written >= start && written <= SystemTime::now(), "{written:?}");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    (&file).write_all(b"more").unwrap();
    file.set_modified(long_ago).unwrap();
    file.sync_all().unwrap();
    drop(file);
    // what the kernel knows is not enough: it must have come to the file system
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), long_ago);
}

#[test]
fn an_acl_and_the_mode_follow_each_other() {
    let mounted = Mounted::new();
    let path = mounted.path("dir");
    fs::create_dir(&path).unwrap();
    let setfacl = |arguments: &[&str]| {
        let status = std::process::Command::new("setfacl").args(arguments).arg(&path).status();
        assert!(status.expect("setfacl, of the Debian package acl").success());
    };
    setfacl(&["-m", "u:1000:rwx,d:u:1000:rw,d:g::r,d:o::-"]);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o775, "the group bits show the mask");
    let child = path.join("file");
    fs::write(&child, "x").unwrap();
    assert_eq!(fs::metadata(&child).unwrap().mode() & 0o777, 0o660, "from the default ACL, not the umask");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let shown = std::process::Command::new("getfacl").arg("-cp").arg(&path).output().unwrap().stdout;
    assert!(String::from_utf8(shown).unwrap().contains("mask::---"), "chmod changes the mask");
    setfacl(&["-b"]); // which leaves the group what the mask let through
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_new_owner_takes_set_id_bits_away() {
    let mounted = Mounted::new();
    let path = mounted.path("program");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    std::os::unix::fs::chown(&path, Some(1000), Some(1000)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
}
