//! A device over another one that is only read: what is written stays in memory.

use std::collections::BTreeMap;

use dovetail_time::SimTime;

use crate::addr::{BlockRange, Lba, SectorRange};
use crate::command::{Command, Data};
use crate::content::Content;
use crate::device::{Answer, BlockDevice, Capabilities, Completion, DeviceError, DeviceInfo};
use crate::devirtualize::Devirtualize;
use crate::query::Query;

/// Reads from a lower device, writes and discards in memory. An image can be mounted, recovered and
/// looked at, and stays as it was. Over a thin device it is thin, with as much room as that has
/// when it is empty: memory is what it writes to.
#[derive(Debug)]
pub struct OverlayDevice<D> {
    lower: D,
    changes: BTreeMap<Lba, Content>,
    /// Discarded ranges, changed since or not: the start of each and its end, apart from each
    /// other.
    discarded: BTreeMap<Lba, Lba>,
}

impl<D: BlockDevice> OverlayDevice<D> {
    /// Nothing changed yet.
    pub const fn new(lower: D) -> Self {
        Self { lower, changes: BTreeMap::new(), discarded: BTreeMap::new() }
    }

    /// The blocks that were written and not discarded since, in order, with what they hold now.
    pub fn changes(&self) -> impl Iterator<Item = (Lba, &Content)> {
        self.changes.iter().map(|(lba, content)| (*lba, content))
    }

    /// The lower device, without the changes.
    pub fn into_lower(self) -> D {
        self.lower
    }

    fn read(
        &mut self,
        at: SimTime,
        range: BlockRange,
        into: Option<&mut [Content]>,
    ) -> Result<Completion, DeviceError> {
        let Some(into) = into else {
            return self.lower.submit(at, Command::Read { range, into: None });
        };
        let completion = self.lower.submit(at, Command::Read { range, into: Some(&mut *into) })?;
        for (start, end) in self.discarded_within(range) {
            into[(start.0 - range.start.0) as usize..(end.0 - range.start.0) as usize]
                .fill(Content::Empty);
        }
        for (lba, content) in self.changes.range(range.start..range.end()) {
            into[(lba.0 - range.start.0) as usize].clone_from(content);
        }
        Ok(completion)
    }

    fn write(&mut self, range: BlockRange, data: &Data<'_>) -> Result<(), DeviceError> {
        let info = self.info();
        let is_place = info.capabilities.devirtualize.is_some_and(|space| space.contains(range));
        if !is_place {
            info.check(range, data.blocks().unwrap_or(range.blocks))?;
        }
        self.changes.extend(range.iter().enumerate().map(|(i, lba)| (lba, data.block(i as u64))));
        Ok(())
    }

    /// The parts of `range` that were discarded, as start and end.
    fn discarded_within(&self, range: BlockRange) -> impl Iterator<Item = (Lba, Lba)> {
        let before = self.discarded.range(..range.end()).rev();
        let touching = before.take_while(move |(_, end)| **end > range.start);
        touching.map(move |(start, end)| ((*start).max(range.start), (*end).min(range.end())))
    }

    /// Empties the whole blocks in `range`.
    fn discard(&mut self, range: SectorRange) {
        let inside = range.blocks_inside();
        let (mut start, mut end) = (inside.start, inside.end().min(Lba(self.lower.info().blocks)));
        if start >= end {
            return;
        }
        let changed: Vec<Lba> = self.changes.range(start..end).map(|(lba, _)| *lba).collect();
        changed.iter().for_each(|lba| drop(self.changes.remove(lba)));
        while let Some((&other, &other_end)) = self.discarded.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.discarded.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.discarded.insert(start, end);
    }
}

impl<D: BlockDevice> OverlayDevice<D> {
    /// Changes are kept in memory, so they take nothing of the space below; what the device below
    /// holds is not all that is held here.
    fn answer(&self, at: SimTime, query: Query) -> Result<Completion, DeviceError> {
        match (query, self.lower.info().capabilities.thin) {
            (Query::FreeBlocks, Some(thin)) => {
                Ok(Completion::with(at, Answer::Blocks(thin.capacity)))
            }
            _ => Err(query.unsupported()),
        }
    }
}

impl<D: BlockDevice> BlockDevice for OverlayDevice<D> {
    fn info(&self) -> DeviceInfo {
        let DeviceInfo { blocks, capabilities: Capabilities { discard, thin, devirtualize, .. } } =
            self.lower.info();
        let capabilities =
            Capabilities { discard, thin, devirtualize, streams: 1, ..Default::default() };
        DeviceInfo { blocks, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into } => return self.read(at, range, into),
            Command::Write { range, data, hints: _, fua: _ } => self.write(range, &data)?,
            Command::Flush => {}
            Command::Discard { ranges } if self.info().capabilities.discard => {
                ranges.iter().for_each(|range| self.discard(*range));
            }
            // a block that was renamed is read by its new address; nothing is renamed here
            Command::Devirtualize(asked @ (Devirtualize::Open | Devirtualize::Held { .. })) => {
                return self.lower.submit(at, Command::Devirtualize(asked));
            }
            Command::Query(query) => return self.answer(at, query),
            refused => return Err(refused.unsupported()),
        }
        Ok(Completion::at(at))
    }
}

crate::performs_at_once!(impl[D: BlockDevice] OverlayDevice<D>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Hints;
    use crate::content::Pattern;
    use crate::memory::MemoryDevice;
    use crate::query::free_blocks;

    fn pattern(n: u64) -> Content {
        Content::Pattern(Pattern::new(n))
    }

    fn write(
        device: &mut impl BlockDevice,
        lba: u64,
        blocks: &[Content],
    ) -> Result<Completion, DeviceError> {
        let range = BlockRange::new(Lba(lba), blocks.len() as u64);
        let (data, hints) = (Data::Blocks(blocks), Hints::default());
        device.submit(SimTime::ZERO, Command::Write { range, data, hints, fua: true })
    }

    fn read(device: &mut impl BlockDevice, range: BlockRange) -> Vec<Content> {
        let mut into = vec![Content::Empty; range.blocks as usize];
        device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut into) }).unwrap();
        into
    }

    #[test]
    fn writes_are_seen_above_and_not_below() {
        let mut lower = MemoryDevice::new(4);
        let before = [pattern(1), pattern(2), pattern(3), Content::Empty];
        write(&mut lower, 0, &before).unwrap();
        let mut device = OverlayDevice::new(lower);
        write(&mut device, 1, &[pattern(7)]).unwrap();
        device.submit(SimTime::ZERO, Command::Flush).unwrap();
        let all = BlockRange::new(Lba(0), 4);
        assert_eq!(read(&mut device, all), [pattern(1), pattern(7), pattern(3), Content::Empty]);
        assert_eq!(device.changes().count(), 1);
        assert_eq!(read(&mut device.into_lower(), all), before);
    }

    #[test]
    fn discards_are_seen_above_and_not_below() {
        let mut lower = MemoryDevice::thin(crate::AREAS * crate::AREA_BLOCKS, 8);
        let before = [1, 2, 3, 4, 5, 6].map(pattern);
        write(&mut lower, 10, &before).unwrap();
        let mut device = OverlayDevice::new(lower);
        assert_eq!(
            (device.info().capabilities.thin.map(|thin| thin.capacity), free_blocks(&mut device)),
            (Some(8), Ok(Some(8)))
        );
        write(&mut device, 11, &[pattern(7), pattern(8)]).unwrap();
        let mut discard = |start, blocks| {
            let ranges = [SectorRange::from(BlockRange::new(Lba(start), blocks))];
            device.submit(SimTime::ZERO, Command::Discard { ranges: &ranges }).unwrap();
        };
        discard(12, 1);
        discard(14, 1);
        discard(13, 1);
        discard(1 << 60, u64::MAX);
        assert_eq!(device.discarded.len(), 2, "neighbours are one");
        write(&mut device, 13, &[pattern(9)]).unwrap();
        let all = BlockRange::new(Lba(10), 6);
        let after =
            [pattern(1), pattern(7), Content::Empty, pattern(9), Content::Empty, pattern(6)];
        assert_eq!(read(&mut device, all), after);
        assert_eq!(read(&mut device, BlockRange::new(Lba(12), 1)), [Content::Empty]);
        assert_eq!(read(&mut device.into_lower(), all), before);
    }

    #[test]
    fn addresses_are_checked() {
        let mut device = OverlayDevice::new(MemoryDevice::new(2));
        let beyond = write(&mut device, 1, &[pattern(1), pattern(2)]);
        assert!(matches!(beyond, Err(DeviceError::OutOfRange { blocks: 2, .. })));
    }
}
