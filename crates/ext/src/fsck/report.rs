//! What a check hands back.

use super::finding::Finding;

/// Sums over the volume, as they were counted (not as they are stored).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inodes in use; the reserved ones without content are not counted.
    pub inodes: u64,
    /// Directories.
    pub directories: u64,
    /// Names, "." and ".." not counted.
    pub names: u64,
    /// Blocks in use, the format's own among them.
    pub blocks: u64,
    /// Inodes without a name that are still to be freed.
    pub orphans: u64,
}

/// What a check found.
pub type Report = dovetail_vfs::check::Report<Finding, Counts>;
