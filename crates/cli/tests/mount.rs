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
    let drive =
        ["drive", "make", image, "--scale", "1/256", "--addresses", "iplfs", "--map", "interval"];
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
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("is there already; -f overwrites it")
    );
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
    // the kernel tells the mount of a closed file some time after close(2) has returned
    let start = std::time::Instant::now();
    let mut after = room();
    while after <= before - before / 100 {
        assert!(start.elapsed().as_secs() < 10, "{kind}: {after} free, {before} before");
        std::thread::sleep(std::time::Duration::from_millis(20));
        after = room();
    }
    mount.end();
    check_clean(image.to_str().unwrap(), kind);
}

/// A mount in the background logs as much as was asked for, to the same file.
#[test]
fn a_mount_in_the_background_logs_what_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (image, directory, log) = (path("image"), path("mnt"), path("log"));
    fs::create_dir(&directory).unwrap();
    make_volume("ext4", image.to_str().unwrap());
    let run = |program: &str, arguments: &[&std::ffi::OsStr], stderr: fs::File| {
        Command::new(program).args(arguments).stderr(stderr).status().unwrap().success()
    };
    let file = fs::File::create(&log).unwrap();
    let arguments = ["-vv".as_ref(), "mount".as_ref(), image.as_os_str(), directory.as_os_str()];
    assert!(run(DOVETAIL, &arguments, file.try_clone().unwrap()));
    fs::read(directory.join("no-name")).unwrap_err();
    assert!(run("umount", &[directory.as_os_str()], file));
    let start = std::time::Instant::now();
    let text = loop {
        let text = fs::read_to_string(&log).unwrap();
        if text.contains(" unmounted ") {
            break text;
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{text}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let lookup = text.lines().find(|line| line.contains(": lookup ") && line.contains("errno=2 "));
    assert!(lookup.is_some_and(|line| line.contains("DEBUG") && line.contains("ino=2 ")), "{text}");
    assert!(text.contains("INFO dovetail_front::session: mounted "), "{text}");
}

#[test]
fn an_option_that_there_is_not_is_named() {
    for (kind, option) in [("f2fs", "xtgc"), ("f2fs", "prjquota"), ("ext4", "usrquota")] {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        let shown = image.to_str().unwrap();
        succeeds(DOVETAIL, &["mkfs", kind, shown, "--size", "64M"]);
        let mut command = Command::new(DOVETAIL);
        let output =
            command.args(["mount", "-o", option, shown]).arg(folder.path()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && error.contains(&format!("\"{option}\"")),
            "{error}"
        );
    }
}

/// A stored image that lost its power, mounted read-only, shows what the next mount for writing
/// shows, and stays as it is.
#[test]
fn a_crashed_volume_is_recovered_in_memory_where_nothing_may_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (image, directory, out) = (path("image"), path("mnt"), path("out"));
    fs::create_dir(&directory).unwrap();
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/../f2fs/tests/images/f2fs-crash.img.zst");
    let stored = crate::unzstd(std::path::Path::new(stored));
    fs::write(&image, &stored).unwrap();
    succeeds(DOVETAIL, &["extract", image.to_str().unwrap(), out.to_str().unwrap()]);
    let names = |mount: &std::path::Path| -> Vec<String> {
        let all = succeeds("find", &[mount.to_str().unwrap(), "-printf", "%P %m %s\\n"]);
        let mut all: Vec<String> = all.lines().map(str::to_string).collect();
        all.retain(|line| !line.starts_with(' ')); // the root itself
        all.sort();
        all
    };
    // the sizes of directories are those of the host's file system
    let files = |names: Vec<String>| {
        names.into_iter().filter(|line| !line.ends_with(" 4096")).collect::<Vec<_>>()
    };
    let mount = Mount::new(&image, &directory, &["-o", "ro"]);
    let found = names(&directory);
    let differ = Command::new("diff")
        .args(["-r", "--no-dereference"])
        .args([&directory, &out])
        .output()
        .unwrap();
    mount.end();
    let text = String::from_utf8_lossy(&differ.stdout);
    let text: String = text.lines().filter(|line| !line.contains(" is a ")).collect();
    assert_eq!(text, "");
    assert!(files(found.clone()).len() > 20);
    assert!(fs::read(&image).unwrap() == stored, "nothing is written");

    let mount = Mount::new(&image, &directory, &["-o", "ro,norecovery"]);
    assert_ne!(names(&directory), found, "only the last checkpoint, as asked for");
    mount.end();
    let mount = Mount::new(&image, &directory, &[]);
    assert_eq!(names(&directory), found);
    mount.end();
}

#[test]
fn names_around_a_damaged_one_are_listed() {
    for kind in ["f2fs", "ext4", "ext3"] {
        let folder = tempfile::tempdir().unwrap();
        let (image, directory) = (folder.path().join("image"), folder.path().join("mnt"));
        fs::create_dir(&directory).unwrap();
        make_volume(kind, image.to_str().unwrap());
        let mount = Mount::new(&image, &directory, &[]);
        fs::create_dir(directory.join("d")).unwrap();
        let names = ["a", "damaged-name", "y", "z"];
        names.iter().for_each(|name| fs::write(directory.join("d").join(name), name).unwrap());
        mount.end();
        let mut bytes = fs::read(&image).unwrap();
        let from = b"damaged-name";
        let places: Vec<_> =
            (0..bytes.len() - 12).filter(|&at| bytes[at..].starts_with(from)).collect();
        places.into_iter().for_each(|at| bytes[at..at + 12].copy_from_slice(b"damaged/name"));
        fs::write(&image, bytes).unwrap();
        let mount = Mount::new(&image, &directory, &[]);
        let listed = fs::read_dir(directory.join("d")).unwrap();
        let mut listed: Vec<_> =
            listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        listed.sort();
        // a block of ext4 whose checksum is wrong is passed over, as the kernel does
        let expected: &[&str] = if kind == "ext4" { &[] } else { &["a", "y", "z"] };
        assert_eq!(listed, expected, "{kind}");
        if kind != "ext4" {
            assert_eq!(fs::read_to_string(directory.join("d/z")).unwrap(), "z");
            let removed =
                ["a", "y", "z"].map(|name| fs::remove_file(directory.join("d").join(name)));
            assert!(removed.iter().all(Result::is_ok), "{kind}: {removed:?}");
            assert!(
                fs::remove_dir(directory.join("d")).is_err(),
                "{kind}: what it still holds is not known"
            );
        }
        mount.end();
    }
}

#[test]
fn an_fstabs_options_are_taken_and_a_mount_follows_an_unmount_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (image, directory) = (folder.path().join("image"), folder.path().join("mnt"));
    fs::create_dir(&directory).unwrap();
    let (image, directory) = (image.to_str().unwrap(), directory.to_str().unwrap());
    for kind in ["f2fs", "ext4"] {
        succeeds(DOVETAIL, &["mkfs", kind, image, "--size", "64M", "-f"]);
        let options = "defaults,auto,nofail,_netdev,user,nodiratime,strictatime,relatime,lazytime,default_permissions,\
                       x-systemd.automount";
        for _ in 0..10 {
            succeeds(DOVETAIL, &["mount", "-o", options, image, directory]);
            succeeds("umount", &[directory]);
        }
        for option in ["usrquota", "remount", "allow_root"] {
            let refused = Command::new(DOVETAIL)
                .args(["mount", "-o", option, image, directory])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success() && said.contains(&format!("\"{option}\"")), "{said}");
        }
    }
}

#[test]
fn the_name_of_a_damaged_inode_is_listed() {
    for kind in ["f2fs", "ext3"] {
        let folder = tempfile::tempdir().unwrap();
        let (image, directory) = (folder.path().join("image"), folder.path().join("mnt"));
        fs::create_dir(&directory).unwrap();
        let shown = image.to_str().unwrap();
        make_volume(kind, shown);
        let mount = Mount::new(&image, &directory, &[]);
        ["a", "damaged", "z"]
            .iter()
            .for_each(|name| fs::write(directory.join(name), name).unwrap());
        mount.end();
        if kind == "f2fs" {
            let node = succeeds(DOVETAIL, &["inspect", shown, "--json", "path", "damaged"]);
            let node: serde_json::Value = serde_json::from_str(&node).unwrap();
            let size = node["nat_block"].as_u64().unwrap() * 4096 + 16;
            let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
            file.write_all_at(&(1_u64 << 62).to_le_bytes(), size).unwrap();
        } else {
            succeeds("debugfs", &["-w", "-R", "clri /damaged", shown]);
        }
        let mount = Mount::new(&image, &directory, &[]);
        let listed = fs::read_dir(&directory).unwrap();
        let mut names: Vec<_> =
            listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "lost+found");
        names.sort();
        assert_eq!(names, ["a", "damaged", "z"], "{kind}");
        let error = fs::metadata(directory.join("damaged")).unwrap_err().raw_os_error();
        // EUCLEAN; of an inode that is free ENOENT
        assert_eq!(error, Some(if kind == "f2fs" { 117 } else { 2 }), "{kind}");
        assert_eq!(fs::read_to_string(directory.join("z")).unwrap(), "z");
        mount.end();
    }
}
