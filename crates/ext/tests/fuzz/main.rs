//! Damaged images: opened, walked, read, checked, mounted and changed without a panic, a hang or an
//! allocation beyond twice the image. New volumes of any shape: refused, or sound.
//!
//! The normal run is short; `cargo xtask fuzz --fs ext4` goes on for millions. A failing input is
//! printed with what to type: `DOVETAIL_SEED=7 cargo test -p dovetail-ext --test fuzz`; with
//! `DOVETAIL_FUZZ=1000` as well, a run begins there.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it saw"
)]

#[path = "../../../f2fs/tests/fuzz/alloc.rs"]
mod alloc;
#[path = "../common/mod.rs"]
mod common;
mod images;
mod input;
mod making;
mod mounting;
mod reading;
mod structures;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use alloc::peak_of;
use dovetail_block::BlockDevice;
use dovetail_time::Rng;
use images::{SMALL, seeds};
use input::{Input, Seed};
use reading::{Verdict, checked, use_all};

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

/// Inputs of the normal run; `DOVETAIL_FUZZ` asks for another number.
const INPUTS: u64 = 3000;
/// Inputs that may fail before the run ends.
const MAX_FAILED: usize = 20;

/// Does everything with an input; returns what the check said of it at first.
fn use_input(input: &mut Input<'_>, rng: &mut Rng) -> Verdict {
    let verdict = use_all(input);
    mounting::read(input.rewound());
    mounting::change(input.rewound(), rng);
    if verdict == Verdict::Clean && input.is_judged_whole() {
        let after = checked(input.rewound());
        assert!(
            !matches!(after, Verdict::Damaged(_)),
            "changes to a clean volume made errors: {after:?}"
        );
    }
    verdict
}

fn run(seeds: &[Seed], number: u64) -> bool {
    let mut rng = Rng::new(number);
    let which = match rng.below(200) {
        0..10 => return made(&mut rng),
        odd @ 10..14 => SMALL + odd as usize - 10,
        odd => odd as usize % SMALL,
    };
    let seed = &seeds[which];
    let mut input = seed.input(&mut rng);
    if std::env::var_os("DOVETAIL_SEED").is_some_and(|only| only == *number.to_string()) {
        println!("{}: {:x?}", seed.name, input.damage());
    }
    let (verdict, used) = peak_of(|| use_input(&mut input, &mut rng));
    let allowed = 2 * input.image.info().blocks as usize * 4096;
    assert!(used <= allowed, "{} takes {used} bytes, allowed are {allowed}", seed.name);
    !matches!(verdict, Verdict::Damaged(_))
}

fn made(rng: &mut Rng) -> bool {
    making::make(rng);
    true
}

#[test]
fn damaged_images_never_panic_hang_or_take_memory() {
    let seeds = seeds();
    for seed in &seeds {
        let mut sound = seed.sound();
        let verdict = use_input(&mut sound, &mut Rng::new(0));
        assert!(!matches!(verdict, Verdict::Damaged(_)), "{}: {verdict:?}", seed.name);
        let verdict = checked(sound.rewound());
        assert!(!matches!(verdict, Verdict::Damaged(_)), "{}, changed: {verdict:?}", seed.name);
    }
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (variable("DOVETAIL_SEED"), variable("DOVETAIL_FUZZ"));
    let count = count.unwrap_or(if first.is_some() { 1 } else { INPUTS });
    let numbers = first.unwrap_or(0)..first.unwrap_or(0) + count;
    let (start, mut said, mut clean) = (Instant::now(), Duration::ZERO, 0_u64);
    let mut slowest = (Duration::ZERO, 0);
    let mut failed = Vec::new();
    for number in numbers.clone() {
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| run(&seeds, number))) {
            Ok(was_clean) => clean += u64::from(was_clean),
            Err(_) => {
                println!("DOVETAIL_SEED={number} cargo test -p dovetail-ext --test fuzz");
                failed.push(number);
            }
        }
        if failed.len() == MAX_FAILED {
            break;
        }
        slowest = slowest.max((began.elapsed(), number));
        let passed = start.elapsed();
        if passed >= said + Duration::from_secs(60) {
            said = passed;
            let done = number + 1 - numbers.start;
            println!("{done} inputs, {:.0} a second", done as f64 / passed.as_secs_f64());
        }
    }
    assert!(failed.is_empty(), "these inputs failed: {failed:?}");
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!(
        "{count} inputs, {rate:.0} a second; {clean} without an error; the slowest ({:?}): {}",
        slowest.0, slowest.1
    );
}
