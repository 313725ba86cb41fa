//! A server: a drive, the sockets that it listens on, and a thread for each connection.

use std::collections::HashMap;
use std::error::Error;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};

use crate::address::{Address, ListenError, Listener};
use crate::drive::Drive;
use crate::export::ExportError;
use crate::pace::Pace;
use crate::served::Served;
use crate::status::Status;
use crate::ublk::{Disk, UblkError};
use crate::{nbd, vhost};

/// Connections at a time; more are closed at once. Assumed; far more than a kernel's client makes.
const MOST_CONNECTIONS: usize = 256;
/// Time for the answers that are under way when the server ends.
const GRACE: Duration = Duration::from_secs(1);
/// Wait after a connection that could not be taken: the system has no more descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A drive that is served until it is [ended](Server::end).
#[derive(Debug)]
pub struct Server {
    served: Arc<Served>,
    zoned: bool,
    connections: Arc<Connections>,
    listening: Vec<(Arc<Listener>, JoinHandle<()>)>,
    disks: Vec<Disk>,
}

/// A language of clients.
#[derive(Clone, Debug)]
enum Protocol {
    Nbd,
    Vhost(Arc<vhost::Place>),
}

impl Protocol {
    fn serve(&self, served: &Served, socket: &OwnedFd) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Nbd => Ok(nbd::serve(served, socket)?),
            Self::Vhost(place) => Ok(vhost::serve(served, place, socket)?),
        }
    }
}

/// The connections at the moment.
#[derive(Debug, Default)]
struct Connections {
    open: Mutex<Open>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    sockets: HashMap<u64, Arc<OwnedFd>>,
    last: u64,
}

impl Server {
    /// Serves a drive at a pace that begins now.
    pub fn new(drive: Drive, pace: Pace, read_only: bool) -> Self {
        let zoned = drive.storage().zoned().is_some();
        let served = Arc::new(Served::new(drive, pace, read_only));
        let (connections, listening) = (Arc::default(), Vec::new());
        Self { served, zoned, connections, listening, disks: Vec::new() }
    }

    /// Listens for clients that speak NBD; returns the address, with a port that the system chose
    /// if 0 was given. An address that other machines can reach is refused unless `allow_remote`.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn listen(
        &mut self,
        address: &Address,
        allow_remote: bool,
    ) -> Result<Address, ListenError> {
        if self.zoned {
            return Err(ListenError::Zoned);
        }
        self.begin_listening(address, allow_remote, Protocol::Nbd)
    }

    /// Listens for a front end that speaks vhost-user-blk, one at a time, with so many queues at
    /// most (1 to 16).
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn listen_for_front_end(&mut self, path: &Path, queues: u16) -> Result<(), ListenError> {
        let protocol = Protocol::Vhost(Arc::new(vhost::Place::new(queues)));
        self.begin_listening(&Address::Unix(path.into()), false, protocol).map(drop)
    }

    /// Makes a disk of this machine's Linux with so many queues (1 to 16) at most, and returns its
    /// name; 0 makes `/dev/ublkb0`, `None` the first that is free. Whoever asks at
    /// [`Address::of`] its name is told the [status](Self::status).
    ///
    /// # Errors
    /// See [`UblkError`]; and those of the socket for the status.
    pub fn make_disk(
        &mut self,
        number: Option<u32>,
        queues: u16,
    ) -> Result<PathBuf, Box<dyn Error>> {
        if self.zoned {
            return Err(UblkError::Zoned.into());
        }
        let disk = Disk::begin(&self.served, number, queues)?;
        let path = disk.path();
        self.disks.push(disk);
        let address = Address::of(&path.to_string_lossy());
        if let Address::Unix(socket) = self.listen(&address, false)? {
            // whoever may open the disk: not more
            fs::set_permissions(socket, Permissions::from_mode(0o600))?;
        }
        Ok(path)
    }

    fn begin_listening(
        &mut self,
        address: &Address,
        allow_remote: bool,
        protocol: Protocol,
    ) -> Result<Address, ListenError> {
        let failed = |error| ListenError::Io(address.clone(), error);
        let listener = Arc::new(Listener::new(address, allow_remote)?);
        let bound = listener.address().map_err(failed)?;
        let (served, connections) = (Arc::clone(&self.served), Arc::clone(&self.connections));
        let own = Arc::clone(&listener);
        let accept = move || accept_all(&own, &served, &connections, &protocol);
        let thread = thread::Builder::new().name("listener".into()).spawn(accept);
        self.listening.push((listener, thread.map_err(failed)?));
        Ok(bound)
    }

    /// The state of the drive and of the server.
    ///
    /// # Errors
    /// A fault of the model.
    pub fn status(&self) -> Result<Status, ExportError> {
        self.served.status()
    }

    /// Deletes disks, takes no more connections, gives answers that are under way a second, closes the
    /// rest, and flushes the drive.
    ///
    /// # Errors
    /// Those of the flush.
    pub fn end(self) -> Result<(), ExportError> {
        // first, since it writes back what this machine still has of it
        self.disks.into_iter().for_each(Disk::end);
        for (listener, thread) in self.listening {
            listener.end();
            if thread.join().is_err() {
                tracing::error!("the thread of a listener has panicked");
            }
        }
        self.connections.end();
        self.served.settle()
    }
}

fn accept_all(
    listener: &Listener,
    served: &Arc<Served>,
    connections: &Arc<Connections>,
    protocol: &Protocol,
) {
    loop {
        match listener.accept() {
            Ok(socket) => begin(socket, served, connections, protocol),
            // shut down
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                thread::sleep(AFTER_FAILURE);
            }
        }
    }
}

/// Serves a connection in a thread of its own.
fn begin(
    socket: OwnedFd,
    served: &Arc<Served>,
    connections: &Arc<Connections>,
    protocol: &Protocol,
) {
    let Some(connection) = Connection::open(socket, connections) else {
        tracing::warn!("a connection more than {MOST_CONNECTIONS} is closed");
        return;
    };
    let (served, protocol) = (Arc::clone(served), protocol.clone());
    let serve = move || {
        if let Err(error) = protocol.serve(&served, &connection.socket) {
            tracing::info!(%error, "a connection ends");
        }
    };
    if let Err(error) = thread::Builder::new().name("connection".into()).spawn(serve) {
        tracing::warn!(%error, "a connection gets no thread, and is closed");
    }
}

/// An open connection; it is closed when this goes.
struct Connection {
    number: u64,
    socket: Arc<OwnedFd>,
    connections: Arc<Connections>,
}

impl Connection {
    /// `None` if there are too many.
    fn open(socket: OwnedFd, connections: &Arc<Connections>) -> Option<Self> {
        let mut open = connections.open();
        if open.sockets.len() >= MOST_CONNECTIONS {
            return None;
        }
        open.last += 1;
        let (number, socket) = (open.last, Arc::new(socket));
        open.sockets.insert(number, Arc::clone(&socket));
        drop(open);
        Some(Self { number, socket, connections: Arc::clone(connections) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.open().sockets.remove(&self.number);
        self.connections.closed.notify_all();
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        // a set of numbers is whole at all times
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let mut open = self.open();
        open.shut(Shutdown::Read);
        let is_open = |open: &mut Open| !open.sockets.is_empty();
        let waited = self.closed.wait_timeout_while(open, GRACE, is_open);
        let (mut open, _) = waited.unwrap_or_else(PoisonError::into_inner);
        open.shut(Shutdown::Both);
        drop(self.closed.wait_timeout_while(open, GRACE, is_open));
    }
}

impl Open {
    fn shut(&mut self, how: Shutdown) {
        for socket in self.sockets.values() {
            // one that its client has closed already needs it no more
            let _ = shutdown(socket, how);
        }
    }
}
