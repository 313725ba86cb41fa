//! Steps of an fsync as a scheduler sees them, and fsyncs under a clock that stands still.

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, EventId, MemoryDevice, Scheduler,
    SchedulingHint,
};
use dovetail_f2fs::{F2fs, Options};
use dovetail_testkit::{RecordingDevice, Survivors};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, FsyncRest, Ino, NewNode};

use crate::common::iplfs::{iplfs_device, iplfs_options, leaks_after_mount, mapped};
use crate::common::{mkfs, strict_fsck};

/// A step of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Flush,
    Wait,
    Await(EventId),
    Signal(EventId),
}

/// A device that is scheduled: what waits for an event has to say so.
struct Planned {
    device: MemoryDevice,
    steps: Vec<Step>,
}

impl BlockDevice for Planned {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Write { .. } => self.steps.push(Step::Write),
            Command::Flush => self.steps.push(Step::Flush),
            _ => {}
        }
        self.device.submit(at, command)
    }
}

impl Scheduler for Planned {
    fn hint(&mut self, hint: SchedulingHint) {
        match hint {
            SchedulingHint::WaitAll => self.steps.push(Step::Wait),
            SchedulingHint::Await(event) => self.steps.push(Step::Await(event)),
            SchedulingHint::Signal(event) => self.steps.push(Step::Signal(event)),
            _ => {}
        }
    }

    fn is_signalled(&self, _: EventId) -> bool {
        false // plans of other threads are still played
    }

    fn pages_on_their_way(&self) -> usize {
        0
    }
}

fn file<D: Scheduler>(fs: &mut F2fs<D>, name: &str) -> Ino {
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    fs.create(&Caller::default(), root, name.as_bytes(), &node).unwrap().ino
}

fn fsync_of(fs: &mut F2fs<Planned>, file: Ino) -> Vec<Step> {
    // larger than what is written in place
    (0..10).for_each(|n| fs.write(&Caller::default(), file, n * 8192, &[7; 4096]).unwrap());
    fs.device_mut().steps.clear();
    fs.fsync(file, false).unwrap();
    std::mem::take(&mut fs.device_mut().steps)
}

/// Nodes of fsyncs are a chain in their log, and recovery reads as far as it goes: an fsync is not
/// through before those of earlier ones are written. Its own nodes are not written before the data.
#[test]
fn an_fsync_waits_for_its_data_and_for_the_nodes_of_those_before_it() {
    let device = Planned { device: mkfs(256 << 20, &[]), steps: Vec::new() };
    // a small volume would be written in place
    let options = Options { small_volume: Some(false), ..Options::default() };
    let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
    let files = ["a", "b"].map(|name| file(&mut fs, name));
    fs.sync().unwrap();
    let mut signalled = None;
    for round in 0..3 {
        for file in files {
            let steps = fsync_of(&mut fs, file);
            let at = |step: Step| steps.iter().position(|s| *s == step);
            let data = at(Step::Write).unwrap();
            let wait = at(Step::Wait).unwrap();
            let nodes = steps.iter().rposition(|step| *step == Step::Write).unwrap();
            assert!(data < wait && wait < nodes, "{round}: {steps:?}");
            let link = steps.iter().find_map(|step| match step {
                Step::Signal(event) => Some(*event),
                _ => None,
            });
            let signal = at(Step::Signal(link.unwrap())).unwrap();
            let flush = at(Step::Flush).unwrap();
            assert!(nodes < signal && signal < flush, "{round}: {steps:?}");
            if let Some(before) = signalled.replace(link.unwrap()) {
                let awaited = at(Step::Await(before)).unwrap();
                assert!(nodes < awaited && awaited < signal, "{round}: {steps:?}");
            }
        }
    }
}

/// Times that do not change are no reason to write an inode; everything else is.
#[test]
fn what_is_fsynced_within_one_tick_survives_a_power_cut() {
    let mut fs = F2fs::mount(mkfs(256 << 20, &[]), Options::default(), SimTime::ZERO).unwrap();
    let caller = Caller::default();
    let file = file(&mut fs, "a");
    let mut expected = Vec::new();
    for n in 1..=60_u64 {
        // grows, in the inode at first, then in blocks; and is written over
        let (offset, len) = if n % 3 == 0 { (n * 7, 50) } else { (n * 331, n as usize * 40) };
        let bytes = vec![n as u8; len];
        fs.write(&caller, file, offset, &bytes).unwrap();
        let end = offset as usize + len;
        expected.resize(expected.len().max(end), 0);
        expected[offset as usize..end].copy_from_slice(&bytes);
        fs.fsync(file, n % 2 == 0).unwrap();
        let cut = F2fs::mount(fs.device().clone(), Options::default(), SimTime::ZERO);
        let mut cut = cut.unwrap();
        let root = cut.root();
        let found = cut.lookup(root, b"a").unwrap();
        let mut content = vec![0; found.size as usize];
        cut.read(found.ino, 0, &mut content).unwrap();
        assert!(content == expected, "after write {n}: {} bytes", content.len());
    }
}

/// Two files are fsynced up to their flush, and a third is written before the flush that serves
/// both, and after it.
#[test]
fn a_flush_of_the_device_ends_the_fsyncs_that_began_before_it() {
    for (offset, options) in [0, 8192, 40_960].into_iter().zip(["", "mode=lfs", ""]) {
        let options = Options::parse(options).unwrap();
        let device = RecordingDevice::new(mkfs(64 << 20, &[]));
        let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
        let (caller, content) = (Caller::default(), [7; 9000]);
        let [a, b, other] = ["a", "b", "other"].map(|name| file(&mut fs, name));
        // a new parent needs a checkpoint, which leaves nothing to flush
        fs.sync().unwrap();
        for ino in [a, b] {
            fs.write(&caller, ino, offset, &content).unwrap();
            fs.write(&caller, other, offset, &content).unwrap();
            assert_eq!(fs.begin_fsync(ino, false), Ok(FsyncRest::Flush));
        }
        fs.device_mut().submit(SimTime::ZERO, Command::Flush).unwrap();
        let record = fs.device().recording();
        let flushed = record.position();
        fs.write(&caller, other, 0, &content).unwrap();
        assert_eq!(fs.begin_fsync(other, true), Ok(FsyncRest::Flush));
        for cut in flushed..record.cuts() {
            for survivors in Survivors::ALL {
                let device = record.image_at(cut, survivors, &mut Rng::new(cut as u64));
                let mut after = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
                let root = after.root();
                for name in [b"a", b"b"] {
                    let found = after.lookup(root, name).unwrap();
                    let mut read = [0; 9000];
                    assert_eq!(after.read(found.ino, offset, &mut read), Ok(9000), "{cut}");
                    assert!(read == content, "{survivors:?} at cut {cut}");
                }
            }
        }
    }
}

/// Remaps, and mounts without barriers, have an order of their own.
#[test]
fn other_fsyncs_are_left_to_the_file_system() {
    for options in ["mode=rm-ipu", "mode=rm-ipu,remap=fsync", "fsync_mode=nobarrier", "ro"] {
        let options = Options::parse(options).unwrap();
        let mut fs = F2fs::mount(mkfs(64 << 20, &[]), options, SimTime::ZERO).unwrap();
        let root = fs.root();
        assert_eq!(fs.begin_fsync(root, false), Ok(FsyncRest::Fsync));
    }
    let mut fs = F2fs::mount(mkfs(64 << 20, &[]), Options::default(), SimTime::ZERO).unwrap();
    let root = fs.root();
    file(&mut fs, "a");
    assert_eq!(fs.begin_fsync(root, false), Ok(FsyncRest::Nothing), "a checkpoint was made");
}

/// A mount that does not recover writes where the chain leads to: the next one must not take it.
#[test]
fn a_chain_that_was_not_recovered_is_given_up() {
    let mount = |device: MemoryDevice, options: &str| {
        // content goes to the device before anybody asks for it, and its nodes do not
        let options = Options { page_cache_bytes: 1 << 18, ..Options::parse(options).unwrap() };
        F2fs::mount(device, options, SimTime::ZERO).unwrap()
    };
    let (old, new) = (vec![b'o'; 1 << 20], vec![b'n'; 1 << 20]);
    let mut fs = mount(mkfs(64 << 20, &[]), "mode=lfs");
    let first = file(&mut fs, "first");
    let second = file(&mut fs, "second");
    fs.write(&Caller::default(), first, 0, &old).unwrap();
    fs.sync().unwrap();
    fs.write(&Caller::default(), first, 0, &new).unwrap();
    fs.fsync(first, false).unwrap();
    let mut fs = mount(fs.into_device(), "mode=lfs,norecovery");
    fs.write(&Caller::default(), second, 0, &vec![b's'; 2 << 20]).unwrap();
    let mut fs = mount(fs.into_device(), "mode=lfs");
    let mut found = vec![0; old.len()];
    fs.read(first, 0, &mut found).unwrap();
    assert!(found == old, "{:?}", found.iter().find(|byte| **byte != b'o'));
}

/// On a log that is never cleaned, what was written beyond the checkpoint is discarded with it.
#[test]
fn a_chain_that_iplfs_gives_up_leaves_nothing_on_the_device() {
    let mount = |device: MemoryDevice, options: &str| {
        F2fs::mount(device, Options::parse(options).unwrap(), SimTime::ZERO).unwrap()
    };
    let caller = Caller::default();
    for with_orphan in [false, true] {
        let mut fs = mount(iplfs_device(64 << 20, &iplfs_options()), "");
        let first = file(&mut fs, "first");
        fs.write(&caller, first, 0, &vec![b'o'; 1 << 20]).unwrap();
        let orphan = file(&mut fs, "orphan");
        if with_orphan {
            fs.hold(orphan);
            let root = fs.root();
            fs.unlink(&caller, root, b"orphan").unwrap();
        }
        fs.sync().unwrap();
        fs.write(&caller, first, 0, &vec![b'n'; 4 << 20]).unwrap();
        fs.fsync(first, false).unwrap();
        let mut fs = mount(fs.into_device(), "norecovery");
        let mut found = vec![0; 1 << 20];
        assert_eq!(fs.read(first, 0, &mut found), Ok(1 << 20));
        assert!(found.iter().all(|byte| *byte == b'o'));
        assert_eq!(fs.getattr(first).unwrap().size, 1 << 20);
        let device = fs.into_device();
        // 256 blocks of content, and not 1,024 more that were fsynced
        assert!(mapped(&device).len() < 512, "{with_orphan}: {}", mapped(&device).len());
        assert_eq!(leaks_after_mount(&device), [""; 0], "{with_orphan}");
    }
}

/// The inode notes the name of its first link, which goes: no record may lead recovery there.
#[test]
fn a_file_whose_noted_name_is_gone_keeps_its_other_name_after_a_power_cut() {
    let caller = Caller::default();
    let mut fs = F2fs::mount(mkfs(64 << 20, &[]), Options::default(), SimTime::ZERO).unwrap();
    let root = fs.root();
    let ino = file(&mut fs, "first");
    fs.link(&caller, ino, root, b"second").unwrap();
    fs.sync().unwrap();
    fs.unlink(&caller, root, b"first").unwrap();
    for n in 0..3_u8 {
        fs.write(&caller, ino, 0, &[n; 20_000]).unwrap();
        fs.fsync(ino, false).unwrap();
    }
    let mut fs = F2fs::mount(fs.into_device(), Options::default(), SimTime::ZERO).unwrap();
    assert!(fs.lookup(root, b"first").is_err());
    let mut found = [9; 20_000];
    assert_eq!((fs.read(ino, 0, &mut found), found), (Ok(20_000), [2; 20_000]));
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}

/// Recovery writes each node of the chain anew, while the checkpoint and the chain keep theirs.
#[test]
fn a_volume_can_be_mounted_after_fsyncs_of_very_many_files() {
    let mut fs = F2fs::mount(mkfs(256 << 20, &[]), Options::default(), SimTime::ZERO).unwrap();
    let (caller, root) = (Caller::default(), fs.root());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let make = |n: u32| {
        let name = format!("file{n}");
        let ino = fs.create(&caller, root, name.as_bytes(), &node).unwrap().ino;
        fs.write(&caller, ino, 0, b"0").unwrap();
        ino
    };
    let files: Vec<Ino> = (0..20_480).map(make).collect();
    fs.sync().unwrap();
    let checkpoints = fs.events().checkpoints;
    for &ino in &files {
        fs.write(&caller, ino, 0, b"1").unwrap();
        fs.fsync(ino, false).unwrap();
    }
    let more = fs.events().checkpoints - checkpoints;
    assert!(more < 20, "{more} checkpoints: most fsyncs are records");
    let mut fs = F2fs::mount(fs.into_device(), Options::default(), SimTime::ZERO).unwrap();
    for &ino in &files {
        let mut byte = [0];
        fs.read(ino, 0, &mut byte).unwrap();
        assert_eq!(&byte, b"1");
    }
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}
