//! A value for each block of an address space of any size; stretches that were never touched take
//! no memory.

use std::collections::HashMap;
use std::ops::Range;

use dovetail_block::{BlockRange, Lba, prefetch};
use rustc_hash::FxBuildHasher;

/// Blocks that come into memory together: 2 MiB.
const CHUNK: u64 = 512;

/// Chunks that are found by their number alone: the first 256 GiB.
const LOW: u64 = 1 << 17;

type Chunk<T> = Box<[T; CHUNK as usize]>;

/// Values by block address, [`Default`] where none was set.
#[derive(Clone, Debug)]
pub(crate) struct Sparse<T> {
    /// Up to the last one that was ever touched.
    low: Vec<Option<Chunk<T>>>,
    /// From [`LOW`] on.
    high: HashMap<u64, Chunk<T>, FxBuildHasher>,
    empty: T,
}

const fn place_of(lba: Lba) -> (u64, usize) {
    (lba.0 / CHUNK, (lba.0 % CHUNK) as usize)
}

impl<T: Default + Clone + PartialEq> Sparse<T> {
    pub(crate) fn new() -> Self {
        Self { low: Vec::new(), high: HashMap::default(), empty: T::default() }
    }

    pub(crate) fn get(&self, lba: Lba) -> &T {
        let (number, at) = place_of(lba);
        self.chunk(number).map_or(&self.empty, |chunk| &chunk[at])
    }

    pub(crate) fn set(&mut self, lba: Lba, value: T) {
        let (number, at) = place_of(lba);
        self.chunk_to_fill(number)[at] = value;
    }

    fn chunk(&self, number: u64) -> Option<&Chunk<T>> {
        if number < LOW {
            self.low.get(number as usize).and_then(Option::as_ref)
        } else {
            self.high.get(&number)
        }
    }

    fn chunk_to_fill(&mut self, number: u64) -> &mut Chunk<T> {
        let fresh = || Box::new(std::array::from_fn(|_| T::default()));
        if number < LOW {
            if self.low.len() as u64 <= number {
                self.low.resize(number as usize + 1, None);
            }
            self.low[number as usize].get_or_insert_with(fresh)
        } else {
            self.high.entry(number).or_insert_with(fresh)
        }
    }

    fn chunk_mut(&mut self, number: u64) -> Option<&mut Chunk<T>> {
        if number < LOW {
            self.low.get_mut(number as usize).and_then(Option::as_mut)
        } else {
            self.high.get_mut(&number)
        }
    }

    fn drop_chunk(&mut self, number: u64) {
        if number < LOW {
            self.low.get_mut(number as usize).into_iter().for_each(|chunk| *chunk = None);
        } else {
            self.high.remove(&number);
        }
    }

    /// Sets the values of a range: `value` has that of each of its blocks, by its index.
    pub(crate) fn set_each(&mut self, range: BlockRange, value: impl Fn(u64) -> T) {
        let mut index = 0;
        while index < range.blocks {
            let (number, first) = place_of(Lba(range.start.0 + index));
            for place in self.chunk_to_fill(number)[first..].iter_mut() {
                if index == range.blocks {
                    break;
                }
                *place = value(index);
                index += 1;
            }
        }
    }

    /// Fetches the value of a block from memory, which will be asked for soon.
    pub(crate) fn expect(&self, lba: Lba) {
        let (number, at) = place_of(lba);
        if let Some(chunk) = self.chunk(number) {
            prefetch(&chunk[at]);
        }
    }

    /// Takes the value of a block away.
    pub(crate) fn take(&mut self, lba: Lba) -> T {
        let (number, at) = place_of(lba);
        self.chunk_mut(number).map(|chunk| std::mem::take(&mut chunk[at])).unwrap_or_default()
    }

    /// Takes the values of a range away, in a time that what was set bounds, however long the range
    /// is.
    pub(crate) fn clear(&mut self, range: BlockRange) {
        let (start, end) = (range.start.0, range.end().0);
        if start >= end {
            return;
        }
        self.drop_chunks(start.div_ceil(CHUNK)..end / CHUNK);
        for chunk in [start / CHUNK, (end - 1) / CHUNK] {
            self.clear_in(chunk, start.max(chunk * CHUNK)..end.min((chunk + 1) * CHUNK));
        }
    }

    fn drop_chunks(&mut self, numbers: Range<u64>) {
        let low = numbers.start..numbers.end.min(self.low.len() as u64);
        low.for_each(|number| self.low[number as usize] = None);
        let high = numbers.start.max(LOW)..numbers.end;
        if high.end.saturating_sub(high.start) > self.high.len() as u64 {
            self.high.retain(|number, _| !high.contains(number));
        } else {
            high.for_each(|number| drop(self.high.remove(&number)));
        }
    }

    fn clear_in(&mut self, number: u64, blocks: Range<u64>) {
        let Some(values) = self.chunk_mut(number) else { return };
        let first = number * CHUNK;
        let inside = (blocks.start - first) as usize..(blocks.end - first) as usize;
        values[inside.clone()].fill(T::default());
        // blocks behind the range first: a log is cleared from its start on
        let mut others = values[inside.end..].iter().chain(&values[..inside.start]);
        if others.all(|value| *value == T::default()) {
            self.drop_chunk(number);
        }
    }

    #[cfg(test)]
    fn chunks(&self) -> usize {
        self.low.iter().flatten().count() + self.high.len()
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
        assert_eq!(sparse.chunks(), 2);
    }
}
