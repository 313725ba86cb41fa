//! Power on after a cut: the records say which zones are active, their pages how far they are.

use dovetail_block::{
    BlockRange, Command, Content, DeviceError, Hints, Lba, ZoneState, ZoneTable, ZoneWindow,
};
use dovetail_nand::{BackingStore, Nand};
use dovetail_time::{SimSpan, SimTime};

use super::config::ZoneLayout;
use super::records::{Record, Recorded, decode, records_per_block};
use super::stash::Header;
use super::{Active, Held, OwnWrites, ZonedDrive};
use crate::config::{ConfigError, DriveConfig};
use crate::drive::{Drive, UnrecoveredDrive};
use crate::stats::Counters;

/// A zoned drive whose power was cut: only its flash is left.
#[derive(Debug)]
pub struct UnrecoveredZonedDrive {
    config: DriveConfig,
    layout: ZoneLayout,
    nand: Nand,
    inner: UnrecoveredDrive,
    kept: Vec<Kept>,
}

/// The blocks of a zone that capacitors have kept.
#[derive(Clone, Debug)]
struct Kept {
    zone: u32,
    programmed: u64,
    written: u64,
    held: Vec<Option<(Content, Hints)>>,
}

/// The findings of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZonedRecovery {
    /// Zones whose pages were looked at, since they were being written.
    pub zones_scanned: u32,
    /// Pages read to find their write pointers.
    pub pages_read: u64,
    /// Blocks that were not on their zone's flash, but kept by a flush or by capacitors.
    pub blocks_kept: u64,
    /// Duration of the recovery.
    pub duration: SimSpan,
}

impl ZonedDrive {
    /// Remembers from now on what [`ZonedDrive::into_unrecovered_at`] needs; memory grows with every
    /// command: for tests.
    pub fn remember_operations(&mut self) {
        self.nand.remember_operations();
        self.inner.remember_operations();
    }

    /// Start and end of each change of the flash that is remembered.
    pub fn remembered_operations(&self) -> impl Iterator<Item = (SimTime, SimTime)> {
        self.nand.remembered_operations().chain(self.inner.remembered_operations())
    }

    /// Cuts the power, if it is not gone already.
    pub fn into_unrecovered(self) -> UnrecoveredZonedDrive {
        self.switched_off(None)
    }

    /// Cuts the power at a time: flash operations under way then are torn, those that had not begun
    /// never happen.
    pub fn into_unrecovered_at(self, at: SimTime) -> UnrecoveredZonedDrive {
        self.switched_off(Some(at))
    }

    fn switched_off(mut self, at: Option<SimTime>) -> UnrecoveredZonedDrive {
        let kept = self.kept_by_capacitors();
        let inner = match at.filter(|_| !self.config.power_loss_protection) {
            Some(at) => {
                self.nand.cut_power_at(at);
                self.inner.into_unrecovered_at(at)
            }
            None => {
                self.nand.cut_power();
                self.inner.into_unrecovered()
            }
        };
        UnrecoveredZonedDrive {
            config: self.config,
            layout: self.layout,
            nand: self.nand,
            inner,
            kept,
        }
    }

    fn kept_by_capacitors(&self) -> Vec<Kept> {
        if !self.config.power_loss_protection {
            return Vec::new();
        }
        let content = |held: &Held| (self.nand.content(held.token).unwrap_or_default(), held.hints);
        let kept = |(&zone, active): (&u32, &Active)| Kept {
            zone,
            programmed: active.programmed,
            written: self.table.written(zone),
            held: active.held.iter().map(|held| held.as_ref().map(content)).collect(),
        };
        self.active.iter().map(kept).collect()
    }

    fn adopt(&mut self, found: Found, report: &mut ZonedRecovery) {
        let Found { zone, programmed, held, .. } = found;
        let slot = self.records[zone as usize].slot;
        let mut active = Active::new(slot, programmed, SimTime::ZERO, false);
        for block in held {
            report.blocks_kept += u64::from(block.is_some());
            active.held.push_back(block.map(|(content, hints, stashed)| Held {
                token: self.nand.intern(&content),
                hints,
                stashed,
            }));
        }
        self.slots[slot as usize] = None;
        self.active.insert(zone, active);
    }
}

/// An active zone as it was found.
struct Found {
    zone: u32,
    programmed: u64,
    written: u64,
    /// Content, hints, and whether the zone's place has it.
    held: Vec<Option<(Content, Hints, bool)>>,
}

impl Found {
    fn holds_something(&self) -> bool {
        self.held.iter().any(Option::is_some)
    }
}

impl UnrecoveredZonedDrive {
    /// The drive around flash that was kept: that of the page-mapped part, and that of the zones.
    ///
    /// # Errors
    /// A configuration with which no drive can work.
    pub(crate) fn from_flash(
        config: DriveConfig,
        inner: Nand,
        nand: Nand,
    ) -> Result<Self, ConfigError> {
        let layout = ZoneLayout::new(&config)?;
        let inner = UnrecoveredDrive::from_flash(layout.inner.clone(), inner);
        Ok(Self { config, layout, nand, inner, kept: Vec::new() })
    }

    /// Switches the power on and finds the zones.
    ///
    /// # Errors
    /// The page-mapped part could not be read.
    pub fn recover(self) -> Result<(ZonedDrive, ZonedRecovery), DeviceError> {
        self.recover_with(None)
    }

    /// The same, and keeps the flash in stores from then on: that of the page-mapped part, and that
    /// of the zones.
    pub(crate) fn recover_with(
        mut self,
        backing: Option<[Box<dyn BackingStore>; 2]>,
    ) -> Result<(ZonedDrive, ZonedRecovery), DeviceError> {
        self.nand.power_on();
        let (mut inner, _) = self.inner.recover().map_err(|failed| failed.1)?;
        if let Some([of_inner, own]) = backing {
            inner.back_with(of_inner);
            self.nand.back_with(own);
        }
        let own = self.layout.zones.first.0;
        let records = read_records(&mut inner, &self.layout, own)?;
        let mut report = ZonedRecovery::default();
        let mut found = Vec::new();
        for (zone, record) in (0..).zip(&records) {
            if !matches!(record.state, Recorded::Active | Recorded::ReadOnly) {
                continue;
            }
            let programmed = programmed_blocks(&self.layout, &self.nand, zone, record);
            report.zones_scanned += 1;
            report.pages_read += search_reads(&self.layout);
            let kept = self.kept.iter().position(|kept| kept.zone == zone);
            found.push(match kept.map(|index| self.kept.swap_remove(index)) {
                Some(kept) => from_capacitors(kept),
                None => {
                    let place = own + slot_start(&records, &self.layout, record.slot);
                    from_place(&mut inner, &self.layout, zone, record, place, programmed)?
                }
            });
        }
        let capacity = self.layout.zones.capacity;
        let states = (0..).zip(&records).map(|(zone, record): (u32, _)| {
            let active = found.iter().find(|found| found.zone == zone);
            match record.state {
                Recorded::Empty => (ZoneState::Empty, 0),
                Recorded::Full => (ZoneState::Full, record.written),
                Recorded::ReadOnly => {
                    (ZoneState::ReadOnly, active.map_or(0, |found| found.written))
                }
                Recorded::Active => match (active.map_or(0, |found| found.written), record.ends_at)
                {
                    (written, None) if written >= capacity => (ZoneState::Full, capacity),
                    (written, Some(end)) if written >= end => (ZoneState::Full, end),
                    (0, _) if !active.is_some_and(Found::holds_something) => (ZoneState::Empty, 0),
                    (written, _) => (ZoneState::Closed, written),
                },
            }
        });
        let table = ZoneTable::found(self.layout.zones, states.collect::<Vec<_>>());
        report.duration = inner.idle_from().since(SimTime::ZERO)
            + search_time(&self.config, &self.layout) * u64::from(report.zones_scanned);
        let mut drive =
            ZonedDrive::assemble(self.config, self.layout, self.nand, inner, table, records);
        for found in found {
            drive.take_over(found, &mut report)?;
        }
        drive.counters = Counters::default();
        (drive.recovered, drive.own) = (drive.inner.counters(), OwnWrites::default());
        Ok((drive, report))
    }
}

impl ZonedDrive {
    /// Goes on with a zone as it was found. Full ones need nothing more, and those of which nothing
    /// is left give back what they had.
    fn take_over(&mut self, found: Found, report: &mut ZonedRecovery) -> Result<(), DeviceError> {
        let (zone, capacity) = (found.zone, self.layout.zones.capacity);
        let record = &mut self.records[zone as usize];
        let is_active = record.state == Recorded::Active;
        if is_active && found.programmed >= record.ends_at.unwrap_or(capacity) {
            // its place may be another zone's since
            self.to_record.push_back((SimTime::ZERO, zone));
            return Ok(());
        }
        if self.table.state(zone) == ZoneState::Empty {
            let generation = record.generation + 1;
            let freed = std::mem::replace(record, Record { generation, ..Record::default() });
            let done = self.write_record(SimTime::ZERO, zone)?;
            self.to_erase.extend(freed.blocks.into_iter().map(|block| (done, block)));
            return Ok(());
        }
        if record.window {
            self.table.restore_window(zone);
        }
        self.adopt(found, report);
        Ok(())
    }
}

fn slot_start(records: &[Record], layout: &ZoneLayout, slot: u32) -> u64 {
    let record_blocks =
        (records.len() as u64).div_ceil(records_per_block(layout.blocks_per_zone()));
    record_blocks + u64::from(slot) * layout.slot_blocks()
}

fn read_records(
    inner: &mut Drive,
    layout: &ZoneLayout,
    start: u64,
) -> Result<Vec<Record>, DeviceError> {
    let (zones, blocks) = (layout.zones.count as usize, layout.blocks_per_zone());
    let each = records_per_block(blocks) as usize;
    let mut records = Vec::with_capacity(zones);
    for index in 0..zones.div_ceil(each) {
        let content = read_own(inner, start + index as u64, 1)?.remove(0);
        let most = each.min(zones - records.len());
        records.extend(decode(&content, blocks, most));
    }
    Ok(records)
}

fn read_own(inner: &mut Drive, start: u64, blocks: u64) -> Result<Vec<Content>, DeviceError> {
    let mut contents = vec![Content::Empty; blocks as usize];
    let range = BlockRange::new(Lba(start), blocks);
    let command = Command::Read { range, into: Some(&mut contents) };
    inner.submit_at(SimTime::ZERO, command)?;
    Ok(contents)
}

/// Blocks of an active zone that are on its flash, up to the first page that is missing or torn;
/// only whole units, since a part of one cannot be gone on with.
fn programmed_blocks(layout: &ZoneLayout, nand: &Nand, zone: u32, record: &Record) -> u64 {
    let first = u64::from(zone) * u64::from(layout.pages_per_zone());
    let is_there = |index: u32| {
        let place = layout.place(index);
        let ppn = nand.geometry().ppn(record.blocks[place.block], place.page);
        nand.oob(ppn).is_some_and(|oob| oob.lpn.0 == first + u64::from(index))
    };
    let pages = (0..layout.pages_per_zone()).take_while(|&index| is_there(index)).count() as u32;
    u64::from(pages - pages % layout.unit) * u64::from(layout.subpages)
}

/// Pages read to find how far a zone is: by halves in each of its erase blocks.
fn search_reads(layout: &ZoneLayout) -> u64 {
    let steps = u32::BITS - layout.nand.geometry.pages_per_block.leading_zeros();
    u64::from(layout.blocks_per_zone() * steps)
}

/// The time of that, on all its dies at once.
fn search_time(config: &DriveConfig, layout: &ZoneLayout) -> SimSpan {
    let dies = u64::from(layout.dies);
    config.nand.timing.read * search_reads(layout).div_ceil(dies)
}

fn from_capacitors(kept: Kept) -> Found {
    let held =
        kept.held.into_iter().map(|held| held.map(|(content, hints)| (content, hints, false)));
    let Kept { zone, programmed, written, .. } = kept;
    Found { zone, programmed, written, held: held.collect() }
}

fn from_place(
    inner: &mut Drive,
    layout: &ZoneLayout,
    zone: u32,
    record: &Record,
    place: u64,
    programmed: u64,
) -> Result<Found, DeviceError> {
    let nothing = Found { zone, programmed, written: programmed, held: Vec::new() };
    let header = Header::decode(&read_own(inner, place, 1)?[0]);
    let Some(header) = header.filter(|header| {
        header.zone == zone
            && header.generation == record.generation
            && header.programmed <= programmed
            && header.written + window_blocks(layout.zones.window) > programmed
    }) else {
        return Ok(nothing);
    };
    let mut held = Vec::new();
    for (offset, present) in (header.programmed..).zip(&header.present) {
        if offset < programmed {
            continue;
        }
        let block = place + 1 + offset % layout.held_blocks();
        held.push(match present {
            true => Some((read_own(inner, block, 1)?.remove(0), Hints::default(), true)),
            false => None,
        });
    }
    Ok(Found { zone, programmed, written: header.written.max(programmed), held })
}

fn window_blocks(window: Option<ZoneWindow>) -> u64 {
    window.map_or(0, |window| 2 * window.blocks)
}
