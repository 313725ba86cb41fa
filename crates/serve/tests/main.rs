//! The server, as its clients see it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod bad_input;
mod client;
mod front_end;
mod pace;
mod protocol;
mod vhost;

use client::Client;
use dovetail_ftl::{Overrides, Profile, Storage};
use dovetail_serve::{Address, Drive, Pace, Server};
use tempfile::TempDir;

/// A server of a small drive in memory, on a unix socket.
struct Rig {
    folder: TempDir,
    server: Server,
}

/// A drive of 128 MiB.
fn drive(profile: &str) -> Drive {
    let overrides =
        Overrides { scale: Some("1/256".parse().unwrap()), seed: 1, ..Overrides::default() };
    let config = Profile::load(profile).unwrap().resolve(&overrides).unwrap();
    Drive::InMemory(Box::new(Storage::new(config).unwrap()))
}

impl Rig {
    fn new(speed: f64, read_only: bool) -> Self {
        Self::with_pace(Pace::new(speed), read_only)
    }

    fn with_pace(pace: Pace, read_only: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::new(drive("femu-32g"), pace, read_only);
        server.listen(&Address::Unix(folder.path().join("socket")), false).unwrap();
        Self { folder, server }
    }

    /// A server that answers at once.
    fn at_once() -> Self {
        Self::new(0.0, false)
    }

    fn connect(&self) -> Client {
        Client::connect(&self.folder.path().join("socket"))
    }

    /// A client that may send requests, and gets structured replies.
    fn client(&self) -> Client {
        let mut client = self.connect();
        client.begin(true);
        client
    }
}
