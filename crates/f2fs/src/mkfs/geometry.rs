//! Places and sizes of a new volume's areas.

use super::room::Room;
use super::{MkfsError, MkfsOptions};
use crate::format::{BLOCKS_IN_SEGMENT, MAX_SEGMENTS, SIT_ENTRIES_IN_BLOCK, Variant};

/// Bytes of a checkpoint's head for the version bitmaps.
const BITMAP_ROOM: u64 = 4092 - 192;
/// Bytes of a bitmap for one segment of tables.
const BITMAP_OF_SEGMENT: u64 = BLOCKS as u64 / 8;
/// The smallest bitmap of the NAT, which a large SIT must leave room for.
const MIN_NAT_BITMAP: u64 = 64;
/// Of a large NAT: nodes in percent of the blocks.
const LARGE_NAT_PERCENT: u64 = 20;
/// The most payload of a large NAT that fsck.f2fs 1.15 opens, tried out: with more it finds no
/// checkpoint, also on what mkfs.f2fs made. It is reached at 1.5 TiB; from there on there is room
/// for 82 million nodes, less the larger the SIT (19 million at 16 TiB).
const MAX_LARGE_PAYLOAD: u64 = 5;
const BLOCKS: u32 = BLOCKS_IN_SEGMENT;
/// Segments of the checkpoint area.
const CHECKPOINT: u64 = 2;
/// Sections that the checker expects at least.
const MIN_SECTIONS: u64 = 9;
/// A zone for each log, and one more.
const MIN_ZONES: u64 = 7;

/// Sizes of the areas, in segments of 2 MiB unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    /// First block of the first area.
    pub(super) start: u32,
    /// All areas.
    pub(super) segments: u32,
    /// Both copies of the SIT.
    pub(super) sit: u32,
    /// Both copies of the NAT.
    pub(super) nat: u32,
    /// The summaries, with what fills up the zone.
    pub(super) ssa: u32,
    /// The main area.
    pub(super) main: u32,
    /// Its sections.
    pub(super) sections: u32,
    /// Segments in a section.
    pub(super) segments_per_section: u32,
    /// Sections in a zone.
    pub(super) sections_per_zone: u32,
    /// Segments of the main area that can be written, as mkfs.f2fs counts them; all of them but on a
    /// zoned device.
    pub(super) usable: u32,
    /// Blocks of a checkpoint pack that continue the bitmaps.
    pub(super) cp_payload: u32,
}

impl Areas {
    /// The areas in a room.
    pub(super) fn new(room: &Room, options: &MkfsOptions) -> Result<Self, MkfsError> {
        let &Room { blocks, start, section, zone, segments: whole, .. } = room;
        let too_small = |short| room.too_small(short);
        let segments = whole - whole % zone;
        if (start + segments * u64::from(BLOCKS)) > u64::from(u32::MAX) || segments > MAX_SEGMENTS {
            return Err(MkfsError::TooLarge { blocks });
        }
        let sit = tables(segments, SIT_ENTRIES_IN_BLOCK);
        let rest = segments.checked_sub(CHECKPOINT + 2 * sit).ok_or(too_small("the tables"))?;
        let (nat, cp_payload) = nat(rest, sit, options.large_nat);
        let rest = rest.checked_sub(2 * nat).ok_or(too_small("the tables"))?;
        let tables = CHECKPOINT + 2 * sit + 2 * nat;
        let ssa = (tables + (rest + 1).div_ceil(BLOCKS.into())).next_multiple_of(zone) - tables;
        let main = rest.checked_sub(ssa).ok_or(too_small("the tables"))?;
        let sections = main / section;
        if sections < MIN_SECTIONS || main / zone < MIN_ZONES {
            return Err(too_small("the main area, which needs 9 sections and 7 zones"));
        }
        let metadata = tables + ssa;
        room.check_metadata(start + metadata * u64::from(BLOCKS))?;
        let usable = room.usable.map_or(main, |usable| usable.saturating_sub(metadata));
        Ok(Self {
            segments_per_section: section as u32,
            sections_per_zone: (zone / section) as u32,
            usable: usable as u32,
            start: start as u32,
            segments: segments as u32,
            sit: 2 * sit as u32,
            nat: 2 * nat as u32,
            ssa: ssa as u32,
            main: main as u32,
            sections: sections as u32,
            cp_payload: cp_payload as u32,
        })
    }
}

/// Segments of a table with an entry for each of `count`, so many in a block.
fn tables(count: u64, entries_in_block: u32) -> u64 {
    count.div_ceil(entries_in_block.into()).div_ceil(BLOCKS.into())
}

/// Segments of a copy of the NAT, and blocks of a checkpoint's payload: `rest` segments hold nodes
/// at most, and the bitmaps of SIT and NAT must find room.
fn nat(rest: u64, sit: u64, large: bool) -> (u64, u64) {
    let nat = tables(rest * u64::from(BLOCKS), Variant::F2fs.nat_entries_in_block());
    let sit_bitmap = sit * BITMAP_OF_SEGMENT;
    if large {
        let most = (BITMAP_ROOM + MAX_LARGE_PAYLOAD * 4096 - sit_bitmap) / BITMAP_OF_SEGMENT;
        let nat = (nat * LARGE_NAT_PERCENT / 100).clamp(1, most);
        let beyond = (sit_bitmap + nat * BITMAP_OF_SEGMENT).saturating_sub(BITMAP_ROOM);
        return (nat, beyond.div_ceil(4096));
    }
    let (room, payload) = if sit_bitmap > BITMAP_ROOM - MIN_NAT_BITMAP {
        (BITMAP_ROOM, sit_bitmap.div_ceil(4096))
    } else {
        (BITMAP_ROOM - sit_bitmap, 0)
    };
    (nat.min(room / BITMAP_OF_SEGMENT), payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn areas(bytes: u64, options: &MkfsOptions) -> Areas {
        of(bytes / 4096, options).unwrap()
    }

    fn of(blocks: u64, options: &MkfsOptions) -> Result<Areas, MkfsError> {
        Areas::new(&Room::of(blocks, options)?, options)
    }

    #[test]
    fn areas_are_those_of_mkfs_f2fs() {
        let default = MkfsOptions::default();
        let main = |bytes| areas(bytes, &default).main;
        assert_eq!(main(256 << 20), 120);
        assert_eq!(main(1 << 30), 502);
        assert_eq!(main(4 << 30), 2029);
        assert_eq!(main(32 << 30), 16_275);
        assert_eq!(main(1 << 40), 523_141);
        let large = areas(4 << 40, &default);
        assert_eq!((large.main, large.cp_payload), (2_092_783, 2));
    }

    #[test]
    fn zones_move_the_start_and_the_main_area() {
        let zones =
            MkfsOptions { segments_per_section: 4, sections_per_zone: 2, ..MkfsOptions::default() };
        let found = areas(256 << 20, &MkfsOptions { large_nat: true, ..zones });
        assert_eq!((found.start, found.segments, found.main, found.sections), (4096, 120, 112, 28));
    }

    #[test]
    fn a_large_nat_leaves_at_most_five_payload_blocks() {
        let large = MkfsOptions { large_nat: true, ..MkfsOptions::default() };
        let shown =
            |gib: u64| (areas(gib << 30, &large).nat / 2, areas(gib << 30, &large).cp_payload);
        let found = [1, 1024, 1450, 1600, 5 << 10, (16 << 10) - 1].map(shown);
        assert_eq!(found, [(1, 0), (230, 3), (326, 5), (350, 5), (286, 5), (82, 5)]);
    }

    #[test]
    fn what_is_too_small_or_too_large_is_refused() {
        let default = MkfsOptions::default();
        for blocks in [0, 1, 512, 513, 4096, 8192] {
            let error = of(blocks, &default).unwrap_err();
            assert!(matches!(error, MkfsError::TooSmall { .. }), "{blocks}: {error}");
        }
        for blocks in [1 << 32, 1 << 40, u64::MAX] {
            assert_eq!(of(blocks, &default), Err(MkfsError::TooLarge { blocks }));
        }
        of((1 << 32) - 1, &default).unwrap();
    }
}
