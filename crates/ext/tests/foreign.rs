//! Volumes that other programs prepared: flags that are set here by nobody.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::{TempImage, tool};
use dovetail_block::MemoryDevice;
use dovetail_ext::{Ext, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{
    Caller, DirEntry, Error, FileSystem, Ino, NewNode, RenameFlags, SetAttr, Timestamp, XattrFlags,
};

const FILE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const DIR: NewNode = NewNode { mode: 0o040_755, rdev: (0, 0) };

fn mount(device: MemoryDevice) -> Ext<MemoryDevice> {
    Ext::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

/// The volume after requests of debugfs.
fn changed(device: &MemoryDevice, requests: &[&str]) -> MemoryDevice {
    let image = TempImage::of(device);
    for request in requests {
        tool("debugfs", &["-w", "-R", request, image.text()]);
    }
    image.load()
}

fn made(mke2fs: &str) -> Ext<MemoryDevice> {
    mount(TempImage::mke2fs(32 << 20, &mke2fs.split(' ').collect::<Vec<_>>()).load())
}

fn file(fs: &mut Ext<MemoryDevice>, dir: Ino, name: &str, bytes: &[u8]) -> Ino {
    let ino = fs.create(&Caller::default(), dir, name.as_bytes(), &FILE).unwrap().ino;
    fs.write(&Caller::default(), ino, 0, bytes).unwrap();
    ino
}

fn content(fs: &mut Ext<MemoryDevice>, ino: Ino, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    assert_eq!(fs.read(ino, 0, &mut bytes), Ok(len));
    bytes
}

/// `chattr +j`: the content of such files goes through the journal whatever the mount does.
#[test]
fn blocks_of_a_journaled_file_are_used_again_only_without_its_old_content() {
    for kind in ["-t ext4 -b 4096", "-t ext3 -b 1024"] {
        let mut fs = made(kind);
        let root = fs.root();
        fs.create(&Caller::default(), root, b"d", &DIR).unwrap();
        let device = changed(&fs.unmount().unwrap(), &["sif d flags 0x4000"]);
        let mut fs = mount(if kind.contains("ext4") {
            changed(&device, &["sif d flags 0x84000"])
        } else {
            device
        });
        let dir = fs.lookup(root, b"d").unwrap().ino;
        // most of the volume, so that the next file has to take the same blocks
        let (old, new) = (vec![b'o'; 2 << 20], vec![b'n'; 20 << 20]);
        let ino = file(&mut fs, dir, "journaled", &old);
        fs.fsync(ino, false).unwrap();
        assert!(content(&mut fs, ino, old.len()) == old, "{kind}: before it goes home");
        fs.unlink(&Caller::default(), dir, b"journaled").unwrap();
        fs.sync().unwrap();
        let ino = file(&mut fs, root, "plain", &new);
        fs.fsync(ino, false).unwrap();
        let mut cut = mount(fs.device().clone());
        assert!(content(&mut cut, ino, new.len()) == new, "{kind}: after a power cut");
        let mut again = mount(fs.unmount().unwrap());
        assert!(content(&mut again, ino, new.len()) == new, "{kind}: after an unmount");
    }
}

/// Linux empties the log of a volume that does not ask for recovery: somebody has written it since.
#[test]
fn a_log_is_not_replayed_without_the_flag_of_recovery() {
    let mut fs = made("-t ext4 -b 1024");
    let root = fs.root();
    file(&mut fs, root, "a", b"a");
    fs.sync().unwrap();
    let cut = fs.device().clone();
    assert!(mount(cut.clone()).lookup(root, b"a").is_ok());
    let mut fs = mount(changed(&cut, &["feature ^needs_recovery"]));
    assert!(fs.lookup(root, b"a").is_err());
    TempImage::of(&fs.unmount().unwrap()).check_clean();
}

fn entries(fs: &mut Ext<MemoryDevice>, dir: Ino) -> Vec<String> {
    let mut names = Vec::new();
    let mut note = |entry: DirEntry| {
        names.push(String::from_utf8_lossy(&entry.name).into());
        true
    };
    fs.readdir(dir, 0, &mut note).unwrap();
    names
}

/// A directory with more names than a block holds.
fn with_many_names() -> (MemoryDevice, Vec<String>) {
    let mut fs = made("-t ext3 -b 1024");
    let root = fs.root();
    let dir = fs.create(&Caller::default(), root, b"d", &DIR).unwrap().ino;
    let names: Vec<String> = (0..300).map(|n| format!("a-name-{n}")).collect();
    for name in &names {
        file(&mut fs, dir, name, b"x");
    }
    (fs.unmount().unwrap(), names)
}

#[test]
fn a_damaged_index_is_passed_over() {
    let (mut device, names) = with_many_names();
    let image = TempImage::of(&device);
    let block: u64 = tool("debugfs", &["-R", "bmap d 0", image.text()]).trim().parse().unwrap();
    let byte = block * 1024 + 0x1C;
    // the version of the hash
    device.bytes_mut(dovetail_block::Lba(byte / 4096)).unwrap()[(byte % 4096) as usize] = 9;
    let mut fs = mount(device);
    let dir = fs.lookup(fs.root(), b"d").unwrap().ino;
    for name in &names {
        assert!(fs.lookup(dir, name.as_bytes()).is_ok(), "{name}");
    }
    let listed = entries(&mut fs, dir);
    assert!(names.iter().all(|name| listed.contains(name)), "{}", listed.len());
    file(&mut fs, dir, "new", b"x");
    assert!(fs.lookup(dir, b"new").is_ok() && entries(&mut fs, dir).len() == listed.len() + 1);
    TempImage::of(&fs.unmount().unwrap()).check_clean();
}

#[test]
fn a_directory_that_loses_its_index_has_no_flag_of_one() {
    let (device, names) = with_many_names();
    let mut fs = mount(changed(&device, &["feature ^dir_index"]));
    let dir = fs.lookup(fs.root(), b"d").unwrap().ino;
    for n in 0..40 {
        file(&mut fs, dir, &format!("new-{n}"), b"x");
    }
    let mut fs = mount(changed(&fs.unmount().unwrap(), &["feature dir_index"]));
    for name in &names {
        assert!(fs.lookup(dir, name.as_bytes()).is_ok(), "{name}");
    }
    TempImage::of(&fs.unmount().unwrap()).check_errors();
}

/// `tune2fs -I 256` leaves inodes whose fields beyond 128 bytes nobody uses.
#[test]
fn attributes_of_an_inode_without_extra_fields_lie_behind_the_fields() {
    let mut fs = made("-t ext4 -b 4096");
    let root = fs.root();
    file(&mut fs, root, "a", b"a");
    let mut fs = mount(changed(&fs.unmount().unwrap(), &["sif a extra_isize 0"]));
    let ino = fs.lookup(root, b"a").unwrap().ino;
    let late = Timestamp { seconds: 1 << 32, nanoseconds: 7 };
    let changes = SetAttr { mtime: Some(late), ..SetAttr::default() };
    fs.setattr(&Caller::default(), ino, &changes).unwrap();
    fs.setxattr(&Caller::default(), ino, b"user.x", b"value", XattrFlags::default()).unwrap();
    let image = TempImage::of(&fs.unmount().unwrap());
    image.check_clean();
    let stat = tool("debugfs", &["-R", "stat a", image.text()]);
    assert!(stat.contains("Size of extra inode fields: 32"), "{stat}");
    assert!(stat.contains("user.x (5) = \"value\""), "{stat}");
    assert_eq!(mount(image.load()).lookup(root, b"a").unwrap().mtime, late);
}

/// `chattr +i` and `+a` keep more from changing than content.
#[test]
fn marks_of_chattr_keep_names_and_attributes() {
    let caller = Caller::default();
    let mut fs = made("-t ext4 -b 4096");
    let root = fs.root();
    for (dir, flags) in [("i", 0x8_0010), ("a", 0x8_0020)] {
        let dir = fs.create(&caller, root, dir.as_bytes(), &DIR).unwrap().ino;
        file(&mut fs, dir, "inside", b"x");
        file(&mut fs, root, &format!("file-{flags:x}"), b"x");
    }
    let mut fs = mount(changed(
        &fs.unmount().unwrap(),
        &[
            "sif i flags 0x80010",
            "sif a flags 0x80020",
            "sif file-80010 flags 0x80010",
            "sif file-80020 flags 0x80020",
        ],
    ));
    let refused = |done: Result<(), Error>| assert!(matches!(done, Err(Error::NotPermitted(_))));
    let free = RenameFlags::default();
    for dir in [b"i", b"a"] {
        let dir = fs.lookup(root, dir).unwrap().ino;
        refused(fs.unlink(&caller, dir, b"inside"));
        refused(fs.rename(&caller, (dir, b"inside"), (root, b"outside"), free));
    }
    let dirs = [b"i", b"a"].map(|dir| fs.lookup(root, dir).unwrap().ino);
    refused(fs.create(&caller, dirs[0], b"new", &FILE).map(drop));
    fs.create(&caller, dirs[1], b"new", &FILE).unwrap();
    refused(fs.rmdir(&caller, root, b"i"));
    for name in [&b"file-80010"[..], b"file-80020"] {
        let ino = fs.lookup(root, name).unwrap().ino;
        refused(fs.unlink(&caller, root, name));
        refused(fs.link(&caller, ino, root, b"link").map(drop));
        refused(fs.rename(&caller, (root, name), (root, b"other"), free));
        let changes = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        refused(fs.setattr(&caller, ino, &changes).map(drop));
        refused(fs.setxattr(&caller, ino, b"user.x", b"x", XattrFlags::default()));
        let other = file(&mut fs, root, "other", b"x");
        refused(fs.rename(&caller, (root, b"other"), (root, name), free));
        assert!(fs.getattr(other).is_ok());
        fs.unlink(&caller, root, b"other").unwrap();
    }
    TempImage::of(&fs.unmount().unwrap()).check_clean();
}
