//! Steps of a process that goes on in the background.

use std::fs::OpenOptions;

/// Puts /dev/null in the place of standard output, so that whoever reads it to its end goes on.
pub fn close_stdout() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(null); // the other end waits longer, no more
    }
}
