//! The device without its drive: what was agreed with the front end, its queues, and what is under
//! way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use virtio_queue::{DescriptorChain, Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::VhostError;
use super::config::Disk;
use super::memory::Memory;
use super::message::{self, ACKNOWLEDGEMENT, Message, request};
use crate::wait;

/// Requests of a queue at most.
const QUEUE_SIZE: u16 = 1024;
/// Queues of a device at most.
pub(super) const MAX_QUEUES: u16 = 16;
/// Bytes of a configuration space at most, by the protocol.
const MAX_CONFIG: u32 = 4096;
/// The driver wants no notification of used buffers (VIRTIO 1.3, section 2.7.6).
const NO_INTERRUPT: u16 = 1;

/// The device has features of the vhost-user protocol.
const PROTOCOL_FEATURES: u64 = 1 << 30;

/// Features of the protocol.
mod protocol {
    pub(super) const MULTIPLE_QUEUES: u64 = 1 << 0;
    pub(super) const REPLY_ACK: u64 = 1 << 3;
    pub(super) const BACKEND_REQUEST: u64 = 1 << 5;
    pub(super) const CONFIG: u64 = 1 << 9;
    pub(super) const IN_BAND: u64 = 1 << 14;
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct RingState {
    queue: u32,
    number: u32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct RingAddresses {
    queue: u32,
    flags: u32,
    descriptors: u64,
    used: u64,
    available: u64,
    log: u64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct ConfigRange {
    offset: u32,
    size: u32,
    flags: u32,
}

/// A way by which the two sides tell each other of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// By event descriptors: in real time.
    Events,
    /// By messages that the sender awaits: in virtual time.
    InBand,
}

/// A consequence of a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Handled {
    /// The payload to reply with, and the number to reply to; `reply` sends it.
    pub reply: Option<(u32, Vec<u8>)>,
    /// A queue in which there are requests.
    pub kicked: Option<usize>,
}

/// A queue of requests.
#[derive(Debug)]
struct Ring {
    queue: Queue,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    enabled: bool,
    /// Requests of it that are under way.
    under_way: u16,
}

/// A request under way; the earliest is first, of those at one time the one that came first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due<T> {
    at: T,
    number: u64,
    ring: usize,
    head: u16,
    written: u32,
}

/// A virtio block device whose requests are done at times `T`: virtual ones, or those of the wall
/// clock.
#[derive(Debug)]
pub(super) struct Device<T> {
    disk: Disk,
    notify: Notify,
    memory: Option<Memory>,
    rings: Vec<Ring>,
    requests_of_ours: Option<UnixStream>,
    due: BinaryHeap<Reverse<Due<T>>>,
    taken: u64,
}

impl<T: Ord + Copy> Device<T> {
    pub(super) fn new(disk: Disk, notify: Notify) -> Self {
        Self {
            disk,
            notify,
            memory: None,
            rings: Vec::new(),
            requests_of_ours: None,
            due: BinaryHeap::new(),
            taken: 0,
        }
    }

    /// Performs a message of the front end.
    ///
    /// # Errors
    /// A message that makes no sense: the connection is to be closed.
    pub(super) fn handle(&mut self, message: Message) -> Result<Handled, VhostError> {
        let number = message.request;
        let needs_reply = message.needs_reply;
        let mut kicked = None;
        let payload = match number {
            request::GET_FEATURES => Some(self.features().as_bytes().to_vec()),
            request::GET_PROTOCOL_FEATURES => Some(self.protocol().as_bytes().to_vec()),
            request::GET_QUEUE_NUM => Some(u64::from(self.disk.queues).as_bytes().to_vec()),
            request::GET_CONFIG => Some(self.config(&message)?),
            request::GET_VRING_BASE => Some(self.stop_ring(&message)?),
            request::SET_MEM_TABLE => {
                self.memory = Some(Memory::map(&message.payload, message.files)?);
                None
            }
            request::SET_BACKEND_REQ_FD => {
                self.requests_of_ours = message.into_file().map(UnixStream::from);
                None
            }
            request::VRING_KICK => {
                kicked = Some(self.ring_number(message.read::<RingState>()?.queue)?);
                None
            }
            request::SET_VRING_NUM
            | request::SET_VRING_ADDR
            | request::SET_VRING_BASE
            | request::SET_VRING_KICK
            | request::SET_VRING_CALL
            | request::SET_VRING_ENABLE => {
                self.set_ring(message)?;
                None
            }
            request::SET_OWNER
            | request::SET_FEATURES
            | request::SET_PROTOCOL_FEATURES
            | request::SET_VRING_ERR
            | request::SET_CONFIG => None,
            _ => return Err(VhostError::Message("its number is unknown")),
        };
        let done = || needs_reply.then(|| 0_u64.as_bytes().to_vec());
        let reply = payload.or_else(done).map(|payload| (number, payload));
        Ok(Handled { reply, kicked })
    }

    fn features(&self) -> u64 {
        self.disk.features() | PROTOCOL_FEATURES
    }

    fn protocol(&self) -> u64 {
        use protocol::{BACKEND_REQUEST, CONFIG, IN_BAND, MULTIPLE_QUEUES, REPLY_ACK};
        // without requests of the back end user-mode Linux has no interrupt for its calls
        let always = MULTIPLE_QUEUES | REPLY_ACK | CONFIG | BACKEND_REQUEST;
        match self.notify {
            Notify::Events => always,
            Notify::InBand => always | IN_BAND,
        }
    }

    fn config(&self, message: &Message) -> Result<Vec<u8>, VhostError> {
        let range: ConfigRange = message.read()?;
        let most = message.payload.len() - size_of::<ConfigRange>();
        if range.offset > MAX_CONFIG {
            return Err(VhostError::Message("it asks for what no configuration space has"));
        }
        let bytes =
            self.disk.config().bytes(range.offset as usize, (range.size as usize).min(most));
        Ok([range.as_bytes(), &bytes].concat())
    }

    fn ring_number(&self, number: u32) -> Result<usize, VhostError> {
        let number = number as usize;
        if number < self.rings.len() {
            Ok(number)
        } else {
            Err(VhostError::Message("it names a queue that is not there"))
        }
    }

    /// A queue of that number; the first message about it makes it.
    fn ring(&mut self, number: u32) -> Result<&mut Ring, VhostError> {
        let number = number as usize;
        if number >= usize::from(self.disk.queues) {
            return Err(VhostError::Message("it names a queue that is not there"));
        }
        while self.rings.len() <= number {
            let queue = Queue::new(QUEUE_SIZE)
                .map_err(|error| VhostError::Queue { queue: number, reason: error.to_string() })?;
            self.rings.push(Ring { queue, kick: None, call: None, enabled: false, under_way: 0 });
        }
        Ok(&mut self.rings[number])
    }

    fn set_ring(&mut self, message: Message) -> Result<(), VhostError> {
        let state: RingState = message.read()?;
        match message.request {
            request::SET_VRING_NUM => {
                let size = number(state)?;
                let sized = self.ring(state.queue)?.queue.try_set_size(size);
                sized.map_err(|_| VhostError::Message("a queue cannot have that size"))?;
            }
            request::SET_VRING_BASE => {
                let position = number(state)?;
                let ring = self.ring(state.queue)?;
                ring.queue.set_next_avail(position);
                ring.queue.set_next_used(position);
            }
            request::SET_VRING_ENABLE => self.ring(state.queue)?.enabled = state.number != 0,
            request::SET_VRING_ADDR => self.set_addresses(message.read()?)?,
            request::SET_VRING_CALL => {
                let ring = self.ring(state.queue & 0xff)?;
                ring.call = message.into_file();
            }
            _ => {
                let ring = self.ring(state.queue & 0xff)?;
                ring.kick = message.into_file();
                // the protocol waits for SET_VRING_ENABLE, which not every QEMU sends
                ring.enabled = true;
            }
        }
        Ok(())
    }

    fn set_addresses(&mut self, addresses: RingAddresses) -> Result<(), VhostError> {
        let memory = self.memory.as_ref().ok_or(NO_MEMORY)?;
        let descriptors = memory.guest_address(addresses.descriptors)?;
        let available = memory.guest_address(addresses.available)?;
        let used = memory.guest_address(addresses.used)?;
        let queue = &mut self.ring(addresses.queue)?.queue;
        let unaligned = |_| VhostError::Message("a queue is not aligned");
        queue.try_set_desc_table_address(descriptors).map_err(unaligned)?;
        queue.try_set_avail_ring_address(available).map_err(unaligned)?;
        queue.try_set_used_ring_address(used).map_err(unaligned)?;
        queue.set_ready(true);
        Ok(())
    }

    /// The queue's position; it takes nothing from now on.
    fn stop_ring(&mut self, message: &Message) -> Result<Vec<u8>, VhostError> {
        let RingState { queue, .. } = message.read()?;
        let ring = self.ring(queue)?;
        (ring.enabled, ring.kick) = (false, None);
        let number = ring.queue.next_avail().into();
        Ok(RingState { queue, number }.as_bytes().to_vec())
    }

    /// The event descriptor of each queue that has one: readable when there are requests.
    pub(super) fn kicks(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let rings = self.rings.iter().enumerate();
        rings.filter_map(|(number, ring)| Some((number, ring.kick.as_ref()?.as_fd())))
    }

    /// Forgets that a queue was kicked. A descriptor that has come to its end is given up.
    pub(super) fn clear_kick(&mut self, ring: usize) {
        let Some(Ring { kick, .. }) = self.rings.get_mut(ring) else { return };
        let Some(file) = kick else { return };
        match rustix::io::read(file, &mut [0; 8]) {
            Ok(1..) | Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => *kick = None,
        }
    }

    /// Number of queues of which the front end has spoken.
    pub(super) fn rings(&self) -> usize {
        self.rings.len()
    }

    /// Takes every new request of a queue, until `limit` have been taken in all. Each is carried
    /// out by `carry_out`, which tells when it is done and how many bytes of the guest's memory it
    /// wrote; [`Self::complete`] hands it back. A queue that is not at work gives none.
    ///
    /// # Errors
    /// A queue that is damaged, or a request that is none.
    pub(super) fn take(
        &mut self,
        ring: usize,
        limit: u64,
        mut carry_out: impl FnMut(
            &GuestMemoryMmap,
            DescriptorChain<&GuestMemoryMmap>,
        ) -> io::Result<(T, u32)>,
    ) -> Result<(), VhostError> {
        let damaged = |reason: String| VhostError::Queue { queue: ring, reason };
        let Ring { queue, enabled, under_way, .. } = &mut self.rings[ring];
        if !*enabled || !queue.ready() {
            return Ok(());
        }
        let memory = &self.memory.as_ref().ok_or(NO_MEMORY)?.guest;
        if !queue.is_valid(memory) {
            return Err(damaged("it does not lie in the guest's memory".into()));
        }
        while self.taken < limit
            && let Some(chain) =
                queue.iter(memory).map_err(|error| damaged(error.to_string()))?.next()
        {
            if *under_way == queue.size() {
                return Err(damaged("more requests are under way than it has room for".into()));
            }
            let head = chain.head_index();
            let (at, written) =
                carry_out(memory, chain).map_err(|error| damaged(error.to_string()))?;
            self.taken += 1;
            *under_way += 1;
            let number = self.taken;
            self.due.push(Reverse(Due { at, number, ring, head, written }));
        }
        Ok(())
    }

    /// Requests taken so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// The time at which the next request is done; `None` when none is under way.
    pub(super) fn next_done(&self) -> Option<T> {
        self.due.peek().map(|Reverse(due)| due.at)
    }

    /// Hands back every request that is done by `now`. Returns the queues whose guest wants to be
    /// told.
    ///
    /// # Errors
    /// A queue that is damaged.
    pub(super) fn complete(&mut self, now: T) -> Result<Vec<usize>, VhostError> {
        let memory = &self.memory.as_ref().ok_or(NO_MEMORY)?.guest;
        let mut told = Vec::new();
        while self.due.peek().is_some_and(|Reverse(due)| due.at <= now) {
            let Some(Reverse(due)) = self.due.pop() else { break };
            let Ring { queue, under_way, .. } = &mut self.rings[due.ring];
            *under_way -= 1;
            let damaged = |error: virtio_queue::Error| VhostError::Queue {
                queue: due.ring,
                reason: error.to_string(),
            };
            queue.add_used(memory, due.head, due.written).map_err(damaged)?;
            if !told.contains(&due.ring) {
                told.push(due.ring);
            }
        }
        // the guest adds a wish to be told before it looks, so we look after what we have added
        fence(Ordering::SeqCst);
        told.retain(|ring| {
            let flags = GuestAddress(self.rings[*ring].queue.avail_ring());
            memory.read_obj::<u16>(flags).is_ok_and(|flags| flags & NO_INTERRUPT == 0)
        });
        Ok(told)
    }

    /// Tells the guest that requests of a queue are done. In band, `wait` is called until the
    /// acknowledgement can be read from the descriptor that it is given.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) fn call(
        &self,
        ring: usize,
        mut wait: impl FnMut(BorrowedFd<'_>) -> Result<(), VhostError>,
    ) -> Result<(), VhostError> {
        match (self.notify, &self.requests_of_ours, &self.rings[ring].call) {
            (Notify::InBand, Some(socket), _) => {
                message::call_in_band(socket.as_fd(), ring as u32)?;
                wait(socket.as_fd())?;
                let mut acknowledgement = [0; ACKNOWLEDGEMENT];
                io::Read::read_exact(&mut &*socket, &mut acknowledgement)?;
            }
            // where there is no room the guest has not seen an earlier call
            (_, _, Some(call)) if has_room(call.as_fd())? => {
                rustix::io::write(call, 1_u64.as_bytes()).map_err(io::Error::from)?;
            }
            _ => {}
        }
        Ok(())
    }
}

const NO_MEMORY: VhostError = VhostError::Message("it came before the guest's memory was known");

/// The number of a message about a queue, as far as a queue can have it.
fn number(state: RingState) -> Result<u16, VhostError> {
    let wrong = |_| VhostError::Message("it gives a queue a size or place that no queue has");
    u16::try_from(state.number).map_err(wrong)
}

fn has_room(file: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(file, PollFlags::OUT)];
    wait::poll(&mut fds, Some(Duration::ZERO))?;
    Ok(fds[0].revents().contains(PollFlags::OUT))
}
