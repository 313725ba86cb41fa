//! Reserve of the main area that users do not get: segments kept free for cleaning, and
//! overprovision.

use super::MkfsError;
use super::geometry::Areas;
use super::room::Room;

/// Segments that the six logs write to.
const LOGS: f64 = 6.0;
/// Main areas below this many segments get at least 10 %.
const SMALL: u32 = 256;

/// Segments that users do not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserve {
    /// Kept free for cleaning.
    pub(super) reserved: u32,
    /// All of them, the reserved ones among them.
    pub(super) overprovision: u32,
}

impl Reserve {
    /// The reserve of a volume of these areas, for `percent` or for the percentage that leaves the
    /// most to users.
    pub(super) fn new(areas: &Areas, percent: Option<f64>, room: &Room) -> Result<Self, MkfsError> {
        let percent = percent.unwrap_or_else(|| best(areas));
        if !(percent > 0.0 && percent < 100.0) {
            return Err(MkfsError::Overprovision { percent: percent.to_string() });
        }
        let reserved = reserved(areas, percent) as u32;
        let spare = areas.usable.min(areas.main).saturating_sub(6);
        if spare < reserved {
            return Err(room.too_small("six logs and the segments for cleaning"));
        }
        let overprovision =
            (f64::from(areas.usable - reserved) * percent / 100.0) as u32 + reserved;
        if overprovision >= areas.usable {
            return Err(MkfsError::Overprovision { percent: percent.to_string() });
        }
        Ok(Self { reserved, overprovision })
    }
}

/// Cleaning at this overprovision needs sections for what it moves, hot and cold, and one for each
/// log.
fn reserved(areas: &Areas, percent: f64) -> f64 {
    let segments_per_section = f64::from(areas.usable.div_ceil(areas.sections));
    (2.0 * (100.0 / percent + 1.0) + LOGS) * segments_per_section
}

/// The percentage that leaves the most segments to users; the first of several. The steps are those
/// of mkfs.f2fs, with the rounding that adding them up has.
fn best(areas: &Areas) -> f64 {
    let (first, last, step) =
        if areas.main < SMALL { (10.0, 95.0, 5.0) } else { (0.01, 10.0, 0.01) };
    let (mut best, mut most) = (first, 0.0);
    let mut percent = first;
    while percent <= last {
        let reserved = reserved(areas, percent);
        let left = f64::from(areas.usable) - reserved;
        let users = left - left * percent / 100.0;
        if users > most {
            (best, most) = (percent, users);
        }
        percent += step;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::MkfsOptions;

    fn of(blocks: u64, options: &MkfsOptions) -> (Areas, Room) {
        let room = Room::of(blocks, options).unwrap();
        (Areas::new(&room, options).unwrap(), room)
    }

    #[test]
    fn reserves_are_those_of_mkfs_f2fs() {
        let default = MkfsOptions::default();
        let known = [
            (256 << 20, 21, 35),
            (1 << 30, 39, 68),
            (4 << 30, 71, 132),
            (32 << 30, 188, 366),
            (1 << 40, 1007, 2051),
            (4 << 40, 2008, 4098),
        ];
        for (bytes, reserved, overprovision) in known {
            let blocks = bytes / 4096_u64;
            let (areas, room) = of(blocks, &default);
            let found = Reserve::new(&areas, None, &room).unwrap();
            assert_eq!(found, Reserve { reserved, overprovision }, "{bytes}");
        }
    }

    #[test]
    fn what_leaves_nothing_is_refused() {
        let blocks = (256 << 20) / 4096;
        let (areas, room) = of(blocks, &MkfsOptions::default());
        for percent in [0.0, -1.0, 100.0, f64::NAN, f64::INFINITY] {
            let error = Reserve::new(&areas, Some(percent), &room).unwrap_err();
            assert!(matches!(error, MkfsError::Overprovision { .. }), "{percent}: {error}");
        }
        let error = Reserve::new(&areas, Some(0.1), &room).unwrap_err();
        assert!(
            matches!(error, MkfsError::TooSmall { .. }),
            "cleaning at 0.1 % needs 2014 segments: {error}"
        );
        assert!(Reserve::new(&areas, Some(20.0), &room).is_ok());
    }
}
