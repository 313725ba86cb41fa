//! A client that only asks how a drive is, whatever its server speaks.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::status::Status;
use crate::{nbd, vhost};

/// A server that speaks NBD begins; one that has said nothing for so long waits for a front end.
const GREETING: Duration = Duration::from_secs(1);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reason why a server did not tell the state of its drive.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection failed.
    #[error("no answer: {0}")]
    Io(#[from] io::Error),
    /// A server of another kind.
    #[error("what answers there is no server of dovetail")]
    Other,
}

/// Asks the server at the other end of a new connection for the state of its drive.
///
/// # Errors
/// See [`AskError`].
pub fn ask_status(socket: &OwnedFd) -> Result<Status, AskError> {
    set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE)).map_err(io::Error::from)?;
    let speaks_nbd = nbd::is_readable(socket, Some(GREETING))?;
    let ask = if speaks_nbd { nbd::ask_status } else { vhost::ask_status };
    match ask(socket) {
        Ok(Some(text)) => serde_json::from_slice(&text).map_err(|_| AskError::Other),
        Ok(None) => Err(AskError::Other),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(AskError::Other),
        Err(error) => Err(error.into()),
    }
}
