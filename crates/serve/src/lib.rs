//! A drive as a block device for programs and kernels.
//!
//! An [`Export`] gives a drive's blocks as bytes, in virtual time, to requests of any range. The
//! servers stand on it and know nothing of blocks.

mod export;
pub mod vhost;

pub use export::{Export, ExportError, Extent};
