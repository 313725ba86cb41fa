//! Content of a block: a name for what was written, or the bytes themselves.

use std::fmt;
use std::sync::Arc;

use crate::addr::BLOCK_SIZE;

/// The bytes of one block.
pub type BlockBytes = [u8; BLOCK_SIZE as usize];

/// A name for what was written to a block, in place of its bytes: 43 bits, compared but never
/// decoded.
///
/// Simulations write patterns, so that a drive of hundreds of gigabytes fits in a laptop while
/// every read is still checked against what was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(u64);

impl Pattern {
    /// The largest pattern: 2^43 - 1. Small enough that a flash page holds its pattern, its stream
    /// and its sequence number in eight bytes.
    pub const MAX: u64 = (1 << 43) - 1;

    /// The pattern of number `n`, taken modulo 2^43: a counter of writes names each write.
    pub const fn new(n: u64) -> Self {
        Self(n & Self::MAX)
    }

    /// The pattern that names version `version` of block `offset` of `object` (a file, a volume): a
    /// mix of the three, so that two different names are equal with probability 2^-43.
    pub const fn named(object: u64, offset: u64, version: u64) -> Self {
        let mut hash = 0x243F_6A88_85A3_08D3_u64;
        hash = mix(hash ^ object);
        hash = mix(hash ^ offset);
        Self::new(mix(hash ^ version))
    }

    /// The number of the pattern.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The `i`-th pattern after this one, modulo 2^43.
    pub const fn nth(self, i: u64) -> Self {
        Self::new(self.0.wrapping_add(i))
    }
}

/// The finalizer of MurmurHash3 (Appleby, public domain): every input bit changes every output bit.
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    x = (x ^ (x >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    x ^ (x >> 33)
}

/// The content of one block.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Content {
    /// Never written, or discarded: reads as zeros.
    #[default]
    Empty,
    /// Written by a simulation, which names the content instead of carrying it.
    Pattern(Pattern),
    /// Real bytes.
    Bytes(Arc<BlockBytes>),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Pattern(p) => write!(f, "Pattern({})", p.number()),
            Self::Bytes(bytes) => write!(f, "Bytes({:02x?}..)", &bytes[..8]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_depends_on_each_of_its_parts() {
        let base = Pattern::named(1, 2, 3);
        for other in [
            Pattern::named(2, 2, 3),
            Pattern::named(1, 3, 3),
            Pattern::named(1, 2, 4),
            Pattern::named(2, 1, 3),
        ] {
            assert_ne!(base, other);
        }
        assert_eq!(base, Pattern::named(1, 2, 3));
    }

    #[test]
    fn patterns_wrap_at_43_bits() {
        assert_eq!(Pattern::new(Pattern::MAX).nth(1), Pattern::new(0));
    }
}
