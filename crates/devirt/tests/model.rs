//! Files on a device that moves its blocks at will, devirtualised again and again under load: what
//! they hold stays, the map shrinks, and the volume that comes back is an ordinary one.
#![allow(clippy::unwrap_used, reason = "a failed call is a failed test")]

use std::collections::BTreeMap;

use crate::support::{Ext3, Ext4, F2fs, Kind};
use dovetail_block::{BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, MemoryDevice};
use dovetail_devirt::{Hot, Report, Run, Selection, Unit, Way};
use dovetail_f2fs::fsck;
use dovetail_testkit::PlacesDevice;
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::{
    Address, Caller, Devirtualize, FileSystem, Ino, NewNode, PointerPlace, PointerWalk, Simulated,
};

fn made<K: Kind>(seed: u64) -> K::Fs<PlacesDevice> {
    let mut device = PlacesDevice::new(K::BLOCKS, K::BLOCKS / 4, seed);
    K::make(&mut device);
    K::mount(device, SimTime::ZERO)
}

/// Files with the content that they hold.
#[derive(Default)]
struct Files {
    held: BTreeMap<String, (Ino, Vec<u8>)>,
    next: u32,
}

impl Files {
    fn create(&mut self, fs: &mut impl FileSystem) {
        let name = format!("file{}", self.next);
        self.next += 1;
        let root = fs.root();
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let ino = fs.create(&Caller::default(), root, name.as_bytes(), &node).unwrap().ino;
        self.held.insert(name, (ino, Vec::new()));
    }

    fn any(&self, rng: &mut Rng) -> String {
        self.held.keys().nth(rng.below(self.held.len() as u64) as usize).unwrap().clone()
    }

    fn write(&mut self, fs: &mut impl FileSystem, rng: &mut Rng) {
        let (ino, bytes) = self.held.get_mut(&self.any(rng)).unwrap();
        let offset = rng.below(bytes.len() as u64 + 9000);
        let fresh: Vec<u8> = (0..1 + rng.below(120_000)).map(|_| rng.below(256) as u8).collect();
        fs.write(&Caller::default(), *ino, offset, &fresh).unwrap();
        let end = offset as usize + fresh.len();
        bytes.resize(bytes.len().max(end), 0);
        bytes[offset as usize..end].copy_from_slice(&fresh);
    }

    fn remove(&mut self, fs: &mut impl FileSystem, rng: &mut Rng) {
        let name = self.any(rng);
        let root = fs.root();
        fs.unlink(&Caller::default(), root, name.as_bytes()).unwrap();
        self.held.remove(&name);
    }

    fn load(&mut self, fs: &mut impl FileSystem, rng: &mut Rng, calls: u32) {
        for _ in 0..calls {
            match rng.below(10) {
                0 | 1 if self.held.len() < 30 => self.create(fs),
                2 if self.held.len() > 20 => self.remove(fs, rng),
                3 => fs.sync().unwrap(),
                _ if self.held.is_empty() => self.create(fs),
                _ => self.write(fs, rng),
            }
        }
    }

    fn compare(&self, fs: &mut impl FileSystem, what: &str) {
        for (name, (ino, bytes)) in &self.held {
            let mut found = vec![0; bytes.len() + 1];
            let len = fs.read(*ino, 0, &mut found).unwrap();
            assert!(len == bytes.len() && found[..len] == bytes[..], "{what}: {name}");
        }
    }
}

fn run<K: Kind>(fs: &mut K::Fs<PlacesDevice>, rng: &mut Rng, unit: Unit) -> Report {
    let selection = Selection::due(fs, Hot::default()).unwrap();
    let mut run = Run::new(fs, Way::ToDevice, selection).unwrap().with_unit(unit);
    while run.step(fs).unwrap() {
        K::device_mut(fs).churn(rng.below(40));
    }
    run.report()
}

/// The mount again: nothing is in memory.
fn remounted<K: Kind>(fs: K::Fs<PlacesDevice>, what: &str) -> K::Fs<PlacesDevice> {
    let mut device = K::unmount(fs);
    K::check(&mut device, what);
    K::mount(device, SimTime::ZERO)
}

fn content_stays<K: Kind>(seed: u64, unit: Unit) {
    let what = format!("{} {seed}", K::NAME);
    let (mut fs, mut files, mut rng) = (made::<K>(seed), Files::default(), Rng::new(seed));
    let mut renamed = 0;
    for round in 0..25 {
        files.load(&mut fs, &mut rng, 30);
        K::device_mut(&mut fs).churn(rng.below(300));
        let report = run::<K>(&mut fs, &mut rng, unit);
        renamed += report.content_blocks + report.metadata_blocks;
        files.compare(&mut fs, &format!("{what}, round {round}"));
        if round % 6 == 5 {
            fs = remounted::<K>(fs, &what);
            files.compare(&mut fs, &format!("{what}, mounted again"));
        }
    }
    assert!(renamed > 2000, "{what}: {renamed}");
    back_again::<K>(fs, &files, &what);
}

#[test]
fn content_stays_while_everything_moves() {
    content_stays::<Ext3>(1, Unit::Most);
    content_stays::<Ext4>(2, Unit::Most);
    content_stays::<Ext3>(3, Unit::MetadataBlock);
    content_stays::<Ext4>(4, Unit::MetadataBlock);
}

#[test]
fn content_of_f2fs_stays_while_everything_moves() {
    content_stays::<F2fs>(1, Unit::Most);
    content_stays::<F2fs>(2, Unit::MetadataBlock);
}

/// A power cut behind an fsync of more than a segment, which F2FS recovers from its logs.
fn long_fsyncs_stay<K: Kind>() {
    let (mut fs, mut files, mut rng) = (made::<K>(1), Files::default(), Rng::new(1));
    files.load(&mut fs, &mut rng, 40);
    run::<K>(&mut fs, &mut rng, Unit::Most);
    fs.sync().unwrap();
    for name in files.held.keys().cloned().collect::<Vec<_>>() {
        let (ino, bytes) = files.held.get_mut(&name).unwrap();
        *bytes = (0..5 << 18).map(|_| rng.below(256) as u8).collect();
        fs.write(&Caller::default(), *ino, 0, bytes).unwrap();
        fs.fsync(*ino, false).unwrap();
    }
    let fs = K::into_device(fs);
    files.compare(&mut K::mount(fs, SimTime::ZERO), K::NAME);
}

#[test]
fn long_fsyncs_stay_after_a_power_cut() {
    long_fsyncs_stay::<Ext3>();
    long_fsyncs_stay::<Ext4>();
    long_fsyncs_stay::<F2fs>();
}

/// Everything is reached by addresses of the volume again: an ordinary image.
fn back_again<K: Kind>(mut fs: K::Fs<PlacesDevice>, files: &Files, what: &str) {
    let selection = Selection::all(&mut fs).unwrap();
    Run::new(&fs, Way::ToVolume, selection).unwrap().finish(&mut fs).unwrap();
    files.compare(&mut fs, what);
    assert_eq!(fs.give_back_unreached().unwrap(), 0, "{what}");
    assert!(fs.leave_device().unwrap(), "{what}");
    K::check_all(&volume_of::<K>(K::unmount(fs)), what);
}

/// Copy of the content at the volume's own addresses.
fn volume_of<K: Kind>(device: PlacesDevice) -> MemoryDevice {
    let copy = MemoryDevice::new(device.info().blocks);
    copied::<K, _>(device, copy)
}

/// The device `to` with what is at the volume's own addresses.
fn copied<K: Kind, D: BlockDevice>(mut from: impl BlockDevice, mut to: D) -> D {
    for lba in (0..K::BLOCKS).map(Lba) {
        let range = BlockRange::new(lba, 1);
        let mut into = [Content::Empty];
        from.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut into) }).unwrap();
        if into[0] != Content::Empty {
            let (data, hints) = (Data::Blocks(&into), Hints::default());
            to.submit(SimTime::ZERO, Command::Write { range, data, hints, fua: false }).unwrap();
        }
    }
    to
}

fn map_forgets<K: Kind>(unit: Unit) {
    let (mut fs, mut files, mut rng) = (made::<K>(9), Files::default(), Rng::new(9));
    files.load(&mut fs, &mut rng, 120);
    fs.sync().unwrap();
    let full = K::device(&fs).entries();
    let selection = Selection::due(&mut fs, Hot::default()).unwrap();
    let run = Run::new(&fs, Way::ToDevice, selection).unwrap().with_unit(unit);
    let report = run.finish(&mut fs).unwrap();
    let left = K::device(&fs).entries();
    // with smaller batches there are more transactions, whose journal blocks stay
    let least = if unit == Unit::Most { 3 } else { 2 };
    assert!(left * least < full, "{}: {full} with files, {left} left", K::NAME);
    assert!(report.content_blocks > 400, "{report:?}");
    let pointers = files.held.values().map(|(ino, _)| fs.metadata_of(*ino).unwrap());
    let blocks: Vec<_> = pointers.flatten().collect();
    let all = blocks.iter().flat_map(|block| &block.pointers).filter(|pointer| pointer.written);
    assert!(all.clone().all(|pointer| matches!(pointer.target, Address::Physical(_))));
    // nothing changed and nothing moved: nothing to do
    let again = Selection::due(&mut fs, Hot::default()).unwrap();
    assert_eq!(again, Selection::default());
}

#[test]
fn the_map_of_ext_forgets_all_but_inodes_directories_and_the_journal() {
    map_forgets::<Ext3>(Unit::Most);
    map_forgets::<Ext3>(Unit::MetadataBlock);
    map_forgets::<Ext4>(Unit::Most);
    map_forgets::<Ext4>(Unit::MetadataBlock);
}

#[test]
fn the_map_of_f2fs_forgets_all_but_its_tables() {
    map_forgets::<F2fs>(Unit::Most);
    map_forgets::<F2fs>(Unit::MetadataBlock);
}

#[test]
fn fsck_sees_pointers_to_places_that_hold_nothing() {
    let (mut fs, mut files, mut rng) = (made::<F2fs>(7), Files::default(), Rng::new(7));
    files.load(&mut fs, &mut rng, 40);
    run::<F2fs>(&mut fs, &mut rng, Unit::Most);
    let ino = files.held.values().max_by_key(|(_, bytes)| bytes.len()).unwrap().0;
    let holders = fs.metadata_of(ino).unwrap();
    let content =
        holders.iter().flat_map(|holder| &holder.pointers).find(|pointer| !pointer.is_metadata);
    let Address::Physical(place) = content.unwrap().target else { panic!("{content:?}") };
    let mut device = fs.unmount().unwrap();
    let first = device.info().capabilities.devirtualize.unwrap().first;
    let ranges = [BlockRange::new(Lba(first.0 + place), 1).into()];
    device.submit(SimTime::ZERO, Command::Discard { ranges: &ranges }).unwrap();
    let report = fsck::check(&mut device, fsck::Options::default(), |_| {}).unwrap();
    let wrong: Vec<_> = report.findings.iter().map(|finding| finding.kind().name).collect();
    assert_eq!(wrong, ["DataAddress"]);
    let refused = fsck::repair(device).unwrap();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn pointers_of_f2fs_can_be_rewritten_one_by_one() {
    let mut fs = made::<F2fs>(8);
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let ino = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
    fs.write(&Caller::default(), ino, 0, &[[1; 4096], [2; 4096]].concat()).unwrap();
    fs.sync().unwrap();
    let inode = fs.metadata_of(ino).unwrap().remove(0);
    let [first, second] = inode.pointers[..] else { panic!("{inode:?}") };
    fs.rewrite_pointer(ino, inode.place_of(&first), second.target).unwrap();
    fs.rewrite_pointer(ino, inode.place_of(&second), first.target).unwrap();
    fs.drop_cache(ino);
    let mut found = [0; 8192];
    fs.read(ino, 0, &mut found).unwrap();
    assert_eq!((found[0], found[8191]), (2, 1));
    let nowhere = PointerPlace { slot: 7, ..inode.place_of(&first) };
    assert!(fs.rewrite_pointer(ino, nowhere, first.target).is_err());
    for outside in
        [Address::Logical(0), Address::Physical(u64::from(u32::MAX)), Address::Logical(1 << 40)]
    {
        assert!(fs.rewrite_pointer(ino, inode.place_of(&first), outside).is_err(), "{outside:?}");
    }
}

fn hot_files_are_left<K: Kind>() {
    let (mut fs, mut files, mut rng) = (made::<K>(5), Files::default(), Rng::new(5));
    files.load(&mut fs, &mut rng, 60);
    let selection = Selection::due(&mut fs, Hot::default()).unwrap();
    Run::new(&fs, Way::ToDevice, selection).unwrap().finish(&mut fs).unwrap();
    fs.set_now((SimTime::ZERO + SimSpan::from_ms(100_000)).into());
    files.write(&mut fs, &mut rng);
    fs.set_now((SimTime::ZERO + SimSpan::from_ms(103_000)).into());
    let hot = |seconds: u64| Hot { within: SimSpan::from_ms(seconds * 1000) };
    let selection = Selection::due(&mut fs, hot(6)).unwrap();
    assert_eq!((selection.files.len(), selection.hot), (0, 1));
    let selection = Selection::due(&mut fs, hot(2)).unwrap();
    assert_eq!((selection.files.len(), selection.hot), (1, 0));
}

#[test]
fn hot_files_are_left_until_they_are_cold() {
    hot_files_are_left::<Ext4>();
    hot_files_are_left::<F2fs>();
}

fn says_what_it_cannot<K: Kind>() {
    let mut device = MemoryDevice::new(K::BLOCKS);
    K::make(&mut device);
    let fs = K::mount(device, SimTime::ZERO);
    let said = Run::new(&fs, Way::ToDevice, Selection::default()).unwrap_err().to_string();
    assert_eq!(
        said,
        "letting pointers lead to the device's own addresses needs a device that gives blocks its own addresses: that is not \
         supported"
    );
    // a devirtualised volume without its drive
    let (mut fs, mut files, mut rng) = (made::<K>(6), Files::default(), Rng::new(6));
    files.load(&mut fs, &mut rng, 20);
    run::<K>(&mut fs, &mut rng, Unit::Most);
    // also one that was cut: nothing is recovered before the drive is known
    files.load(&mut fs, &mut rng, 20);
    fs.sync().unwrap();
    let cut = volume_of::<K>(K::device_mut(&mut fs).clone());
    let said = K::try_mount(cut, SimTime::ZERO).err().unwrap();
    assert!(said.contains("an image or another kind of drive has none: mount it"), "{said}");
    let copy = volume_of::<K>(K::unmount(fs));
    for said in [K::try_mount(copy.clone(), SimTime::ZERO).err().unwrap(), K::opened(copy.clone())]
    {
        assert!(said.contains("an image or another kind of drive has none: mount it"), "{said}");
    }
    let other = copied::<K, _>(copy, PlacesDevice::new(K::BLOCKS, K::BLOCKS / 4, 7));
    let said = K::try_mount(other, SimTime::ZERO).err().unwrap();
    assert!(said.contains(", and this is drive ") && said.contains("mount it on that"), "{said}");
}

#[test]
fn what_cannot_says_so_in_a_sentence() {
    says_what_it_cannot::<Ext3>();
    says_what_it_cannot::<Ext4>();
    says_what_it_cannot::<F2fs>();
}
