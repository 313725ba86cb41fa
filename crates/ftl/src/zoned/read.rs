//! Reads.

use dovetail_block::{BLOCK_SIZE, BlockRange, Command, Content, DeviceError, Lba};
use dovetail_nand::{NandError, Ppn};
use dovetail_time::SimTime;

use super::{ZonedDrive, in_page};
use crate::stats::ReadCause;

impl ZonedDrive {
    /// Gives blocks to the host; returns when they have arrived there. Blocks of a zone that were
    /// not written are empty.
    pub(super) fn read(
        &mut self,
        at: SimTime,
        range: BlockRange,
        mut into: Option<&mut [Content]>,
    ) -> Result<SimTime, DeviceError> {
        self.check_range(range, into.as_ref().map_or(range.blocks, |into| into.len() as u64))?;
        self.table.check_read(range)?;
        let zones = self.layout.zones;
        let (mut next, mut ready) = (range.start, at);
        while next < range.end() {
            let left = range.end().0 - next.0;
            let from = (next.0 - range.start.0) as usize;
            let blocks = match zones.index(next) {
                Some(zone) => left.min(zones.start(zone + 1).0 - next.0),
                None => left.min(zones.first.0 - next.0),
            };
            let part = into.as_deref_mut().map(|into| &mut into[from..from + blocks as usize]);
            let piece = BlockRange::new(next, blocks);
            ready = ready.max(match zones.index(next) {
                Some(zone) => self.read_zone(at, zone, piece, part)?,
                None => {
                    let command = Command::Read { range: piece, into: part };
                    self.page_mapped_submit(at, command)?.done
                }
            });
            next = piece.end();
        }
        let in_zones = range.end().0.saturating_sub(range.start.0.max(zones.first.0));
        if range.start >= zones.first {
            self.counters.reads += 1;
        }
        self.counters.read_blocks += in_zones.min(range.blocks);
        Ok(self.link(at, ready, range.blocks))
    }

    fn read_zone(
        &mut self,
        at: SimTime,
        zone: u32,
        range: BlockRange,
        mut into: Option<&mut [Content]>,
    ) -> Result<SimTime, DeviceError> {
        let start = self.layout.zones.start(zone).0;
        let on_flash = self.on_flash(zone);
        let (mut done, mut ready) = (0, at);
        while done < range.blocks {
            let offset = range.start.0 + done - start;
            let blocks;
            if offset < on_flash {
                let (page, first, count) =
                    in_page(offset, range.blocks - done, self.layout.subpages);
                blocks = count.min(on_flash - offset);
                let ppn = self.page_of(zone, page);
                ready = ready.max(self.read_page(at, ppn, blocks as u32, Lba(start + offset))?);
                for i in 0..blocks as usize {
                    let lba = Lba(start + offset + i as u64);
                    let content = self.nand.content(self.nand.token(ppn, first + i));
                    let content = content.ok_or(DeviceError::Unreadable(lba))?;
                    if let Some(into) = into.as_deref_mut() {
                        into[done as usize + i] = content;
                    }
                }
            } else {
                blocks = 1;
                let content = self.read_held(zone, offset - on_flash);
                if let Some(into) = into.as_deref_mut() {
                    into[done as usize] = content;
                }
            }
            done += blocks;
        }
        Ok(ready)
    }

    /// A block that is not on its zone's flash.
    fn read_held(&mut self, zone: u32, index: u64) -> Content {
        let held = self.active.get(&zone).and_then(|active| *active.held.get(index as usize)?);
        let Some(held) = held else {
            self.counters.empty_read_blocks += 1;
            return Content::Empty;
        };
        self.counters.buffer_read_hits += 1;
        self.nand.content(held.token).unwrap_or_default()
    }

    /// Blocks of a zone that are on its own flash.
    fn on_flash(&self, zone: u32) -> u64 {
        let record = &self.records[zone as usize];
        match self.active.get(&zone) {
            Some(active) => active.programmed,
            None if record.blocks.is_empty() => 0,
            None => self.table.written(zone),
        }
    }

    fn read_page(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        blocks: u32,
        lba: Lba,
    ) -> Result<SimTime, DeviceError> {
        self.counters.flash_reads[ReadCause::Host as usize] += 1;
        match self.nand.read(at, ppn, blocks * BLOCK_SIZE as u32) {
            Ok(done) => Ok(done),
            Err(NandError::Unreadable(_)) => Err(DeviceError::Unreadable(lba)),
            Err(error) => Err(super::program::device_error(&error)),
        }
    }
}
