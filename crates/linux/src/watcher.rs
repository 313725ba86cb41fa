//! A process that ends a guest whose runner was killed.
//!
//! The guest's kernel dies with its parent (`setpriv --pdeathsig`), and its processes with it; but one
//! that it was making at that moment would stand still for ever, as nobody's child.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Waits for a line. If there is none before the end, whoever had to write it is dead.
const SCRIPT: &str = r#"read -r line || kill -s KILL -- "-$1""#;

/// A process that ends a process group if this process ends before the value does.
#[derive(Debug)]
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Watches over the process group `group`.
    pub(crate) fn over(group: u32) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh", &group.to_string()]).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // a group of its own: what a terminal sends to this process's is not for it
        command.process_group(0).spawn().map(Self)
    }
}

impl Drop for Watcher {
    /// Lets the group be: it is ended already.
    fn drop(&mut self) {
        if let Some(mut line) = self.0.stdin.take() {
            // it fails where somebody has killed the watcher, which has nothing to do any more
            let _ = line.write_all(b"\n");
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> Child {
        Command::new("sleep").arg("60").process_group(0).spawn().unwrap()
    }

    #[test]
    fn a_group_is_left_alone_at_the_end_and_killed_without_one() {
        let mut left = group();
        drop(Watcher::over(left.id()).unwrap());
        assert!(left.try_wait().unwrap().is_none());
        left.kill().unwrap();
        left.wait().unwrap();

        let mut killed = group();
        let mut watcher = Watcher::over(killed.id()).unwrap();
        drop(watcher.0.stdin.take()); // as at the end of this process
        assert!(!killed.wait().unwrap().success());
    }
}
