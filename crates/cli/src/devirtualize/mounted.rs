//! The tool over a mounted volume: the mount does the work, batch by batch.

use std::fs::File;
use std::path::Path;

use dovetail_devirt::Way;
use dovetail_front::{ATTRIBUTE, Progress};
use rustix::fs::{XattrFlags, getxattr, setxattr, syncfs};
use rustix::io::Errno;

use crate::Failure;

/// Longer than any progress.
const MAX_VALUE: usize = 1024;

/// Lets the tool run to its end. What was written to files before is on the drive when it begins.
pub(super) fn run(directory: &Path, way: Way) -> Result<Progress, Failure> {
    let failed = |error: Errno| Failure::Failed(format!("{}: {error}", directory.display()));
    progress(directory)?;
    syncfs(File::open(directory).map_err(Failure::failed)?).map_err(failed)?;
    order(directory, if way == Way::ToDevice { "run" } else { "undo" })?;
    loop {
        order(directory, "step")?;
        let progress = progress(directory)?;
        if progress.ended {
            return Ok(progress);
        }
    }
}

fn order(directory: &Path, order: &str) -> Result<(), Failure> {
    setxattr(directory, ATTRIBUTE, order.as_bytes(), XattrFlags::empty()).map_err(|error| {
        let why = match error {
            Errno::OPNOTSUPP => {
                "its pointers cannot lead to the drive's own addresses: that needs a file system with blocks of 4 KiB that \
                 can have such pointers, on a drive that gives blocks its own addresses (fsdv-5g), mounted for writing"
                    .into()
            }
            error => error.to_string(),
        };
        Failure::Failed(format!("{}: {why}", directory.display()))
    })
}

fn progress(directory: &Path) -> Result<Progress, Failure> {
    let mut value = [0; MAX_VALUE];
    let found = getxattr(directory, ATTRIBUTE, &mut value[..]).ok();
    let progress = found.and_then(|len| Progress::parse(std::str::from_utf8(&value[..len]).ok()?));
    progress.ok_or_else(|| {
        let directory = directory.display();
        Failure::Failed(format!(
            "nothing that dovetail has mounted is at {directory}: name the directory of a mount, or a drive file"
        ))
    })
}
