//! The background's write-back: what is old, and what is too much.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::mkfs;
use dovetail_block::{Content, MemoryDevice, Pattern};
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Simulated};

fn mount(dirty_background_bytes: Option<u64>) -> (F2fs<MemoryDevice>, [Ino; 2]) {
    let options =
        Options { checkpoint_interval_s: 1_000_000, dirty_background_bytes, ..Options::default() };
    let mut fs = F2fs::mount(mkfs(256 << 20, &[]), options, SimTime::ZERO).unwrap();
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let files =
        [b"a", b"b"].map(|name| fs.create(&Caller::default(), root, name, &node).unwrap().ino);
    fs.sync().unwrap();
    (fs, files)
}

fn write(fs: &mut F2fs<MemoryDevice>, ino: Ino, pages: u64) {
    let contents: Vec<Content> =
        (0..pages).map(|n| Content::Pattern(Pattern::named(ino.0, n, 1))).collect();
    fs.write_pages(&Caller::default(), ino, (0, pages * 4096), &contents, false).unwrap();
}

#[test]
fn content_is_written_back_when_it_is_half_a_minute_old() {
    let (mut fs, [a, b]) = mount(None);
    let before = fs.written().data;
    let written_at = |fs: &mut F2fs<MemoryDevice>, seconds: u64| {
        fs.set_now(SimTime::ZERO + SimSpan::from_ms(seconds * 1000));
        fs.wake().unwrap();
        fs.written().data - before
    };
    written_at(&mut fs, 5);
    write(&mut fs, a, 10);
    assert_eq!(written_at(&mut fs, 10), 0);
    write(&mut fs, b, 3);
    write(&mut fs, a, 20);
    assert_eq!(written_at(&mut fs, 34), 0);
    assert_eq!(written_at(&mut fs, 39), 20, "since 5 s");
    assert_eq!(written_at(&mut fs, 44), 23, "since 10 s");
}

#[test]
fn files_are_written_back_by_turns_until_no_more_than_the_limit_is_dirty() {
    let (mut fs, [a, b]) = mount(Some(4 << 20));
    let before = fs.written().data;
    write(&mut fs, a, 2000);
    write(&mut fs, b, 500);
    for written in [1024, 1524] {
        assert_eq!(fs.next_wake(), Some(fs.now()), "more than 1024 pages are dirty");
        fs.wake().unwrap();
        assert_eq!(fs.written().data - before, written, "a, then b");
    }
    assert!(fs.next_wake().unwrap() > fs.now(), "976 are");
    write(&mut fs, a, 100);
    fs.wake().unwrap();
    assert_eq!(fs.written().data - before, 1524 + 976, "the rest of a before its start again");
}

#[test]
fn summaries_of_full_segments_wait_for_the_checkpoint() {
    let (mut fs, [a, _]) = mount(None);
    let before = fs.written().ssa;
    write(&mut fs, a, 5 * 512);
    fs.fsync(a, true).unwrap();
    assert_eq!(fs.written().ssa, before, "five segments are full");
    fs.sync().unwrap();
    assert_eq!(fs.written().ssa - before, 5);
}
