//! ext volumes from the command line: made, looked into, checked.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::{Command, Output};

use dovetail_testkit::program;

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
    let run = program(name).args(arguments).output();
    run.unwrap_or_else(|error| {
        panic!("{name}: {error}; install it with: apt-get install e2fsprogs")
    })
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
    assert_eq!(
        (copied.status.code(), std::fs::read(copy).unwrap()),
        (Some(0), b"content\n".into())
    );
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

/// Verdicts of `dovetail fsck` and e2fsck on an image after a request of debugfs: exit codes and
/// our text.
fn after(request: &str, options: &[&str]) -> (Option<i32>, Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image").to_str().unwrap().to_string();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("file"), vec![7; 20_000]).unwrap();
    let made = [options, &["-q", "-F", "-d", source.to_str().unwrap(), &image, "16M"]].concat();
    assert_eq!(e2fsprogs("mke2fs", &made), Some(0));
    assert_eq!(e2fsprogs("debugfs", &["-w", "-R", request, &image]), Some(0));
    let run = dovetail(&["fsck", &image]);
    (run.status.code(), e2fsprogs("e2fsck", &["-fn", &image]), stdout(&run))
}

#[test]
fn what_e2fsck_finds_of_sizes_and_the_journal_is_found() {
    for (options, request, words) in [
        (
            &["-t", "ext4", "-b", "1024"][..],
            "sif /file size 0x1000000000000000",
            "no file of this volume has more",
        ),
        (
            &["-t", "ext4", "-b", "4096"],
            "sif /file size 0x100000001000",
            "no file of this volume has more than 17592186044416",
        ),
        (
            &["-t", "ext3", "-b", "1024"],
            "sif /file size 0x500000000",
            "no file of this volume has more",
        ),
        (
            &["-t", "ext3", "-b", "4096"],
            "sif /file size 0x40200000000",
            "no file of this volume has more",
        ),
        (
            &["-t", "ext4"],
            "ssv journal_inum 0",
            "the feature has_journal is set, and no inode is it",
        ),
        (
            &["-t", "ext3"],
            "ssv journal_inum 0",
            "the feature has_journal is set, and no inode is it",
        ),
    ] {
        let (ours, theirs, text) = after(request, options);
        // e2fsck adds an 8 where it has to stop
        let found = theirs.is_some_and(|code| code & 4 != 0);
        assert!(ours == Some(4) && found, "{options:?} {request}: {ours:?}, {theirs:?}: {text}");
        assert!(text.contains(words), "{options:?} {request}: {text}");
    }
    // the largest sizes that there may be
    for (options, request) in [
        (&["-t", "ext4", "-b", "4096"][..], "sif /file size 0xfffffffffff"),
        (&["-t", "ext3", "-b", "1024"], "sif /file size 0x404040000"),
    ] {
        let (ours, theirs, text) = after(request, options);
        assert_eq!((ours, theirs), (Some(0), Some(0)), "{options:?} {request}: {text}");
    }
}

#[test]
fn a_torn_superblock_is_replaced_by_its_backup() {
    use std::os::unix::fs::FileExt;
    for size in ["1024", "2048", "4096"] {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image").to_str().unwrap().to_string();
        let source = folder.path().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("file"), "content\n").unwrap();
        let made =
            ["-q", "-F", "-t", "ext4", "-b", size, "-d", source.to_str().unwrap(), &image, "256M"];
        assert_eq!(e2fsprogs("mke2fs", &made), Some(0));
        // the first sector as it is, the second of a state before it
        let file = std::fs::OpenOptions::new().write(true).open(&image).unwrap();
        file.write_all_at(&[0x5A; 100], 1024 + 700).unwrap();
        let before = std::fs::read(&image).unwrap();

        let run = dovetail(&["cat", &image, "/file"]);
        assert_eq!((run.status.code(), stdout(&run).as_str()), (Some(0), "content\n"), "{run:?}");
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            said.contains("checksum") && said.ends_with("; the backup in group 1 is used\n"),
            "{said}"
        );
        let out = folder.path().join("out");
        assert_eq!(dovetail(&["extract", &image, out.to_str().unwrap()]).status.code(), Some(0));
        assert_eq!(std::fs::read(out.join("file")).unwrap(), b"content\n");
        let check = dovetail(&["fsck", &image]);
        assert_eq!(check.status.code(), Some(4));
        assert!(
            stdout(&check).contains("the backup in group 1 is whole and was used"),
            "{check:?}"
        );
        assert!(
            stdout(&check).contains("errors                              1\n"),
            "nothing else: {check:?}"
        );
        let written =
            dovetail(&["cp", source.join("file").to_str().unwrap(), &format!("{image}:/new")]);
        let said = String::from_utf8_lossy(&written.stderr).into_owned();
        assert!(
            written.status.code() == Some(1) && said.contains("e2fsck repairs the volume"),
            "{said}"
        );
        assert!(std::fs::read(&image).unwrap() == before, "nothing is written");

        assert_eq!(e2fsprogs("e2fsck", &["-fy", &image]), Some(1));
        assert_eq!(dovetail(&["fsck", &image]).status.code(), Some(0));
    }
}

#[test]
fn a_check_of_a_volume_in_use_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&image).unwrap();
    file.lock().unwrap();
    let run = dovetail(&["fsck", &image]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let who = format!("is mounted for writing by process {} (", std::process::id());
    assert!(run.status.code() == Some(8) && said.contains(&who), "{run:?}");
    file.unlock().unwrap();
    file.lock_shared().unwrap();
    assert_eq!(dovetail(&["fsck", &image]).status.code(), Some(0), "readers are in nobody's way");
}

#[test]
fn no_more_is_extracted_than_the_volume_can_hold() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image").to_str().unwrap().to_string();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("whole"), vec![7; 268 << 10]).unwrap();
    (0..40).for_each(|n| std::fs::write(source.join(format!("thief-{n}")), "").unwrap());
    let made =
        ["-q", "-F", "-t", "ext2", "-b", "1024", "-d", source.to_str().unwrap(), &image, "2M"];
    assert_eq!(e2fsprogs("mke2fs", &made), Some(0));
    // all of them share the block of pointers of the whole one
    let shown = program("debugfs").args(["-R", "stat /whole", &image]).output().unwrap();
    let shown = stdout(&shown);
    let indirect = shown.split("(IND):").nth(1).unwrap().split(',').next().unwrap().trim();
    let requests: String = (0..40)
        .map(|n| {
            format!("sif /thief-{n} block[IND] {indirect}\nsif /thief-{n} size {}\n", 268 << 10)
        })
        .collect();
    let script = folder.path().join("requests");
    std::fs::write(&script, requests).unwrap();
    assert_eq!(e2fsprogs("debugfs", &["-w", "-f", script.to_str().unwrap(), &image]), Some(0));
    let out = folder.path().join("out");
    let run = dovetail(&["extract", &image, out.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        run.status.code() == Some(1) && said.contains("more content by now than the volume"),
        "{said}"
    );
    let whole = std::fs::read(out.join("whole"));
    assert!(
        whole.is_ok_and(|whole| whole == vec![7; 268 << 10]) || said.contains("/whole"),
        "{said}"
    );
    use std::os::unix::fs::MetadataExt;
    let written: u64 = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512)
        .sum();
    assert!((1 << 20..=(2 << 20) + 42 * 4096).contains(&written), "{written}");
}

#[test]
fn a_link_that_leads_nowhere_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let image = path("image");
    assert!(dovetail(&["mkfs", "ext4", "--size", "32M", &image]).status.success());
    std::fs::create_dir(path("tree")).unwrap();
    std::os::unix::fs::symlink("nowhere", path("tree/dangling")).unwrap();
    assert!(dovetail(&["cp", "-r", &path("tree"), &format!("{image}:/tree")]).status.success());
    let listed = stdout(&dovetail(&["ls", &image, "/tree/dangling"]));
    assert!(listed.starts_with('l') && listed.contains("nowhere"), "{listed}");
    let cat = dovetail(&["cat", &image, "/tree/dangling"]);
    assert!(String::from_utf8_lossy(&cat.stderr).contains("is a link that leads nowhere"));
    let twice = dovetail(&["mkfs", "f2fs", "-f", &image, "-c", &image]);
    let said = String::from_utf8_lossy(&twice.stderr).into_owned();
    assert!(twice.status.code() == Some(2) && said.contains("is given twice"), "{said}");
}
