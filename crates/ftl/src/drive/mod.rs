//! The drive: carries out what the host commands and what the policies decide.

mod collect;
mod discard;
mod frontier;
mod journal;
mod nvm;
mod place;
mod read;
mod recover;
mod remap;
mod remap_log;
mod reverse;
mod said;
mod write;

use std::collections::VecDeque;

use dovetail_block::{BlockDevice, BlockRange, Capabilities, Command, Completion, DeviceError, DeviceInfo};
use dovetail_nand::{BlockId, DieUse, FaultPlan, Geometry, Lpn, Nand, NandError, Ppn, Seq};
use dovetail_time::{Rng, SimSpan, SimTime};

use crate::bits::Bits;
use crate::buffer::WriteBuffer;
use crate::config::{ConfigError, DriveConfig};
use crate::lines::{Found, LineId, Lines};
use crate::mapping::{MapCost, Mapping};
use crate::remap::{RemapConfig, RemapStore};
use crate::stats::Counters;
use collect::Run;
use frontier::Frontier;
use journal::Journal;
use remap::Remaps;
use reverse::ReverseMap;

pub use recover::{RecoveryReport, UnrecoveredDrive};
pub(crate) use remap_log::table_pages as reverse_table_pages;

/// Logical pages that the drive keeps for itself, above the host's.
pub(crate) fn system_pages(config: &DriveConfig) -> u32 {
    journal::journal_pages(config) + remap_log::log_pages(config)
}

/// A drive that is switched on.
///
/// Commands must come in the order of their times. A command changes the drive's state at once; the time that
/// it takes is what its flash operations reserve. After [`DeviceError::PowerLost`] the drive answers nothing
/// else; [`Drive::into_unrecovered`] is the way back.
#[derive(Debug)]
pub struct Drive {
    config: DriveConfig,
    nand: Nand,
    map: Box<dyn Mapping>,
    lines: Lines,
    frontiers: Vec<Frontier>,
    buffer: WriteBuffer,
    journal: Journal,
    remaps: Option<Box<Remaps>>,
    /// Pages of several blocks: one bit a block, whether the host has data there.
    live: Option<Bits>,
    seq: Seq,
    run: Option<Run>,
    gc_credit: u64,
    /// Lines whose pages have moved, and when all the moves are durable.
    awaiting_erase: VecDeque<(SimTime, LineId)>,
    /// Bad blocks that may still hold valid pages.
    condemned: Vec<BlockId>,
    runs_since_wear_check: u32,
    /// When the last program issued so far ends: for the host's data, and for all.
    host_programs_end: SimTime,
    programs_end: SimTime,
    last_command: SimTime,
    link_backlog_until: SimTime,
    counters: Counters,
    rng: Rng,
}

/// A run of parts of one page within a command.
#[derive(Clone, Copy, Debug)]
struct Piece {
    lpn: Lpn,
    first_part: usize,
    parts: usize,
    /// Index of the piece's first block within the command.
    offset: u64,
}

impl Piece {
    /// One bit for each part of the page that lies in the piece.
    fn mask(self) -> u8 {
        (((1u16 << self.parts) - 1) << self.first_part) as u8
    }
}

impl Drive {
    /// A new, empty drive.
    ///
    /// # Errors
    /// A configuration with which no drive can work.
    pub fn new(config: DriveConfig) -> Result<Self, ConfigError> {
        let config = config.checked()?;
        let nand = Nand::new(config.nand.clone())?;
        let mut drive = Self::assemble(config, nand);
        for line in drive.lines.ids() {
            let missing = drive.missing_pages(line);
            drive.lines.found(line, 0, missing, Found::Erased);
        }
        Ok(drive)
    }

    /// The parts around a flash, with an empty map and no line in any state yet.
    fn assemble(config: DriveConfig, nand: Nand) -> Self {
        let logical_pages = config.user_pages() + system_pages(&config);
        let lines = Lines::new(config.nand.geometry, config.shape);
        let groups = lines.groups();
        Self {
            map: (config.scheme.build)(logical_pages),
            frontiers: (0..config.frontiers()).map(|_| Frontier::new(groups)).collect(),
            buffer: WriteBuffer::new(config.buffer_pages as usize),
            journal: Journal::new(&config),
            remaps: Remaps::new(&config),
            live: (config.parts() > 1).then(|| Bits::new(config.user_blocks)),
            seq: Seq(0),
            run: None,
            gc_credit: 0,
            awaiting_erase: VecDeque::new(),
            condemned: Vec::new(),
            runs_since_wear_check: 0,
            host_programs_end: SimTime::ZERO,
            programs_end: SimTime::ZERO,
            last_command: SimTime::ZERO,
            link_backlog_until: SimTime::ZERO,
            counters: Counters::default(),
            rng: Rng::new(config.seed),
            lines,
            nand,
            config,
        }
    }

    /// Tells `keeper` of every change of the flash from now on.
    pub(crate) fn keep_in(&mut self, keeper: Box<dyn dovetail_nand::Keeper>) {
        self.nand.keep_in(keeper);
    }

    /// What the drive is made of.
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// The layout of its flash.
    pub fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Its lines: what is free, filled and worn.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// What each die has done so far.
    pub fn die_use(&self) -> impl Iterator<Item = DieUse> {
        self.nand.die_use()
    }

    /// How often each block was erased, in the order of block numbers.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> {
        (0..self.nand.geometry().blocks()).map(|block| self.nand.erases(BlockId(block)))
    }

    /// Blocks that are marked bad, when new or since.
    pub fn bad_blocks(&self) -> u32 {
        (0..self.nand.geometry().blocks()).filter(|&block| self.nand.is_bad(BlockId(block))).count() as u32
    }

    /// Bytes of the drive's own memory that its map takes now.
    pub fn mapping_memory_bytes(&self) -> u64 {
        self.map.memory_bytes()
    }

    /// Bytes of the drive's own memory for the rest: validity of pages and parts, and the write buffer.
    pub fn other_memory_bytes(&self) -> u64 {
        let page_bytes = self.config.nand.geometry.page_bytes;
        let live = self.live.as_ref().map_or(0, Bits::memory_bytes);
        let reverse = self.remaps.as_ref().map_or(0, |remaps| remaps.memory_bytes());
        self.lines.memory_bytes() + live + reverse + self.buffer.memory_bytes(page_bytes)
    }

    /// Bytes of byte-addressable non-volatile memory that the drive needs: the reverse map of every page, the records of
    /// discards, and the entries of the longest remap.
    pub fn non_volatile_bytes(&self) -> u64 {
        const RECORD_BYTES: u64 = 24;
        const PAIR_BYTES: u64 = 12;
        match self.config.remap {
            Some(RemapConfig { store: RemapStore::NonVolatile { discard_records, .. }, .. }) => {
                let longest = self.config.remap.map_or(0, |remap| remap.most_pairs());
                let table = ReverseMap::table_bytes(self.geometry().pages());
                table + u64::from(discard_records) * RECORD_BYTES + longest * PAIR_BYTES
            }
            _ => 0,
        }
    }

    /// Bytes of host memory that the model of the flash takes, without real bytes written to it.
    pub fn flash_model_bytes(&self) -> u64 {
        self.nand.memory_bytes()
    }

    /// Reads, programs and erases of its flash so far: the numbers at which a power cut can be planned.
    pub fn flash_operations(&self) -> u64 {
        self.nand.operations()
    }

    /// Puts faults over the flash.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.nand.set_faults(plan);
    }

    /// When all that the drive was told so far is through.
    pub fn idle_from(&self) -> SimTime {
        self.nand.idle_from().max(self.link_backlog_until)
    }

    /// Remembers from now on what [`Drive::into_unrecovered_at`] needs; memory grows with every command: for tests.
    pub fn remember_operations(&mut self) {
        self.nand.remember_operations();
        if let Some(nvm) = self.nvm_mut() {
            nvm.remember();
        }
    }

    /// Cuts the power at a time: flash operations under way then are torn, those that had not begun never happen.
    pub fn into_unrecovered_at(mut self, at: SimTime) -> UnrecoveredDrive {
        self.nand.cut_power_at(at);
        self.switched_off(Some(at))
    }

    /// Cuts the power, if it is not gone already.
    pub fn into_unrecovered(mut self) -> UnrecoveredDrive {
        self.nand.cut_power();
        self.switched_off(None)
    }

    fn switched_off(self, at: Option<SimTime>) -> UnrecoveredDrive {
        let pending = self.journal.into_pending();
        let nvm = self.remaps.and_then(|remaps| remaps.into_survivor(at, pending));
        UnrecoveredDrive::new(self.config, self.nand, nvm)
    }

    /// Checks that map, validity and live parts agree with each other and with the flash.
    ///
    /// # Errors
    /// The first disagreement, in words. Meant for tests: it looks at every page.
    pub fn check(&self) -> Result<(), String> {
        let mut valid = vec![0u32; self.lines.count() as usize];
        for lpn in (0..self.config.user_pages() + system_pages(&self.config)).map(Lpn) {
            let Some(ppn) = self.map.lookup(lpn).0 else { continue };
            self.check_page(lpn, ppn)?;
            valid[self.lines.line_of(ppn).0 as usize] += 1;
        }
        for line in self.lines.ids() {
            if self.lines.valid(line) != valid[line.0 as usize] {
                let (kept, mapped) = (self.lines.valid(line), valid[line.0 as usize]);
                return Err(format!("line {line:?} counts {kept} valid pages, {mapped} are mapped"));
            }
        }
        self.check_reverse()
    }

    fn check_page(&self, lpn: Lpn, ppn: Ppn) -> Result<(), String> {
        if self.nand.oob(ppn).is_none() {
            return Err(format!("{lpn:?} is mapped to {ppn:?}, which is erased"));
        }
        let owner = self.owner(ppn).0;
        if owner != lpn {
            return Err(format!("{lpn:?} is mapped to {ppn:?}, which belongs to {owner:?}"));
        }
        if !self.lines.is_valid(ppn) {
            return Err(format!("{lpn:?} is mapped to {ppn:?}, which counts as invalid"));
        }
        if lpn.0 < self.config.user_pages() && self.live_mask(lpn) == 0 {
            return Err(format!("{lpn:?} is mapped to {ppn:?}, but no part of it is live"));
        }
        Ok(())
    }

    fn check_range(&self, range: BlockRange) -> Result<(), DeviceError> {
        let blocks = self.config.user_blocks;
        match range.start.0.checked_add(range.blocks) {
            Some(end) if end <= blocks => Ok(()),
            _ => Err(DeviceError::OutOfRange { range, blocks }),
        }
    }

    /// Cuts a range at page borders.
    fn pieces(&self, range: BlockRange) -> impl Iterator<Item = Piece> + use<> {
        // A page has 1, 2 or 4 parts: shifts instead of divisions, on every command.
        let shift = self.config.parts().trailing_zeros();
        let (start, end) = (range.start.0, range.end().0);
        let pages = if end > start { start >> shift..((end - 1) >> shift) + 1 } else { 0..0 };
        pages.map(move |lpn| {
            let (from, to) = (start.max(lpn << shift), end.min((lpn + 1) << shift));
            Piece {
                lpn: Lpn(lpn as u32),
                first_part: (from - (lpn << shift)) as usize,
                parts: (to - from) as usize,
                offset: from - start,
            }
        })
    }

    /// Which parts of a page hold data, one bit a part. Pages of the drive's own are whole.
    fn live_mask(&self, lpn: Lpn) -> u8 {
        let parts = self.config.parts();
        match &self.live {
            Some(live) if lpn.0 < self.config.user_pages() => {
                let first = u64::from(lpn.0) * u64::from(parts);
                let bit = |part: u32| {
                    let block = first + u64::from(part);
                    u8::from(block < self.config.user_blocks && live.get(block)) << part
                };
                (0..parts).map(bit).sum()
            }
            _ => ((1u16 << parts) - 1) as u8,
        }
    }

    fn charge(&mut self, cost: MapCost) -> SimSpan {
        self.counters.map_accesses += u64::from(cost.accesses);
        self.config.map_access * u64::from(cost.accesses)
    }

    /// Moves blocks over the host link. Like a flash channel, the link is kept as a backlog of work, here from
    /// the time of issue: a read whose data is ready only later does not block it until then.
    fn link(&mut self, at: SimTime, ready: SimTime, blocks: u64) -> SimTime {
        let span = self.config.link_4k * blocks;
        let start = ready.max(self.link_backlog_until);
        self.link_backlog_until = at.max(self.link_backlog_until) + span;
        start + span
    }

    fn before_command(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if !self.nand.is_powered() {
            return Err(DeviceError::PowerLost);
        }
        match self.keep_house(at) {
            // A drive without room can still be read; a write will say so itself.
            Err(DeviceError::ReadOnly(_)) => Ok(()),
            other => other,
        }
    }

    /// Cleans in the time since the last command, if it was long, and erases what has become ready.
    fn keep_house(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let idle_from = self.last_command + self.config.idle_after;
        self.last_command = self.last_command.max(at);
        if at > idle_from {
            self.clean_while_idle(idle_from, at)?;
        }
        self.erase_what_is_ready(at)
    }

    fn device_info(&self) -> DeviceInfo {
        DeviceInfo {
            blocks: self.config.user_blocks,
            capabilities: Capabilities {
                discard: true,
                streams: self.config.streams,
                inode_hints: true,
                remap: self.config.remap.map(|remap| remap.limits),
                thin: None,
            },
        }
    }
}

impl BlockDevice for Drive {
    fn info(&self) -> DeviceInfo {
        self.device_info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.before_command(at)?;
        let at = at + self.config.command;
        let done = match command {
            Command::Read { range, into } => self.read(at, range, into)?,
            Command::Write { range, data, hints, fua } => self.write(at, range, data, hints, fua)?,
            Command::Flush => self.flush(at)?,
            Command::Discard { ranges } => self.discard(at, ranges)?,
            Command::Remap { pairs, when } => self.remap(at, pairs, when)?,
        };
        Ok(Completion { done })
    }
}

/// An error of the flash that the drive cannot work around.
fn device_error(error: &NandError) -> DeviceError {
    match error {
        NandError::PowerLost => DeviceError::PowerLost,
        other => DeviceError::Internal(other.to_string()),
    }
}
