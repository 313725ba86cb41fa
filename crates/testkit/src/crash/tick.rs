//! Names that change twice within one tick of the clock, each time with an fsync of their
//! directory.
//!
//! The times of a directory do not tell then that it changed again.

use dovetail_time::Rng;
use dovetail_vfs::{
    Attr, Caller, Error, FileSystem, Ino, NewNode, RenameFlags, SetAttr, XattrFlags,
};

use super::Mountable;
use super::snapshot::Snapshot;
use crate::{Recording, RecordingDevice, Survivors};

/// All calls of this check have this one time.
const CALLER: Caller = Caller {
    uid: 0,
    gid: 0,
    now: dovetail_vfs::Timestamp { seconds: 1_700_000_000, nanoseconds: 0 },
};
const FILE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const DIRECTORY: NewNode = NewNode { mode: 0o040_755, rdev: (0, 0) };
const FIFO: NewNode = NewNode { mode: 0o010_644, rdev: (0, 0) };

/// Inodes before the second change: the root, a file, and a directory with a file in it.
#[derive(Clone, Copy)]
struct There {
    root: Ino,
    file: Ino,
    dir: Ino,
}

type Change<F> = fn(&mut F, There) -> Result<(), Error>;

/// Each change of a name or an attribute, and whether it is one of the directory `dir` rather than
/// of the root.
fn changes<F: FileSystem>() -> [(&'static str, bool, Change<F>); 16] {
    [
        ("mkfifo", false, |fs, at| make(fs, at.root, &FIFO)),
        ("create", false, |fs, at| make(fs, at.root, &FILE)),
        ("create below", true, |fs, at| make(fs, at.dir, &FILE)),
        ("mkdir", false, |fs, at| make(fs, at.root, &DIRECTORY)),
        ("symlink", false, |fs, at| fs.symlink(&CALLER, at.root, b"new", b"target").map(drop)),
        ("link", false, |fs, at| fs.link(&CALLER, at.file, at.root, b"new").map(drop)),
        ("unlink", false, |fs, at| fs.unlink(&CALLER, at.root, b"file")),
        ("rmdir", false, |fs, at| fs.rmdir(&CALLER, at.root, b"empty")),
        ("rename", false, |fs, at| rename(fs, (at.root, b"file"), (at.root, b"new"))),
        ("rename over", false, |fs, at| rename(fs, (at.root, b"file"), (at.root, b"other"))),
        ("rename out", false, |fs, at| rename(fs, (at.root, b"file"), (at.dir, b"new"))),
        ("rename in", true, |fs, at| rename(fs, (at.root, b"file"), (at.dir, b"new"))),
        ("exchange", false, |fs, at| {
            let flags = RenameFlags { exchange: true, ..RenameFlags::default() };
            fs.rename(&CALLER, (at.root, b"file"), (at.root, b"other"), flags)
        }),
        ("chmod", true, |fs, at| {
            let changes = SetAttr { mode: Some(0o700), ..SetAttr::default() };
            fs.setattr(&CALLER, at.dir, &changes).map(drop)
        }),
        ("setxattr", true, |fs, at| {
            fs.setxattr(&CALLER, at.dir, b"user.a", b"value", XattrFlags::default())
        }),
        ("removexattr", true, |fs, at| fs.removexattr(&CALLER, at.dir, b"user.old")),
    ]
}

fn make<F: FileSystem>(fs: &mut F, dir: Ino, node: &NewNode) -> Result<(), Error> {
    fs.create(&CALLER, dir, b"new", node).map(drop)
}

fn rename<F: FileSystem>(fs: &mut F, from: (Ino, &[u8]), to: (Ino, &[u8])) -> Result<(), Error> {
    fs.rename(&CALLER, from, to, RenameFlags::default())
}

/// Makes every change of a name, and of a directory's attributes, in the tick in which the
/// directory was changed and fsynced before; after an fsync of the directory (of names also an
/// fdatasync) and a power cut, it must be there.
///
/// # Errors
/// The change that is lost, or what failed.
pub fn check_changes_in_one_tick<M: Mountable>(subject: &M) -> Result<(), String> {
    for (name, below, change) in changes() {
        for data_only in [false, true] {
            if data_only && matches!(name, "chmod" | "setxattr" | "removexattr") {
                continue; // an fdatasync need not make attributes durable
            }
            check(subject, below, data_only, change)
                .map_err(|what| format!("{name}, then an fsync (data_only {data_only}): {what}"))?;
        }
    }
    Ok(())
}

fn check<M: Mountable>(
    subject: &M,
    below: bool,
    data_only: bool,
    change: Change<M::Mounted>,
) -> Result<(), String> {
    let device = RecordingDevice::new(subject.format());
    let recording = device.recording();
    let mut fs = subject.mount(device)?;
    let expected = perform(&mut fs, below, data_only, change).map_err(|error| error.to_string())?;
    drop(fs);
    survives(subject, &recording, &expected)
}

/// Changes a directory, fsyncs it, changes it again, fsyncs it again; what is there then.
fn perform<F: FileSystem>(
    fs: &mut F,
    below: bool,
    data_only: bool,
    change: Change<F>,
) -> Result<Snapshot, Error> {
    let at = prepare(fs)?;
    let changed = if below { at.dir } else { at.root };
    fs.create(&CALLER, changed, b"first", &FIFO)?;
    fs.fsync(changed, false)?;
    change(fs, at)?;
    fs.fsync(changed, data_only)?;
    Snapshot::read(fs)
}

fn prepare<F: FileSystem>(fs: &mut F) -> Result<There, Error> {
    let root = fs.root();
    let ino = |attr: Attr| attr.ino;
    let file = fs.create(&CALLER, root, b"file", &FILE).map(ino)?;
    fs.create(&CALLER, root, b"other", &FILE)?;
    fs.create(&CALLER, root, b"empty", &DIRECTORY)?;
    let dir = fs.create(&CALLER, root, b"dir", &DIRECTORY).map(ino)?;
    fs.setxattr(&CALLER, dir, b"user.old", b"value", XattrFlags::default())?;
    fs.sync()?;
    Ok(There { root, file, dir })
}

/// After a cut that loses all that was not flushed.
fn survives<M: Mountable>(
    subject: &M,
    recording: &Recording,
    expected: &Snapshot,
) -> Result<(), String> {
    let left = recording.image_at(recording.position(), Survivors::None, &mut Rng::new(0));
    let mut fs = subject.mount(RecordingDevice::new(left))?;
    let found = Snapshot::read(&mut fs).map_err(|error| error.to_string())?;
    expected.same_tree(&found)
}
