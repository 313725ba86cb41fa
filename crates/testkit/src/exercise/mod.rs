//! Random operations that are the same every time, and comparison of two file systems that perform
//! them.
//!
//! ```
//! use dovetail_testkit::Model;
//! use dovetail_testkit::exercise::{Generator, Profile, Subject, compare_run};
//! use dovetail_vfs::{Caller, Limits};
//! let mut one = Subject::new(Model::new(Limits::default(), &Caller::default()));
//! let mut other = Subject::new(Model::new(Limits::default(), &Caller::default()));
//! let mut operations = Generator::new(7, Profile::default());
//! compare_run(&mut one, &mut other, &mut operations, 200, 10).unwrap();
//! ```

mod apply;
mod generate;
mod listing;
mod op;
mod rough;
mod tree;

use dovetail_vfs::FileSystem;

pub use apply::{Answer, Failed, Outcome, Subject};
pub use generate::{Generator, Profile};
pub use op::{Op, Path, Step, Target, content};
pub use rough::{Changes, read_everything};
pub use tree::{Entry, Tree, first_difference};

/// Lets both perform `steps` operations; outcomes are compared after each, trees after every
/// `every`th and the last.
///
/// # Errors
/// The first difference: the step, the operation, and what each said.
pub fn compare_run<A: FileSystem, B: FileSystem>(
    reference: &mut Subject<A>,
    other: &mut Subject<B>,
    operations: &mut Generator,
    steps: u64,
    every: u64,
) -> Result<(), String> {
    for n in 1..=steps {
        let step = operations.next_step();
        let trees = n % every.max(1) == 0 || n == steps;
        compare_step(reference, other, &step, trees).map_err(|difference| {
            format!("seed {}, step {n}, {:?}: {difference}", operations.seed(), step.op)
        })?;
    }
    Ok(())
}

/// Lets both perform one operation and compares the outcomes and, if `trees`, the trees.
///
/// # Errors
/// A difference between the outcomes or the trees.
pub fn compare_step<A: FileSystem, B: FileSystem>(
    reference: &mut Subject<A>,
    other: &mut Subject<B>,
    step: &Step,
    trees: bool,
) -> Result<(), String> {
    let (expected, found) = (reference.apply(step), other.apply(step));
    if expected != found {
        return Err(format!("expected {expected:?}, found {found:?}"));
    }
    if !trees {
        return Ok(());
    }
    let expected =
        reference.tree().map_err(|error| format!("the reference cannot be read: {error}"))?;
    let found = other.tree().map_err(|error| format!("it cannot be read: {error}"))?;
    first_difference(&expected, &found).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
