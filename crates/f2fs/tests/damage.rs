//! Damaged images: whatever the bytes say, reading ends, and with a typed error at worst.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_vfs::kit::VolumeTree;
use std::sync::OnceLock;

use crate::common::bed::{Bed, copied, zoned_beds};
use crate::common::{kernel_image, mkfs, tool};
use dovetail_block::{BlockDevice, Lba, MemoryDevice};
use dovetail_f2fs::fsck::{self, Finding};
use dovetail_f2fs::{ClusterFault, Corrupt, Damage, Error, F2fs, Incompatible, Visit, Volume};
use dovetail_time::SimTime;
use proptest::prelude::*;

/// A small image, and the blocks in it that are not zero.
fn image() -> &'static (MemoryDevice, Vec<Lba>) {
    static IMAGE: OnceLock<(MemoryDevice, Vec<Lba>)> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let image = kernel_image("f2fs-default"); // without checksums of inodes
        // contents of files change nothing: metadata are the blocks before the main area, and the
        // nodes
        let mut used: Vec<_> = image.used().map(|(lba, _)| lba).collect();
        let main = Volume::open(image.clone()).unwrap().superblock().main_start.0;
        used.retain(|block| block.0 < main + 512 * 4);
        (image, used)
    })
}

/// The same tree on one zoned device and on two.
fn zoned_images() -> &'static [(Bed, MemoryDevice, Vec<Lba>)] {
    static IMAGES: OnceLock<Vec<(Bed, MemoryDevice, Vec<Lba>)>> = OnceLock::new();
    IMAGES.get_or_init(|| {
        let filled = |(_, empty)| {
            let device = copied(kernel_image("f2fs-default"), empty);
            let image = device.image();
            let mut used: Vec<_> = image.used().map(|(lba, _)| lba).collect();
            let main = Volume::open(image.clone()).unwrap().superblock().main_start.0;
            used.retain(|block| block.0 < main + 512 * 4);
            (device.bed(), image, used)
        };
        zoned_beds().map(filled).into()
    })
}

/// Opens and reads everything, at most 16 MiB a file; returns how much was found and how much was
/// wrong.
fn read_all(device: impl BlockDevice) -> Result<(usize, usize), Error> {
    let mut volume = Volume::open(device)?;
    let root = volume.root()?;
    let (mut good, mut bad) = (0, 0);
    let mut buffer = vec![0; 1 << 20];
    volume.walk(root, |volume, entry| {
        let Ok(inode) = entry.inode else {
            bad += 1;
            return Visit::Enter;
        };
        good += 1;
        let _ = volume.xattrs(&inode);
        let _ = volume.read_link(&inode);
        let mut at = 0;
        for _ in 0..16 {
            let Ok(next) = volume.next_data(&inode, at) else { break };
            match volume.read(&inode, next, &mut buffer) {
                Ok(len) if len > 0 => at = next + len as u64,
                _ => break,
            }
        }
        Visit::Enter
    });
    Ok((good, bad))
}

#[test]
fn an_undamaged_image_reads_without_an_error() {
    assert_eq!(read_all(image().0.clone()), Ok((1095, 0)));
    for (bed, image, _) in zoned_images() {
        assert_eq!(read_all(bed.device(image)), Ok((1095, 0)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_panic_or_hang(flips in prop::collection::vec((any::<prop::sample::Index>(), 0..4096_usize, 1..=255_u8), 1..60)) {
        let (image, used) = image();
        let mut image = image.clone();
        for (block, byte, mask) in flips {
            image.bytes_mut(used[block.index(used.len())]).unwrap()[byte] ^= mask;
        }
        let _ = read_all(image);
    }

    #[test]
    fn nor_do_they_on_zones(which in 0..2_usize, flips in prop::collection::vec((any::<prop::sample::Index>(), 0..4096_usize, 1..=255_u8), 1..60)) {
        let (bed, image, used) = &zoned_images()[which];
        let mut image = image.clone();
        for (block, byte, mask) in flips {
            image.bytes_mut(used[block.index(used.len())]).unwrap()[byte] ^= mask;
        }
        let _ = read_all(bed.device(&image));
    }
}

/// First two blocks of a file's stored cluster.
fn cluster_of(image: &MemoryDevice, path: &str) -> [Lba; 2] {
    let mut volume = Volume::open(image.clone()).unwrap();
    let inode = volume.resolve(path.as_bytes()).unwrap();
    [1, 2].map(|block| Lba(volume.block_of(&inode, block).unwrap().0))
}

fn read_start(image: MemoryDevice, path: &str) -> Result<usize, Error> {
    let mut volume = Volume::open(image)?;
    let inode = volume.resolve(path.as_bytes())?;
    volume.read(&inode, 100, &mut [0; 10])
}

#[test]
fn damaged_clusters_are_named() {
    let image = kernel_image("f2fs-compressed");
    let fault_with = |path: &str, byte: usize, mask: u8| {
        let mut image = image.clone();
        let first = cluster_of(&image, path)[0];
        image.bytes_mut(first).unwrap()[byte] ^= mask;
        match read_start(image, path).unwrap_err() {
            Error::Corrupt(Corrupt::Format(Damage::Cluster { block: 0, fault, .. })) => fault,
            error => panic!("{path}: {error}"),
        }
    };
    assert!(matches!(fault_with("zstd/text", 24, 1), ClusterFault::Checksum { .. }));
    assert!(matches!(fault_with("zstd/text", 4, 1), ClusterFault::Checksum { .. }));
    for name in ["lz4", "lzo", "lzo-rle"] {
        assert!(matches!(fault_with(&format!("{name}/text"), 2, 8), ClusterFault::Length { .. }));
        let short = fault_with(&format!("{name}/text"), 0, 0x10);
        assert!(
            matches!(short, ClusterFault::Stream { .. } | ClusterFault::Size { .. }),
            "{short}"
        );
    }
    assert!(matches!(fault_with("lzo/text", 24, 0x10), ClusterFault::Stream { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_in_clusters_never_panic_or_hang(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..2_usize, 0..4096_usize, 1..=255_u8), 1..30),
    ) {
        static IMAGE: OnceLock<(MemoryDevice, Vec<[Lba; 2]>)> = OnceLock::new();
        let names = ["text", "far", "zeros"];
        let (image, clusters) = IMAGE.get_or_init(|| {
            let image = kernel_image("f2fs-compressed");
            let paths = ["lz4", "lz4hc", "zstd", "lzo", "lzo-rle"].map(|name| names.map(|file| format!("{name}/{file}")));
            let clusters = paths.iter().flatten().map(|path| cluster_of(&image, path)).collect();
            (image, clusters)
        });
        let mut image = image.clone();
        for (cluster, block, byte, mask) in flips {
            if let Some(bytes) = image.bytes_mut(clusters[cluster.index(clusters.len())][block]) {
                bytes[byte] ^= mask;
            }
        }
        let _ = read_all(image);
    }
}

#[test]
fn what_is_no_volume_is_said_to_be_none() {
    assert_eq!(Volume::open(MemoryDevice::new(100_000)).unwrap_err(), Error::NotF2fs { found: 0 });
    assert_eq!(Volume::open(MemoryDevice::default()).unwrap_err(), Error::NotF2fs { found: 0 });
    let mut cut = image().0.clone();
    cut.resize(5000);
    assert_eq!(
        Volume::open(cut).unwrap_err(),
        Error::from(Damage::Truncated { found: 5000, expected: 65_536 })
    );
}

#[test]
fn one_good_superblock_and_one_good_checkpoint_pack_are_enough() {
    let mut damaged = kernel_image("f2fs-features"); // with a checksum of the superblock
    damaged.bytes_mut(Lba(0)).unwrap()[1024 + 200] ^= 1;
    assert!(read_all(damaged.clone()).is_ok(), "the second copy");
    let version = Volume::open(damaged.clone()).unwrap().checkpoint().clone();
    let head = u64::from(512 * version.pack);
    damaged.bytes_mut(Lba(head)).unwrap()[8] ^= 1;
    let older = Volume::open(damaged.clone()).unwrap().checkpoint().clone();
    assert_eq!(older.version, version.version - 1);
    let other = u64::from(512 * older.pack);
    damaged.bytes_mut(Lba(other)).unwrap()[8] ^= 1;
    let error = Volume::open(damaged.clone()).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt(Corrupt::Format(Damage::BothCheckpoints { .. }))),
        "{error}"
    );
    damaged.bytes_mut(Lba(1)).unwrap()[1024 + 200] ^= 1;
    let error = Volume::open(damaged).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt(Corrupt::Format(Damage::BothSuperblocks { .. }))),
        "{error}"
    );
}

/// The first copy says what nobody can do; the second one is whole.
#[test]
fn a_superblock_that_cannot_be_true_gives_way_to_its_copy() {
    let whole = mkfs(64 << 20, &["-q"]);
    for (offset, byte) in [(0x886, 0x5a), (0x25, 0x5a)] {
        let mut damaged = whole.clone();
        damaged.bytes_mut(Lba(0)).unwrap()[1024 + offset] ^= byte;
        assert!(Volume::open(damaged.clone()).is_ok(), "{offset:#x}");
        let found = fsck::check(damaged, fsck::Options::default(), |_| {}).unwrap();
        let is_named = |f: &Finding| matches!(f, Finding::SuperblockCopy { copy: 0, .. });
        assert!(found.findings.iter().any(is_named), "{offset:#x}");
    }
}

#[test]
fn a_volume_that_nobody_writes_is_read_alone() {
    let device = mkfs(200 << 20, &["-q", "-O", "ro"]);
    assert!(read_all(device.clone()).is_ok());
    let refused = Error::from(Incompatible::ReadOnlyVolume);
    assert_eq!(fsck::check(device.clone(), fsck::Options::default(), |_| {}).unwrap_err(), refused);
    let options = dovetail_f2fs::Options { read_only: true, ..Default::default() };
    assert_eq!(F2fs::mount(device, options, SimTime::ZERO).err(), Some(refused));
}

#[test]
fn features_that_are_not_supported_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::File::create(&path).unwrap().set_len(128 << 20).unwrap();
    tool("mkfs.f2fs", &["-q", path.to_str().unwrap()]);
    let mut image = MemoryDevice::from_image(&path).unwrap();
    for block in [0, 1] {
        image.bytes_mut(Lba(block)).unwrap()[1024 + 2181] |= 0x80;
    }
    let error = Volume::open(image).unwrap_err();
    assert_eq!(error.to_string(), "the volume uses features that are not supported: device_alias");
}
