//! An image that is changed: locked, and mounted in this process.

use std::path::Path;

use dovetail_image::{Edit, Mount, format_of};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem};

use super::Parts;
use crate::mount::{ImageLock, seed};
use crate::{Failure, clock, complain};

/// A mounted image that nobody else writes to.
pub(super) struct Writable {
    pub(super) fs: Box<dyn FileSystem>,
    image: String,
    _lock: ImageLock,
}

impl Writable {
    /// Locks and mounts the image.
    pub(super) fn open(parts: &Parts, image: &Path) -> Result<Self, Failure> {
        let lock = ImageLock::take(image, true)?;
        let source = parts.of(image)?;
        let now = clock::mounting_at(SimTime::ZERO);
        let request = Mount { read_only: false, options: "", seed: seed(), now };
        let fs = format_of(&source)?.mount(&source, &request, &mut |said| complain(&said))?;
        Ok(Self { fs, image: image.display().to_string(), _lock: lock })
    }

    pub(super) fn edit(&mut self) -> Edit<'_> {
        Edit::new(&mut self.fs, caller())
    }

    /// Writes all that is not written yet, and lets the image go.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let image = self.image;
        self.fs.unmount().map_err(|error| {
            Failure::Failed(format!("{image} could not be written completely: {error}"))
        })
    }
}

/// This process, now.
pub(super) fn caller() -> Caller {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Caller { uid, gid, now: clock::date() }
}
