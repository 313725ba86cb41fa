//! Operations that the kernel asks for, in the log: at debug level each with how it ended, at
//! trace level when it begins as well.

use std::time::Instant;

use dovetail_vfs::Ino;
use fuser::Errno;
use tracing::{Level, debug, enabled, trace};

/// An operation that the kernel asks for, by its name and the inode that it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    name: &'static str,
    ino: Ino,
}

impl Operation {
    pub(crate) const fn new(name: &'static str, ino: Ino) -> Self {
        Self { name, ino }
    }

    /// Does `work`, and logs how it ended and how long it took. Without a log no clock is read.
    pub(crate) fn logged<T>(self, work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        if !enabled!(Level::DEBUG) {
            return work();
        }
        let Self { name, ino: Ino(ino) } = self;
        trace!(ino, "{name} begins");
        let begin = Instant::now();
        let result = work();
        let us = begin.elapsed().as_micros() as u64;
        let errno = result.as_ref().err().map_or(0, |error| error.code());
        debug!(ino, errno, us, "{name}");
        result
    }
}
