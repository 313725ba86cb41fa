//! The file system behind its lock, as all threads of a mount see it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dovetail_vfs::{Error, FileSystem};
use fuser::Errno;

use crate::clock::MountClock;
use crate::convert::errno;
use crate::options::OnError;

pub(crate) type BoxedFileSystem = Box<dyn FileSystem + Send>;

/// What the threads of a mount share.
#[derive(Clone)]
pub(crate) struct Shared {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` when the mount has ended.
    fs: Mutex<Option<BoxedFileSystem>>,
    clock: MountClock,
    on_error: OnError,
    told: AtomicBool,
}

impl Shared {
    pub(crate) fn new(fs: BoxedFileSystem, on_error: OnError) -> Self {
        let fs = Mutex::new(Some(fs));
        Self {
            inner: Arc::new(Inner { fs, clock: MountClock::start(), on_error, told: AtomicBool::new(false) }),
        }
    }

    pub(crate) fn clock(&self) -> MountClock {
        self.inner.clock
    }

    /// Calls the file system. After the end of the mount, or of a thread that died in a call, all that comes is EIO.
    pub(crate) fn call<T>(
        &self,
        work: impl FnOnce(&mut dyn FileSystem) -> Result<T, Error>,
    ) -> Result<T, Errno> {
        let result = {
            let mut fs = self.inner.fs.lock().map_err(|_| Errno::EIO)?;
            work(fs.as_mut().ok_or(Errno::EIO)?.as_mut())
        };
        result.map_err(|error| {
            self.tell(&error);
            errno(&error)
        })
    }

    fn tell(&self, error: &Error) {
        let serious = matches!(error, Error::Io(_) | Error::Corrupt(_));
        if serious && !self.inner.told.swap(true, Ordering::Relaxed) {
            (self.inner.on_error)(error);
        }
    }

    /// Takes the file system away from the requests that may still come.
    pub(crate) fn take(&self) -> Option<BoxedFileSystem> {
        self.inner.fs.lock().ok()?.take()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use dovetail_vfs::{Caller, Limits, Model};

    use super::*;

    #[test]
    fn a_failed_device_is_told_once_and_a_missing_name_never() {
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        let tell = Box::new(move |_: &Error| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let shared = Shared::new(Box::new(Model::new(Limits::default(), &Caller::default())), tell);
        for error in [Error::NotFound, Error::Io("failed".into()), Error::Corrupt("bad".into())] {
            let expected = error.errno();
            assert_eq!(shared.call(|_| Err::<(), _>(error)).unwrap_err().code(), expected);
        }
        assert_eq!(told.load(Ordering::Relaxed), 1);
        drop(shared.take());
        assert_eq!(shared.call(|fs| fs.statfs()).unwrap_err().code(), Errno::EIO.code());
    }
}
