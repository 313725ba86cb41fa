//! Reading blocks: every read of the volume goes through here.
//!
//! A block of the device has 4 KiB, and one of the volume may be a part of it.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockBytes, BlockDevice, BlockRange, Command, Content, DeviceError, Lba};
use dovetail_time::SimTime;

use crate::format::BlockAddr;
use crate::journal;

/// Metadata blocks of the device kept: 8 MiB. Assumed; enough for the directories and trees in use at one time.
const CAPACITY: usize = 2048;

/// A block of the volume.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    whole: Arc<BlockBytes>,
    range: Range<usize>,
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.whole[self.range.clone()]
    }
}

/// A device, the metadata blocks last read from it, and those whose newest content is in the journal.
#[derive(Debug)]
pub(crate) struct Blocks<D> {
    device: D,
    block_size: u64,
    now: SimTime,
    cache: HashMap<Lba, Arc<BlockBytes>>,
    /// Where a block is really read, and whether its first word was replaced there.
    redirected: BTreeMap<BlockAddr, (BlockAddr, bool)>,
}

impl<D: BlockDevice> Blocks<D> {
    /// `block_size` is the volume's: 1024, 2048 or 4096 bytes.
    pub(crate) fn new(device: D, block_size: u32) -> Self {
        let (cache, redirected) = (HashMap::new(), BTreeMap::new());
        Self { device, block_size: block_size.into(), now: SimTime::ZERO, cache, redirected }
    }

    /// Takes the volume's block size, once it is known.
    pub(crate) fn set_block_size(&mut self, block_size: u32) {
        self.block_size = block_size.into();
    }

    /// From now on these blocks are read where the journal has them.
    pub(crate) fn redirect(&mut self, blocks: BTreeMap<BlockAddr, (BlockAddr, bool)>) {
        self.redirected = blocks;
    }

    /// The size of the device in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.device.info().blocks.saturating_mul(BLOCK_SIZE)
    }

    /// A block of metadata, from the cache if it is there.
    pub(crate) fn metadata(&mut self, address: BlockAddr) -> Result<Block, DeviceError> {
        let (from, escaped) = self.redirected.get(&address).copied().unwrap_or((address, false));
        let start = from.0.saturating_mul(self.block_size);
        let within = (start % BLOCK_SIZE) as usize;
        let mut whole = self.whole(Lba(start / BLOCK_SIZE))?;
        if escaped {
            Arc::make_mut(&mut whole)[within..within + 4].copy_from_slice(&journal::MAGIC.to_be_bytes());
        }
        Ok(Block { whole, range: within..within + self.block_size as usize })
    }

    /// A block of the device, from the cache if it is there.
    pub(crate) fn whole(&mut self, lba: Lba) -> Result<Arc<BlockBytes>, DeviceError> {
        if let Some(block) = self.cache.get(&lba) {
            return Ok(Arc::clone(block));
        }
        let mut content = [Content::Empty];
        self.read(BlockRange::new(lba, 1), &mut content)?;
        let block = crate::io::bytes(&content[0]);
        if self.cache.len() >= CAPACITY {
            self.cache.clear();
        }
        self.cache.insert(lba, Arc::clone(&block));
        Ok(block)
    }

    /// Reads bytes, from byte `within` of block `address` on; the blocks lie side by side.
    pub(crate) fn data(
        &mut self,
        address: BlockAddr,
        within: u64,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        let start = address.0.saturating_mul(self.block_size).saturating_add(within);
        let end = start.saturating_add(into.len() as u64);
        self.device_bytes(start, into)?;
        let blocks = BlockAddr(start / self.block_size)..BlockAddr(end.div_ceil(self.block_size));
        let logged: Vec<_> = self.redirected.range(blocks).map(|(address, _)| *address).collect();
        for address in logged {
            let block = self.metadata(address)?;
            let block_start = address.0 * self.block_size;
            let (from, to) = (start.max(block_start), end.min(block_start + self.block_size));
            let part = &block[(from - block_start) as usize..(to - block_start) as usize];
            into[(from - start) as usize..(to - start) as usize].copy_from_slice(part);
        }
        Ok(())
    }

    fn device_bytes(&mut self, start: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let (first, mut skip) = (start / BLOCK_SIZE, (start % BLOCK_SIZE) as usize);
        let count = (skip + into.len()).div_ceil(BLOCK_SIZE as usize);
        let mut contents = vec![Content::Empty; count];
        self.read(BlockRange::new(Lba(first), count as u64), &mut contents)?;
        let mut rest = into;
        for content in &contents {
            let len = rest.len().min(BLOCK_SIZE as usize - skip);
            let (part, after) = rest.split_at_mut(len);
            match content {
                Content::Bytes(bytes) => part.copy_from_slice(&bytes[skip..skip + len]),
                // a block that was never written, or that a simulation only named, reads as zeros
                _ => part.fill(0),
            }
            (rest, skip) = (after, 0);
        }
        Ok(())
    }

    fn read(&mut self, range: BlockRange, into: &mut [Content]) -> Result<(), DeviceError> {
        self.now = self.device.submit(self.now, Command::Read { range, into: Some(into) })?.done;
        Ok(())
    }
}
