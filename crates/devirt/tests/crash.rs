//! Power cuts at operations of the flash, and at times, while the tool runs over ext3, ext4 and
//! F2FS on a drive that cleans and levels wear: the drive recovers with maps that agree, every file
//! holds what was promised, no pointer leads to a page that is gone, and the volume that comes back
//! is one that e2fsck or fsck.f2fs has nothing to say about.
//!
//! One drive lives through all cuts of a test. `DOVETAIL_FSDV_CUTS=n` makes that many cuts in each.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use crate::support::{Ext3, Ext4, F2fs, Kind};
use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, Devirtualize as Asked, Hints, Lba,
    MemoryDevice, RemapLimits,
};
use dovetail_devirt::{Hot, Run, Selection, Unit, Way};
use dovetail_ftl::lines::LineShape;
use dovetail_ftl::{Drive, DriveConfig, RemapConfig, RemapStore, mapping};
use dovetail_nand::{FaultPlan, Geometry, NandConfig, PowerCut, Timing, Torn};
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::{Address, Caller, Devirtualize, Error, FileSystem, Ino, NewNode, PointerWalk};

/// A drive, and how much of it is used.
#[derive(Clone, Copy)]
struct Size {
    blocks: u64,
    /// Blocks that the files may fill.
    files: u64,
    /// Percent of the lines that the drive keeps free when it is idle: so many that it cleans all
    /// the time.
    free_percent: u32,
}

fn config(size: Size, shape: LineShape, buffer_pages: u32) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: (size.blocks / 64) as u32 + 26,
        pages_per_block: 32,
        page_bytes: 4096,
    };
    let lines = geometry.blocks_per_plane * if shape == LineShape::Block { 2 } else { 1 };
    let timing = Timing {
        read: SimSpan::from_us(25),
        program: SimSpan::from_us(200),
        erase: SimSpan::from_us(1500),
        transfer_4k: SimSpan::from_us(5),
        ..Timing::default()
    };
    DriveConfig {
        nand: NandConfig {
            geometry,
            timing,
            retry: None,
            endurance: 1_000_000,
            factory_bad: vec![],
        },
        scheme: mapping::scheme("hash").unwrap(),
        shape,
        background_lines: lines * size.free_percent / 100,
        idle_after: SimSpan::from_ms(2),
        buffer_pages,
        wear_spread: 4,
        map_access: SimSpan::from_ns(50),
        command: SimSpan::from_ns(100),
        remap: Some(RemapConfig { limits: RemapLimits::of(300, 0), store: RemapStore::Log }),
        devirtualize: Some(300),
        ..DriveConfig::plain(geometry, size.blocks)
    }
}

/// Files with the content that they hold.
#[derive(Default)]
struct Files {
    held: BTreeMap<String, (Ino, Vec<u8>)>,
    /// Changed since the last sync.
    dirty: BTreeSet<String>,
    /// Changed since the run began, synced or not.
    touched: BTreeSet<String>,
    next: u32,
    /// Blocks that they may fill.
    most: u64,
}

impl Files {
    fn blocks(&self) -> u64 {
        self.held.values().map(|(_, bytes)| (bytes.len() as u64).div_ceil(4096)).sum()
    }

    fn any(&self, rng: &mut Rng) -> Option<String> {
        let some = rng.below(self.held.len().max(1) as u64) as usize;
        self.held.keys().nth(some).cloned()
    }

    fn note_change(&mut self, name: &str) {
        self.dirty.insert(name.into());
        self.touched.insert(name.into());
    }

    fn create(&mut self, fs: &mut impl FileSystem) -> Result<(), Error> {
        let name = format!("file{}", self.next);
        self.next += 1;
        let root = fs.root();
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let ino = fs.create(&Caller::default(), root, name.as_bytes(), &node)?.ino;
        self.note_change(&name);
        self.held.insert(name, (ino, Vec::new()));
        Ok(())
    }

    fn write(&mut self, fs: &mut impl FileSystem, rng: &mut Rng) -> Result<(), Error> {
        let Some(name) = self.any(rng) else { return Ok(()) };
        self.note_change(&name);
        let (ino, bytes) = self.held.get_mut(&name).unwrap();
        let offset = rng.below(bytes.len() as u64 + 5000);
        let fresh = vec![1 + rng.below(255) as u8; 1 + rng.below(80_000) as usize];
        fs.write(&Caller::default(), *ino, offset, &fresh)?;
        let end = offset as usize + fresh.len();
        bytes.resize(bytes.len().max(end), 0);
        bytes[offset as usize..end].copy_from_slice(&fresh);
        Ok(())
    }

    fn remove(&mut self, fs: &mut impl FileSystem, rng: &mut Rng) -> Result<(), Error> {
        let Some(name) = self.any(rng) else { return Ok(()) };
        self.note_change(&name);
        let root = fs.root();
        fs.unlink(&Caller::default(), root, name.as_bytes())?;
        self.held.remove(&name);
        Ok(())
    }

    fn call(&mut self, fs: &mut impl FileSystem, rng: &mut Rng) -> Result<(), Error> {
        let full = self.blocks() > self.most;
        match rng.below(12) {
            0 if self.held.len() < 40 => self.create(fs),
            1 if full || self.held.len() > 30 => self.remove(fs, rng),
            _ if full => self.remove(fs, rng),
            _ if self.held.is_empty() => self.create(fs),
            _ => self.write(fs, rng),
        }
    }

    fn synced(&mut self, fs: &mut impl FileSystem) -> Result<(), Error> {
        fs.sync()?;
        self.dirty.clear();
        Ok(())
    }

    fn fsynced(&mut self, fs: &mut impl FileSystem, rng: &mut Rng) -> Result<(), Error> {
        let Some(name) = self.any(rng) else { return Ok(()) };
        fs.fsync(self.held[&name].0, rng.chance(0.3))?;
        self.dirty.remove(&name);
        Ok(())
    }

    /// Compares the synced files. Of the others, the content that is there counts from now on.
    fn compare(&mut self, fs: &mut impl FileSystem, what: &str) {
        let root = fs.root();
        for name in std::mem::take(&mut self.dirty) {
            self.held.remove(&name);
            let Ok(attr) = fs.lookup(root, name.as_bytes()) else { continue };
            let mut bytes = vec![0; attr.size as usize];
            let len =
                fs.read(attr.ino, 0, &mut bytes).unwrap_or_else(|e| panic!("{what}: {name}: {e}"));
            assert_eq!(len as u64, attr.size, "{what}: {name}");
            self.held.insert(name, (attr.ino, bytes));
        }
        for (name, (ino, bytes)) in &self.held {
            let mut found = vec![0; bytes.len() + 1];
            let len =
                fs.read(*ino, 0, &mut found).unwrap_or_else(|e| panic!("{what}: {name}: {e}"));
            let same = found.iter().zip(bytes).take_while(|(found, held)| found == held).count();
            assert!(
                len == bytes.len() && same == len,
                "{what}: {name} differs from byte {same} of {len} on"
            );
        }
    }
}

/// One run of the tool, with calls of others between batches and within them.
fn run(
    fs: &mut (impl FileSystem + Devirtualize),
    files: &mut Files,
    rng: &mut Rng,
    way: Way,
) -> Result<(), Error> {
    let selection = match way {
        Way::ToDevice => Selection::due(fs, Hot::default())?,
        Way::ToVolume => Selection::all(fs)?,
    };
    let unit = if rng.chance(0.3) { Unit::MetadataBlock } else { Unit::Most };
    let mut run = Run::new(fs, way, selection)?.with_unit(unit);
    while run.prepare(fs)? {
        others(fs, files, rng)?;
        run.begin(fs)?;
        others(fs, files, rng)?;
        run.end(fs)?;
        others(fs, files, rng)?;
    }
    Ok(())
}

/// Calls of others, on files of the batch among them: writes, new and removed files, syncs of a
/// file or of all.
fn others(
    fs: &mut (impl FileSystem + Devirtualize),
    files: &mut Files,
    rng: &mut Rng,
) -> Result<(), Error> {
    while rng.chance(0.3) {
        match rng.below(8) {
            0 => files.synced(fs)?,
            1 | 2 => files.fsynced(fs, rng)?,
            _ => files.call(fs, rng)?,
        }
    }
    Ok(())
}

struct Lab<K> {
    kind: PhantomData<K>,
    size: Size,
    shape: LineShape,
    buffer: u32,
    rng: Rng,
    files: Files,
    leaked: u64,
    cleaned: u64,
}

impl<K: Kind> Lab<K> {
    fn made(&self) -> Drive {
        let mut drive = Drive::new(config(self.size, self.shape, self.buffer)).unwrap();
        K::make(&mut drive);
        drive
    }

    /// Lets others work, then the tool, until the power goes; returns what is left.
    fn cut(&mut self, mut fs: K::Fs<Drive>) -> Drive {
        for _ in 0..self.rng.below(12) {
            self.files.call(&mut fs, &mut self.rng).unwrap();
        }
        self.files.synced(&mut fs).unwrap();
        self.files.touched.clear();
        let way = if self.rng.chance(0.85) { Way::ToDevice } else { Way::ToVolume };
        let begun = Devirtualize::now(&fs);
        let in_operation = self.rng.chance(0.6);
        if in_operation {
            let within = [30, 200, 1500][self.rng.below(3) as usize];
            let at_operation = K::device(&fs).flash_operations() + self.rng.below(within);
            let torn = [Torn::Untouched, Torn::Garbage, Torn::Finished][self.rng.below(3) as usize];
            let power_cut = Some(PowerCut { at_operation, torn });
            K::device_mut(&mut fs).set_faults(FaultPlan { power_cut, ..FaultPlan::default() });
        }
        let result = run(&mut fs, &mut self.files, &mut self.rng, way);
        assert!(in_operation || result.is_ok(), "{result:?}");
        if !in_operation {
            // what was synced may have been so after the cut
            self.files.dirty.append(&mut self.files.touched);
        }
        self.cleaned += K::device(&fs).counters().gc_runs;
        let now = Devirtualize::now(&fs);
        let at = begun + SimSpan::from_ns(self.rng.below(now.since(begun).as_ns() + 1));
        let drive = K::into_device(fs);
        let mut off =
            if in_operation { drive.into_unrecovered() } else { drive.into_unrecovered_at(at) };
        off.set_faults(FaultPlan::default());
        off.recover().map_err(|failed| failed.1).unwrap().0
    }

    fn mounted(&mut self, mut drive: Drive, what: &str) -> K::Fs<Drive> {
        drive.check().unwrap_or_else(|error| panic!("{what}: {error}"));
        drive.remember_operations();
        let now = drive.idle_from();
        let mut fs = K::try_mount(drive, now).unwrap_or_else(|error| panic!("{what}: {error}"));
        check_places::<K>(&mut fs, what);
        self.files.compare(&mut fs, what);
        self.leaked += fs.give_back_unreached().unwrap();
        fs
    }

    /// The volume without its drive is an ordinary one.
    fn check_volume(&mut self, fs: K::Fs<Drive>, what: &str) -> K::Fs<Drive> {
        let mut drive = K::unmount(fs);
        K::check(&mut drive, what);
        let mut fs = self.mounted(drive, what);
        let selection = Selection::all(&mut fs).unwrap();
        Run::new(&fs, Way::ToVolume, selection).unwrap().finish(&mut fs).unwrap();
        assert_eq!(fs.give_back_unreached().unwrap(), 0, "{what}");
        assert!(fs.leave_device().unwrap(), "{what}");
        let mut drive = K::unmount(fs);
        K::check_all(&volume_of(&mut drive, self.size.blocks), what);
        self.mounted(drive, what)
    }
}

/// Each pointer to a place of the drive leads to a block that the drive has, and no two lead to the
/// same.
fn check_places<K: Kind>(fs: &mut K::Fs<Drive>, what: &str) {
    let mut reached = BTreeSet::new();
    for ino in fs.files().unwrap() {
        let pointers = fs.metadata_of(ino).unwrap().into_iter().flat_map(|block| block.pointers);
        for pointer in pointers {
            let Address::Physical(first) = pointer.target else { continue };
            for place in first..first + u64::from(pointer.blocks) {
                assert!(reached.insert(place), "{what}: two pointers to place {place}");
            }
        }
    }
    let space = K::device(fs).info().capabilities.devirtualize.unwrap();
    let now = Devirtualize::now(fs);
    let held =
        Command::Devirtualize(Asked::Held { range: BlockRange::new(space.first, space.blocks) });
    let held = K::device_mut(fs).submit(now, held).unwrap().answer.into_addresses();
    let held: BTreeSet<u64> = held.into_iter().map(|lba| lba.0 - space.first.0).collect();
    let lost: Vec<_> = reached.difference(&held).collect();
    assert!(lost.is_empty(), "{what}: pointers to places {lost:?}, which hold nothing");
}

fn volume_of(drive: &mut Drive, blocks: u64) -> MemoryDevice {
    let mut copy = MemoryDevice::new(blocks);
    let mut contents = vec![Content::Empty; blocks as usize];
    let range = BlockRange::new(Lba(0), blocks);
    drive.submit(drive.idle_from(), Command::Read { range, into: Some(&mut contents) }).unwrap();
    let data = Data::Blocks(&contents);
    copy.submit(SimTime::ZERO, Command::Write { range, data, hints: Hints::default(), fua: false })
        .unwrap();
    copy
}

fn live_through_cuts<K: Kind>(name: &str, size: Size, shape: LineShape, buffer: u32, seed: u64) {
    let cuts: u64 = std::env::var("DOVETAIL_FSDV_CUTS").map_or(300, |text| text.parse().unwrap());
    let (rng, files) = (Rng::new(seed), Files { most: size.files, ..Files::default() });
    let mut lab =
        Lab::<K> { kind: PhantomData, size, shape, buffer, rng, files, leaked: 0, cleaned: 0 };
    let drive = lab.made();
    let mut fs = lab.mounted(drive, name);
    let mut erases = 0;
    for cut in 0..cuts {
        let what = format!("{name}, cut {cut}");
        let drive = lab.cut(fs);
        erases = drive.erase_counts().map(u64::from).sum();
        fs = lab.mounted(drive, &what);
        if cut % 25 == 24 {
            fs = lab.check_volume(fs, &what);
        }
    }
    println!(
        "{name}: {cuts} cuts, {} blocks given back after cuts, {erases} erases, {} lines cleaned",
        lab.leaked, lab.cleaned
    );
    assert!(erases > cuts, "{erases} erases");
    assert!(lab.cleaned > 0, "the drive never cleaned");
}

const EXT: Size = Size { blocks: 4096, files: 2457, free_percent: 13 };
/// F2FS needs more for its tables and logs, and keeps much of so small a volume free.
const F2FS: Size = Size { blocks: 16_384, files: 2600, free_percent: 55 };

#[test]
fn ext3_on_superblocks() {
    live_through_cuts::<Ext3>("ext3_on_superblocks", EXT, LineShape::Superblock, 0, 1);
}

#[test]
fn ext4_on_superblocks() {
    live_through_cuts::<Ext4>("ext4_on_superblocks", EXT, LineShape::Superblock, 16, 2);
}

#[test]
fn ext3_on_blocks() {
    live_through_cuts::<Ext3>("ext3_on_blocks", EXT, LineShape::Block, 16, 3);
}

#[test]
fn ext4_on_blocks() {
    live_through_cuts::<Ext4>("ext4_on_blocks", EXT, LineShape::Block, 0, 4);
}

#[test]
fn f2fs_on_superblocks() {
    live_through_cuts::<F2fs>("f2fs_on_superblocks", F2FS, LineShape::Superblock, 16, 5);
}

#[test]
fn f2fs_on_blocks() {
    live_through_cuts::<F2fs>("f2fs_on_blocks", F2FS, LineShape::Block, 0, 6);
}
