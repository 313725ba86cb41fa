//! States that calls should not lead to, made by hand: what follows must stay sound.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use dovetail_block::{BlockBytes, Content, ImageDevice, MemoryDevice, Scheduler};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, Error, FileSystem, Ino as Number, NewNode, RenameFlags, SetAttr};

use super::allocate::Request;
use super::vfs::ino_of;
use super::{Ext, Options};
use crate::Volume;
use crate::format::{Incompat, Ino, RoCompat};
use crate::fsck::{self, Severity};
use crate::mkfs::{Kind, MkfsOptions, mkfs};

const NODE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const DIR: NewNode = NewNode { mode: 0o040_755, rdev: (0, 0) };

fn mounted(change: impl FnOnce(&mut MkfsOptions)) -> Ext<MemoryDevice> {
    let mut options = MkfsOptions::new(Kind::Ext4);
    options.block_size = Some(4096);
    change(&mut options);
    let mut device = MemoryDevice::new(16 << 8);
    mkfs(&mut device, &options).unwrap();
    Ext::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

fn create<D: Scheduler>(fs: &mut Ext<D>, name: &[u8]) -> Number {
    fs.create(&Caller::default(), Number(2), name, &NODE).unwrap().ino
}

fn page(byte: u8) -> Content {
    Content::Bytes(std::sync::Arc::<BlockBytes>::new([byte; 4096]))
}

fn remount(fs: &Ext<MemoryDevice>) -> Ext<MemoryDevice> {
    Ext::mount(fs.device().clone(), Options::default(), SimTime::ZERO).unwrap()
}

fn assert_clean(device: MemoryDevice) {
    let report = fsck::check(device, fsck::Options::default()).unwrap();
    assert_eq!(report.count(Severity::Error), 0, "{:?}", report.findings);
}

/// Content beyond the room of the volume, as if it had been counted wrongly.
fn write_more_than_fits<D: Scheduler>(fs: &mut Ext<D>, ino: Number) {
    let more = fs.groups.takeable() + 100;
    fs.edit_inode(ino_of(ino)).unwrap().size = more * 4096;
    for block in 0..more {
        fs.pages.write(ino.0, block, page(1));
    }
    let tree = fs.tree_size(ino_of(ino)).unwrap();
    fs.delayed.insert(ino_of(ino), tree, 0..more as u32);
}

fn list_as_orphan(fs: &mut Ext<MemoryDevice>, ino: Ino) {
    let next = fs.superblock.last_orphan;
    fs.edit_inode(ino).unwrap().dtime = next.0;
    fs.superblock.last_orphan = ino;
    fs.running.superblock = true;
    fs.orphans.insert(0, ino);
}

/// A truncation that stopped half way has left a file with a name in the list of orphans.
#[test]
fn a_file_with_a_name_in_the_list_of_orphans_stays() {
    for unmounts in [false, true] {
        let mut fs = mounted(|_| {});
        let file = create(&mut fs, b"file");
        fs.write(&Caller::default(), file, 0, &[7; 9000]).unwrap();
        fs.sync().unwrap();
        fs.hold(file);
        list_as_orphan(&mut fs, ino_of(file));
        if !unmounts {
            fs.forget(file, 1).unwrap();
            assert!(fs.orphans.is_empty() && !fs.superblock.last_orphan.is_some());
        }
        let device = fs.unmount().unwrap();
        assert_clean(device.clone());
        let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let found = fs.lookup(Number(2), b"file").unwrap();
        assert_eq!((found.ino, found.size), (file, 9000));
    }
}

/// It loses its name afterwards, and is listed once.
#[test]
fn a_listed_file_that_loses_its_name_is_listed_once() {
    let mut fs = mounted(|_| {});
    let file = create(&mut fs, b"file");
    fs.hold(file);
    list_as_orphan(&mut fs, ino_of(file));
    fs.unlink(&Caller::default(), Number(2), b"file").unwrap();
    assert_eq!(fs.orphans, [ino_of(file)]);
    assert_eq!(fs.edit_inode(ino_of(file)).unwrap().dtime, 0);
    fs.forget(file, 1).unwrap();
    assert_clean(fs.unmount().unwrap());
}

/// The setattr that is made again ends what the first one began.
#[test]
fn a_truncation_takes_the_file_out_of_the_list() {
    let mut fs = mounted(|_| {});
    let file = create(&mut fs, b"file");
    fs.write(&Caller::default(), file, 0, &[7; 9000]).unwrap();
    list_as_orphan(&mut fs, ino_of(file));
    let changes = SetAttr { size: Some(100), ..SetAttr::default() };
    fs.setattr(&Caller::default(), file, &changes).unwrap();
    assert!(fs.orphans.is_empty());
    assert_clean(fs.unmount().unwrap());
}

/// A file that was emptied and written anew finds no place for its content at each commit.
#[test]
fn content_without_a_place_does_not_stop_a_commit() {
    let mut fs = mounted(|_| {});
    let file = create(&mut fs, b"file");
    create(&mut fs, b"other");
    write_more_than_fits(&mut fs, file);
    fs.emptied.insert(ino_of(file));
    fs.commit().unwrap();
    assert!(remount(&fs).lookup(Number(2), b"other").is_ok());
}

#[test]
fn a_sync_writes_what_it_can_and_tells_that_there_was_no_space() {
    for wakes in [false, true] {
        let mut fs = mounted(|_| {});
        // write-back comes to it first
        let full = create(&mut fs, b"full");
        let other = create(&mut fs, b"other");
        fs.write(&Caller::default(), other, 0, &[9; 5000]).unwrap();
        fs.place_delayed(ino_of(other)).unwrap();
        write_more_than_fits(&mut fs, full);
        if wakes {
            fs.set_now(SimTime::from_ns(60_000_000_000));
            assert_eq!(FileSystem::wake(&mut fs), Ok(()));
        } else {
            assert_eq!(fs.sync(), Err(Error::NoSpace));
        }
        let mut after = remount(&fs);
        let found = after.lookup(Number(2), b"other").unwrap();
        let mut read = [0; 5000];
        assert_eq!(after.read(found.ino, 0, &mut read), Ok(5000), "{wakes}");
        assert_eq!(read, [9; 5000]);
        assert!(!fs.is_read_only());
    }
}

#[test]
fn an_unmount_ends_the_mount_even_if_content_has_no_place() {
    let image = tempfile::NamedTempFile::new().unwrap();
    mounted(|_| {}).into_device().write_to(image.path()).unwrap();
    let device = ImageDevice::open_read_write(image.path()).unwrap();
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let full = create(&mut fs, b"full");
    write_more_than_fits(&mut fs, full);
    assert_eq!(fs.unmount().err(), Some(crate::Error::NoSpace));
    let device = MemoryDevice::from_image(image.path()).unwrap();
    assert_clean(device.clone());
    let volume = Volume::open(device).unwrap();
    assert!(!volume.superblock().incompat.has(Incompat::RECOVER));
}

/// The content may not take the blocks that a tree of extents needs to lead to it.
#[test]
fn the_last_blocks_are_left_for_nodes() {
    let mut fs = mounted(|_| {});
    let file = create(&mut fs, b"file");
    for block in 0..4 {
        fs.write(&Caller::default(), file, block * 8192, &[1; 4096]).unwrap();
        fs.sync().unwrap();
    }
    let filler = create(&mut fs, b"filler");
    let mut at = 0;
    while fs.groups.takeable() > 10 {
        let wanted = (fs.groups.takeable() - 10) as u32;
        at = fs.allocate_run(ino_of(filler), at as u32, wanted, true).unwrap().end();
    }
    let run = fs.allocate_run(ino_of(file), 100, 64, true).unwrap();
    assert!((1..=2).contains(&run.blocks), "{run:?}");
    fs.edit_inode(ino_of(file)).unwrap().size = 164 * 4096;
    fs.edit_inode(ino_of(filler)).unwrap().size = at * 4096;
    assert_clean(fs.unmount().unwrap());
}

/// The pointers of a file without extents have 32 bits.
#[test]
fn blocks_come_from_groups_within_the_reach_of_what_leads_to_them() {
    let mut fs = mounted(|options| options.blocks_per_group = Some(1024));
    for (reach, goal) in [(2048, 3000), (1500, 0), (u64::MAX, 0)] {
        let groups = (reach / 1024).min(4) * 1024;
        let request = |blocks| Request { ino: None, goal, blocks, size_blocks: 0, reach };
        let mut taken = 0;
        while let Ok((at, blocks)) = fs.allocate(request(64)) {
            assert!(at.0 + u64::from(blocks) <= groups, "{at:?}");
            taken += blocks;
        }
        assert_eq!(taken > 0, reach != 1500, "the first groups were taken before");
    }
    assert_eq!(fs.groups.takeable(), 0);
}

/// Without the feature huge_file an inode counts sectors with 32 bits.
#[test]
fn an_extent_file_without_huge_file_ends_before_its_sectors_overflow() {
    let mut fs = mounted(|options| {
        options.ro_compat = options.ro_compat.without(RoCompat::HUGE_FILE);
    });
    let file = create(&mut fs, b"file");
    let mut set = |size| {
        let changes = SetAttr { size: Some(size), ..SetAttr::default() };
        fs.setattr(&Caller::default(), file, &changes).map(drop)
    };
    assert_eq!(set(1 << 40), Ok(()));
    assert_eq!(set(1 << 41), Err(Error::FileTooBig));
    assert_eq!(fs.write(&Caller::default(), file, 1 << 41, &[1]), Err(Error::FileTooBig));
}

#[test]
fn an_exchange_does_not_pass_the_limit_of_subdirectories() {
    let mut fs = mounted(|options| {
        options.ro_compat = options.ro_compat.without(RoCompat::DIR_NLINK);
    });
    let (root, caller) = (Number(2), Caller::default());
    let full = fs.create(&caller, root, b"full", &DIR).unwrap().ino;
    fs.create(&caller, root, b"dir", &DIR).unwrap();
    create(&mut fs, b"file");
    fs.create(&caller, full, b"file", &NODE).unwrap();
    fs.create(&caller, full, b"dir", &DIR).unwrap();
    fs.edit_inode(ino_of(full)).unwrap().links = 65_000;
    let exchange = RenameFlags { exchange: true, ..RenameFlags::default() };
    let mut rename = |from, to| fs.rename(&caller, from, to, exchange);
    assert_eq!(rename((root, b"dir"), (full, b"file")), Err(Error::TooManyLinks));
    assert_eq!(rename((full, b"file"), (root, b"dir")), Err(Error::TooManyLinks));
    assert_eq!(rename((root, b"dir"), (full, b"dir")), Ok(()));
    assert_eq!(rename((root, b"file"), (full, b"file")), Ok(()));
}
