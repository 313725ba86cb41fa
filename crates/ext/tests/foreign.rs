//! Volumes that other programs prepared: flags that are set here by nobody.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::{TempImage, tool};
use dovetail_block::MemoryDevice;
use dovetail_ext::{Ext, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, SetAttr, Timestamp, XattrFlags};

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
