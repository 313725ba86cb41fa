//! Sections of a zoned volume: how far each is written, when its zone is reset, and what a mount
//! finds after a power cut.
//!
//! A log writes its section from start to end, so that each write is at the zone's write pointer. A
//! section without valid blocks keeps its zone as it is until a log takes the section: the reset is
//! the command before the first write. An unmount resets all that are left (Linux 6.12, seen by
//! experiment).

use std::collections::BTreeSet;

use dovetail_block::{Scheduler, Zone, ZoneAction, ZoneState};

use super::super::super::io::Io;
use super::super::super::policy::Log;
use super::SegmentSpace;
use crate::error::Error;
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, SegNo};
use crate::section_zones::SectionZones;

/// The zones that a volume's sections lie in.
#[derive(Debug)]
pub(super) struct ZoneMap {
    layout: SectionZones,
    /// Blocks of each section that are written in its zone; 0 in conventional zones.
    written: Vec<u32>,
    /// Sections whose zone was found neither empty nor full.
    unfinished: BTreeSet<u32>,
    /// Sections whose zone cannot be written any more.
    worn: BTreeSet<u32>,
    /// Free sections whose zone is not empty: to be reset before they are written.
    dead: BTreeSet<u32>,
}

impl ZoneMap {
    /// The zones as the device reports them.
    pub(super) fn read<D: Scheduler>(
        io: &mut Io<D>,
        layout: SectionZones,
        sections: u32,
    ) -> Result<Self, Error> {
        let mut map = Self {
            layout,
            written: vec![0; sections as usize],
            unfinished: BTreeSet::new(),
            worn: BTreeSet::new(),
            dead: BTreeSet::new(),
        };
        for zone in dovetail_block::zones(io.device_mut())? {
            let section = layout.section_at(zone.start).filter(|&section| section < sections);
            if let (Some(section), Some(state)) = (section, zone.state) {
                map.note(section, state, &zone);
            }
        }
        Ok(map)
    }

    fn note(&mut self, section: u32, state: ZoneState, zone: &Zone) {
        let capacity = self.layout.capacity();
        let written = u32::try_from(zone.written()).unwrap_or(capacity).min(capacity);
        match state {
            ZoneState::Empty => {}
            ZoneState::Full => self.written[section as usize] = capacity,
            ZoneState::Offline => drop(self.worn.insert(section)),
            ZoneState::ReadOnly => {
                self.written[section as usize] = written;
                self.worn.insert(section);
            }
            _ => {
                self.written[section as usize] = written;
                self.unfinished.insert(section);
            }
        }
    }

    pub(super) fn layout(&self) -> &SectionZones {
        &self.layout
    }

    fn written(&self, section: u32) -> u32 {
        self.written[section as usize]
    }

    /// A log has written up to here.
    pub(super) fn advance(&mut self, section: u32, blocks: u32) {
        if self.layout.is_sequential(section) {
            self.written[section as usize] = blocks;
        }
    }

    /// The section has become free.
    pub(super) fn note_free(&mut self, section: u32) {
        if self.written(section) > 0 && !self.worn.contains(&section) {
            self.dead.insert(section);
        }
    }

    fn act<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        section: u32,
        action: ZoneAction,
    ) -> Result<(), Error> {
        io.zone(self.layout.start(section), action)?;
        self.dead.remove(&section);
        self.unfinished.remove(&section);
        if action == ZoneAction::Reset {
            self.written[section as usize] = 0; // of a finished one it still tells what is lost
        }
        Ok(())
    }
}

/// A log's position against the write pointer of its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// In a conventional zone.
    Anywhere,
    /// At the start of an empty zone.
    Fresh,
    /// At the zone's next block.
    AtPointer,
    /// Elsewhere.
    Elsewhere,
}

impl SegmentSpace {
    /// Blocks of a segment that can be written.
    pub(super) fn usable_blocks(&self, segno: SegNo) -> u32 {
        self.zones.as_ref().map_or(BLOCKS_IN_SEGMENT, |zones| zones.layout.usable_blocks(segno))
    }

    /// Blocks of a section that can be written.
    pub(super) fn section_blocks(&self) -> u32 {
        let whole = self.segments.per_section() * BLOCKS_IN_SEGMENT;
        self.zones.as_ref().map_or(whole, |zones| zones.layout.capacity())
    }

    /// Segments whose zone is worn out are never taken.
    pub(super) fn set_worn_aside(&mut self) {
        let Some(zones) = &self.zones else { return };
        for &section in &zones.worn {
            self.segments.segments_of(section).for_each(|segno| self.segments.take(segno));
        }
    }

    /// The zone of a section cannot be written any more.
    pub(super) fn is_worn(&self, section: u32) -> bool {
        self.zones.as_ref().is_some_and(|zones| zones.worn.contains(&section))
    }

    /// Segments that hold nothing and are set aside: a checkpoint counts them as free, since it
    /// knows of no zone.
    pub(super) fn worn_segments(&self) -> u32 {
        let Some(zones) = &self.zones else { return 0 };
        let segments = zones.worn.iter().flat_map(|&section| self.segments.segments_of(section));
        let holds_nothing =
            |segno: &SegNo| self.segments.get(*segno).checkpointed == 0 && !self.is_current(*segno);
        let is_usable = |segno: &SegNo| zones.layout.usable_blocks(*segno) > 0;
        segments.filter(is_usable).filter(holds_nothing).count() as u32
    }

    /// Sections that are free and whose zones are not empty wait to be reset.
    pub(super) fn note_dead_zones(&mut self) {
        let Some(zones) = &mut self.zones else { return };
        for section in 0..self.segments.sections() {
            if self.segments.is_section_free(section) {
                zones.note_free(section);
            }
        }
    }

    /// Blocks of the log's section from its start to the log's position.
    fn blocks_behind(&self, log: Log) -> (u32, u32) {
        let current = &self.logs[log.index()];
        let section = self.segments.section_of(current.segno);
        let first = section * self.segments.per_section();
        (section, (current.segno.0 - first) * BLOCKS_IN_SEGMENT + current.next)
    }

    fn position_of(&self, log: Log, zones: &ZoneMap) -> Position {
        let (section, behind) = self.blocks_behind(log);
        match zones.written(section) {
            _ if !zones.layout.is_sequential(section) => Position::Anywhere,
            _ if zones.worn.contains(&section) => Position::Elsewhere,
            0 if behind == 0 => Position::Fresh,
            written if written == behind && !self.logs[log.index()].in_holes => Position::AtPointer,
            _ => Position::Elsewhere,
        }
    }

    /// The log has written nothing where it is: a recovery finds nothing there.
    pub(super) fn is_fresh(&self, log: Log) -> bool {
        let fresh = |zones| self.position_of(log, zones) == Position::Fresh;
        self.zones.as_ref().is_some_and(fresh)
    }

    /// Makes a segment's zone ready for its first block: resets it if something is left there.
    pub(super) fn prepare_zone<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        segno: SegNo,
    ) -> Result<(), Error> {
        let section = self.segments.section_of(segno);
        let is_first = segno.0 == section * self.segments.per_section();
        match &mut self.zones {
            Some(zones) if is_first && zones.written(section) > 0 => {
                zones.act(io, section, ZoneAction::Reset)
            }
            _ => Ok(()),
        }
    }

    /// Resets up to `count` zones that wait for it; `true` if there were any.
    pub(super) fn reset_dead<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        count: usize,
    ) -> Result<bool, Error> {
        let Some(zones) = &mut self.zones else { return Ok(false) };
        // a recovery may have found blocks in what the checkpoint had as free
        zones.dead.retain(|&section| self.segments.is_section_free(section));
        let dead: Vec<u32> = zones.dead.iter().copied().take(count).collect();
        dead.iter().try_for_each(|&section| zones.act(io, section, ZoneAction::Reset))?;
        Ok(!dead.is_empty())
    }

    /// Zones wait to be reset, and the background does that: as in Linux only if a zone is as small
    /// as a segment.
    pub(super) fn has_dead_for_background(&self) -> bool {
        let small = self.segments.per_section() == 1;
        self.zones.as_ref().is_some_and(|zones| small && !zones.dead.is_empty())
    }

    /// Moves logs whose zone cannot be written where they stand, and with `after_cut` all that have
    /// written into a zone: what lies behind them may be lost. `true` if any moved.
    pub(crate) fn move_from_pointers<D: Scheduler>(
        &mut self,
        io: &mut Io<D>,
        after_cut: bool,
    ) -> Result<bool, Error> {
        let mut moved = false;
        for log in Log::ALL {
            let Some(zones) = &self.zones else { return Ok(false) };
            let moves = match self.position_of(log, zones) {
                Position::Anywhere | Position::Fresh => false,
                Position::AtPointer => after_cut,
                Position::Elsewhere => true,
            };
            if moves {
                self.move_log(io, log)?;
                moved = true;
            }
        }
        self.set_worn_aside(); // a log may have left such a zone
        Ok(moved)
    }

    /// Sections are zones of the device.
    pub(crate) fn is_zoned(&self) -> bool {
        self.zones.is_some()
    }

    /// The block was never written, or lost: it lies beyond the write pointer of its zone.
    pub(crate) fn is_beyond_pointer(&self, address: BlockAddr) -> bool {
        let (section, block) = self.segments.position_in_section(address);
        let beyond = |zones: &ZoneMap| {
            zones.layout.is_sequential(section) && block >= zones.written(section)
        };
        self.zones.as_ref().is_some_and(beyond)
    }

    /// The pointers of zones that lack a block are kept until a recovery is durable: the next one,
    /// if the power is cut again, has to find that the block is lost, and a finished zone does not
    /// say so. A device that has no more active zones than those and the logs has them finished.
    fn keeps_pointers(&self) -> bool {
        let limit = self.zones.as_ref().and_then(|zones| zones.layout.limit());
        let lacking = self.recovery.lacking().len();
        limit.is_none_or(|(most, _)| lacking + Log::ALL.len() <= most as usize)
    }

    /// Ends zones in which no log goes on, so that the device counts them no more as active: those
    /// with valid blocks, or blocks that a recovery needs, are finished; those in which neither the
    /// volume nor its last checkpoint has anything are reset.
    pub(crate) fn repair_zones<D: Scheduler>(&mut self, io: &mut Io<D>) -> Result<(), Error> {
        let keeps_pointers = self.keeps_pointers();
        for section in 0..self.segments.sections() {
            let has_log =
                self.logs.iter().any(|log| self.segments.section_of(log.segno) == section);
            let is_in = |segno| self.segments.section_of(segno) == section;
            let is_needed = self.recovery.guarded().any(is_in);
            let is_kept = keeps_pointers && self.recovery.lacking().contains(&section);
            let Some(zones) = &mut self.zones else { return Ok(()) };
            if has_log || is_kept || zones.written(section) == 0 || zones.worn.contains(&section) {
                continue;
            }
            if self.segments.is_section_empty(section) && !is_needed {
                zones.act(io, section, ZoneAction::Reset)?;
            } else if zones.unfinished.contains(&section)
                && (is_needed || self.segments.section_valid(section) > 0)
            {
                zones.act(io, section, ZoneAction::Finish)?;
            }
        }
        Ok(())
    }
}
