//! A device over another one that is only read: what is written stays in memory.

use std::collections::BTreeMap;

use dovetail_time::SimTime;

use crate::addr::{BlockRange, Lba};
use crate::command::{Command, Data};
use crate::content::Content;
use crate::device::{BlockDevice, Capabilities, Completion, DeviceError, DeviceInfo};

/// Reads from a lower device, writes into memory. An image can be mounted, recovered and looked at, and stays as it
/// was. It has no discard.
#[derive(Debug)]
pub struct OverlayDevice<D> {
    lower: D,
    changes: BTreeMap<Lba, Content>,
}

impl<D: BlockDevice> OverlayDevice<D> {
    /// Nothing changed yet.
    pub const fn new(lower: D) -> Self {
        Self { lower, changes: BTreeMap::new() }
    }

    /// The blocks that were written, in order, with what they hold now.
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
        for (lba, content) in self.changes.range(range.start..range.end()) {
            into[(lba.0 - range.start.0) as usize].clone_from(content);
        }
        Ok(completion)
    }

    fn write(&mut self, range: BlockRange, data: &Data<'_>) -> Result<(), DeviceError> {
        self.info().check(range, data.blocks().unwrap_or(range.blocks))?;
        self.changes.extend(range.iter().enumerate().map(|(i, lba)| (lba, data.block(i as u64))));
        Ok(())
    }
}

impl<D: BlockDevice> BlockDevice for OverlayDevice<D> {
    fn info(&self) -> DeviceInfo {
        let blocks = self.lower.info().blocks;
        DeviceInfo { blocks, capabilities: Capabilities { streams: 1, ..Capabilities::default() } }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into } => return self.read(at, range, into),
            Command::Write { range, data, hints: _, fua: _ } => self.write(range, &data)?,
            Command::Flush => {}
            Command::Discard { .. } => return Err(DeviceError::Unsupported("discard")),
            Command::Remap { .. } => return Err(DeviceError::Unsupported("remap")),
            Command::Devirtualize(_) => return Err(DeviceError::Unsupported("devirtualize")),
        }
        Ok(Completion { done: at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Hints;
    use crate::content::Pattern;
    use crate::memory::MemoryDevice;

    fn pattern(n: u64) -> Content {
        Content::Pattern(Pattern::new(n))
    }

    fn write(device: &mut impl BlockDevice, lba: u64, blocks: &[Content]) -> Result<Completion, DeviceError> {
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
    fn addresses_are_checked() {
        let mut device = OverlayDevice::new(MemoryDevice::new(2));
        let beyond = write(&mut device, 1, &[pattern(1), pattern(2)]);
        assert!(matches!(beyond, Err(DeviceError::OutOfRange { blocks: 2, .. })));
    }
}
