//! Programs of others that tests ask.

use std::path::PathBuf;
use std::process::Command;

/// Folders that a user's `PATH` may lack: mkfs and fsck are there.
const SYSTEM: &str = ":/usr/sbin:/sbin";

/// A command that runs `name`, found as a shell of the administrator finds it.
///
/// It has the program's path. With a name to look for in another `PATH`, [`Command`] would fork: that
/// copies the page tables of the tests, which hold hundreds of megabytes.
#[must_use]
pub fn program(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default() + SYSTEM;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    let file = found.find(|file| file.is_file()).unwrap_or_else(|| PathBuf::from(name));
    let mut command = Command::new(file);
    command.env("PATH", path);
    command
}
