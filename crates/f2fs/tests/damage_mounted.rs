//! Damage that is met only when a volume is mounted: an error, and no panic.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::bed::{Bed, BedDevice, zoned_beds};
use crate::common::lab::{At, Lab};
use crate::common::mkfs;
use dovetail_block::Lba;
use dovetail_f2fs::format::Footer;
use dovetail_f2fs::fsck::{self, check};
use dovetail_f2fs::{Corrupt, Error, F2fs, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Timestamp};

const CALLER: Caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 0, nanoseconds: 0 } };

fn mount(device: BedDevice) -> Result<F2fs<BedDevice>, Error> {
    F2fs::mount(device, Options::default(), SimTime::ZERO)
}

fn make(fs: &mut F2fs<BedDevice>, name: &[u8]) -> Ino {
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&CALLER, fs.root(), name, &node).unwrap().ino;
    fs.write(&CALLER, ino, 0, &[7; 9000]).unwrap();
    ino
}

/// Empty volumes: on a device without zones, on one with, and on two.
fn empty() -> Vec<BedDevice> {
    let plain = Bed::default().device(&mkfs(128 << 20, &["-q"]));
    let mut devices = vec![plain];
    devices.extend(zoned_beds().map(|(_, device)| device));
    devices
}

/// Volumes with a file.
fn with_file() -> Vec<(Lab, Bed)> {
    let with_file = |device| {
        let mut fs = mount(device).unwrap();
        make(&mut fs, b"file");
        let device = fs.unmount().unwrap();
        (Lab::new(device.image()), device.bed())
    };
    empty().into_iter().map(with_file).collect()
}

#[test]
fn a_count_of_blocks_near_the_largest_number() {
    for (mut lab, bed) in with_file() {
        lab.set(lab.in_inode("file", 24), &u64::MAX.to_le_bytes());
        let mut fs = mount(bed.device(&lab.image)).unwrap();
        let ino = fs.lookup(fs.root(), b"file").unwrap().ino;
        assert_eq!(fs.getattr(ino).unwrap().blocks, u64::MAX);
        fs.write(&CALLER, ino, 2000 << 12, b"in a node of its own").unwrap();
    }
}

#[test]
fn an_entry_of_the_nat_journal_beyond_the_table() {
    for (mut lab, bed) in with_file() {
        let journal = lab.nat_journal();
        lab.set(journal, &1_u16.to_le_bytes());
        lab.set(journal.plus(2), &lab.superblock.max_nid().to_le_bytes());
        let error = mount(bed.device(&lab.image)).unwrap_err();
        assert!(
            matches!(error, Error::Corrupt(Corrupt::Range { field: "nid in the journal", .. })),
            "{error}"
        );
    }
}

#[test]
fn a_file_with_a_block_that_is_free_by_the_sit() {
    for (mut lab, bed) in with_file() {
        let (at, mask) = lab.valid_bit(lab.data("file", 1));
        lab.flip(at, mask);
        let segment = lab.segment_of(lab.data("file", 1)).0;
        let count = lab.sit(segment);
        let fewer = lab.u16(count) - 1;
        lab.set(count, &fewer.to_le_bytes());
        let mut fs = mount(bed.device(&lab.image)).unwrap();
        let error = fs.unlink(&CALLER, Ino(3), b"file").unwrap_err().to_string();
        assert!(error.contains("the SIT says that it holds nothing"), "{error}");
    }
}

/// As in the kernel the pointer that leads nowhere goes with its file; the block that it should have
/// led to stays without an owner.
#[test]
fn a_file_with_a_pointer_out_of_range_can_be_removed() {
    for (mut lab, bed) in with_file() {
        let pointer = lab.in_inode("file", 360 + 4);
        lab.set(pointer, &5_u32.to_le_bytes());
        let mut fs = mount(bed.device(&lab.image)).unwrap();
        let ino = fs.lookup(fs.root(), b"file").unwrap().ino;
        let mut first = [0; 4096];
        assert_eq!(fs.read(ino, 0, &mut first), Ok(4096));
        fs.unlink(&CALLER, fs.root(), b"file").unwrap();
        fs.forget(ino, 1).unwrap();
        make(&mut fs, b"another");
        let device = fs.unmount().unwrap();
        let report = check(device, fsck::Options::default(), |_| {}).unwrap();
        let kinds: Vec<&str> = report.findings.iter().map(|finding| finding.kind().name).collect();
        assert!(kinds.iter().all(|kind| *kind == "BlocksLeaked"), "{kinds:?}");
    }
}

/// A volume cut off after an fsync of a new file, and the block of its inode in the chain.
fn with_chain(device: BedDevice) -> (Lab, Bed, u64) {
    let mut fs = mount(device).unwrap();
    make(&mut fs, b"old");
    fs.sync().unwrap(); // the first fsync of a mount would be a checkpoint
    let new = make(&mut fs, b"new");
    fs.fsync(new, false).unwrap();
    let device = fs.into_device();
    let (lab, bed) = (Lab::new(device.image()), device.bed());
    let log = lab.checkpoint.logs[4];
    let start =
        lab.superblock.main_start.0 + u64::from(log.segment.0 * 512 + u32::from(log.offset));
    let is_it = |block: &u64| {
        let footer = Footer::parse(lab.image.bytes(Lba(*block)).unwrap());
        footer.dentry_mark && u64::from(footer.nid.0) == new.0
    };
    let inode = (start..start + 8).find(is_it).unwrap();
    (lab, bed, inode)
}

#[test]
fn a_logged_inode_whose_attributes_go_beyond_it() {
    let device = Bed::default().device(&mkfs(128 << 20, &["-q", "-O", "extra_attr"]));
    let (mut lab, bed, block) = with_chain(device);
    lab.set(At { block, byte: 360 }, &u16::MAX.to_le_bytes());
    let error = mount(bed.device(&lab.image)).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt(Corrupt::Range { field: "i_extra_isize", .. })),
        "{error}"
    );
}

#[test]
fn a_logged_inode_with_a_name_that_no_file_has() {
    for (mut lab, bed, block) in empty().into_iter().map(with_chain) {
        lab.set(At { block, byte: 92 }, b"a/b");
        let error = mount(bed.device(&lab.image)).unwrap_err();
        assert!(matches!(error, Error::Corrupt(Corrupt::Name { .. })), "{error}");
    }
}

#[test]
fn a_logged_inode_whose_parent_is_no_directory() {
    for (mut lab, bed, block) in empty().into_iter().map(with_chain) {
        let ino = Footer::parse(lab.bytes(block)).ino.0;
        lab.set(At { block, byte: 84 }, &ino.to_le_bytes());
        let error = mount(bed.device(&lab.image)).unwrap_err();
        assert!(matches!(error, Error::Corrupt(Corrupt::Mismatch { .. })), "{error}");
    }
}

/// The nodes go to the log of directories by their mark: an fsync must not.
#[test]
fn what_is_fsynced_of_a_file_whose_nodes_are_marked_as_a_directorys() {
    for (mut lab, bed) in with_file() {
        let mark = lab.in_inode("file", 4080);
        lab.flip(mark, 1);
        let lfs = Options::parse("mode=lfs").unwrap();
        let mut fs = F2fs::mount(bed.device(&lab.image), lfs, SimTime::ZERO).unwrap();
        let ino = fs.lookup(fs.root(), b"file").unwrap().ino;
        for byte in [1, 2] {
            // the first fsync of a mount is a checkpoint
            fs.write(&CALLER, ino, 0, &[byte; 20_000]).unwrap();
            fs.fsync(ino, false).unwrap();
        }
        let mut fs = mount(fs.into_device()).unwrap();
        let mut content = [0; 20_000];
        fs.read(ino, 0, &mut content).unwrap();
        assert!(content == [2; 20_000], "{:?}", &content[..4]);
    }
}
