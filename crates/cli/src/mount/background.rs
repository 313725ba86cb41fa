//! A mount that goes on in the background once it stands.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::Failure;

const READY: &str = "mounted";

/// Runs this very command again as a process of its own, and returns when that has told how it went. It keeps standard
/// error only if that is a terminal: nobody who reads a pipe to its end must wait for it.
pub(crate) fn start() -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let terminal = io::IsTerminal::is_terminal(&io::stderr());
    let mut arguments = std::env::args_os().skip(1);
    let mut child = Command::new(program)
        .args(arguments.next())
        .arg("--tell")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(if terminal { Stdio::inherit() } else { Stdio::null() })
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
