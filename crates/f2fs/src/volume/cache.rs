//! Reading blocks: every read of the volume goes through here.

use std::collections::HashMap;
use std::sync::Arc;

use dovetail_block::{
    BlockBytes, BlockDevice, BlockRange, Command, Content, Data, DeviceError, DeviceInfo,
    Devirtualize, Hints, Lba, ZoneAction,
};
use dovetail_time::SimTime;

use crate::device_addresses::DeviceAddresses;
use crate::format::{BLOCK, BlockAddr, Extent};

/// Metadata blocks kept: 8 MiB. Assumed; enough for the pointer nodes and directories in use at one
/// time.
const CAPACITY: usize = 2048;

/// A device, and the metadata blocks last read from it.
#[derive(Debug)]
pub(crate) struct Blocks<D> {
    device: D,
    now: SimTime,
    cache: HashMap<BlockAddr, Arc<BlockBytes>>,
    /// Metadata blocks as they are to be, whatever the device has.
    changed: HashMap<BlockAddr, Arc<BlockBytes>>,
    zeros: Arc<BlockBytes>,
    device_addresses: DeviceAddresses,
}

impl<D: BlockDevice> Blocks<D> {
    pub(crate) fn device_info(&self) -> DeviceInfo {
        self.device.info()
    }

    pub(crate) fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    pub(crate) fn new(device: D) -> Self {
        Self {
            device,
            now: SimTime::ZERO,
            cache: HashMap::new(),
            changed: HashMap::new(),
            zeros: Arc::new([0; BLOCK]),
            device_addresses: DeviceAddresses::default(),
        }
    }

    /// From now on addresses may be places of the device.
    pub(crate) fn set_device_addresses(&mut self, addresses: DeviceAddresses) {
        self.device_addresses = addresses;
    }

    pub(crate) fn device_addresses(&self) -> DeviceAddresses {
        self.device_addresses
    }

    /// The places by which the device holds a block; none where addresses are the volume's alone.
    pub(crate) fn held_addresses(&mut self) -> Result<Vec<BlockAddr>, DeviceError> {
        let Some(space) = self.device_addresses.space() else { return Ok(Vec::new()) };
        let range = BlockRange::new(space.first, space.blocks);
        let held = Command::Devirtualize(Devirtualize::Held { range });
        let completion = self.device.submit(self.now, held)?;
        self.now = completion.done;
        let held = completion.answer.into_addresses();
        Ok(held.into_iter().map(|lba| self.device_addresses.address(lba)).collect())
    }

    /// The device again; what was cached is forgotten.
    pub(crate) fn into_device(self) -> D {
        self.device
    }

    /// Empties the zone that starts there.
    pub(crate) fn reset_zone(&mut self, start: Lba) -> Result<(), DeviceError> {
        let reset = Command::Zone { start: Some(start), action: ZoneAction::Reset };
        self.now = self.device.submit(self.now, reset)?.done;
        Ok(())
    }

    /// The size of the device in blocks.
    pub(crate) fn count(&self) -> u64 {
        self.device.info().blocks
    }

    /// A block of metadata, from the cache if it is there.
    pub(crate) fn metadata(&mut self, address: BlockAddr) -> Result<Arc<BlockBytes>, DeviceError> {
        if let Some(block) = self.changed.get(&address).or_else(|| self.cache.get(&address)) {
            return Ok(Arc::clone(block));
        }
        let mut content = [Content::Empty];
        self.read(address, &mut content)?;
        // a block that was never written, or that a simulation only named, reads as zeros
        let block = match &content[0] {
            Content::Bytes(bytes) => Arc::clone(bytes),
            _ => Arc::clone(&self.zeros),
        };
        if self.cache.len() >= CAPACITY {
            self.cache.clear();
        }
        self.cache.insert(address, Arc::clone(&block));
        Ok(block)
    }

    /// From now on a block of metadata reads like this; the device stays as it is.
    pub(crate) fn change(&mut self, address: BlockAddr, block: BlockBytes) {
        self.changed.insert(address, Arc::new(block));
    }

    /// Reads the blocks from `address` on into `into`, a whole number of blocks.
    pub(crate) fn data(&mut self, address: BlockAddr, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut contents = vec![Content::Empty; into.len() / BLOCK];
        self.read(address, &mut contents)?;
        for (into, content) in into.chunks_exact_mut(BLOCK).zip(&contents) {
            match content {
                Content::Bytes(bytes) => into.copy_from_slice(&**bytes),
                _ => into.fill(0),
            }
        }
        Ok(())
    }

    /// Reads blocks past the cache: for scans of whole areas.
    pub(crate) fn read(
        &mut self,
        address: BlockAddr,
        into: &mut [Content],
    ) -> Result<(), DeviceError> {
        let range = BlockRange::new(self.device_addresses.lba(address), into.len() as u64);
        let done = self.device.submit(self.now, Command::Read { range, into: Some(into) })?.done;
        self.now = done;
        Ok(())
    }

    /// Writes one block.
    pub(crate) fn write(
        &mut self,
        address: BlockAddr,
        block: Arc<BlockBytes>,
        fua: bool,
    ) -> Result<(), DeviceError> {
        self.cache.insert(address, Arc::clone(&block));
        let range = BlockRange::new(Lba(address.0), 1);
        let content = [Content::Bytes(block)];
        let command =
            Command::Write { range, data: Data::Blocks(&content), hints: Hints::default(), fua };
        self.now = self.device.submit(self.now, command)?.done;
        Ok(())
    }

    /// Tells the device that it need not hold these blocks any more.
    pub(crate) fn discard(&mut self, extent: Extent) -> Result<(), DeviceError> {
        self.cache.clear();
        let ranges = [BlockRange::new(Lba(extent.start.0), extent.blocks).into()];
        self.now = self.device.submit(self.now, Command::Discard { ranges: &ranges })?.done;
        Ok(())
    }

    /// Returns when all that was written survives a power cut.
    pub(crate) fn flush(&mut self) -> Result<(), DeviceError> {
        self.now = self.device.submit(self.now, Command::Flush)?.done;
        Ok(())
    }
}
