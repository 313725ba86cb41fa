//! Files that a sweep reads, known again by their content.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::SweepError;
use crate::sweep::Sweep;

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// Content of files by their names.
pub type Fingerprints = BTreeMap<String, String>;

/// Length and CRC-32 of each file that the sweep names: jobs, traces, stacks, drives. Files that
/// these name in turn are not looked at.
pub(crate) fn fingerprints(sweep: &Sweep) -> Result<Fingerprints, SweepError> {
    fingerprints_of(sweep.names())
}

/// The same of files by their names; what is no file is left out.
///
/// # Errors
/// [`SweepError::Io`] of a file that cannot be read.
pub fn fingerprints_of<'a>(
    names: impl Iterator<Item = &'a str>,
) -> Result<Fingerprints, SweepError> {
    let mut all = BTreeMap::new();
    for name in names {
        let path = Path::new(name);
        if !all.contains_key(name) && path.is_file() {
            let found =
                fingerprint(path).map_err(|source| SweepError::Io { path: path.into(), source })?;
            all.insert(name.to_owned(), found);
        }
    }
    Ok(all)
}

/// The files are those whose fingerprints were taken on another machine.
///
/// # Errors
/// [`SweepError::OtherFile`], [`SweepError::Io`].
pub fn check_files(expected: &Fingerprints) -> Result<(), SweepError> {
    for (name, expected) in expected {
        let path = Path::new(name);
        let found = match fingerprint(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => "no file".into(),
            read => read.map_err(|source| SweepError::Io { path: path.into(), source })?,
        };
        if found != *expected {
            let (name, expected) = (name.clone(), expected.clone());
            return Err(SweepError::OtherFile { name, found, expected });
        }
    }
    Ok(())
}

fn fingerprint(path: &Path) -> std::io::Result<String> {
    let (mut file, mut sum, mut bytes) = (File::open(path)?, crc32fast::Hasher::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(format!("{bytes} bytes, CRC-32 {:08x}", sum.finalize()));
        }
        sum.update(&chunk[..read]);
        bytes += read;
    }
}
