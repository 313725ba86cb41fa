//! fio job files: read, and run as threads that make calls.
//!
//! A [`JobFile`] is read from text ([`JobFile::parse`]); [`FioWorkload`] runs it; [`output`] writes
//! results as fio does. What fio does is taken from its manual (fio 3.33, HOWTO) and from watching
//! it (`tests/fio_calls.rs` compares the calls). `docs/fio-jobs.md` lists the options.
//!
//! Left out: engines that are not about files, zoned mode, replays of logs, and verifying against a
//! pattern, since the content of every read is checked anyway.

mod block_size;
mod check;
mod cursor;
mod distribution;
mod drive;
mod error;
mod ini;
mod job_file;
mod layout;
mod lfsr;
mod options;
pub mod output;
mod pattern;
mod permutation;
mod plan;
mod random_map;
mod rate;
mod sampler;
mod service;
mod settings;
mod streams;
mod suggest;
mod text;
mod thread;
mod value;
mod variables;
mod workload;

pub use error::FioError;
pub use job_file::JobFile;
pub use options::{Effect, JobOption, OPTIONS};
pub use pattern::Direction;
pub use settings::{LogSettings, Percentiles};
pub use text::JobText;
pub use variables::Variables;
pub use workload::{FioWorkload, ThreadInfo};
