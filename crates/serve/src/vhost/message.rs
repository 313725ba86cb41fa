//! Messages of the vhost-user protocol: a header of 12 bytes, a payload, and file descriptors
//! beside them.
//!
//! Source: QEMU's documentation, "Vhost-user Protocol"; numbers in the machine's own byte order.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::VhostError;
use super::device::Handled;

/// Requests that a front end sends.
pub(super) mod request {
    pub(crate) const GET_FEATURES: u32 = 1;
    pub(crate) const SET_FEATURES: u32 = 2;
    pub(crate) const SET_OWNER: u32 = 3;
    pub(crate) const SET_MEM_TABLE: u32 = 5;
    pub(crate) const SET_VRING_NUM: u32 = 8;
    pub(crate) const SET_VRING_ADDR: u32 = 9;
    pub(crate) const SET_VRING_BASE: u32 = 10;
    pub(crate) const GET_VRING_BASE: u32 = 11;
    pub(crate) const SET_VRING_KICK: u32 = 12;
    pub(crate) const SET_VRING_CALL: u32 = 13;
    pub(crate) const SET_VRING_ERR: u32 = 14;
    pub(crate) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(crate) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(crate) const GET_QUEUE_NUM: u32 = 17;
    pub(crate) const SET_VRING_ENABLE: u32 = 18;
    pub(crate) const SET_BACKEND_REQ_FD: u32 = 21;
    pub(crate) const GET_CONFIG: u32 = 24;
    pub(crate) const SET_CONFIG: u32 = 25;
    pub(crate) const VRING_KICK: u32 = 35;
    /// Not of the protocol: the state of the drive, as JSON.
    pub(crate) const STATUS: u32 = 0x646f_7665;
}

/// The request of a back end that tells of used buffers in band.
pub(super) const VRING_CALL: u32 = 4;

const VERSION: u32 = 1;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// The longest payload: a configuration space of 4 KiB is longer than any of ours.
const MAX_PAYLOAD: usize = 4096 + 64;
/// Descriptors that a message brings at most: a memory table of eight regions.
const MAX_FILES: usize = 8;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Header {
    request: u32,
    flags: u32,
    size: u32,
}

/// A message that was received.
#[derive(Debug)]
pub struct Message {
    /// The request's number.
    pub request: u32,
    /// The sender waits for a reply even where the request has none.
    pub needs_reply: bool,
    /// The payload.
    pub payload: Vec<u8>,
    /// File descriptors that came with it.
    pub files: Vec<OwnedFd>,
}

impl Message {
    /// Waits for the next message; `None` when the front end has closed the connection.
    ///
    /// # Errors
    /// The connection broke in the middle of a message, or the message is none.
    pub fn receive(socket: &UnixStream) -> Result<Option<Self>, VhostError> {
        let mut bytes = [0; size_of::<Header>()];
        let (received, files) = receive_with_files(socket.as_fd(), &mut bytes)?;
        if received == 0 {
            return Ok(None);
        }
        (&*socket).read_exact(&mut bytes[received..])?;
        let header: Header = zerocopy::transmute!(bytes);
        let size = header.size as usize;
        if header.flags & 3 != VERSION || size > MAX_PAYLOAD {
            return Err(VhostError::Message("its header is none of this protocol"));
        }
        let mut payload = vec![0; size];
        (&*socket).read_exact(&mut payload)?;
        let needs_reply = header.flags & NEEDS_REPLY != 0;
        Ok(Some(Self { request: header.request, needs_reply, payload, files }))
    }

    /// The payload as a structure.
    pub(super) fn read<T: FromBytes>(&self) -> Result<T, VhostError> {
        let (read, _) = T::read_from_prefix(&self.payload)
            .map_err(|_| VhostError::Message("its payload is too short"))?;
        Ok(read)
    }

    /// The only descriptor that came with it, if one did.
    pub(super) fn into_file(self) -> Option<OwnedFd> {
        self.files.into_iter().next()
    }
}

/// Sends the reply to a request.
///
/// # Errors
/// The connection broke.
pub(super) fn reply(socket: &UnixStream, request: u32, payload: &[u8]) -> io::Result<()> {
    send(socket.as_fd(), request, VERSION | IS_REPLY, payload, &[])
}

/// Sends the reply to a message, if it has one.
///
/// # Errors
/// The connection broke.
pub(super) fn reply_to(socket: &UnixStream, handled: Handled) -> Result<(), VhostError> {
    if let Some((number, payload)) = handled.reply {
        reply(socket, number, &payload)?;
    }
    Ok(())
}

/// Asks the server for the state of its drive, as JSON.
///
/// # Errors
/// The connection broke, or a server of another kind is there.
pub(super) fn ask_status(socket: &UnixStream) -> Result<Vec<u8>, VhostError> {
    send(socket.as_fd(), request::STATUS, VERSION, &[], &[])?;
    match Message::receive(socket)? {
        Some(message) if message.request == request::STATUS => Ok(message.payload),
        _ => Err(VhostError::Message("it is no answer to a question about the drive")),
    }
}

/// Tells the front end of used buffers of a queue, and waits until it has taken note.
///
/// # Errors
/// The connection broke.
pub(super) fn call_in_band(socket: BorrowedFd<'_>, queue: u32) -> io::Result<()> {
    send(socket, VRING_CALL, VERSION | NEEDS_REPLY, [queue, 0].as_bytes(), &[])
}

/// Bytes of the acknowledgement of a request of the back end's.
pub(super) const ACKNOWLEDGEMENT: usize = size_of::<Header>() + size_of::<u64>();

fn send(
    socket: BorrowedFd<'_>,
    request: u32,
    flags: u32,
    payload: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let header = Header { request, flags, size: payload.len() as u32 };
    let message = [header.as_bytes(), payload].concat();
    send_with_files(socket, &message, files)
}

/// Sends bytes with file descriptors beside them.
///
/// # Errors
/// The connection broke.
pub fn send_with_files(
    socket: BorrowedFd<'_>,
    message: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many file descriptors for one message"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)?;
    // a message of this size fits into an empty socket as a whole
    if sent == message.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives bytes with the file descriptors beside them; no bytes at the end of the connection.
///
/// # Errors
/// The connection broke.
fn receive_with_files(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(into)];
    let received = loop {
        match recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok((received, files.flatten().collect()))
}
