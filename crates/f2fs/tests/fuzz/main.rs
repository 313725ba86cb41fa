//! Millions of damaged images: opened, walked, read, checked, repaired, mounted and changed without
//! a panic, a hang or an allocation beyond twice the image.
//!
//! The normal run is short; `cargo xtask fuzz` goes on for millions. A failing input is printed
//! with what to type: `DOVETAIL_SEED=7 cargo test -p dovetail-f2fs --test fuzz`; with
//! `DOVETAIL_FUZZ=1000` as well, a run begins there.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it saw"
)]

mod alloc;
#[path = "../common/mod.rs"]
mod common;
mod images;
mod input;
mod mounting;
mod reading;

use alloc::peak_of;
use dovetail_block::BlockDevice;
use dovetail_testkit::campaign;
use dovetail_time::Rng;
use images::{SMALL, seeds};
use input::{Input, Seed};
use reading::{Verdict, checked, repair_too, use_all};

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

/// Inputs of the normal run; `DOVETAIL_FUZZ` asks for another number.
const INPUTS: u64 = 3000;

/// Does everything with an input; returns what the check said of it at first.
fn use_input(input: &mut Input<'_>, rng: &mut Rng) -> Verdict {
    let verdict = use_all(input);
    mounting::read(input.rewound());
    mounting::change(input.rewound(), rng);
    if verdict == Verdict::Clean {
        let after = checked(input.rewound());
        assert!(
            !matches!(after, Verdict::Damaged(_)),
            "changes to a clean volume made errors: {after:?}"
        );
    }
    verdict
}

fn run(seeds: &[Seed], number: u64) -> bool {
    assert_eq!(seeds.len(), SMALL + 5);
    let mut rng = Rng::new(number);
    let which = match rng.below(200) {
        odd @ 0..=4 => SMALL + odd as usize,
        odd => odd as usize % SMALL,
    };
    let seed = &seeds[which];
    let mut input = seed.input(&mut rng);
    if rng.below(if which < SMALL { 20 } else { 500 }) == 0 {
        repair_too(&input);
    }
    let (verdict, used) = peak_of(|| use_input(&mut input, &mut rng));
    let allowed = 2 * input.lab.image.info().capacity() as usize * 4096;
    assert!(used <= allowed, "{} takes {used} bytes, allowed are {allowed}", seed.name);
    !matches!(verdict, Verdict::Damaged(_))
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
    campaign("dovetail-f2fs", INPUTS, |number| run(&seeds, number));
}
