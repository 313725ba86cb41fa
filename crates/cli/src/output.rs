//! Results to files, or to standard output.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{Failure, print};

/// Output of a command that another program called.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    /// Standard output.
    pub(crate) output: Vec<u8>,
    /// Complaints, one after the other.
    pub(crate) errors: Vec<String>,
}

thread_local! {
    /// Place of this thread's output, in place of the standard one.
    static CAPTURED: RefCell<Option<Captured>> = const { RefCell::new(None) };
}

/// Output of `work`, which this thread performs, in place of the standard one.
pub(crate) fn capture<T>(work: impl FnOnce() -> T) -> (T, Captured) {
    let before = CAPTURED.replace(Some(Captured::default()));
    let done = work();
    (done, CAPTURED.replace(before).unwrap_or_default())
}

/// Takes a complaint in, where output is captured.
pub(crate) fn captured_error(text: &str) -> bool {
    CAPTURED.with_borrow_mut(|captured| {
        captured.as_mut().map(|captured| captured.errors.push(text.into())).is_some()
    })
}

/// Tells whether another program has called, and this thread's output goes to it.
pub(crate) fn is_captured() -> bool {
    CAPTURED.with_borrow(Option::is_some)
}

/// Writes to standard output; false if its reader has gone away.
///
/// # Errors
/// It cannot be written.
pub(crate) fn put(bytes: &[u8]) -> Result<bool, Failure> {
    let is_captured = CAPTURED.with_borrow_mut(|captured| {
        captured.as_mut().map(|captured| captured.output.extend_from_slice(bytes)).is_some()
    });
    if is_captured {
        return Ok(true);
    }
    match std::io::stdout().write_all(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Failed(format!("standard output cannot be written: {error}"))),
    }
}

pub(crate) fn is_stdout(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::Failed(match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            format!("{path} cannot be written ({error}): make room, or choose another path")
        }
        _ => format!("{path} cannot be written ({error}): choose another path"),
    })
}

/// Checks that files can be written: better before the work than after it.
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

/// Writes to a file, which is then whole or as it was, or to standard output for `-`.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(Some(path)) {
        return print(text);
    }
    dovetail_image::write_whole(path, text.as_bytes()).map_err(|error| cannot_write(path, &error))
}

/// Writes to a file that may have been asked for.
pub(crate) fn write_asked(
    path: Option<&PathBuf>,
    text: impl FnOnce() -> Result<String, Failure>,
) -> Result<(), Failure> {
    path.map_or(Ok(()), |path| write(path, &text()?))
}

/// Files that a command reads and writes: an output must not replace an input, nor another output.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    /// Use of each file, as a clause of the message.
    taken: HashMap<FileId, String>,
}

/// A file, whatever path leads to it.
#[derive(Debug, PartialEq, Eq, Hash)]
enum FileId {
    /// By device and inode.
    There(u64, u64),
    /// Not there yet: by its directory and name.
    New(PathBuf),
}

impl FileId {
    /// `None` for what can be read and written at once: a terminal, a pipe, /dev/null.
    fn of(path: &Path) -> Option<Self> {
        if let Ok(meta) = fs::metadata(path) {
            return meta.is_file().then(|| Self::There(meta.dev(), meta.ino()));
        }
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(Self::New(directory.join(path.file_name()?)))
    }
}

impl Outputs {
    /// Takes in an input; what is no file is none.
    pub(crate) fn input(&mut self, path: &Path) {
        if let Some(id @ FileId::There(..)) = FileId::of(path) {
            self.taken.insert(id, format!("it is the input {}", path.display()));
        }
    }

    /// Takes in the output of an option, or refuses it.
    pub(crate) fn output(&mut self, flag: &str, path: &Path) -> Result<(), Failure> {
        self.allows(flag, path)?;
        let Some(id) = FileId::of(path).filter(|_| !is_stdout(Some(path))) else { return Ok(()) };
        self.taken.insert(id, format!("{flag} writes to it too"));
        Ok(())
    }

    /// Refuses an output that takes the place of an input or of another one.
    pub(crate) fn allows(&self, flag: &str, path: &Path) -> Result<(), Failure> {
        let id = FileId::of(path).filter(|_| !is_stdout(Some(path)));
        match id.and_then(|id| self.taken.get(&id)) {
            None => Ok(()),
            Some(what) => Err(Failure::Usage(format!(
                "{flag} cannot write to {}: {what}; choose another path",
                path.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_neither_an_input_nor_another_output() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("trace"), "").unwrap();
        fs::hard_link(path("trace"), path("again")).unwrap();
        std::os::unix::fs::symlink("trace", path("link")).unwrap();
        let mut outputs = Outputs::default();
        outputs.input(&path("trace"));
        outputs.input(Path::new("no-file"));
        for name in ["trace", "again", "link", "./trace"] {
            assert!(
                matches!(outputs.output("--json", &path(name)), Err(Failure::Usage(_))),
                "{name}"
            );
        }
        outputs.output("--json", &path("new")).unwrap();
        assert!(outputs.output("--csv", &folder.path().join(".").join("new")).is_err());
        for _ in 0..2 {
            outputs.output("--report", Path::new("/dev/null")).unwrap();
            outputs.output("--report", Path::new("-")).unwrap();
        }
    }
}
