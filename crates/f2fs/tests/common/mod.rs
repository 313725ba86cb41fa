//! Helpers that the tests share: images, and programs of f2fs-tools as referees.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]

pub mod bed;
pub mod iplfs;
pub mod lab;
pub mod manifest;
pub mod mutation;
pub mod uml;
pub mod zoned;

use std::io::Read;
use std::path::{Path, PathBuf};

use dovetail_block::MemoryDevice;
use dovetail_f2fs::format::{FileType, Inode};
use dovetail_f2fs::{Visit, Volume};
use ruzstd::decoding::StreamingDecoder;

/// An image of tests/images.
pub fn kernel_image(name: &str) -> MemoryDevice {
    let file = std::fs::File::open(images().join(format!("{name}.img.zst"))).unwrap();
    MemoryDevice::from_reader(StreamingDecoder::new(file).unwrap()).unwrap()
}

pub fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

/// The content of a file compressed by zstd.
pub fn unzstd(path: impl AsRef<Path>) -> Vec<u8> {
    let mut content = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    StreamingDecoder::new(file).unwrap().read_to_end(&mut content).unwrap();
    content
}

/// The lines of an image's manifest.
pub fn manifest_lines(name: &str) -> Vec<serde_json::Value> {
    let text = unzstd(images().join(format!("{name}.manifest.jsonl.zst")));
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// fsck.f2fs finds no fault in the image at `path`: neither an error nor anything that it would
/// mend in silence.
pub fn check_clean(path: &Path) {
    let output = run("fsck.f2fs", &["--dry-run", path.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    let reconnected = text.split("Reconnect ").skip(1).any(|rest| !rest.starts_with('0'));
    let fault =
        ["[ASSERT]", "[FIX]", "[Fail]"].iter().any(|mark| text.contains(mark)) || reconnected;
    assert!(output.status.code() == Some(0) && !fault, "{:?}: {text}", output.status);
}

/// Runs a program of f2fs-tools, which must be installed.
pub fn tool(name: &str, arguments: &[&str]) {
    let output = run(name, arguments);
    // sload.f2fs ends with a check that may say 1, "corrected"
    let fine = output.status.success() || (name == "sload.f2fs" && output.status.code() == Some(1));
    assert!(fine, "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
}

/// A fresh volume of mkfs.f2fs in memory.
pub fn mkfs(bytes: u64, options: &[&str]) -> MemoryDevice {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
    let mut arguments = options.to_vec();
    arguments.push(path.to_str().unwrap());
    tool("mkfs.f2fs", &arguments);
    MemoryDevice::from_image(&path).unwrap()
}

/// Complaints of fsck.f2fs about a volume, read strictly: an empty string if it finds nothing at
/// all.
pub fn strict_fsck(device: &MemoryDevice) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    device.write_to(&path).unwrap();
    let mut program = dovetail_testkit::program("fsck.f2fs");
    program.args(["--dry-run", path.to_str().unwrap()]);
    let output = program.stdin(std::process::Stdio::null()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("fsck.f2fs: {error}; install it with: apt-get install f2fs-tools")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let bad = |line: &&str| {
        ["[ASSERT]", "[FIX]", "[Fail]"].iter().any(|mark| line.contains(mark))
            || (line.contains("Reconnect") && !line.contains("Reconnect 0"))
    };
    let mut found: Vec<&str> = text.lines().filter(bad).collect();
    let status = format!("exit status {:?}", output.status.code());
    if output.status.code() != Some(0) {
        found.push(&status);
    }
    found.join("\n")
}

/// Output of a program of f2fs-tools, which must be installed.
pub fn run(name: &str, arguments: &[&str]) -> std::process::Output {
    let mut program = dovetail_testkit::program(name);
    let output = program.args(arguments).stdin(std::process::Stdio::null()).output();
    output.unwrap_or_else(|error| {
        panic!("{name}: {error}; install it with: apt-get install f2fs-tools")
    })
}
