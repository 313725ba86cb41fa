//! `--keep`: the folder of finished runs.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::Path;

use dovetail_lab::FinishedRuns;

use crate::Failure;

/// Opens a folder of runs of this very program.
pub(super) fn open(folder: &Path) -> Result<FinishedRuns, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::Failed(format!("--keep {}: {error}", folder.display()))
    };
    if folder.exists() && !folder.is_dir() {
        return Err(failed(&"it is no folder"));
    }
    let opened = this_program().and_then(|program| FinishedRuns::open(folder, program));
    opened.map_err(|error| failed(&error))
}

/// A hash of this program's file, which tells it from every other one.
fn this_program() -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    std::fs::read(std::env::current_exe()?)?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}
