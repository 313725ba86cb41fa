//! Start positions of the six logs on a new volume.

use super::MkfsOptions;
use super::geometry::Areas;
use crate::format::{Features, SegNo};

/// The first segments of hot, warm and cold data, then of hot, warm and cold nodes: each in a zone
/// of its own, cold data a quarter and warm data half way through the main area; on a zoned device
/// one after the other.
pub(super) fn first_segments(areas: &Areas, options: &MkfsOptions) -> [SegNo; 6] {
    let section = areas.segments_per_section;
    let zone = section * areas.sections_per_zone;
    let zones = areas.main / zone;
    if options.features.has(Features::BLKZONED) && !options.heap {
        return consecutive(zone).map(SegNo);
    }
    let segments = if options.heap {
        let last = (zones - 1) * zone + zone - section;
        let back = |n| last.saturating_sub(n * zone);
        [back(3), zone, 0, back(0), back(1), back(2)]
    } else {
        let hot_data = 3 * zone;
        let cold_data = ((zones / 4).saturating_sub(1) * zone).max(hot_data + zone);
        let warm_data = ((zones / 2).saturating_sub(1) * zone).max(cold_data + zone);
        [hot_data, warm_data, cold_data, 0, zone, 2 * zone]
    };
    let mut sorted = segments;
    sorted.sort_unstable();
    let distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
    if distinct && sorted[5] < areas.main { segments } else { consecutive(zone) }.map(SegNo)
}

/// Nodes first, then data, hot to cold.
fn consecutive(zone: u32) -> [u32; 6] {
    [3, 4, 5, 0, 1, 2].map(|n| n * zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(bytes: u64, options: &MkfsOptions) -> [u32; 6] {
        let room = super::super::room::Room::of(bytes / 4096, options).unwrap();
        let areas = Areas::new(&room, options).unwrap();
        first_segments(&areas, options).map(|segno| segno.0)
    }

    #[test]
    fn logs_begin_where_mkfs_f2fs_lets_them() {
        let default = MkfsOptions::default();
        assert_eq!(logs(256 << 20, &default), [3, 59, 29, 0, 1, 2]);
        assert_eq!(logs(128 << 20, &default), [3, 27, 13, 0, 1, 2]);
        let heap = MkfsOptions {
            segments_per_section: 4,
            sections_per_zone: 2,
            heap: true,
            large_nat: true,
            ..default
        };
        assert_eq!(logs(256 << 20, &heap), [84, 8, 0, 108, 100, 92]);
    }
}
