//! F2FS and IPLFS.

mod check;
mod format;
mod in_memory;
mod inspect;
mod inspect_iplfs;
mod label;
mod mount;
mod salvage;
mod segments;

pub(crate) use format::F2fs;
