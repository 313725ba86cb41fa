//! What the tests share: an image in memory, and programs of f2fs-tools as referees.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]

pub mod lab;
pub mod recorder;

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::Arc;

use dovetail_block::{
    BlockBytes, BlockDevice, Capabilities, Command, Completion, Content, DeviceError, DeviceInfo,
};
use dovetail_time::SimTime;

/// An image in memory that keeps only blocks with something in them. Reading only.
#[derive(Clone, Debug, Default)]
pub struct MemoryImage {
    pub blocks: HashMap<u64, Arc<BlockBytes>>,
    pub count: u64,
}

impl MemoryImage {
    pub fn from_reader(mut reader: impl Read) -> Self {
        let mut image = Self::default();
        let mut block = [0; 4096];
        while reader.read_exact(&mut block).is_ok() {
            if block.iter().any(|&byte| byte != 0) {
                image.blocks.insert(image.count, Arc::new(block));
            }
            image.count += 1;
        }
        image
    }

    /// An image of tests/images.
    pub fn kernel(name: &str) -> Self {
        let file = std::fs::File::open(images().join(format!("{name}.img.zst"))).unwrap();
        Self::from_reader(zstd::Decoder::new(file).unwrap())
    }
}

impl BlockDevice for MemoryImage {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { blocks: self.count, capabilities: Capabilities::default() }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let Command::Read { range, into: Some(into) } = command else { panic!("a reader only reads") };
        if range.end().0 > self.count {
            return Err(DeviceError::OutOfRange { range, blocks: self.count });
        }
        for (lba, into) in range.iter().zip(into) {
            *into = self.blocks.get(&lba.0).map_or(Content::Empty, |block| Content::Bytes(Arc::clone(block)));
        }
        Ok(Completion { done: at })
    }
}

pub fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

/// The lines of an image's manifest.
pub fn manifest(name: &str) -> Vec<serde_json::Value> {
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
