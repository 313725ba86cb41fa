//! Experiments: configuration and seed in, results out. Prints nothing; progress goes through a
//! callback.
//!
//! ```
//! use dovetail_lab::bench::{Experiment, Source, Stack};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let job = "[database]\nrw=randwrite\nbs=4k\nsize=1g\nfsync=8\n";
//! let source = Source::fio(job, "database.fio", &[])?;
//! let stacks = [Stack::load("f2fs")?, Stack::load("ext4")?];
//! // Drive, memory and job 64 times smaller.
//! let experiment = Experiment { scale: "1/64".parse()?, ..Experiment::new(&source, &stacks) };
//!
//! let (results, failures) = experiment.run(1, &|_| {});
//! assert!(failures.is_empty());
//! let [f2fs, ext4] = results.runs.as_slice() else { unreachable!() };
//! // Blocks written for each block of the job: F2FS adds nodes, ext4 a journal.
//! assert!(f2fs.totals.fs_waf.is_some_and(|waf| 1.3 < waf && waf < 1.7));
//! assert!(ext4.totals.fs_waf.is_some_and(|waf| 1.8 < waf && waf < 2.2));
//! assert!(f2fs.written["node"] > 1000 && ext4.written["journal"] > 2000);
//! // The drives are new: they have nothing to clean yet.
//! assert!([f2fs, ext4].iter().all(|run| run.totals.device_waf == Some(1.0)));
//! # Ok(())
//! # }
//! ```

#![cfg_attr(
    not(unix),
    allow(dead_code, unused_imports, reason = "guests are on Unix alone, and use more")
)]

mod below;
pub mod bench;
pub mod compare;
mod finished;
mod lane;
#[cfg(unix)]
pub mod linux;
mod map_cache;
mod parallel;
mod precondition;
mod prepared;
mod progress;
mod record;
pub mod replay;
pub mod results;

pub use dovetail_host::HostCosts;
pub use finished::FinishedRuns;
pub use parallel::{run_all, run_in_order};
pub use prepared::{NewDrive, Prepared, Reserved, Turn, order};
pub use progress::{Progress, Stage};
