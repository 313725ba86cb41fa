//! Random operations on two file systems that must do the same: one to be tested, one that is known to be right (the
//! [`Model`](crate::Model)).
//!
//! [`run`] compares the result, or the errno, of every operation, and from time to time everything that can be seen of
//! both trees. Whatever goes wrong is told with the seed and the number of the operation: the same seed gives the same
//! operations.

mod apply;
mod compare;
mod generate;
mod op;

use dovetail_time::{Rng, SimSpan, SimTime};

pub use apply::{Hand, Outcome};
pub use compare::compare_trees;
pub use generate::Generator;
pub use op::{At, Op, Target};

use crate::{Caller, FileSystem, Timestamp};

/// How a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the operations follow from.
    pub seed: u64,
    /// How many.
    pub operations: u64,
    /// The trees are compared after so many operations each, and at the end; 0: only at the end.
    pub compare_every: u64,
}

/// Where two file systems did not do the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, operation {number} ({operation}): {difference}")]
pub struct Difference {
    /// What the operations followed from.
    pub seed: u64,
    /// Which one, from 0 on.
    pub number: u64,
    /// What it was.
    pub operation: String,
    /// What was different: first the tested file system, then the reference.
    pub difference: String,
}

/// The time of operation `number`: seconds and nanoseconds change with each, and nothing reads a clock.
pub fn time_of(number: u64) -> Timestamp {
    Timestamp {
        seconds: 1_700_000_000 + number as i64,
        nanoseconds: (number * 1_234_567 % 1_000_000_000) as u32,
    }
}

/// Runs random operations on `tested` and on `reference`; `after` is called after each and may end the run with a
/// sentence, for instance from a check of the volume.
///
/// # Errors
/// The first [`Difference`].
pub fn run(
    tested: &mut dyn FileSystem,
    reference: &mut dyn FileSystem,
    plan: &Plan,
    after: &mut dyn FnMut(&mut dyn FileSystem, u64) -> Result<(), String>,
) -> Result<(), Difference> {
    let mut generator = Generator::new(Rng::new(plan.seed));
    let mut hands = (Hand::default(), Hand::default());
    for number in 0..plan.operations {
        let (op, who) = generator.next();
        let fail =
            |difference| Difference { seed: plan.seed, number, operation: format!("{op:?}"), difference };
        let caller = Caller { now: time_of(number), ..who };
        let results = (hands.0.apply(tested, &caller, &op), hands.1.apply(reference, &caller, &op));
        if results.1.is_ok() {
            generator.learn(&op);
        }
        apply::compare(&results.0, &results.1, &op, &hands.1, reference).map_err(fail)?;
        tested
            .wake(SimTime::ZERO + SimSpan::from_ms(number * 100))
            .map_err(|error| fail(format!("wake: {error}")))?;
        after(tested, number).map_err(fail)?;
        let last = number + 1 == plan.operations;
        if last || plan.compare_every > 0 && number % plan.compare_every == plan.compare_every - 1 {
            compare_trees(tested, reference).map_err(fail)?;
        }
    }
    hands.0.release_all(tested);
    hands.1.release_all(reference);
    Ok(())
}

#[cfg(test)]
mod tests;
