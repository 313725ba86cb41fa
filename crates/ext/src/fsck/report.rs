//! Report of a check.

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

/// Findings and counts of a check.
pub type Report = dovetail_vfs::check::Report<Finding, Counts>;
