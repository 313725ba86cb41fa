//! A value for each block of an address space of any size; stretches that were never touched take
//! no memory.

use std::collections::HashMap;

use dovetail_block::{BlockRange, Lba, prefetch};
use rustc_hash::FxBuildHasher;

/// Blocks that come into memory together: 2 MiB.
const CHUNK: u64 = 512;

/// Values by block address, [`Default`] where none was set.
#[derive(Clone, Debug)]
pub(crate) struct Sparse<T> {
    chunks: HashMap<u64, Box<[T]>, FxBuildHasher>,
    empty: T,
}

impl<T: Default + Clone + PartialEq> Sparse<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: HashMap::default(), empty: T::default() }
    }

    pub(crate) fn get(&self, lba: Lba) -> &T {
        self.chunks
            .get(&(lba.0 / CHUNK))
            .map_or(&self.empty, |chunk| &chunk[(lba.0 % CHUNK) as usize])
    }

    pub(crate) fn set(&mut self, lba: Lba, value: T) {
        let fresh = || vec![T::default(); CHUNK as usize].into();
        let chunk = self.chunks.entry(lba.0 / CHUNK).or_insert_with(fresh);
        chunk[(lba.0 % CHUNK) as usize] = value;
    }

    /// Sets the values of a range: `value` has that of each of its blocks, by its index.
    pub(crate) fn set_each(&mut self, range: BlockRange, value: impl Fn(u64) -> T) {
        let fresh = || vec![T::default(); CHUNK as usize].into();
        let (mut index, mut lba) = (0, range.start.0);
        while index < range.blocks {
            let chunk = self.chunks.entry(lba / CHUNK).or_insert_with(fresh);
            let first = (lba % CHUNK) as usize;
            let len = (CHUNK - lba % CHUNK).min(range.blocks - index);
            for place in &mut chunk[first..first + len as usize] {
                *place = value(index);
                index += 1;
            }
            lba += len;
        }
    }

    /// Fetches the value of a block from memory, which will be asked for soon.
    pub(crate) fn expect(&self, lba: Lba) {
        if let Some(chunk) = self.chunks.get(&(lba.0 / CHUNK)) {
            prefetch(&chunk[(lba.0 % CHUNK) as usize]);
        }
    }

    /// Takes the value of a block away.
    pub(crate) fn take(&mut self, lba: Lba) -> T {
        let chunk = self.chunks.get_mut(&(lba.0 / CHUNK));
        chunk.map(|chunk| std::mem::take(&mut chunk[(lba.0 % CHUNK) as usize])).unwrap_or_default()
    }

    /// Takes the values of a range away, in a time that what was set bounds, however long the range
    /// is.
    pub(crate) fn clear(&mut self, range: BlockRange) {
        let (start, end) = (range.start.0, range.end().0);
        if start >= end {
            return;
        }
        let whole = start.div_ceil(CHUNK)..end / CHUNK;
        if whole.end.saturating_sub(whole.start) > self.chunks.len() as u64 {
            self.chunks.retain(|chunk, _| !whole.contains(chunk));
        } else {
            whole.clone().for_each(|chunk| drop(self.chunks.remove(&chunk)));
        }
        for chunk in [start / CHUNK, (end - 1) / CHUNK] {
            self.clear_in(chunk, start.max(chunk * CHUNK)..end.min((chunk + 1) * CHUNK));
        }
    }

    fn clear_in(&mut self, chunk: u64, blocks: std::ops::Range<u64>) {
        let Some(values) = self.chunks.get_mut(&chunk) else { return };
        let inside = (blocks.start - chunk * CHUNK) as usize..(blocks.end - chunk * CHUNK) as usize;
        values[inside].fill(T::default());
        if values.iter().all(|value| *value == T::default()) {
            self.chunks.remove(&chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_sorted_map(ops in prop::collection::vec((any::<bool>(), 0..2000_u64, 1..1500_u64), 1..40)) {
            let (mut sparse, mut model) = (Sparse::new(), BTreeMap::new());
            for (number, (set, start, len)) in ops.into_iter().enumerate() {
                if set {
                    sparse.set(Lba(start), number + 1);
                    model.insert(start, number + 1);
                } else {
                    sparse.clear(BlockRange::new(Lba(start), len));
                    model.retain(|block, _| !(start..start + len).contains(block));
                }
                for block in 0..3500 {
                    prop_assert_eq!(sparse.get(Lba(block)), model.get(&block).unwrap_or(&0));
                }
            }
        }
    }

    #[test]
    fn a_range_of_half_the_address_space_is_cleared_at_once() {
        let mut sparse = Sparse::new();
        for lba in [5, 1 << 58, (1 << 60) - 1, 1 << 60] {
            sparse.set(Lba(lba), 1);
        }
        sparse.clear(BlockRange::new(Lba(6), (1 << 60) - 6));
        assert_eq!(
            [5, 1 << 58, (1 << 60) - 1, 1 << 60].map(|lba| *sparse.get(Lba(lba))),
            [1, 0, 0, 1]
        );
        assert_eq!(sparse.chunks.len(), 2);
    }
}
