//! Taking a mount out of the tree. The kernel then writes what its cache still holds, and who asks
//! waits for that: it is done by a program of its own, since a process that waits for requests it
//! serves itself cannot be killed any more.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::mount::{MntFlags, umount2};

/// Has the kernel write its cache, and takes the mount out of the tree even if files are open.
pub(crate) fn unmount(mountpoint: &Path) {
    run("sync", "-f", mountpoint); // what fails here fails again, and is told, in the last sync
    let unmounted = if nix::unistd::geteuid().is_root() {
        run("umount", "-l", mountpoint)
    } else {
        run("fusermount3", "-uz", mountpoint)
    };
    if !unmounted {
        // without the program, or not mounted any more: nothing is left to try
        let _ = umount2(mountpoint, MntFlags::MNT_DETACH);
    }
}

/// Runs a program in a group of its own, which signals of the terminal do not reach. True if it
/// ended well.
fn run(program: &str, option: &str, mountpoint: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg(option).arg(mountpoint).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
