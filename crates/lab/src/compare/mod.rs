//! Two sets of runs beside each other: which figures changed, by how much, and whether seeds alone
//! would do that.
//!
//! Runs are single figures by the path of their field in the documented JSON. Runs of one name are
//! repetitions with other seeds: a [`Sample`] has their mean and their standard error. [`change`]
//! is the policy of what counts as a change; [`HEADLINES`] are the figures that are looked at
//! first.
//!
//! ```
//! use dovetail_lab::compare::{Verdict, change};
//!
//! assert_eq!(change(&[100.0], &[101.0], 2.0).verdict, Verdict::Small);
//! assert_eq!(change(&[100.0], &[103.0], 2.0).verdict, Verdict::Changed);
//! // with several seeds on each side a difference may be theirs
//! let (before, after) = ([90.0, 100.0, 110.0], [95.0, 103.0, 111.0]);
//! assert_eq!(change(&before, &after, 2.0).verdict, Verdict::Spread);
//! ```

mod headline;
mod policy;
mod runs;

pub use headline::{HEADLINES, Headline, Unit};
pub use policy::{Change, Sample, Verdict, change};
pub use runs::{Compared, Group, Run, compare, groups};
