//! Updates that the device moves: what stays as it was, what is refused, and writes that are
//! atomic.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::{mkfs, strict_fsck};
use dovetail_block::{ImageDevice, MemoryDevice};
use dovetail_f2fs::fsck::{self, Severity};
use dovetail_f2fs::{F2fs, Options};
use dovetail_testkit::RecordingDevice;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, SetAttr, Simulated};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

fn caller() -> Caller {
    Caller::default()
}

fn options(list: &str) -> Options {
    Options::parse(list).unwrap()
}

fn file<F: FileSystem>(fs: &mut F, name: &str) -> Ino {
    let root = fs.root();
    fs.create(&caller(), root, name.as_bytes(), &NewNode { mode: 0o100_644, rdev: (0, 0) })
        .unwrap()
        .ino
}

fn page(fill: u8) -> [u8; PAGE as usize] {
    [fill; PAGE as usize]
}

/// Overwrites a file at random, fsyncing every ten writes.
fn overwrite(fs: &mut F2fs<MemoryDevice>, ino: Ino, blocks: u64, count: u64) {
    let mut rng = Rng::new(1);
    for n in 1..=count {
        fs.write(&caller(), ino, rng.below(blocks) * PAGE, &page(n as u8)).unwrap();
        if n % 10 == 0 {
            fs.fsync(ino, false).unwrap();
        }
    }
}

#[test]
fn updates_write_no_node_and_leave_the_file_in_one_piece() {
    for list in ["mode=rm-ipu", "mode=rm-ipu,remap=fsync", "mode=rm-ipu-adaptive"] {
        let mut fs = F2fs::mount(mkfs(256 * MIB, &[]), options(list), SimTime::ZERO).unwrap();
        let ino = file(&mut fs, "data");
        fs.write(&caller(), ino, 0, &vec![1; 64 * MIB as usize]).unwrap();
        fs.sync().unwrap();
        let (before, pieces) = (fs.written(), fs.pieces(ino).unwrap());
        overwrite(&mut fs, ino, 64 * MIB / PAGE, 5000);
        let after = fs.written();
        assert_eq!(after.node, before.node, "{list}");
        assert_eq!(after.total() - before.total(), 5000 - merged(), "{list}: nothing but content");
        assert_eq!(fs.pieces(ino).unwrap(), pieces, "{list}");
        assert_eq!(fs.events().remapped_blocks, 5000 - merged(), "{list}");
        assert_eq!(strict_fsck(fs.device()), "", "{list}, mounted");
        assert_eq!(strict_fsck(&fs.unmount().unwrap()), "", "{list}");
    }
}

/// Writes of [`overwrite`] to a block that was already dirty.
fn merged() -> u64 {
    let mut rng = Rng::new(1);
    let mut batch = std::collections::BTreeSet::new();
    let mut merged = 0;
    for n in 1..=5000 {
        merged += u64::from(!batch.insert(rng.below(64 * MIB / PAGE)));
        if n % 10 == 0 {
            batch.clear();
        }
    }
    merged
}

#[test]
fn a_nearly_full_volume_can_still_be_overwritten() {
    for list in ["mode=rm-ipu", "mode=rm-ipu,remap=fsync", "mode=rm-ipu-adaptive,remap=fsync"] {
        let mut fs = F2fs::mount(mkfs(128 * MIB, &[]), options(list), SimTime::ZERO).unwrap();
        let ino = file(&mut fs, "big");
        let blocks = fs.statfs().unwrap().free * 95 / 100;
        let mut versions = vec![0_u8; blocks as usize];
        for block in 0..blocks {
            fs.write(&caller(), ino, block * PAGE, &page(0)).unwrap();
        }
        fs.sync().unwrap();
        let mut rng = Rng::new(2);
        for n in 1..=20_000_u64 {
            let block = rng.below(blocks);
            versions[block as usize] = n as u8;
            fs.write(&caller(), ino, block * PAGE, &page(n as u8)).unwrap();
            if n % 200 == 0 {
                fs.fsync(ino, false).unwrap();
            }
        }
        assert_eq!(fs.events().moved_blocks, 0, "{list}: nothing to clean");
        assert_eq!(strict_fsck(fs.device()), "", "{list}, mounted");
        let device = fs.unmount().unwrap();
        assert_eq!(strict_fsck(&device), "", "{list}");
        let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let mut bytes = page(0);
        for block in 0..blocks {
            fs.read(ino, block * PAGE, &mut bytes).unwrap();
            assert!(bytes == page(versions[block as usize]), "{list}: block {block}");
        }
    }
}

/// A volume that is cleaned all the time while two files are overwritten, and the newest version of
/// each of their blocks. What is read on the way is the newest.
fn cleaned_by_remaps() -> (F2fs<MemoryDevice>, [(Ino, Vec<u8>); 2]) {
    let list = options("mode=lfs,gc_remap");
    let mut fs = F2fs::mount(mkfs(128 * MIB, &[]), list, SimTime::ZERO).unwrap();
    let blocks = fs.statfs().unwrap().free * 42 / 100;
    let mut files = ["a", "b"].map(|name| (file(&mut fs, name), vec![0; blocks as usize]));
    let (mut rng, mut bytes) = (Rng::new(3), page(0));
    for n in 0..30_000_u64 {
        let (number, block) =
            if n < 2 * blocks { (n % 2, n / 2) } else { (rng.below(2), rng.below(blocks)) };
        let (ino, versions) = &mut files[number as usize];
        versions[block as usize] = n as u8;
        fs.write(&caller(), *ino, block * PAGE, &page(n as u8)).unwrap();
        let written = rng.below(blocks.min(n / 2 + 1));
        if n % 3 == 0 && written < n / 2 {
            fs.read(*ino, written * PAGE, &mut bytes).unwrap();
            assert!(bytes == page(versions[written as usize]), "block {written}");
        }
        if n % 500 == 0 {
            fs.fsync(*ino, false).unwrap();
            fs.drop_cache(*ino);
        }
    }
    (fs, files)
}

#[test]
fn cleaning_moves_content_by_remaps_alone() {
    let (fs, files) = cleaned_by_remaps();
    let (events, written) = (fs.events(), fs.written());
    assert!(events.gc_remapped_blocks > 10_000, "{events:?}");
    let copied = events.moved_blocks - events.gc_remapped_blocks;
    assert_eq!(written.cleaning, copied, "{written:?}: nodes, and content that was dirty");
    assert!(copied * 10 < events.moved_blocks, "{events:?}");
    assert_eq!(strict_fsck(fs.device()), "", "mounted");
    let device = fs.unmount().unwrap();
    assert_eq!(strict_fsck(&device), "");
    let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let mut bytes = page(0);
    for (ino, versions) in files {
        for (block, version) in (0..).zip(versions) {
            fs.read(ino, block * PAGE, &mut bytes).unwrap();
            assert!(bytes == page(version), "block {block}");
        }
    }
}

#[test]
fn a_device_without_remap_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    mkfs(64 * MIB, &[]).write_to(&path).unwrap();
    let device = ImageDevice::open_read_write(&path).unwrap();
    let refused =
        F2fs::mount(device, options("mode=rm-ipu"), SimTime::ZERO).unwrap_err().to_string();
    assert!(refused.contains("mode=rm-ipu needs a device with a remap command"), "{refused}");
    let mut plain = F2fs::mount(mkfs(64 * MIB, &[]), Options::default(), SimTime::ZERO).unwrap();
    let ino = file(&mut plain, "file");
    let refused = plain.begin_atomic_write(ino).unwrap_err().to_string();
    assert!(refused.contains("mode=rm-ipu"), "{refused}");
}

/// A file as it is on a device, recovered.
fn recovered(device: MemoryDevice, mode: &str, place: &str) -> Vec<u8> {
    let mut fs = F2fs::mount(device, options(mode), SimTime::ZERO).unwrap();
    let report = fsck::check(fs.device().clone(), fsck::Options::default(), |_| {}).unwrap();
    assert!(report.findings.iter().all(|found| found.severity() != Severity::Error), "{place}");
    let root = fs.root();
    let Ok(attr) = fs.lookup(root, b"file") else { return Vec::new() };
    let mut bytes = vec![0; attr.size as usize];
    fs.read(attr.ino, 0, &mut bytes).unwrap();
    bytes
}

/// Power cuts everywhere during atomic writes, between which other writes of the same and of
/// another file are fsynced or not.
#[test]
fn an_atomic_write_is_there_as_a_whole_or_not_at_all() {
    for (seed, list) in
        [(1, "mode=rm-ipu"), (2, "mode=rm-ipu,remap=fsync"), (3, "mode=rm-ipu-adaptive")]
    {
        let device = RecordingDevice::new(mkfs(64 * MIB, &[]));
        let recording = device.recording();
        let mut fs = F2fs::mount(device, options(list), SimTime::ZERO).unwrap();
        let (ino, other) = (file(&mut fs, "file"), file(&mut fs, "other"));
        fs.write(&caller(), ino, 0, &vec![7; 400_000]).unwrap();
        fs.sync().unwrap();
        let mut content = vec![7; 400_000];
        let mut states = vec![(recording.position(), content.clone())];
        let mut rng = Rng::new(seed);
        for round in 0..150_u8 {
            fs.write(&caller(), other, rng.below(50) * 1000, &[round; 3000]).unwrap();
            if rng.chance(0.3) {
                fs.fsync(other, false).unwrap();
            }
            if rng.chance(0.1) {
                fs.sync().unwrap();
            }
            let mut atomic = fs.begin_atomic_write(ino).unwrap();
            for _ in 0..rng.below(12) {
                let (at, len) = (rng.below(500_000) as usize, 1 + rng.below(9000) as usize);
                atomic.write(at as u64, &vec![round; len]);
                content.resize(content.len().max(at + len), 0);
                content[at..at + len].fill(round);
            }
            if rng.chance(0.2) {
                content.clone_from(&states[states.len() - 1].1);
                continue; // given up
            }
            fs.commit_atomic_write(&caller(), &atomic).unwrap();
            states.push((recording.position(), content.clone()));
        }
        let mut tried = 0;
        for crash in recording.crashes(seed).skip(states[0].0) {
            let done = states.iter().rposition(|(position, _)| *position <= crash.cut).unwrap();
            let place = format!("{list}, cut {}, {:?}", crash.cut, crash.survivors);
            let found = recovered(crash.device, list, &place);
            let allowed = &states[done..(done + 2).min(states.len())];
            assert!(
                allowed.iter().any(|(_, content)| *content == found),
                "{place}: neither before nor after"
            );
            tried += 1;
        }
        assert!(tried > 200, "{tried}");
    }
}

#[test]
fn an_atomic_write_without_room_changes_nothing() {
    let mut fs = F2fs::mount(mkfs(64 * MIB, &[]), options("mode=rm-ipu"), SimTime::ZERO).unwrap();
    let ino = file(&mut fs, "file");
    fs.write(&caller(), ino, 0, &page(1)).unwrap();
    fs.fsync(ino, false).unwrap();
    let free = fs.statfs().unwrap().free;
    let mut atomic = fs.begin_atomic_write(ino).unwrap();
    atomic.write(0, &page(2));
    atomic.write(PAGE, &vec![2; ((free + 10) * PAGE) as usize]);
    assert_eq!(fs.commit_atomic_write(&caller(), &atomic), Err(dovetail_vfs::Error::NoSpace));
    let mut bytes = page(0);
    fs.read(ino, 0, &mut bytes).unwrap();
    assert!(bytes == page(1));
    fs.write(&caller(), ino, 0, &page(3)).unwrap();
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}

/// Far more updates than a section has slots, far more than fit in memory.
#[test]
fn many_updates_wait_and_are_read_where_they_wait() {
    let little = Options { page_cache_bytes: 1 << 20, ..options("mode=rm-ipu,remap=fsync") };
    let mut fs = F2fs::mount(mkfs(256 * MIB, &[]), little, SimTime::ZERO).unwrap();
    let ino = file(&mut fs, "file");
    fs.write(&caller(), ino, 0, &vec![1; 16 * MIB as usize]).unwrap();
    fs.sync().unwrap();
    let before = fs.written();
    for block in 0..3000 {
        fs.write(&caller(), ino, block * PAGE, &page(block as u8)).unwrap();
    }
    assert!(fs.written().data - before.data > 2000, "little memory: most are written");
    let mut bytes = page(0);
    for block in 0..3000 {
        fs.read(ino, block * PAGE, &mut bytes).unwrap();
        assert!(bytes == page(block as u8), "block {block}");
    }
    fs.fsync(ino, false).unwrap();
    assert_eq!(fs.written().node, before.node, "nothing was appended");
    let crashed = fs.into_device();
    let mut fs = F2fs::mount(crashed, Options::default(), SimTime::ZERO).unwrap();
    for block in 0..3000 {
        fs.read(ino, block * PAGE, &mut bytes).unwrap();
        assert!(bytes == page(block as u8), "block {block} after the cut");
    }
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}

/// An fsync that the device completes by a remap must not stand in the log behind a node that it
/// may still lose.
#[test]
fn a_record_does_not_follow_what_is_not_flushed() {
    let device = RecordingDevice::new(mkfs(64 * MIB, &[]));
    let recording = device.recording();
    let urgent = Options { gc_urgent: true, ..options("mode=rm-ipu,remap=fsync") };
    let mut fs = F2fs::mount(device, urgent, SimTime::ZERO).unwrap();
    let file_a = file(&mut fs, "a");
    let others: Vec<String> = (0..700).map(|n| format!("other {n}")).collect();
    for name in &others {
        file(&mut fs, name);
    }
    fs.sync().unwrap();
    let root = fs.root();
    for name in others.iter().step_by(2) {
        fs.unlink(&caller(), root, name.as_bytes()).unwrap();
    }
    // its own node is not among those that are moved
    let changes = SetAttr { mode: Some(0o640), ..SetAttr::default() };
    fs.setattr(&caller(), file_a, &changes).unwrap();
    fs.sync().unwrap();
    let (checkpoints, mut ms) = (fs.events().checkpoints, 0);
    while fs.events().moved_blocks < 100 {
        ms += 600;
        assert!(ms < 60_000, "nothing is cleaned");
        fs.set_now(SimTime::from_ns(ms * 1_000_000));
        fs.wake().unwrap();
    }
    let changes = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    fs.setattr(&caller(), file_a, &changes).unwrap();
    fs.fsync(file_a, false).unwrap();
    assert_eq!(
        fs.events().checkpoints,
        checkpoints,
        "the fsync is a record behind nodes that cleaning moved"
    );
    let cut = recording.cuts() - 1;
    let lost = recording.image_at(cut, dovetail_testkit::Survivors::None, &mut Rng::new(1));
    let mut fs = F2fs::mount(lost, Options::default(), SimTime::ZERO).unwrap();
    assert_eq!(fs.getattr(file_a).unwrap().mode & 0o777, 0o600);
}

#[test]
fn an_atomic_write_to_a_file_in_its_inode() {
    let mut fs = F2fs::mount(mkfs(64 * MIB, &[]), options("mode=rm-ipu"), SimTime::ZERO).unwrap();
    let ino = file(&mut fs, "file");
    fs.write(&caller(), ino, 0, &[0xFF; 100]).unwrap();
    let mut atomic = fs.begin_atomic_write(ino).unwrap();
    atomic.write(50, &[2; 5000]);
    fs.commit_atomic_write(&caller(), &atomic).unwrap();
    let mut fs = F2fs::mount(fs.into_device(), Options::default(), SimTime::ZERO).unwrap();
    let mut bytes = vec![0; 5050];
    assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), 5050);
    assert!(bytes[..50] == [0xFF; 50] && bytes[50..] == [2; 5000]);
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}
