//! A row of bits, as long as the highest that was ever set.

use std::ops::Range;

const WORD: u32 = u64::BITS;

#[derive(Debug, Default)]
pub(super) struct Bits {
    /// The lowest bit of a word first.
    words: Vec<u64>,
    set: u32,
}

impl Bits {
    /// None is set.
    pub(super) fn is_empty(&self) -> bool {
        self.set == 0
    }

    pub(super) fn get(&self, bit: u32) -> bool {
        self.words.get((bit / WORD) as usize).is_some_and(|word| word >> (bit % WORD) & 1 == 1)
    }

    pub(super) fn set(&mut self, range: Range<u32>) {
        let words = range.end.div_ceil(WORD) as usize;
        self.words.resize(words.max(self.words.len()), 0);
        for (word, mask) in words_of(range) {
            let word = &mut self.words[word];
            self.set += (mask & !*word).count_ones();
            *word |= mask;
        }
    }

    pub(super) fn clear(&mut self, range: Range<u32>) {
        for (word, mask) in words_of(range) {
            let Some(word) = self.words.get_mut(word) else { return };
            self.set -= (mask & *word).count_ones();
            *word &= !mask;
        }
    }

    /// The first bit of a range that is set.
    pub(super) fn first_in(&self, range: Range<u32>) -> Option<u32> {
        let range = range.start..range.end.min(self.words.len() as u32 * WORD);
        words_of(range).find_map(|(at, mask)| {
            let found = self.words[at] & mask;
            (found != 0).then(|| at as u32 * WORD + found.trailing_zeros())
        })
    }
}

/// The words that a range lies in, and its bits in each.
fn words_of(range: Range<u32>) -> impl Iterator<Item = (usize, u64)> {
    let words = range.start / WORD..range.end.div_ceil(WORD);
    words.map(move |word| {
        let from = range.start.saturating_sub(word * WORD);
        let to = (range.end - word * WORD).min(WORD);
        (word as usize, u64::MAX << from & u64::MAX >> (WORD - to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_reach_over_words() {
        let mut bits = Bits::default();
        bits.set(60..130);
        bits.set(64..66);
        assert_eq!(bits.set, 70);
        assert_eq!(
            (bits.first_in(0..60), bits.first_in(0..61), bits.first_in(100..1000)),
            (None, Some(60), Some(100))
        );
        assert!(bits.get(129) && !bits.get(130) && !bits.get(10_000));
        bits.clear(61..129);
        assert_eq!((bits.first_in(61..1000), bits.set), (Some(129), 2));
        bits.clear(0..1000);
        assert!(bits.is_empty() && bits.first_in(5..5).is_none());
    }
}
