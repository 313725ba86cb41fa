//! The reference model, mounted and used through system calls. Needs /dev/fuse, and root or
//! fusermount3.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod raw;
mod watched;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{
    FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use dovetail_front::{Options, Session, mount};
use dovetail_testkit::Model;
use dovetail_vfs::{Caller, Limits};

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
fn a_write_that_reaches_beyond_the_largest_file_is_shortened() {
    let mounted = Mounted::new();
    let file = File::create_new(mounted.path("large")).unwrap();
    let end = Limits::default().file_size;
    assert_eq!(file.write_at(&[1; 3 * 4096], end - 4096).unwrap(), 4096);
    assert_eq!(file.write_at(&[1; 3 * 4096], end).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(file.metadata().unwrap().len(), end);
}

#[test]
fn data_that_the_kernel_has_not_sent_yet_is_no_hole() {
    let mounted = Mounted::new();
    let file = File::create_new(mounted.path("sparse")).unwrap();
    file.write_all_at(b"data", 1 << 20).unwrap();
    let copied = mounted.path("copy");
    std::io::copy(
        &mut File::open(mounted.path("sparse")).unwrap(),
        &mut File::create(&copied).unwrap(),
    )
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
        let status = Command::new("setfacl").args(arguments).arg(&path).status();
        assert!(status.expect("setfacl, of the Debian package acl").success());
    };
    setfacl(&["-m", "u:1000:rwx,d:u:1000:rw,d:g::r,d:o::-"]);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o775, "the group bits show the mask");
    let child = path.join("file");
    fs::write(&child, "x").unwrap();
    assert_eq!(
        fs::metadata(&child).unwrap().mode() & 0o777,
        0o660,
        "from the default ACL, not the umask"
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let shown = Command::new("getfacl").arg("-cp").arg(&path).output().unwrap().stdout;
    assert!(String::from_utf8(shown).unwrap().contains("mask::---"), "chmod changes the mask");
    setfacl(&["-b"]); // which leaves the group what the mask let through
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
}

/// Files of every kind, one of each, all owned by user 1000 and group 1001.
fn make_kinds(folder: &Path) {
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};
    fs::write(folder.join("regular"), [1; 8192]).unwrap();
    fs::create_dir(folder.join("directory")).unwrap();
    for (name, kind) in [
        ("fifo", SFlag::S_IFIFO),
        ("socket", SFlag::S_IFSOCK),
        ("character", SFlag::S_IFCHR),
        ("block", SFlag::S_IFBLK),
    ] {
        mknod(&folder.join(name), kind, Mode::from_bits_truncate(0o644), makedev(7, 200)).unwrap();
    }
    for entry in fs::read_dir(folder).unwrap() {
        std::os::unix::fs::chown(entry.unwrap().path(), Some(1000), Some(1001)).unwrap();
    }
}

/// Callers, as arguments of setpriv: root, root without the right to keep set-id bits, the owner in
/// and outside of the file's group, and another user.
const ASKERS: [(&str, &[&str]); 5] = [
    ("root", &["--clear-groups"]),
    ("weak root", &["--clear-groups", "--bounding-set=-fsetid", "--inh-caps=-fsetid"]),
    ("owner", &["--reuid=1000", "--regid=1002", "--groups=1001,1003"]),
    ("outsider", &["--reuid=1000", "--regid=1003", "--clear-groups"]),
    ("other", &["--reuid=1004", "--regid=1004", "--groups=1003"]),
];

/// Changes that may take set-id bits away; true for those that only a regular file allows.
const CHANGES: [(&str, bool); 14] = [
    ("chown : $0", false),
    ("chown :1003 $0", false),
    ("chown 1000 $0", false),
    ("chmod 2755 $0", false),
    ("setfacl -m u::rwx,g::rwx,o::rwx $0", false),
    ("setfacl -m u:7:rwx $0", false),
    ("dd if=/dev/zero of=$0 bs=4096 count=1 conv=notrunc", true),
    ("dd if=/dev/zero of=$0 bs=4096 count=1 conv=notrunc oflag=direct", true),
    ("echo >> $0", true),
    (": > $0", true),
    ("truncate -s 100 $0", true),
    ("fallocate -l 16384 $0", true),
    ("fallocate -p -l 4096 $0", true),
    ("fallocate -z -l 4096 $0", true),
];

/// Outcome of a change by someone, and the mode that it leaves. stat asks for the mode alone, which
/// the kernel may have kept; std asks for everything.
fn after_change(path: &Path, mode: &str, change: &str, asker: &[&str]) -> String {
    std::os::unix::fs::chown(path, Some(1000), Some(1001)).unwrap();
    if change.starts_with("setfacl") {
        assert!(Command::new("setfacl").arg("-b").arg(path).status().unwrap().success());
    }
    let bits = u32::from_str_radix(mode, 8).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    assert_eq!(fs::symlink_metadata(path).unwrap().mode() & 0o7777, bits);
    let script = format!("exec 2> /dev/null; {change} && echo -n 'done ' || echo -n 'refused '");
    let mut command = Command::new("setpriv");
    let changed = command.args(asker).args(["sh", "-c", &script]).arg(path).output().unwrap();
    let shown = Command::new("stat").args(["-c", "%a"]).arg(path).output().unwrap();
    let (changed, shown) = (String::from_utf8(changed.stdout), String::from_utf8(shown.stdout));
    changed.unwrap() + shown.unwrap().trim()
}

/// Every change, tried by everyone on every kind of file with several modes.
fn modes_after(folder: &Path) -> Vec<String> {
    make_kinds(folder);
    let mut lines = Vec::new();
    for kind in ["regular", "directory", "fifo", "socket", "character", "block"] {
        for (change, of_content) in
            CHANGES.into_iter().filter(|change| !change.1 || kind == "regular")
        {
            let modes =
                if of_content { ["6777", "6767", "2767"] } else { ["6555", "6745", "2700"] };
            // of a chown without owner and group FUSE does not tell that it is one: others cannot
            // be refused
            let unknown = |who: &str| change == "chown : $0" && who == "other";
            let askers = ASKERS.into_iter().filter(|(who, _)| !unknown(who));
            for ((who, asker), mode) in askers.flat_map(|asker| modes.map(|mode| (asker, mode))) {
                let after = after_change(&folder.join(kind), mode, change, asker);
                lines.push(format!("{who}: {kind} of {mode}: {change}: {after}"));
            }
        }
    }
    lines
}

#[test]
fn set_id_bits_go_when_those_of_the_kernels_own_file_systems_do() {
    // on a disk: /tmp may be in memory, where the kernel does not take all of the changes
    let (mounted, own) = (Mounted::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    for folder in [mounted.folder.path(), own.path()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let (ours, kernels) = std::thread::scope(|scope| {
        let ours = scope.spawn(|| modes_after(mounted.folder.path()));
        let kernels = modes_after(own.path());
        (ours.join().unwrap(), kernels)
    });
    let differ: Vec<_> = ours.iter().zip(&kernels).filter(|(a, b)| a != b).collect();
    assert!(differ.is_empty(), "{} of {} differ: {differ:#?}", differ.len(), ours.len());
    for (who, change, after) in [
        ("other", ": > $0", "done 777"),
        ("root", ": > $0", "done 6777"),
        ("weak root", "echo >> $0", "done 777"),
    ] {
        let line = format!("{who}: regular of 6777: {change}: {after}");
        assert!(ours.contains(&line), "{line}: {ours:#?}");
    }
}

/// The kernel reads a page for one process while the other's write is on its way. Without a second
/// look at the cache after the write, the old page stays.
#[test]
fn what_is_read_after_a_direct_write_is_what_was_written() {
    const BYTES: usize = 655_360;
    let mounted = Mounted::new();
    let path = mounted.path("file");
    fs::write(&path, [0; BYTES]).unwrap();
    let direct =
        OpenOptions::new().write(true).custom_flags(nix::libc::O_DIRECT).open(&path).unwrap();
    let (aio, stop, start) = (raw::Aio::new(), AtomicBool::new(false), Instant::now());
    let pages = [raw::Pages::filled(0x55, BYTES), raw::Pages::filled(0xaa, BYTES)];
    let mut rounds = 0;
    let stale = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    fs::read(&path).unwrap();
                }
            });
        }
        let mut stale = false;
        while !stale && start.elapsed() < Duration::from_secs(4) {
            let which = rounds % 2;
            aio.write(&direct, &pages[which]);
            stale = fs::read(&path).unwrap().iter().any(|&byte| byte != [0x55, 0xaa][which]);
            rounds += 1;
        }
        stop.store(true, Ordering::Relaxed);
        stale
    });
    assert!(!stale, "old content is read after {rounds} writes");
    assert!(rounds > 20, "{rounds}");
}

#[test]
fn a_file_is_opened_by_a_handle_that_outlived_every_cache() {
    let mounted = Mounted::new();
    let root = File::open(mounted.folder.path()).unwrap();
    let (file, directory) = (mounted.path("folder/file"), mounted.path("folder"));
    fs::create_dir(&directory).unwrap();
    fs::write(&file, "content").unwrap();
    fs::write(mounted.path("gone"), "").unwrap();
    let mut handles = [&file, &directory, &mounted.path("gone")].map(|path| raw::Handle::of(path));
    fs::remove_file(mounted.path("gone")).unwrap();
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
    let [file, directory, gone] = &mut handles;
    assert_eq!(std::io::read_to_string(file.open(&root).unwrap()).unwrap(), "content");
    // a directory is connected to the tree: the kernel asks for its parents
    let found = directory.open(&root).unwrap();
    let shown = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&found)))
        .unwrap();
    assert_eq!(shown, mounted.path("folder"));
    assert_eq!(gone.open(&root).unwrap_err().raw_os_error(), Some(nix::libc::ESTALE));
    for round in 0..200 {
        let name = mounted.path("short-lived");
        fs::write(&name, "").unwrap();
        let mut handle = raw::Handle::of(&name);
        fs::remove_file(&name).unwrap();
        // a process that another test has just forked may hold the file until it runs its program
        let start = Instant::now();
        let error = loop {
            match handle.open(&root) {
                Ok(_) if start.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                opened => break opened.expect_err("it is gone").raw_os_error(),
            }
        };
        assert_eq!(error, Some(nix::libc::ESTALE), "round {round}");
    }
}

/// Someone who waits for threads that a signal has killed can never be killed: a process must not
/// ask its own mount.
#[test]
fn the_process_that_serves_a_mount_does_not_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (model, calls) = watched::Watched::new(&watched::own_caller());
    let session = mount(Box::new(model), folder.path(), Options::new("model", "model")).unwrap();
    let waited = |when: &str| {
        let calls = std::mem::take(&mut *calls.lock().unwrap());
        assert!(calls.iter().all(|call| !call.1), "{when}: {calls:?}");
        calls.len()
    };
    waited("while mounting");
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).open(folder.path().join("file"));
    let file = file.unwrap();
    file.write_all_at(&[0; 4096], 0).unwrap();
    let mapping = raw::Mapping::store(&file, 1);
    calls.lock().unwrap().clear(); // those of this test
    session.unmount().unwrap();
    assert_ne!(waited("while unmounting"), 0, "the stored byte was written");
    drop(mapping);
}
