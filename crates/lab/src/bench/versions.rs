//! The last write to each block of a file.

use std::ops::Range;

/// Blocks of a chunk.
const CHUNK: u64 = 1024;

/// Of each block of a file, which write of all was the last; 0 where none was. Stretches that were
/// never written take next to no memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    /// Chunks in order, as far as their blocks were written.
    chunks: Vec<Vec<u32>>,
}

impl Versions {
    /// Bytes of memory of so many written blocks of a file of `of`, at most.
    pub(super) fn most_bytes(written: u64, of: u64) -> u64 {
        4 * of.min(written.saturating_mul(CHUNK))
    }

    /// The last write to a block.
    pub(super) fn get(&self, block: u64) -> u32 {
        let chunk = self.chunks.get((block / CHUNK) as usize);
        chunk.and_then(|chunk| chunk.get((block % CHUNK) as usize)).copied().unwrap_or(0)
    }

    /// Notes a write to blocks.
    pub(super) fn set(&mut self, blocks: Range<u64>, version: u32) {
        for (number, part) in parts(blocks) {
            if self.chunks.len() <= number {
                self.chunks.resize_with(number + 1, Vec::new);
            }
            let chunk = &mut self.chunks[number];
            if chunk.len() < part.end {
                chunk.resize(part.end, 0);
            }
            chunk[part].fill(version);
        }
    }

    /// Forgets the writes to blocks.
    pub(super) fn clear(&mut self, blocks: Range<u64>) {
        let end = blocks.end.min(self.chunks.len() as u64 * CHUNK);
        for (number, part) in parts(blocks.start.min(end)..end) {
            let chunk = &mut self.chunks[number];
            let end = part.end.min(chunk.len());
            chunk[part.start.min(end)..end].fill(0);
        }
    }

    /// Forgets all from a block on.
    pub(super) fn truncate(&mut self, blocks: u64) {
        self.chunks.truncate(blocks.div_ceil(CHUNK) as usize);
        if let Some(last) = self.chunks.get_mut((blocks / CHUNK) as usize) {
            last.truncate((blocks % CHUNK) as usize);
        }
    }

    /// Blocks that hold a write.
    pub(super) fn written(&self) -> u64 {
        self.chunks.iter().flatten().filter(|version| **version > 0).count() as u64
    }
}

/// The chunks that blocks lie in, and which of a chunk's.
fn parts(blocks: Range<u64>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let chunks = blocks.start / CHUNK..blocks.end.div_ceil(CHUNK);
    chunks.map(move |chunk| {
        let first = chunk * CHUNK;
        let within = |block: u64| (block.clamp(first, first + CHUNK) - first) as usize;
        (chunk as usize, within(blocks.start)..within(blocks.end))
    })
}

#[cfg(test)]
mod tests {
    use dovetail_time::Rng;

    use super::*;

    const BLOCKS: u64 = 4 * CHUNK;

    /// Random steps on it and on a plain row.
    #[test]
    fn it_is_a_row() {
        let mut rng = Rng::new(1);
        let (mut versions, mut row) = (Versions::default(), vec![0; BLOCKS as usize]);
        for version in 1..500 {
            let from = rng.below(BLOCKS);
            let to = (from + rng.below(2 * CHUNK)).min(BLOCKS);
            let part = from as usize..to as usize;
            match rng.below(8) {
                0 => {
                    versions.truncate(from);
                    row[from as usize..].fill(0);
                }
                1 => {
                    versions.clear(from..to);
                    row[part].fill(0);
                }
                _ => {
                    versions.set(from..to, version);
                    row[part].fill(version);
                }
            }
            assert!((0..BLOCKS).all(|block| versions.get(block) == row[block as usize]));
            let written = row.iter().filter(|version| **version > 0).count();
            assert_eq!(versions.written(), written as u64);
        }
    }

    #[test]
    fn the_end_of_a_large_file_takes_little() {
        let mut versions = Versions::default();
        versions.set(1 << 30..(1 << 30) + 1, 7);
        let taken: usize = versions.chunks.iter().map(Vec::capacity).sum();
        assert!(taken <= CHUNK as usize && versions.get(1 << 30) == 7, "{taken}");
    }
}
