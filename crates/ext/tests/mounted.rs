//! Images that a real kernel wrote, mounted, used and left; what fsync, options and features do.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::manifest::{Manifest, differences, of_volume};
use crate::common::{TempImage, kernel_image, manifest_lines, tool};
use dovetail_block::{BlockDevice, Command, MemoryDevice};
use dovetail_ext::format::{Compat, RoCompat, name_hash};
use dovetail_ext::{Ext, Incompatible, Options, Volume};
use dovetail_testkit::exercise::{Generator, Profile, Subject};
use dovetail_testkit::{RecordingDevice, Survivors};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, Fallocate, FileSystem, FsyncRest, Ino, NewNode, Timestamp, XattrFlags};

const NODE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };

fn mount(device: MemoryDevice, options: &str) -> Ext<MemoryDevice> {
    Ext::mount(device, Options::parse(options).unwrap(), SimTime::ZERO).unwrap()
}

fn at(seconds: i64) -> Caller {
    Caller {
        now: Timestamp { seconds: 1_700_000_000 + seconds, nanoseconds: 0 },
        ..Caller::default()
    }
}

fn manifest(device: &MemoryDevice) -> Manifest {
    of_volume(&mut Volume::open(device.clone()).unwrap())
}

#[test]
fn images_of_the_kernel_are_recovered_used_and_left_clean() {
    for name in ["ext4-default", "ext3-default", "ext4-crash", "ext3-crash"] {
        let device = mount(kernel_image(name), "").unmount().unwrap();
        TempImage::of(&device).check_clean();
        let expected: Manifest = manifest_lines(name)
            .into_iter()
            .map(|line| (line["path"].as_str().unwrap().to_string(), line))
            .filter(|(path, _)| path != "." && path != "/")
            .collect();
        let mut found = manifest(&device);
        found.retain(|path, _| path != "." && path != "/");
        assert_eq!(differences(&expected, &found), "", "{name}");
        let mut subject = Subject::new(mount(device, ""));
        let mut operations = Generator::new(3, Profile::default());
        for _ in 0..800 {
            let _ = subject.apply(&operations.next_step());
        }
        subject.release_all().unwrap();
        TempImage::of(&subject.fs.unmount().unwrap()).check_errors();
    }
}

fn empty(mke2fs: &str) -> MemoryDevice {
    TempImage::mke2fs(64 << 20, &mke2fs.split(' ').collect::<Vec<_>>()).load()
}

#[test]
fn features_that_are_not_kept_right_are_refused_by_name() {
    let refused = |device: &MemoryDevice, options: &str| {
        Ext::mount(device.clone(), Options::parse(options).unwrap(), SimTime::ZERO)
            .unwrap_err()
            .to_string()
    };
    let ext2 = empty("-t ext2 -b 4096");
    assert!(refused(&ext2, "").contains("no journal"), "{}", refused(&ext2, ""));
    assert!(mount(ext2, "ro").lookup(Ino(2), b"lost+found").is_ok());
    let quota = empty("-t ext4 -b 4096 -O quota");
    assert!(refused(&quota, "").contains("quota"), "{}", refused(&quota, ""));
    assert!(mount(quota, "ro").lookup(Ino(2), b"lost+found").is_ok());
    let inline = empty("-t ext4 -b 4096 -O inline_data");
    assert!(refused(&inline, "ro").contains("inline_data"), "{}", refused(&inline, "ro"));
}

/// mke2fs can leave the features out; e2fsck takes what they stand for as damage then.
#[test]
fn the_first_use_of_a_feature_is_noted() {
    for (attribute, size) in
        [(true, 2 << 30), (true, 4096), (false, 2 << 30), (false, (2 << 30) - 1)]
    {
        let shape = "-t ext3 -b 4096 -I 128 -O ^ext_attr,^large_file,^resize_inode";
        let mut fs = mount(empty(shape), "");
        let root = fs.root();
        let file = fs.create(&at(1), root, b"file", &NODE).unwrap().ino;
        if attribute {
            fs.setxattr(&at(2), file, b"user.a", &[b'x'; 20], XattrFlags::default()).unwrap();
        }
        fs.write(&at(3), file, size - 1, b"x").unwrap();
        fs.fsync(file, false).unwrap();
        // as a power cut leaves it: the log alone knows of the feature
        let recovered = mount(fs.device().clone(), "").unmount().unwrap();
        for device in [recovered, fs.unmount().unwrap()] {
            TempImage::of(&device).check_clean();
            let volume = Volume::open(device).unwrap();
            let superblock = volume.superblock();
            let noted = superblock.compat.has(Compat::EXT_ATTR);
            assert_eq!(noted, attribute, "{attribute} {size}");
            let noted = superblock.ro_compat.has(RoCompat::LARGE_FILE);
            assert_eq!(noted, size > i32::MAX as u64, "{attribute} {size}");
        }
    }
}

#[test]
fn an_fsync_commits_only_if_the_inode_changed() {
    let mut fs = mount(empty("-t ext4 -b 4096"), "");
    let (root, one) = (fs.root(), &at(1));
    let file = fs.create(one, root, b"file", &NODE).unwrap().ino;
    fs.write(one, file, 0, &[1; 9000]).unwrap();
    let commits = |fs: &Ext<MemoryDevice>| fs.journal_events().commits;
    let before = commits(&fs);
    fs.fsync(file, false).unwrap();
    assert_eq!(commits(&fs), before + 1);
    fs.write(one, file, 0, &[2; 9000]).unwrap();
    fs.fsync(file, false).unwrap();
    assert_eq!(commits(&fs), before + 1, "an overwrite at the same time of the clock");
    fs.write(&at(2), file, 0, &[3; 9000]).unwrap();
    fs.fsync(file, true).unwrap();
    assert_eq!(commits(&fs), before + 1, "times are no matter of fdatasync");
    fs.fsync(file, false).unwrap();
    assert_eq!(commits(&fs), before + 2);
    fs.write(&at(2), file, 9000, &[4; 1]).unwrap();
    fs.fsync(file, true).unwrap();
    assert_eq!(commits(&fs), before + 3, "the size is");
}

#[test]
fn the_running_transaction_is_committed_after_five_seconds() {
    let mut fs = mount(empty("-t ext4 -b 4096"), "");
    fs.set_now(SimTime::from_ns(10_000_000_000));
    fs.wake().unwrap();
    assert_eq!(fs.next_wake(), None);
    let root = fs.root();
    fs.create(&at(1), root, b"file", &NODE).unwrap();
    let due = fs.next_wake().unwrap();
    assert_eq!(due, SimTime::from_ns(15_000_000_000));
    fs.set_now(SimTime::from_ns(14_999_999_999));
    fs.wake().unwrap();
    let seen = |fs: &Ext<MemoryDevice>| {
        let mut again = mount(fs.device().clone(), "");
        again.lookup(Ino(2), b"file").is_ok()
    };
    assert!(!seen(&fs));
    fs.set_now(due);
    fs.wake().unwrap();
    assert!(seen(&fs));
}

#[test]
fn content_waits_for_thirty_seconds_and_a_checkpoint_for_as_long() {
    let mut fs = mount(empty("-t ext4 -b 4096"), "");
    let root = fs.root();
    let file = fs.create(&at(1), root, b"file", &NODE).unwrap().ino;
    fs.write(&at(1), file, 0, &[1; 40_960]).unwrap();
    let wake_until = |fs: &mut Ext<MemoryDevice>, seconds: u64| {
        while let Some(due) = fs.next_wake().filter(|due| due.as_ns() <= seconds * 1_000_000_000) {
            fs.set_now(due);
            fs.wake().unwrap();
        }
    };
    wake_until(&mut fs, 29);
    assert_eq!(fs.written().data, 0);
    wake_until(&mut fs, 36);
    assert_eq!(fs.written().data, 10);
    wake_until(&mut fs, 100);
    assert!(fs.journal_events().checkpoints > 0);
    assert_eq!(fs.next_wake(), None, "all is in its place");
    fs.fsync(file, false).unwrap();
    let mut again = mount(fs.device().clone(), "ro,noload");
    assert_eq!(again.getattr(file).unwrap().size, 40_960, "without the journal");
}

#[test]
fn a_mount_that_writes_does_not_leave_the_journal_alone() {
    for options in ["noload", "norecovery"] {
        let options = Options::parse(options).unwrap();
        let error = Ext::mount(empty("-t ext4 -b 4096"), options, SimTime::ZERO).err();
        assert_eq!(error, Some(Incompatible::NoLoad.into()));
    }
}

#[test]
fn reading_only_writes_nothing_but_a_replay() {
    let mut fs = mount(empty("-t ext4 -b 4096"), "");
    let root = fs.root();
    fs.create(&at(1), root, b"file", &NODE).unwrap();
    fs.sync().unwrap();
    let recorded = RecordingDevice::new(fs.device().clone());
    let recording = recorded.recording();
    let mut ro = Ext::mount(recorded, Options::parse("ro").unwrap(), SimTime::ZERO).unwrap();
    let replay = recording.position();
    assert!(replay > 0 && ro.lookup(root, b"file").is_ok());
    assert_eq!(ro.create(&at(1), root, b"other", &NODE), Err(dovetail_vfs::Error::ReadOnly));
    ro.sync().unwrap();
    drop(ro.unmount().unwrap());
    assert_eq!(recording.position(), replay);
}

/// An inode that was held without a name when the power went is gone after the next mount, with its
/// blocks.
#[test]
fn orphans_go_with_the_next_mount() {
    for kind in ["-t ext4 -b 1024", "-t ext3 -b 4096"] {
        let mut fs = mount(empty(kind), "");
        let root = fs.root();
        fs.sync().unwrap();
        let free = fs.superblock().free_blocks;
        for n in 0..5_u8 {
            let file = fs.create(&at(1), root, &[b'a' + n], &NODE).unwrap().ino;
            fs.write(&at(1), file, 0, &vec![n; 100_000]).unwrap();
            fs.hold(file);
            fs.unlink(&at(2), root, &[b'a' + n]).unwrap();
        }
        fs.forget(Ino(u64::from(fs.superblock().last_orphan.0)), 1).unwrap();
        fs.sync().unwrap();
        assert!(fs.superblock().free_blocks < free);
        let again = mount(fs.device().clone(), "");
        assert_eq!(again.superblock().free_blocks, free, "{kind}");
        TempImage::of(&again.unmount().unwrap()).check_clean();
        TempImage::of(&fs.unmount().unwrap()).check_clean();
    }
}

/// 30,000 names in a directory: an index of two levels.
#[test]
fn a_directory_of_many_names() {
    for (kind, count) in [("-t ext4 -b 1024", 12_000), ("-t ext3 -b 4096", 20_000)] {
        let mut fs = mount(empty(&format!("{kind} -N 64")), "");
        let root = fs.root();
        let file = fs.create(&at(1), root, b"file", &NODE).unwrap().ino;
        let dir = fs
            .create(&at(1), root, b"dir", &NewNode { mode: 0o040_755, rdev: (0, 0) })
            .unwrap()
            .ino;
        let name = |n: u32| format!("a-name-that-is-not-so-short-{n:08}");
        for n in 0..count {
            fs.link(&at(2), file, dir, name(n).as_bytes()).unwrap();
        }
        (0..count).step_by(3).for_each(|n| fs.unlink(&at(3), dir, name(n).as_bytes()).unwrap());
        let found = (0..count).filter(|&n| fs.lookup(dir, name(n).as_bytes()).is_ok()).count();
        assert_eq!(found as u32, count - count.div_ceil(3));
        let mut listed = 0;
        fs.readdir(dir, 0, &mut |_| {
            listed += 1;
            true
        })
        .unwrap();
        assert_eq!(listed, found + 2);
        TempImage::of(&fs.unmount().unwrap()).check_clean();
    }
}

/// Blocks of directories, of pointers and of attributes that are freed and become content: what the
/// journal still holds of them must not come back over it.
#[test]
fn freed_metadata_is_not_replayed_over_content() {
    for kind in ["-t ext4 -b 1024", "-t ext3 -b 1024", "-t ext4 -b 4096"] {
        let device = TempImage::mke2fs(12 << 20, &kind.split(' ').collect::<Vec<_>>()).load();
        let mut fs = mount(device, "");
        let (root, dir) = (fs.root(), NewNode { mode: 0o040_755, rdev: (0, 0) });
        let name = |n: u32| format!("{n}").into_bytes();
        for n in 0..200 {
            let made = fs.create(&at(1), root, &name(n), &dir).unwrap().ino;
            fs.setxattr(&at(1), made, b"user.x", &[7; 500], Default::default()).unwrap();
        }
        fs.sync().unwrap();
        (0..200).for_each(|n| fs.rmdir(&at(2), root, &name(n)).unwrap());
        fs.sync().unwrap();
        let file = fs.create(&at(3), root, b"file", &NODE).unwrap().ino;
        let mut size = 0;
        while fs.write(&at(3), file, size, &[0x5A; 4096]).is_ok() {
            size += 4096;
        }
        fs.fsync(file, false).unwrap();
        assert!(fs.journal_events().checkpoints == 0, "the directories are still in the log");
        let mut again = mount(fs.device().clone(), "");
        let mut found = vec![0; size as usize];
        assert_eq!(again.read(file, 0, &mut found).unwrap(), found.len());
        let wrong = found.iter().position(|&byte| byte != 0x5A);
        assert_eq!(wrong, None, "{kind}");
        TempImage::of(&again.unmount().unwrap()).check_clean();
    }
}

/// A file handle holds any number: only those that names lead to are found, and nothing is called
/// damaged, not even what lay in a table of inodes before the volume was made.
#[test]
fn numbers_of_old_handles_find_what_has_a_name() {
    for features in
        ["-t ext4 -b 4096", "-t ext3 -b 1024", "-t ext4 -b 1024 -O ^metadata_csum,uninit_bg"]
    {
        let mut fs = mount(empty(features), "");
        let root = fs.root();
        let lost = fs.lookup(root, b"lost+found").unwrap().ino;
        let [kept, gone] =
            [&b"kept"[..], b"gone"].map(|name| fs.create(&at(0), root, name, &NODE).unwrap().ino);
        fs.write(&at(0), kept, 0, &[1; 100_000]).unwrap();
        fs.unlink(&at(0), root, b"gone").unwrap();
        let found: Vec<Ino> = (0..20_000)
            .map(Ino)
            .filter(|&ino| match fs.attr_of_handle(ino) {
                Ok(attr) => attr.ino == ino,
                Err(error) => {
                    assert_eq!(error, dovetail_vfs::Error::NotFound, "{features}: {ino:?}");
                    false
                }
            })
            .collect();
        assert_eq!(found, [root, lost, kept], "{features}, without {gone:?}");
    }
}

/// Content that is written over needs no commit for an fdatasync: a flush of the device is all.
#[test]
fn a_flush_of_the_device_ends_an_fdatasync_that_has_nothing_to_commit() {
    let device = RecordingDevice::new(empty("-t ext4 -b 4096"));
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let root = fs.root();
    let file = fs.create(&at(0), root, b"file", &NODE).unwrap().ino;
    fs.write(&at(1), file, 0, &[1; 20_000]).unwrap();
    assert_eq!(fs.begin_fsync(file, true), Ok(FsyncRest::Fsync), "a new file");
    fs.fsync(file, true).unwrap();
    fs.write(&at(2), file, 5000, &[2; 9000]).unwrap();
    assert_eq!(fs.begin_fsync(file, true), Ok(FsyncRest::Flush));
    assert_eq!(fs.begin_fsync(file, false), Ok(FsyncRest::Fsync), "its times changed");
    fs.device_mut().submit(SimTime::ZERO, Command::Flush).unwrap();
    let flushed = fs.device().recording().position();
    fs.write(&at(3), file, 30_000, &[3; 9000]).unwrap();
    fs.fsync(file, true).unwrap();
    let record = fs.device().recording();
    for (cut, survivors) in
        (flushed..record.cuts()).flat_map(|cut| Survivors::ALL.map(|survivors| (cut, survivors)))
    {
        let mut after = mount(record.image_at(cut, survivors, &mut Rng::new(cut as u64)), "");
        let mut read = [0; 20_000];
        assert_eq!(after.read(file, 0, &mut read), Ok(20_000));
        let is_new = |at: usize| (5000..14_000).contains(&at);
        let wrong = (0..20_000).find(|&at| read[at] != if is_new(at) { 2 } else { 1 });
        assert_eq!(wrong, None, "{survivors:?} at cut {cut}");
    }
    for options in ["nobarrier", "ro"] {
        let mut fs = mount(empty("-t ext4"), options);
        let root = fs.root();
        assert_eq!(fs.begin_fsync(root, false), Ok(FsyncRest::Fsync));
    }
}

/// The commit of one file's fsync is under way while another file is written, and ends with that
/// one's fsync or by itself.
#[test]
fn an_fsync_in_steps_keeps_its_promise_whatever_others_do_meanwhile() {
    for (steps_before, by_itself) in [(0, false), (0, true), (1, false), (1, true)] {
        let device = RecordingDevice::new(empty("-t ext4 -b 4096"));
        let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let root = fs.root();
        let [file, other] =
            [&b"file"[..], b"other"].map(|name| fs.create(&at(0), root, name, &NODE).unwrap().ino);
        fs.write(&at(1), file, 0, &[1; 20_000]).unwrap();
        let go_on = |fs: &mut Ext<RecordingDevice<MemoryDevice>>| {
            fs.device_mut().submit(SimTime::ZERO, Command::Flush).unwrap();
            fs.go_on_after_flush(Ok(())).unwrap()
        };
        assert_eq!(fs.begin_fsyncs(&[(file, false)]), Ok(FsyncRest::Flush));
        for _ in 0..steps_before {
            assert_eq!(go_on(&mut fs), FsyncRest::Flush);
        }
        let rest = fs.begin_fsync(file, false);
        assert_eq!(rest, Ok(FsyncRest::Fsync), "its commit is not durable yet");
        fs.write(&at(2), other, 0, &[2; 30_000]).unwrap();
        fs.write(&at(2), file, 8192, &[3; 4096]).unwrap();
        if !by_itself {
            fs.fsync(other, false).unwrap();
            assert_eq!(go_on(&mut fs), FsyncRest::Nothing);
        }
        while by_itself && go_on(&mut fs) == FsyncRest::Flush {}
        let record = fs.device().recording();
        let durable = record.position();
        fs.write(&at(3), other, 0, &[4; 30_000]).unwrap();
        fs.sync().unwrap();
        for (cut, survivors) in
            (durable..record.cuts()).flat_map(|cut| Survivors::ALL.map(|left| (cut, left)))
        {
            let image = record.image_at(cut, survivors, &mut Rng::new(cut as u64));
            let mut read = [0; 20_000];
            assert_eq!(mount(image, "").read(file, 0, &mut read), Ok(20_000), "cut {cut}");
            let is_old_or_new =
                |at: usize| read[at] == 1 || (read[at] == 3 && (8192..12_288).contains(&at));
            let place = format!("{survivors:?} at cut {cut}, {steps_before} steps, {by_itself}");
            assert!((0..20_000).all(is_old_or_new), "{place}");
        }
        TempImage::of(&mount(record.newest(), "").unmount().unwrap()).check_clean();
    }
}

/// On a full volume, with the commit of the release under way.
#[test]
fn freed_blocks_are_not_used_before_their_commit_is_durable() {
    let device = RecordingDevice::new(empty("-t ext4 -b 4096"));
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let (root, names) = (fs.root(), [&b"old"[..], b"rest", b"new"]);
    let [old, rest, new] = names.map(|name| fs.create(&at(0), root, name, &NODE).unwrap().ino);
    fs.write(&at(1), old, 0, &[1; 200_000]).unwrap();
    fs.sync().unwrap();
    let mut end = 0;
    while fs.write(&at(1), rest, end, &[2; 65_536]).is_ok() {
        end += 65_536;
    }
    fs.sync().unwrap();
    fs.unlink(&at(2), root, b"old").unwrap();
    fs.forget(old, 1).unwrap();
    let record = fs.device().recording();
    let released = record.position();
    assert_eq!(fs.begin_fsyncs(&[(root, false)]), Ok(FsyncRest::Flush));
    let written = fs.write(&at(3), new, 0, &[3; 100_000]).and_then(|_| fs.begin_fsync(new, false));
    written.unwrap();
    for (cut, survivors) in
        (released..record.cuts()).flat_map(|cut| Survivors::ALL.map(|left| (cut, left)))
    {
        let image = record.image_at(cut, survivors, &mut Rng::new(cut as u64));
        let (mut after, mut read) = (mount(image, ""), vec![0; 200_000]);
        if after.lookup(root, b"old").is_ok() {
            assert_eq!(after.read(old, 0, &mut read), Ok(200_000));
            assert!(read.iter().all(|byte| *byte == 1), "{survivors:?} at cut {cut}");
        }
    }
}

/// Nothing builds on half a commit, and no commit block is written for it.
#[test]
fn a_volume_whose_commit_could_not_be_flushed_takes_no_more_changes() {
    for flushes in 0..2 {
        let device = RecordingDevice::new(empty("-t ext4 -b 4096"));
        let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let root = fs.root();
        let file = fs.create(&at(0), root, b"file", &NODE).unwrap().ino;
        assert_eq!(fs.begin_fsyncs(&[(file, false)]), Ok(FsyncRest::Flush));
        for _ in 0..flushes {
            assert_eq!(fs.go_on_after_flush(Ok(())), Ok(FsyncRest::Flush));
        }
        let (record, written) = (fs.device().recording(), fs.device().recording().position());
        assert!(fs.go_on_after_flush(Err("no such disk".into())).is_err());
        assert_eq!(fs.write(&at(1), file, 0, &[1; 10]), Err(dovetail_vfs::Error::ReadOnly));
        assert!(fs.fsync(file, false).is_err());
        fs.set_now(dovetail_vfs::Moment::at(SimTime::from_ns(60_000_000_000)));
        fs.wake().unwrap();
        let _ = fs.sync();
        fs.unmount().unwrap();
        assert_eq!(record.position(), written, "after {flushes} flushes");
    }
}

/// Blocks in the middle, at both ends and across extents that are written already.
#[test]
fn reserved_blocks_that_are_written_join_their_neighbours() {
    let mut fs = mount(empty("-t ext4 -b 4096"), "");
    let root = fs.root();
    let file = fs.create(&at(0), root, b"file", &NODE).unwrap().ino;
    let how = Fallocate::Reserve { keep_size: false };
    fs.fallocate(&at(0), file, how, 0, 400 << 12).unwrap();
    let mut expected = vec![0; 400 << 12];
    let mut rng = Rng::new(5);
    for n in 0..300 {
        let (block, blocks) = (rng.below(400) as usize, 1 + rng.below(4) as usize);
        let (from, to) = (block << 12, (block + blocks).min(400) << 12);
        expected[from..to].fill(1 + n as u8 % 250);
        fs.write(&at(n), file, from as u64, &expected[from..to]).unwrap();
        if n % 3 == 0 {
            fs.fsync(file, false).unwrap();
        }
    }
    let device = fs.unmount().unwrap();
    TempImage::of(&device).check_clean();
    let mut fs = mount(device, "ro");
    let mut read = vec![9; 400 << 12];
    assert_eq!(fs.read(file, 0, &mut read), Ok(400 << 12));
    assert!(read == expected);
}

/// The hash of early ext3 has 31 bits: names of one hash are in the same place of a listing.
#[test]
fn a_listing_one_by_one_has_names_of_equal_hashes() {
    let image = TempImage::mke2fs(16 << 20, &["-t", "ext4"]);
    tool("tune2fs", &["-E", "hash_alg=legacy", image.text()]);
    let mut fs = mount(image.load(), "");
    let (version, seed) = (fs.superblock().hash_version(0), fs.superblock().hash_seed);
    let mut seen = std::collections::BTreeMap::new();
    let names: Vec<String> = (0..400_000)
        .filter_map(|n| {
            let name = format!("{n:x}");
            let hash = name_hash(name.as_bytes(), version, seed);
            seen.insert(hash, name.clone()).map(|other| [other, name])
        })
        .take(3)
        .flatten()
        .collect();
    let root = fs.root();
    for name in &names {
        fs.create(&Caller::default(), root, name.as_bytes(), &NODE).unwrap();
    }
    let (mut cookie, mut found) = (0, Vec::new());
    loop {
        let mut next = None;
        fs.readdir(root, cookie, &mut |entry| {
            next = Some(entry);
            false
        })
        .unwrap();
        let Some(entry) = next else { break };
        cookie = entry.cookie;
        found.push(String::from_utf8(entry.name).unwrap());
    }
    assert!(names.len() >= 2 && names.iter().all(|name| found.contains(name)), "{found:?}");
}

/// Names are bytes, and those that are listed can be read.
#[test]
fn names_of_attributes_come_back_as_they_were_set() {
    let mut fs = mount(empty("-t ext4"), "");
    let root = fs.root();
    let name = b"user.\xff\xfe".as_slice();
    fs.setxattr(&Caller::default(), root, name, b"value", XattrFlags::default()).unwrap();
    assert_eq!(fs.listxattr(root).unwrap(), [name]);
    assert_eq!(fs.getxattr(root, name).unwrap(), b"value");
}
