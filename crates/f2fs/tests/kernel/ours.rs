//! Images that we write, crash and recover ourselves.

use std::path::Path;

use dovetail_block::{MemoryDevice, Scheduler};
use dovetail_f2fs::{F2fs, Options};
use dovetail_testkit::exercise::{Generator, Op, Profile, Subject};
use dovetail_time::SimTime;
use dovetail_vfs::{Attr, Caller, FileSystem, NewNode};
use md5::{Digest, Md5};
use serde_json::json;

use crate::common::manifest::Manifest;
use crate::common::mkfs;

const SIZE: u64 = 128 << 20;
const FEATURES: [&str; 2] =
    ["-O", "extra_attr,inode_checksum,sb_checksum,inode_crtime,flexible_inline_xattr"];

/// Modes in which the device moves updates; the volume stays one that the kernel knows.
const REMAPPED: [&str; 2] = ["mode=rm-ipu", "mode=rm-ipu,remap=fsync"];

pub(crate) fn mount<D: Scheduler>(device: D, options: &str) -> F2fs<D> {
    F2fs::mount(device, Options::parse(options).unwrap(), SimTime::ZERO).unwrap()
}

/// A volume with the traces of random operations; odd seeds have features.
fn made(seed: u64, options: &str) -> F2fs<MemoryDevice> {
    let features: &[&str] = if seed % 2 == 1 { &FEATURES } else { &[] };
    exercised(mkfs(SIZE, features), seed, options)
}

/// A volume after random operations.
pub(crate) fn exercised<D: Scheduler>(device: D, seed: u64, options: &str) -> F2fs<D> {
    let mut subject = Subject::new(mount(device, options));
    let profile = Profile { file_end: 5 << 20, many: 300, ..Profile::default() };
    let mut operations = Generator::new(seed, profile);
    for _ in 0..600 {
        let step = operations.next_step();
        // the years that it sets are beyond what fits in the nanoseconds of a manifest
        if !matches!(step.op, Op::SetAttr { changes, .. } if changes.mtime.is_some()) {
            let _ = subject.apply(&step);
        }
    }
    subject.release_all().unwrap();
    subject.fs
}

/// Makes an image and unmounts it.
pub(crate) fn make(image: &Path, seed: u64) {
    made(seed, "").unmount().unwrap().write_to(image).unwrap();
}

/// The same in a mode that remaps.
pub(crate) fn make_remapped(image: &Path, seed: u64) {
    let fs = made(seed, REMAPPED[seed as usize % 2]);
    assert!(fs.events().remapped_blocks > 0);
    fs.unmount().unwrap().write_to(image).unwrap();
}

/// Makes one, fsyncs files in it, and leaves it as a power cut does.
pub(crate) fn crash(image: &Path, seed: u64) -> Manifest {
    leave(image, made(seed, ""))
}

/// The same in a mode that remaps.
pub(crate) fn crash_remapped(image: &Path, seed: u64) -> Manifest {
    leave(image, made(seed, REMAPPED[seed as usize % 2]))
}

fn leave(image: &Path, mut fs: F2fs<MemoryDevice>) -> Manifest {
    let fsynced = fsync_files(&mut fs);
    fs.into_device().write_to(image).unwrap();
    fsynced
}

/// Syncs the volume and fsyncs twenty files that no checkpoint has yet.
pub(crate) fn fsync_files<D: Scheduler>(fs: &mut F2fs<D>) -> Manifest {
    fs.sync().unwrap();
    let mut fsynced = Manifest::new();
    for n in 0..20 {
        let name = format!("fsynced {n}");
        let caller = Caller {
            uid: n,
            gid: 7,
            now: dovetail_vfs::Timestamp { seconds: 1_700_100_000, nanoseconds: n },
        };
        let node = NewNode { mode: 0o100_640, rdev: (0, 0) };
        let ino = fs.create(&caller, fs.root(), name.as_bytes(), &node).unwrap().ino;
        let content = vec![n as u8 + 1; n as usize * 7001];
        // an update and blocks that are new
        fs.write(&caller, ino, u64::from(n) * 100, &content[..content.len() / 2]).unwrap();
        fs.fsync(ino, false).unwrap();
        fs.write(&caller, ino, u64::from(n) * 100, &content).unwrap();
        fs.fsync(ino, false).unwrap();
        let mut whole = vec![0; n as usize * 100];
        whole.extend_from_slice(&content);
        let whole = if content.is_empty() { content } else { whole };
        fsynced.insert(
            format!("./{name}"),
            line(&format!("./{name}"), &fs.getattr(ino).unwrap(), &whole),
        );
    }
    fsynced
}

/// Mounts an image that a power cut left, and unmounts it.
pub(crate) fn recover(image: &Path) {
    let fs = mount(MemoryDevice::from_image(image).unwrap(), "");
    fs.unmount().unwrap().write_to(image).unwrap();
}

fn line(path: &str, attr: &Attr, content: &[u8]) -> serde_json::Value {
    let md5: String = Md5::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "path": path,
        "mode": format!("0o{:o}", attr.mode),
        "uid": attr.uid,
        "gid": attr.gid,
        "nlink": attr.links,
        "mtime_ns": attr.mtime.seconds * 1_000_000_000 + i64::from(attr.mtime.nanoseconds),
        "size": attr.size,
        "md5": md5,
    })
}
