//! ext2, ext3 and ext4.

#[cfg(unix)]
mod check;
#[cfg(unix)]
mod format;
#[cfg(unix)]
mod inspect;
#[cfg(unix)]
mod label;
#[cfg(unix)]
mod mount;
mod stack;

use crate::Variant;
#[cfg(unix)]
pub(crate) use format::Ext;

/// The variants, as they are named.
pub(crate) const VARIANTS: [Variant; 3] = [
    Variant { name: "ext4", in_stacks: Some(&stack::EXT4) },
    Variant { name: "ext3", in_stacks: Some(&stack::EXT3) },
    Variant { name: "ext2", in_stacks: None },
];
