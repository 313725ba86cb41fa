//! A permutation of `0..n` that needs no memory.

use dovetail_time::Rng;

/// Enough for a permutation that looks random (Luby and Rackoff, SIAM J. Comput. 17, 1988: four).
const ROUNDS: usize = 4;

/// A Feistel network over the next power of four, walked until the result is below `n` ("cycle
/// walking": Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002): four steps
/// at most in the mean.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Of `0..n`, drawn from `rng`; `n` is at least 1 and at most 2^62.
    pub(super) fn new(n: u64, rng: &mut Rng) -> Self {
        let bits = u64::BITS - (n - 1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| rng.next_u64()),
        }
    }

    /// Maps `index` to its place.
    pub(super) fn apply(&self, index: u64) -> u64 {
        let mut place = self.encrypt(index);
        while place >= self.n {
            place = self.encrypt(place);
        }
        place
    }

    fn encrypt(&self, index: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (left, right) =
            self.keys.iter().fold((index >> self.half_bits, index & mask), |(left, right), key| {
                (right, left ^ (mix(right ^ key) & mask))
            });
        left << self.half_bits | right
    }
}

/// The finaliser of SplitMix64.
const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for n in [1, 2, 3, 5, 64, 1000, 65_537] {
            let permutation = Permutation::new(n, &mut Rng::new(n));
            let mut places: Vec<u64> = (0..n).map(|index| permutation.apply(index)).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..n), "{n}");
        }
    }
}
