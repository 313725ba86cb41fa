//! Random damage to metadata: no panic, and no error that only fsck.f2fs sees.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it saw"
)]

use crate::common::kernel_image;
use crate::common::lab::{At, Lab, Referee};
use dovetail_block::{Lba, MemoryDevice};
use dovetail_f2fs::format::{Footer, Nid};
use dovetail_f2fs::fsck::{Options, Report, check, repair};
use dovetail_testkit::RecordingDevice;
use dovetail_time::Rng;

/// Blocks worth damaging: one list a kind of structure, so that the few of one kind are hit as
/// often as the many of another.
fn structures(lab: &Lab) -> Vec<Vec<u64>> {
    let s = &lab.superblock;
    let blocks: Vec<u64> = lab.image.used().map(|(lba, _)| lba.0).collect();
    let bytes = |block: &u64| lab.image.bytes(Lba(*block)).unwrap();
    let area = |from: u64, to: u64| -> Vec<u64> {
        blocks.iter().copied().filter(|&block| (from..to).contains(&block)).collect()
    };
    let pack = lab.pack(lab.checkpoint.pack);
    let main: Vec<u64> = area(s.main_start.0, s.main_end().0);
    let mut volume = dovetail_f2fs::Volume::open(lab.image.clone()).unwrap();
    let is_node = |block: &u64| {
        let footer = Footer::parse(bytes(block));
        footer.nid != Nid(0) && volume.nat(footer.nid).is_ok_and(|entry| entry.address.0 == *block)
    };
    let nodes: Vec<u64> = main.iter().copied().filter(is_node).collect();
    let names = |block: &u64| bytes(block)[2384..].windows(8).any(|name| name == b"rather-l");
    let directories: Vec<u64> =
        main.iter().copied().filter(|block| !nodes.contains(block)).filter(names).collect();
    let inner: Vec<u64> = nodes
        .iter()
        .copied()
        .filter(|block| Footer::parse(bytes(block)).node_offset != 0)
        .collect();
    let lists = vec![
        area(pack, pack + u64::from(lab.checkpoint.total_blocks)),
        area(s.sit_start.0, s.nat_start.0),
        area(s.nat_start.0, s.ssa_start.0),
        area(s.ssa_start.0, s.main_start.0),
        nodes,
        inner,
        directories,
    ];
    lists.into_iter().filter(|list| !list.is_empty()).collect()
}

fn damage(lab: &mut Lab, structures: &[Vec<u64>], rng: &mut Rng) -> Vec<String> {
    let mut done = Vec::new();
    for _ in 0..=rng.below(3) {
        let list = &structures[rng.below(structures.len() as u64) as usize];
        let block = list[rng.below(list.len() as u64) as usize];
        // most fields stand at the start of a structure or in its footer
        let byte = match rng.below(4) {
            0 => rng.below(400),
            1 => 4050 + rng.below(46),
            _ => rng.below(4096),
        } as usize;
        let at = At { block, byte };
        match rng.below(4) {
            0 => lab.flip(at, 1 << rng.below(8)),
            1 => lab.set(at, &[0]),
            2 => lab.set(at, &[rng.below(256) as u8]),
            _ => {
                let at = At { block, byte: byte.min(4092) / 4 * 4 };
                let value = [0, 1, 3, 0xFFFF_FFFF, 0xFFFF_FFFE, 4096, 7000][rng.below(7) as usize];
                lab.set(at, &u32::to_le_bytes(value));
            }
        }
        if rng.below(8) != 0 {
            lab.seal(block); // otherwise little more than checksums would be tested
        }
        done.push(format!("block {block} byte {byte}"));
    }
    done
}

fn report(image: &MemoryDevice) -> Result<Report, dovetail_f2fs::Error> {
    check(image.clone(), Options::default(), |_| {})
}

fn compare(name: &str, seeds: std::ops::Range<u64>) {
    let sound = Lab::new(kernel_image(name));
    let structures = structures(&sound);
    let mut referee = Referee::new(&sound.image);
    let (mut both, mut ours, mut repaired, mut stricter) = (0, 0, 0, Vec::new());
    for seed in seeds.clone() {
        let mut lab = sound.clone();
        let done = damage(&mut lab, &structures, &mut Rng::new(seed));
        let clean = report(&lab.image).is_ok_and(|report| report.is_clean());
        let verdict = referee.judge(&lab.image);
        both += u32::from(!clean && !verdict.clean);
        ours += u32::from(!clean && verdict.clean);
        if !clean && let Some(after) = repaired_image(&lab.image) {
            repaired += 1;
            let verdict = referee.judge(&after);
            let again = repair(after);
            if !verdict.clean || again != Ok(vec![]) {
                let complaints = verdict.complaints;
                stricter.push(format!(
                    "DOVETAIL_SEED={seed} ({name}; {done:?}), repaired: {complaints:?}, {again:?}"
                ));
            }
        }
        if clean && !verdict.clean {
            stricter
                .push(format!("DOVETAIL_SEED={seed} ({name}; {done:?}): {:?}", verdict.complaints));
        }
    }
    println!(
        "{name}: of {} images both complain about {both}, only we about {ours}; {repaired} were repaired",
        seeds.end - seeds.start
    );
    assert!(
        stricter.is_empty(),
        "fsck.f2fs is stricter {} times:\n{}",
        stricter.len(),
        stricter.join("\n")
    );
}

/// The image after a repair that left nothing to complain about.
fn repaired_image(image: &MemoryDevice) -> Option<MemoryDevice> {
    let device = RecordingDevice::new(image.clone());
    let recording = device.recording();
    repair(device).ok()?;
    let after = recording.newest();
    report(&after).is_ok_and(|report| report.is_clean()).then_some(after)
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("DOVETAIL_SEED") {
        Ok(seed) => {
            let seed = seed.parse().unwrap();
            seed..seed + 1
        }
        Err(_) => 0..std::env::var("DOVETAIL_SEEDS").map_or(count, |count| count.parse().unwrap()),
    }
}

#[test]
fn fsck_f2fs_sees_no_error_that_we_do_not() {
    compare("f2fs-default", seeds(200));
}

#[test]
fn nor_on_a_volume_with_features() {
    compare("f2fs-features", seeds(100));
}

#[test]
fn nor_on_one_that_was_not_unmounted() {
    compare("f2fs-crash", seeds(100));
}
