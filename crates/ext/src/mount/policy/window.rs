//! Number of blocks set aside for a file beside those that it asks for.

/// Facts about the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct WindowFacts {
    /// Files have extents, and blocks come in runs.
    pub(in super::super) extents: bool,
    /// Blocks that the file will have after this.
    pub(in super::super) size_blocks: u64,
    /// Bytes in a block.
    pub(in super::super) block_size: u64,
    /// The window that was used up, if there was one.
    pub(in super::super) last: Option<u32>,
}

/// Bytes of the smallest and the largest window of files with extents: sizes are rounded up to
/// powers of two between these (Linux 6.1, normalization of requests).
const MIN_BYTES: u64 = 16 << 10;
const MAX_BYTES: u64 = 8 << 20;
/// Blocks of the first window of files with pointers, and of the largest (Linux 2.6.10, reservation
/// windows).
const FIRST_BLOCKS: u32 = 8;
const MOST_BLOCKS: u32 = 1027;

/// Blocks to look for in one run.
pub(in super::super) fn window_size(facts: WindowFacts) -> u32 {
    if !facts.extents {
        return facts.last.map_or(FIRST_BLOCKS, |last| (last * 2).min(MOST_BLOCKS));
    }
    let bytes = facts.size_blocks.saturating_mul(facts.block_size).clamp(MIN_BYTES, MAX_BYTES);
    (bytes.next_power_of_two() / facts.block_size) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_with_the_file() {
        let facts = |extents, size_blocks, last| WindowFacts {
            extents,
            size_blocks,
            block_size: 4096,
            last,
        };
        let sizes = [1, 5, 300, 1 << 20].map(|blocks| window_size(facts(true, blocks, None)));
        assert_eq!(sizes, [4, 8, 512, 2048]);
        let pointers = [None, Some(8), Some(1000)].map(|last| window_size(facts(false, 9, last)));
        assert_eq!(pointers, [8, 16, 1027]);
    }
}
