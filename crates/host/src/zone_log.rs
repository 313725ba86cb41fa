//! A log on the host over a zoned device: blocks that are written anywhere, as on a drive that maps
//! pages.
//!
//! Writes go to the end of an open zone, and the map says where each block is. When few
//! zones are empty, the full one with the fewest valid blocks is cleaned: they move to a zone of
//! their own, and a reset empties it. That happens beside the host's commands, in steps at their
//! own times; a write waits only when there is no zone left for it. Such a stall holds the commands
//! behind it as well: cleaning is told to the device ahead of time then, and a device takes
//! commands in the order of their times. The map is in memory and is not written down: for runs
//! without power cuts. Conventional blocks are not used.

use std::collections::VecDeque;

use dovetail_block::{
    BlockDevice, BlockRange, Capabilities, Command, Completion, Content, Data, DeviceError,
    DeviceInfo, Hints, Lba, ZoneAction, Zones,
};
use dovetail_time::SimTime;

use crate::sparse::Sparse;

/// Empty zones below which cleaning begins, the one that it may need included (assumed: as few as
/// let it run beside the host's writes).
const CLEANS_BELOW: usize = 4;
/// Zones beyond the host's blocks: two that are being written, and [`CLEANS_BELOW`].
const OWN_ZONES: u64 = 2 + CLEANS_BELOW as u64;
/// Blocks that cleaning reads before it writes them: 1 MiB (assumed).
const STEP_BLOCKS: usize = 256;

/// Counts of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneLogCounts {
    /// Blocks that the host wrote.
    pub written_blocks: u64,
    /// Blocks that cleaning has moved.
    pub moved_blocks: u64,
    /// Zones that were reset.
    pub resets: u64,
    /// Writes that waited for cleaning.
    pub stalls: u64,
}

/// A device on which no log fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoZoneLog {
    /// The device has no zones.
    #[error("the drive has no zones: what is written to it needs no translation")]
    NoZones,
    /// It has too few.
    #[error(
        "a log in the host needs {needed} zones at least, and the drive has {zones}: use a larger scale, or a drive with \
         smaller zones"
    )]
    TooFew {
        /// Zones of the device.
        zones: u32,
        /// The least that would do.
        needed: u64,
    },
    /// It lets one zone be active: what cleaning moves cannot go to a zone of its own.
    #[error("a log in the host writes two zones at a time, and the drive allows one active zone")]
    OneActive,
    /// It has more blocks than a map of four bytes an entry can name.
    #[error("a log in the host maps at most 16 TiB")]
    TooLarge,
}

/// A zone that is being written.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    zone: u32,
    written: u64,
}

/// The purpose of a write: what cleaning moves goes to a zone of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Host,
    Moved,
}

/// A zone that is being cleaned.
#[derive(Clone, Debug)]
struct Cleaning {
    victim: u32,
    /// The first block that was not looked at.
    next: u64,
    /// The time of the next step.
    due: SimTime,
    /// Blocks that were read: their addresses, their places and what they hold.
    read: Vec<(u32, u32, Content)>,
    /// All was moved, and a flush has made it durable by the time of the next step.
    is_durable: bool,
}

/// Blocks that can be written anywhere, on a device with zones.
#[derive(Clone, Debug)]
pub struct ZoneLog<D> {
    below: D,
    zones: Zones,
    blocks: u64,
    /// The place of each block and one more; 0 for one that holds nothing. Places count the
    /// writable blocks of all zones.
    map: Sparse<u32>,
    /// The address of each place of a zone, the last one that was written there.
    owners: Vec<Vec<u32>>,
    /// Places of each zone to which the map leads.
    valid: Vec<u64>,
    empty: VecDeque<u32>,
    frontiers: [Option<Frontier>; 2],
    cleaning: Option<Cleaning>,
    counts: ZoneLogCounts,
}

impl<D: BlockDevice> ZoneLog<D> {
    /// A log on a device whose zones are all empty. Of their blocks it keeps `spare_percent` of the
    /// host's for itself, and a few zones at least.
    ///
    /// # Errors
    /// See [`NoZoneLog`].
    pub fn new(below: D, spare_percent: f64) -> Result<Self, NoZoneLog> {
        let zones = below.info().capabilities.zones.ok_or(NoZoneLog::NoZones)?;
        if zones.max_active == 1 {
            return Err(NoZoneLog::OneActive);
        }
        let all = u64::from(zones.count) * zones.capacity;
        if u64::from(zones.count) <= OWN_ZONES {
            return Err(NoZoneLog::TooFew { zones: zones.count, needed: OWN_ZONES + 1 });
        }
        if all >= u64::from(u32::MAX) {
            return Err(NoZoneLog::TooLarge);
        }
        let most = all - OWN_ZONES * zones.capacity;
        let blocks = (all as f64 / (1.0 + spare_percent / 100.0)) as u64;
        Ok(Self {
            below,
            zones,
            blocks: blocks.min(most),
            map: Sparse::new(),
            owners: vec![Vec::new(); zones.count as usize],
            valid: vec![0; zones.count as usize],
            empty: (0..zones.count).collect(),
            frontiers: [None; 2],
            cleaning: None,
            counts: ZoneLogCounts::default(),
        })
    }

    /// The device below.
    pub fn below(&self) -> &D {
        &self.below
    }

    /// Returns what it has done so far.
    pub fn counts(&self) -> ZoneLogCounts {
        self.counts
    }

    /// Blocks that it keeps for itself, in percent of the host's: as many as it was asked for, or
    /// those of its own zones.
    pub fn spare_percent(&self) -> f64 {
        let all = u64::from(self.zones.count) * self.zones.capacity;
        100.0 * (all - self.blocks) as f64 / self.blocks as f64
    }

    /// Bytes of the host's memory that its map takes: four for each block of the host's, and four
    /// for each of the zones' to find whose it is.
    pub fn map_bytes(&self) -> u64 {
        4 * (self.blocks + u64::from(self.zones.count) * self.zones.capacity)
    }

    /// The block of the device at a place.
    fn lba(&self, place: u32) -> Lba {
        let (zone, offset) = self.split(place);
        Lba(self.zones.start(zone).0 + offset)
    }

    fn split(&self, place: u32) -> (u32, u64) {
        let place = u64::from(place);
        ((place / self.zones.capacity) as u32, place % self.zones.capacity)
    }

    fn place(&self, zone: u32, offset: u64) -> u32 {
        (u64::from(zone) * self.zones.capacity + offset) as u32
    }

    fn find(&self, block: u64) -> Option<u32> {
        self.map.get(Lba(block)).checked_sub(1)
    }

    /// The block no longer holds what it did.
    fn drop_block(&mut self, block: u64) {
        if let Some(place) = self.find(block) {
            let (zone, _) = self.split(place);
            self.valid[zone as usize] -= 1;
            self.map.set(Lba(block), 0);
        }
    }

    fn write(
        &mut self,
        at: SimTime,
        range: BlockRange,
        data: Data<'_>,
        hints: Hints,
        fua: bool,
    ) -> Result<SimTime, DeviceError> {
        self.info().check(range, data.blocks().unwrap_or(range.blocks))?;
        self.counts.written_blocks += range.blocks;
        let (mut now, mut done, mut from) = (at, at, 0);
        while from < range.blocks {
            now = self.make_room(now)?;
            let room = self.room(Purpose::Host)?;
            let count = room.min(range.blocks - from);
            let part = data.part(from, count);
            let blocks = range.start.0 + from..range.start.0 + from + count;
            let written = (part, hints, fua);
            done = done.max(self.append(now, Purpose::Host, (count, blocks), written)?);
            from += count;
        }
        Ok(done)
    }

    /// Blocks that the zone of a purpose still takes, a new one if need be.
    fn room(&mut self, purpose: Purpose) -> Result<u64, DeviceError> {
        let index = purpose as usize;
        if self.frontiers[index].is_none() {
            let zone = self.empty.pop_front();
            let zone = zone.ok_or_else(|| {
                DeviceError::Internal("the host's log has no empty zone left".into())
            })?;
            self.owners[zone as usize] = Vec::with_capacity(self.zones.capacity as usize);
            self.frontiers[index] = Some(Frontier { zone, written: 0 });
        }
        let written = self.frontiers[index].map_or(0, |frontier| frontier.written);
        Ok(self.zones.capacity - written)
    }

    /// Writes blocks to the zone of a purpose, which has room for them.
    fn append(
        &mut self,
        at: SimTime,
        purpose: Purpose,
        (count, blocks): (u64, impl Iterator<Item = u64>),
        (data, hints, fua): (Data<'_>, Hints, bool),
    ) -> Result<SimTime, DeviceError> {
        let index = purpose as usize;
        let Some(Frontier { zone, written }) = self.frontiers[index] else { return Ok(at) };
        let range = BlockRange::new(Lba(self.zones.start(zone).0 + written), count);
        let done = self.below.submit(at, Command::Write { range, data, hints, fua })?.done;
        for (offset, block) in (written..).zip(blocks) {
            self.drop_block(block);
            self.owners[zone as usize].push(block as u32);
            let place = self.place(zone, offset);
            self.map.set(Lba(block), place + 1);
        }
        self.valid[zone as usize] += count;
        let written = written + count;
        let is_full = written == self.zones.capacity;
        self.frontiers[index] = (!is_full).then_some(Frontier { zone, written });
        Ok(done)
    }

    /// Sees to it that a write finds a zone, and returns when it does: one empty zone stays for
    /// cleaning.
    fn make_room(&mut self, at: SimTime) -> Result<SimTime, DeviceError> {
        let mut now = at;
        let is_short =
            |log: &Self| log.frontiers[Purpose::Host as usize].is_none() && log.empty.len() <= 1;
        self.counts.stalls += u64::from(is_short(self));
        while is_short(self) {
            self.begin_cleaning(now);
            now = now.max(self.clean_step()?);
        }
        Ok(now)
    }

    /// Goes on with cleaning as far as it comes by this time.
    fn clean_until(&mut self, at: SimTime) -> Result<(), DeviceError> {
        loop {
            if self.empty.len() < CLEANS_BELOW {
                self.begin_cleaning(at);
            }
            if self.cleaning.as_ref().is_none_or(|cleaning| cleaning.due > at) {
                return Ok(());
            }
            self.clean_step()?;
        }
    }

    /// Chooses the full zone with the fewest valid blocks, the first of several.
    fn begin_cleaning(&mut self, at: SimTime) {
        if self.cleaning.is_some() {
            return;
        }
        let capacity = self.zones.capacity;
        let is_full = |zone: &u32| self.owners[*zone as usize].len() as u64 == capacity;
        let full = (0..self.zones.count).filter(is_full);
        let victim = full.min_by_key(|&zone| self.valid[zone as usize]);
        let victim = victim.filter(|&zone| self.valid[zone as usize] < capacity);
        self.cleaning = victim.map(|victim| Cleaning {
            victim,
            next: 0,
            due: at,
            read: Vec::new(),
            is_durable: false,
        });
    }

    /// Writes what was read, or reads more, or when all was moved makes that durable and then resets
    /// the zone; returns when that is done.
    fn clean_step(&mut self) -> Result<SimTime, DeviceError> {
        let Some(mut cleaning) = self.cleaning.take() else {
            return Err(DeviceError::Internal("the host's log has nothing to clean".into()));
        };
        if !cleaning.read.is_empty() {
            cleaning.due = self.move_blocks(cleaning.due, &cleaning.read)?;
            cleaning.read.clear();
        } else if self.valid[cleaning.victim as usize] > 0 {
            self.read_valid(&mut cleaning)?;
        } else if !cleaning.is_durable {
            cleaning.due = self.below.submit(cleaning.due, Command::Flush)?.done;
            cleaning.is_durable = true;
        } else {
            return self.empty_zone(cleaning.due, cleaning.victim);
        }
        let due = cleaning.due;
        self.cleaning = Some(cleaning);
        Ok(due)
    }

    /// Reads the next valid blocks of a zone, runs of them together.
    fn read_valid(&mut self, cleaning: &mut Cleaning) -> Result<(), DeviceError> {
        let mut places: Vec<(u32, u32)> = Vec::new();
        while places.len() < STEP_BLOCKS && cleaning.next < self.zones.capacity {
            let owner = self.owners[cleaning.victim as usize][cleaning.next as usize];
            let place = self.place(cleaning.victim, cleaning.next);
            if self.find(owner.into()) == Some(place) {
                places.push((owner, place));
            }
            cleaning.next += 1;
        }
        let mut done = cleaning.due;
        for run in places.chunk_by(|before, after| before.1 + 1 == after.1) {
            let mut contents = vec![Content::Empty; run.len()];
            let range = BlockRange::new(self.lba(run[0].1), run.len() as u64);
            let command = Command::Read { range, into: Some(&mut contents) };
            done = done.max(self.below.submit(cleaning.due, command)?.done);
            let read = run.iter().zip(contents);
            cleaning.read.extend(read.map(|(&(owner, place), content)| (owner, place, content)));
        }
        cleaning.due = done;
        Ok(())
    }

    /// Writes blocks that were read to the zone for them, but those that the host has overwritten
    /// meanwhile.
    fn move_blocks(
        &mut self,
        at: SimTime,
        read: &[(u32, u32, Content)],
    ) -> Result<SimTime, DeviceError> {
        let is_valid =
            |(owner, place, _): &&(u32, u32, Content)| self.find(u64::from(*owner)) == Some(*place);
        let (owners, contents): (Vec<u64>, Vec<Content>) = read
            .iter()
            .filter(is_valid)
            .map(|(owner, _, content)| (u64::from(*owner), content.clone()))
            .unzip();
        let (mut done, mut from) = (at, 0);
        while from < owners.len() {
            let count = (self.room(Purpose::Moved)? as usize).min(owners.len() - from);
            let part = from..from + count;
            let data = (Data::Blocks(&contents[part.clone()]), Hints::default(), false);
            let blocks = (count as u64, owners[part].iter().copied());
            done = done.max(self.append(at, Purpose::Moved, blocks, data)?);
            from += count;
        }
        self.counts.moved_blocks += owners.len() as u64;
        Ok(done)
    }

    /// Empties a zone of which nothing is valid; what was moved from it is durable.
    fn empty_zone(&mut self, at: SimTime, zone: u32) -> Result<SimTime, DeviceError> {
        let start = Some(self.zones.start(zone));
        let command = Command::Zone { start, action: ZoneAction::Reset };
        let done = self.below.submit(at, command)?.done;
        self.owners[zone as usize] = Vec::new();
        self.empty.push_back(zone);
        self.counts.resets += 1;
        Ok(done)
    }

    /// Reads blocks where the map says they are, runs of them together.
    fn read(
        &mut self,
        at: SimTime,
        range: BlockRange,
        mut into: Option<&mut [Content]>,
    ) -> Result<SimTime, DeviceError> {
        self.info().check(range, into.as_ref().map_or(range.blocks, |into| into.len() as u64))?;
        let places: Vec<Option<u32>> = range.iter().map(|lba| self.find(lba.0)).collect();
        let capacity = self.zones.capacity;
        let follows = |before: &Option<u32>, after: &Option<u32>| match (before, after) {
            (Some(before), Some(after)) => {
                before + 1 == *after && !u64::from(*after).is_multiple_of(capacity)
            }
            (None, None) => true,
            _ => false,
        };
        let (mut done, mut from) = (at, 0);
        for run in places.chunk_by(follows) {
            let part = from..from + run.len();
            from = part.end;
            let into = into.as_mut().map(|into| &mut into[part]);
            let Some(place) = run[0] else {
                if let Some(into) = into {
                    into.fill(Content::Empty);
                }
                continue;
            };
            let range = BlockRange::new(self.lba(place), run.len() as u64);
            done = done.max(self.below.submit(at, Command::Read { range, into })?.done);
        }
        Ok(done)
    }
}

impl<D: BlockDevice> BlockDevice for ZoneLog<D> {
    fn info(&self) -> DeviceInfo {
        let below = self.below.info().capabilities;
        let capabilities = Capabilities {
            discard: true,
            streams: below.streams,
            inode_hints: below.inode_hints,
            ..Capabilities::default()
        };
        DeviceInfo { blocks: self.blocks, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Query(query) = command {
            return Err(query.unsupported());
        }
        self.clean_until(at)?;
        let done = match command {
            Command::Read { range, into } => self.read(at, range, into)?,
            Command::Write { range, data, hints, fua } => {
                self.write(at, range, data, hints, fua)?
            }
            Command::Flush => self.below.submit(at, Command::Flush)?.done,
            Command::Discard { ranges } => {
                for range in ranges {
                    let blocks = range.blocks_inside();
                    self.info().check(blocks, blocks.blocks)?;
                    blocks.iter().for_each(|lba| self.drop_block(lba.0));
                }
                at
            }
            refused => return Err(refused.unsupported()),
        };
        Ok(Completion::at(done))
    }
}
