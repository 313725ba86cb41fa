//! Cleaning by need: in which call it happens, and after which rule.

use dovetail_block::MemoryDevice;
use dovetail_f2fs::{F2fs, Options};
use dovetail_testkit::shuffled;
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode};

use crate::common::{mkfs, strict_fsck};

const PAGES: u64 = 12_000;

/// A volume of 128 MiB with `mode=lfs`, and a file that takes most of it.
fn volume(options: &str) -> (F2fs<MemoryDevice>, Ino) {
    let options = Options::parse(&format!("mode=lfs,{options}")).unwrap();
    let mut fs = F2fs::mount(mkfs(128 << 20, &["-o", "30"]), options, SimTime::ZERO).unwrap();
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let ino = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
    (0..PAGES).for_each(|page| write(&mut fs, ino, page));
    fs.sync().unwrap();
    (fs, ino)
}

fn write(fs: &mut F2fs<MemoryDevice>, ino: Ino, page: u64) {
    fs.write(&Caller::default(), ino, page * 4096, &[page as u8; 4096]).unwrap();
}

/// Overwrites every page once, with an fsync after each 16, and checks the volume. Sections cleaned
/// in the writes, in the fsyncs, and checkpoints.
fn overwritten(options: &str) -> [u64; 3] {
    let (mut fs, ino) = volume(options);
    let checkpoints = fs.events().checkpoints;
    let [mut in_writes, mut in_fsyncs] = [0; 2];
    for pages in shuffled(PAGES, 1).chunks(16) {
        let before = fs.events().foreground_cleanings;
        pages.iter().for_each(|page| write(&mut fs, ino, *page));
        let written = fs.events().foreground_cleanings;
        fs.fsync(ino, false).unwrap();
        in_writes += written - before;
        in_fsyncs += fs.events().foreground_cleanings - written;
    }
    let checkpoints = fs.events().checkpoints - checkpoints;
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
    [in_writes, in_fsyncs, checkpoints]
}

/// Linux 6.12: a write that reserves no block does not look for space.
#[test]
fn overwrites_are_cleaned_for_in_their_fsync() {
    let [in_writes, in_fsyncs, _] = overwritten("");
    assert!(in_writes == 0 && in_fsyncs > 10, "{in_writes} {in_fsyncs}");
}

/// A write that reserves blocks looks for space: the fill of the volume ends in cleaning, with fewer
/// pages dirty than the cache writes back by itself.
#[test]
fn appends_are_cleaned_for_at_once() {
    let (mut fs, ino) = volume("");
    overwritten_once(&mut fs, ino);
    let before = fs.events().foreground_cleanings;
    let free = fs.statfs().unwrap().free;
    (PAGES..PAGES + free - 64).for_each(|page| write(&mut fs, ino, page));
    assert!(fs.events().foreground_cleanings > before);
}

fn overwritten_once(fs: &mut F2fs<MemoryDevice>, ino: Ino) {
    shuffled(PAGES, 1).into_iter().for_each(|page| write(fs, ino, page));
    fs.fsync(ino, false).unwrap();
}

/// Small files lie in their inodes, which nothing but a checkpoint writes: many of them must not
/// pile up, as the checkpoint would not find room for them.
#[test]
fn overwrites_of_small_files_do_not_pile_up() {
    let options = Options::parse("mode=lfs").unwrap();
    let device = mkfs(128 << 20, &["-o", "30"]);
    let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
    let (caller, root) = (Caller::default(), fs.root());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let mut files = Vec::new();
    while fs.statfs().unwrap().free > 600 {
        let name = files.len().to_string();
        files.push(fs.create(&caller, root, name.as_bytes(), &node).unwrap().ino);
        fs.write(&caller, files[files.len() - 1], 0, &[1; 1000]).unwrap();
    }
    fs.sync().unwrap();
    for pass in 2..5 {
        files.iter().for_each(|file| fs.write(&caller, *file, 0, &[pass; 1000]).unwrap());
    }
    fs.sync().unwrap();
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}

/// From Linux 6.4 on each checkpoint of cleaning moves a section. Before, one that was enough did
/// not, and no room was made for dirty content: cleaning began later, with fewer holes.
#[test]
fn each_checkpoint_of_cleaning_moves_a_section() {
    let [_, cleaned, checkpoints] = overwritten("gc_after_checkpoint");
    assert_eq!(cleaned, checkpoints);
    let [_, before, _] = overwritten("nogc_after_checkpoint");
    assert!(before > cleaned, "{before} {cleaned}");
}
