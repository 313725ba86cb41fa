//! The way to the device: blocks in, runs of blocks out, and the virtual time at which all of it is
//! done.
//!
//! Writes are gathered in one run for each log; the rest is [`Gatherer`]'s.

use std::sync::Arc;

use dovetail_block::{
    Answer, BatchId, BlockBytes, BlockRange, Command, Content, Data, DeviceError, Devirtualize,
    EventId, Gatherer, Hints, Inode, Lba, Lifetime, LockId, REQUEST_BLOCKS, RemapPair, RemapWhen,
    Scheduler, SchedulingHint, StreamId, ZoneAction,
};
use dovetail_time::SimTime;

use super::held_moves::HeldMoves;
use super::pending_remaps::PendingRemaps;
use super::policy::Log;
use crate::device_addresses::DeviceAddresses;
use crate::format::{BLOCK, BlockAddr, Extent, Nid};

/// Held by whoever writes to a log, shared; by a checkpoint and by cleaning that others wait for,
/// alone.
const WRITERS: LockId = LockId(0);

/// The source of a block: one of the six logs, or one of those that write elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Channel(pub(crate) u8);

impl Channel {
    /// Data that overwrites itself.
    pub(crate) const IN_PLACE: Self = Self(6);
    /// Checkpoints, NAT, SIT and summaries.
    pub(crate) const META: Self = Self(7);
    /// Updates in staged blocks, which the device is to move.
    pub(crate) const UPDATES: Self = Self(8);
    const COUNT: usize = 9;

    /// The stream of its writes. Updates are hot: they go with the hot data.
    const fn stream(self) -> StreamId {
        if self.0 == Self::UPDATES.0 { StreamId(0) } else { StreamId(self.0) }
    }

    /// The expected lifetime of its writes. Those in place have that of the log that their blocks
    /// would go to; metadata have what Linux 6.12 gives it.
    fn lifetime(self) -> Lifetime {
        match self {
            Self::META => Lifetime::None,
            Self::UPDATES => Log::HotData.lifetime(),
            Self(log) => {
                Log::ALL.get(usize::from(log)).map_or(Lifetime::NotSet, |log| log.lifetime())
            }
        }
    }

    fn hints(self) -> Hints {
        Hints { stream: self.stream(), lifetime: self.lifetime(), ..Hints::default() }
    }
}

/// The class of a write: its purpose, which the figures count by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteClass {
    /// Content of files, directories and links.
    Data,
    /// Inodes and pointer nodes.
    Node,
    /// A checkpoint pack.
    Checkpoint,
    /// The node address table.
    Nat,
    /// The segment information table.
    Sit,
    /// The summary of a segment.
    Ssa,
    /// A block that cleaning moved.
    Cleaning,
}

/// Blocks written since the mount, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Content of files, directories and links.
    pub data: u64,
    /// Inodes and pointer nodes.
    pub node: u64,
    /// Checkpoint packs.
    pub checkpoint: u64,
    /// The node address table.
    pub nat: u64,
    /// The segment information table.
    pub sit: u64,
    /// Summaries of segments.
    pub ssa: u64,
    /// Blocks that cleaning moved.
    pub cleaning: u64,
}

impl Written {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.data + self.node + self.checkpoint + self.nat + self.sit + self.ssa + self.cleaning
    }

    fn count(&mut self, cause: WriteClass) {
        *match cause {
            WriteClass::Data => &mut self.data,
            WriteClass::Node => &mut self.node,
            WriteClass::Checkpoint => &mut self.checkpoint,
            WriteClass::Nat => &mut self.nat,
            WriteClass::Sit => &mut self.sit,
            WriteClass::Ssa => &mut self.ssa,
            WriteClass::Cleaning => &mut self.cleaning,
        } += 1;
    }
}

/// The device, the time, and the writes that are still being gathered.
#[derive(Debug)]
pub(crate) struct Io<D> {
    gatherer: Gatherer<D, { Channel::COUNT }>,
    written: Written,
    /// Depth of the exclusive holds of [`WRITERS`]: cleaning writes checkpoints.
    alone: u32,
    /// The nodes that the last fsync logged are written.
    last_link: Option<EventId>,
    /// Updates that are read where they wait.
    pub(crate) pending_remaps: PendingRemaps,
    /// Blocks that are read where they were before cleaning.
    pub(crate) held_moves: HeldMoves,
    last_batch: u32,
    /// The device's own addresses, if pointers may lead there.
    device_addresses: DeviceAddresses,
    /// Inode whose blocks are written now: told to a device with addresses of its own.
    owner: Inode,
}

impl<D: Scheduler> Io<D> {
    pub(crate) fn new(device: D, now: SimTime) -> Self {
        let hints = std::array::from_fn(|channel| Channel(channel as u8).hints());
        let mut gatherer = Gatherer::new(device, hints, REQUEST_BLOCKS, now);
        gatherer.set_writers(Some(WRITERS));
        Self {
            gatherer,
            written: Written::default(),
            alone: 0,
            last_link: None,
            pending_remaps: PendingRemaps::default(),
            held_moves: HeldMoves::default(),
            last_batch: 0,
            device_addresses: DeviceAddresses::default(),
            owner: Inode::default(),
        }
    }

    /// From now on addresses may be those of the device.
    pub(crate) fn set_device_addresses(&mut self, addresses: DeviceAddresses) {
        self.device_addresses = addresses;
    }

    pub(crate) fn device_addresses(&self) -> DeviceAddresses {
        self.device_addresses
    }

    /// Content and nodes that are written from now on are of this inode.
    pub(crate) fn set_owner(&mut self, ino: Nid) {
        self.owner = Inode(ino.0);
    }

    fn tell_owner(&mut self, channel: Channel) -> Result<(), DeviceError> {
        if !self.device_addresses.is_some() {
            return Ok(());
        }
        let owner = if channel == Channel::META { Inode::default() } else { self.owner };
        self.gatherer.set_inode(channel.0.into(), owner)
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

    /// Reason why the device takes no more writes, if it has failed.
    pub(crate) fn failure(&self) -> Option<&DeviceError> {
        self.gatherer.failure()
    }

    /// The bytes of one block.
    pub(crate) fn read(&mut self, address: BlockAddr) -> Result<Arc<BlockBytes>, DeviceError> {
        let mut content = [Content::Empty];
        self.read_into(address, &mut content)?;
        let [content] = content;
        Ok(bytes(content))
    }

    /// The content of neighbouring blocks of which some may not be wanted, by requests as large as
    /// Linux has them. `None` if they cannot all be read: whoever wants some asks for those.
    pub(crate) fn read_ahead(&mut self, address: BlockAddr, blocks: usize) -> Option<Vec<Content>> {
        let mut read = vec![Content::Empty; blocks];
        for (number, part) in (0..).zip(read.chunks_mut(REQUEST_BLOCKS)) {
            let start = address.plus(number * REQUEST_BLOCKS as u64);
            self.read_into(start, part).ok()?;
        }
        Some(read)
    }

    /// From here until [`Self::release`], other calls do not write.
    pub(crate) fn hold(&mut self) {
        if self.alone == 0 {
            self.device_mut().hint(SchedulingHint::Lock { lock: WRITERS, shared: false });
            self.gatherer.set_writers(None);
        }
        self.alone += 1;
    }

    pub(crate) fn release(&mut self) {
        self.alone -= 1;
        if self.alone == 0 {
            self.device_mut().hint(SchedulingHint::Unlock { lock: WRITERS });
            self.gatherer.set_writers(Some(WRITERS));
        }
    }

    /// The content of neighbouring blocks.
    pub(crate) fn read_into(
        &mut self,
        address: BlockAddr,
        into: &mut [Content],
    ) -> Result<(), DeviceError> {
        let done = self.start_read(address, into)?;
        self.wait_read(done);
        Ok(())
    }

    /// Goes on when the reads of this call are through, the last of them at `done`.
    pub(crate) fn wait_read(&mut self, done: SimTime) {
        self.gatherer.wait_read(done);
    }

    /// Asks for the content of neighbouring blocks and says when it will be there. Of a block whose
    /// update waits it is the update.
    pub(crate) fn start_read(
        &mut self,
        address: BlockAddr,
        into: &mut [Content],
    ) -> Result<SimTime, DeviceError> {
        let mut done = self.start_read_stored(address, into)?;
        if !self.pending_remaps.is_empty() {
            for (to, from) in self.pending_remaps.within(address, into.len() as u32) {
                let at = (to.0 - address.0) as usize;
                done = done.max(self.start_read_stored(from, &mut into[at..=at])?);
            }
        }
        Ok(done)
    }

    /// The same without regard to updates that wait.
    pub(crate) fn start_read_stored(
        &mut self,
        address: BlockAddr,
        into: &mut [Content],
    ) -> Result<SimTime, DeviceError> {
        let (mut done, mut rest) = (self.now(), into);
        for run in self.held_moves.stored_runs(address, rest.len()) {
            let (blocks, after) = rest.split_at_mut(run.blocks);
            let start = self.device_addresses.lba(run.start).0;
            done = done.max(self.gatherer.start_read(start, blocks)?);
            rest = after;
        }
        Ok(done)
    }

    /// Blocks may lie elsewhere than their address says: an update or a move waits for the device,
    /// or the device has addresses of its own.
    pub(crate) fn is_moving_blocks(&self) -> bool {
        !self.pending_remaps.is_empty()
            || !self.held_moves.is_empty()
            || self.device_addresses.is_some()
    }

    /// Reads bytes from byte `at` of the device on for callers who share the file system; false if
    /// that cannot be.
    pub(crate) fn read_shared(&self, at: u64, into: &mut [u8]) -> bool {
        self.gatherer.read_shared(at, into)
    }

    /// Writes a block of bytes.
    pub(crate) fn write_bytes(
        &mut self,
        channel: Channel,
        cause: WriteClass,
        address: BlockAddr,
        block: Arc<BlockBytes>,
    ) -> Result<(), DeviceError> {
        self.write(channel, cause, address, Content::Bytes(block))
    }

    /// Writes a block, later or at once.
    pub(crate) fn write(
        &mut self,
        channel: Channel,
        cause: WriteClass,
        address: BlockAddr,
        content: Content,
    ) -> Result<(), DeviceError> {
        self.gatherer.check()?;
        self.written.count(cause);
        self.tell_owner(channel)?;
        self.gatherer.write(channel.0.into(), self.device_addresses.lba(address).0, content)
    }

    /// Writes the bytes of neighbouring blocks of content at once.
    pub(crate) fn write_content_bytes(
        &mut self,
        log: Log,
        address: BlockAddr,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        self.written.data += (bytes.len() / BLOCK) as u64;
        let channel = Channel(log as u8);
        self.tell_owner(channel)?;
        self.gatherer.write_bytes(channel.0.into(), self.device_addresses.lba(address).0, bytes)
    }

    /// Writes a block of a file that keeps its address and would go to `log` otherwise.
    pub(crate) fn write_in_place(
        &mut self,
        log: Log,
        address: BlockAddr,
        content: Content,
    ) -> Result<(), DeviceError> {
        self.gatherer.set_lifetime(Channel::IN_PLACE.0.into(), log.lifetime())?;
        self.write(Channel::IN_PLACE, WriteClass::Data, address, content)
    }

    /// Has blocks moved when all that was written so far is on the device. Durable when it is done.
    pub(crate) fn remap(&mut self, pairs: &[RemapPair]) -> Result<(), DeviceError> {
        self.wait()?;
        pairs
            .chunks(self.pairs_per_command())
            .try_for_each(|pairs| self.submit_remap(pairs, RemapWhen::Now))
    }

    /// Has blocks moved as one, and waits until they are.
    pub(crate) fn remap_as_one(&mut self, pairs: &[RemapPair]) -> Result<(), DeviceError> {
        self.wait()?;
        let mut commands = pairs.chunks(self.pairs_per_command());
        let Some(last) = commands.next_back() else { return Ok(()) };
        if commands.len() == 0 {
            self.submit_remap(last, RemapWhen::Now)?;
        } else {
            self.last_batch = self.last_batch.wrapping_add(1);
            let batch = BatchId(self.last_batch);
            commands.try_for_each(|pairs| self.submit_remap(pairs, RemapWhen::Held(batch)))?;
            self.gatherer.wait_all();
            self.submit_remap(last, RemapWhen::WithHeld(batch))?;
        }
        self.gatherer.wait_all();
        Ok(())
    }

    fn pairs_per_command(&self) -> usize {
        self.device().info().capabilities.remap.map_or(1, |limits| limits.pairs_per_command.max(1))
            as usize
    }

    fn submit_remap(&mut self, pairs: &[RemapPair], when: RemapWhen) -> Result<(), DeviceError> {
        self.gatherer.perform_among_writers(Command::Remap { pairs, when })
    }

    /// Submits all that was gathered, without waiting.
    pub(crate) fn kick(&mut self) -> Result<(), DeviceError> {
        self.gatherer.kick()
    }

    /// Submits all, and waits until the device has it (not until it survives a power cut).
    pub(crate) fn wait(&mut self) -> Result<(), DeviceError> {
        self.gatherer.wait()
    }

    /// Waits for the nodes that this fsync has logged, and for those of all fsyncs before it: they
    /// are a chain, of which recovery reads as far as it goes (Linux:
    /// `f2fs_wait_on_node_pages_writeback`). [`Self::end_link`] tells the next one.
    pub(crate) fn await_link(&mut self) -> Result<EventId, DeviceError> {
        self.wait()?;
        let link = EventId(self.last_link.map_or(0, |last| last.0 + 1));
        if let Some(last) = self.last_link.replace(link).filter(|l| !self.device().is_signalled(*l))
        {
            self.device_mut().hint(SchedulingHint::Await(last));
        }
        Ok(link)
    }

    /// The nodes of a link are written.
    pub(crate) fn end_link(&mut self, link: EventId) {
        self.device_mut().hint(SchedulingHint::Signal(link));
    }

    /// Waits until everything written survives a power cut.
    pub(crate) fn flush(&mut self) -> Result<(), DeviceError> {
        self.gatherer.flush()
    }

    /// Writes one block of a checkpoint so that it survives a power cut when this returns.
    pub(crate) fn write_durable(
        &mut self,
        address: BlockAddr,
        block: Arc<BlockBytes>,
    ) -> Result<(), DeviceError> {
        self.wait()?;
        self.gatherer.check()?;
        self.written.count(WriteClass::Checkpoint);
        let range = BlockRange::new(Lba(address.0), 1);
        let hints = Channel::META.hints();
        let content = [Content::Bytes(block)];
        let write = Command::Write { range, data: Data::Blocks(&content), hints, fua: true };
        self.gatherer.perform(write)?;
        self.gatherer.wait_all();
        Ok(())
    }

    /// A checkpoint is there, and nothing that was [forgotten](Self::forget) is part of it.
    pub(crate) fn committed(&mut self) {
        self.device_mut().hint(SchedulingHint::Committed);
    }

    /// A block of the main area that is not read again before it is written, but by recovery.
    pub(crate) fn forget(&mut self, address: BlockAddr) {
        if !address.is_hole() {
            let lba = self.device_addresses.lba(address);
            self.device_mut().hint(SchedulingHint::Dead(lba));
        }
    }

    /// Changes the state of the zone that starts there; what was gathered goes first.
    pub(crate) fn zone(&mut self, start: Lba, action: ZoneAction) -> Result<(), DeviceError> {
        self.gatherer.kick()?;
        self.gatherer.perform(Command::Zone { start: Some(start), action }).map(drop)
    }

    /// Gives blocks back to the device; nothing happens on one without discard.
    pub(crate) fn discard(
        &mut self,
        extents: impl Iterator<Item = Extent>,
    ) -> Result<(), DeviceError> {
        let addresses = self.device_addresses;
        let range =
            |extent: Extent| BlockRange::new(addresses.lba(extent.start), extent.blocks).into();
        let ranges: Vec<_> = extents.map(range).collect();
        self.gatherer.discard(&ranges)
    }
}

/// The bytes of a content; what was never written, or only named by a simulation, is zeros.
pub(crate) fn bytes(content: Content) -> Arc<BlockBytes> {
    match content {
        Content::Bytes(bytes) => bytes,
        _ => Arc::new([0; BLOCK]),
    }
}
