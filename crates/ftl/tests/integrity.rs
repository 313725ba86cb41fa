//! Integrity against a reference model: random commands, faults of the medium and power cuts, also
//! during recovery. What was flushed reads back; what was not reads as old or new, never as
//! anything else.
//!
//! A failing seed is printed with what to type:
//! `DOVETAIL_SEED=7 cargo test -p dovetail-ftl --test all integrity::`. `DOVETAIL_CACHE=lanes` gives
//! all demand-paged maps that cache policy.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "a test tells what it has reached")]

use dovetail_block::{
    AREA_BLOCKS, AREAS, BatchId, BlockBytes, BlockDevice, BlockRange, Command, Content, Data,
    DeviceError, HeldRemaps, Hints, Inode, Isolation, Lba, Pattern, RemapLimits, RemapPair,
    RemapWhen, SectorRange, StreamId, free_blocks,
};
use dovetail_ftl::lines::LineShape;
use dovetail_ftl::stats::Cause;
use dovetail_ftl::{
    BufferOrder, Drive, DriveConfig, LogBlockConfig, LogScheme, MapCacheConfig, RemapConfig,
    RemapStore, SingleCache, StreamsBy, WhenFull, cache, mapping, victim,
};
use dovetail_nand::{
    Cells, FaultPlan, Geometry, NandConfig, PowerCut, Retry, SingleTiming, Suspend, Timing, Torn,
};
use dovetail_testkit::ReferenceDevice;
use dovetail_time::{Rng, SimSpan, SimTime};
use std::sync::Arc;

/// The normal run; `DOVETAIL_SEEDS` asks for another number.
const SEEDS: u64 = 300;
/// Seeds beyond those that have found a fault; they run each time.
const ONCE_FAILED: [u64; 3] = [859, 30_245, 50_711];
const CUTS_PER_SEED: u64 = 12;
const COMMANDS_PER_LIFE: u64 = 400;

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
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
enum Kind {
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
    fn is_thin(self) -> bool {
        matches!(self, Self::Thin | Self::ThinNonVolatile | Self::ThinSegmentedLog | Self::ThinLog)
    }

    fn remaps(self) -> bool {
        !matches!(self, Self::Plain | Self::Thin)
    }

    fn has_memory(self) -> bool {
        self.remaps() && !matches!(self, Self::Log | Self::ThinLog)
    }
}

/// The addresses that a run uses: windows anywhere, as if they stood in a row.
#[derive(Clone, Debug)]
struct Space {
    starts: Vec<u64>,
    window: u64,
}

impl Space {
    /// All of a drive's; of a thin one half as many again as it has room for, and of these most at
    /// ends of areas.
    fn new(config: &DriveConfig, rng: &mut Rng) -> Self {
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

    fn blocks(&self) -> u64 {
        self.starts.len() as u64 * self.window
    }

    /// The address of the `index`th block.
    fn lba(&self, index: u64) -> Lba {
        Lba(self.starts[(index / self.window) as usize] + index % self.window)
    }

    /// A random run of up to nine blocks, half of the time among the first quarter.
    fn range(&self, rng: &mut Rng) -> BlockRange {
        let blocks = self.blocks();
        let hot = if rng.chance(0.5) { blocks / 4 + 1 } else { blocks };
        let start = rng.below(hot);
        BlockRange::new(self.lba(start), 1 + rng.below(9.min(self.window - start % self.window)))
    }

    /// A range that no drive could walk: an area, or from anywhere to anywhere.
    fn huge(&self, rng: &mut Rng) -> SectorRange {
        if rng.chance(0.5) {
            return BlockRange::new(Lba(rng.below(AREAS) * AREA_BLOCKS), AREA_BLOCKS).into();
        }
        let (a, b) = (rng.below(self.blocks()), rng.below(self.blocks()));
        let (start, end) = (self.lba(a.min(b)).0, self.lba(a.max(b)).0);
        SectorRange::new(8 * start + rng.below(8), 8 * (end - start))
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
enum Flash {
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

/// The faults of one life of the drive, which ends with a power cut.
fn faults(rng: &mut Rng, from: u64, within: u64, failing: Option<Kind>) -> FaultPlan {
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

/// Content that the drive may hold: with all commands so far, and without the last remaps, as far
/// as these may not be durable yet.
struct Expected {
    /// Since when each is durable, in order; the last one is what reads return.
    states: Vec<(SimTime, ReferenceDevice)>,
}

impl Expected {
    fn new(model: ReferenceDevice) -> Self {
        Self { states: vec![(SimTime::ZERO, model)] }
    }

    fn apply(&mut self, change: impl Fn(&mut ReferenceDevice)) {
        self.states.iter_mut().for_each(|(_, model)| change(model));
    }

    fn newest(&self) -> &ReferenceDevice {
        &self.states[self.states.len() - 1].1
    }

    /// A remap that is not durable yet.
    fn remap(&mut self, pairs: &[RemapPair]) {
        let mut after = self.newest().clone();
        after.remap(pairs);
        self.states.push((SimTime::from_ns(u64::MAX), after));
    }

    /// The last remap is durable at `done`.
    fn remapped(&mut self, done: SimTime) {
        self.states.last_mut().unwrap().0 = done;
    }

    /// At `now`, the states before a durable one are gone.
    fn pass(&mut self, now: SimTime) {
        let first = self.states.iter().rposition(|(durable, _)| *durable <= now).unwrap_or(0);
        self.states.drain(..first);
    }

    /// The newest state that allows all that was found.
    fn explain(&self, found: &[(Lba, Content)]) -> Result<&ReferenceDevice, String> {
        let mut reasons = Vec::new();
        for (_, model) in self.states.iter().rev() {
            let mut mismatches =
                found.iter().filter_map(|(lba, content)| model.check_allowed(*lba, content).err());
            match mismatches.next() {
                None => return Ok(model),
                Some(mismatch) => reasons.push(mismatch.to_string()),
            }
        }
        Err(reasons.join("; or "))
    }

    /// Takes what was found after a power cut as durable. Returns how many states there could have
    /// been.
    fn settle(&mut self, found: &[(Lba, Content)]) -> usize {
        let states = self.states.len();
        let mut model = self
            .explain(found)
            .unwrap_or_else(|reasons| panic!("after the cut: {reasons}"))
            .clone();
        for (lba, content) in found {
            model.settle(*lba, content).unwrap();
        }
        *self = Self::new(model);
        states
    }
}

struct Life {
    drive: Drive,
    space: Space,
    expected: Expected,
    held: HeldRemaps,
    seen: Seen,
    now: SimTime,
    version: u64,
    /// Is true if the medium may fail.
    failing: bool,
    /// Time between the reads of `read_all`.
    pause: SimSpan,
    /// Is true if the power is cut at a time instead of at an operation.
    in_time: bool,
    /// Time at which the last remap is acknowledged.
    last_remap: SimTime,
}

impl Life {
    fn content(&mut self, rng: &mut Rng) -> Content {
        self.version += 1;
        if rng.chance(0.1) {
            let mut bytes: BlockBytes = [0; 4096];
            bytes[..8].copy_from_slice(&self.version.to_le_bytes());
            return Content::Bytes(Arc::new(bytes));
        }
        Content::Pattern(Pattern::new(self.version))
    }

    fn remaps(&self) -> bool {
        self.drive.info().capabilities.remap.is_some()
    }

    /// One random command, on the drive and on the model.
    fn step(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let longest_us = if rng.chance(0.02) { 100_000 } else { 300 };
        self.now += SimSpan::from_us(rng.below(longest_us));
        self.expected.pass(self.now);
        if self.remaps() && rng.chance(0.15) {
            self.remap(rng)?;
            if rng.chance(0.6) {
                self.now = self.now.max(self.last_remap);
                self.expected.pass(self.now);
            }
            return Ok(());
        }
        match rng.below(100) {
            0..55 => self.write(rng),
            55..80 => self.read(rng),
            80..92 => self.discard(rng),
            _ => self.flush(rng),
        }
    }

    fn write(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let range = self.space.range(rng);
        let contents: Vec<_> = range.iter().map(|_| self.content(rng)).collect();
        let fua = rng.chance(0.1);
        let room = free_blocks(&mut self.drive).unwrap();
        let hints = Hints {
            stream: StreamId(rng.below(3) as u8),
            inode: Inode(rng.below(5) as u32),
            ..Hints::default()
        };
        let command = Command::Write { range, data: Data::Blocks(&contents), hints, fua };
        let done = self.drive.submit(self.now, command);
        if done == Err(DeviceError::NoRoom) {
            let free = room.unwrap_or(u64::MAX);
            assert!(free < range.blocks, "{free} blocks free, but none for {} more", range.blocks);
            self.seen.refused += 1;
            return Ok(());
        }
        for (lba, content) in range.iter().zip(&contents) {
            self.expected.apply(|model| model.write(lba, content.clone(), false));
        }
        let done = done?.done;
        let config = self.drive.config();
        if fua || config.buffer_pages == 0 || config.power_loss_protection {
            self.now = self.now.max(done);
            for (lba, content) in range.iter().zip(contents) {
                self.expected.apply(|model| model.write(lba, content.clone(), true));
            }
        }
        Ok(())
    }

    /// A random remap: of a run of sources as a log-structured file system has them, or of any.
    fn pairs(&self, rng: &mut Rng, limits: RemapLimits) -> Vec<RemapPair> {
        let blocks = self.space.blocks();
        let most = u64::from(limits.pairs_per_command).min(blocks / 2);
        let count = if rng.chance(0.1) { most } else { 1 + rng.below(most.min(10)) };
        let (first, in_a_row, onto_a_row) = (rng.below(blocks), rng.chance(0.5), rng.chance(0.2));
        let mut seen = std::collections::BTreeSet::new();
        let mut fresh = |index: u64| Some(self.space.lba(index)).filter(|lba| seen.insert(*lba));
        let pair = |i: u64| {
            let from = if in_a_row { (first + i) % blocks } else { rng.below(blocks) };
            let to = if onto_a_row { (first + blocks / 2 + i) % blocks } else { rng.below(blocks) };
            Some(RemapPair { from: fresh(from)?, to: fresh(to)? })
        };
        (0..count).filter_map(pair).collect()
    }

    fn remap(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let Some(limits) = self.drive.info().capabilities.remap else { return Ok(()) };
        let pairs = self.pairs(rng, limits);
        let batch = BatchId(rng.below(2) as u32);
        let when = match rng.below(4) {
            0 => RemapWhen::Held(batch),
            1 => RemapWhen::WithHeld(batch),
            _ => RemapWhen::Now,
        };
        let command = Command::Remap { pairs: &pairs, when };
        if let Err(expected) = self.held.admit(&self.drive.info(), &pairs, when) {
            let refused = self.drive.submit(self.now, command).map(|_| ());
            // A batch into which no further pair fits is executed as it is.
            let all = RemapWhen::WithHeld(batch);
            return match refused {
                Err(error) if error == expected => self.execute(&[], all),
                other => other,
            };
        }
        self.execute(&pairs, when)
    }

    fn execute(&mut self, pairs: &[RemapPair], when: RemapWhen) -> Result<(), DeviceError> {
        let all = self.held.take(pairs, when);
        self.seen.longest_remap = self.seen.longest_remap.max(all.len());
        if !all.is_empty() {
            self.expected.remap(&all);
        }
        let done = self.drive.submit(self.now, Command::Remap { pairs, when })?.done;
        if !all.is_empty() {
            // In the order of issue what has returned has ended.
            self.expected.remapped(if self.in_time { done } else { SimTime::ZERO });
        }
        self.last_remap = done;
        Ok(())
    }

    /// Remaps, and commands right behind them that do not wait: the power is cut before all is
    /// acknowledged.
    fn last_moments(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        for _ in 0..1 + rng.below(3) {
            self.remap(rng)?;
        }
        for _ in 0..rng.below(24) {
            match rng.below(20) {
                0..16 => self.write(rng)?,
                16..18 => self.discard(rng)?,
                18 => self.remap(rng)?,
                _ => self.flush(rng)?,
            }
        }
        Ok(())
    }

    fn read(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let range = self.space.range(rng);
        let mut into = vec![Content::Empty; range.blocks as usize];
        match self.drive.submit(self.now, Command::Read { range, into: Some(&mut into) }) {
            // The medium lost it: told, not hidden.
            Err(DeviceError::Unreadable(_)) if self.failing => return Ok(()),
            other => other?,
        };
        self.expected
            .newest()
            .check_read(range, &into)
            .unwrap_or_else(|mismatch| panic!("{mismatch}"));
        Ok(())
    }

    fn discard(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        let mut ranges: Vec<_> = (0..1 + rng.below(3)).map(|_| self.ragged(rng)).collect();
        if self.drive.config().addresses.is_some() && rng.chance(0.1) {
            ranges.push(self.space.huge(rng));
        }
        ranges.iter().for_each(|range| self.expected.apply(|model| model.discard(*range)));
        self.drive.submit(self.now, Command::Discard { ranges: &ranges }).map(|_| ())
    }

    /// A range that need not begin or end at a block.
    fn ragged(&self, rng: &mut Rng) -> SectorRange {
        let range = SectorRange::from(self.space.range(rng));
        let cut = if rng.chance(0.5) { rng.below(8) } else { 0 };
        SectorRange::new(range.start + cut, range.sectors - cut)
    }

    /// A drive with reclaim units now and then gets new ones instead.
    fn flush(&mut self, rng: &mut Rng) -> Result<(), DeviceError> {
        if self.drive.config().fdp.is_some() && rng.chance(0.3) {
            let handle = StreamId(rng.below(self.drive.config().streams.into()) as u8);
            self.drive.submit(self.now, Command::UpdateHandles(&[handle]))?;
            self.seen.updated += 1;
            return Ok(());
        }
        // The host waits for what it must rely on.
        self.now = self.now.max(self.drive.submit(self.now, Command::Flush)?.done);
        self.expected.pass(self.now);
        self.expected.apply(ReferenceDevice::flush);
        Ok(())
    }

    /// Recovers, with further power cuts on the way, and checks every block.
    fn recover(mut self, rng: &mut Rng) -> Self {
        // A cut in the order of issue, or one in the order of time: while the drive is still at
        // work.
        let mut cut = if self.in_time {
            let until_remapped = self.last_remap.since(self.now).as_ns();
            self.now += match until_remapped {
                0 => SimSpan::from_us(rng.below(30_000)),
                span => SimSpan::from_ns(rng.below(span)),
            };
            self.expected.pass(self.now);
            self.drive.into_unrecovered_at(self.now)
        } else {
            self.drive.into_unrecovered()
        };
        let again = rng.below(3);
        for _ in 0..again {
            let plan = faults(rng, cut.flash_operations(), 600, None);
            cut.set_faults(plan);
            cut = match cut.recover() {
                Ok((drive, _)) => drive.into_unrecovered(),
                Err(cut_again) => cut_again.0,
            };
        }
        cut.set_faults(FaultPlan::default());
        let (drive, report) =
            cut.recover().unwrap_or_else(|e| panic!("recovery failed without a fault: {}", e.1));
        let mut life = Self {
            drive,
            space: self.space,
            expected: self.expected,
            held: HeldRemaps::default(),
            seen: self.seen,
            now: SimTime::ZERO,
            version: self.version,
            failing: self.failing,
            pause: SimSpan::ZERO,
            in_time: self.in_time,
            last_remap: SimTime::ZERO,
        };
        life.seen.remapped_pages += report.remapped_pages;
        life.settle();
        life
    }

    /// Reads every block after a power cut: what is found is durable from now on.
    fn settle(&mut self) {
        let found = self.read_all();
        let states = self.expected.settle(&found);
        self.seen.in_remaps += u64::from(states > 1);
    }

    fn read_all(&mut self) -> Vec<(Lba, Content)> {
        self.drive.check().unwrap();
        let space = self.space.clone();
        let mut lost = 0;
        let read = |lba| {
            let mut found = [Content::Empty];
            let range = BlockRange::new(lba, 1);
            self.now += self.pause;
            match self.drive.submit(self.now, Command::Read { range, into: Some(&mut found) }) {
                Err(DeviceError::Unreadable(_)) if self.failing => {
                    lost += 1;
                    None
                }
                other => {
                    other.map(|_| (lba, found[0].clone())).map_or_else(|e| panic!("{e}"), Some)
                }
            }
        };
        let all: Vec<_> =
            (0..space.blocks()).map(|index| space.lba(index)).filter_map(read).collect();
        let found = all.iter().filter(|(_, content)| *content != Content::Empty).count() as u64;
        assert_eq!(
            self.drive.live_blocks(),
            found + lost,
            "a page leaks, or what it holds cannot be read"
        );
        all
    }

    /// A drive that takes no more writes still gives back what it has.
    fn check_read_only(&mut self) {
        self.drive.set_faults(FaultPlan::default());
        // Pauses between the reads, in which the drive tries to clean.
        self.pause = SimSpan::from_ms(20);
        let found = self.read_all();
        self.expected.explain(&found).unwrap_or_else(|reasons| panic!("worn out: {reasons}"));
    }
}

/// Each line as state, kept pages and erases, for the message of a failure.
fn states(drive: &Drive) -> String {
    let lines = drive.lines();
    lines
        .ids()
        .map(|l| format!("{:?}:{}/{} ", lines.state(l), lines.kept(l), lines.erases(l)))
        .collect()
}

/// Events that a seed has seen.
#[derive(Default)]
struct Seen {
    cuts: u64,
    worn_out: u64,
    gc_runs: u64,
    retired: u64,
    journal_pages: u64,
    translation_pages: u64,
    remaps: u64,
    longest_remap: usize,
    /// Cuts before a remap was acknowledged.
    in_remaps: u64,
    /// Pages found with another owner than their out-of-band area names.
    remapped_pages: u64,
    log_pages: u64,
    /// Writes that a thin drive had no room for.
    refused: u64,
    /// Handles that went on with an empty reclaim unit.
    updated: u64,
    /// Lines folded out of SLC caches.
    folded: u64,
    /// Pages of word lines that were used up empty.
    skipped: u64,
    /// Lines rewritten after many reads.
    refreshed: u64,
    /// Switch, partial and full merges.
    merges: [u64; 3],
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.cuts += other.cuts;
        self.worn_out += other.worn_out;
        self.gc_runs += other.gc_runs;
        self.retired += other.retired;
        self.journal_pages += other.journal_pages;
        self.translation_pages += other.translation_pages;
        self.remaps += other.remaps;
        self.longest_remap = self.longest_remap.max(other.longest_remap);
        self.in_remaps += other.in_remaps;
        self.remapped_pages += other.remapped_pages;
        self.log_pages += other.log_pages;
        self.refused += other.refused;
        self.updated += other.updated;
        self.folded += other.folded;
        self.skipped += other.skipped;
        self.refreshed += other.refreshed;
        self.merges.iter_mut().zip(other.merges).for_each(|(sum, more)| *sum += more);
    }

    fn count(&mut self, drive: &Drive) {
        let counters = drive.counters();
        self.gc_runs += counters.gc_runs;
        self.folded += counters.fold_runs;
        self.skipped += counters.skipped_pages;
        self.refreshed += counters.refresh_runs;
        let merges = [counters.switch_merges, counters.partial_merges, counters.full_merges];
        self.merges.iter_mut().zip(merges).for_each(|(sum, more)| *sum += more);
        self.retired += counters.program_failures + counters.erase_failures;
        self.journal_pages += counters.programs[Cause::Journal as usize];
        self.translation_pages += counters.programs[Cause::Translation as usize];
        self.log_pages += counters.programs[Cause::Remap as usize];
        self.remaps += counters.remaps;
    }
}

/// Plans how this life ends; returns how many commands it has at most.
fn plan_end(life: &mut Life, rng: &mut Rng, kind: Kind) -> u64 {
    let plan = faults(
        rng,
        life.drive.flash_operations(),
        3 * COMMANDS_PER_LIFE,
        life.failing.then_some(kind),
    );
    let at_entry = kind.has_memory() && !life.in_time && rng.chance(0.5);
    let power_cut = plan.power_cut.filter(|_| !life.in_time && !at_entry);
    life.drive.set_faults(FaultPlan { power_cut, ..plan });
    if at_entry {
        life.drive.cut_power_at_entry(rng.below(COMMANDS_PER_LIFE), rng.chance(0.5));
    }
    if life.in_time { 1 + rng.below(COMMANDS_PER_LIFE) } else { COMMANDS_PER_LIFE }
}

fn run(seed: u64, kind: Kind, flash: Flash) -> Seen {
    let is_checked = !matches!(flash, Flash::Plain | Flash::Cells);
    let mut rng = Rng::new(seed);
    let plain = config(&mut rng);
    let config = if kind.is_thin() { thin(plain, &mut rng) } else { plain };
    let config = if kind.remaps() { remapping(config, &mut rng, kind) } else { config };
    let config = match flash {
        Flash::Plain => config,
        Flash::Paged => paged(&mut rng, config),
        Flash::Cells => celled(&mut rng, config),
        Flash::PagedOnCells => {
            let config = celled(&mut rng, config);
            // each translation page takes a page of the chip, or a word line
            let user_blocks = config.user_blocks / 2;
            paged(&mut rng, DriveConfig { user_blocks, ..config })
        }
        Flash::LogBlocks => log_mapped(&mut rng, config),
        Flash::LogBlocksOnCells => {
            let config = celled(&mut rng, config);
            log_mapped(&mut rng, config)
        }
    };
    let space = Space::new(&config, &mut rng);
    let drive = match Drive::new(config) {
        Ok(drive) => drive,
        Err(_) => return Seen::default(), // too small for its frontiers: another seed has a larger one
    };
    let mut life = Life {
        drive,
        space,
        expected: Expected::new(ReferenceDevice::new()),
        held: HeldRemaps::default(),
        seen: Seen::default(),
        now: SimTime::ZERO,
        version: 0,
        // Half of the drives have flash that fails now and then; only these may run out of good
        // blocks.
        failing: seed % 2 == 1,
        pause: SimSpan::ZERO,
        // Half of the cuts come in the order of time.
        in_time: seed / 2 % 2 == 1,
        last_remap: SimTime::ZERO,
    };
    if life.in_time {
        life.drive.remember_operations();
    }
    while life.seen.cuts < CUTS_PER_SEED {
        let commands = plan_end(&mut life, &mut rng, kind);
        let in_a_hurry = life.in_time && kind.remaps() && rng.chance(0.8);
        for command in 0..=commands {
            let done = match command < commands {
                true => life.step(&mut rng),
                false if in_a_hurry => life.last_moments(&mut rng),
                false => Ok(()),
            };
            match done {
                Ok(()) if is_checked && command % 16 == 0 => life.drive.check().unwrap(),
                Ok(()) => {}
                Err(DeviceError::PowerLost) => break,
                Err(DeviceError::ReadOnly(_)) if life.failing => {
                    life.check_read_only();
                    life = life.recover(&mut rng);
                    life.seen.worn_out += 1;
                    return life.seen;
                }
                Err(error) => {
                    panic!("{error}\n{:?}\nlines: {}", life.drive.config(), states(&life.drive))
                }
            }
        }
        life.seen.count(&life.drive);
        life = life.recover(&mut rng);
        life.seen.cuts += 1;
    }
    life.seen
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

/// Runs all seeds; one alone if it is asked for.
fn run_all(kind: Kind, flash: Flash, test: &str) -> Option<Seen> {
    if let Some(seed) = number("DOVETAIL_SEED") {
        run(seed, kind, flash);
        return None;
    }
    let (mut total, mut seeds) = (Seen::default(), 0);
    for seed in (0..number("DOVETAIL_SEEDS").unwrap_or(SEEDS)).chain(ONCE_FAILED) {
        let seen = std::panic::catch_unwind(|| run(seed, kind, flash)).unwrap_or_else(|_| {
            panic!(
                "seed {seed} fails: DOVETAIL_SEED={seed} cargo test -p dovetail-ftl --test all integrity::{test}"
            )
        });
        seeds += u64::from(seen.cuts > 0);
        total.add(&seen);
    }
    let Seen { cuts, worn_out, gc_runs, retired, journal_pages, .. } = total;
    println!(
        "{kind:?}: {cuts} power cuts over {seeds} seeds; {gc_runs} lines cleaned, {retired} blocks retired,"
    );
    println!("{journal_pages} journal pages, {worn_out} drives worn out");
    assert!(cuts >= 2000 && seeds >= 200, "{cuts} cuts over {seeds} seeds");
    let reached = gc_runs + total.merges[2] > 1000 && retired > 20;
    assert!(reached, "the workload does not reach what it should");
    Some(total)
}

#[test]
fn nothing_flushed_is_lost_and_nothing_else_appears() {
    let Some(seen) = run_all(Kind::Plain, Flash::Plain, "nothing_flushed") else { return };
    assert!(seen.journal_pages > 1000, "{} journal pages", seen.journal_pages);
}

#[test]
fn drives_on_cells_of_several_bits_lose_nothing() {
    let test = "drives_on_cells_of_several_bits_lose_nothing";
    let Some(seen) = run_all(Kind::Plain, Flash::Cells, test) else { return };
    let Seen { folded, skipped, refreshed, .. } = seen;
    println!("{folded} lines folded, {skipped} pages skipped, {refreshed} lines refreshed");
    assert!(
        folded > 500 && skipped > 5000 && refreshed > 100,
        "the cache and word lines are not reached"
    );
}

fn log_blocks_hold(flash: Flash, test: &str) {
    let Some(seen) = run_all(Kind::Plain, flash, test) else { return };
    println!("switch, partial and full merges: {:?}", seen.merges);
    let [switch, partial, full] = seen.merges;
    assert!(switch > 10 && partial > 100 && full > 10_000, "{:?}", seen.merges);
}

#[test]
fn log_block_maps_lose_nothing() {
    log_blocks_hold(Flash::LogBlocks, "log_block_maps_lose_nothing");
}

#[test]
fn log_block_maps_on_cells_of_several_bits_lose_nothing() {
    let test = "log_block_maps_on_cells_of_several_bits_lose_nothing";
    log_blocks_hold(Flash::LogBlocksOnCells, test);
}

#[test]
fn thin_drives_on_cells_of_several_bits_lose_nothing() {
    run_all(Kind::Thin, Flash::Cells, "thin_drives_on_cells_of_several_bits_lose_nothing");
}

#[test]
fn paged_maps_on_cells_of_several_bits_hold() {
    run_all(Kind::Plain, Flash::PagedOnCells, "paged_maps_on_cells_of_several_bits_hold");
}

#[test]
fn remaps_on_cells_of_several_bits_hold() {
    run_all(Kind::Log, Flash::Cells, "remaps_on_cells_of_several_bits_hold");
}

fn remaps_hold(kind: Kind, test: &str) -> Option<Seen> {
    let seen = run_all(kind, Flash::Plain, test)?;
    let Seen { remaps, longest_remap, in_remaps, remapped_pages, log_pages, .. } = seen;
    println!(
        "{remaps} remaps, the longest of {longest_remap} pairs; {in_remaps} cuts before one was acknowledged,"
    );
    println!("{remapped_pages} remapped pages found, {log_pages} pages of the log");
    let reached =
        remaps > 10_000 && longest_remap > 338 && in_remaps > 100 && remapped_pages > 10_000;
    assert!(reached, "the workload does not reach what it should");
    Some(seen)
}

#[test]
fn remaps_in_non_volatile_memory_happen_wholly_or_not_at_all() {
    let Some(seen) = remaps_hold(Kind::NonVolatile, "non_volatile") else { return };
    assert_eq!(seen.log_pages, 0);
}

#[test]
fn remaps_in_a_segmented_log_happen_wholly_or_not_at_all() {
    let Some(seen) = remaps_hold(Kind::SegmentedLog, "in_a_segmented_log") else { return };
    assert!(seen.log_pages > 200, "{} pages of tables", seen.log_pages);
}

#[test]
fn remaps_in_the_log_happen_wholly_or_not_at_all() {
    let Some(seen) = remaps_hold(Kind::Log, "in_the_log") else { return };
    assert!(seen.updated > 100, "{} handles were given new reclaim units", seen.updated);
    assert!(seen.log_pages > 10_000, "{} pages of the log", seen.log_pages);
}

#[test]
fn thin_drives_lose_nothing_bring_nothing_back_and_leak_nothing() {
    let Some(seen) = run_all(Kind::Thin, Flash::Plain, "thin_drives") else { return };
    assert!(seen.refused > 1000, "{} writes without room", seen.refused);
    assert!(seen.journal_pages > 1000, "{} journal pages", seen.journal_pages);
}

#[test]
fn remaps_of_thin_drives_hold_in_non_volatile_memory() {
    let Some(seen) = remaps_hold(Kind::ThinNonVolatile, "thin_drives_hold_in_non_volatile") else {
        return;
    };
    assert!(seen.refused > 100, "{} writes without room", seen.refused);
}

#[test]
fn remaps_of_thin_drives_hold_in_a_segmented_log() {
    let kind = Kind::ThinSegmentedLog;
    let Some(seen) = remaps_hold(kind, "thin_drives_hold_in_a_segmented_log") else { return };
    assert!(seen.refused > 100, "{} writes without room", seen.refused);
    assert!(seen.log_pages > 100, "{} pages of tables", seen.log_pages);
}

#[test]
fn remaps_of_thin_drives_hold_in_the_log() {
    let Some(seen) = remaps_hold(Kind::ThinLog, "thin_drives_hold_in_the_log") else { return };
    assert!(seen.refused > 100 && seen.log_pages > 10_000, "{} writes without room", seen.refused);
}

/// No change of a demand-paged map is lost, whatever it is paged by and over which map, and
/// whenever the power goes.
fn paged_maps_hold(kind: Kind, test: &str) {
    let Some(seen) = run_all(kind, Flash::Paged, test) else { return };
    println!("{} translation pages written", seen.translation_pages);
    assert!(seen.translation_pages > 100_000, "{} translation pages", seen.translation_pages);
}

#[test]
fn a_paged_map_is_what_it_was() {
    paged_maps_hold(Kind::Plain, "a_paged_map_is_what_it_was");
}

#[test]
fn a_paged_map_is_what_it_was_with_remaps_in_non_volatile_memory() {
    paged_maps_hold(Kind::NonVolatile, "a_paged_map_is_what_it_was_with_remaps_in_non");
}

#[test]
fn a_paged_map_is_what_it_was_with_remaps_in_a_segmented_log() {
    paged_maps_hold(Kind::SegmentedLog, "a_paged_map_is_what_it_was_with_remaps_in_a_segm");
}

#[test]
fn a_paged_map_is_what_it_was_with_remaps_in_the_log() {
    paged_maps_hold(Kind::Log, "a_paged_map_is_what_it_was_with_remaps_in_the_log");
}

#[test]
fn a_paged_map_of_a_thin_drive_is_what_it_was() {
    paged_maps_hold(Kind::Thin, "a_paged_map_of_a_thin_drive_is_what_it_was");
}

#[test]
fn a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_non_volatile_memory() {
    paged_maps_hold(
        Kind::ThinNonVolatile,
        "a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_non",
    );
}

#[test]
fn a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_the_log() {
    paged_maps_hold(
        Kind::ThinLog,
        "a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_the_log",
    );
}
