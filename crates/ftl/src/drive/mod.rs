//! The drive: carries out what the host commands and what the policies decide.

mod capacitors;
mod clean;
mod demand;
mod devirtualize;
mod discard;
mod fdp;
mod invalidate;
mod journal;
mod log_block;
mod nvm;
mod owed;
mod program;
mod read;
mod recover;
mod refresh;
mod relocate;
mod remap;
mod remap_log;
mod segmented_log;
mod single;
mod thin;
mod write;

use std::collections::VecDeque;
use std::ops::Range;

use dovetail_block::{
    Answer, BlockDevice, BlockRange, Capabilities, Command, Completion, DeviceError, DeviceInfo,
    Query, Thin, performs_at_once,
};
use dovetail_nand::{BackingStore, BlockId, DieUse, FaultPlan, Geometry, Lpn, Nand, Ppn};
use dovetail_time::{SimSpan, SimTime};

use crate::buffer::WriteBuffer;
use crate::cache::Occupancy;
use crate::cleaner::Cleaner;
use crate::config::{ConfigError, DriveConfig, StreamsBy};
use crate::controller::Controller;
use crate::durability::{Durability, Promise};
use crate::lines::{LineId, Lines};
use crate::log_block::LogBlocks;
use crate::mapping::MapCost;
use crate::medium::Medium;
use crate::metadata::journal::Journal;
use crate::metadata::remap_log::AddressWidth;
use crate::metadata::renames::Renames;
use crate::metadata::system_pages;
use crate::ownership::{Move, Nvm, Ownership};
use crate::remap::RemapStore;
use crate::sequences::Sequences;
use crate::stats::Counters;
use crate::translation::Translation;
use relocate::Moving;
use thin::Freed;

pub use recover::{RecoveryReport, UnrecoveredDrive};

/// A drive that is switched on.
///
/// Commands come in the order of their times; one of an earlier time is taken at the time of the
/// last. A command changes the drive's state at once; the
/// time that it takes is what its flash operations reserve. After [`DeviceError::PowerLost`] the
/// drive answers nothing else; [`Drive::into_unrecovered`] is the way back.
#[derive(Clone, Debug)]
pub struct Drive {
    config: DriveConfig,
    medium: Medium,
    translation: Translation,
    cleaner: Cleaner,
    buffer: WriteBuffer,
    journal: Journal,
    ownership: Ownership,
    renames: Option<Box<Renames>>,
    freed: Freed,
    /// End of the last program of the host's data and of the drive's own pages, which a flush waits
    /// for.
    host_programs_end: SimTime,
    last_command: SimTime,
    link_backlog_until: SimTime,
    /// That of writes, where they have a link of their own.
    write_link_until: SimTime,
    controller: Controller,
    durability: Durability,
    /// Time of the work that is being done: of a command, or of a step of cleaning in an idle time.
    at_work: SimTime,
    /// Logical pages of the host's that it holds at once.
    capacity_pages: u64,
    /// Lines that were read often.
    to_refresh: VecDeque<LineId>,
    /// Writes go past the SLC cache until idle time has emptied a part of it.
    past_cache: bool,
    /// The sequences of writes, where they have streams of their own.
    sequences: Option<Sequences>,
    /// The log lines of a log-block map.
    log_blocks: Option<Box<LogBlocks>>,
    /// Pages of a row that cleaning moves; kept for its memory.
    row: Vec<Moving>,
    /// Pages of a remap; kept for its memory.
    moves: Vec<Move>,
    /// Pages of a discard; kept for its memory.
    found: Vec<(Lpn, Ppn)>,
    plain: Plain,
    counters: Counters,
}

/// The extras that a drive does without: what its hot paths ask for, worked out once.
#[derive(Clone, Copy, Debug)]
struct Plain {
    /// Pages are programmed by themselves.
    single_pages: bool,
    /// Cleaning moves a page at a time.
    single_moves: bool,
    /// The host's pages go to the frontier of their stream.
    targets: bool,
}

impl Plain {
    fn of(config: &DriveConfig) -> Self {
        let single_pages = config.programs_single_pages();
        Self {
            single_pages,
            single_moves: single_pages && config.nand.geometry.planes_per_die == 1,
            targets: config.single_cache.is_none() && config.log_block.is_none(),
        }
    }
}

/// Subpages of one page that a command touches.
#[derive(Clone, Copy, Debug)]
struct PageSpan {
    lpn: Lpn,
    first_subpage: usize,
    subpages: usize,
    /// Index of the span's first block within the command.
    offset: u64,
}

impl PageSpan {
    /// The span in page `lpn` of a range that touches it; pages have 2^`shift` subpages.
    fn of(range: BlockRange, lpn: u64, shift: u32) -> Self {
        let (from, to) = (range.start.0.max(lpn << shift), range.end().0.min((lpn + 1) << shift));
        Self {
            lpn: Lpn(lpn),
            first_subpage: (from - (lpn << shift)) as usize,
            subpages: (to - from) as usize,
            offset: from - range.start.0,
        }
    }

    /// One bit for each subpage of the page that lies in the span.
    fn mask(self) -> u8 {
        (((1u16 << self.subpages) - 1) << self.first_subpage) as u8
    }
}

impl Drive {
    /// A new, empty drive.
    ///
    /// # Errors
    /// A configuration with which no drive can work.
    pub fn new(config: DriveConfig) -> Result<Self, ConfigError> {
        let config = config.checked()?;
        if config.zones.is_some() {
            return Err(ConfigError::Zones(
                "a drive with zones cannot be used here; use a profile without [zones]",
            ));
        }
        let medium = Medium::new(config.nand.clone(), config.shape, &config.frontiers())?;
        let mut drive = Self::assemble(config, medium);
        drive.translation.begin();
        Ok(drive)
    }

    /// A drive around a medium, with an empty map.
    fn assemble(config: DriveConfig, medium: Medium) -> Self {
        Self {
            translation: Translation::new(&config, system_pages(&config)),
            cleaner: Cleaner::new(&config),
            buffer: WriteBuffer::new(config.buffer_pages as usize),
            journal: Journal::new(&config),
            ownership: Ownership::new(&config),
            renames: Renames::new(&config),
            freed: Freed::default(),
            host_programs_end: SimTime::ZERO,
            last_command: SimTime::ZERO,
            link_backlog_until: SimTime::ZERO,
            write_link_until: SimTime::ZERO,
            controller: Controller::new(config.cores),
            durability: Durability::new(&config),
            at_work: SimTime::ZERO,
            to_refresh: VecDeque::new(),
            past_cache: false,
            sequences: sequences(&config),
            log_blocks: config.log_block.map(|map| Box::new(LogBlocks::new(map))),
            row: Vec::new(),
            moves: Vec::new(),
            found: Vec::new(),
            counters: Counters::default(),
            plain: Plain::of(&config),
            capacity_pages: config.capacity_pages(),
            medium,
            config,
        }
    }

    /// Exchanges the times until which dies and channels are busy with those of another flash: two
    /// that stand for parts of one.
    pub(crate) fn swap_timeline(&mut self, other: &mut Nand) {
        self.medium.swap_timeline(other);
    }

    /// Keeps the flash in a store: it is told of every change from now on.
    pub(crate) fn back_with(&mut self, backing: Box<dyn BackingStore>) {
        self.medium.back_with(backing);
    }

    /// Returns what the drive is made of.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// The layout of its flash.
    pub fn geometry(&self) -> &Geometry {
        self.medium.nand().geometry()
    }

    /// Returns what it has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Its lines: what is free, filled and worn.
    pub fn lines(&self) -> &Lines {
        self.medium.lines()
    }

    /// Returns the work of each die: until `at`, which is not before the last command, and what was
    /// issued.
    pub fn die_use(&self, at: SimTime) -> impl Iterator<Item = DieUse> {
        self.medium.nand().die_use(at)
    }

    /// Returns how often each block was erased, in the order of block numbers.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> {
        (0..self.medium.nand().geometry().blocks())
            .map(|block| self.medium.nand().erases(BlockId(block)))
    }

    /// Blocks that are marked bad, when new or since.
    pub fn bad_blocks(&self) -> u32 {
        (0..self.medium.nand().geometry().blocks())
            .filter(|&block| self.medium.nand().is_bad(BlockId(block)))
            .count() as u32
    }

    /// Bytes of the drive's own memory that its map takes now.
    pub fn mapping_memory_bytes(&self) -> u64 {
        match self.config.log_block {
            Some(map) => self.log_map_bytes(map),
            None => self.translation.memory_bytes(),
        }
    }

    /// Returns what the cache of the demand-paged map holds; `None` for a drive that has its whole
    /// map in memory.
    pub fn map_cache(&self) -> Option<Occupancy> {
        self.translation.occupancy()
    }

    /// Bytes of the drive's own memory for the rest: validity of pages and subpages, and the write
    /// buffer.
    pub fn other_memory_bytes(&self) -> u64 {
        let page_bytes = self.config.nand.geometry.page_bytes;
        // A page reached by its own address needs no entry in memory: the map's bit says whose it
        // is, the table on flash since when.
        let reverse =
            if self.config.devirtualize.is_none() { self.ownership.memory_bytes() } else { 0 };
        let renames = self.renames.as_ref().map_or(0, |renames| renames.memory_bytes());
        self.medium.memory_bytes() + reverse + renames + self.buffer.memory_bytes(page_bytes)
    }

    /// Bytes of byte-addressable non-volatile memory that the drive needs: the reverse map of every
    /// page or the log of remaps, the records of discards, and the entries of the longest remap.
    pub fn non_volatile_bytes(&self) -> u64 {
        const RECORD_BYTES: u64 = 24;
        let Some(remap) = self.config.remap else { return 0 };
        let width = AddressWidth::of(&self.config);
        let owners = match remap.store {
            RemapStore::NonVolatile { .. } => {
                u64::from(self.geometry().pages()) * width.entry_bytes() as u64
            }
            RemapStore::SegmentedLog { segments, segment_bytes, .. } => {
                u64::from(segments) * u64::from(segment_bytes)
            }
            RemapStore::Log => return 0,
        };
        let records = remap.store.discard_records().unwrap_or(0);
        owners + u64::from(records) * RECORD_BYTES + remap.most_pairs() * width.pair_bytes() as u64
    }

    /// Bytes of that memory that hold entries of the reverse map now: all of a table, the segments
    /// in use of a log.
    pub fn remap_entry_bytes(&self) -> u64 {
        match self.nvm().map(Nvm::log) {
            Some(Some(log)) => {
                let segment = self.config.remap.and_then(|remap| remap.store.segment_bytes());
                log.used() as u64 * segment.unwrap_or(0)
            }
            Some(None) => {
                let width = AddressWidth::of(&self.config);
                u64::from(self.geometry().pages()) * width.entry_bytes() as u64
            }
            None => 0,
        }
    }

    /// Bytes of host memory that the model of the flash takes, without real bytes written to it.
    pub fn flash_model_bytes(&self) -> u64 {
        self.medium.nand().memory_bytes()
    }

    /// Reads, programs and erases of its flash so far: the numbers at which a power cut can be
    /// planned.
    pub fn flash_operations(&self) -> u64 {
        self.medium.nand().operations()
    }

    /// Puts faults over the flash.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.medium.set_faults(plan);
    }

    /// Returns when all that the drive was told so far is through.
    pub fn idle_from(&self) -> SimTime {
        let links = self.link_backlog_until.max(self.write_link_until);
        self.medium.nand().idle_from().max(links).max(self.controller.idle_from())
    }

    /// Remembers from now on what [`Drive::into_unrecovered_at`] needs; memory grows with every
    /// command: for tests.
    pub fn remember_operations(&mut self) {
        self.medium.remember_operations();
        if let Some(nvm) = self.nvm_mut() {
            nvm.remember();
        }
    }

    /// Cuts the power at a time: flash operations under way then are torn, those that had not begun
    /// never happen.
    pub fn into_unrecovered_at(self, at: SimTime) -> UnrecoveredDrive {
        self.switched_off(Some(at))
    }

    /// Returns what a power cut at time `at` leaves, as [`Drive::into_unrecovered_at`]; this drive
    /// goes on.
    pub fn after_power_cut(&self, at: SimTime) -> UnrecoveredDrive {
        let at = self.last_moment(at);
        let nvm = self.ownership.survivor(at, self.journal.pending());
        let kept = self.kept_by_capacitors();
        let flash = self.medium.after_power_cut(at);
        UnrecoveredDrive::new(self.config.clone(), flash, nvm, kept)
    }

    /// Start and end of each change of the flash and of non-volatile memory that is remembered: the
    /// moments at which a power cut leaves something else than the moment before.
    pub fn remembered_operations(&self) -> impl Iterator<Item = (SimTime, SimTime)> {
        let entries = self.nvm().into_iter().flat_map(|nvm| nvm.remembered().map(|at| (at, at)));
        self.medium.nand().remembered_operations().chain(entries)
    }

    /// Forgets operations that had ended by `at`: no power cut at an earlier time will be asked
    /// for.
    pub fn forget_operations_before(&mut self, at: SimTime) {
        self.medium.forget_operations_before(at);
        if let Some(nvm) = self.nvm_mut() {
            nvm.forget_before(at);
        }
    }

    /// Cuts the power, if it is not gone already.
    pub fn into_unrecovered(self) -> UnrecoveredDrive {
        self.switched_off(None)
    }

    fn switched_off(self, at: Option<SimTime>) -> UnrecoveredDrive {
        let kept = self.kept_by_capacitors();
        let at = at.filter(|_| !self.config.power_loss_protection);
        let pending = self.journal.into_pending();
        let nvm = self.ownership.into_survivor(at, pending);
        UnrecoveredDrive::new(self.config, self.medium.into_unrecovered(at), nvm, kept)
    }

    /// Checks that map, validity and live subpages agree with each other and with the flash.
    ///
    /// # Errors
    /// The first disagreement, in words. Meant for tests: it looks at every page.
    pub fn check(&self) -> Result<(), String> {
        let mut valid = vec![0u32; self.medium.lines().count() as usize];
        for ppn in
            (0..self.geometry().pages()).map(Ppn).filter(|&ppn| self.medium.lines().is_valid(ppn))
        {
            self.check_page(ppn)?;
            valid[self.medium.lines().line_of(ppn).0 as usize] += 1;
        }
        for line in self.medium.lines().ids() {
            if self.medium.lines().valid(line) != valid[line.0 as usize] {
                let (kept, found) = (self.medium.lines().valid(line), valid[line.0 as usize]);
                return Err(format!("line {line:?} counts {kept} valid pages, there are {found}"));
            }
        }
        self.translation.check_mapped(valid.iter().map(|&valid| u64::from(valid)).sum())?;
        self.translation.check_translations(self.medium.nand(), self.host_pages_on_flash())?;
        self.check_reverse()?;
        self.check_logs()
    }

    /// A valid page is the one that its owner is mapped to.
    fn check_page(&self, ppn: Ppn) -> Result<(), String> {
        if self.medium.nand().oob(ppn).is_none() {
            return Err(format!("{ppn:?} is valid, but erased"));
        }
        let owner = self.owner(ppn).0;
        let mapped = self.translation.lookup_any(owner);
        if mapped != Some(ppn) {
            return Err(format!(
                "{ppn:?} is valid and belongs to {owner:?}, which is mapped to {mapped:?}"
            ));
        }
        if self.medium.live_mask(ppn) == 0 {
            return Err(format!("{owner:?} is mapped to {ppn:?}, but no subpage of it is live"));
        }
        Ok(())
    }

    /// Returns where a page of the host's is.
    #[cfg(test)]
    pub(crate) fn page_at(&self, lpn: Lpn) -> Option<Ppn> {
        self.translation.lookup(lpn).0
    }

    /// The owners of all valid pages of the host's.
    fn host_pages_on_flash(&self) -> impl Iterator<Item = Lpn> {
        let valid =
            (0..self.geometry().pages()).map(Ppn).filter(|&ppn| self.medium.lines().is_valid(ppn));
        valid.map(|ppn| self.owner(ppn).0).filter(|&lpn| !self.translation.is_own(lpn))
    }

    fn check_range(&self, range: BlockRange) -> Result<(), DeviceError> {
        if self.config.device_space().is_some_and(|space| space.contains(range)) {
            return Ok(());
        }
        let blocks = self.config.address_blocks();
        match range.start.0.checked_add(range.blocks) {
            Some(end) if end <= blocks => Ok(()),
            _ => Err(DeviceError::OutOfRange { range, blocks }),
        }
    }

    /// Cuts a range at page borders.
    fn spans(&self, range: BlockRange) -> impl Iterator<Item = PageSpan> + use<> {
        let shift = self.page_shift();
        self.pages_of(range).map(move |lpn| PageSpan::of(range, lpn, shift))
    }

    /// A page has 1, 2 or 4 subpages: shifts instead of divisions, on every command.
    fn page_shift(&self) -> u32 {
        self.config.subpages().trailing_zeros()
    }

    /// The logical pages that a range touches.
    fn pages_of(&self, range: BlockRange) -> Range<u64> {
        let (start, end) = (range.start.0, range.end().0);
        let shift = self.page_shift();
        if end > start { start >> shift..((end - 1) >> shift) + 1 } else { 0..0 }
    }

    fn charge(&mut self, cost: MapCost) -> SimSpan {
        self.counters.map_accesses += u64::from(cost.accesses);
        self.config.map_access * u64::from(cost.accesses)
    }

    /// Keeps the controller busy with its map: commands that come meanwhile wait.
    #[inline]
    fn occupy_controller(&mut self, cost: MapCost) {
        let span = self.charge(cost);
        self.controller.take(self.at_work, span);
    }

    /// Returns when a core has handed requests to the flash or to the link whose data is there at
    /// `ready`.
    #[inline]
    fn hand_over(&mut self, ready: SimTime, requests: u64) -> SimTime {
        self.controller.hand_over(self.at_work, ready, requests, self.config.request_serial)
    }

    /// Moves blocks over the host link. Like a flash channel, the link is kept as a backlog of
    /// work, here from the time of issue: a read whose data is ready only later does not block it
    /// until then.
    fn link(&mut self, at: SimTime, ready: SimTime, blocks: u64) -> SimTime {
        let ready = self.hand_over(ready, blocks);
        let span = self.config.link_4k * blocks;
        transfer(&mut self.link_backlog_until, at, ready, span)
    }

    /// As [`Drive::link`], for what the host writes.
    fn link_in(&mut self, at: SimTime, ready: SimTime, blocks: u64) -> SimTime {
        match self.config.link_write_4k {
            Some(each) => {
                let ready = self.hand_over(ready, blocks);
                transfer(&mut self.write_link_until, at, ready, each * blocks)
            }
            None => self.link(at, ready, blocks),
        }
    }

    fn before_command(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if !self.medium.nand().is_powered() {
            return Err(DeviceError::PowerLost);
        }
        // A drive without room can still be read; a write will say so itself.
        unless_worn_out(self.keep_house(at))
    }

    /// Cleans in the time since the last command, if it was long, and erases what has become ready.
    fn keep_house(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let idle_from = self.last_command + self.config.idle_after;
        self.last_command = self.last_command.max(at);
        if at > idle_from {
            self.clean_while_idle(idle_from, at)?;
            self.fold_while_idle(at)?;
        }
        self.at_work = at;
        let cost = self.translation.tick(at);
        self.occupy_controller(cost);
        self.settle_between_commands(at)?;
        self.refresh_along(at)?;
        self.erase_what_is_ready(at)
    }

    fn answer(&self, query: Query) -> Result<Answer, DeviceError> {
        Ok(match query {
            Query::FreeBlocks if self.config.addresses.is_some() => {
                Answer::Blocks(self.room_in_few_pieces())
            }
            Query::FreeBlocks | Query::Zones { .. } | Query::ChangedZones { .. } => {
                return Err(query.unsupported());
            }
            Query::Held { range, most } => Answer::Addresses(self.held_blocks(range, most)),
            Query::MapBytes => Answer::Bytes(self.mapping_memory_bytes()),
            Query::Placement => Answer::Placement(Box::new(self.placement()?)),
        })
    }

    fn device_info(&self) -> DeviceInfo {
        DeviceInfo {
            blocks: self.config.address_blocks(),
            capabilities: Capabilities {
                discard: true,
                streams: match self.config.streams_by {
                    StreamsBy::Hint => self.config.streams,
                    StreamsBy::Address => 1,
                },
                inode_hints: true,
                remap: self.config.remap.map(|remap| remap.limits),
                devirtualize: self.config.device_space(),
                thin: self.config.addresses.map(|_| Thin {
                    capacity: self.config.user_blocks,
                    blocks_per_page: self.config.subpages(),
                    pages: self.capacity_pages,
                }),
                zones: None,
                reclaim_units: self.config.reclaim_units(),
            },
        }
    }
}

impl BlockDevice for Drive {
    fn info(&self) -> DeviceInfo {
        self.device_info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Query(query) = command {
            return Ok(Completion::with(at, self.answer(query)?));
        }
        // the drive's clock never goes back: a command of an earlier time comes now
        self.submit_at(at.max(self.last_command), command)
    }

    fn expect(&self, range: BlockRange) {
        // neighbours lie in one cache line or are fetched with it
        if let Some(lpn) = self.pages_of(range).next() {
            self.translation.expect(Lpn(lpn));
        }
    }
}

impl Drive {
    /// As [`BlockDevice::submit`], for the page-mapped part of a zoned drive: what that writes for
    /// itself may be of a later time than the host's next command.
    pub(crate) fn submit_at(
        &mut self,
        at: SimTime,
        command: Command<'_>,
    ) -> Result<Completion, DeviceError> {
        self.before_command(at)?;
        self.translation.begin_request(0);
        let at = self.controller.take_command(at, &command, &self.config);
        let promise = Promise::of(&command);
        let done = match command {
            Command::Devirtualize(asked) => return self.devirtualize(at, asked),
            command if self.touches_open_names(&command) => self.submit_renamed(at, command)?,
            Command::Read { range, into } => self.read(at, range, into)?,
            Command::Write { range, data, hints, fua } => {
                self.write(at, range, data, hints, fua)?
            }
            Command::Flush => self.flush(at)?,
            Command::Discard { ranges } => self.discard(at, ranges)?,
            Command::Remap { pairs, when } => self.remap(at, pairs, when)?,
            Command::UpdateHandles(handles) => self.update_handles(at, handles)?,
            refused => return Err(refused.unsupported()),
        };
        Ok(Completion::at(self.durability.given(promise, done)))
    }
}

performs_at_once!(Drive);

/// A transfer over a link that is kept as a backlog; returns its end.
pub(crate) fn transfer(
    backlog_until: &mut SimTime,
    at: SimTime,
    ready: SimTime,
    span: SimSpan,
) -> SimTime {
    let start = ready.max(*backlog_until);
    *backlog_until = at.max(*backlog_until) + span;
    start + span
}

/// The sequences of writes of a drive that finds streams by address: one for each stream but the
/// first.
fn sequences(config: &DriveConfig) -> Option<Sequences> {
    let most = usize::from(config.streams - 1);
    (config.streams_by == StreamsBy::Address && most > 0).then(|| Sequences::new(most))
}

/// For what can be left to a later command: that the drive has no room for it is no error of this
/// one.
fn unless_worn_out(result: Result<(), DeviceError>) -> Result<(), DeviceError> {
    match result {
        Err(DeviceError::ReadOnly(_)) => Ok(()),
        other => other,
    }
}
