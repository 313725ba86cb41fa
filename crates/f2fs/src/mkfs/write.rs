//! Putting a new volume onto its device.

use std::sync::Arc;

use dovetail_block::{
    BlockBytes, BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba,
    SectorRange, ZoneAction, clear_device_space,
};
use dovetail_time::SimTime;

use super::image::Image;
use crate::format::BlockAddr;

/// Blocks written at a time.
const CHUNK: u64 = 1024;

/// Performs one command after the other.
pub(super) struct Writer<'a, D> {
    device: &'a mut D,
    now: SimTime,
}

impl<'a, D: BlockDevice> Writer<'a, D> {
    pub(super) fn new(device: &'a mut D) -> Self {
        Self { device, now: SimTime::ZERO }
    }

    /// Clears what was there, then writes tables and checkpoint, then the superblocks.
    pub(super) fn write(&mut self, image: &Image) -> Result<(), DeviceError> {
        self.now = clear_device_space(self.device, self.now)?;
        let info = self.device.info();
        let zones = info.capabilities.zones;
        if zones.is_some() {
            self.submit(Command::Zone { start: None, action: ZoneAction::Reset })?;
        }
        if image.discarded {
            let end = zones.map_or(info.blocks, |zones| zones.first.0);
            let all = BlockRange::new(Lba(0), end);
            self.submit(Command::Discard { ranges: &[SectorRange::from(all)] })?;
        } else {
            self.zero(BlockRange::new(Lba(0), 2))?;
            self.submit(Command::Flush)?;
            image.zero.iter().try_for_each(|range| self.zero(*range))?;
        }
        for (address, block) in &image.blocks {
            self.put(*address, block)?;
        }
        self.submit(Command::Flush)?;
        self.put(BlockAddr(0), &image.superblock_block)?;
        self.put(BlockAddr(1), &image.superblock_block)?;
        self.submit(Command::Flush)
    }

    fn zero(&mut self, range: BlockRange) -> Result<(), DeviceError> {
        let empty = vec![Content::Empty; CHUNK.min(range.blocks) as usize];
        let mut start = range.start;
        while start < range.end() {
            let blocks = CHUNK.min(range.end().0 - start.0);
            self.put_contents(BlockRange::new(start, blocks), &empty[..blocks as usize])?;
            start = Lba(start.0 + blocks);
        }
        Ok(())
    }

    fn put(&mut self, address: BlockAddr, block: &BlockBytes) -> Result<(), DeviceError> {
        let range = BlockRange::new(Lba(address.0), 1);
        self.put_contents(range, &[Content::Bytes(Arc::new(*block))])
    }

    fn put_contents(&mut self, range: BlockRange, contents: &[Content]) -> Result<(), DeviceError> {
        let data = Data::Blocks(contents);
        self.submit(Command::Write { range, data, hints: Hints::default(), fua: false })
    }

    fn submit(&mut self, command: Command<'_>) -> Result<(), DeviceError> {
        self.now = self.device.submit(self.now, command)?.done;
        Ok(())
    }
}
