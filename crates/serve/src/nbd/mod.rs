//! The NBD protocol: newstyle handshake, then requests and replies.

mod answer;
mod ask;
mod handshake;
mod socket;
mod transmit;
mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::served::Served;

pub(crate) use ask::ask_status;
pub(crate) use socket::is_readable;

/// Bytes of a read or write at most.
const MAX_REQUEST: u32 = 32 << 20;
/// The one metadata context: which blocks hold something.
const ALLOCATION: &[u8] = b"base:allocation";
/// Its number on the wire.
const ALLOCATION_ID: u32 = 1;
/// Longest silence of a client before it sends requests; later it may be silent as long as it
/// likes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves one client until it goes away, or does what no client may.
///
/// # Errors
/// Those of the socket, and [`io::ErrorKind::InvalidData`] for a client that talks nonsense.
pub(crate) fn serve(served: &Served, socket: &OwnedFd) -> io::Result<()> {
    let _connected = served.connect();
    let mut input = socket::Input::default();
    set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE))?;
    let Some(agreed) = handshake::negotiate(served, socket, &mut input)? else { return Ok(()) };
    set_socket_timeout(socket, Timeout::Recv, None)?;
    transmit::Transmission::new(served, socket, input, agreed).run()
}
