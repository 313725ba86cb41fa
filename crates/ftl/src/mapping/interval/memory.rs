//! Memory that the map takes of the drive, part by part.

/// Bytes of the drive's memory, counted exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapMemory {
    /// The page table of the metadata area.
    pub metadata_table: u64,
    /// Root arrays, a new one on its way included, and the list of zones outside.
    pub roots: u64,
    /// Entries of zone nodes for segments without a map node.
    pub zone_nodes: u64,
    /// Map nodes.
    pub map_nodes: u64,
    /// Region directories.
    pub directories: u64,
    /// Mapping tables: four bytes for each covered page.
    pub tables: u64,
    /// Runs that were used lately.
    pub lookaside: u64,
    /// The list of candidates for compaction.
    pub candidates: u64,
    /// Bytes that the slabs lose to rounding and to free blocks of chunks in use.
    pub slack: u64,
    /// Records of the slabs and room to work in.
    pub bookkeeping: u64,
}

impl MapMemory {
    /// All of it.
    pub const fn total(&self) -> u64 {
        self.tree()
            + self.metadata_table
            + self.lookaside
            + self.candidates
            + self.slack
            + self.bookkeeping
    }

    /// The trees alone: what the paper counts.
    pub const fn tree(&self) -> u64 {
        self.roots + self.zone_nodes + self.map_nodes + self.directories + self.tables
    }
}
