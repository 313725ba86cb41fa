//! The sound images that inputs are made of.

use dovetail_block::MemoryDevice;
use dovetail_ext::fsck::{Options as CheckOptions, check};
use dovetail_ext::{Ext, Options};
use dovetail_testkit::exercise::{Generator, Profile, Subject};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, NewNode};

use crate::common::{TempImage, kernel_image};
use crate::input::Seed;

/// Number of small images: they come often, those of a kernel now and then, since they take far
/// longer.
pub(crate) const SMALL: usize = 6;

/// The small images, then four of a kernel. Most have no checksums, so that damage gets further
/// than to them.
pub(crate) fn seeds() -> Vec<Seed> {
    let plain = "-t ext4 -J size=1 -b 1024 -O ^metadata_csum";
    vec![
        Seed::new("ext4, crashed", crashed(small_image(plain, 4))),
        Seed::new("ext3, crashed", crashed(small_image("-t ext3 -J size=1 -b 1024 -I 256", 5))),
        Seed::new("ext4", small_image(plain, 6)),
        Seed::new("ext3", small_image("-t ext3 -J size=4 -b 4096 -I 128 -O ^filetype", 7)),
        Seed::new(
            "large blocks",
            crashed(small_image("-t ext4 -J size=4 -b 4096 -O ^metadata_csum,uninit_bg", 8)),
        ),
        Seed::new(
            "checksums",
            crashed(small_image("-t ext4 -J size=1 -b 1024 -O ^resize_inode", 9)),
        ),
        Seed::new("kernel, ext3", kernel_image("ext3-default")),
        Seed::new("kernel, ext4", kernel_image("ext4-default")),
        Seed::new("kernel, ext3, not unmounted", kernel_image("ext3-crash")),
        Seed::new("kernel, ext4, not unmounted", kernel_image("ext4-crash")),
    ]
}

fn mount(device: MemoryDevice) -> Ext<MemoryDevice> {
    Ext::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

/// A volume with all sorts of files, and one in many pieces.
fn small_image(kind: &str, seed: u64) -> MemoryDevice {
    let device = TempImage::mke2fs(20 << 20, &kind.split(' ').collect::<Vec<_>>()).load();
    let mut subject = Subject::new(mount(device));
    let profile = Profile { file_end: 400_000, many: 100, ..Profile::default() };
    let mut operations = Generator::new(seed, profile);
    for _ in 0..300 {
        let _ = subject.apply(&operations.next_step());
    }
    let mut fs = subject.fs;
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let (root, caller) = (fs.root(), Caller::default());
    let ino = fs.create(&caller, root, b"in pieces", &node).unwrap().ino;
    for n in 0..400 {
        fs.write(&caller, ino, n * 8192, &[b'p'; 1000]).unwrap();
    }
    fs.unmount().unwrap()
}

/// The image after more work and a power cut: some of it in place, some in the journal, with
/// orphans.
fn crashed(image: MemoryDevice) -> MemoryDevice {
    let mut subject = Subject::new(mount(image));
    let mut operations =
        Generator::new(1, Profile { file_end: 100_000, many: 0, ..Profile::default() });
    for _ in 0..150 {
        let _ = subject.apply(&operations.next_step());
    }
    let mut fs = subject.fs;
    let (root, caller) = (fs.root(), Caller::default());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    for name in [b"orphan 1", b"orphan 2"] {
        let ino = fs.create(&caller, root, name, &node).unwrap().ino;
        fs.write(&caller, ino, 0, &[b'o'; 50_000]).unwrap();
        fs.hold(ino);
        fs.unlink(&caller, root, name).unwrap();
    }
    fs.sync().unwrap();
    let crashed = fs.into_device();
    let report = check(crashed.clone(), CheckOptions::default()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    crashed
}
