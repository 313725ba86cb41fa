//! Damaged images: whatever the bytes say, reading ends, and with a typed error at worst.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::sync::OnceLock;

use crate::common::kernel_image;
use dovetail_block::{Lba, MemoryDevice};
use dovetail_ext::format::{FileType, GroupNo};
use dovetail_ext::fsck::{Options, check};
use dovetail_ext::{Corrupt, Damage, Error, Place, Visit, Volume};
use proptest::prelude::*;

/// An image, and its blocks that hold something, the first ones and those of the journal's start
/// among them.
struct Subject {
    image: MemoryDevice,
    used: Vec<Lba>,
}

fn subject(name: &'static str, index: usize) -> &'static Subject {
    static SUBJECTS: [OnceLock<Subject>; 4] = [const { OnceLock::new() }; 4];
    SUBJECTS[index].get_or_init(|| {
        let mut image = kernel_image(name);
        if name == "ext4-default" {
            // without the feature metadata_csum, so that damage is not found by checksums alone
            image.bytes_mut(Lba(0)).unwrap()[1024 + 0x65] &= !4;
        }
        let used = image.used().map(|(lba, _)| lba).collect();
        Subject { image, used }
    })
}

/// Opens and reads everything, at most 16 MiB a file; returns how much was found and how much was
/// wrong.
fn read_all(image: MemoryDevice) -> Result<(usize, usize), Error> {
    let mut volume = Volume::open(image)?;
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
        if inode.is_dir() {
            let _ = volume.lookup(&inode, b"no-such-name");
        }
        let mut at = 0;
        let reads = if inode.file_type() == FileType::REGULAR { 16 } else { 0 };
        for _ in 0..reads {
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
    assert_eq!(read_all(subject("ext3-default", 0).image.clone()), Ok((1094, 0)));
    assert_eq!(read_all(subject("ext4-default", 3).image.clone()), Ok((1094, 0)));
    assert_eq!(read_all(subject("ext4-crash", 2).image.clone()), Ok((2216, 0)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// The superblock's group of bytes is damaged in one case of four; the rest of the image
    /// always.
    #[test]
    fn flipped_bytes_never_panic_or_hang(
        which in 0..4_usize,
        superblock in prop::option::weighted(0.25, (1024..2044_usize, 1..=255_u8)),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..4096_usize, 1..=255_u8), 1..60),
    ) {
        let name = ["ext3-default", "ext3-crash", "ext4-crash", "ext4-default"][which];
        let Subject { image, used } = subject(name, which);
        let mut image = image.clone();
        for (block, byte, mask) in flips {
            image.bytes_mut(used[block.index(used.len())]).unwrap()[byte] ^= mask;
        }
        if let Some((byte, mask)) = superblock {
            image.bytes_mut(Lba(0)).unwrap()[byte] ^= mask;
        }
        let _ = check(image.clone(), Options::default());
        let _ = read_all(image);
    }
}

#[test]
fn what_is_damaged_is_named() {
    let whole = &subject("ext4-crash", 2).image;
    let damaged = |byte: usize, backup: bool| {
        let mut image = whole.clone();
        image.bytes_mut(Lba(0)).unwrap()[byte] ^= 1;
        if backup {
            // block 8193 of 1 KiB
            image.bytes_mut(Lba(2048)).unwrap()[1024 + 0x30] ^= 1;
        }
        image
    };
    let first = |error: &Corrupt| matches!(error, Corrupt::Checksum { place, .. } if *place == Place::Superblock(GroupNo(0)));
    let error = Volume::open(damaged(1024 + 0x30, true)).unwrap_err();
    assert!(matches!(&error, Error::Corrupt(error) if first(error)), "{error}");
    assert!(matches!(Volume::open(damaged(1024 + 0x38, true)).unwrap_err(), Error::NotExt { .. }));
    // a lost magic number is damage where there is a backup
    let volume = Volume::open(damaged(1024 + 0x38, false)).unwrap();
    assert!(volume.superblock_damage().unwrap().to_string().contains("s_magic"));
    // revision and features: unknown ones are damage if the checksum is wrong
    for offset in [0x4d, 0x62] {
        let volume = Volume::open(damaged(1024 + offset, false)).unwrap();
        assert!(first(volume.superblock_damage().unwrap()), "{offset:#x}");
    }
    assert_eq!(read_all(damaged(1024 + 0x38, false)), Ok((2216, 0)));
    // by the backup the volume is what it is by the first one, what its journal holds included
    let volume = Volume::open(damaged(1024 + 0x30, false)).unwrap();
    assert!(first(volume.superblock_damage().unwrap()) && volume.restored_superblock().is_some());
    assert_eq!(volume.recovery(), Volume::open(whole.clone()).unwrap().recovery());
    assert!(volume.recovery().is_some());
    assert_eq!(read_all(damaged(1024 + 0x30, false)), Ok((2216, 0)));
    let mut cut = whole.clone();
    cut.resize(5000);
    let (found, expected) = (5000 * 4096, 65_536 * 4096);
    assert_eq!(Volume::open(cut).unwrap_err(), Damage::Truncated { found, expected }.into());
}
