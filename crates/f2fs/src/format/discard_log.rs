//! The discard log of a checkpoint pack of IPLFS: what this checkpoint no longer refers to, and
//! what earlier ones did not and the device has not been told of.
//!
//! A row of entries of two little-endian u64: the first block, and how many. With the highest bit
//! of the second set they are not blocks to discard but the words of a bitmap that follows, least
//! significant bit first, of the blocks from the first on: shorter where a section's invalid blocks
//! are many and scattered.

use std::ops::Range;

use super::{BlockAddr, u64_at};

/// Bytes of an entry.
pub const DISCARD_ENTRY: usize = 16;
/// The second word of an entry that a bitmap follows.
const IS_BITMAP: u64 = 1 << 63;
/// Bytes of a word of a bitmap.
const WORD: usize = 8;

/// Blocks that lie side by side and are to be discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The first block.
    pub start: BlockAddr,
    /// Number of blocks.
    pub blocks: u64,
}

impl Extent {
    /// The addresses.
    pub const fn range(self) -> Range<u64> {
        self.start.0..self.start.0.saturating_add(self.blocks)
    }
}

/// Adds an extent to a log.
pub fn log_extent(log: &mut Vec<u8>, extent: Extent) {
    log.extend_from_slice(&extent.start.0.to_le_bytes());
    log.extend_from_slice(&extent.blocks.to_le_bytes());
}

/// Adds the blocks whose bits are set in `words`, the first bit being `start`.
pub fn log_bitmap(log: &mut Vec<u8>, start: BlockAddr, words: &[u64]) {
    log_extent(log, Extent { start, blocks: words.len() as u64 | IS_BITMAP });
    words.iter().for_each(|word| log.extend_from_slice(&word.to_le_bytes()));
}

/// Bytes of a bitmap of so many words in a log.
pub const fn bitmap_len(words: usize) -> usize {
    DISCARD_ENTRY + WORD * words
}

/// The extents of set bits, the first bit being `start`.
pub fn extents_of(start: BlockAddr, words: &[u64]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for (base, &word) in (0_u64..).step_by(64).zip(words) {
        let mut rest = word;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let blocks = (rest >> first).trailing_ones();
            rest &= !(u64::MAX >> (64 - blocks) << first);
            let at = start.plus(base + u64::from(first));
            match extents.last_mut() {
                Some(last) if last.range().end == at.0 => last.blocks += u64::from(blocks),
                _ => extents.push(Extent { start: at, blocks: blocks.into() }),
            }
        }
    }
    extents
}

/// All extents of a log, in its order. What is cut off is left out.
pub fn parse_discard_log(log: &[u8]) -> Vec<Extent> {
    let (mut extents, mut at) = (Vec::new(), 0);
    while at + DISCARD_ENTRY <= log.len() {
        let (start, blocks) = (BlockAddr(u64_at(log, at)), u64_at(log, at + 8));
        at += DISCARD_ENTRY;
        if blocks & IS_BITMAP == 0 {
            extents.push(Extent { start, blocks });
            continue;
        }
        let left = (log.len() - at) / WORD;
        let words = usize::try_from(blocks & !IS_BITMAP).map_or(left, |words| words.min(left));
        let bitmap: Vec<u64> = (0..words).map(|word| u64_at(log, at + WORD * word)).collect();
        extents.extend(extents_of(start, &bitmap));
        at += WORD * words;
    }
    extents
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entry_is_a_start_and_a_length() {
        let mut log = Vec::new();
        log_extent(&mut log, Extent { start: BlockAddr(1 << 58 | 7), blocks: 3 });
        assert_eq!(log, [7, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0, 0]);
        log_bitmap(&mut log, BlockAddr(64), &[0b1011]);
        assert_eq!(
            log[16..],
            [64, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80, 11, 0, 0, 0, 0, 0, 0, 0]
        );
        let found: Vec<_> =
            parse_discard_log(&log).iter().map(|one| (one.start.0, one.blocks)).collect();
        assert_eq!(found, [(1 << 58 | 7, 3), (64, 2), (67, 1)]);
        assert_eq!(parse_discard_log(&log[..35]).len(), 1, "a bitmap without words");
        assert!(parse_discard_log(&[0xFF; 100]).len() <= 100, "a length beyond the end");
    }

    proptest! {
        #[test]
        fn extents_cover_the_set_bits(words in prop::collection::vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)], 0..9)) {
            let extents = extents_of(BlockAddr(1000), &words);
            let mut seen = vec![0_u64; words.len()];
            for bit in extents.iter().flat_map(|extent| extent.range()).map(|at| at as usize - 1000) {
                prop_assert_eq!(seen[bit / 64] >> (bit % 64) & 1, 0);
                seen[bit / 64] |= 1 << (bit % 64);
            }
            prop_assert_eq!(&seen, &words);
            prop_assert!(extents.windows(2).all(|pair| pair[0].range().end < pair[1].start.0));
            let mut log = Vec::new();
            log_bitmap(&mut log, BlockAddr(1000), &words);
            prop_assert_eq!(log.len(), bitmap_len(words.len()));
            prop_assert_eq!(parse_discard_log(&log), extents);
        }
    }
}
