//! A mount that a test uses.

#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const DOVETAIL: &str = env!("CARGO_BIN_EXE_dovetail");

/// A mount in the foreground; a test that fails leaves none behind.
pub(crate) struct Mount<'a> {
    process: Child,
    directory: &'a Path,
}

impl<'a> Mount<'a> {
    pub(crate) fn new(image: &Path, directory: &'a Path, options: &[&str]) -> Self {
        let mut command = Command::new(DOVETAIL);
        command
            .args(["mount", "-f"])
            .args(options)
            .arg(image)
            .arg(directory)
            .stderr(Stdio::piped());
        let mount = Self { process: command.spawn().unwrap(), directory };
        let start = Instant::now();
        while !mount.is_there() {
            assert!(start.elapsed() < Duration::from_secs(20), "it is not mounted");
            std::thread::sleep(Duration::from_millis(20));
        }
        mount
    }

    fn is_there(&self) -> bool {
        kind_at(self.directory).is_some()
    }

    /// The type in /proc/mounts.
    pub(crate) fn kind(&self) -> String {
        kind_at(self.directory).unwrap()
    }

    /// The process dies without a chance to write anything.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        succeeds("umount", &[self.directory.to_str().unwrap()]);
    }

    /// SIGTERM: it unmounts, makes everything durable and ends well.
    pub(crate) fn end(mut self) {
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

/// The type of what is mounted at a directory.
fn kind_at(directory: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines
        .find(|fields| fields.get(1).copied() == directory.to_str())
        .map(|fields| fields[2].to_string())
}

pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> String {
    let output =
        dovetail_testkit::program(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}
