//! A synthetic workload: fill the device in order, then hit it at random.

use std::num::NonZeroU64;

use dovetail_block::{BLOCK_SIZE, ByteRange};
use dovetail_time::{SimSpan, SimTime};

use crate::request::{Op, Request};

/// Blocks in one write of the sequential fill: 64 KiB.
const FILL_BLOCKS: u64 = 16;

/// A sequential fill of the span in 64 KiB writes, then uniformly random requests of 4 KiB in it, all at
/// equal gaps. The last write of the fill is 64 KiB too where the span is no multiple of it, and so goes
/// beyond the span.
///
/// The random numbers are those of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014), two a request: block, then read or write, each taken modulo its bound. The same
/// parameters give the same requests on every machine and in every version.
#[derive(Clone, Debug)]
pub struct UniformRandom {
    span_blocks: NonZeroU64,
    write_percent: u8,
    gap: SimSpan,
    state: u64,
    at: SimTime,
    fill_next: u64,
    random_left: u64,
}

impl UniformRandom {
    /// The seed unless [`UniformRandom::with_seed`] gives another.
    pub const SEED: u64 = 42;

    /// A fill of `span_blocks` blocks of 4 KiB and then `requests` random requests, of which `write_percent`
    /// in a hundred are writes (0 to 100; more counts as 100) and the others reads, `gap` apart.
    pub fn new(requests: u64, span_blocks: NonZeroU64, write_percent: u8, gap: SimSpan) -> Self {
        Self {
            span_blocks,
            write_percent,
            gap,
            state: Self::SEED,
            at: SimTime::ZERO,
            fill_next: 0,
            random_left: requests,
        }
    }

    /// The same workload with other random numbers.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { state: seed, ..self }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn next_access(&mut self) -> Option<(Op, u64, u64)> {
        if self.fill_next < self.span_blocks.get() {
            let block = self.fill_next;
            self.fill_next = block.saturating_add(FILL_BLOCKS);
            return Some((Op::Write, block, FILL_BLOCKS));
        }
        self.random_left = self.random_left.checked_sub(1)?;
        let block = self.random() % self.span_blocks;
        let write = self.random() % 100 < u64::from(self.write_percent);
        Some((if write { Op::Write } else { Op::Read }, block, 1))
    }
}

impl Iterator for UniformRandom {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let (op, block, blocks) = self.next_access()?;
        let range = ByteRange::new(block.saturating_mul(BLOCK_SIZE), blocks * BLOCK_SIZE);
        let request = Request { at: self.at, op, range, preflush: false, fua: false };
        self.at += self.gap;
        Some(request)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let fill = self.span_blocks.get().saturating_sub(self.fill_next).div_ceil(FILL_BLOCKS);
        let left = usize::try_from(fill.saturating_add(self.random_left)).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request as a line of MQSim's ASCII format.
    fn line(r: &Request) -> String {
        let kind = u8::from(r.op == Op::Read);
        format!("{} 0 {} {} {kind}", r.at.as_ns(), r.range.start / 512, r.range.len / 512)
    }

    fn lines(requests: u64, span: u64, percent: u8, gap: u64) -> Vec<String> {
        let span = NonZeroU64::new(span).unwrap();
        UniformRandom::new(requests, span, percent, SimSpan::from_ns(gap)).map(|r| line(&r)).collect()
    }

    /// The output of the reference generator in Python (SplitMix64, seed 42) for `6 40 70 1000`.
    const SIX_IN_FORTY: &str = "\
0 0 0 128 0
1000 0 128 128 0
2000 0 256 128 0
3000 0 104 8 1
4000 0 144 8 0
5000 0 80 8 0
6000 0 40 8 0
7000 0 40 8 1
8000 0 56 8 0";

    #[test]
    fn requests_equal_those_of_the_reference_generator() {
        assert_eq!(lines(6, 40, 70, 1000), SIX_IN_FORTY.lines().collect::<Vec<_>>());
    }

    #[test]
    fn the_number_left_is_known_throughout() {
        let mut requests = UniformRandom::new(5, NonZeroU64::new(40).unwrap(), 50, SimSpan::ZERO);
        for left in (0..=8).rev() {
            assert_eq!(requests.size_hint(), (left, Some(left)));
            assert_eq!(requests.next().is_some(), left > 0);
        }
    }

    #[test]
    fn another_seed_gives_other_requests() {
        let base = UniformRandom::new(20, NonZeroU64::new(1000).unwrap(), 50, SimSpan::ZERO);
        assert_ne!(base.clone().with_seed(7).collect::<Vec<_>>(), base.collect::<Vec<_>>());
    }
}
