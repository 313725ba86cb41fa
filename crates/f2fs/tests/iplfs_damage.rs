//! Damaged IPLFS volumes: whatever the image says, nothing panics and everything ends.
//!
//! `DOVETAIL_SEED=n` runs one alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::iplfs::{iplfs_device, iplfs_options};
use dovetail_block::{AREA_BLOCKS, Lba, MemoryDevice};
use dovetail_f2fs::format::{CRC_SEED, MAGIC, crc32};
use dovetail_f2fs::{F2fs, Options, Volume};
use dovetail_testkit::exercise::{Changes, read_everything};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, NewNode};

/// A volume after a power cut: a discard log, orphans, records of fsyncs.
fn sound() -> MemoryDevice {
    let device = iplfs_device(64 << 20, &iplfs_options());
    let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let (root, caller) = (fs.root(), Caller::default());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let mut inos = Vec::new();
    for n in 0..30_u64 {
        let ino = fs.create(&caller, root, format!("file {n}").as_bytes(), &node).unwrap().ino;
        fs.write(&caller, ino, n * 100_000, &vec![b'x'; 1000 * n as usize + 10]).unwrap();
        inos.push(ino);
    }
    fs.hold(inos[7]);
    fs.sync().unwrap();
    fs.unlink(&caller, root, b"file 7").unwrap();
    (0..30_u64)
        .step_by(2)
        .for_each(|n| fs.write(&caller, inos[n as usize], 8192 * n, &[b'y'; 3 * 4096]).unwrap());
    fs.sync().unwrap();
    for n in [3, 4, 5] {
        fs.write(&caller, inos[n], 0, &[b'z'; 50_000]).unwrap();
        fs.fsync(inos[n], false).unwrap();
    }
    fs.into_device()
}

/// A value that is more interesting than most.
fn value(rng: &mut Rng) -> u64 {
    let area = rng.below(8) * AREA_BLOCKS;
    match rng.below(6) {
        0 => rng.next_u64() >> rng.below(64),
        1 => area + rng.below(400),
        2 => area.wrapping_sub(1 + rng.below(3)),
        3 => u64::MAX - rng.below(3),
        4 => rng.below(100),
        _ => 0,
    }
}

/// Changes a field. Heads and superblocks get the checksum of what they say then, and their copies
/// the same, mostly.
fn damage(device: &mut MemoryDevice, rng: &mut Rng) {
    let blocks: Vec<u64> = device.used().map(|(lba, _)| lba.0).collect();
    let metadata: Vec<u64> = blocks.iter().copied().filter(|&block| block < AREA_BLOCKS).collect();
    let from = if rng.chance(0.6) { &metadata } else { &blocks };
    let block = from[rng.below(from.len() as u64) as usize];
    let copy = copy_of(device, block);
    let bytes = device.bytes_mut(Lba(block)).unwrap();
    let (first, end) = if block < 2 { (1024, 4092) } else { (0, 4096) };
    let at =
        if rng.chance(0.5) { first + rng.below(220) } else { first + rng.below(end - first - 8) }
            as usize;
    let width = [1, 2, 4, 8][rng.below(4) as usize];
    bytes[at..at + width].copy_from_slice(&value(rng).to_le_bytes()[..width]);
    let Some(copy) = copy.filter(|_| rng.chance(0.9)) else { return };
    let sum =
        if block < 2 { crc32(MAGIC, &bytes[1024..4092]) } else { crc32(CRC_SEED, &bytes[..4092]) };
    bytes[4092..].copy_from_slice(&sum.to_le_bytes());
    let bytes = *bytes;
    *device.bytes_mut(Lba(copy)).unwrap() = bytes;
}

/// The other superblock, or the tail of the pack that counts if the block is its head.
fn copy_of(device: &MemoryDevice, block: u64) -> Option<u64> {
    if block < 2 {
        return Some(1 - block);
    }
    let volume = Volume::open(device.clone()).ok()?;
    let (superblock, checkpoint) = (volume.superblock(), volume.checkpoint());
    let start =
        superblock.cp_start.0 + u64::from(checkpoint.pack - 1) * u64::from(superblock.pack_blocks);
    (block == start).then(|| start + u64::from(checkpoint.total_blocks) - 1)
}

/// Opens, mounts and uses a volume after one to three damages; whether it could be mounted.
fn try_one(sound: &MemoryDevice, seed: u64) -> bool {
    let (mut device, mut rng) = (sound.clone(), Rng::new(seed));
    for _ in 0..=rng.below(3) {
        damage(&mut device, &mut rng);
    }
    if let Ok(mut volume) = Volume::open(device.clone()) {
        drop(volume.discard_log());
    }
    let options = Options::parse(if rng.chance(0.2) { "ro" } else { "rw" }).unwrap();
    let Ok(mut fs) = F2fs::mount(device, options, SimTime::ZERO) else { return false };
    read_everything(&mut fs, 1 << 20);
    let mut changes = Changes::new(fs, 50, &mut rng);
    (0..40).for_each(|_| changes.change());
    changes.sync();
    drop(changes.into_inner().live_blocks());
    true
}

#[test]
fn damaged_volumes_are_read_mounted_and_changed() {
    let sound = sound();
    let seeds = match std::env::var("DOVETAIL_SEED") {
        Ok(seed) => seed.parse().unwrap()..seed.parse::<u64>().unwrap() + 1,
        Err(_) => 0..std::env::var("DOVETAIL_SEEDS").map_or(1500, |count| count.parse().unwrap()),
    };
    let (mut mounted, mut refused) = (0, 0);
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| try_one(&sound, seed));
        let outcome = outcome.unwrap_or_else(|_| panic!("alone: DOVETAIL_SEED={seed}"));
        *(if outcome { &mut mounted } else { &mut refused }) += 1;
    }
    assert!(
        mounted + refused < 100 || (mounted > 100 && refused > 100),
        "{mounted} mounted, {refused} refused"
    );
}
