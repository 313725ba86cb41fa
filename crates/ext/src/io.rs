//! The way to the device: blocks of the file system in, runs of blocks out, and the virtual time at
//! which all is done.
//!
//! A block of the file system has 1, 2 or 4 KiB, one of the device 4 KiB. Where the first is
//! smaller, its neighbours in the device's block are written again with what they held. The rest is
//! [`Gatherer`]'s.

use std::sync::Arc;

use dovetail_block::{
    Answer, BLOCK_SIZE, BlockBytes, Command, Content, DeviceError, DeviceSpace, Devirtualize,
    EventId, Gatherer, Hints, Inode, Lifetime, LockId, REQUEST_BLOCKS, SECTOR_SIZE, Scheduler,
    SchedulingHint, SectorRange, StreamId,
};
use dovetail_time::SimTime;
use rustc_hash::FxHashMap;

use crate::places::Places;

/// Device blocks of which the content is kept, where blocks of the file system are smaller.
const MAX_RECENT: usize = 4096;

/// Held alone by a commit from its start to its end. An fsync waits for the event of a commit under
/// way, not for this.
const COMMIT: LockId = LockId(0);

/// Kinds of writes, each gathered by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Content of files.
    Data,
    /// The log.
    Journal,
    /// Metadata in its own place.
    Home,
}

impl Channel {
    const COUNT: usize = 3;
}

/// Kinds of metadata in their own places, which die at different times: FStream's classes (FAST'18)
/// beside the journal and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HomeKind {
    /// Bitmaps, descriptors, pointers, attributes.
    Other,
    /// Tables of inodes.
    Inodes,
    /// Blocks of directories.
    Directory,
}

impl HomeKind {
    const fn stream(self) -> StreamId {
        StreamId(Channel::Home as u8 + self as u8)
    }
}

/// Blocks written since the mount, by cause, in blocks of the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Content of files.
    pub data: u64,
    /// Blocks of the journal.
    pub journal: u64,
    /// Metadata in its own place.
    pub home: u64,
}

impl Written {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.data + self.journal + self.home
    }

    fn count(&mut self, channel: Channel) {
        *match channel {
            Channel::Data => &mut self.data,
            Channel::Journal => &mut self.journal,
            Channel::Home => &mut self.home,
        } += 1;
    }
}

/// The device, the time, and the writes that are still being gathered.
#[derive(Debug)]
pub(crate) struct Io<D> {
    gatherer: Gatherer<D, { Channel::COUNT }>,
    block_size: usize,
    /// Device blocks as they were last read or written; only with small blocks.
    recent: FxHashMap<u64, Content>,
    written: Written,
    /// The device's own addresses, if pointers may lead there.
    places: Places,
    /// Inode whose content is written now, and the inodes of metadata blocks: told to a device with
    /// its own addresses.
    content_of: Inode,
    metadata_of: FxHashMap<u64, Inode>,
    /// Metadata blocks that are not [`HomeKind::Other`]: told to a device with streams.
    kinds: FxHashMap<u64, HomeKind>,
    has_streams: bool,
}

impl<D: Scheduler> Io<D> {
    /// `block_size` is 1024, 2048 or 4096.
    pub(crate) fn new(device: D, block_size: usize, now: SimTime) -> Self {
        let hints = std::array::from_fn(|channel| Hints {
            stream: StreamId(channel as u8),
            ..Hints::default()
        });
        let has_streams = device.info().capabilities.streams > 1;
        let gatherer = Gatherer::new(device, hints, REQUEST_BLOCKS, now);
        Self {
            gatherer,
            block_size,
            recent: FxHashMap::default(),
            written: Written::default(),
            places: Places::default(),
            content_of: Inode::default(),
            metadata_of: FxHashMap::default(),
            kinds: FxHashMap::default(),
            has_streams,
        }
    }

    /// From now on a block number with [`PHYSICAL_BIT`] is a place of the device.
    pub(crate) fn set_places(&mut self, places: Places) {
        self.places = places;
    }

    pub(crate) fn places(&self) -> Places {
        self.places
    }

    pub(crate) fn space(&self) -> Option<DeviceSpace> {
        self.places.space()
    }

    /// Is true if `block` is the number of a place of the device.
    pub(crate) fn has_place(&self, block: u64) -> bool {
        self.places.has(block)
    }

    /// The address at which the device has a block.
    pub(crate) fn lba(&self, block: u64) -> u64 {
        self.places.lba(block).unwrap_or_else(|| block / self.per_lba())
    }

    /// Content that is written from now on has this lifetime.
    pub(crate) fn set_lifetime(&mut self, lifetime: Lifetime) -> Result<(), DeviceError> {
        self.gatherer.set_lifetime(Channel::Data as usize, lifetime)
    }

    /// The content that is written from now on belongs to this inode.
    pub(crate) fn set_content_of(&mut self, inode: u32) {
        self.content_of = Inode(inode);
    }

    /// A block holds metadata of this inode.
    pub(crate) fn set_metadata_of(&mut self, block: u64, inode: u32) {
        if self.places.space().is_some() {
            self.metadata_of.insert(block, Inode(inode));
        }
    }

    /// A block holds metadata of this kind.
    pub(crate) fn set_kind(&mut self, block: u64, kind: HomeKind) {
        if self.has_streams && kind != HomeKind::Other {
            self.kinds.insert(block, kind);
        }
    }

    /// A block no longer holds metadata.
    pub(crate) fn forget_metadata(&mut self, block: u64) {
        self.kinds.remove(&block);
        self.metadata_of.remove(&block);
    }

    fn tell_inode(&mut self, channel: Channel, block: u64) -> Result<(), DeviceError> {
        if self.places.space().is_none() {
            return Ok(());
        }
        let inode = match channel {
            Channel::Data => self.content_of,
            Channel::Home => self.metadata_of.get(&block).copied().unwrap_or_default(),
            Channel::Journal => Inode::default(),
        };
        self.gatherer.set_inode(channel as usize, inode)
    }

    /// Submits what was gathered, then a command to a device that devirtualises, and waits for its
    /// answer.
    pub(crate) fn devirtualize(
        &mut self,
        command: Devirtualize<'_>,
    ) -> Result<Answer, DeviceError> {
        self.kick()?;
        let answer = self.gatherer.perform(Command::Devirtualize(command))?;
        self.gatherer.wait_all();
        Ok(answer)
    }

    pub(crate) fn device(&self) -> &D {
        self.gatherer.device()
    }

    pub(crate) fn device_mut(&mut self) -> &mut D {
        self.gatherer.device_mut()
    }

    /// The way to the device, for the throttle.
    pub(crate) fn gatherer_mut(&mut self) -> &mut Gatherer<D, { Channel::COUNT }> {
        &mut self.gatherer
    }

    pub(crate) fn into_device(self) -> D {
        self.gatherer.into_device()
    }

    /// Bytes in a block.
    pub(crate) fn block_size(&self) -> usize {
        self.block_size
    }

    pub(crate) fn now(&self) -> SimTime {
        self.gatherer.now()
    }

    /// The owner's clock; time never goes back.
    pub(crate) fn set_now(&mut self, now: SimTime) {
        self.gatherer.set_now(now);
    }

    pub(crate) fn written(&self) -> Written {
        self.written
    }

    /// Failure after which the device takes no more writes, if there was one.
    pub(crate) fn failure(&self) -> Option<&DeviceError> {
        self.gatherer.failure()
    }

    /// Blocks in a block of the device.
    fn per_lba(&self) -> u64 {
        BLOCK_SIZE / self.block_size as u64
    }

    /// The content of one block; of bytes, as many count as a block has.
    pub(crate) fn read(&mut self, block: u64) -> Result<Content, DeviceError> {
        let mut content = [Content::Empty];
        if self.per_lba() == 1 {
            self.read_into(block, &mut content)?;
            let [content] = content;
            return Ok(content);
        }
        let whole = self.read_small(block / self.per_lba())?;
        let start = (block % self.per_lba()) as usize * self.block_size;
        Ok(match whole {
            Content::Bytes(bytes) => {
                let mut part = [0; BLOCK_SIZE as usize];
                part[..self.block_size].copy_from_slice(&bytes[start..start + self.block_size]);
                Content::Bytes(Arc::new(part))
            }
            other => other,
        })
    }

    /// A device block, where blocks are smaller.
    fn read_small(&mut self, lba: u64) -> Result<Content, DeviceError> {
        if let Some(content) = self.recent.get(&lba) {
            return Ok(content.clone());
        }
        let mut content = [Content::Empty];
        let done = self.start_read_of(lba, &mut content)?;
        self.wait_read(done);
        let [content] = content;
        self.remember(lba, content.clone());
        Ok(content)
    }

    fn remember(&mut self, lba: u64, content: Content) {
        if self.recent.len() >= MAX_RECENT {
            self.recent.clear();
        }
        self.recent.insert(lba, content);
    }

    /// The content of neighbouring blocks.
    pub(crate) fn read_into(
        &mut self,
        block: u64,
        into: &mut [Content],
    ) -> Result<(), DeviceError> {
        if self.per_lba() == 1 {
            let done = self.start_read(block, into)?;
            self.wait_read(done);
            return Ok(());
        }
        for (i, into) in into.iter_mut().enumerate() {
            *into = self.read(block + i as u64)?;
        }
        Ok(())
    }

    /// The content of several blocks, each by a request of its own, all at once; where blocks are
    /// smaller than the device's, one after the other.
    pub(crate) fn read_each(&mut self, blocks: &[u64]) -> Result<Vec<Content>, DeviceError> {
        if self.per_lba() != 1 {
            return blocks.iter().map(|&block| self.read(block)).collect();
        }
        let mut contents = vec![Content::Empty; blocks.len()];
        let mut done = self.now();
        for (content, &block) in contents.chunks_mut(1).zip(blocks) {
            done = done.max(self.start_read(block, content)?);
        }
        self.wait_read(done);
        Ok(contents)
    }

    /// Goes on when the reads of this call are through, the last of them at `done`.
    pub(crate) fn wait_read(&mut self, done: SimTime) {
        self.gatherer.wait_read(done);
    }

    /// Asks for the content of neighbouring blocks, which are as large as the device's, and says
    /// when it will be there.
    pub(crate) fn start_read(
        &mut self,
        block: u64,
        into: &mut [Content],
    ) -> Result<SimTime, DeviceError> {
        self.start_read_of(self.lba(block), into)
    }

    fn start_read_of(&mut self, lba: u64, into: &mut [Content]) -> Result<SimTime, DeviceError> {
        self.gatherer.start_read(lba, into)
    }

    /// Reads bytes from byte `at` of the device on for callers who share the file system; false if
    /// that cannot be.
    pub(crate) fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        self.gatherer.read_shared(at, into)
    }

    /// Writes bytes from byte `at` of the device on, for callers who share the file system; false
    /// if that cannot be.
    pub(crate) fn write_shared(&self, at: u64, bytes: &[u8]) -> bool {
        self.gatherer.write_shared(at, bytes)
    }

    /// From here until [`Self::end_commit`], no other call commits.
    pub(crate) fn begin_commit(&mut self) {
        self.hint(SchedulingHint::Lock { lock: COMMIT, shared: false });
    }

    /// The commit is over, which is what `event` means.
    pub(crate) fn end_commit(&mut self, event: EventId) {
        self.hint(SchedulingHint::Signal(event));
        self.hint(SchedulingHint::Unlock { lock: COMMIT });
    }

    /// Is true if the commit that ends with `event` is over.
    pub(crate) fn is_over(&self, event: EventId) -> bool {
        self.device().is_signalled(event)
    }

    /// Waits for what was written, then for the commit that ends with `event`.
    pub(crate) fn await_commit(&mut self, event: EventId) -> Result<(), DeviceError> {
        self.wait()?;
        self.hint(SchedulingHint::Await(event));
        Ok(())
    }

    fn hint(&mut self, hint: SchedulingHint) {
        self.gatherer.device_mut().hint(hint);
    }

    /// Writes a block, later or at once.
    pub(crate) fn write(
        &mut self,
        channel: Channel,
        block: u64,
        content: Content,
    ) -> Result<(), DeviceError> {
        self.gatherer.check()?;
        self.written.count(channel);
        self.tell_inode(channel, block)?;
        if channel == Channel::Home && self.has_streams {
            let kind = self.kinds.get(&block).copied().unwrap_or(HomeKind::Other);
            self.gatherer.set_stream(channel as usize, kind.stream())?;
        }
        let lba = self.lba(block);
        let content = self.whole(block, content)?;
        if self.per_lba() == 1 {
            self.gatherer.write(channel as usize, lba, content)
        } else {
            self.gatherer.write_part(channel as usize, lba, content)
        }
    }

    /// Writes the bytes of neighbouring blocks of content, which are as large as the device's, at
    /// once.
    pub(crate) fn write_content_bytes(
        &mut self,
        block: u64,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        self.written.data += bytes.len() as u64 / BLOCK_SIZE;
        self.tell_inode(Channel::Data, block)?;
        self.gatherer.write_bytes(Channel::Data as usize, self.lba(block), bytes)
    }

    /// Returns the device's block with `content` in its part of it.
    fn whole(&mut self, block: u64, content: Content) -> Result<Content, DeviceError> {
        let per = self.per_lba();
        if per == 1 {
            return Ok(content);
        }
        let lba = block / per;
        let start = (block % per) as usize * self.block_size;
        let mut bytes = *bytes(&self.read_small(lba)?);
        bytes[start..start + self.block_size]
            .copy_from_slice(&self::bytes(&content)[..self.block_size]);
        let whole = Content::Bytes(Arc::new(bytes));
        self.remember(lba, whole.clone());
        Ok(whole)
    }

    /// Submits all that was gathered, without waiting.
    pub(crate) fn kick(&mut self) -> Result<(), DeviceError> {
        self.gatherer.kick()
    }

    /// Submits all, and waits until the device has it (not until it survives a power cut).
    pub(crate) fn wait(&mut self) -> Result<(), DeviceError> {
        self.gatherer.wait()
    }

    /// Waits until everything written survives a power cut.
    pub(crate) fn flush(&mut self) -> Result<(), DeviceError> {
        self.gatherer.flush()
    }

    /// Writes one block and waits for it; with `fua` it survives a power cut when this returns.
    pub(crate) fn write_now(
        &mut self,
        channel: Channel,
        block: u64,
        content: Content,
        fua: bool,
    ) -> Result<(), DeviceError> {
        self.wait()?;
        self.write(channel, block, content)?;
        self.gatherer.submit(channel as usize, fua)?;
        self.gatherer.wait_all();
        Ok(())
    }

    /// Gives blocks back to the device; nothing happens on one without discard.
    pub(crate) fn discard(&mut self, extents: &[(u64, u64)]) -> Result<(), DeviceError> {
        if !self.device().info().capabilities.discard
            || extents.is_empty()
            || self.failure().is_some()
        {
            return Ok(());
        }
        self.kick()?;
        self.recent.clear();
        let sectors = self.block_size as u64 / SECTOR_SIZE;
        let range = |&(start, blocks): &(u64, u64)| match self.has_place(start) {
            true => SectorRange::new(self.lba(start) * sectors, blocks * sectors),
            false => SectorRange::new(start * sectors, blocks * sectors),
        };
        let ranges: Vec<_> = extents.iter().map(range).collect();
        self.gatherer.discard(&ranges)
    }
}

/// The bytes of a content; what was never written, or only named by a simulation, is zeros.
pub(crate) fn bytes(content: &Content) -> Arc<BlockBytes> {
    match content {
        Content::Bytes(bytes) => Arc::clone(bytes),
        _ => Arc::new([0; BLOCK_SIZE as usize]),
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::MemoryDevice;

    use super::*;

    fn filled(fill: u8) -> Content {
        Content::Bytes(Arc::new([fill; 4096]))
    }

    #[test]
    fn small_blocks_keep_their_neighbours() {
        let mut io = Io::new(MemoryDevice::new(8), 1024, SimTime::ZERO);
        for (block, fill) in [(0, 1), (1, 2), (3, 4), (2, 3), (4, 5), (9, 9), (1, 7)] {
            io.write(Channel::Home, block, filled(fill)).unwrap();
        }
        io.write(Channel::Data, 5, filled(6)).unwrap();
        io.flush().unwrap();
        let mut again = Io::new(io.into_device(), 1024, SimTime::ZERO);
        for (block, fill) in
            [(0, 1), (1, 7), (2, 3), (3, 4), (4, 5), (5, 6), (6, 0), (8, 0), (9, 9)]
        {
            assert_eq!(bytes(&again.read(block).unwrap())[..1024], [fill; 1024], "block {block}");
        }
    }
}
