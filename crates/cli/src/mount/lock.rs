//! The lock on an image that is mounted, made or repaired. That the kernel itself has not mounted
//! it is checked where the device is opened.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Failure;

/// Longest wait for a lock: who unmounts sees the mount go before its process has written all and
/// ended.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Kept as long as the image is mounted: one who writes, or several who read.
#[derive(Debug)]
pub(crate) struct ImageLock {
    _file: File,
}

impl ImageLock {
    /// Locks `image`, for writing or for reading; waits for a second if it is in use.
    pub(crate) fn take(image: &Path, write: bool) -> Result<Self, Failure> {
        Self::take_within(image, write, PATIENCE)
    }

    /// Locks `image` for reading, if that can be at once.
    pub(crate) fn take_now(image: &Path) -> Result<Self, Failure> {
        Self::take_within(image, false, Duration::ZERO)
    }

    fn take_within(image: &Path, write: bool, patience: Duration) -> Result<Self, Failure> {
        let shown = image.display();
        let refuse = |error| Failure::Failed(format!("{shown} cannot be opened: {error}"));
        let mut open = OpenOptions::new();
        open.read(true).write(write);
        let file = open.open(image).map_err(refuse)?;
        let start = Instant::now();
        loop {
            match if write { file.try_lock() } else { file.try_lock_shared() } {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => {
                    return Err(Failure::Failed(format!("{shown} cannot be locked: {error}")));
                }
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    std::thread::sleep(LOOK_AGAIN);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::Failed(in_use(image, write, holder(&file).as_deref())));
                }
            }
        }
    }
}

fn in_use(image: &Path, write: bool, holder: Option<&str>) -> String {
    let (image, by) =
        (image.display(), holder.map_or(String::new(), |holder| format!(" by {holder}")));
    if write {
        format!(
            "{image} is mounted already{by}; unmount it first, or end what serves it: only mounts with -o ro share an image"
        )
    } else {
        format!("{image} is mounted for writing{by}; unmount it first, or end what serves it")
    }
}

/// The process that holds a lock on the file, by number and name; `None` if the system does not
/// tell.
fn holder(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let id = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // "1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF"; who waits has an arrow behind the number
    let lines = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut held = lines
        .filter(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&id.as_str()));
    let pid = held.next()?.get(4)?.parse::<u32>().ok()?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("process {pid} ({})", name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writes_or_several_read() {
        let image = tempfile::NamedTempFile::new().unwrap();
        let message = |result: Result<ImageLock, Failure>| match result {
            Err(Failure::Failed(message)) => message,
            other => panic!("{other:?}"),
        };
        let reading = (
            ImageLock::take(image.path(), false).unwrap(),
            ImageLock::take(image.path(), false).unwrap(),
        );
        let refused = message(ImageLock::take(image.path(), true));
        assert!(
            refused.contains(image.path().to_str().unwrap()) && refused.contains("mounted already"),
            "{refused}"
        );
        let holder = format!("by process {} (", std::process::id());
        assert!(refused.contains(&holder), "{refused}");
        drop(reading);
        let writing = ImageLock::take(image.path(), true).unwrap();
        assert!(message(ImageLock::take(image.path(), false)).contains("mounted for writing"));
        assert!(message(ImageLock::take(image.path(), true)).contains("mounted already"));
        drop(writing);
        ImageLock::take(image.path(), true).unwrap();
    }

    #[test]
    fn a_lock_that_goes_within_a_second_is_waited_for() {
        let image = tempfile::NamedTempFile::new().unwrap();
        let held = ImageLock::take(image.path(), true).unwrap();
        let leaving = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(held);
        });
        assert!(ImageLock::take_now(image.path()).is_err(), "who only looks does not wait");
        ImageLock::take(image.path(), true).unwrap();
        leaving.join().unwrap();
    }
}
