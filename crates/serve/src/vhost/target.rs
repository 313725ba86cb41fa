//! A drive of its own as a virtio block device, in virtual time.

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use dovetail_block::BlockDevice;
use dovetail_time::SimTime;

use super::VhostError;
use super::config::Disk;
use super::device::{Device, Handled, Notify};
use super::message::{self, Message};
use super::request::{Stage, carry_out};
use crate::export::Export;

/// A drive as a virtio block device.
#[derive(Debug)]
pub struct BlockTarget<D> {
    export: Export<D>,
    name: String,
    device: Device<SimTime>,
}

impl<D: BlockDevice> BlockTarget<D> {
    /// A device with so many queues (1 to 16), whose guest sees `name` as its serial number.
    pub fn new(export: Export<D>, name: &str, queues: u16, notify: Notify) -> Self {
        let device = Device::new(Disk::of(&export, queues, false), notify);
        Self { export, name: name.into(), device }
    }

    /// The drive.
    pub fn drive(&self) -> &D {
        self.export.device()
    }

    /// The drive, when the guest is gone; what was under way is done.
    pub fn into_export(self) -> Export<D> {
        self.export
    }

    /// Performs a message of the front end.
    ///
    /// # Errors
    /// A message that makes no sense: the connection is to be closed.
    pub fn handle(&mut self, message: Message) -> Result<Handled, VhostError> {
        self.device.handle(message)
    }

    /// Sends the reply to a message, if it has one.
    ///
    /// # Errors
    /// The connection broke.
    pub fn reply(socket: &UnixStream, handled: Handled) -> Result<(), VhostError> {
        message::reply_to(socket, handled)
    }

    /// Takes every new request of a queue at time `now`, until `limit` have been taken in all, and
    /// shows each to `seen` with the drive before and after it. Their data moves now;
    /// [`Self::complete`] hands them back.
    ///
    /// # Errors
    /// A queue that is damaged.
    pub fn take(
        &mut self,
        ring: usize,
        now: SimTime,
        limit: u64,
        mut seen: impl FnMut(Stage<'_>, &D),
    ) -> Result<(), VhostError> {
        let (export, name) = (&mut self.export, &self.name);
        self.device.take(ring, limit, |memory, chain| {
            seen(Stage::Arrives, export.device());
            let done = carry_out(export, name, memory, chain, now)?;
            seen(Stage::Done(&done), export.device());
            Ok((done.at.max(now), done.written))
        })
    }

    /// Requests taken so far.
    pub fn taken(&self) -> u64 {
        self.device.taken()
    }

    /// The time at which the next request is done; `None` when none is under way.
    pub fn next_done(&self) -> Option<SimTime> {
        self.device.next_done()
    }

    /// Hands back every request that is done by `now`. Returns the queues whose guest wants to be
    /// told.
    ///
    /// # Errors
    /// A queue that is damaged.
    pub fn complete(&mut self, now: SimTime) -> Result<Vec<usize>, VhostError> {
        self.device.complete(now)
    }

    /// Tells the guest that requests of a queue are done. In band, `wait` is called until the
    /// acknowledgement can be read from the descriptor that it is given.
    ///
    /// # Errors
    /// The connection broke.
    pub fn call(
        &self,
        ring: usize,
        wait: impl FnMut(BorrowedFd<'_>) -> Result<(), VhostError>,
    ) -> Result<(), VhostError> {
        self.device.call(ring, wait)
    }
}
