//! F2FS and IPLFS.

#[cfg(unix)]
mod check;
#[cfg(unix)]
mod format;
#[cfg(unix)]
mod in_memory;
#[cfg(unix)]
mod inspect;
#[cfg(unix)]
mod inspect_iplfs;
#[cfg(unix)]
mod label;
#[cfg(unix)]
mod mount;
#[cfg(unix)]
mod salvage;
#[cfg(unix)]
mod segments;
mod stack;

use crate::Variant;
#[cfg(unix)]
pub(crate) use format::F2fs;

/// The variants, as they are named.
pub(crate) const VARIANTS: [Variant; 2] = [
    Variant { name: "f2fs", in_stacks: Some(&stack::F2FS) },
    Variant { name: "iplfs", in_stacks: Some(&stack::IPLFS) },
];
