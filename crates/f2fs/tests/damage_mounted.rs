//! Damage that is met only when a volume is mounted: an error, and no panic.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::lab::{At, Lab};
use crate::common::mkfs;
use dovetail_block::{Lba, MemoryDevice};
use dovetail_f2fs::format::Footer;
use dovetail_f2fs::{Corrupt, Error, F2fs, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Timestamp};

const CALLER: Caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 0, nanoseconds: 0 } };

fn mount(device: MemoryDevice) -> Result<F2fs<MemoryDevice>, Error> {
    F2fs::mount(device, Options::default(), SimTime::ZERO)
}

fn make(fs: &mut F2fs<MemoryDevice>, name: &[u8]) -> Ino {
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&CALLER, fs.root(), name, &node).unwrap().ino;
    fs.write(&CALLER, ino, 0, &[7; 9000]).unwrap();
    ino
}

fn with_file() -> Lab {
    let mut fs = mount(mkfs(128 << 20, &["-q"])).unwrap();
    make(&mut fs, b"file");
    Lab::new(fs.unmount().unwrap())
}

#[test]
fn a_count_of_blocks_near_the_largest_number() {
    let mut lab = with_file();
    lab.set(lab.in_inode("file", 24), &u64::MAX.to_le_bytes());
    let mut fs = mount(lab.image).unwrap();
    let ino = fs.lookup(fs.root(), b"file").unwrap().ino;
    assert_eq!(fs.getattr(ino).unwrap().blocks, u64::MAX);
    fs.write(&CALLER, ino, 2000 << 12, b"in a node of its own").unwrap();
}

#[test]
fn an_entry_of_the_nat_journal_beyond_the_table() {
    let mut lab = with_file();
    let journal = lab.nat_journal();
    lab.set(journal, &1_u16.to_le_bytes());
    lab.set(journal.plus(2), &lab.superblock.max_nid().to_le_bytes());
    let error = mount(lab.image).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt(Corrupt::Range { field: "nid in the journal", .. })),
        "{error}"
    );
}

#[test]
fn a_file_with_a_block_that_is_free_by_the_sit() {
    let mut lab = with_file();
    let (at, mask) = lab.valid_bit(lab.data("file", 1));
    lab.flip(at, mask);
    let segment = lab.segment_of(lab.data("file", 1)).0;
    let count = lab.sit(segment);
    let fewer = lab.u16(count) - 1;
    lab.set(count, &fewer.to_le_bytes());
    let mut fs = mount(lab.image).unwrap();
    let error = fs.unlink(&CALLER, Ino(3), b"file").unwrap_err().to_string();
    assert!(error.contains("the SIT says that it holds nothing"), "{error}");
}

/// A volume cut off after an fsync of a new file, and the block of its inode in the chain.
fn with_chain(options: &[&str]) -> (Lab, u64) {
    let mut fs = mount(mkfs(128 << 20, options)).unwrap();
    make(&mut fs, b"old");
    fs.sync().unwrap(); // the first fsync of a mount would be a checkpoint
    let new = make(&mut fs, b"new");
    fs.fsync(new, false).unwrap();
    let lab = Lab::new(fs.into_device());
    let log = lab.checkpoint.logs[4];
    let start =
        lab.superblock.main_start.0 + u64::from(log.segment.0 * 512 + u32::from(log.offset));
    let is_it = |block: &u64| {
        let footer = Footer::parse(lab.image.bytes(Lba(*block)).unwrap());
        footer.dentry_mark && u64::from(footer.nid.0) == new.0
    };
    let inode = (start..start + 8).find(is_it).unwrap();
    (lab, inode)
}

#[test]
fn a_logged_inode_whose_attributes_go_beyond_it() {
    let (mut lab, block) = with_chain(&["-q", "-O", "extra_attr"]);
    lab.set(At { block, byte: 360 }, &u16::MAX.to_le_bytes());
    let error = mount(lab.image).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt(Corrupt::Range { field: "i_extra_isize", .. })),
        "{error}"
    );
}

#[test]
fn a_logged_inode_with_a_name_that_no_file_has() {
    let (mut lab, block) = with_chain(&["-q"]);
    lab.set(At { block, byte: 92 }, b"a/b");
    let error = mount(lab.image).unwrap_err();
    assert!(matches!(error, Error::Corrupt(Corrupt::Name { .. })), "{error}");
}

#[test]
fn a_logged_inode_whose_parent_is_no_directory() {
    let (mut lab, block) = with_chain(&["-q"]);
    let ino = Footer::parse(lab.bytes(block)).ino.0;
    lab.set(At { block, byte: 84 }, &ino.to_le_bytes());
    let error = mount(lab.image).unwrap_err();
    assert!(matches!(error, Error::Corrupt(Corrupt::Mismatch { .. })), "{error}");
}
