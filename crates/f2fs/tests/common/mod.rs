//! What the tests share: images, and programs of f2fs-tools as referees.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]

pub mod lab;
pub mod manifest;

use std::path::{Path, PathBuf};
use std::process::Command as Program;

use dovetail_block::MemoryDevice;

/// An image of tests/images.
pub fn kernel_image(name: &str) -> MemoryDevice {
    let file = std::fs::File::open(images().join(format!("{name}.img.zst"))).unwrap();
    MemoryDevice::from_reader(zstd::Decoder::new(file).unwrap()).unwrap()
}

pub fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

/// The lines of an image's manifest.
pub fn manifest_lines(name: &str) -> Vec<serde_json::Value> {
    let file = std::fs::File::open(images().join(format!("{name}.manifest.jsonl.zst"))).unwrap();
    let text = zstd::decode_all(file).unwrap();
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Runs a program of f2fs-tools, which must be installed.
pub fn tool(name: &str, arguments: &[&str]) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut program = Program::new(name);
    let output = program.env("PATH", path).args(arguments).stdin(std::process::Stdio::null()).output();
    let output =
        output.unwrap_or_else(|error| panic!("{name}: {error}; install it with: apt-get install f2fs-tools"));
    // sload.f2fs ends with a check that may say 1, "corrected"
    let fine = output.status.success() || (name == "sload.f2fs" && output.status.code() == Some(1));
    assert!(fine, "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
}
