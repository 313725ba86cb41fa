//! Millions of damaged images: opened, walked, read, checked and repaired without a panic, a hang or an allocation beyond
//! twice the image.
//!
//! The normal run is short; `cargo xtask fuzz` goes on for millions. A failing input is printed with what to type:
//! `DOVETAIL_SEED=7 cargo test -p dovetail-f2fs --test fuzz`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it saw"
)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::lab::{At, Lab};
use common::{kernel_image, tool};
use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, Lba, MemoryDevice, RecordingDevice,
};
use dovetail_f2fs::format::Footer;
use dovetail_f2fs::fsck::{Options, Severity, check, repair};
use dovetail_f2fs::{Visit, Volume};
use dovetail_time::{Rng, SimTime};

/// Inputs of the normal run; `DOVETAIL_FUZZ` asks for another number.
const INPUTS: u64 = 3000;

/// Counts what is allocated, and the most there was.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came; beside it numbers are added.
#[allow(unsafe_code, reason = "an allocator that counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise about `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Blocks with one structure, and the fields (offset, bytes) in them.
type Structure = (Vec<u64>, Vec<(usize, usize)>);

/// A sound image to start from; its blocks are shared by all inputs.
struct Seed {
    name: &'static str,
    lab: Lab,
    structures: Vec<Structure>,
    /// Blocks that one input may read before it counts as hanging.
    max_reads: u64,
}

/// A seed with changed blocks.
struct Input<'a> {
    seed: &'a Seed,
    lab: Lab,
    reads: u64,
}

impl BlockDevice for &mut Input<'_> {
    fn info(&self) -> DeviceInfo {
        self.lab.image.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let Command::Read { range, .. } = &command else { panic!("only reads") };
        self.reads += range.blocks;
        assert!(self.reads < self.seed.max_reads, "hangs: {} blocks were read", self.reads);
        self.lab.image.submit(at, command)
    }
}

fn fields(every: &[(usize, usize)], repeat: &[(usize, usize, usize, usize)]) -> Vec<(usize, usize)> {
    let repeated = repeat
        .iter()
        .flat_map(|&(start, step, count, size)| (0..count).map(move |i| (start + i * step, size)));
    every.iter().copied().chain(repeated).collect()
}

impl Seed {
    fn new(name: &'static str, image: MemoryDevice) -> Self {
        let lab = Lab::new(image);
        let structures = structures(&lab);
        let max_reads = 40 * lab.image.used().count() as u64 + 20_000;
        Self { name, lab, structures, max_reads }
    }

    fn sound(&self) -> Input<'_> {
        Input { seed: self, lab: self.lab.clone(), reads: 0 }
    }

    fn input(&self, rng: &mut Rng) -> Input<'_> {
        let mut input = self.sound();
        for _ in 0..=rng.below(5) {
            input.mutate(rng);
        }
        input
    }
}

/// Structures of the image, and where their fields are.
fn structures(lab: &Lab) -> Vec<Structure> {
    let s = &lab.superblock;
    let used: Vec<u64> = lab.image.used().map(|(lba, _)| lba.0).collect();
    let bytes = |block: &u64| lab.image.bytes(Lba(*block)).unwrap();
    let area = |from: u32, to: u32| -> Vec<u64> {
        used.iter().copied().filter(|block| (u64::from(from)..u64::from(to)).contains(block)).collect()
    };
    let mut volume = Volume::open(lab.image.clone()).unwrap();
    let pack = lab.pack(lab.checkpoint.pack) as u32;
    let (mut inodes, mut inner, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for block in area(s.main_start.0, s.main_end()) {
        let footer = Footer::parse(bytes(&block));
        let live = volume.nat(footer.nid).is_ok_and(|entry| u64::from(entry.address.0) == block);
        (if !live {
            &mut data
        } else if footer.nid == footer.ino {
            &mut inodes
        } else {
            &mut inner
        })
        .push(block);
    }
    data.retain(|block| bytes(block)[2384] == b'.'); // directories have "." first
    let footer = [(4072, 4), (4076, 4), (4080, 4), (4084, 8), (4092, 4)];
    let inode = [
        (0, 2),
        (2, 1),
        (3, 1),
        (12, 4),
        (16, 8),
        (24, 8),
        (56, 4),
        (72, 4),
        (76, 4),
        (80, 4),
        (84, 4),
        (88, 4),
        (347, 1),
        (348, 4),
        (352, 4),
        (356, 4),
        (360, 2),
        (362, 2),
        (364, 4),
        (368, 4),
        (392, 1),
        (393, 1),
        (3852, 4),
        (3876, 4),
    ];
    let head = [
        (0, 8),
        (8, 8),
        (16, 8),
        (24, 4),
        (28, 4),
        (32, 4),
        (132, 4),
        (136, 4),
        (140, 4),
        (144, 4),
        (148, 4),
        (152, 4),
        (156, 4),
        (160, 4),
        (164, 4),
    ];
    let pack_blocks = area(pack, pack + lab.checkpoint.total_blocks);
    let lists = vec![
        (
            vec![0, 1],
            fields(
                &[],
                &[
                    (1024, 4, 30, 4),
                    (1024 + 1148, 4, 1, 4),
                    (1024 + 1664, 4, 1, 4),
                    (1024 + 2180, 4, 1, 4),
                    (1024 + 2745, 4, 3, 4),
                ],
            ),
        ),
        (
            vec![pack.into()],
            fields(
                &head,
                &[
                    (36, 4, 3, 4),
                    (68, 2, 3, 2),
                    (84, 4, 3, 4),
                    (116, 2, 3, 2),
                    (176, 1, 6, 1),
                    (192, 1, 128, 1),
                ],
            ),
        ),
        (
            pack_blocks,
            fields(
                &[(0, 2), (507, 2), (3584, 2), (4091, 1)],
                &[(2, 13, 38, 4), (7, 13, 38, 4), (509, 78, 6, 4), (1014, 7, 400, 4)],
            ),
        ),
        (area(s.sit_start.0, s.nat_start.0), fields(&[], &[(0, 74, 30, 2), (2, 74, 30, 8), (30, 74, 30, 8)])),
        (area(s.nat_start.0, s.ssa_start.0), fields(&[], &[(0, 9, 60, 1), (1, 9, 60, 4), (5, 9, 60, 4)])),
        (
            area(s.ssa_start.0, s.main_start.0),
            fields(&[(4091, 1)], &[(0, 7, 100, 4), (4, 7, 100, 1), (5, 7, 100, 2)]),
        ),
        (
            inodes,
            fields(
                &[&inode[..], &footer].concat(),
                &[
                    (360, 4, 20, 4),
                    (4052, 4, 5, 4),
                    (364, 1, 40, 1),
                    (394, 11, 12, 4),
                    (398, 11, 12, 4),
                    (402, 11, 12, 2),
                ],
            ),
        ),
        (inner, fields(&footer, &[(0, 4, 40, 4)])),
        (
            data,
            fields(
                &[],
                &[
                    (0, 1, 27, 1),
                    (30, 11, 60, 4),
                    (34, 11, 60, 4),
                    (38, 11, 60, 2),
                    (40, 11, 60, 1),
                    (2384, 8, 60, 1),
                ],
            ),
        ),
    ];
    lists.into_iter().filter(|(blocks, _)| !blocks.is_empty()).collect()
}

impl Input<'_> {
    fn mutate(&mut self, rng: &mut Rng) {
        let seed = self.seed;
        let (blocks, fields) = &seed.structures[rng.below(seed.structures.len() as u64) as usize];
        let block = blocks[rng.below(blocks.len() as u64) as usize];
        let bytes = self.lab.bytes(block);
        match rng.below(16) {
            0 => bytes[rng.below(4096) as usize] ^= 1 << rng.below(8),
            1 => bytes[rng.below(4096) as usize] = rng.below(256) as u8,
            2 => {
                let other = blocks[rng.below(blocks.len() as u64) as usize];
                *bytes = **seed.lab.image.bytes(Lba(other)).unwrap();
            }
            3 if rng.below(8) == 0 => bytes.fill(rng.below(2) as u8 * 0xFF),
            _ => {
                let (offset, size) = fields[rng.below(fields.len() as u64) as usize];
                let mut old = [0; 8];
                old[..size].copy_from_slice(&bytes[offset..offset + size]);
                let new = value(u64::from_le_bytes(old), seed, rng);
                bytes[offset..offset + size].copy_from_slice(&new.to_le_bytes()[..size]);
            }
        }
        if rng.below(16) != 0 {
            self.lab.seal(block);
        }
    }
}

/// A value that is likely to matter: a limit, a neighbour, a nid, a block, or anything.
fn value(old: u64, seed: &Seed, rng: &mut Rng) -> u64 {
    let s = &seed.lab.superblock;
    match rng.below(12) {
        0 => 0,
        1 => u64::MAX,
        2 => old.wrapping_add(1),
        3 => old.wrapping_sub(1),
        4 => old ^ 1 << rng.below(64),
        5 => rng.next_u64() >> rng.below(64),
        6 => u64::from(s.main_start.0) + rng.below(u64::from(s.segment_count_main) * 512),
        7 => u64::from(s.main_start.0) + rng.below(80),
        8 => rng.below(60),
        9 => u64::from(s.max_nid()) - rng.below(2),
        10 => u64::MAX - 1,
        _ => 1 << rng.below(64),
    }
}

/// Opens, walks, reads (at most a megabyte), checks; returns whether it is clean.
fn use_all(input: &mut Input<'_>) -> bool {
    let mut left = 1 << 20;
    let mut buffer = vec![0; 64 << 10];
    if let Ok(mut volume) = Volume::open(&mut *input) {
        let Ok(root) = volume.root() else { return check_only(input) };
        volume.walk(root, |volume, entry| {
            let Ok(inode) = entry.inode else { return Visit::Enter };
            let _ = (volume.xattrs(&inode), volume.read_link(&inode));
            if inode.is_dir() {
                let _ = volume.lookup(&inode, b"no such name");
            }
            let mut at = 0;
            while left > 0 {
                let Ok(next) = volume.next_data(&inode, at) else { break };
                match volume.read(&inode, next, &mut buffer) {
                    Ok(len) if len > 0 => (at, left) = (next + len as u64, left - len as i64),
                    _ => break,
                }
            }
            Visit::Enter
        });
    }
    check_only(input)
}

fn check_only(input: &mut Input<'_>) -> bool {
    check(&mut *input, Options { kept_per_kind: 100 }, |_| {}).is_ok_and(|report| report.is_clean())
}

/// A repair leaves no more errors than there were, and nothing that it could do itself.
fn repair_too(input: &Input<'_>) {
    let errors = |image: &MemoryDevice| {
        check(image.clone(), Options::default(), |_| {}).map_or(0, |report| report.count(Severity::Error))
    };
    let before = errors(&input.lab.image);
    let device = RecordingDevice::new(input.lab.image.clone());
    let recording = device.recording();
    if repair(device).is_ok() {
        let after = errors(&recording.newest());
        assert!(after <= before, "a repair made {after} errors of {before}");
    }
}

/// The small images come often, those of a kernel now and then: they take fifty times as long.
fn seeds() -> Vec<Seed> {
    let folder = tempfile::tempdir().unwrap();
    let small = small_image(folder.path(), &[]);
    let features = "extra_attr,inode_checksum,sb_checksum,inode_crtime";
    vec![
        Seed::new("small", with_inline(small)),
        Seed::new("small with features", small_image(folder.path(), &["-O", features])),
        Seed::new("kernel", kernel_image("f2fs-default")),
        Seed::new("kernel with features", kernel_image("f2fs-features")),
        Seed::new("not unmounted", kernel_image("f2fs-crash")),
    ]
}

/// 128 MiB with a few files, one of them with direct nodes, and an xattr.
fn small_image(folder: &Path, options: &[&str]) -> MemoryDevice {
    let (image, source) = (folder.join("image"), folder.join("source"));
    let _ = fs::remove_dir_all(&source);
    fs::File::create(&image).unwrap().set_len(128 << 20).unwrap();
    let name = image.to_str().unwrap();
    tool("mkfs.f2fs", &[&["-q", "-f"], options, &[name]].concat());
    fs::create_dir_all(source.join("folder/below")).unwrap();
    fs::create_dir_all(source.join("inline")).unwrap();
    fs::write(source.join("large"), vec![7; 4096 * 960]).unwrap();
    for n in 0..6 {
        fs::write(source.join(format!("folder/a file of number {n}")), format!("{n}")).unwrap();
        fs::write(source.join(format!("inline/{n}")), format!("{n}")).unwrap();
    }
    std::os::unix::fs::symlink("folder/below", source.join("link")).unwrap();
    tool("sload.f2fs", &["-f", source.to_str().unwrap(), name]);
    MemoryDevice::from_image(&image).unwrap()
}

/// Makes a directory and a file inline, as a kernel has them, and lets a repair settle the counts.
fn with_inline(image: MemoryDevice) -> MemoryDevice {
    let mut lab = Lab::new(image);
    let block = **lab.image.bytes(Lba(lab.data("inline", 0).block)).unwrap();
    let at = lab.in_inode("inline", 0);
    let inode = lab.bytes(at.block);
    inode[3] = 0x05;
    inode[16..24].copy_from_slice(&3488_u64.to_le_bytes());
    inode[348..4052].fill(0);
    inode[364..364 + 23].copy_from_slice(&block[..23]);
    inode[394..394 + 182 * 11].copy_from_slice(&block[30..30 + 182 * 11]);
    inode[394 + 182 * 11..364 + 3488].copy_from_slice(&block[2384..2384 + 182 * 8]);
    let at = lab.in_inode("inline/3", 0);
    let inode = lab.bytes(at.block);
    inode[3] = 0x0B;
    inode[348..4052].fill(0);
    inode[364..370].copy_from_slice(b"inline");
    inode[16..24].copy_from_slice(&6_u64.to_le_bytes());
    let xattr = At { block: at.block, byte: 4052 - 200 };
    lab.set(xattr, &0xF2F5_2011_u32.to_le_bytes());
    lab.set(xattr.plus(24), &[1, 3, 5, 0, b'a', b'b', b'c', b'v', b'a', b'l', b'u', b'e']);
    let device = RecordingDevice::new(lab.image);
    let recording = device.recording();
    repair(device).unwrap();
    let after = recording.newest();
    let report = check(after.clone(), Options::default(), |_| {}).unwrap();
    assert_eq!(report.count(Severity::Error), 0, "{:?}", report.findings);
    after
}

fn run(seeds: &[Seed], number: u64) -> bool {
    let mut rng = Rng::new(number);
    let which = match rng.below(100) {
        0 => 2,
        1 => 3,
        2 => 4,
        odd => (odd % 2) as usize,
    };
    let seed = &seeds[which];
    let mut input = seed.input(&mut rng);
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let clean = use_all(&mut input);
    let used = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    let allowed = 2 * seed.lab.image.info().blocks as usize * 4096;
    assert!(used <= allowed, "{} takes {used} bytes, allowed are {allowed}", seed.name);
    if rng.below(if which < 2 { 20 } else { 500 }) == 0 {
        repair_too(&input);
    }
    clean
}

#[test]
fn damaged_images_never_panic_hang_or_take_memory() {
    let seeds = seeds();
    for seed in &seeds {
        let mut sound = seed.sound();
        assert!(use_all(&mut sound), "{}", seed.name);
    }
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let numbers = match variable("DOVETAIL_SEED") {
        Some(number) => number..number + 1,
        None => 0..variable("DOVETAIL_FUZZ").unwrap_or(INPUTS),
    };
    let (start, mut said, mut clean) = (Instant::now(), Duration::ZERO, 0_u64);
    let mut slowest = (Duration::ZERO, 0);
    for number in numbers.clone() {
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| run(&seeds, number))) {
            Ok(was_clean) => clean += u64::from(was_clean),
            Err(_) => panic!("DOVETAIL_SEED={number} cargo test -p dovetail-f2fs --test fuzz"),
        }
        slowest = slowest.max((began.elapsed(), number));
        let passed = start.elapsed();
        if passed >= said + Duration::from_secs(60) {
            said = passed;
            println!("{} inputs, {:.0} a second", number + 1, (number + 1) as f64 / passed.as_secs_f64());
        }
    }
    let count = numbers.end - numbers.start;
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!(
        "{count} inputs, {rate:.0} a second; {clean} without an error; the slowest ({:?}): {}",
        slowest.0, slowest.1
    );
}
