//! `random_generator=lfsr`: each block of a file once, in the order of a shift register.
//!
//! All threads walk the same circle, each from a place of its own: what one of them writes first,
//! another one that comes there later overwrites in the same order.

/// The feedback of a register of so many bits, whose circle has all states but one (Xilinx
/// application note 52; that of 32 bits and the order of steps as fio 3.33 has them, seen in its
/// logs). The first register has three bits.
const TAPS: [&[u32]; 46] = [
    &[3, 2],
    &[4, 3],
    &[5, 3],
    &[6, 5],
    &[7, 6],
    &[8, 6, 5, 4],
    &[9, 5],
    &[10, 7],
    &[11, 9],
    &[12, 6, 4, 1],
    &[13, 4, 3, 1],
    &[14, 5, 3, 1],
    &[15, 14],
    &[16, 15, 13, 4],
    &[17, 14],
    &[18, 11],
    &[19, 6, 2, 1],
    &[20, 17],
    &[21, 19],
    &[22, 21],
    &[23, 18],
    &[24, 23, 22, 17],
    &[25, 22],
    &[26, 6, 2, 1],
    &[27, 5, 2, 1],
    &[28, 25],
    &[29, 27],
    &[30, 6, 4, 1],
    &[31, 28],
    &[32, 31, 29, 1],
    &[33, 20],
    &[34, 27, 2, 1],
    &[35, 33],
    &[36, 25],
    &[37, 5, 4, 3, 2, 1],
    &[38, 6, 5, 1],
    &[39, 35],
    &[40, 38, 21, 19],
    &[41, 38],
    &[42, 41, 20, 19],
    &[43, 42, 38, 37],
    &[44, 43, 18, 17],
    &[45, 44, 42, 41],
    &[46, 45, 26, 25],
    &[47, 42],
    &[48, 47, 21, 20],
];

/// A register whose states below the number of blocks are the blocks.
#[derive(Clone, Debug)]
pub(super) struct Lfsr {
    blocks: u64,
    top: u64,
    feedback: u64,
    start: u64,
    state: u64,
    drawn: u64,
}

impl Lfsr {
    /// Of a file of so many blocks, fewer than 2^48; the low bits of `seed` say where it begins.
    pub(super) fn new(blocks: u64, seed: u64) -> Self {
        let has_room = |taps: &&&[u32]| 1 << taps[0] > blocks;
        let taps = TAPS.iter().find(has_room).unwrap_or(&TAPS[TAPS.len() - 1]);
        let feedback = taps.iter().fold(0, |mask, tap| mask | 1 << (tap - 1));
        let top = 1 << (taps[0] - 1);
        let bits = 2 * top - 1;
        // all ones is the state that the circle leaves out
        let seed = if seed & bits == bits { 0 } else { seed & bits };
        let mut register = Self { blocks, top, feedback, start: seed, state: seed, drawn: 0 };
        register.reset();
        register
    }

    /// As at the start.
    pub(super) fn reset(&mut self) {
        self.drawn = 0;
        self.state = self.start;
        self.step(); // fio's first call comes from the second state
    }

    /// The next block; `None` when each had its turn.
    pub(super) fn draw(&mut self) -> Option<u64> {
        if self.drawn == self.blocks {
            return None;
        }
        self.drawn += 1;
        self.step();
        while self.state >= self.blocks {
            self.step();
        }
        Some(self.state)
    }

    fn step(&mut self) {
        let shifted = self.state >> 1 | self.top;
        self.state = if self.state & 1 == 0 { shifted ^ self.feedback } else { shifted };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_once() {
        for blocks in [1, 2, 7, 8, 63, 1000, 4095, 4096, 300_000] {
            for seed in [0, 1, 0xb189_9bed, u64::MAX] {
                let mut register = Lfsr::new(blocks, seed);
                let mut drawn: Vec<u64> = std::iter::from_fn(|| register.draw()).collect();
                let first = drawn[0];
                drawn.sort_unstable();
                assert!(drawn.into_iter().eq(0..blocks), "{blocks} from {seed}");
                register.reset();
                assert_eq!(register.draw(), Some(first));
            }
        }
    }

    /// A circle that closed early would leave blocks out, or never find the next one.
    #[test]
    fn long_registers_have_their_length_as_first_tap() {
        assert!(TAPS.iter().zip(3..).all(|(taps, bits)| taps[0] == bits));
        let mut large = Lfsr::new((1 << 48) - 2, 5);
        let drawn: std::collections::BTreeSet<u64> =
            (0..10_000).filter_map(|_| large.draw()).collect();
        assert_eq!(drawn.len(), 10_000);
    }
}
