//! Map of the blocks of a file that were hit, so that each comes once before any comes again.
//!
//! As in fio, a block that is drawn and was hit already stands for the next free one behind it.
//! That is not the same as a random permutation: hit blocks cluster, as in a hash table with linear
//! probing. When a quarter of a file was rewritten, there are 0.166 runs of rewritten blocks to a
//! block of the file, not 0.188 ((1 - a)(1 - e^-a) in place of a(1 - a)), which is what a
//! sequential read finds afterwards.

/// A set of blocks. A bit for each, and above it bits that tell which words are full.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    blocks: u64,
    /// The first level has a bit a block; every further level a bit for each word of the one below,
    /// set when the word is full. The last one is a single word.
    levels: Vec<Vec<u64>>,
}

impl RandomMap {
    /// No block was hit yet.
    pub(super) fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks;
        while levels.is_empty() || bits > 1 {
            let mut words = vec![0; bits.div_ceil(64) as usize];
            if let (Some(last), rest @ 1..) = (words.last_mut(), bits % 64) {
                *last = u64::MAX << rest;
            }
            bits = words.len() as u64;
            levels.push(words);
        }
        Self { blocks, levels }
    }

    /// Every block counts as not hit.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.blocks);
    }

    fn is_hit(&self, block: u64) -> bool {
        self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// The first block from `from` on that was not hit, or else the first of all.
    pub(super) fn free_from(&self, from: u64) -> Option<u64> {
        self.search(from).or_else(|| self.search(0))
    }

    /// Marks up to `count` blocks from `first` on, until one that was hit already; returns how
    /// many.
    pub(super) fn mark_free(&mut self, first: u64, count: u64) -> u64 {
        let free = (first..(first + count).min(self.blocks))
            .take_while(|block| !self.is_hit(*block))
            .count() as u64;
        self.mark(first, free);
        free
    }

    /// Marks blocks, hit already or not.
    pub(super) fn mark(&mut self, first: u64, count: u64) {
        for block in first..(first + count).min(self.blocks) {
            self.set(block);
        }
    }

    fn set(&mut self, block: u64) {
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                return;
            }
            bit /= 64;
        }
    }

    fn search(&self, from: u64) -> Option<u64> {
        let mut bit = from;
        for (at, level) in self.levels.iter().enumerate() {
            let word = level.get((bit / 64) as usize)?;
            let free = !word & (u64::MAX << (bit % 64));
            if free != 0 {
                return Some(self.descend(at, bit / 64 * 64 + u64::from(free.trailing_zeros())));
            }
            bit = bit / 64 + 1;
        }
        None
    }

    /// The first free block below a free bit of `level`.
    fn descend(&self, level: usize, bit: u64) -> u64 {
        self.levels[..level]
            .iter()
            .rev()
            .fold(bit, |bit, below| bit * 64 + u64::from(below[bit as usize].trailing_ones()))
    }
}

#[cfg(test)]
mod tests {
    use dovetail_time::Rng;

    use super::*;

    #[test]
    fn every_block_comes_once() {
        for blocks in [1, 2, 63, 64, 65, 4096, 4097, 300_000] {
            let mut map = RandomMap::new(blocks);
            let mut rng = Rng::new(blocks);
            let mut seen = vec![false; blocks as usize];
            while let Some(block) = map.free_from(rng.below(blocks)) {
                assert_eq!(map.mark_free(block, 1), 1);
                assert!(
                    !std::mem::replace(&mut seen[block as usize], true),
                    "{block} of {blocks} twice"
                );
            }
            assert!(seen.iter().all(|seen| *seen), "{blocks}");
            map.reset();
            assert_eq!(map.free_from(0), Some(0));
        }
    }

    #[test]
    fn a_run_ends_at_a_hit_block() {
        let mut map = RandomMap::new(100);
        map.mark(10, 1);
        assert_eq!(map.mark_free(8, 4), 2);
        assert_eq!(map.free_from(8), Some(11));
        assert_eq!(map.mark_free(98, 4), 2);
        assert_eq!(map.free_from(98), Some(0));
    }

    #[test]
    fn hit_blocks_cluster_as_with_linear_probing() {
        let blocks = 1 << 18;
        let mut map = RandomMap::new(blocks);
        let mut rng = Rng::new(1);
        for _ in 0..blocks / 4 {
            let block = map.free_from(rng.below(blocks)).unwrap();
            map.mark(block, 1);
        }
        let runs = (1..blocks).filter(|block| map.is_hit(*block) && !map.is_hit(block - 1)).count();
        let expected = 0.75 * (1.0 - (-0.25_f64).exp());
        assert!((runs as f64 / blocks as f64 - expected).abs() < 0.002, "{runs}");
    }
}
