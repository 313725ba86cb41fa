//! A drive as a virtio block device of another process: QEMU, or user-mode Linux.
//!
//! The other process (the front end) connects to a Unix socket, shares its guest's memory and tells
//! where in it the queues of requests lie. [`BlockTarget`] takes requests out of the queues at a
//! time that the caller gives, and hands each back when it is done: in virtual time. The server does
//! so in real time, with a drive that is served to others as well.

mod ask;
mod config;
mod device;
mod front_end;
mod memory;
mod message;
mod request;
mod target;
mod zones;

use std::io;

pub(crate) use ask::ask_status;
pub use device::{Handled, Notify};
pub(crate) use front_end::{Place, serve};
pub use message::{Message, send_with_files};
pub use request::{Done, Kind, Stage};
pub use target::BlockTarget;

/// An error of a connection with a front end; the drive is whole, the connection is over.
#[derive(Debug, thiserror::Error)]
pub enum VhostError {
    /// The socket.
    #[error("the connection to the guest broke: {0}")]
    Io(#[from] io::Error),
    /// A message that makes no sense.
    #[error("the guest's side sent a message that cannot be understood: {0}")]
    Message(&'static str),
    /// Memory that cannot be mapped.
    #[error("the guest's memory cannot be mapped: {0}")]
    Memory(String),
    /// Another front end is there.
    #[error("another front end uses the drive; one can at a time")]
    InUse,
    /// A queue that makes no sense.
    #[error("queue {queue} of the guest is damaged: {reason}")]
    Queue {
        /// Its number.
        queue: usize,
        /// Description of the fault.
        reason: String,
    },
}
