//! A client that only asks how the drive is.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::{VhostError, message};

/// Asks the server at the other end of a new connection; `None` if it is one of another kind.
///
/// # Errors
/// Those of the socket.
pub(crate) fn ask_status(socket: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    match message::ask_status(&UnixStream::from(socket.try_clone()?)) {
        Ok(text) => Ok(Some(text)),
        Err(VhostError::Io(error)) => Err(error),
        Err(_) => Ok(None),
    }
}
