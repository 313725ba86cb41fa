//! Bytes kept for a token: themselves, or what differs from others.
//!
//! A table that is written again and again changes little from one version to the next, and all its
//! versions stay on flash until their blocks are erased. A version is kept as the words in which it
//! differs from an earlier one, its *base*, which later versions share. When the differences of all
//! versions of a base have come to take as much memory as a base, the next one is kept whole and is
//! the base from then on: at a steady rate of change this is the distance between bases that takes
//! least memory. A table's first version that is nearly empty is a version of zeros.

use std::sync::{Arc, LazyLock};

use dovetail_block::{BLOCK_SIZE, BlockBytes};

const WORD_BYTES: usize = 4;
/// Bytes that are compared at once: what the compiler does without a call.
const LINE_BYTES: usize = 16;
const WORDS_PER_LINE: usize = LINE_BYTES / WORD_BYTES;
/// The most bytes of changes that a version of zeros may take (assumed): each later version has
/// them again.
const SPARSE_BYTES: u32 = 512;

static ZEROS: LazyLock<Arc<BlockBytes>> = LazyLock::new(|| Arc::new([0; BLOCK_SIZE as usize]));

/// A word that differs. Bytes, so that it takes six of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    index: [u8; 2],
    word: [u8; WORD_BYTES],
}

/// The bytes of one block.
#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    Whole(Arc<BlockBytes>),
    Changed {
        base: Arc<BlockBytes>,
        changes: Box<[Change]>,
        /// Bytes of changes in all versions from the base to this one.
        spent: u32,
    },
}

impl Bytes {
    /// Keeps `bytes` that follow no other.
    pub(crate) fn first_version(bytes: &BlockBytes) -> Self {
        match Self::Whole(Arc::clone(&ZEROS)).next_version(bytes) {
            Self::Changed { spent, .. } if spent > SPARSE_BYTES => Self::Whole(Arc::new(*bytes)),
            version => version,
        }
    }

    /// Keeps `bytes`, of which this is an earlier version.
    pub(crate) fn next_version(&self, bytes: &BlockBytes) -> Self {
        let (base, spent) = match self {
            Self::Whole(base) => (base, 0),
            Self::Changed { base, spent, .. } => (base, *spent),
        };
        let changes = changes(base, bytes);
        let spent = spent + size_of_val(&changes[..]) as u32;
        if spent > BLOCK_SIZE as u32 {
            return Self::Whole(Arc::new(*bytes));
        }
        Self::Changed { base: Arc::clone(base), changes: changes.into_boxed_slice(), spent }
    }

    /// The bytes themselves.
    pub(crate) fn to_whole(&self) -> Arc<BlockBytes> {
        match self {
            Self::Whole(bytes) => Arc::clone(bytes),
            Self::Changed { base, changes, .. } => {
                let mut bytes = **base;
                let (words, _) = bytes.as_chunks_mut::<WORD_BYTES>();
                for change in changes {
                    words[usize::from(u16::from_le_bytes(change.index))] = change.word;
                }
                Arc::new(bytes)
            }
        }
    }
}

fn changes(base: &BlockBytes, bytes: &BlockBytes) -> Vec<Change> {
    let mut changes = Vec::new();
    let (base, bytes) = (base.as_chunks::<LINE_BYTES>().0, bytes.as_chunks::<LINE_BYTES>().0);
    for (line, (old, new)) in
        base.iter().zip(bytes).enumerate().filter(|(_, (old, new))| old != new)
    {
        let words = old.as_chunks::<WORD_BYTES>().0.iter().zip(new.as_chunks::<WORD_BYTES>().0);
        for (index, (_, &word)) in words.enumerate().filter(|(_, (old, new))| old != new) {
            let index = ((line * WORDS_PER_LINE + index) as u16).to_le_bytes();
            changes.push(Change { index, word });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_time::Rng;

    fn memory_of_one(kept: &Bytes) -> u64 {
        match kept {
            Bytes::Whole(_) => BLOCK_SIZE,
            Bytes::Changed { changes, .. } => size_of_val(&changes[..]) as u64,
        }
    }

    /// Bytes of memory that versions take when each changes `words` words of the one before.
    fn memory_of(versions: u32, words: u32, rng: &mut Rng) -> u64 {
        let mut bytes = [0; BLOCK_SIZE as usize];
        let mut kept = Bytes::Whole(Arc::new(bytes));
        let mut memory = BLOCK_SIZE;
        for _ in 0..versions {
            for _ in 0..words {
                let (at, value) = (rng.below(BLOCK_SIZE) as usize, rng.below(256) as u8);
                bytes[at] = value;
            }
            kept = kept.next_version(&bytes);
            assert_eq!(*kept.to_whole(), bytes);
            memory += memory_of_one(&kept);
        }
        memory
    }

    #[test]
    fn versions_are_what_was_kept_and_take_little_where_little_changes() {
        let mut rng = Rng::new(3);
        let whole = 1000 * BLOCK_SIZE;
        assert_eq!(memory_of(1000, 0, &mut rng), BLOCK_SIZE, "nothing for the same again");
        assert!(memory_of(1000, 1, &mut rng) < whole / 16);
        assert!(memory_of(1000, 16, &mut rng) < whole / 4);
        assert!(memory_of(1000, 2000, &mut rng) <= whole + BLOCK_SIZE, "never more than without");
    }

    #[test]
    fn a_first_version_takes_what_is_set_in_it() {
        let mut bytes = [0; BLOCK_SIZE as usize];
        for (set, most) in [(0, 0), (24, 36), (BLOCK_SIZE as usize, BLOCK_SIZE)] {
            bytes[..set].fill(9);
            let kept = Bytes::first_version(&bytes);
            assert_eq!((*kept.to_whole(), memory_of_one(&kept)), (bytes, most));
        }
    }
}
