//! Damage that is met only when a volume is mounted: an error, and no panic, no endless loop.
//!
//! `DOVETAIL_SEEDS=n` tries that many damaged images of each kind.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::TempImage;
use dovetail_block::{Lba, MemoryDevice};
use dovetail_ext::{Ext, Options, fsck};
use dovetail_testkit::exercise::{Generator, Profile, Subject};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::FileSystem;

fn mount(device: MemoryDevice) -> Result<Ext<MemoryDevice>, dovetail_ext::Error> {
    Ext::mount(device, Options::default(), SimTime::ZERO)
}

/// A volume with all sorts of files, in the midst of a mount.
fn used(kind: &str) -> MemoryDevice {
    let device = TempImage::mke2fs(24 << 20, &kind.split(' ').collect::<Vec<_>>()).load();
    let mut subject = Subject::new(mount(device).unwrap());
    let mut operations =
        Generator::new(5, Profile { file_end: 400_000, many: 300, ..Profile::default() });
    for n in 0..1200 {
        let _ = subject.apply(&operations.next_step());
        if n == 900 {
            // half of it in place, half in the journal
            let device = subject.fs.unmount().unwrap();
            subject = Subject::new(mount(device).unwrap());
        }
    }
    subject.fs.sync().unwrap();
    subject.fs.into_device()
}

/// Changes a few bytes: single ones, words that become small, large or another word of the block.
fn damage(device: &mut MemoryDevice, blocks: &[u64], rng: &mut Rng) {
    for _ in 0..1 + rng.below(6) {
        let block = blocks[rng.below(blocks.len() as u64) as usize];
        let Some(bytes) = device.bytes_mut(Lba(block)) else { continue };
        let at = (rng.below(1024) * 4) as usize;
        let other = (rng.below(1024) * 4) as usize;
        match rng.below(5) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at..at + 4].copy_from_slice(&(rng.below(40) as u32).to_le_bytes()),
            2 => bytes[at..at + 4].fill(0xFF),
            3 => bytes[at..at + 2].copy_from_slice(&(rng.below(65_536) as u16).to_le_bytes()),
            _ => {
                let word: [u8; 4] = bytes[other..other + 4].try_into().unwrap();
                bytes[at..at + 4].copy_from_slice(&word);
            }
        }
    }
}

fn run(kind: &str, seeds: u64) {
    let whole = used(kind);
    let blocks: Vec<u64> = whole.used().map(|(lba, _)| lba.0).collect();
    let seeds = std::env::var("DOVETAIL_SEEDS").map_or(seeds, |seeds| seeds.parse().unwrap());
    let mut mounted = 0;
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let mut device = whole.clone();
        // the first blocks have the superblock and the descriptors, few others lead anywhere
        let chosen = if rng.chance(0.2) { &blocks[..8] } else { &blocks };
        damage(&mut device, chosen, &mut rng);
        let Ok(fs) = mount(device) else { continue };
        mounted += 1;
        let mut subject = Subject::new(fs);
        let _ = subject.tree();
        let mut operations =
            Generator::new(5, Profile { file_end: 400_000, many: 300, ..Profile::default() });
        for _ in 0..150 {
            let _ = subject.apply(&operations.next_step());
        }
        let _ = subject.fs.sync();
        let _ = subject.tree();
        let _ = Box::new(subject.fs).unmount();
    }
    assert!(mounted > seeds / 4, "{kind}: {mounted}");
}

#[test]
fn of_ext3() {
    run("-t ext3 -b 1024 -I 256", 300);
    run("-t ext3 -b 4096 -I 128", 300);
}

#[test]
fn of_ext4() {
    run("-t ext4 -b 1024 -O ^metadata_csum", 300);
    run("-t ext4 -b 4096 -O ^metadata_csum,^uninit_bg", 300);
    run("-t ext4 -b 1024", 200);
}

/// Only descriptors with checksums say which bitmaps were never written.
#[test]
fn without_checksums_of_groups_their_flags_say_nothing() {
    let mut device = TempImage::mke2fs(24 << 20, &["-t", "ext3", "-b", "1024"]).load();
    let mut subject = Subject::new(mount(device).unwrap());
    let mut operations = Generator::new(5, Profile::default());
    (0..200).for_each(|_| drop(subject.apply(&operations.next_step())));
    device = subject.fs.unmount().unwrap();
    for group in 0..3 {
        device.bytes_mut(Lba(0)).unwrap()[2048 + 32 * group + 0x12] |= 3;
    }
    let mut subject = Subject::new(mount(device).unwrap());
    (0..200).for_each(|_| drop(subject.apply(&operations.next_step())));
    TempImage::of(&subject.fs.unmount().unwrap()).check_errors();
}

/// Sizes of inodes' fields go in words; a wish for another one is a wish for less.
#[test]
fn a_strange_wish_for_larger_inodes_makes_no_strange_inodes() {
    let mut device = TempImage::mke2fs(24 << 20, &["-t", "ext4", "-O", "^metadata_csum"]).load();
    device.bytes_mut(Lba(0)).unwrap()[1024 + 0x15E] = 31;
    let mut subject = Subject::new(mount(device).unwrap());
    let mut operations = Generator::new(5, Profile::default());
    (0..100).for_each(|_| drop(subject.apply(&operations.next_step())));
    TempImage::of(&subject.fs.unmount().unwrap()).check_errors();
}

/// The record that hides the checksum has a type, also where others have none.
#[test]
fn checksums_of_directories_do_without_file_types() {
    let device = TempImage::mke2fs(24 << 20, &["-t", "ext4", "-O", "^filetype"]).load();
    let mut subject = Subject::new(mount(device).unwrap());
    let mut operations = Generator::new(5, Profile::default());
    (0..300).for_each(|_| drop(subject.apply(&operations.next_step())));
    let device = subject.fs.unmount().unwrap();
    TempImage::of(&device).check_errors();
    let report = fsck::check(device, fsck::Options::default()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}
