//! Addresses at which a server listens.

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A port of TCP.
    Tcp(SocketAddr),
}

/// Reason why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The system below.
    #[error("{0}: {1}")]
    Io(Address, io::Error),
    /// Another server is there.
    #[error("{0}: a server answers there already; end it, or give another path")]
    InUse(Address),
    /// Another kind of file is there.
    #[error("{0}: that is no socket; give another path")]
    NoSocket(Address),
    /// An address that others can reach.
    #[error(
        "{0} can be reached from other machines, and NBD asks nobody who he is; --allow-remote listens there all \
         the same"
    )]
    Remote(Address),
    /// A drive that the protocol cannot serve.
    #[error(
        "the drive has zones, of which NBD knows nothing: its writes would fail; --vhost serves them"
    )]
    Zoned,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

impl Address {
    /// `[ADDRESS:]PORT`: without an address that of this machine alone.
    ///
    /// # Errors
    /// A sentence.
    pub fn tcp(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is no port; give one from 0 to 65535, or ADDRESS:PORT as in 127.0.0.1:10809"
            )
        };
        let address = match text.rsplit_once(':') {
            None => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), text.parse().map_err(|_| wrong())?),
            Some(("localhost", port)) => {
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().map_err(|_| wrong())?)
            }
            Some(_) => SocketAddr::from_str(text).map_err(|_| wrong())?,
        };
        Ok(Self::Tcp(address))
    }

    /// A path, or `[ADDRESS:]PORT`. The name of a disk that is served, `/dev/ublkb0`, stands for the
    /// socket at which its server is asked.
    pub fn of(text: &str) -> Self {
        if let Some(disk) = text.strip_prefix("/dev/ublkb") {
            return Self::Unix(format!("/run/dovetail-ublkb{disk}").into());
        }
        let is_path = text.contains('/') || Path::new(text).exists();
        match Self::tcp(text) {
            Ok(address) if !is_path => address,
            _ => Self::Unix(text.into()),
        }
    }

    /// The address in the way that NBD clients are told it, whatever their directory is.
    pub fn uri(&self) -> String {
        match self {
            Self::Unix(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("nbd+unix:///?socket={}", percent_encoded(&path))
            }
            Self::Tcp(address) => format!("nbd://{address}"),
        }
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// Those of the system.
    pub fn connect(&self) -> io::Result<OwnedFd> {
        Ok(match self {
            Self::Unix(path) => UnixStream::connect(path)?.into(),
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.into()
            }
        })
    }
}

/// A socket that listens. A unix socket's file goes when it does.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix { socket: UnixListener, path: PathBuf, file: (u64, u64) },
    Tcp(TcpListener),
}

impl Listener {
    pub(crate) fn new(address: &Address, allow_remote: bool) -> Result<Self, ListenError> {
        let failed = |error| ListenError::Io(address.clone(), error);
        match address {
            Address::Unix(path) => {
                make_way(address, path)?;
                let socket = UnixListener::bind(path).map_err(failed)?;
                let file = identity(path).map_err(failed)?;
                Ok(Self::Unix { socket, path: path.clone(), file })
            }
            Address::Tcp(place) if !allow_remote && !is_local(place.ip()) => {
                Err(ListenError::Remote(address.clone()))
            }
            Address::Tcp(place) => TcpListener::bind(place).map(Self::Tcp).map_err(failed),
        }
    }

    /// The address, with the port that the system chose.
    pub(crate) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Unix { path, .. } => Address::Unix(path.clone()),
            Self::Tcp(socket) => Address::Tcp(socket.local_addr()?),
        })
    }

    pub(crate) fn accept(&self) -> io::Result<OwnedFd> {
        Ok(match self {
            Self::Unix { socket, .. } => socket.accept()?.0.into(),
            Self::Tcp(socket) => {
                let (stream, _) = socket.accept()?;
                // it fails where the client has gone away already, which reading finds out
                let _ = stream.set_nodelay(true);
                stream.into()
            }
        })
    }

    /// Ends [`Listener::accept`], now and for ever.
    pub(crate) fn end(&self) {
        let ended = match self {
            Self::Unix { socket, .. } => rustix::net::shutdown(socket, rustix::net::Shutdown::Both),
            Self::Tcp(socket) => rustix::net::shutdown(socket, rustix::net::Shutdown::Both),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a socket cannot be shut down");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Self::Unix { path, file, .. } = self else { return };
        if identity(path).is_ok_and(|now| now == *file) {
            // whoever removed it meanwhile has done what this would
            let _ = fs::remove_file(path);
        }
    }
}

/// A path as the value in a URI's query.
fn percent_encoded(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes
        .map(|&byte| if is_plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Removes the socket of a server that has ended without doing so.
fn make_way(address: &Address, path: &Path) -> Result<(), ListenError> {
    let failed = |error| ListenError::Io(address.clone(), error);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(ListenError::NoSocket(address.clone()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
        Ok(_) => Err(ListenError::InUse(address.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        let shown = |text| Address::tcp(text).map(|address| address.to_string());
        assert_eq!(shown("10809").as_deref(), Ok("127.0.0.1:10809"));
        assert_eq!(shown("localhost:9").as_deref(), Ok("127.0.0.1:9"));
        assert_eq!(shown("[::1]:9").as_deref(), Ok("[::1]:9"));
        for bad in ["", "x", "70000", "1.2.3:4", "::1", "host:5"] {
            assert!(shown(bad).unwrap_err().contains("is no port"), "{bad}");
        }
        assert_eq!(Address::of("./10809"), Address::Unix("./10809".into()));
        assert_eq!(Address::of("drive.sock"), Address::Unix("drive.sock".into()));
        assert!(matches!(Address::of("10809"), Address::Tcp(_)));
        let disk = Address::of("/dev/ublkb3");
        assert_eq!(disk, Address::Unix("/run/dovetail-ublkb3".into()));
    }

    #[test]
    fn a_uri_names_the_socket_from_anywhere() {
        let uri = |path: &str| Address::Unix(path.into()).uri();
        assert_eq!(uri("/tmp/a-b_1.sock"), "nbd+unix:///?socket=/tmp/a-b_1.sock");
        assert_eq!(uri("/tmp/my drive&ü"), "nbd+unix:///?socket=/tmp/my%20drive%26%C3%BC");
        let here = std::env::current_dir().unwrap();
        assert!(uri("s").ends_with(&format!("{}/s", percent_encoded(&here))));
        assert_eq!(Address::tcp("[::1]:9").unwrap().uri(), "nbd://[::1]:9");
    }

    #[test]
    fn only_this_machine_reaches_it_unless_told() {
        let anyone = Address::tcp("0.0.0.0:0").unwrap();
        let refused = Listener::new(&anyone, false).unwrap_err();
        assert!(refused.to_string().contains("--allow-remote"), "{refused}");
        Listener::new(&anyone, true).unwrap();
        for local in ["0", "[::ffff:127.0.0.1]:0"] {
            Listener::new(&Address::tcp(local).unwrap(), false).unwrap();
        }
    }

    #[test]
    fn a_socket_that_nobody_answers_on_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let address = Address::Unix(path.clone());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "as after a kill -9");
        let listener = Listener::new(&address, false).unwrap();
        let again = Listener::new(&address, false).unwrap_err();
        assert!(matches!(again, ListenError::InUse(_)), "{again}");
        drop(listener);
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        let refused = Listener::new(&address, false).unwrap_err();
        assert!(matches!(refused, ListenError::NoSocket(_)), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), b"a file");
    }
}
