//! How far ahead the kernel reads.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::stat::{major, minor};

/// One request's worth, in KiB. FUSE mounts start with 128, which only the system's settings can raise.
const READ_AHEAD_KIB: &str = "1024";

/// Has the kernel read as far ahead as one request reaches. Without root it stays as it is, which is only slower.
pub(crate) fn widen(mountpoint: &Path) {
    if let Ok(metadata) = fs::metadata(mountpoint) {
        let device = metadata.dev();
        let setting = format!("/sys/class/bdi/{}:{}/read_ahead_kb", major(device), minor(device));
        let _ = fs::write(setting, READ_AHEAD_KIB);
    }
}
