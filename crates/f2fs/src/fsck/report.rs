//! Report of a check.

use super::finding::Finding;

/// Sums over the volume, as they were counted (not as they are stored).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inodes, the orphans among them included.
    pub inodes: u64,
    /// Directories.
    pub directories: u64,
    /// Regular files.
    pub files: u64,
    /// Entries of directories, "." and ".." not counted.
    pub names: u64,
    /// Node blocks.
    pub nodes: u64,
    /// Blocks in use: nodes, data, and reserved blocks that were never written.
    pub blocks: u64,
    /// Inodes without a name that are still to be freed.
    pub orphans: u64,
    /// Segments without a block in use that no log writes to.
    pub free_segments: u64,
    /// The logs of a volume of IPLFS; none of F2FS.
    pub areas: Vec<Area>,
}

/// The area of one log of IPLFS; places are counted in blocks from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// The log: hot, warm, cold data (0 to 2), hot, warm, cold nodes (3 to 5).
    pub log: u8,
    /// Position at which the log goes on.
    pub position: u64,
    /// The first and the last live block.
    pub active: Option<(u64, u64)>,
    /// Live blocks.
    pub live: u64,
    /// Blocks that the device holds; `None` if it cannot tell.
    pub held: Option<u64>,
    /// Of these, blocks that wait for their discard.
    pub waiting: u64,
    /// Of these, blocks beyond the log's position: the next mount recovers or discards them.
    pub beyond: u64,
}

/// Findings and counts of a check.
pub type Report = dovetail_vfs::check::Report<Finding, Counts>;
