//! Reads of a mount that rolls forward: how many there are, and what one that fails does.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;

use dovetail_block::{BlockRange, Lba, MemoryDevice};
use dovetail_f2fs::{F2fs, Options};
use dovetail_testkit::ReadLog;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, NewNode};

use crate::common::{mkfs, strict_fsck};

const FSYNCS: u64 = 1500;
const BLOCK: u64 = 4096;
/// Blocks of the file: more than a node has pointers, so that an fsync may write several nodes.
const BLOCKS: u64 = 4000;

/// A volume whose power was cut after many fsyncs, and the file's content.
fn crashed() -> (MemoryDevice, Vec<u8>) {
    // in place, as small volumes are written, an fsync needs no node
    let options = Options::parse("mode=lfs").unwrap();
    let mut fs = F2fs::mount(mkfs(128 << 20, &[]), options, SimTime::ZERO).unwrap();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&Caller::default(), fs.root(), b"file", &node).unwrap().ino;
    let mut content = vec![1; (BLOCKS * BLOCK) as usize];
    fs.write(&Caller::default(), ino, 0, &content).unwrap();
    fs.sync().unwrap();
    let checkpoints = fs.events().checkpoints;
    let mut rng = Rng::new(7);
    for number in 0..FSYNCS {
        let at = rng.below(BLOCKS) * BLOCK;
        let bytes = [number as u8; BLOCK as usize];
        content[at as usize..][..bytes.len()].copy_from_slice(&bytes);
        fs.write(&Caller::default(), ino, at, &bytes).unwrap();
        fs.fsync(ino, false).unwrap();
    }
    assert_eq!(fs.events().checkpoints, checkpoints, "all of them are in the chain");
    (fs.into_device(), content)
}

/// Mounts the volume and compares the file; returns the reads of the mount.
fn recovered(device: ReadLog, options: Options, content: &[u8]) -> Vec<BlockRange> {
    let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
    let reads = fs.device().reads.clone();
    let ino = fs.lookup(fs.root(), b"file").unwrap().ino;
    let mut found = vec![0; content.len()];
    fs.read(ino, 0, &mut found).unwrap();
    assert!(found == content);
    assert_eq!(strict_fsck(&fs.unmount().unwrap().into_device()), "");
    reads
}

#[test]
fn the_chain_is_read_once_and_with_read_ahead() {
    let (device, content) = crashed();
    let reads = recovered(ReadLog::new(device), Options::default(), &content);
    let mut times = BTreeMap::new();
    reads.iter().flat_map(|range| range.iter()).for_each(|lba| *times.entry(lba).or_insert(0) += 1);
    // the segments of the node logs, three, are read for their summaries before
    let twice = times.values().filter(|times| **times > 1).count();
    assert!(twice < 3 * 512 + 20 && times.values().all(|times| *times < 4), "{twice}, {times:?}");
    // an fsync writes a node at least; as many blocks as a request has are read at a time
    let (blocks, requests) = (times.len() as u64, reads.len() as u64);
    assert!(blocks > FSYNCS && requests < 60 + 2 * blocks / 256, "{blocks} in {requests}");
}

#[test]
fn a_chain_that_does_not_fit_into_memory_is_recovered_all_the_same() {
    let (device, content) = crashed();
    let little = Options { page_cache_bytes: 1 << 16, ..Options::default() };
    let reads = recovered(ReadLog::new(device), little, &content);
    // each of three passes reads it anew, but no block of it more than once
    let blocks: u64 = reads.iter().map(|range| range.blocks).sum();
    assert!((2 * FSYNCS..9 * FSYNCS).contains(&blocks), "{blocks}");
}

#[test]
fn a_block_that_is_only_read_ahead_may_be_lost() {
    let (device, content) = crashed();
    let log = ReadLog::new(device.clone());
    let reads = recovered(log, Options::default(), &content);
    let ahead = reads.iter().filter(|range| range.blocks == 256);
    let beyond = ahead.map(|range| range.end().0 - 1).max().unwrap();
    let log = ReadLog::new(device).without(Lba(beyond));
    let failed = |range: &&BlockRange| range.end().0 > beyond && range.start.0 <= beyond;
    let reads = recovered(log, Options::default(), &content);
    assert!(reads.iter().any(|range| failed(&range)), "nobody asked for block {beyond}");
}
