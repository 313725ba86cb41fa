//! A campaign of random inputs, each by its number: it goes on after a failure, and tells how to run
//! that input alone.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Inputs that may fail before a campaign ends.
const MAX_FAILED: usize = 20;
/// Time between two reports of progress.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Tries inputs: `inputs` from 0 on, or as many as `DOVETAIL_FUZZ` asks for from `DOVETAIL_SEED` on.
/// `try_input` tells whether the input was sound.
///
/// # Panics
/// Inputs that failed; `package` is named in the line that runs one of them alone.
pub fn campaign(package: &str, inputs: u64, try_input: impl Fn(u64) -> bool) {
    let numbers = asked(inputs);
    let (start, mut said, mut sound) = (Instant::now(), Duration::ZERO, 0_u64);
    let mut slowest = (Duration::ZERO, 0);
    let mut failed = Vec::new();
    for number in numbers.clone() {
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| try_input(number))) {
            Ok(was_sound) => sound += u64::from(was_sound),
            Err(_) => {
                println!("DOVETAIL_SEED={number} cargo test -p {package} --test fuzz");
                failed.push(number);
            }
        }
        if failed.len() == MAX_FAILED {
            break;
        }
        slowest = slowest.max((began.elapsed(), number));
        let passed = start.elapsed();
        if passed >= said + SAY_EVERY {
            said = passed;
            let done = number + 1 - numbers.start;
            println!("{done} inputs, {:.0} a second", done as f64 / passed.as_secs_f64());
        }
    }
    assert!(failed.is_empty(), "these inputs failed: {failed:?}");
    let count = numbers.end - numbers.start;
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let (time, number) = slowest;
    println!(
        "{count} inputs, {rate:.0} a second; {sound} without an error; the slowest ({time:?}): {number}"
    );
}

/// The numbers of the inputs that the environment asks for.
fn asked(inputs: u64) -> Range<u64> {
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (variable("DOVETAIL_SEED"), variable("DOVETAIL_FUZZ"));
    let count = count.unwrap_or(if first.is_some() { 1 } else { inputs });
    first.unwrap_or(0)..first.unwrap_or(0) + count
}
