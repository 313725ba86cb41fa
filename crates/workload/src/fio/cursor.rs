//! Position of a thread in one of its files, and the choice of the next one.

use super::distribution::{Distribution, draw_zone};
use super::lfsr::Lfsr;
use super::pattern::Direction;
use super::plan::Region;
use super::random_map::RandomMap;
use super::sampler::Sampler;
use super::settings::Settings;
use super::streams::Streams;

/// A thread's place in a file.
#[derive(Debug)]
pub(super) struct Cursor {
    pub region: Region,
    /// Behind the last call of each direction, and where it began.
    last_end: [u64; 3],
    last_start: [Option<u64>; 3],
    /// By direction; they share the first if their blocks have one size.
    maps: [Option<RandomMap>; 3],
    samplers: [Option<Sampler>; 3],
    /// By direction; they share the first if their blocks have one size.
    registers: [Option<Lfsr>; 3],
}

/// A part of a file to read, write or trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub offset: u64,
    pub len: u64,
    /// It began again at the front of the file or of its random map.
    pub wrapped: bool,
}

/// Facts of the thread that the choice of a place needs.
pub(super) struct Context<'a> {
    pub settings: &'a Settings,
    pub streams: &'a mut Streams,
    /// Is true if this call has an offset of its own, false if it follows the last one
    /// (`rw=randread:8`).
    pub new_offset: bool,
    /// A sequential job begins again at the end of the file.
    pub wraps: bool,
}

/// A place, before its length is known.
struct Place {
    /// From the start of the region.
    offset: u64,
    random: bool,
    /// Blocks that were hit already may be hit again.
    again: bool,
    wrapped: bool,
}

impl Cursor {
    pub(super) const fn new(region: Region) -> Self {
        Self {
            region,
            last_end: [region.start; 3],
            last_start: [None; 3],
            maps: [const { None }; 3],
            samplers: [const { None }; 3],
            registers: [const { None }; 3],
        }
    }

    /// As at the start of a pass.
    pub(super) fn reset(&mut self) {
        self.last_end = [self.region.start; 3];
        self.last_start = [None; 3];
        self.maps.iter_mut().flatten().for_each(RandomMap::reset);
        self.registers = [const { None }; 3]; // they may begin elsewhere in the next pass
    }

    /// Returns whether a job that trims and then writes is to write: its last trim has no write
    /// yet.
    pub(super) fn owes_write(&self) -> bool {
        self.last_start[Direction::Trim.index()] != self.last_start[Direction::Write.index()]
    }

    /// The next place; `None` if the file is done.
    pub(super) fn next(
        &mut self,
        direction: Direction,
        context: &mut Context<'_>,
    ) -> Option<Target> {
        let trimmed = direction == Direction::Write && context.settings.pattern.is_trim_write();
        let (place, len) = if trimmed && context.settings.pattern.random {
            self.after_trim()?
        } else {
            let place = self.place(direction, context)?;
            let len = self.length(direction, &place, context)?;
            (place, len)
        };
        let offset = self.region.start + place.offset;
        if place.offset.checked_add(len)? > self.region.len {
            return None;
        }
        let len = self.mark(direction, &place, len, context.settings);
        self.last_start[direction.index()] = Some(offset);
        self.last_end[direction.index()] = offset + len;
        Some(Target { offset, len, wrapped: place.wrapped })
    }

    /// The block that was trimmed last.
    fn after_trim(&self) -> Option<(Place, u64)> {
        let trim = Direction::Trim.index();
        let start = self.last_start[trim]?;
        let place =
            Place { offset: start - self.region.start, random: true, again: true, wrapped: false };
        Some((place, self.last_end[trim] - start))
    }

    fn place(&mut self, direction: Direction, context: &mut Context<'_>) -> Option<Place> {
        let settings = context.settings;
        if !settings.pattern.random {
            return self.sequential(direction, context);
        }
        if context.new_offset {
            let share = settings.random_percent[direction.index()];
            let random = share == 100 || context.streams.random_share.below(100) < u64::from(share);
            if random { self.random(direction, context) } else { self.follow(direction, context) }
        } else if settings.identical {
            let offset =
                self.last_start[direction.index()].map_or(0, |start| start - self.region.start);
            Some(Place { offset, random: false, again: true, wrapped: false })
        } else {
            self.follow(direction, context)
        }
    }

    /// Behind the last call, or anywhere if that is the end of the file.
    fn follow(&mut self, direction: Direction, context: &mut Context<'_>) -> Option<Place> {
        self.sequential(direction, context).or_else(|| self.random(direction, context))
    }

    fn sequential(&self, direction: Direction, context: &Context<'_>) -> Option<Place> {
        let Region { start, len, .. } = self.region;
        let behind = self.last_end[direction.index()] - start;
        let wrapped = behind >= len && context.wraps;
        let behind = if wrapped { 0 } else { behind };
        let offset = match context.settings.skip() {
            0 => Some(behind),
            _ if wrapped => Some(0),
            skip if behind == 0 && self.last_start[direction.index()].is_none() => {
                self.first_of_skips(skip)
            }
            skip => self.skipped(behind, skip),
        };
        let place = |offset| Place { offset, random: false, again: true, wrapped };
        offset.filter(|offset| *offset < len && behind < len).map(place)
    }

    /// Backwards, fio takes the region's length for a place in the file: in bytes 16k to 80k,
    /// `rw=write:-8k` begins at 64k - 8k.
    fn first_of_skips(&self, skip: i64) -> Option<u64> {
        let Region { start, len, .. } = self.region;
        if skip > 0 || start == 0 || start == len {
            return Some(0);
        }
        self.skipped(len.wrapping_sub(start), skip)
    }

    /// `behind` and the bytes that are skipped; beyond an end it goes on at the other one. As in fio
    /// the one end is that of the file, not of the region, and from there it goes to as many bytes
    /// behind the region's start as that is behind the file's.
    fn skipped(&self, behind: u64, skip: i64) -> Option<u64> {
        let Region { start, len, file_len, .. } = self.region;
        let next = behind.checked_add_signed(skip).filter(|next| *next < file_len);
        next.or(if skip > 0 { Some(start) } else { len.checked_add_signed(skip) })
    }

    fn random(&mut self, direction: Direction, context: &mut Context<'_>) -> Option<Place> {
        let align = context.settings.align_of(direction);
        let shortfall = context.settings.blocks[direction.index()].min.saturating_sub(align);
        let blocks = self.region.len.checked_sub(shortfall)? / align;
        if blocks == 0 {
            return None;
        }
        if context.settings.has_register() {
            return self.next_in_register(direction, blocks, align, context);
        }
        let drawn = self.draw(direction, blocks, align, context);
        let Some(map) = self.map(direction, blocks, context.settings) else {
            return Some(Place {
                offset: drawn * align,
                random: true,
                again: true,
                wrapped: false,
            });
        };
        let (block, wrapped) = match map.free_from(drawn) {
            Some(block) => (block, false),
            None if context.settings.time_based => {
                map.reset();
                (drawn, true)
            }
            None => return None,
        };
        Some(Place { offset: block * align, random: true, again: false, wrapped })
    }

    /// The next block of the register; it begins again, or the file is done.
    fn next_in_register(
        &mut self,
        direction: Direction,
        blocks: u64,
        align: u64,
        context: &Context<'_>,
    ) -> Option<Place> {
        let at = if have_one_size(context.settings) { 0 } else { direction.index() };
        let begin = || Lfsr::new(blocks, context.streams.register);
        let register = self.registers[at].get_or_insert_with(begin);
        let next = register.draw();
        let wrapped = next.is_none() && context.settings.time_based;
        if wrapped {
            register.reset();
        }
        let block = next.or_else(|| if wrapped { register.draw() } else { None })?;
        Some(Place { offset: block * align, random: true, again: true, wrapped })
    }

    fn draw(
        &mut self,
        direction: Direction,
        blocks: u64,
        align: u64,
        context: &mut Context<'_>,
    ) -> u64 {
        let streams = &mut *context.streams;
        let distribution = &context.settings.distribution;
        match distribution {
            Distribution::Uniform => streams.offset.below(blocks),
            Distribution::Zoned(zones) => {
                let (first, count) =
                    draw_zone(&zones[direction.index()], blocks, align, &mut streams.zone);
                first + streams.offset.below(count)
            }
            Distribution::Zipf { .. }
            | Distribution::Pareto { .. }
            | Distribution::Normal { .. } => {
                let sampler = &mut self.samplers[direction.index()];
                if sampler.is_none() {
                    let mut placement = streams.placement.fork(u64::from(self.region.file.0));
                    *sampler = Sampler::new(distribution, blocks, &mut placement);
                }
                sampler.as_ref().map_or(0, |sampler| sampler.draw(&mut streams.offset))
            }
        }
    }

    fn map(
        &mut self,
        direction: Direction,
        blocks: u64,
        settings: &Settings,
    ) -> Option<&mut RandomMap> {
        let at = map_index(direction, settings)?;
        Some(self.maps[at].get_or_insert_with(|| RandomMap::new(blocks)))
    }

    fn length(
        &self,
        direction: Direction,
        place: &Place,
        context: &mut Context<'_>,
    ) -> Option<u64> {
        let settings = context.settings;
        let sizes = match (settings.sequential_random_sizes, place.random) {
            (false, _) => direction,
            (true, true) => Direction::Write,
            (true, false) => Direction::Read,
        };
        let room = self.region.len - place.offset;
        settings.blocks[sizes.index()].draw(
            room,
            settings.unaligned,
            &mut context.streams.block_size,
        )
    }

    /// Marks the blocks as hit; a call ends where a block was hit already. As in fio a call that
    /// may hit blocks again marks none.
    fn mark(&mut self, direction: Direction, place: &Place, len: u64, settings: &Settings) -> u64 {
        if place.again {
            return len;
        }
        let unit = settings.blocks[direction.index()].min;
        let Some(map) = map_index(direction, settings).and_then(|at| self.maps[at].as_mut()) else {
            return len;
        };
        let (first, count) = (place.offset / unit, len.div_ceil(unit));
        len.min(map.mark_free(first, count) * unit)
    }
}

/// Index of the direction's map, if it has one.
fn map_index(direction: Direction, settings: &Settings) -> Option<usize> {
    let unit = settings.blocks[direction.index()].min;
    let same = settings.directions().all(|other| settings.blocks[other.index()].min == unit);
    settings.has_map().then_some(if same { 0 } else { direction.index() })
}

/// All directions of a job have blocks of one size, at offsets of one unit.
fn have_one_size(settings: &Settings) -> bool {
    let sizes = |direction: Direction| {
        (settings.blocks[direction.index()].min, settings.align_of(direction))
    };
    let mut all = settings.directions().map(sizes);
    let first = all.next();
    all.all(|other| Some(other) == first)
}
