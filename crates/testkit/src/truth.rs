//! Comparison with what a real kernel did: the same random order, and a bound in percent.

use dovetail_time::Rng;

/// All blocks of a file in random order.
pub fn shuffled(blocks: u64, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..blocks).collect();
    let mut rng = Rng::new(seed);
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

/// Prints a figure of ours beside the kernel's.
///
/// # Panics
/// One that is further off than so many percent.
#[track_caller]
pub fn assert_near(what: &str, ours: u64, kernel: u64, percent: f64) {
    let off = (ours as f64 / kernel as f64 - 1.0) * 100.0;
    println!("{what}: {ours}, the kernel {kernel}: {off:+.1} %");
    assert!(
        off.abs() <= percent,
        "{what}: {ours}, the kernel {kernel}: {off:+.1} % is more than {percent} %"
    );
}
