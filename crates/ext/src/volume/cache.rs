//! Reading blocks: every read of the volume goes through here.
//!
//! A block of the device has 4 KiB, and one of the volume may be a part of it.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};
use std::sync::Arc;

use dovetail_block::{
    BLOCK_SIZE, BlockBytes, BlockDevice, BlockRange, Command, Content, DeviceError, Devirtualize,
    Lba,
};
use dovetail_time::SimTime;

use crate::format::{BlockAddr, PHYSICAL_BIT};
use crate::journal;
use crate::places::Places;

/// Metadata blocks of the device kept: 8 MiB. Assumed; enough for the directories and trees in use
/// at one time.
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

/// A device, the metadata blocks last read from it, and those whose newest content is in the
/// journal.
#[derive(Debug)]
pub(crate) struct Blocks<D> {
    device: D,
    block_size: u64,
    places: Places,
    now: SimTime,
    cache: HashMap<Lba, Arc<BlockBytes>>,
    /// Address at which a block is really read; true if its first word was replaced there.
    redirected: BTreeMap<BlockAddr, (BlockAddr, bool)>,
}

impl<D: BlockDevice> Blocks<D> {
    /// `block_size` is the volume's: 1024, 2048 or 4096 bytes.
    pub(crate) fn new(device: D, block_size: u32) -> Self {
        let (cache, redirected) = (HashMap::new(), BTreeMap::new());
        let places = Places::default();
        Self {
            device,
            block_size: block_size.into(),
            places,
            now: SimTime::ZERO,
            cache,
            redirected,
        }
    }

    /// Takes the volume's block size, once it is known.
    pub(crate) fn set_block_size(&mut self, block_size: u32) {
        self.block_size = block_size.into();
    }

    /// From now on a block number may be that of a place of the device, if it has such; returns
    /// whether it has.
    pub(crate) fn follow_places(&mut self) -> Places {
        self.places = Places::of(&self.device.info(), self.block_size);
        self.places
    }

    /// Is true if `block` is the number of a place that the device has.
    pub(crate) fn has_place(&self, block: u64) -> bool {
        self.places.has(block)
    }

    /// The places by which the device holds a block; none where pointers lead to the volume alone.
    pub(crate) fn held_places(&mut self) -> Result<Vec<u64>, DeviceError> {
        let Some(space) = self.places.space() else { return Ok(Vec::new()) };
        let range = BlockRange::new(space.first, space.blocks);
        let held = Command::Devirtualize(Devirtualize::Held { range });
        let completion = self.device.submit(self.now, held)?;
        self.now = completion.done;
        let held = completion.answer.into_addresses();
        Ok(held.into_iter().map(|lba| (lba.0 - space.first.0) | PHYSICAL_BIT).collect())
    }

    /// Start of a block on the device, in bytes.
    fn start_of(&self, address: BlockAddr) -> u64 {
        let place = self.places.lba(address.0).map(|lba| lba.saturating_mul(BLOCK_SIZE));
        place.unwrap_or_else(|| address.0.saturating_mul(self.block_size))
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
        let start = self.start_of(from);
        let within = (start % BLOCK_SIZE) as usize;
        let mut whole = self.whole(Lba(start / BLOCK_SIZE))?;
        if escaped {
            Arc::make_mut(&mut whole)[within..within + 4]
                .copy_from_slice(&journal::MAGIC.to_be_bytes());
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
        let (start, end) = (within, within.saturating_add(into.len() as u64));
        self.device_bytes(self.start_of(address).saturating_add(start), into)?;
        let block_at = |offset: u64| BlockAddr(address.0.saturating_add(offset));
        let blocks = block_at(start / self.block_size)..block_at(end.div_ceil(self.block_size));
        let logged: Vec<_> = self.redirected.range(blocks).map(|(address, _)| *address).collect();
        for at in logged {
            let block = self.metadata(at)?;
            let block_start = (at.0 - address.0) * self.block_size;
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
