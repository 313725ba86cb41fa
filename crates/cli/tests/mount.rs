//! A volume made, mounted, used through system calls, unmounted, and checked, as a user types it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A mount in the foreground; a test that fails leaves none behind.
struct Mount<'a> {
    process: Child,
    directory: &'a Path,
}

impl<'a> Mount<'a> {
    fn new(image: &Path, directory: &'a Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        command.args(["mount", "-f"]).args(options).arg(image).arg(directory).stderr(Stdio::piped());
        let mount = Self { process: command.spawn().unwrap(), directory };
        let start = Instant::now();
        while !mount.is_there() {
            assert!(start.elapsed() < Duration::from_secs(20), "it is not mounted");
            std::thread::sleep(Duration::from_millis(20));
        }
        mount
    }

    fn is_there(&self) -> bool {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        mounts.lines().any(|line| line.split(' ').nth(1) == self.directory.to_str())
    }

    /// SIGTERM: it unmounts, makes everything durable and ends well.
    fn end(mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        assert!(!self.is_there());
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.directory).stderr(Stdio::null()).status();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output =
        Command::new(program).env("PATH", path).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

#[test]
fn a_volume_is_used_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let (image, directory) = (folder.path().join("image"), folder.path().join("mnt"));
    fs::create_dir(&directory).unwrap();
    let shown = image.to_str().unwrap();
    succeeds(env!("CARGO_BIN_EXE_dovetail"), &["mkfs", "f2fs", shown, "--size", "128M"]);
    let mount = Mount::new(&image, &directory, &["-o", "mode=lfs,noatime"]);
    fs::create_dir_all(directory.join("a/b/c")).unwrap();
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| (n / 3) as u8).collect();
    fs::write(directory.join("a/b/c/large"), &content).unwrap();
    (0..300).for_each(|n| fs::write(directory.join(format!("a/{n}")), n.to_string()).unwrap());
    symlink("b/c/large", directory.join("a/link")).unwrap();
    fs::hard_link(directory.join("a/7"), directory.join("seven")).unwrap();
    fs::rename(directory.join("a/8"), directory.join("a/b/eight")).unwrap();
    assert!(fs::read(directory.join("a/link")).unwrap() == content);
    mount.end();

    let check = succeeds("fsck.f2fs", &["--dry-run", shown]);
    assert!(!["[ASSERT]", "[FIX]", "[Fail]"].iter().any(|mark| check.contains(mark)), "{check}");
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
fn an_option_that_there_is_not_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let shown = image.to_str().unwrap();
    succeeds(env!("CARGO_BIN_EXE_dovetail"), &["mkfs", "f2fs", shown, "--size", "64M"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    let output = command.args(["mount", "-o", "atgc", shown]).arg(folder.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("\"atgc\""), "{error}");
}
