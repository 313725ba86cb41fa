//! A mount that goes on in the background once it stands.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::{Failure, log};

const READY: &str = "mounted";

/// Runs this very command again as a process of its own, and returns when that has told how it
/// went. What it was told to log it logs as well.
pub(crate) fn start() -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let mut child = Command::new(program)
        .args(arguments(std::env::args_os().skip(1)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(if keeps_stderr() { Stdio::inherit() } else { Stdio::null() })
        .process_group(0)
        .spawn()
        .map_err(Failure::failed)?;
    let mut told = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut told).map_err(Failure::failed)?;
    }
    match told.as_str() {
        READY => Ok(()),
        "" => Err(Failure::Failed("the process that should serve the mount has died".to_string())),
        message => Err(Failure::Failed(message.to_string())),
    }
}

/// The arguments of this command, with `--tell` behind the subcommand: only flags stand before it.
fn arguments(own: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut is_before = true;
    own.flat_map(move |argument| {
        let is_subcommand = is_before && argument == "mount";
        is_before &= !is_subcommand;
        [Some(argument), is_subcommand.then(|| "--tell".into())].into_iter().flatten()
    })
}

/// Standard error is a terminal, or a file that a log goes to. Nobody who reads a pipe to its end
/// must wait for the end of the mount.
fn keeps_stderr() -> bool {
    let is_file = || rustix::fs::fstat(io::stderr()).is_ok_and(|stat| is_regular(&stat));
    io::stderr().is_terminal() || (log::is_on() && is_file())
}

fn is_regular(stat: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
}

/// Tells the process that waits in [`start`] that the image is mounted, or why it is not.
pub(crate) fn tell(result: Result<(), &Failure>) {
    let message = match result {
        Ok(()) => READY,
        Err(Failure::Usage(message) | Failure::Failed(message)) => message,
    };
    let mut stdout = io::stdout();
    let _ = stdout.write_all(message.as_bytes()).and_then(|()| stdout.flush()); // whoever waited has gone away
    dovetail_front::close_stdout();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_follows_the_subcommand() {
        for (given, expected) in [
            ("mount image dir", "mount --tell image dir"),
            ("-v -v mount -o ro image mount", "-v -v mount --tell -o ro image mount"),
            ("--verbose mount -vv mount -- mount", "--verbose mount --tell -vv mount -- mount"),
        ] {
            let all: Vec<_> = arguments(given.split(' ').map(OsString::from)).collect();
            assert_eq!(all.join(" ".as_ref()), expected);
        }
    }
}
