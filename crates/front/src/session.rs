//! The life of a mount: from mounting to a clean end.

use std::ffi::c_int;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use dovetail_vfs::{Error, FileSystem};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::info;

use crate::adapter::Adapter;
use crate::clock;
use crate::faults::Faults;
use crate::options::Options;
use crate::shared::Shared;
use crate::waker::Waker;
use crate::{mountinfo, read_ahead, unmount};

/// Time for which those who still have files open keep the mount alive after it was taken out of
/// the tree.
const GRACE: Duration = Duration::from_secs(1);

/// Reason why there is no mount.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The place to mount at cannot be used.
    #[error("{path} cannot be mounted at: {source}")]
    Mountpoint {
        /// The place.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A mount is there whose process has ended.
    #[error("{path} is still mounted, and what served it was killed: run `umount {path}` first")]
    Left {
        /// The place.
        path: PathBuf,
    },
    /// A thread or a signal handler cannot be set up.
    #[error("the mount cannot be served: {0}")]
    Threads(#[source] io::Error),
}

/// Reason why a mount ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Someone unmounted it.
    Unmounted,
    /// A signal asked for it.
    Signal(i32),
}

enum Event {
    Signal(c_int),
    Served(io::Result<()>),
}

/// A mount that is served by threads of its own until it ends. Dropping it unmounts.
#[derive(Debug)]
pub struct Session {
    mountpoint: PathBuf,
    /// The device number that the kernel has given it.
    device: Option<String>,
    shared: Shared,
    waker: Option<Waker>,
    events: Receiver<Event>,
    signals: signal_hook::iterator::Handle,
}

/// Mounts `fs` at the directory `mountpoint` and serves it. SIGTERM, SIGINT and SIGHUP are taken
/// over: they end the mount when [`Session::wait`] is called. They stay taken over when the mount
/// has ended or could not begin.
///
/// # Errors
/// [`MountError`].
pub fn mount(
    fs: Box<dyn FileSystem + Send + Sync>,
    mountpoint: &Path,
    options: Options,
) -> Result<Session, MountError> {
    let refuse = |source: io::Error| {
        let path = mountpoint.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotConnected => MountError::Left { path },
            _ => MountError::Mountpoint { path, source },
        }
    };
    let path = mountpoint.canonicalize().map_err(refuse)?;
    if !path.is_dir() {
        return Err(refuse(io::ErrorKind::NotADirectory.into()));
    }
    let config = options.config();
    let root = fs.root();
    let faults = Faults::new(options.on_error, options.read_only);
    let shared = Shared::new(fs, faults, options.flush, clock::start());
    let (sender, events) = channel();
    let signals = listen(sender.clone()).map_err(MountError::Threads)?;
    let session =
        fuser::Session::new(Adapter::new(shared.clone(), root), &path, &config).map_err(refuse)?;
    let device = mountinfo::device_at(&path);
    let waker = Waker::start(shared.clone()).map_err(MountError::Threads)?;
    let serve = move || drop(sender.send(Event::Served(session.run())));
    thread::Builder::new().name("serve".into()).spawn(serve).map_err(MountError::Threads)?;
    if let Some(device) = &device {
        read_ahead::widen(device);
    }
    info!(path = %path.display(), kind = options.kind, threads = options.threads, "mounted");
    Ok(Session { mountpoint: path, device, shared, waker: Some(waker), events, signals })
}

fn listen(sender: Sender<Event>) -> io::Result<signal_hook::iterator::Handle> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let handle = signals.handle();
    let forward = move || {
        for signal in signals.forever() {
            let _ = sender.send(Event::Signal(signal)); // nobody listens any more: the mount has ended
        }
    };
    thread::Builder::new().name("signals".into()).spawn(forward)?;
    Ok(handle)
}

impl Session {
    /// Serves until someone unmounts or a signal comes, then makes everything durable.
    ///
    /// # Errors
    /// A failed write of the file system; [`Error::Io`] when the kernel's connection broke.
    pub fn wait(mut self) -> Result<Ending, Error> {
        let ending = match self.events.recv() {
            Ok(Event::Served(result)) => result.map(|()| Ending::Unmounted),
            Ok(Event::Signal(signal)) => {
                info!(signal, "a signal ends the mount");
                self.leave();
                Ok(Ending::Signal(signal))
            }
            Err(_) => Ok(Ending::Unmounted),
        };
        self.end()?;
        ending.map_err(|error| Error::Io(format!("the connection to the kernel broke: {error}")))
    }

    /// Unmounts, and makes everything durable.
    ///
    /// # Errors
    /// A failed write of the file system.
    pub fn unmount(mut self) -> Result<(), Error> {
        self.leave();
        self.end()
    }

    /// Takes the mount out of the tree, with what the kernel has not written yet written. Files
    /// that are open somewhere are no reason to stay, but those who have them get a moment.
    fn leave(&mut self) {
        if self.is_in_the_tree() {
            unmount::unmount(&self.mountpoint);
        }
        while !matches!(
            self.events.recv_timeout(GRACE),
            Ok(Event::Served(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)
        ) {}
    }

    /// Nobody has unmounted it, or mounted something over it. Without /proc it is taken to be
    /// there.
    fn is_in_the_tree(&self) -> bool {
        mountinfo::device_at(&self.mountpoint) == self.device
    }

    /// Ends the file system. What requests may still come find no file system.
    fn end(&mut self) -> Result<(), Error> {
        self.signals.close();
        if let Some(waker) = self.waker.take() {
            waker.stop();
        }
        info!(path = %self.mountpoint.display(), "writing what is left");
        let ended = self.shared.take().map_or(Ok(()), |fs| fs.unmount());
        self.shared.tell_counts();
        info!(path = %self.mountpoint.display(), "unmounted");
        ended
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.waker.is_some() {
            self.leave();
            let _ = self.end(); // whoever wants to know calls unmount
        }
    }
}
