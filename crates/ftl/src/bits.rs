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

    pub(crate) fn get(&self, i: u64) -> bool {
        self.words[(i / 64) as usize] >> (i % 64) & 1 == 1
    }

    pub(crate) fn set(&mut self, i: u64) {
        self.words[(i / 64) as usize] |= 1 << (i % 64);
    }

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
