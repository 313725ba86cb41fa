//! A trace from standard input, kept in a file: each run, and each repetition, reads it anew.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Failure;

/// Traces as files.
#[derive(Debug)]
pub(super) struct Spool {
    /// Paths of all traces; that of standard input in place of `-`.
    pub(super) traces: Vec<PathBuf>,
    /// Removed with the value.
    _folder: Option<TempDir>,
}

impl Spool {
    /// Reads standard input to its end if it is one of the traces.
    pub(super) fn of(traces: &[PathBuf]) -> Result<Self, Failure> {
        let is_stdin = |path: &PathBuf| path == Path::new("-");
        if !traces.iter().any(is_stdin) {
            return Ok(Self { traces: traces.to_vec(), _folder: None });
        }
        let (folder, path) = read().map_err(|error| {
            Failure::Failed(format!("standard input cannot be kept in a temporary file: {error}"))
        })?;
        let replace = |trace: &PathBuf| if is_stdin(trace) { path.clone() } else { trace.clone() };
        Ok(Self { traces: traces.iter().map(replace).collect(), _folder: Some(folder) })
    }
}

fn read() -> io::Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("stdin");
    io::copy(&mut io::stdin().lock(), &mut File::create(&path)?)?;
    Ok((folder, path))
}

/// A message that names standard input in place of the file that it is kept in.
pub(super) fn shown(message: &str) -> String {
    let folder = std::env::temp_dir();
    let Some(at) = message.find(&format!("{}/.tmp", folder.display())) else {
        return message.into();
    };
    match message[at..].split_once("/stdin") {
        Some((path, rest)) if !path.contains(' ') => {
            format!("{}standard input{rest}", &message[..at])
        }
        _ => message.into(),
    }
}
