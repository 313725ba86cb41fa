//! The sound images that inputs are made of.

use std::fs;
use std::path::Path;

use dovetail_block::{Lba, MemoryDevice, Scheduler};
use dovetail_f2fs::F2fs;
use dovetail_f2fs::fsck::{Options, Severity, check, repair};
use dovetail_f2fs::mkfs::MkfsOptions;
use dovetail_testkit::RecordingDevice;
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, NewNode, SetAttr, Timestamp, XattrFlags};

use crate::common::bed::{on_one, on_two};
use crate::common::iplfs::{all_features, iplfs_device, iplfs_options, narrow_options};
use crate::common::lab::{At, Lab};
use crate::common::{kernel_image, tool};
use crate::input::Seed;

/// Number of small images. They come often, those of a kernel now and then, since they take fifty
/// times as long.
pub(crate) const SMALL: usize = 12;

/// The small images, then five of a kernel.
pub(crate) fn seeds() -> Vec<Seed> {
    let folder = tempfile::tempdir().unwrap();
    let small = with_inline(small_image(folder.path(), &[]));
    let features = "extra_attr,inode_checksum,sb_checksum,inode_crtime";
    let features = small_image(folder.path(), &["-O", features]);
    vec![
        Seed::new("crashed", crashed(small.clone())),
        Seed::new("crashed with features", crashed(features.clone())),
        Seed::new("small", small),
        Seed::new("small with features", features),
        Seed::new("IPLFS", iplfs_image(iplfs_options())),
        Seed::new("IPLFS, narrow addresses", iplfs_image(narrow_options())),
        Seed::new("narrow addresses, crashed", crashed(iplfs_image(narrow_options()))),
        Seed::new("IPLFS, crashed", crashed(iplfs_image(iplfs_options()))),
        Seed::zoned("zoned", &with_tree(on_one(96, 2, 2, 8))),
        Seed::zoned("zoned, crashed", &crashed(with_tree(on_one(96, 2, 2, 8)))),
        Seed::zoned("two devices", &with_tree(on_two(64, 96, 4, 3))),
        Seed::zoned("two devices, crashed", &crashed(with_tree(on_two(64, 96, 4, 3)))),
        Seed::new("kernel", kernel_image("f2fs-default")),
        Seed::new("kernel with features", kernel_image("f2fs-features")),
        Seed::new("not unmounted", kernel_image("f2fs-crash")),
        Seed::new("compressed", kernel_image("f2fs-compressed")),
        Seed::new("large NAT and sections", kernel_image("f2fs-largenat-sections")),
    ]
}

/// An IPLFS volume of 64 MiB with directories, a file with direct and indirect nodes, and a discard
/// log.
fn iplfs_image(options: MkfsOptions) -> MemoryDevice {
    let options = MkfsOptions { features: all_features(), ..options };
    with_tree(iplfs_device(64 << 20, &options))
}

/// Directories, a file with direct and indirect nodes, and blocks that were freed, on an empty
/// volume that is not unmounted.
fn with_tree<D: Scheduler>(device: D) -> D {
    let mut fs = F2fs::mount(device, Default::default(), SimTime::ZERO).unwrap();
    let (root, caller) = (fs.root(), Caller::default());
    let file = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let dir =
        fs.create(&caller, root, b"folder", &NewNode { mode: 0o040_755, ..file }).unwrap().ino;
    let large = fs.create(&caller, root, b"large", &file).unwrap().ino;
    fs.write(&caller, large, 0, &vec![7; 4096 * 1500]).unwrap();
    for n in 0..250 {
        let name = format!("a file of number {n}");
        let ino = fs.create(&caller, dir, name.as_bytes(), &file).unwrap().ino;
        fs.write(&caller, ino, 0, name.as_bytes()).unwrap();
    }
    fs.setxattr(&caller, large, b"user.large", &[7; 2000], XattrFlags::default()).unwrap();
    fs.sync().unwrap();
    (0..100).for_each(|n| drop(fs.write(&caller, large, 8192 * n, &[8; 4096])));
    fs.sync().unwrap();
    fs.into_device()
}

/// The image after a power cut that follows some fsyncs, with an orphan in the last checkpoint.
fn crashed<D: Scheduler>(device: D) -> D {
    let mut fs = F2fs::mount(device, Default::default(), SimTime::ZERO).unwrap();
    let caller = Caller { uid: 1, gid: 2, now: Timestamp::default() };
    let root = fs.root();
    let make = |fs: &mut F2fs<D>, name: &[u8], size: usize| {
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let ino = fs.create(&caller, root, name, &node).unwrap().ino;
        fs.write(&caller, ino, 0, &vec![b'x'; size]).unwrap();
        ino
    };
    let orphan = make(&mut fs, b"an orphan", 50_000);
    fs.hold(orphan);
    fs.unlink(&caller, root, b"an orphan").unwrap();
    let known = make(&mut fs, b"known", 30_000);
    let inline = make(&mut fs, b"inline before", 30);
    fs.sync().unwrap();
    let shorter = SetAttr { size: Some(9_000), ..SetAttr::default() };
    fs.setattr(&caller, known, &shorter).unwrap();
    fs.write(&caller, known, 4096, &[b'y'; 5000]).unwrap();
    fs.write(&caller, inline, 0, &[b'z'; 9000]).unwrap();
    let large = make(&mut fs, b"new large", 4096 * 940);
    fs.setxattr(&caller, large, b"user.large", &[7; 2000], XattrFlags::default()).unwrap();
    let small = make(&mut fs, b"small", 20);
    fs.setxattr(&caller, small, b"user.small", b"value", XattrFlags::default()).unwrap();
    for ino in [known, inline, large, small] {
        fs.fsync(ino, false).unwrap();
    }
    fs.write(&caller, known, 0, &[b'w'; 100]).unwrap();
    fs.fsync(known, false).unwrap();
    let mut crashed = fs.into_device();
    let report = check(&mut crashed, Options::default(), |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    crashed
}

/// 128 MiB with a few files, one of them with direct nodes, and an xattr.
fn small_image(folder: &Path, options: &[&str]) -> MemoryDevice {
    let (image, source) = (folder.join("image"), folder.join("source"));
    let _ = fs::remove_dir_all(&source);
    fs::File::create(&image).unwrap().set_len(128 << 20).unwrap();
    let name = image.to_str().unwrap();
    tool("mkfs.f2fs", &[&["-q", "-f"], options, &[name]].concat());
    fs::create_dir_all(source.join("folder/below")).unwrap();
    fs::create_dir_all(source.join("inline")).unwrap();
    fs::write(source.join("large"), vec![7; 4096 * 960]).unwrap();
    for n in 0..6 {
        fs::write(source.join(format!("folder/a file of number {n}")), format!("{n}")).unwrap();
        fs::write(source.join(format!("inline/{n}")), format!("{n}")).unwrap();
    }
    std::os::unix::fs::symlink("folder/below", source.join("link")).unwrap();
    tool("sload.f2fs", &["-f", source.to_str().unwrap(), name]);
    MemoryDevice::from_image(&image).unwrap()
}

/// Makes a directory and a file inline, as a kernel has them, and lets a repair settle the counts.
fn with_inline(image: MemoryDevice) -> MemoryDevice {
    let mut lab = Lab::new(image);
    let block = **lab.image.bytes(Lba(lab.data("inline", 0).block)).unwrap();
    let at = lab.in_inode("inline", 0);
    let inode = lab.bytes(at.block);
    inode[3] = 0x05;
    inode[16..24].copy_from_slice(&3488_u64.to_le_bytes());
    inode[24..32].copy_from_slice(&1_u64.to_le_bytes());
    inode[348..4052].fill(0);
    inode[364..364 + 23].copy_from_slice(&block[..23]);
    inode[394..394 + 182 * 11].copy_from_slice(&block[30..30 + 182 * 11]);
    inode[394 + 182 * 11..364 + 3488].copy_from_slice(&block[2384..2384 + 182 * 8]);
    let at = lab.in_inode("inline/3", 0);
    let inode = lab.bytes(at.block);
    inode[3] = 0x0B;
    inode[348..4052].fill(0);
    inode[364..370].copy_from_slice(b"inline");
    inode[16..24].copy_from_slice(&6_u64.to_le_bytes());
    inode[24..32].copy_from_slice(&1_u64.to_le_bytes());
    let xattr = At { block: at.block, byte: 4052 - 200 };
    lab.set(xattr, &0xF2F5_2011_u32.to_le_bytes());
    lab.set(xattr.plus(24), &[1, 3, 5, 0, b'a', b'b', b'c', b'v', b'a', b'l', b'u', b'e']);
    let device = RecordingDevice::new(lab.image);
    let recording = device.recording();
    repair(device).unwrap();
    let after = recording.newest();
    let report = check(after.clone(), Options::default(), |_| {}).unwrap();
    assert_eq!(report.count(Severity::Error), 0, "{:?}", report.findings);
    after
}
