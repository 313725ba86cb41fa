//! The walk over a file's pointers, beside what debugfs says, and pointers rewritten under e2fsck's
//! eyes.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::{TempImage, tool};
use dovetail_block::MemoryDevice;
use dovetail_ext::{Ext, Options, fsck};
use dovetail_testkit::RecordingDevice;
use dovetail_time::SimTime;
use dovetail_vfs::{
    Address, Caller, Error, Fallocate, FileSystem, Holder, Ino, MetadataBlock, NewNode, Pointer,
    PointerPlace, PointerWalk, SetAttr,
};

const NODE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const BLOCK: usize = 1024;
const VOLUMES: [&str; 2] = ["-t ext3 -b 1024 -I 256", "-t ext4 -b 1024"];

fn empty(mke2fs: &str) -> MemoryDevice {
    TempImage::mke2fs(32 << 20, &mke2fs.split(' ').collect::<Vec<_>>()).load()
}

fn options(physical_pointers: bool) -> Options {
    Options { physical_pointers, ..Options::default() }
}

fn mount(device: MemoryDevice) -> Ext<MemoryDevice> {
    Ext::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

/// The content of a block of the file.
fn content(block: u64) -> [u8; BLOCK] {
    [1 + (block % 251) as u8; BLOCK]
}

/// Blocks with holes between them: one in two up to 4000 leaves the tree of ext4 with levels, and
/// reaches doubly indirect blocks of ext3; one far away reaches the triply indirect ones.
fn blocks() -> impl Iterator<Item = u64> {
    (0..20).chain((20..4000).step_by(2)).chain([70_000, 70_001])
}

fn fill<D: dovetail_block::Scheduler>(fs: &mut Ext<D>) -> Ino {
    let caller = &Caller::default();
    let file = fs.create(caller, fs.root(), b"file", &NODE).unwrap().ino;
    for block in blocks() {
        fs.write(caller, file, block * BLOCK as u64, &content(block)).unwrap();
    }
    fs.sync().unwrap();
    file
}

fn check_content<D: dovetail_block::Scheduler>(fs: &mut Ext<D>, file: Ino) {
    let mut found = [0; BLOCK];
    for block in blocks() {
        assert_eq!(fs.read(file, block * BLOCK as u64, &mut found).unwrap(), BLOCK);
        assert_eq!(found, content(block), "block {block}");
    }
}

/// Each pointer with its place.
fn pointers(blocks: &[MetadataBlock]) -> Vec<(PointerPlace, Pointer)> {
    let of = |block: &MetadataBlock| -> Vec<_> {
        block.pointers.iter().map(|pointer| (block.place_of(pointer), *pointer)).collect()
    };
    blocks.iter().flat_map(of).collect()
}

fn logical(address: Address) -> u64 {
    match address {
        Address::Logical(at) => at,
        Address::Physical(at) => panic!("physical {at}"),
    }
}

/// All blocks that are pointed to, runs in full.
fn targets(blocks: &[MetadataBlock]) -> Vec<u64> {
    let run = |(_, pointer): (PointerPlace, Pointer)| {
        let first = logical(pointer.target);
        first..first + u64::from(pointer.blocks)
    };
    let mut all: Vec<u64> = pointers(blocks).into_iter().flat_map(run).collect();
    all.sort_unstable();
    all
}

/// Every metadata block comes after all that it points to.
fn check_order(blocks: &[MetadataBlock]) {
    let mut seen = Vec::new();
    for block in blocks {
        for pointer in block.pointers.iter().filter(|pointer| pointer.is_metadata) {
            let (_, level) =
                seen.iter().find(|(holder, _)| *holder == Holder::Block(pointer.target)).unwrap();
            assert!(*level < block.level);
        }
        seen.push((block.holder, block.level));
    }
    assert_eq!(blocks.last().unwrap().holder, Holder::Inode);
}

fn debugfs_blocks(image: &TempImage, ino: Ino) -> Vec<u64> {
    let said = tool("debugfs", &["-R", &format!("blocks <{}>", ino.0), image.text()]);
    let mut blocks: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    blocks.sort_unstable();
    blocks
}

#[test]
fn the_walk_finds_what_debugfs_finds_from_the_bottom_up() {
    for (volume, levels) in VOLUMES.into_iter().zip([3, 2]) {
        let mut fs = mount(empty(volume));
        let file = fill(&mut fs);
        let device = fs.unmount().unwrap();
        let walked = mount(device.clone()).metadata_of(file).unwrap();
        check_order(&walked);
        assert_eq!(walked.last().unwrap().level, levels, "{volume}");
        assert_eq!(targets(&walked), debugfs_blocks(&TempImage::of(&device), file), "{volume}");
        let data = |pointer: &&(PointerPlace, Pointer)| !pointer.1.is_metadata;
        let covered = |(_, pointer): &(PointerPlace, Pointer)| {
            pointer.file_block..pointer.file_block + u64::from(pointer.blocks)
        };
        let mut mapped: Vec<u64> =
            pointers(&walked).iter().filter(data).flat_map(covered).collect();
        mapped.sort_unstable();
        assert_eq!(mapped, blocks().collect::<Vec<_>>(), "{volume}");
    }
}

#[test]
fn what_every_pointer_leads_to_can_move() {
    for volume in VOLUMES {
        let mut fs = mount(empty(volume));
        let file = fill(&mut fs);
        let before = fs.metadata_of(file).unwrap();
        // from the bottom up a block of pointers moves after those in it, so that places hold
        for (n, (place, old)) in
            pointers(&before).into_iter().enumerate().filter(|(n, _)| n % 3 != 1)
        {
            let moved = fs.relocate(file, place, 20_000).unwrap();
            assert_ne!(moved, old.target, "pointer {n}");
        }
        check_order(&fs.metadata_of(file).unwrap());
        let image = TempImage::of(&fs.unmount().unwrap());
        image.check_clean();
        let mut fs = mount(image.load());
        check_content(&mut fs, file);
        assert_eq!(targets(&fs.metadata_of(file).unwrap()), debugfs_blocks(&image, file));
        assert_eq!(pointers(&fs.metadata_of(file).unwrap()).len(), pointers(&before).len());
    }
}

#[test]
fn after_a_power_cut_there_is_the_old_pointer_or_the_new_one() {
    for volume in VOLUMES {
        let mut fs = mount(empty(volume));
        let file = fill(&mut fs);
        let device = RecordingDevice::new(fs.unmount().unwrap());
        let recording = device.recording();
        let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let before = fs.metadata_of(file).unwrap();
        let leaf = before.iter().find(|block| block.holder != Holder::Inode).unwrap();
        let above =
            before.iter().flat_map(|block| block.pointers.iter().map(move |found| (block, found)));
        let (parent, pointer) = above
            .into_iter()
            .find(|(_, found)| Holder::Block(found.target) == leaf.holder)
            .unwrap();
        let moves = [
            (leaf.place_of(&leaf.pointers[1]), leaf.pointers[1]),
            (parent.place_of(pointer), *pointer),
        ];
        let expected: Vec<_> = moves
            .iter()
            .map(|&(place, old)| {
                let new = fs.relocate(file, place, 20_000).unwrap();
                fs.fsync(file, true).unwrap();
                (old, new)
            })
            .collect();
        drop(fs);
        let mut seen = [[0; 2]; 2];
        for (n, crash) in recording.crashes(7).enumerate() {
            let mut fs = mount(crash.device);
            let now = pointers(&fs.metadata_of(file).unwrap());
            for (count, (old, new)) in seen.iter_mut().zip(&expected) {
                let same = |other: &&(PointerPlace, Pointer)| {
                    (other.1.file_block, other.1.is_metadata) == (old.file_block, old.is_metadata)
                        && [old.target, *new].contains(&other.1.target)
                };
                let (_, found) = now.iter().find(same).unwrap();
                count[usize::from(found.target == *new)] += 1;
            }
            check_content(&mut fs, file);
            if n % 8 == 0 {
                TempImage::of(&fs.unmount().unwrap()).check_clean();
            }
        }
        assert!(seen.iter().flatten().all(|&count| count > 0), "{seen:?}");
    }
}

#[test]
fn a_physical_address_comes_through_and_is_not_read() {
    for volume in VOLUMES {
        let mut fs = Ext::mount(empty(volume), options(true), SimTime::ZERO).unwrap();
        let file = fill(&mut fs);
        let before = fs.metadata_of(file).unwrap();
        let leaf = before.iter().find(|block| block.holder != Holder::Inode).unwrap();
        let (place, old) = (leaf.place_of(&leaf.pointers[0]), leaf.pointers[0]);
        fs.rewrite_pointer(file, place, Address::Physical(1 << 30)).unwrap();
        let device = fs.unmount().unwrap();

        let mut fs = Ext::mount(device.clone(), options(true), SimTime::ZERO).unwrap();
        let now = pointers(&fs.metadata_of(file).unwrap());
        let changed = Pointer { target: Address::Physical(1 << 30), ..old };
        assert!(now.contains(&(place, changed)), "{volume}");
        let offset = old.file_block * BLOCK as u64;
        let mut bytes = [0; BLOCK];
        let unsupported = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::Unsupported(_))), "{result:?}");
        };
        unsupported(fs.read(file, offset, &mut bytes).map(drop));
        unsupported(fs.write(&Caller::default(), file, offset, &bytes).map(drop));
        unsupported(fs.relocate(file, place, 20_000).map(drop));
        let cut = SetAttr { size: Some(0), ..SetAttr::default() };
        unsupported(fs.setattr(&Caller::default(), file, &cut).map(drop));
        unsupported(fs.fallocate(&Caller::default(), file, Fallocate::PunchHole, offset, 4096));
        assert!(!fs.is_read_only());
        fs.rewrite_pointer(file, place, old.target).unwrap();
        check_content(&mut fs, file);
        TempImage::of(&fs.unmount().unwrap()).check_clean();

        let report = fsck::check(device.clone(), fsck::Options::default()).unwrap();
        let said: String = report.findings.iter().map(ToString::to_string).collect();
        assert!(said.contains("mounted with physical pointers"), "{said}");
        let mut fs = mount(device);
        assert!(matches!(fs.metadata_of(file), Err(Error::Corrupt(_))));
        assert!(matches!(fs.read(file, offset, &mut bytes), Err(Error::Corrupt(_))));
    }
}

#[test]
fn a_removed_file_keeps_its_physical_blocks_until_they_can_be_given_back() {
    for volume in VOLUMES {
        let mut fs = Ext::mount(empty(volume), options(true), SimTime::ZERO).unwrap();
        let file = fill(&mut fs);
        let before = fs.metadata_of(file).unwrap();
        let (place, old) = pointers(&before)[0];
        fs.rewrite_pointer(file, place, Address::Physical(5)).unwrap();
        fs.unlink(&Caller::default(), fs.root(), b"file").unwrap();
        let device = fs.unmount().unwrap();
        let mut fs = Ext::mount(device, options(true), SimTime::ZERO).unwrap();
        assert_eq!(fs.metadata_of(file).unwrap().len(), before.len());
        fs.rewrite_pointer(file, place, old.target).unwrap();
        TempImage::of(&fs.unmount().unwrap()).check_clean();
    }
}

#[test]
fn what_is_dirty_moves_in_its_newest_form() {
    for volume in VOLUMES {
        let mut fs = mount(empty(volume));
        let file = fill(&mut fs);
        let (place, old) = pointers(&fs.metadata_of(file).unwrap())[0];
        let offset = old.file_block * BLOCK as u64;
        fs.write(&Caller::default(), file, offset, &[99; BLOCK]).unwrap();
        fs.relocate(file, place, 20_000).unwrap();
        let mut found = [0; BLOCK];
        let device = fs.unmount().unwrap();
        TempImage::of(&device).check_clean();
        mount(device).read(file, offset, &mut found).unwrap();
        assert_eq!(found, [99; BLOCK], "{volume}");
    }
}

#[test]
fn a_block_of_pointers_at_a_physical_address_ends_the_walk() {
    for volume in VOLUMES {
        let mut fs = Ext::mount(empty(volume), options(true), SimTime::ZERO).unwrap();
        let file = fill(&mut fs);
        let before = fs.metadata_of(file).unwrap();
        let inode = before.last().unwrap();
        let top = inode.pointers.iter().find(|pointer| pointer.is_metadata).unwrap();
        fs.rewrite_pointer(file, inode.place_of(top), Address::Physical(77)).unwrap();
        let walked = fs.metadata_of(file);
        assert!(matches!(walked, Err(Error::Unsupported(_))), "{walked:?}");
        fs.rewrite_pointer(file, inode.place_of(top), top.target).unwrap();
        assert_eq!(fs.metadata_of(file).unwrap(), before);
        check_content(&mut fs, file);
        TempImage::of(&fs.unmount().unwrap()).check_clean();
    }
}

#[test]
fn a_loop_of_pointers_is_damage_and_no_endless_walk() {
    let mut fs = mount(empty(VOLUMES[0]));
    let file = fill(&mut fs);
    let walked = fs.metadata_of(file).unwrap();
    let inode = walked.last().unwrap();
    let triple = inode.pointers.iter().find(|pointer| pointer.slot == 14).unwrap();
    let at = triple.target;
    let block = walked.iter().find(|block| block.holder == Holder::Block(at)).unwrap();
    let place = block.place_of(&block.pointers[0]);
    fs.rewrite_pointer(file, place, at).unwrap();
    let walked = fs.metadata_of(file);
    assert!(matches!(walked, Err(Error::Corrupt(_))), "{walked:?}");
}

#[test]
fn what_is_no_pointer_or_no_address_is_refused() {
    for volume in VOLUMES {
        let mut fs = mount(empty(volume));
        let file = fill(&mut fs);
        let walked = fs.metadata_of(file).unwrap();
        let (place, _) = pointers(&walked)[0];
        let refused = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
        };
        refused(fs.rewrite_pointer(
            file,
            PointerPlace { slot: place.slot + 1, ..place },
            Address::Logical(9000),
        ));
        refused(fs.rewrite_pointer(file, place, Address::Logical(0)));
        refused(fs.rewrite_pointer(file, place, Address::Logical(32 << 10)));
        let off = fs.rewrite_pointer(file, place, Address::Physical(9000));
        assert!(matches!(off, Err(Error::Unsupported(_))), "{off:?}");
        assert_eq!(fs.metadata_of(file).unwrap(), walked);
        let mut fs = Ext::mount(fs.unmount().unwrap(), options(true), SimTime::ZERO).unwrap();
        refused(fs.rewrite_pointer(file, place, Address::Physical(1 << 47)));
        TempImage::of(&fs.unmount().unwrap()).check_clean();
    }
}
