//! ext2, ext3 and ext4.

mod check;
mod format;
mod inspect;
mod label;
mod mount;

pub(crate) use format::Ext;
