//! Places of a volume that were written of late.

use dovetail_block::BlockRange;

use crate::FREE;

/// Parts of a volume.
const CELLS: usize = 256;

/// Share of the heat that is left each time that it was looked at: an eye sees the last second. It
/// is for the picture alone.
const KEPT: f64 = 0.5;

/// Share of the hottest part's heat from which on a part is shown.
const COLDEST: f64 = 0.005;

/// Blocks written to each part of a volume, old ones forgotten little by little.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    blocks_per_cell: u64,
    cells: Vec<f64>,
}

impl Heat {
    /// Nothing written to a volume of so many blocks.
    pub(crate) fn new(blocks: u64) -> Self {
        let blocks_per_cell = blocks.div_ceil(CELLS as u64).max(1);
        Self { blocks_per_cell, cells: vec![0.0; CELLS] }
    }

    /// Notes a write. Addresses beyond the volume's room, which an endless log has, begin anew.
    pub(crate) fn write(&mut self, range: BlockRange) {
        let mut at = range.start.0;
        let end = at + range.blocks;
        while at < end {
            let cell = at / self.blocks_per_cell;
            let until = ((cell + 1) * self.blocks_per_cell).min(end);
            self.cells[cell as usize % CELLS] += (until - at) as f64;
            at = until;
        }
    }

    /// The parts in percent of the hottest one, on a logarithmic scale; [`FREE`] for those to which
    /// nothing was written of late. Lets them cool.
    pub(crate) fn look(&mut self) -> Vec<i8> {
        let most = self.cells.iter().copied().fold(1.0, f64::max);
        let percent = |heat: f64| (100.0 * heat.ln_1p() / most.ln_1p()) as i8;
        let is_cold = |heat: f64| heat < (most * COLDEST).max(0.5);
        let cell = |heat: f64| if is_cold(heat) { FREE } else { percent(heat) };
        let seen = self.cells.iter().map(|heat| cell(*heat)).collect();
        self.cells.iter_mut().for_each(|heat| *heat *= KEPT);
        seen
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::Lba;

    use super::*;

    #[test]
    fn writes_heat_their_parts_which_cool() {
        let mut heat = Heat::new(2560);
        heat.write(BlockRange { start: Lba(5), blocks: 10 });
        heat.write(BlockRange { start: Lba(2560 + 30), blocks: 1 });
        let seen = heat.look();
        assert_eq!(seen[..3], [100, 100, FREE]);
        assert!((1..100).contains(&seen[3]), "{}", seen[3]);
        assert!(seen[4..].iter().all(|cell| *cell == FREE));
        (0..20).for_each(|_| drop(heat.look()));
        assert!(heat.look().iter().all(|cell| *cell == FREE));
    }
}
