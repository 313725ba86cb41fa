//! The zoned drive: zones that the host fills in order and empties as a whole.
//!
//! A zone is a list of erase blocks over some of the dies, given to it when it is first written and
//! taken away when it is reset. So there is no map of pages, no cleaning and no spare area beyond
//! the blocks that take the place of bad ones: only a record for each zone. What programs cannot
//! hold yet (less than a die programs in one go, and random write areas) is in the write buffer; a
//! flush puts it into a place of the drive's own. That place, the records and conventional blocks
//! lie in a page-mapped part, a [`Drive`] of its own on the same dies.

mod action;
mod config;
mod inner;
mod pool;
mod program;
mod read;
mod records;
mod recover;
mod stash;
mod write;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use dovetail_block::{
    Answer, BlockDevice, BlockRange, Capabilities, Command, Completion, DeviceError, DeviceInfo,
    Hints, Query, ZoneEvent, ZoneTable, performs_at_once,
};
use dovetail_nand::{BlockId, DieUse, FaultPlan, Geometry, Nand, NandConfig, Seq, Token};
use dovetail_time::SimTime;

use crate::config::{ConfigError, DriveConfig};
use crate::controller::Controller;
use crate::drive::{Drive, transfer};
use crate::durability::{Durability, Promise};
use crate::stats::Counters;
use config::ZoneLayout;
use pool::Pool;
use records::Record;

pub use config::{ZoneConfig, ZoneTimes};
pub use recover::{UnrecoveredZonedDrive, ZonedRecovery};

/// A drive with zones that is switched on.
///
/// As [`Drive`], it takes commands in the order of their times, changes its state at once, and
/// answers nothing after [`DeviceError::PowerLost`].
#[derive(Clone, Debug)]
pub struct ZonedDrive {
    config: DriveConfig,
    layout: ZoneLayout,
    nand: Nand,
    /// Conventional blocks and the drive's own.
    inner: Drive,
    table: ZoneTable,
    records: Vec<Record>,
    /// Zones that are being written, and those that can no longer be with what they hold.
    active: BTreeMap<u32, Active>,
    pool: Pool,
    /// The time from which on each place of an active zone can be used; `None` while it is.
    slots: Vec<Option<SimTime>>,
    /// The ends of programs under way, and the blocks of the buffer that each frees.
    in_flight: BinaryHeap<Reverse<(SimTime, u64)>>,
    in_flight_blocks: u64,
    /// Erase blocks to be erased, and from when on.
    to_erase: VecDeque<(SimTime, BlockId)>,
    /// Zones whose records are to be written, and from when on.
    to_record: VecDeque<(SimTime, u32)>,
    /// The ends of resets that may be under way.
    resets: BTreeMap<u32, SimTime>,
    /// The time of the last write of records.
    last_record: SimTime,
    seq: Seq,
    programs_end: SimTime,
    last_command: SimTime,
    link_backlog_until: SimTime,
    write_link_until: SimTime,
    controller: Controller,
    durability: Durability,
    counters: Counters,
    own: OwnWrites,
    /// Counts of the page-mapped part when the drive was recovered.
    recovered: Counters,
}

/// Writes of the drive's own in the page-mapped part.
#[derive(Clone, Copy, Debug, Default)]
struct OwnWrites {
    writes: u64,
    blocks: u64,
    /// Of these, blocks written over ones that were still in the write buffer.
    overwrites: u64,
    /// Pages programmed for them.
    programs: u64,
}

/// A zone that is being written.
#[derive(Clone, Debug)]
struct Active {
    slot: u32,
    /// Blocks on the zone's own flash: a multiple of what a die programs in one go, until it is
    /// full.
    programmed: u64,
    /// The blocks that follow them, as far as they were written.
    held: VecDeque<Option<Held>>,
    /// No program is issued for an earlier time: its record must be there.
    not_before: SimTime,
    programs_end: SimTime,
    /// The write pointer that its place tells of.
    stashed_pointer: u64,
    /// Its erase blocks are known to hold no pages beyond those programmed; after a power cut they
    /// may.
    mended: bool,
}

/// A block that was written and is not on its zone's flash.
#[derive(Clone, Copy, Debug)]
struct Held {
    token: Token,
    hints: Hints,
    /// A flush has put it into the zone's place.
    stashed: bool,
}

impl ZonedDrive {
    /// A new drive, all zones empty.
    ///
    /// # Errors
    /// A configuration with which no drive can work.
    pub fn new(config: DriveConfig) -> Result<Self, ConfigError> {
        let layout = ZoneLayout::new(&config)?;
        let (nand, inner) = (Nand::new(layout.nand.clone())?, Drive::new(layout.inner.clone())?);
        let records = vec![Record::default(); layout.zones.count as usize];
        let table = ZoneTable::new(layout.zones);
        Ok(Self::assemble(config, layout, nand, inner, table, records))
    }

    fn assemble(
        config: DriveConfig,
        layout: ZoneLayout,
        nand: Nand,
        inner: Drive,
        table: ZoneTable,
        records: Vec<Record>,
    ) -> Self {
        let used: std::collections::HashSet<BlockId> =
            records.iter().flat_map(|record| record.blocks.iter().copied()).collect();
        let pool = Pool::of(&nand, |block| used.contains(&block));
        let last = (0..nand.geometry().blocks()).map(|block| nand.last_seq(BlockId(block)));
        Self {
            seq: Seq(last.max().unwrap_or_default().0 + 1),
            slots: vec![Some(SimTime::ZERO); layout.slots as usize],
            controller: Controller::new(config.cores),
            durability: Durability::new(&config),
            active: BTreeMap::new(),
            in_flight: BinaryHeap::new(),
            in_flight_blocks: 0,
            to_erase: VecDeque::new(),
            to_record: VecDeque::new(),
            resets: BTreeMap::new(),
            last_record: SimTime::ZERO,
            programs_end: SimTime::ZERO,
            last_command: SimTime::ZERO,
            link_backlog_until: SimTime::ZERO,
            write_link_until: SimTime::ZERO,
            counters: Counters::default(),
            own: OwnWrites::default(),
            recovered: Counters::default(),
            config,
            layout,
            nand,
            inner,
            table,
            records,
            pool,
        }
    }

    /// Returns what the drive is made of.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// The layout of its flash, the page-mapped part included.
    pub fn geometry(&self) -> &Geometry {
        &self.config.nand.geometry
    }

    /// Pages that the flash of a zone has.
    pub fn pages_per_zone(&self) -> u32 {
        self.layout.pages_per_zone()
    }

    /// The zones as they are now.
    pub fn zones(&self) -> &ZoneTable {
        &self.table
    }

    /// The page-mapped part: conventional blocks and the drive's own.
    pub fn page_mapped(&self) -> &Drive {
        &self.inner
    }

    /// Returns what it has done so far. Cleaning is that of the page-mapped part.
    pub fn counters(&self) -> Counters {
        self.with_page_mapped()
    }

    /// Returns the work of each die: until `at`, which is not before the last command, and what was
    /// issued.
    pub fn die_use(&self, at: SimTime) -> impl Iterator<Item = DieUse> {
        self.nand.die_use(at)
    }

    /// Returns how often each block was erased: those of the page-mapped part, then those of zones.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> {
        let blocks = (0..self.nand.geometry().blocks()).map(BlockId);
        self.inner.erase_counts().chain(blocks.map(|block| self.nand.erases(block)))
    }

    /// Blocks that are marked bad, when new or since.
    pub fn bad_blocks(&self) -> u32 {
        let blocks = (0..self.nand.geometry().blocks()).map(BlockId);
        self.inner.bad_blocks() + blocks.filter(|&block| self.nand.is_bad(block)).count() as u32
    }

    /// Bytes of the drive's own memory for its map: a record for each zone, with the numbers of its
    /// erase blocks, and the map of the page-mapped part.
    pub fn mapping_memory_bytes(&self) -> u64 {
        let record = 16 + 4 * u64::from(self.layout.blocks_per_zone());
        u64::from(self.layout.zones.count) * record + self.inner.mapping_memory_bytes()
    }

    /// Bytes of the drive's own memory for the rest: the write buffer, and what the page-mapped
    /// part needs.
    pub fn other_memory_bytes(&self) -> u64 {
        let buffer =
            u64::from(self.config.buffer_pages) * u64::from(self.config.nand.geometry.page_bytes);
        buffer + self.inner.other_memory_bytes()
    }

    /// Bytes of host memory that the model of the flash takes, without real bytes written to it.
    pub fn flash_model_bytes(&self) -> u64 {
        self.nand.memory_bytes() + self.inner.flash_model_bytes()
    }

    /// Puts faults over the flash of the zones.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.nand.set_faults(plan);
    }

    /// Puts faults over the flash of the page-mapped part.
    pub fn set_page_mapped_faults(&mut self, plan: FaultPlan) {
        self.inner.set_faults(plan);
    }

    /// Reads, programs and erases of the zones' flash so far.
    pub fn flash_operations(&self) -> u64 {
        self.nand.operations()
    }

    /// Returns when all that the drive was told so far is through.
    pub fn idle_from(&self) -> SimTime {
        self.nand.idle_from().max(self.link_backlog_until).max(self.write_link_until)
    }

    /// A zone's flash fails: from now on it can only be read, or not even that.
    pub fn fail_zone(&mut self, zone: u32, event: ZoneEvent) {
        self.table.fail(zone, event);
    }

    fn check_range(&self, range: BlockRange, data: u64) -> Result<(), DeviceError> {
        self.info().check(range, data)
    }

    fn link(&mut self, at: SimTime, ready: SimTime, blocks: u64) -> SimTime {
        transfer(&mut self.link_backlog_until, at, ready, self.config.link_4k * blocks)
    }

    /// The end of a transfer of blocks to the drive: one that is ready later than its command comes
    /// holds back no other.
    fn link_in(&mut self, at: SimTime, ready: SimTime, blocks: u64) -> SimTime {
        match self.config.link_write_4k {
            Some(each) => transfer(&mut self.write_link_until, at, ready, each * blocks),
            None => self.link(at, ready, blocks),
        }
    }

    fn perform(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let at = self.controller.take_command(at, &command, &self.config);
        let promise = Promise::of(&command);
        let done = match command {
            Command::Read { range, into } => self.read(at, range, into)?,
            Command::Write { range, data, hints, fua } => {
                self.write(at, range, data, hints, fua)?
            }
            Command::Append { zone, blocks, data, hints, fua } => {
                let (_, start) = self.table.append_to(zone, blocks)?;
                let done = self.write(at, BlockRange::new(start, blocks), data, hints, fua)?;
                let done = self.durability.given(promise, done);
                return Ok(Completion::with(done, Answer::Addresses(vec![start])));
            }
            Command::Flush => self.flush(at)?,
            Command::Discard { ranges } => self.discard(at, ranges)?,
            Command::Zone { start, action } => self.act(at, start, action)?,
            refused => return Err(refused.unsupported()),
        };
        Ok(Completion::at(self.durability.given(promise, done)))
    }

    fn answer(&self, query: Query) -> Result<Answer, DeviceError> {
        match query {
            Query::Zones { from, most } => Ok(Answer::Zones(self.table.report(from, most))),
            Query::ChangedZones { since } => Ok(self.table.changed(since)),
            Query::MapBytes => Ok(Answer::Bytes(self.mapping_memory_bytes())),
            Query::FreeBlocks | Query::Held { .. } | Query::Placement => Err(query.unsupported()),
        }
    }
}

impl BlockDevice for ZonedDrive {
    fn info(&self) -> DeviceInfo {
        let capabilities = Capabilities {
            discard: true,
            streams: 1,
            inode_hints: true,
            zones: Some(self.layout.zones),
            ..Capabilities::default()
        };
        DeviceInfo { blocks: self.layout.zones.end().0, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Query(query) = command {
            return Ok(Completion::with(at, self.answer(query)?));
        }
        if !self.nand.is_powered() {
            return Err(DeviceError::PowerLost);
        }
        let at = at.max(self.last_command);
        self.last_command = at;
        let done = self.keep_house(at).and_then(|()| self.perform(at, command));
        if let Err(DeviceError::PowerLost) = done {
            self.nand.cut_power();
        }
        done
    }
}

performs_at_once!(ZonedDrive);

/// Blocks that a drive of this configuration holds: conventional ones, and those that can be written
/// in zones.
///
/// # Errors
/// A configuration with which no drive can work.
pub(crate) fn capacity(config: &DriveConfig) -> Result<u64, ConfigError> {
    let zones = ZoneLayout::new(config)?.zones;
    Ok(zones.first.0 + u64::from(zones.count) * zones.capacity)
}

/// The flash of a drive's page-mapped part and that of its zones; `None` for a drive without zones.
///
/// # Errors
/// A configuration with which no drive can work.
pub(crate) fn flash_of(
    config: &DriveConfig,
) -> Result<Option<(NandConfig, NandConfig)>, ConfigError> {
    if config.zones.is_none() {
        return Ok(None);
    }
    let layout = ZoneLayout::new(config)?;
    Ok(Some((layout.inner.nand, layout.nand)))
}

/// The page of a zone that block `offset` lies in, its place there, and how many of so many blocks
/// from it on lie in that page.
fn in_page(offset: u64, blocks: u64, subpages: u32) -> (u32, usize, u64) {
    let subpages = u64::from(subpages);
    let first = (offset % subpages) as usize;
    ((offset / subpages) as u32, first, blocks.min(subpages - first as u64))
}
