//! Location of the journal's blocks.

/// A run of journal blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalExtent {
    /// The first block, by its number on the volume.
    pub start: u64,
    /// Number of blocks.
    pub blocks: u32,
}

/// The blocks of the journal in order, as its inode maps them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalMap {
    /// Runs with the number of the first journal block of each.
    runs: Vec<(u32, JournalExtent)>,
    blocks: u32,
}

impl JournalMap {
    /// The journal that lies in these runs; those beyond 2^32 blocks are left out.
    pub fn new(extents: &[JournalExtent]) -> Self {
        let mut map = Self::default();
        for extent in extents.iter().filter(|extent| extent.blocks > 0) {
            let Some(end) = map.blocks.checked_add(extent.blocks) else { break };
            map.runs.push((map.blocks, *extent));
            map.blocks = end;
        }
        map
    }

    /// The runs that it lies in.
    pub fn extents(&self) -> impl Iterator<Item = JournalExtent> {
        self.runs.iter().map(|run| run.1)
    }

    /// Number of blocks.
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The block of the volume that holds journal block `block`.
    pub fn physical(&self, block: u32) -> Option<u64> {
        let after = self.runs.partition_point(|run| run.0 <= block);
        let (first, extent) = self.runs.get(after.checked_sub(1)?)?;
        let offset = block - first;
        (offset < extent.blocks).then(|| extent.start + u64::from(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_in_their_runs() {
        let extents =
            [(100, 3), (7, 0), (50, 2)].map(|(start, blocks)| JournalExtent { start, blocks });
        let map = JournalMap::new(&extents);
        let all: Vec<_> = (0..6).map(|block| map.physical(block)).collect();
        assert_eq!(all, [Some(100), Some(101), Some(102), Some(50), Some(51), None]);
        assert_eq!(JournalMap::default().physical(0), None);
    }
}
