//! Images that the tests share, and programs of e2fsprogs as referees.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]

#[path = "../../../f2fs/tests/common/manifest.rs"]
pub mod manifest;
pub mod tree;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use dovetail_block::{Lba, MemoryDevice};
use dovetail_ext::format::{BlockAddr, FileType, Inode, Superblock};
use dovetail_ext::{Visit, Volume};
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

/// Output of a program of e2fsprogs, which must be installed. Times and UUIDs of what it makes are
/// its own.
pub fn run(name: &str, arguments: &[&str]) -> Output {
    let mut program = dovetail_testkit::program(name);
    program.env("LC_ALL", "C").args(arguments);
    let output = program.stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| {
        panic!("{name}: {error}; install it with: apt-get install e2fsprogs")
    })
}

/// Runs a program of e2fsprogs and returns what it printed; it must succeed.
pub fn tool(name: &str, arguments: &[&str]) -> String {
    let output = run(name, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// A file that goes away with its folder.
pub struct TempImage {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl TempImage {
    /// A sparse file of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        Self { _folder: folder, path }
    }

    /// Image with the content of a device.
    pub fn of(device: &MemoryDevice) -> Self {
        let image = Self::new(0);
        device.write_to(&image.path).unwrap();
        image
    }

    /// A volume of mke2fs.
    pub fn mke2fs(bytes: u64, options: &[&str]) -> Self {
        let image = Self::new(bytes);
        let mut arguments = vec!["-q", "-F"];
        arguments.extend(options);
        arguments.push(image.text());
        tool("mke2fs", &arguments);
        image
    }

    pub fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub fn load(&self) -> MemoryDevice {
        MemoryDevice::from_image(&self.path).unwrap()
    }

    /// e2fsck finds no fault.
    pub fn check_errors(&self) {
        let output = run("e2fsck", &["-f", "-n", self.text()]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{text}");
    }

    /// e2fsck finds no fault, and has nothing to say beyond its summary.
    pub fn check_clean(&self) {
        let output = run("e2fsck", &["-f", "-n", self.text()]);
        let text = String::from_utf8_lossy(&output.stdout);
        // a truncation leaves a tree as high as it was, as in Linux
        let parts = ["Pass ", " files (", "extent tree (at level 1) could be shorter"];
        let known =
            |line: &str| parts.iter().any(|part| line.contains(part)) || line.trim().is_empty();
        let strange: Vec<_> = text.lines().filter(|line| !known(line)).collect();
        assert!(
            output.status.code() == Some(0) && strange.is_empty(),
            "{:?}: {text}",
            output.status
        );
    }
}

/// A block of the volume on a device.
pub fn block(device: &MemoryDevice, superblock: &Superblock, at: BlockAddr) -> Vec<u8> {
    let size = superblock.block_size() as usize;
    let start = at.0 * size as u64;
    let within = (start % 4096) as usize;
    let whole = device.bytes(Lba(start / 4096)).map_or([0; 4096], |bytes| **bytes);
    whole[within..within + size].to_vec()
}

/// The first superblock's bytes.
pub fn superblock_bytes(device: &MemoryDevice) -> [u8; 1024] {
    device.bytes(Lba(0)).unwrap()[1024..2048].try_into().unwrap()
}
