//! Size of the next block: `bs`, `bsrange` and `bssplit`.

use dovetail_time::Rng;

use super::value::{Expected, Value};

/// fio's own limit of `bssplit`.
const SPLITS_MAX: usize = 64;

const SPLIT: Expected =
    "up to 64 pairs such as 4k/60:64k/40, percentages no more than 100 together";

/// The block sizes of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockSizes {
    pub min: u64,
    pub max: u64,
    /// `bssplit`: sizes with their percentages, which rise and add up to 100 at most. The last
    /// size has what they leave.
    splits: Vec<(u64, u64)>,
    /// `bsrange` or `bssplit` gave the sizes: they go before `bs`, wherever that stands.
    is_range: bool,
}

impl BlockSizes {
    pub(super) const fn fixed(bytes: u64) -> Self {
        Self { min: bytes, max: bytes, splits: Vec::new(), is_range: false }
    }

    /// `bs`.
    pub(super) fn set_fixed(&mut self, bytes: u64) {
        if !self.is_range {
            *self = Self::fixed(bytes);
        }
    }

    /// `bsrange`; the sizes of a `bssplit` stay.
    pub(super) fn set_range(&mut self, (min, max): (u64, u64)) {
        (self.min, self.max, self.is_range) = (min, max, true);
    }

    /// `4k/50:64k/:8k`: percentages left empty, or 0, share what is left evenly.
    pub(super) fn parse_split(value: Value<'_>) -> Result<Self, Expected> {
        let entries: Vec<(u64, Option<u64>)> = value
            .text
            .split(':')
            .map(|part| split_entry(value.part(part)))
            .collect::<Result<_, _>>()?;
        let given: u64 = entries.iter().filter_map(|(_, percent)| *percent).sum();
        if entries.len() > SPLITS_MAX || given > 100 {
            return Err(SPLIT);
        }
        let open = entries.iter().filter(|(_, percent)| percent.is_none()).count() as u64;
        let share = (100 - given).checked_div(open).unwrap_or(0);
        let sizes = || entries.iter().map(|(size, _)| *size);
        let (min, max) = (sizes().min().ok_or(SPLIT)?, sizes().max().ok_or(SPLIT)?);
        let shares = entries.iter().map(|(size, percent)| (*size, percent.unwrap_or(share)));
        let mut splits: Vec<(u64, u64)> = shares.filter(|(_, percent)| *percent > 0).collect();
        splits.sort_by_key(|(_, percent)| *percent); // as fio does
        Ok(Self { min, max, splits, is_range: true })
    }

    /// Returns whether a `bsrange` leaves out sizes of the `bssplit`.
    pub(super) fn range_cuts_splits(&self) -> bool {
        self.splits.iter().any(|(size, _)| !(self.min..=self.max).contains(size))
    }

    pub(super) const fn is_fixed(&self) -> bool {
        self.min == self.max
    }

    /// The next size, of which no more than `room` bytes are there; `None` if not even the smallest
    /// fits. A fixed size is given whatever the room is.
    pub(super) fn draw(&self, room: u64, unaligned: bool, rng: &mut Rng) -> Option<u64> {
        if self.is_fixed() {
            return Some(self.min);
        }
        if room < self.min {
            return None;
        }
        let size = if self.splits.is_empty() {
            self.draw_between(rng)
        } else {
            self.draw_split(room, rng)
        };
        let size = if unaligned { size } else { size - size % self.min };
        // fio draws again until one fits; the tail of a file takes the smallest here.
        Some(if size <= room { size } else { self.min })
    }

    /// As fio: `min` plus up to `max`, cut at `max`, so that `max` is more frequent than any other.
    fn draw_between(&self, rng: &mut Rng) -> u64 {
        (self.min + rng.below(self.max)).min(self.max)
    }

    fn draw_split(&self, room: u64, rng: &mut Rng) -> u64 {
        let drawn = rng.below(100);
        let mut percent = 0;
        let fitting = self.splits.iter().filter(|(size, _)| *size <= room);
        let mut last = self.min;
        for (size, share) in fitting {
            percent += share;
            last = *size;
            if drawn < percent {
                break;
            }
        }
        last
    }
}

fn split_entry(value: Value<'_>) -> Result<(u64, Option<u64>), Expected> {
    let (size, percent) =
        value.text.split_once('/').map_or((value.text, ""), |(size, percent)| (size, percent));
    let size = value.part(size).some_size().map_err(|_| SPLIT)?;
    let percent = match percent.trim() {
        "" | "0" => None,
        text => Some(text.parse().ok().filter(|p| *p <= 100).ok_or(SPLIT)?),
    };
    Ok((size, percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Result<BlockSizes, Expected> {
        BlockSizes::parse_split(Value { text, kilo: 1024 })
    }

    #[test]
    fn open_percentages_share_the_rest() {
        assert_eq!(split("4k/50:1k/:32k").unwrap().splits, [(1024, 25), (32768, 25), (4096, 50)]);
        assert_eq!(split("4k/0:1k/40").unwrap().splits, [(1024, 40), (4096, 60)]);
        for bad in ["", "4k/60:8k/60", "x/10", "4k/200", "0/5"] {
            assert!(split(bad).is_err(), "{bad}");
        }
        assert!(split(&["4k"; 65].join(":")).is_err());
    }

    #[test]
    fn sizes_come_as_often_as_asked() {
        let sizes = split("4k/20:8k/30:64k/50").unwrap();
        let mut rng = Rng::new(1);
        let mut count = |size| {
            (0..10_000).filter(|_| sizes.draw(1 << 20, false, &mut rng) == Some(size)).count()
        };
        assert!((1_800..2_200).contains(&count(4096)));
        assert!((4_800..5_200).contains(&count(65536)));
    }

    /// As fio 3.33 does: the largest share takes the rest, wherever it stands.
    #[test]
    fn the_largest_share_takes_what_is_missing_from_100() {
        let sizes = split("4k/30:8k/20:64k/10").unwrap();
        let mut rng = Rng::new(1);
        let mut count = |size| {
            (0..10_000).filter(|_| sizes.draw(1 << 20, false, &mut rng) == Some(size)).count()
        };
        assert!((6_800..7_200).contains(&count(4096)));
        assert!((1_800..2_200).contains(&count(8192)));
    }

    #[test]
    fn a_range_goes_before_a_fixed_size() {
        let mut sizes = BlockSizes::fixed(4096);
        sizes.set_fixed(8192);
        assert_eq!((sizes.min, sizes.max), (8192, 8192));
        sizes.set_range((4096, 65536));
        sizes.set_fixed(512);
        assert_eq!((sizes.min, sizes.max), (4096, 65536));
        let mut sizes = split("4k/50:64k/50").unwrap();
        sizes.set_fixed(512);
        sizes.set_range((2048, 65536));
        assert!(!sizes.range_cuts_splits() && sizes.splits.len() == 2);
        sizes.set_range((8192, 65536));
        assert!(sizes.range_cuts_splits());
    }

    #[test]
    fn ranges_are_whole_multiples_of_the_smallest() {
        let mut sizes = BlockSizes::fixed(512);
        sizes.set_range((4096, 16384));
        let mut rng = Rng::new(1);
        for room in [4096, 8192, 1 << 20] {
            for _ in 0..1_000 {
                let size = sizes.draw(room, false, &mut rng).unwrap();
                assert!(size.is_multiple_of(4096) && size <= room.min(16384) && size > 0);
            }
        }
        assert_eq!(sizes.draw(4095, false, &mut rng), None);
    }
}
