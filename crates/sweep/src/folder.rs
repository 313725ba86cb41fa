//! A folder of results: the sweep that they are of, and a line for each finished point.
//!
//! A line is written at once and made durable before the next point is told as done. A process that
//! is killed leaves at most the beginning of a line, which the next one takes away. Each shard has a
//! file of its own, which is locked while a process works on it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::files::{Fingerprints, fingerprints};
use crate::record::Record;
use crate::shard::Shard;
use crate::sweep::Sweep;

const SCHEMA: &str = "dovetail-sweep";
/// Raised when a reader of the old one would misread the files.
const VERSION: u64 = 1;
const HEAD: &str = "sweep.json";
const SERIES: &str = "series";

/// A folder that this process writes its shard's results to.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    lines: Mutex<File>,
    lines_path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    version: u64,
    program: String,
    sweep: Sweep,
    /// Content of the files that it names, as of its begin.
    files: Fingerprints,
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> SweepError + '_ {
    move |source| SweepError::Io { path: path.into(), source }
}

impl Folder {
    /// Opens a folder for a shard of `sweep`, or makes it. `program` is who performs the points: a
    /// folder is never continued by another version.
    ///
    /// # Errors
    /// The folder is of another sweep or program, in use, or cannot be written.
    pub fn open(
        path: &Path,
        sweep: &Sweep,
        program: &str,
        shard: Shard,
    ) -> Result<Self, SweepError> {
        std::fs::create_dir_all(path).map_err(io(path))?;
        match head(path) {
            Ok(found) => {
                check_same(path, &found, sweep, program)?;
                let now = fingerprints(sweep)?;
                check_files(path, &found, &now, "has changed since they were begun")?;
            }
            Err(SweepError::NoSweep { .. }) => {
                write_head(path, sweep, program, fingerprints(sweep)?)?;
            }
            Err(error) => return Err(error),
        }
        Self::lines_of(path, shard)
    }

    fn lines_of(path: &Path, shard: Shard) -> Result<Self, SweepError> {
        let lines_path = path.join(shard.file());
        let mut lines = OpenOptions::new();
        let lines = lines.create(true).truncate(false).read(true).write(true).open(&lines_path);
        let mut lines = lines.map_err(io(&lines_path))?;
        match lines.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SweepError::InUse { path: lines_path }),
            Err(TryLockError::Error(error)) => return Err(io(&lines_path)(error)),
        }
        drop_partial_line(&mut lines).map_err(io(&lines_path))?;
        Ok(Self { path: path.into(), lines: Mutex::new(lines), lines_path })
    }

    /// Results of all finished points of the folder, whichever shard they are of.
    ///
    /// # Errors
    /// A file cannot be read, or holds something else.
    pub fn records(&self) -> Result<BTreeMap<u32, Record>, SweepError> {
        records(&self.path)
    }

    /// Keeps the result of a point.
    ///
    /// # Errors
    /// It cannot be written, or not be made durable; no part of a line is left.
    pub fn append(&self, record: &Record) -> Result<(), SweepError> {
        let mut line =
            serde_json::to_vec(record).map_err(|error| io(&self.lines_path)(error.into()))?;
        line.push(b'\n');
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let written = lines.write_all(&line).and_then(|()| lines.sync_data());
        if written.is_err() {
            // a full disk: what does not fit must not stand before what will be written later
            let _ = drop_partial_line(&mut lines);
        }
        written.map_err(io(&self.lines_path))
    }

    /// Keeps the whole result of a point, beside its line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, point: u32, text: &str) -> Result<(), SweepError> {
        let folder = self.path.join(SERIES);
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
        replace(&folder.join(series_name(point)), text)
    }

    /// Writes a file that is complete or as it was, whenever the process ends.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace(path: &Path, text: &str) -> Result<(), SweepError> {
        replace(path, text)
    }

    /// Writes a file of the folder, such as the table, from all that is finished: complete, or as it
    /// was. Of several processes each sees what those before it saw.
    ///
    /// # Errors
    /// The folder cannot be read or written; those of `text`.
    pub fn write<E: From<SweepError>>(
        &self,
        name: &str,
        text: impl FnOnce(&BTreeMap<u32, Record>) -> Result<String, E>,
    ) -> Result<(), E> {
        let head = self.path.join(HEAD);
        let lock = File::open(&head).map_err(io(&head))?;
        lock.lock().map_err(io(&head))?;
        let text = text(&self.records()?)?;
        Ok(replace(&self.path.join(name), &text)?)
    }
}

/// The sweep of a folder and the results of all its finished points, as they are: nothing is
/// written or locked, and another process may be at work on it.
///
/// # Errors
/// It is no folder of a sweep, or cannot be read.
pub fn read(folder: &Path) -> Result<(Sweep, BTreeMap<u32, Record>), SweepError> {
    Ok((head(folder)?.sweep, records(folder)?))
}

/// Joins folders of one sweep: `into` gets the results of all. Returns the sweep and its results.
///
/// # Errors
/// The folders are of different sweeps, or have different results for a point.
pub fn merge(
    into: &Path,
    others: &[PathBuf],
) -> Result<(Sweep, BTreeMap<u32, Record>), SweepError> {
    let sources: Vec<&Path> = match head(into) {
        Ok(_) => [into].into_iter().chain(others.iter().map(PathBuf::as_path)).collect(),
        Err(SweepError::NoSweep { .. }) => others.iter().map(PathBuf::as_path).collect(),
        Err(error) => return Err(error),
    };
    let first = sources.first().ok_or_else(|| no_sweep(into))?;
    let Head { sweep, program, files, .. } = head(first)?;
    let mut all: BTreeMap<u32, (Record, &Path)> = BTreeMap::new();
    for folder in &sources {
        let found = head(folder)?;
        check_same(folder, &found, &sweep, &program)?;
        check_files(folder, &found, &files, "was another file when they were begun")?;
        for (number, record) in records(folder)? {
            match all.get(&number) {
                Some((known, _)) if known.error.is_none() && record.error.is_some() => {}
                Some((known, one)) if known.error.is_none() && *known != record => {
                    let (one, other) = (one.to_path_buf(), folder.to_path_buf());
                    return Err(SweepError::Conflict { number, one, other });
                }
                // its whole result is taken from a folder that has it
                Some((known, one)) if *known == record && has_series(one, number) => {}
                _ => {
                    all.insert(number, (record, folder));
                }
            }
        }
    }
    if let Err(SweepError::NoSweep { .. }) = head(into) {
        std::fs::create_dir_all(into).map_err(io(into))?;
        write_head(into, &sweep, &program, files)?;
    }
    let folder = Folder::lines_of(into, Shard::WHOLE)?;
    let there = folder.records()?;
    let is_new = |(record, _): &&(Record, &Path)| there.get(&record.point) != Some(record);
    for (record, source) in all.values().filter(is_new) {
        let whole = source.join(SERIES).join(series_name(record.point));
        if whole.is_file() {
            let text = std::fs::read_to_string(&whole).map_err(io(&whole))?;
            folder.keep(record.point, &text)?;
        }
        folder.append(record)?;
    }
    Ok((sweep, all.into_iter().map(|(number, (record, _))| (number, record)).collect()))
}

fn has_series(folder: &Path, point: u32) -> bool {
    folder.join(SERIES).join(series_name(point)).is_file()
}

fn series_name(point: u32) -> String {
    format!("{point:06}.json")
}

fn no_sweep(folder: &Path) -> SweepError {
    SweepError::NoSweep { folder: folder.into(), file: HEAD }
}

fn head(folder: &Path) -> Result<Head, SweepError> {
    let path = folder.join(HEAD);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(no_sweep(folder)),
        read => read.map_err(io(&path))?,
    };
    let damaged = |problem: String| SweepError::Damaged { path: path.clone(), line: 1, problem };
    let any: serde_json::Value = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
    match any["version"].as_u64() {
        Some(found) if any["schema"] == SCHEMA && found > VERSION => {
            Err(SweepError::Newer { path, found, known: VERSION })
        }
        Some(_) if any["schema"] == SCHEMA => {
            serde_json::from_value(any).map_err(|error| damaged(error.to_string()))
        }
        _ => Err(damaged(format!("its schema is not \"{SCHEMA}\""))),
    }
}

fn check_same(folder: &Path, found: &Head, sweep: &Sweep, program: &str) -> Result<(), SweepError> {
    let differs =
        |difference: String| Err(SweepError::OtherSweep { folder: folder.into(), difference });
    if found.sweep.command != sweep.command {
        return differs("its command is another one".into());
    }
    let points = (found.sweep.points(), sweep.points());
    if points.0.len() != points.1.len() {
        return differs(format!("it has {} points, not {}", points.0.len(), points.1.len()));
    }
    if let Some((one, other)) = points.0.iter().zip(points.1).find(|(one, other)| one != other) {
        return differs(format!(
            "its point {} is {}, not {}",
            one.number,
            one.name(),
            other.name()
        ));
    }
    if found.sweep != *sweep {
        return differs("its options or inputs are others".into());
    }
    if found.program != program {
        return differs(format!("{} made them, and this is {program}", found.program));
    }
    Ok(())
}

fn check_files(
    folder: &Path,
    found: &Head,
    files: &Fingerprints,
    why: &str,
) -> Result<(), SweepError> {
    let is_other = |(name, of): &(&String, &String)| files.get(*name) != Some(*of);
    found.files.iter().find(is_other).map_or(Ok(()), |(name, _)| {
        let difference = format!("{name} {why}");
        Err(SweepError::OtherSweep { folder: folder.into(), difference })
    })
}

fn write_head(
    folder: &Path,
    sweep: &Sweep,
    program: &str,
    files: Fingerprints,
) -> Result<(), SweepError> {
    let head = Head {
        schema: SCHEMA.into(),
        version: VERSION,
        program: program.into(),
        sweep: sweep.clone(),
        files,
    };
    let path = folder.join(HEAD);
    let text = serde_json::to_string_pretty(&head).map_err(|error| io(&path)(error.into()))?;
    replace(&path, &text)
}

/// Writes a file that is complete or as it was, whenever the process ends.
fn replace(path: &Path, text: &str) -> Result<(), SweepError> {
    let (mut file, beside) = new_beside(path).map_err(io(path))?;
    let mut write = || {
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        io(path)(error)
    })
}

/// A new file beside another. Several machines may write to one folder, and numbers of processes are
/// the same on many: a name that is taken is left to whoever has it.
fn new_beside(path: &Path) -> std::io::Result<(File, PathBuf)> {
    let mut number = 0_u32;
    loop {
        let name = format!("{}.{}-{number}", path.display(), std::process::id());
        match File::create_new(&name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            created => return created.map(|file| (file, name.into())),
        }
    }
}

/// Cuts the file behind its last line, and goes there.
fn drop_partial_line(file: &mut File) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let end = whole_lines(&bytes) as u64;
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end)).map(drop)
}

/// Bytes until behind the last line that has an end.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn records(folder: &Path) -> Result<BTreeMap<u32, Record>, SweepError> {
    let mut all = BTreeMap::new();
    let entries = std::fs::read_dir(folder).map_err(io(folder))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for path in files.iter().filter(|path| is_lines(path)) {
        let bytes = std::fs::read(path).map_err(io(path))?;
        // a line without an end is being written, or was when its process was killed
        let whole = &bytes[..whole_lines(&bytes)];
        for (line, json) in (1..).zip(whole.split_inclusive(|byte| *byte == b'\n')) {
            let record: Record = serde_json::from_slice(json).map_err(|error| {
                SweepError::Damaged { path: path.clone(), line, problem: error.to_string() }
            })?;
            put(&mut all, record);
        }
    }
    Ok(all)
}

/// Keeps a point's result; a failure never takes the place of figures, whichever shard has it.
fn put(all: &mut BTreeMap<u32, Record>, record: Record) {
    let is_worse = |known: &Record| known.error.is_none() && record.error.is_some();
    if !all.get(&record.point).is_some_and(is_worse) {
        all.insert(record.point, record);
    }
}

fn is_lines(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("points-") && name.ends_with(".jsonl")
}
