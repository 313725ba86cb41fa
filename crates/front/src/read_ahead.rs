//! Read-ahead of the kernel.

use std::fs;

/// One request's worth, in KiB. FUSE mounts start with 128, which only the system's settings can
/// raise.
const READ_AHEAD_KIB: &str = "1024";

/// Has the kernel read as far ahead as one request reaches, on the mount with this device number
/// ("0:39"). Without root it stays as it is, which is only slower.
pub(crate) fn widen(device: &str) {
    let _ = fs::write(format!("/sys/class/bdi/{device}/read_ahead_kb"), READ_AHEAD_KIB);
}
