//! A volume without space, and a journal that is too small for comfort: calls fail cleanly, and
//! what is there stays sound.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::TempImage;
use dovetail_block::MemoryDevice;
use dovetail_ext::{Ext, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{
    Caller, Error, Fallocate, FileSystem, NewNode, RenameFlags, SetAttr, Timestamp, XattrFlags,
};

const NODE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };

fn mount(mke2fs: &str, mib: u64, options: &str) -> Ext<MemoryDevice> {
    let device = TempImage::mke2fs(mib << 20, &mke2fs.split(' ').collect::<Vec<_>>()).load();
    Ext::mount(device, Options::parse(options).unwrap(), SimTime::ZERO).unwrap()
}

/// Nothing but a lack of space.
fn allowed<T>(result: Result<T, Error>) -> bool {
    match result {
        Ok(_) => true,
        Err(Error::NoSpace | Error::NotFound | Error::Exists | Error::Unsupported(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Fills the volume in every way there is, and returns how often there was no space.
fn fill(fs: &mut Ext<MemoryDevice>, rng: &mut Rng, steps: u64) -> u64 {
    let caller = Caller::default();
    let (root, mut failures) = (fs.root(), 0);
    for _ in 0..steps {
        let name = format!("file-{}", rng.below(60));
        let known = fs.lookup(root, name.as_bytes()).map(|attr| attr.ino);
        let done = match (known, rng.below(12)) {
            (Err(_), _) => allowed(fs.create(&caller, root, name.as_bytes(), &NODE)),
            (Ok(ino), 0..5) => {
                let bytes = vec![rng.below(256) as u8; rng.below(400_000) as usize];
                allowed(fs.write(&caller, ino, rng.below(1 << 20), &bytes))
            }
            (Ok(ino), 5..7) => {
                let how = Fallocate::Reserve { keep_size: rng.chance(0.5) };
                allowed(fs.fallocate(&caller, ino, how, rng.below(1 << 20), 1 + rng.below(1 << 20)))
            }
            (Ok(ino), 7) => {
                let (at, len) = (rng.below(1 << 20), 1 + rng.below(1 << 19));
                allowed(fs.fallocate(&caller, ino, Fallocate::PunchHole, at, len))
            }
            (Ok(ino), 8) => {
                let changes = SetAttr { size: Some(rng.below(1 << 20)), ..SetAttr::default() };
                allowed(fs.setattr(&caller, ino, &changes))
            }
            (Ok(ino), 9) => {
                let value = vec![1; 600];
                allowed(fs.setxattr(&caller, ino, b"user.x", &value, XattrFlags::default()))
            }
            (Ok(_), 10) => allowed(fs.unlink(&caller, root, name.as_bytes())),
            (Ok(ino), _) => allowed(fs.fsync(ino, false)),
        };
        failures += u64::from(!done);
        assert!(!fs.is_read_only());
    }
    failures
}

fn empty(fs: &mut Ext<MemoryDevice>) {
    let root = fs.root();
    for n in 0..60 {
        let name = format!("file-{n}");
        if fs.lookup(root, name.as_bytes()).is_ok() {
            fs.unlink(&Caller::default(), root, name.as_bytes()).unwrap();
        }
    }
    fs.sync().unwrap();
}

fn run(mke2fs: &str, mib: u64, options: &str, seed: u64) {
    let mut fs = mount(mke2fs, mib, options);
    let mut rng = Rng::new(seed);
    let before = fs.superblock().free_blocks;
    for _ in 0..3 {
        let failures = fill(&mut fs, &mut rng, 800);
        assert!(failures > 20, "{mke2fs} {options}: {failures}");
        fs.sync().unwrap();
        let again = Ext::mount(fs.device().clone(), Options::default(), SimTime::ZERO).unwrap();
        TempImage::of(&again.unmount().unwrap()).check_clean();
        empty(&mut fs);
        assert!(before - fs.superblock().free_blocks < 5, "{mke2fs} {options}");
    }
    TempImage::of(&fs.unmount().unwrap()).check_clean();
}

#[test]
fn ext4_without_space() {
    run("-t ext4 -b 4096", 12, "", 1);
    run("-t ext4 -b 1024", 12, "", 2);
    run("-t ext4 -b 1024", 12, "nodelalloc", 3);
    run("-t ext4 -b 4096", 12, "data=journal", 4);
}

#[test]
fn ext3_without_space() {
    run("-t ext3 -b 1024", 12, "", 5);
    run("-t ext3 -b 4096", 12, "data=writeback", 6);
}

/// Delayed blocks take less, once they have their places, than was kept for them.
#[test]
fn a_full_volume_can_be_made_less_full() {
    let caller = Caller::default();
    for mke2fs in ["-t ext4 -b 4096", "-t ext4 -b 1024", "-t ext3 -b 1024"] {
        let mut fs = mount(mke2fs, 64, "");
        let root = fs.root();
        let ino = fs.create(&caller, root, b"fill", &NODE).unwrap().ino;
        let mut end = 0;
        for len in [65_536, 4096] {
            while allowed(fs.write(&caller, ino, end, &vec![7; len])) {
                end += len as u64;
            }
        }
        fs.create(&caller, root, b"small", &NODE).unwrap();
        let to = (root, b"tiny".as_slice());
        fs.rename(&caller, (root, b"small"), to, RenameFlags::default()).unwrap();
        fs.setxattr(&caller, ino, b"user.x", b"1", XattrFlags::default()).unwrap();
        fs.fallocate(&caller, ino, Fallocate::PunchHole, 40_960, 8192).unwrap();
        for size in [1000, 0] {
            fs.setattr(&caller, ino, &SetAttr { size: Some(size), ..SetAttr::default() }).unwrap();
        }
        TempImage::of(&fs.unmount().unwrap()).check_clean();
    }
}

#[test]
fn reserved_blocks_are_for_root() {
    let mut fs = mount("-t ext4 -b 4096 -m 5", 64, "");
    let (root, user) = (fs.root(), Caller { uid: 1000, gid: 1000, ..Caller::default() });
    let promised = fs.create(&user, root, b"promised", &NODE).unwrap().ino;
    fs.fallocate(&user, promised, Fallocate::Reserve { keep_size: false }, 0, 1 << 20).unwrap();
    let ino = fs.create(&user, root, b"user", &NODE).unwrap().ino;
    let available = fs.statfs().unwrap().available * 4096;
    let mut end = 0;
    while allowed(fs.write(&user, ino, end, &[7; 65_536])) {
        end += 65_536;
    }
    assert!(end <= available && end > available - (2 << 20), "{end} of {available}");
    fs.write(&user, promised, 0, &vec![8; 1 << 20]).unwrap();
    let ino = fs.create(&user, root, b"another", &NODE).unwrap().ino;
    fs.write(&Caller::default(), ino, 0, &vec![7; 2 << 20]).unwrap();
    TempImage::of(&fs.unmount().unwrap()).check_clean();
}

/// `program > file`, and a commit by somebody else before the content is written back.
#[test]
fn a_file_that_is_written_anew_has_its_old_or_its_new_content_after_a_power_cut() {
    let (caller, old, new) = (Caller::default(), vec![b'o'; 60_000], vec![b'n'; 60_000]);
    let zeros = vec![0; 60_000];
    for (options, closes, expected) in [
        ("", false, &new),
        ("", true, &new),
        ("data=writeback", false, &new),
        ("data=writeback", true, &new),
        ("noauto_da_alloc", false, &zeros),
        ("noauto_da_alloc", true, &zeros),
    ] {
        let mut fs = mount("-t ext4 -b 4096", 64, options);
        let root = fs.root();
        let ino = fs.create(&caller, root, b"file", &NODE).unwrap().ino;
        fs.write(&caller, ino, 0, &old).unwrap();
        fs.sync().unwrap();
        fs.hold(ino);
        fs.setattr(&caller, ino, &SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
        let other = fs.create(&caller, root, b"other", &NODE).unwrap().ino;
        let whole = [(0, &new[..])];
        let halves = [(0, &new[..30_000]), (30_000, &new[30_000..])];
        for &(at, part) in if closes { &whole[..] } else { &halves[..] } {
            fs.write(&caller, ino, at, part).unwrap();
            if closes {
                fs.forget(ino, 1).unwrap();
            }
            fs.write(&caller, other, at, b"x").unwrap();
            fs.fsync(other, false).unwrap();
        }
        let mut after = Ext::mount(fs.device().clone(), Options::default(), SimTime::ZERO).unwrap();
        let mut found = vec![1; 60_000];
        assert_eq!(after.read(ino, 0, &mut found), Ok(60_000));
        assert!(found == *expected, "{options}, {closes}: {:?}", &found[..8]);
        TempImage::of(&after.unmount().unwrap()).check_clean();
    }
}

#[test]
fn no_inodes_are_left() {
    let mut fs = mount("-t ext4 -b 1024 -N 64", 12, "");
    let root = fs.root();
    let made = (0..100)
        .take_while(|n| {
            allowed(fs.create(&Caller::default(), root, format!("a{n}").as_bytes(), &NODE))
        })
        .count();
    assert!((30..64).contains(&made), "{made}");
    fs.unlink(&Caller::default(), root, b"a5").unwrap();
    fs.create(&Caller::default(), root, b"again", &NODE).unwrap();
    TempImage::of(&fs.unmount().unwrap()).check_clean();
}

/// Thousands of transactions go around the smallest journal that mke2fs makes.
#[test]
fn the_smallest_journal() {
    for options in ["", "data=journal"] {
        let mut fs = mount("-t ext4 -b 1024 -J size=1", 64, options);
        let root = fs.root();
        let caller = Caller::default();
        for n in 0..3000_u32 {
            let name = format!("{:04}", n % 700);
            match fs.lookup(root, name.as_bytes()) {
                Ok(_) => fs.unlink(&caller, root, name.as_bytes()).unwrap(),
                Err(_) => {
                    let ino = fs.create(&caller, root, name.as_bytes(), &NODE).unwrap().ino;
                    fs.write(&caller, ino, 0, &vec![n as u8; (n % 9000) as usize]).unwrap();
                    if n.is_multiple_of(3) {
                        fs.fsync(ino, false).unwrap();
                    }
                }
            }
        }
        let events = fs.journal_events();
        assert!(events.checkpoints > 5 && events.commits > 500, "{events:?}");
        fs.sync().unwrap();
        let again = Ext::mount(fs.device().clone(), Options::default(), SimTime::ZERO).unwrap();
        TempImage::of(&again.unmount().unwrap()).check_clean();
        TempImage::of(&fs.unmount().unwrap()).check_clean();
    }
}

/// Content that goes through the journal is more than the journal has blocks: in one write, in
/// many, and in many files.
#[test]
fn more_content_than_journal() {
    let mut fs = mount("-t ext3 -b 1024 -J size=1", 64, "data=journal");
    let (root, caller) = (fs.root(), Caller::default());
    let content: Vec<u8> = (0..6 << 20_u32).map(|n| (n / 5) as u8).collect();
    let whole = fs.create(&caller, root, b"whole", &NODE).unwrap().ino;
    fs.write(&caller, whole, 700, &content).unwrap();
    let parts = fs.create(&caller, root, b"parts", &NODE).unwrap().ino;
    for (n, part) in content.chunks(65_536).enumerate() {
        fs.write(&caller, parts, n as u64 * 65_536, part).unwrap();
        let name = format!("{n}");
        let small = fs.create(&caller, root, name.as_bytes(), &NODE).unwrap().ino;
        fs.write(&caller, small, 0, &part[..20_000]).unwrap();
    }
    let device = fs.unmount().unwrap();
    TempImage::of(&device).check_clean();
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    for (ino, offset) in [(whole, 700), (parts, 0)] {
        let mut read = vec![0; content.len()];
        assert_eq!(fs.read(ino, offset, &mut read).unwrap(), content.len());
        assert!(read == content);
    }
}

/// Its next mount shows a time as it is shown at once.
#[test]
fn a_time_beyond_the_inode_becomes_the_nearest() {
    let caller = Caller::default();
    let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
    for (size, set, stored) in [
        ("128", time(4_102_488_000, 5), time(0x7FFF_FFFF, 0)),
        ("256", time(4_102_488_000, 5), time(4_102_488_000, 5)),
        ("256", time(1 << 40, 5), time(0x3_7FFF_FFFF, 0)),
    ] {
        let mut fs = mount(&format!("-t ext3 -I {size}"), 16, "");
        let root = fs.root();
        let ino = fs.create(&caller, root, b"a", &NODE).unwrap().ino;
        let changes = SetAttr { mtime: Some(set), ..SetAttr::default() };
        assert_eq!(fs.setattr(&caller, ino, &changes).unwrap().mtime, stored);
        let device = fs.unmount().unwrap();
        let mut again = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        assert_eq!(again.getattr(ino).unwrap().mtime, stored);
    }
}

/// Fills the volume with a file in ever smaller pieces.
fn reserve_all(fs: &mut Ext<MemoryDevice>) {
    let (root, caller) = (fs.root(), Caller::default());
    let ino = fs.create(&caller, root, b"rest", &NODE).unwrap().ino;
    let (mut end, mut piece) = (0, 16 << 20);
    let how = Fallocate::Reserve { keep_size: false };
    while piece >= 4096 {
        if allowed(fs.fallocate(&caller, ino, how, end, piece)) {
            end += piece;
        } else {
            piece /= 2;
        }
    }
}

#[test]
fn content_of_reserved_blocks_has_room_for_the_extents_that_it_splits() {
    for (block_size, options) in [(4096, ""), (1024, ""), (4096, "data=journal")] {
        let mut fs = mount(&format!("-t ext4 -b {block_size}"), 128, options);
        let (root, caller) = (fs.root(), Caller::default());
        let ino = fs.create(&caller, root, b"promised", &NODE).unwrap().ino;
        let how = Fallocate::Reserve { keep_size: false };
        fs.fallocate(&caller, ino, how, 0, 32 << 20).unwrap();
        for n in 0..4000 {
            fs.write(&caller, ino, n * 8192, &[n as u8; 4096]).unwrap();
        }
        reserve_all(&mut fs);
        assert_eq!(fs.fsync(ino, false), Ok(()), "{block_size} {options}");
        let mut read = [0; 4096];
        for n in (0..4000).step_by(37) {
            fs.read(ino, n * 8192, &mut read).unwrap();
            assert_eq!(read, [n as u8; 4096]);
        }
        TempImage::of(&fs.unmount().unwrap()).check_errors();
    }
}

#[test]
fn delayed_blocks_have_room_for_the_leaves_that_they_split() {
    let mut fs = mount("-t ext4 -b 4096", 128, "");
    let (root, caller) = (fs.root(), Caller::default());
    let ino = fs.create(&caller, root, b"sparse", &NODE).unwrap().ino;
    for block in 0..64 * 340 {
        fs.write(&caller, ino, block * 8192, &[1; 4096]).unwrap();
    }
    fs.sync().unwrap();
    let rest = fs.create(&caller, root, b"rest", &NODE).unwrap().ino;
    let (how, mut end) = (Fallocate::Reserve { keep_size: false }, 0);
    for (least, blocks) in [(1200, 1024), (170, 64), (100, 8)] {
        while fs.statfs().unwrap().free > least {
            fs.fallocate(&caller, rest, how, end * 4096, blocks * 4096).unwrap();
            end += blocks;
        }
    }
    let accepted = (0..64)
        .filter(|n| allowed(fs.write(&caller, ino, (n * 680 + 341) * 4096, &[2; 4096])))
        .count();
    assert!(accepted > 10, "{accepted}");
    assert_eq!(fs.fsync(ino, false), Ok(()));
    TempImage::of(&fs.unmount().unwrap()).check_errors();
}

#[test]
fn a_full_volume_allows_what_takes_no_block() {
    let mut fs = mount("-t ext4 -b 1024 -I 128", 12, "");
    let (root, caller) = (fs.root(), Caller::default());
    let names: Vec<String> = (0..60).map(|n| format!("{n}")).collect();
    let files: Vec<_> = names
        .iter()
        .map(|name| fs.create(&caller, root, name.as_bytes(), &NODE).unwrap().ino)
        .collect();
    let filler = fs.create(&caller, root, b"filler", &NODE).unwrap().ino;
    let mut end = 0;
    for len in [65_536, 1024] {
        while allowed(fs.write(&caller, filler, end, &vec![7; len])) {
            end += len as u64;
        }
    }
    fs.sync().unwrap();
    let mut set = |ino| fs.setxattr(&caller, ino, b"user.x", b"1", XattrFlags::default());
    let given = files.iter().take_while(|&&ino| allowed(set(ino))).count();
    assert!((1..50).contains(&given), "{given}");
    let name = |n: usize| (root, names[n].as_bytes());
    let exchange = RenameFlags { exchange: true, ..RenameFlags::default() };
    fs.rename(&caller, name(50), name(51), exchange).unwrap();
    fs.rename(&caller, name(50), name(50), RenameFlags::default()).unwrap();
    fs.rename(&caller, name(50), name(51), RenameFlags::default()).unwrap();
    fs.removexattr(&caller, files[0], b"user.x").unwrap();
    TempImage::of(&fs.unmount().unwrap()).check_clean();
}
