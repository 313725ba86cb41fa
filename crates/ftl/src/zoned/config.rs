//! The layout of a zoned drive: what its zones are made of, and what is left for the rest.

use std::collections::BTreeSet;

use dovetail_block::{BLOCK_SIZE, Lba, ZoneWindow, Zones};
use dovetail_nand::{BlockId, CellMode, Geometry, NandConfig};
use dovetail_time::SimSpan;

use super::records::{most_blocks, records_per_block};
use crate::config::{ConfigError, DriveConfig};

/// The zones that a drive is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneConfig {
    /// Blocks of 4 KiB from the start of one zone to that of the next.
    pub size: u64,
    /// Blocks of a zone that can be written, at most `size`.
    pub capacity: u64,
    /// Conventional blocks in front, which are page-mapped; 0 for none.
    pub conventional: u64,
    /// Dies that a zone lies on: a divisor of all.
    pub dies: u32,
    /// Zones that may be open at once, at most `max_active`; 0 for as many.
    pub max_open: u32,
    /// Zones that may be neither empty nor full at once, at least 1: each has a place for what a
    /// flush finds unfinished.
    pub max_active: u32,
    /// Blocks that one append takes; 0 for none.
    pub max_append: u64,
    /// The random write area of a zone, if it can have one.
    pub window: Option<ZoneWindow>,
    /// Blocks of each plane that take the place of those that go bad, or were torn by a power cut:
    /// at least 1.
    pub spare: u32,
    /// Set if finishing a zone programs the rest of it with nothing.
    pub finish_fills: bool,
    /// Times of commands on zones beside those of the flash.
    pub times: ZoneTimes,
}

/// Times that commands on zones take in the drive's firmware. Other commands go on meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneTimes {
    /// The reset of a zone that holds nothing, finished or not; that of an empty one takes none.
    pub reset: SimSpan,
    /// More for a zone that was written to its capacity, of one that was written in part as much
    /// less.
    pub reset_full: SimSpan,
}

impl ZoneTimes {
    /// The time of a reset of a zone with so many of its `capacity` blocks written.
    pub(super) fn reset_of(&self, written: u64, capacity: u64) -> SimSpan {
        let share = u128::from(self.reset_full.as_ns()) * u128::from(written);
        self.reset + SimSpan::from_ns((share / u128::from(capacity.max(1))) as u64)
    }
}

const NO_ROOM: &str = "the flash has no room for a zone beside conventional blocks, the drive's own and \
     spare ones; use smaller zones, fewer conventional blocks, or a larger drive";

/// Places of active zones beyond `max_active`, for zones that can no longer be written and are not
/// wholly on their flash (assumed).
const WORN_OUT_SLOTS: u32 = 4;

/// The layout that follows from a configuration.
#[derive(Clone, Debug)]
pub(super) struct ZoneLayout {
    pub(super) zones: Zones,
    /// The flash of the zones.
    pub(super) nand: NandConfig,
    /// The page-mapped part: conventional blocks, then the drive's own.
    pub(super) inner: DriveConfig,
    /// Dies of a zone, and planes of each.
    pub(super) dies: u32,
    planes: u32,
    /// Erase blocks of a zone on each plane, one after the other.
    pub(super) stripes: u32,
    pages_per_block: u32,
    pub(super) subpages: u32,
    /// Pages of a plane that are programmed in one go, and of those the parts of a chip's page.
    at_once: u32,
    parts: u32,
    /// Pages that a die cannot but program in one go.
    pub(super) unit: u32,
    /// Zones that may be active, and some that were.
    pub(super) slots: u32,
    pub(super) finish_fills: bool,
    pub(super) times: ZoneTimes,
}

/// The place of a page in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index among the erase blocks of the zone.
    pub(super) block: usize,
    /// Page of that block.
    pub(super) page: u32,
}

impl ZoneLayout {
    /// Works the layout out.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub(super) fn new(drive: &DriveConfig) -> Result<Self, ConfigError> {
        let Some(wanted) = &drive.zones else {
            return Err(ConfigError::Zones("this drive has none"));
        };
        let geometry = drive.nand.geometry;
        geometry.check()?;
        check(drive, wanted)?;
        let pages = |blocks: u64| blocks.div_ceil(u64::from(geometry.subpages_per_page()));
        let units = wanted.dies * geometry.planes_per_die;
        let stripe = u64::from(units) * u64::from(geometry.pages_per_block);
        let stripes = pages(wanted.capacity).div_ceil(stripe);
        if stripes.saturating_mul(u64::from(units)) > u64::from(most_blocks()) {
            return Err(ConfigError::Zones(
                "a zone has too many erase blocks for its record; use smaller zones or fewer dies",
            ));
        }
        let at_once = drive.nand.timing.pages_at_once(CellMode::Native);
        let one_shot = drive.nand.timing.cells.is_some_and(|cells| cells.one_shot);
        let mut layout = Self {
            zones: Zones::covering(Lba(wanted.conventional), 0, wanted.size, wanted.capacity),
            nand: drive.nand.clone(),
            inner: drive.clone(),
            dies: wanted.dies,
            planes: geometry.planes_per_die,
            stripes: stripes as u32,
            pages_per_block: geometry.pages_per_block,
            subpages: geometry.subpages_per_page(),
            at_once,
            parts: drive.nand.timing.pages_at_once(CellMode::Single),
            unit: at_once * if one_shot { geometry.planes_per_die } else { 1 },
            slots: wanted.max_active + WORN_OUT_SLOTS,
            finish_fills: wanted.finish_fills,
            times: wanted.times,
        };
        layout.zones.window = wanted.window;
        layout.zones.max_append = wanted.max_append;
        layout.zones.max_active = wanted.max_active;
        layout.zones.max_open = wanted.max_open;
        layout.divide(drive, wanted)?;
        Ok(layout)
    }

    /// Divides each plane's blocks: the first for the page-mapped part, the others for zones.
    fn divide(&mut self, drive: &DriveConfig, wanted: &ZoneConfig) -> Result<(), ConfigError> {
        let geometry = drive.nand.geometry;
        let on_flash = u64::from(geometry.pages()) * u64::from(self.subpages);
        let most =
            drive.user_blocks.min(on_flash).saturating_sub(wanted.conventional) / wanted.capacity;
        self.zones.count = u32::try_from(most).unwrap_or(u32::MAX);
        let (rows, inner) = self.page_mapped(drive, wanted.conventional)?;
        let units = geometry.units();
        let mut good = vec![geometry.blocks_per_plane - rows; units as usize];
        let bad: BTreeSet<_> = drive.nand.factory_bad.iter().collect();
        let in_zones = rows * units..geometry.blocks();
        for block in bad.into_iter().filter(|block| in_zones.contains(&block.0)) {
            good[(block.0 % units) as usize] -= 1;
        }
        let fewest = good.into_iter().min().unwrap_or_default();
        // the spare blocks take the place of bad ones, as far as they go
        let left = (geometry.blocks_per_plane - rows).saturating_sub(wanted.spare).min(fewest);
        let groups = geometry.dies() / wanted.dies;
        let count = (left / self.stripes).saturating_mul(groups);
        self.zones.count = self.zones.count.min(count);
        if self.zones.count == 0 {
            return Err(ConfigError::Zones(NO_ROOM));
        }
        self.slots = self.slots.min(self.zones.count);
        self.inner = inner;
        let mine = drive.nand.factory_bad.iter().filter(|block| block.0 >= rows * units);
        self.nand.geometry.blocks_per_plane = geometry.blocks_per_plane - rows;
        self.nand.factory_bad = mine.map(|block| BlockId(block.0 - rows * units)).collect();
        Ok(())
    }

    /// The page-mapped part, and the blocks of each plane that it needs: with a tenth more than it
    /// holds. It cleans when its share of the lines that the whole drive would keep free is left.
    fn page_mapped(
        &self,
        drive: &DriveConfig,
        conventional: u64,
    ) -> Result<(u32, DriveConfig), ConfigError> {
        let whole = drive.nand.geometry;
        let user_blocks = conventional + self.own_blocks();
        let row =
            u64::from(whole.units()) * u64::from(whole.pages_per_block) * u64::from(self.subpages);
        let first = (user_blocks + user_blocks / 10).div_ceil(row) as u32 + 1;
        let mut last = None;
        for rows in first..whole.blocks_per_plane {
            let geometry = Geometry { blocks_per_plane: rows, ..whole };
            let share = |lines: u32| {
                (u64::from(lines) * u64::from(rows) / u64::from(whole.blocks_per_plane)) as u32
            };
            let bad = drive.nand.factory_bad.iter().copied();
            let factory_bad = bad.filter(|block| block.0 < geometry.blocks()).collect();
            let inner = DriveConfig {
                user_blocks,
                nand: NandConfig { geometry, factory_bad, ..drive.nand.clone() },
                foreground_lines: share(drive.foreground_lines),
                background_lines: share(drive.background_lines),
                link_4k: SimSpan::ZERO,
                link_write_4k: None,
                command: SimSpan::ZERO,
                write_command: None,
                command_serial: SimSpan::ZERO,
                write_serial_4k: SimSpan::ZERO,
                flush: SimSpan::ZERO,
                fua: SimSpan::ZERO,
                zones: None,
                ..drive.clone()
            };
            match inner.checked() {
                Ok(inner) => return Ok((rows, inner)),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(ConfigError::Zones(NO_ROOM)))
    }

    /// Blocks of the page-mapped part that the drive keeps for itself.
    fn own_blocks(&self) -> u64 {
        let each = records_per_block(self.blocks_per_zone());
        let records = u64::from(self.zones.count).div_ceil(each);
        records + u64::from(self.slots) * self.slot_blocks()
    }

    /// Blocks of the place in which a zone keeps what is not on its own flash: one that says what
    /// there is, then the content.
    pub(super) fn slot_blocks(&self) -> u64 {
        1 + self.held_blocks()
    }

    /// Blocks beyond the programmed ones that a zone may hold: an unfinished unit and twice the
    /// random write area.
    pub(super) fn held_blocks(&self) -> u64 {
        self.unit_blocks() + self.zones.window.map_or(0, |window| 2 * window.blocks)
    }

    /// Blocks of 4 KiB that a die programs in one go.
    pub(super) fn unit_blocks(&self) -> u64 {
        u64::from(self.unit * self.subpages)
    }

    /// Erase blocks of a zone.
    pub(super) fn blocks_per_zone(&self) -> u32 {
        self.stripes * self.dies * self.planes
    }

    /// Pages of a zone's flash: those of its capacity, and what is left of the last stripe.
    pub(super) fn pages_per_zone(&self) -> u32 {
        self.blocks_per_zone() * self.pages_per_block
    }

    /// The unit of the flash on which erase block `index` of a zone lies.
    pub(super) fn unit_of(&self, zone: u32, index: usize) -> u32 {
        let dies = self.nand.geometry.dies();
        let group = zone % (dies / self.dies);
        let within = index as u32 % (self.dies * self.planes);
        let (die, plane) = (within % self.dies, within / self.dies);
        plane * dies + group * self.dies + die
    }

    /// The place of page `index` of a zone: one die after the other is given what it programs in
    /// one go on all its planes.
    pub(super) fn place(&self, index: u32) -> Place {
        let units = self.dies * self.planes;
        let (stripe, index) =
            (index / (units * self.pages_per_block), index % (units * self.pages_per_block));
        let (row, in_row) = (index / (units * self.at_once), index % (units * self.at_once));
        let each = self.planes * self.at_once;
        let (die, in_die) = (in_row / each, in_row % each);
        let (chip_page, part) = (in_die / self.parts, in_die % self.parts);
        let (plane, page) = (
            chip_page % self.planes,
            row * self.at_once + chip_page / self.planes * self.parts + part,
        );
        Place { block: (stripe * units + plane * self.dies + die) as usize, page }
    }
}

fn check(drive: &DriveConfig, wanted: &ZoneConfig) -> Result<(), ConfigError> {
    let dies = drive.nand.geometry.dies();
    let unit = u64::from(drive.pages_at_once() * drive.nand.geometry.subpages_per_page());
    let rules = [
        (wanted.capacity == 0, "a zone's capacity is at least 4 KiB"),
        (wanted.capacity > wanted.size, "a zone's capacity is at most its size"),
        (
            wanted.dies == 0 || !dies.is_multiple_of(wanted.dies),
            "the dies of a zone divide those of the drive",
        ),
        (
            wanted.spare == 0,
            "a block of each plane is in reserve at least: a power cut leaves pages that cannot be programmed",
        ),
        (
            wanted.max_active == 0,
            "max_active is at least 1: each active zone needs memory of its own",
        ),
        (wanted.max_open > wanted.max_active, "max_open is at most max_active"),
        (
            drive.request_serial != SimSpan::ZERO,
            "a zoned drive has no time for each request to its hardware; leave host.request_serial_us out",
        ),
        (drive.fdp.is_some(), "zones have no reclaim units; leave [fdp] or [zones] out"),
        (
            drive.remap.is_some() || drive.devirtualize.is_some() || drive.addresses.is_some(),
            "zones go neither with remap nor with device addresses nor with a large address space",
        ),
        (
            wanted.window.is_some_and(|window| {
                window.granularity == 0
                    || window.blocks == 0
                    || !window.blocks.is_multiple_of(window.granularity)
                    || window.most == 0
                    || window.blocks > wanted.capacity
            }),
            "a random write area is a multiple of its granularity, fits a zone, and at least one zone can have one",
        ),
        (
            wanted.window.is_some_and(|window| unit + 2 * window.blocks > most_held()),
            "a random write area and what a die programs in one go are at most 64 MiB together",
        ),
        (
            drive.buffer_pages > 0
                && u64::from(drive.buffer_pages)
                    < u64::from(drive.pages_at_once()) * u64::from(wanted.max_active),
            "the write buffer has room for what a die programs in one go, for each active zone",
        ),
    ];
    rules
        .iter()
        .find(|(broken, _)| *broken)
        .map_or(Ok(()), |(_, rule)| Err(ConfigError::Zones(rule)))
}

/// Blocks that the first block of a slot can tell of, a bit each.
const fn most_held() -> u64 {
    (BLOCK_SIZE - super::stash::HEADER_BYTES as u64) * 8
}
