//! A row of bits.

/// A row of bits of fixed length.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn new(len: u64) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize] }
    }

    #[inline]
    pub(crate) fn get(&self, i: u64) -> bool {
        self.words[(i / 64) as usize] >> (i % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, i: u64) {
        self.words[(i / 64) as usize] |= 1 << (i % 64);
    }

    #[inline]
    pub(crate) fn clear(&mut self, i: u64) {
        self.words[(i / 64) as usize] &= !(1 << (i % 64));
    }

    /// Sets all of the first `len` bits.
    pub(crate) fn fill(&mut self, len: u64) {
        (0..len).for_each(|i| self.set(i));
    }

    /// The first bit that is set.
    pub(crate) fn first(&self) -> Option<u64> {
        let word = self.words.iter().position(|&word| word != 0)?;
        Some(word as u64 * 64 + u64::from(self.words[word].trailing_zeros()))
    }

    /// The first bit that is set in `from..end`, a word at a time.
    #[inline(always)] // in loops over lines
    pub(crate) fn next(&self, from: u64, end: u64) -> Option<u64> {
        let mut at = from;
        while at < end {
            let ahead = self.words[(at / 64) as usize] >> (at % 64);
            if ahead != 0 {
                let found = at + u64::from(ahead.trailing_zeros());
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// The `width` bits from `i` on, which lie in one word: `width` is a power of two that divides
    /// `i`.
    pub(crate) fn field(&self, i: u64, width: u32) -> u8 {
        (self.words[(i / 64) as usize] >> (i % 64)) as u8 & ((1u16 << width) - 1) as u8
    }

    /// Sets the `width` bits from `i` on to those of `value`.
    pub(crate) fn set_field(&mut self, i: u64, width: u32, value: u8) {
        let (word, shift) = (&mut self.words[(i / 64) as usize], i % 64);
        *word = *word & !(((1 << width) - 1) << shift) | u64::from(value) << shift;
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_time::Rng;

    #[test]
    fn the_next_bit_is_the_first_one_that_is_set() {
        let (mut rng, mut bits, mut model) = (Rng::new(4), Bits::new(500), [false; 500]);
        for _ in 0..30 {
            let at = rng.below(500);
            bits.set(at);
            model[at as usize] = true;
            for from in 0..=500 {
                let end = from + rng.below(501 - from);
                let first = (from..end).find(|at| model[*at as usize]);
                assert_eq!(bits.next(from, end), first, "{from}..{end}");
            }
        }
    }
}
