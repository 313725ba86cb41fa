//! Sweeps: many runs that differ in a few options, and a table of what they found.
//!
//! A [`Sweep`] is a TOML file: a command, options that all runs share, and axes. Its [`Point`]s are
//! all combinations of the axes' values, in a fixed order. A [`Folder`] keeps the result of each
//! finished point, so that a sweep that was ended goes on where it was. [`run`] performs the points
//! that are missing. The crate knows no option and no file system: who
//! uses it says how a point is performed.
//!
//! ```
//! use dovetail_sweep::Sweep;
//!
//! # fn main() -> Result<(), dovetail_sweep::SweepError> {
//! let text = "
//!     command = 'replay'
//!     inputs = ['w100.trace']
//!     [options]
//!     drive = 'femu-32g'
//!     precondition = true
//!     [axes]
//!     op = [7, 12, 28]
//!     seed = { from = 1, to = 2 }
//! ";
//! let sweep = Sweep::parse(text, "spare.toml")?;
//! assert_eq!(sweep.points().len(), 6);
//! let point = &sweep.points()[3];
//! assert_eq!(point.name(), "op=12 seed=2");
//! assert_eq!(
//!     sweep.arguments(point, None),
//!     ["w100.trace", "--drive=femu-32g", "--precondition", "--op=12", "--seed=2"]
//! );
//! # Ok(())
//! # }
//! ```

mod described;
mod error;
mod files;
mod folder;
mod perform;
mod record;
mod setting;
mod shard;
mod sweep;
mod table;

pub use error::SweepError;
pub use files::{Fingerprints, check_files, fingerprints_of};
pub use folder::{Folder, merge, read};
pub use perform::{Outcome, Performed, run, waiting};
pub use record::Record;
pub use shard::Shard;
pub use sweep::{Command, Point, Sweep};
pub use table::{field, table};
