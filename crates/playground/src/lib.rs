//! The simulator as WebAssembly, and the page that it runs in.
//!
//! [`play`] runs one workload on one stack and tells a [`Listener`] how far it is, with figures and
//! maps that can be drawn. In a browser the listener is a worker's script (`wasm.rs`); the
//! page ([`page`]) starts a worker for each stack, so that they run side by side. [`CATALOGUE`] is
//! what the page offers. Left out: whatever needs a clock, files or threads; the script that
//! listens decides when it wants to be told.
//!
//! ```
//! use dovetail_playground::CATALOGUE;
//!
//! // a page for people who have no drive profile and no job of their own
//! let drives: Vec<&str> = CATALOGUE.drives.iter().map(|drive| drive.choice.name).collect();
//! assert!(drives.contains(&"femu-32g"));
//!
//! // each workload is a job of fio, with sizes as shares of the drive
//! let random = &CATALOGUE.workloads[0];
//! assert!(random.job.contains("rw=randwrite"));
//! ```

mod catalogue;
mod frame;
mod heat;
mod map;
#[cfg(not(target_family = "wasm"))]
pub mod page;
mod play;
#[cfg(target_family = "wasm")]
mod wasm;

pub use catalogue::{CATALOGUE, Catalogue, Choice, Drive, Sample};
pub use frame::{Figures, Frame};
pub use map::{DriveMap, FREE};
pub use play::{Listener, Message, Request, play};
