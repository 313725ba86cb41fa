//! The small drives that seeds draw, and the faults of their flash.

use dovetail_block::{AREA_BLOCKS, AREAS, Isolation, RemapLimits};
use dovetail_ftl::lines::LineShape;
use dovetail_ftl::{
    BufferOrder, DriveConfig, LogBlockConfig, LogScheme, MapCacheConfig, RemapConfig, RemapStore,
    SingleCache, StreamsBy, WhenFull, cache, mapping, victim,
};
use dovetail_nand::{
    Cells, FaultPlan, Geometry, NandConfig, PowerCut, Retry, SingleTiming, Suspend, Timing, Torn,
};
use dovetail_time::{Rng, SimSpan};

pub(super) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// A small drive of any kind.
pub(crate) fn config(rng: &mut Rng) -> DriveConfig {
    let shape = pick(rng, &[LineShape::Superblock, LineShape::Block]);
    let geometry = Geometry {
        channels: pick(rng, &[1, 2]),
        dies_per_channel: pick(rng, &[1, 2]),
        planes_per_die: pick(rng, &[1, 2]),
        blocks_per_plane: 24 + rng.below(16) as u32,
        pages_per_block: pick(rng, &[2, 4, 8]),
        page_bytes: pick(rng, &[4096, 8192, 16384]),
    };
    let share = 0.3 + 0.25 * rng.below(100) as f64 / 100.0;
    let plain = DriveConfig {
        pages_per_bitmap: Some(geometry.pages().div_ceil(pick(rng, &[1, 2, 6]))),
        scheme: &mapping::SCHEMES[rng.below(mapping::SCHEMES.len() as u64) as usize],
        policy: &victim::POLICIES[rng.below(victim::POLICIES.len() as u64) as usize],
        shape,
        streams: if shape == LineShape::Superblock { pick(rng, &[1, 2]) } else { 1 },
        gc_apart: rng.chance(0.5),
        buffer_pages: pick(rng, &[0, 1, 4, 32]),
        wear_spread: pick(rng, &[0, 3]),
        map_access: SimSpan::from_ns(50),
        command: SimSpan::from_us(5),
        seed: rng.next_u64(),
        ..DriveConfig::plain(geometry, (geometry.raw_bytes() as f64 / 4096.0 * share) as u64)
    };
    // by the seed's bits: another draw would give all seeds another meaning
    let least_garbage = if plain.seed.is_multiple_of(2) { 0 } else { geometry.pages_per_block / 2 };
    let command_serial = SimSpan::from_us(plain.seed / 2 % 3);
    let request_serial = SimSpan::from_us(plain.seed / 96 % 2 * 3);
    let gc_within_die = shape == LineShape::Block
        && geometry.planes_per_die == 1
        && (plain.seed / 384).is_multiple_of(2);
    let streams_by =
        if (plain.seed / 6).is_multiple_of(2) { StreamsBy::Hint } else { StreamsBy::Address };
    let buffer_order =
        if (plain.seed / 12).is_multiple_of(2) { BufferOrder::Age } else { BufferOrder::Address };
    let places = shape == LineShape::Superblock && streams_by == StreamsBy::Hint;
    let fdp = match plain.seed / 24 % 4 {
        0 if places => Some(Isolation::Initial),
        1 if places => Some(Isolation::Persistent),
        _ => None,
    };
    DriveConfig {
        least_garbage,
        command_serial,
        request_serial,
        gc_within_die,
        streams_by,
        buffer_order,
        fdp,
        ..plain
    }
}

/// Kind of the drives of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Drives of all kinds, without remapping.
    Plain,
    /// Pages of one block, and remaps in non-volatile memory.
    NonVolatile,
    /// Pages of one block, and remaps in a segmented log in non-volatile memory.
    SegmentedLog,
    /// Pages of one block, and remaps in a log on flash.
    Log,
    /// Far more addresses than room, without remapping.
    Thin,
    /// The same, with remaps in non-volatile memory.
    ThinNonVolatile,
    /// The same, with remaps in a segmented log in non-volatile memory.
    ThinSegmentedLog,
    /// The same, with remaps in a log on flash.
    ThinLog,
}

impl Kind {
    pub(super) fn is_thin(self) -> bool {
        matches!(self, Self::Thin | Self::ThinNonVolatile | Self::ThinSegmentedLog | Self::ThinLog)
    }

    pub(super) fn remaps(self) -> bool {
        !matches!(self, Self::Plain | Self::Thin)
    }

    pub(super) fn has_memory(self) -> bool {
        self.remaps() && !matches!(self, Self::Log | Self::ThinLog)
    }
}
/// A small drive with seven areas of addresses.
fn thin(plain: DriveConfig, rng: &mut Rng) -> DriveConfig {
    let sparse: Vec<_> = mapping::SCHEMES.iter().filter(|scheme| scheme.sparse).collect();
    DriveConfig {
        addresses: Some(AREAS * AREA_BLOCKS),
        scheme: pick(rng, &sparse),
        spare_is_room: !(plain.seed / 192).is_multiple_of(2),
        ..plain
    }
}

/// A small drive that remaps.
fn remapping(plain: DriveConfig, rng: &mut Rng, kind: Kind) -> DriveConfig {
    let geometry = Geometry { page_bytes: 4096, ..plain.nand.geometry };
    let shrunk: u64 = plain.nand.geometry.subpages_per_page().into();
    let access = SimSpan::from_ns(100);
    let store = match kind {
        Kind::Log | Kind::ThinLog => RemapStore::Log,
        // as many segments as it needs and no more
        Kind::SegmentedLog | Kind::ThinSegmentedLog => RemapStore::SegmentedLog {
            access,
            discard_records: pick(rng, &[1, 3, 20]),
            segments: 0,
            segment_bytes: pick(rng, &[32, 32, 64, 512]),
        },
        _ => RemapStore::NonVolatile { access, discard_records: pick(rng, &[1, 3, 20]) },
    };
    let limits = RemapLimits::of(pick(rng, &[1, 5, 64, 400]), pick(rng, &[0, 16, 800]));
    // short remaps need few segments: the log is often full
    let limits = match kind {
        Kind::SegmentedLog | Kind::ThinSegmentedLog => {
            RemapLimits::of(pick(rng, &[1, 1, 5, 400]), pick(rng, &[0, 0, 16]))
        }
        _ => limits,
    };
    DriveConfig {
        nand: NandConfig { geometry, ..plain.nand },
        user_blocks: plain.user_blocks / shrunk,
        pages_per_bitmap: Some(geometry.pages().div_ceil(pick(rng, &[1, 2, 6]))),
        remap: Some(RemapConfig { limits, store }),
        devirtualize: None,
        ..plain
    }
}

/// The drive with its map paged on demand, by any policy, with a cache of a few entries to some
/// pages' worth.
fn paged(rng: &mut Rng, plain: DriveConfig) -> DriveConfig {
    let drawn = &cache::POLICIES[rng.below(cache::POLICIES.len() as u64) as usize];
    let policy =
        std::env::var("DOVETAIL_CACHE").map_or(drawn, |name| cache::policy(&name).unwrap());
    let page_entries = pick(rng, &[4, 8, 32, 512]);
    let bytes = pick(rng, &[64, 200, 1000, 10_000]);
    // Translation pages, and what a discard that is taken back brings with it, need room on a small
    // drive.
    let user_blocks =
        if plain.addresses.is_some() { plain.user_blocks * 2 / 3 } else { plain.user_blocks };
    DriveConfig {
        map_cache: Some(MapCacheConfig { policy, bytes, page_entries }),
        user_blocks,
        spare_is_room: false,
        ..plain
    }
}

/// The flash of a run, and the map on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flash {
    /// Nothing.
    Plain,
    /// The map is paged on demand.
    Paged,
    /// Cells of several bits, an SLC cache, suspension, retries, capacitors: each or none.
    Cells,
    /// Both.
    PagedOnCells,
    /// A log-block map.
    LogBlocks,
    /// One on cells of several bits.
    LogBlocksOnCells,
}

/// The drive with a log-block map.
fn log_mapped(rng: &mut Rng, plain: DriveConfig) -> DriveConfig {
    let scheme = pick(rng, &LogScheme::ALL);
    DriveConfig {
        log_block: Some(LogBlockConfig { scheme, log_lines: pick(rng, &[2, 2, 3, 5]) }),
        shape: LineShape::Superblock,
        streams: 1,
        gc_apart: true,
        fdp: None,
        single_cache: None,
        ..plain
    }
}

/// The drive on cells of several bits, with what drives on such cells have.
fn celled(rng: &mut Rng, plain: DriveConfig) -> DriveConfig {
    let bits = pick(rng, &[2, 3, 4]);
    let one_shot = rng.chance(0.7);
    let us = |us: [u64; 4]| us.map(SimSpan::from_us);
    let program = if one_shot { us([1500; 4]) } else { us([300, 900, 2500, 4000]) };
    let parts = if plain.nand.geometry.page_bytes == 4096 { pick(rng, &[1, 2, 4]) } else { 1 };
    let cells = Cells { bits, one_shot, parts, read: us([40, 60, 80, 90]), program };
    let (read, program) = (SimSpan::from_us(30), SimSpan::from_us(150));
    let single =
        rng.chance(0.7).then_some(SingleTiming { read, program, erase: SimSpan::from_ms(2) });
    let pause = SimSpan::from_us(20);
    let suspend =
        rng.chance(0.5).then_some(Suspend { program: pause, erase: pause, most_times: 2 });
    let timing = Timing {
        cells: Some(cells),
        single,
        suspend,
        planes_read_apart: rng.chance(0.5),
        ..plain.nand.timing
    };
    let retry = rng.chance(0.3).then_some(Retry {
        step: SimSpan::from_us(50),
        steps_per_erase: 0.1,
        steps_per_read: 0.01,
        steps_per_day: 0.0,
        days_at_start: 0.0,
        most: 3,
    });
    let pages_per_block = bits * parts * pick(rng, &[2, 4]);
    let geometry = Geometry { pages_per_block, ..plain.nand.geometry };
    let at_once = parts * if one_shot { bits * geometry.planes_per_die } else { 1 };
    let single_cache = single.map(|_| SingleCache {
        static_lines: pick(rng, &[0, 1, 2]),
        dynamic_lines: pick(rng, &[0, 1, 20]),
        shrink_from: 0.3,
        shrink_to: pick(rng, &[0.3, 0.6, 0.9]),
        when_full: pick(rng, &[WhenFull::Direct, WhenFull::Fold]),
        fold_after: rng.chance(0.5).then_some(SimSpan::from_ms(1)),
    });
    let grown = f64::from(pages_per_block) / f64::from(plain.nand.geometry.pages_per_block);
    DriveConfig {
        nand: NandConfig { geometry, timing, retry, ..plain.nand },
        user_blocks: (plain.user_blocks as f64 * grown) as u64,
        pages_per_bitmap: Some(geometry.pages().div_ceil(pick(rng, &[1, 2, 6]))),
        shape: LineShape::Superblock,
        streams_by: StreamsBy::Hint,
        buffer_pages: plain.buffer_pages.max(2 * at_once * u32::from(plain.streams)),
        power_loss_protection: rng.chance(0.3),
        fdp: if single_cache.is_some() { None } else { plain.fdp },
        single_cache,
        cores: pick(rng, &[1, 3]),
        refresh_reads: retry.map(|_| 50),
        ..plain
    }
}

/// The drive of a run.
pub(super) fn drawn(rng: &mut Rng, kind: Kind, flash: Flash) -> DriveConfig {
    let plain = config(rng);
    let config = if kind.is_thin() { thin(plain, rng) } else { plain };
    let config = if kind.remaps() { remapping(config, rng, kind) } else { config };
    match flash {
        Flash::Plain => config,
        Flash::Paged => paged(rng, config),
        Flash::Cells => celled(rng, config),
        Flash::PagedOnCells => {
            let config = celled(rng, config);
            // each translation page takes a page of the chip, or a word line
            let user_blocks = config.user_blocks / 2;
            paged(rng, DriveConfig { user_blocks, ..config })
        }
        Flash::LogBlocks => log_mapped(rng, config),
        Flash::LogBlocksOnCells => {
            let config = celled(rng, config);
            log_mapped(rng, config)
        }
    }
}

/// The faults of one life of the drive, which ends with a power cut.
pub(super) fn faults(rng: &mut Rng, from: u64, within: u64, failing: Option<Kind>) -> FaultPlan {
    let torn = pick(rng, &[Torn::Untouched, Torn::Garbage, Torn::Finished]);
    let rate =
        |rng: &mut Rng, most: f64| if failing.is_some() && rng.chance(0.3) { most } else { 0.0 };
    // Drives that remap have more pages of their own to lose.
    let unreadable = if failing.is_some_and(Kind::remaps) { 0.03 } else { 0.003 };
    FaultPlan {
        seed: rng.next_u64(),
        read_rate: rate(rng, unreadable),
        program_rate: rate(rng, 0.0005),
        erase_rate: rate(rng, 0.002),
        power_cut: Some(PowerCut { at_operation: from + rng.below(within), torn }),
        ..FaultPlan::default()
    }
}
