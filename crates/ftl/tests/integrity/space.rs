//! The addresses that a run uses.

use dovetail_block::{AREA_BLOCKS, AREAS, BlockRange, Lba, SectorRange};
use dovetail_ftl::DriveConfig;
use dovetail_time::Rng;

use super::drives::pick;

/// The addresses that a run uses: windows anywhere, as if they stood in a row.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) starts: Vec<u64>,
    pub(super) window: u64,
}

impl Space {
    /// All of a drive's; of a thin one half as many again as it has room for, and of these most at
    /// ends of areas.
    pub(super) fn new(config: &DriveConfig, rng: &mut Rng) -> Self {
        let Some(addresses) = config.addresses else {
            return Self { starts: vec![0], window: config.user_blocks };
        };
        // Scattered far enough that each block has a translation page of its own, or nearly so.
        let windows = if config.map_cache.is_some() {
            pick(rng, &[12, 60, config.user_blocks / 2])
        } else {
            12
        };
        let window = config.user_blocks * 3 / 2 / windows + 4;
        let place = |i| match i {
            0 => 0,
            1 => addresses - window,
            // Across the ends of areas.
            2..7 => (i - 1) * AREA_BLOCKS - rng.below(window),
            _ => rng.below(addresses / window) * window,
        };
        let starts: std::collections::BTreeSet<u64> = (0..windows).map(place).collect();
        Self { starts: starts.into_iter().collect(), window }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.starts.len() as u64 * self.window
    }

    /// The address of the `index`th block.
    pub(super) fn lba(&self, index: u64) -> Lba {
        Lba(self.starts[(index / self.window) as usize] + index % self.window)
    }

    /// A random run of up to nine blocks, half of the time among the first quarter.
    pub(super) fn range(&self, rng: &mut Rng) -> BlockRange {
        let blocks = self.blocks();
        let hot = if rng.chance(0.5) { blocks / 4 + 1 } else { blocks };
        let start = rng.below(hot);
        BlockRange::new(self.lba(start), 1 + rng.below(9.min(self.window - start % self.window)))
    }

    /// A range that no drive could walk: an area, or from anywhere to anywhere.
    pub(super) fn huge(&self, rng: &mut Rng) -> SectorRange {
        if rng.chance(0.5) {
            return BlockRange::new(Lba(rng.below(AREAS) * AREA_BLOCKS), AREA_BLOCKS).into();
        }
        let (a, b) = (rng.below(self.blocks()), rng.below(self.blocks()));
        let (start, end) = (self.lba(a.min(b)).0, self.lba(a.max(b)).0);
        SectorRange::new(8 * start + rng.below(8), 8 * (end - start))
    }
}
