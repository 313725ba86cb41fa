//! The writes of a bench are the writes of a mount: the same calls with named content and with
//! bytes reach the device as the same commands.

use dovetail_block::{BLOCK_SIZE, Content, MemoryDevice, Pattern};
use dovetail_ext::Ext;
use dovetail_f2fs::F2fs;
use dovetail_testkit::{Event, Recording, RecordingDevice};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, Ino, Moment, NewNode, Simulated};

type Device = RecordingDevice<MemoryDevice>;
type Mounted = (Box<dyn Simulated>, Recording);

fn f2fs() -> Mounted {
    let mut device = MemoryDevice::new(128 << 8);
    dovetail_f2fs::mkfs::mkfs(&mut device, &dovetail_f2fs::mkfs::MkfsOptions::default()).unwrap();
    let (device, recording) = recorded(device);
    (
        Box::new(F2fs::mount(device, dovetail_f2fs::Options::default(), SimTime::ZERO).unwrap()),
        recording,
    )
}

fn ext(kind: dovetail_ext::mkfs::Kind) -> Mounted {
    let mut device = MemoryDevice::new(128 << 8);
    let options = dovetail_ext::mkfs::MkfsOptions::new(kind);
    let options = dovetail_ext::mkfs::MkfsOptions { block_size: Some(4096), ..options };
    dovetail_ext::mkfs::mkfs(&mut device, &options).unwrap();
    let (device, recording) = recorded(device);
    (
        Box::new(Ext::mount(device, dovetail_ext::Options::default(), SimTime::ZERO).unwrap()),
        recording,
    )
}

fn recorded(device: MemoryDevice) -> (Device, Recording) {
    let device = RecordingDevice::new(device);
    let recording = device.recording();
    (device, recording)
}

/// Ranges written, and flushes, in order.
fn commands(recording: &Recording) -> Vec<String> {
    let shape = |event: &Event| match event {
        Event::Write { range, fua, .. } => format!("write {range} {fua}"),
        Event::Flush => "flush".into(),
        other => format!("{other:?}"),
    };
    recording.events().iter().map(shape).collect()
}

/// Writes of all sizes to a few files, small ones among them, with fsyncs in between.
fn write_all(fs: &mut dyn Simulated, seed: u64, is_named: bool) {
    let (mut rng, caller) = (Rng::new(seed), Caller::default());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let names = (0..6).map(|n: u32| n.to_string());
    let files: Vec<Ino> = names
        .map(|name| fs.create(&caller, fs.root(), name.as_bytes(), &node).unwrap().ino)
        .collect();
    for step in 0..400_u64 {
        fs.set_now(Moment::at(SimTime::from_ns(step * 100_000_000)));
        let file = rng.below(files.len() as u64);
        let size = if file < 2 { 3000 } else { 100_000 };
        let (offset, len) = (rng.below(size), 1 + rng.below(size / 2));
        let ino = files[file as usize];
        if is_named {
            let blocks = (offset + len).div_ceil(BLOCK_SIZE) - offset / BLOCK_SIZE;
            let name = |block| Content::Pattern(Pattern::named(ino.0, block, step));
            let contents: Vec<Content> = (0..blocks).map(name).collect();
            fs.write_pages(&caller, ino, (offset, len), &contents, false).unwrap();
        } else {
            fs.write(&caller, ino, offset, &vec![step as u8 | 1; len as usize]).unwrap();
        }
        if rng.chance(0.1) {
            fs.fsync(ino, false).unwrap();
        }
        if rng.chance(0.02) {
            fs.wake().unwrap();
        }
    }
    fs.sync().unwrap();
}

#[test]
fn named_content_and_bytes_take_one_way() {
    use dovetail_ext::mkfs::Kind;
    let file_systems: [(&str, &dyn Fn() -> Mounted); 3] =
        [("F2FS", &f2fs), ("ext4", &|| ext(Kind::Ext4)), ("ext3", &|| ext(Kind::Ext3))];
    for (name, mount) in file_systems {
        for seed in 0..5 {
            let [bytes, named] = [false, true].map(|is_named| {
                let (mut fs, recording) = mount();
                write_all(fs.as_mut(), seed, is_named);
                commands(&recording)
            });
            let differs = bytes.iter().zip(&named).position(|(bytes, named)| bytes != named);
            assert!(bytes == named, "{name}, seed {seed}: command {differs:?} differs");
        }
    }
}

#[test]
fn a_small_file_of_a_bench_lies_in_its_inode() {
    let (mut fs, _) = f2fs();
    let caller = Caller::default();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&caller, fs.root(), b"small", &node).unwrap().ino;
    let [old, new] = [1, 2].map(|version| [Content::Pattern(Pattern::named(ino.0, 0, version))]);
    fs.write_pages(&caller, ino, (0, 3000), &old, false).unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.pieces(ino).unwrap(), 0, "no block of its own");
    let mut found = [Content::Empty];
    fs.read_pages(ino, 0, &mut found, false).unwrap();
    assert_eq!(found, old);
    fs.write_pages(&caller, ino, (3000, 1000), &new, false).unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.pieces(ino).unwrap(), 1, "4000 bytes do not fit");
    fs.read_pages(ino, 0, &mut found, false).unwrap();
    assert_eq!(found, new);
}
