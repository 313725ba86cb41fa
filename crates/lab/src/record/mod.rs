//! Measurements of a run: recorded while it goes on, summed up at its end.

mod drive;
mod recorder;
mod repeats;
mod sample;
mod scatter;
mod series;
mod snapshot;
mod spans;
mod summary;
mod window;

pub(crate) use recorder::{Recorder, Rhythm, ThreadRecord};
pub(crate) use sample::Sample;
pub(crate) use scatter::Scatter;
pub use scatter::Watcher;
pub(crate) use snapshot::Seen;
pub(crate) use summary::{summarize, summarize_drive, with_workload};
