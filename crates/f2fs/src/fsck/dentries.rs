//! Position of a directory entry, and its repair.

use crate::format::{DentryBlockMut, FileType, Nid};

/// Position of a directory entry: the block of the directory (`None` for inline entries), and the
/// slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DentryPosition {
    pub(super) dir: Nid,
    pub(super) block: Option<u64>,
    pub(super) slot: usize,
}

/// Change that repairs an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fix {
    Hash(u32),
    Type(u8),
    /// The slot belongs to the name before it.
    Used,
    /// The slot is no entry of its own.
    NoLength,
    Remove,
}

/// A repair of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DentryFix {
    pub(super) place: DentryPosition,
    pub(super) fix: Fix,
}

impl Fix {
    /// Does it at slot `slot`.
    pub(super) fn apply(self, mut entries: DentryBlockMut<'_>, slot: usize) {
        match self {
            Self::Hash(hash) => entries.set_hash(slot, hash),
            Self::Type(file_type) => entries.set_file_type(slot, FileType(file_type)),
            Self::Used => entries.set_used(slot),
            Self::NoLength => entries.clear_name_len(slot),
            Self::Remove => entries.remove(slot),
        }
    }
}
