//! Mounts as the kernel lists them. To read the list asks no file system anything: the process that
//! serves a mount may do so, while a stat of its own mount would wait for itself, and for ever once
//! a signal kills the threads that serve.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The device number, as "0:39", of what is mounted at `mountpoint` (an absolute path without
/// links).
pub(crate) fn device_at(mountpoint: &Path) -> Option<String> {
    find(&fs::read("/proc/self/mountinfo").ok()?, mountpoint.as_os_str())
}

/// The last line counts: what was mounted later lies on top.
fn find(list: &[u8], mountpoint: &OsStr) -> Option<String> {
    let mut lines = list.split(|&byte| byte == b'\n').rev();
    lines.find_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ').skip(2);
        let (device, _, at) = (fields.next()?, fields.next()?, fields.next()?);
        (unescaped(at) == mountpoint).then(|| String::from_utf8_lossy(device).into_owned())
    })
}

/// A path as the list has it: space, tab, newline and backslash are written as a backslash and
/// three octal digits.
fn unescaped(field: &[u8]) -> OsString {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match octal.filter(|_| byte == b'\\') {
            Some(digits) => {
                path.push(digits.iter().fold(0, |value: u8, digit| value << 3 | (digit - b'0')));
                rest = &after[3..];
            }
            None => {
                path.push(byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n\
        30 22 0:38 / /mnt/a rw - fuse.f2fs /a.img rw\n\
        31 22 0:39 / /mnt/with\\040space\\134 rw shared:1 - fuse.f2fs /b.img rw\n\
        32 30 0:40 / /mnt/a rw - fuse.ext4 /c.img rw\n";

    #[test]
    fn the_mount_on_top_is_found_by_its_path() {
        let find = |path: &str| find(LIST, OsStr::new(path));
        assert_eq!(find("/mnt/a").as_deref(), Some("0:40"));
        assert_eq!(find("/mnt/with space\\").as_deref(), Some("0:39"));
        assert_eq!(find("/").as_deref(), Some("254:0"));
        assert_eq!(find("/mnt"), None);
        assert_eq!(super::find(b"", OsStr::new("/")), None);
    }
}
