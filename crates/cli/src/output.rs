//! Results to files, or to standard output.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, print};

pub(crate) fn is_stdout(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("{} cannot be written ({error}): choose another path", path.display()))
}

/// What cannot be written is better known before the work than after it.
pub(crate) fn check_writable<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    for path in paths.filter(|path| !is_stdout(Some(path))) {
        let existed = path.exists();
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| cannot_write(path, &error))?;
        if !existed {
            fs::remove_file(path).map_err(|error| cannot_write(path, &error))?;
        }
    }
    Ok(())
}

/// Writes to a file, or to standard output for `-`.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(Some(path)) {
        return print(text);
    }
    fs::write(path, text).map_err(|error| cannot_write(path, &error))
}
