//! A row of values whose stretches take memory when one of them is first written.

use std::ops::{Index, IndexMut};

/// A row of fixed length, in chunks of `N` values, a power of two. A chunk that was never written
/// takes no memory beyond its entry in the list of chunks, and its values are the default. The last
/// chunk may have values behind the end of the row.
#[derive(Clone, Debug)]
pub struct Chunked<T, const N: usize> {
    chunks: Vec<Option<Box<[T; N]>>>,
    len: usize,
    empty: T,
}

impl<T: Clone + Default, const N: usize> Chunked<T, N> {
    const IS_POWER: () = assert!(N.is_power_of_two());

    /// So many values, all the default.
    pub fn new(len: usize) -> Self {
        let () = Self::IS_POWER;
        let chunks = std::iter::repeat_with(|| None).take(len.div_ceil(N)).collect();
        Self { chunks, len, empty: T::default() }
    }

    /// Values in all, written or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tells whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A value; `None` behind the end, and where its chunk was never written. For what is only
    /// looked at where it was written.
    #[inline]
    pub fn written(&self, index: usize) -> Option<&T> {
        Some(&self.chunks.get(index / N)?.as_ref()?[index % N])
    }

    /// Neighbouring values that lie in one chunk: their number is a power of two that divides the
    /// index of the first.
    #[inline]
    pub fn stretch_mut(&mut self, first: usize, len: usize) -> &mut [T] {
        debug_assert!(len.is_power_of_two() && first.is_multiple_of(len) && len <= N);
        let chunk = self.chunks[first / N].get_or_insert_with(fresh);
        &mut chunk[first % N..first % N + len]
    }

    /// Copies neighbouring values, from `first` on as many as there are places for.
    pub fn copy_to(&self, mut first: usize, mut places: &mut [T])
    where
        T: Copy,
    {
        while !places.is_empty() {
            let here = places.len().min(N - first % N);
            let (copied, rest) = places.split_at_mut(here);
            match &self.chunks[first / N] {
                Some(chunk) => copied.copy_from_slice(&chunk[first % N..first % N + here]),
                None => copied.fill(self.empty),
            }
            (first, places) = (first + here, rest);
        }
    }

    /// Values of the chunks that were written, with their places.
    pub fn iter_written(&self) -> impl Iterator<Item = (usize, &T)> {
        let chunks = self.chunks.iter().enumerate();
        let of = |(number, chunk)| (number * N..self.len).zip(values(chunk));
        chunks.flat_map(of)
    }

    /// Bytes of memory that the values take now, without what they own.
    pub fn memory_bytes(&self) -> u64 {
        let written = self.chunks.iter().flatten().count();
        (written * size_of::<[T; N]>() + self.chunks.len() * size_of::<Box<[T; N]>>()) as u64
    }
}

/// The values of a chunk; none if it was never written.
fn values<T, const N: usize>(chunk: &Option<Box<[T; N]>>) -> &[T] {
    chunk.as_ref().map_or(&[], |values| values.as_slice())
}

/// A chunk of defaults, made in its place: it may be too large for a stack.
#[cold]
#[inline(never)]
fn fresh<T: Clone + Default, const N: usize>() -> Box<[T; N]> {
    match vec![T::default(); N].try_into() {
        Ok(chunk) => chunk,
        Err(_) => unreachable!("it has N values"),
    }
}

impl<T: Clone + Default, const N: usize> Index<usize> for Chunked<T, N> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        self.chunks[index / N].as_ref().map_or(&self.empty, |chunk| &chunk[index % N])
    }
}

impl<T: Clone + Default, const N: usize> IndexMut<usize> for Chunked<T, N> {
    #[inline(always)] // a call would cost more than the look-up
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / N].get_or_insert_with(fresh)[index % N]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_row_of_values_that_takes_memory_where_it_is_written() {
        let mut row = Chunked::<u32, 16>::new(1000);
        let mut model = vec![0; 1000];
        let list = row.memory_bytes();
        assert_eq!((row.len(), row[999], row.written(999)), (1000, 0, None));
        for (step, index) in [5, 999, 4, 500, 5, 992].into_iter().enumerate() {
            (row[index], model[index]) = (step as u32 + 1, step as u32 + 1);
            assert!((0..1000).all(|index| row[index] == model[index]), "{step}");
        }
        row.stretch_mut(996, 4).copy_from_slice(&[9, 8, 7, 6]);
        model[996..].copy_from_slice(&[9, 8, 7, 6]);
        assert!((0..1000).all(|index| row[index] == model[index]));
        for (first, len) in [(0, 1000), (3, 1), (4, 12), (490, 30), (990, 10), (7, 0)] {
            let mut copied = vec![77; len];
            row.copy_to(first, &mut copied);
            assert_eq!(copied, model[first..first + len]);
        }
        assert_eq!(row.memory_bytes() - list, 3 * 16 * 4, "three chunks");
        assert_eq!(row.iter_written().filter(|(_, value)| **value > 0).count(), 8);
        assert!(row.iter_written().all(|(index, value)| model[index] == *value));
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn what_is_behind_the_last_chunk_is_refused() {
        let row = Chunked::<u32, 16>::new(1000);
        assert_eq!(row[1008], 0);
    }
}
