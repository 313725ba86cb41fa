//! The tool that lets pointers lead to the drive's own addresses, over a mounted volume.
//!
//! Whoever wants it to run does so through an attribute of the mount's root that is in no list of
//! attributes: writing `run` or `undo` begins a run, `step` deals with a batch of it, and reading
//! tells how far it is. Each is a call like others, which go on between two batches; one who begins
//! and dies leaves nothing undone that must be done.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use dovetail_devirt::{Hot, Report, Run, Selection, Way};
use dovetail_time::SimSpan;
use dovetail_vfs::{Devirtualize, Error, FileSystem};

/// The attribute's name.
pub const ATTRIBUTE: &str = "dovetail.devirtualize";

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// There is nothing more to do.
    pub ended: bool,
    /// Work done so far.
    pub report: Report,
    /// Bytes of the drive's map when the run began, and now.
    pub map_bytes: (u64, u64),
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.numbers();
        let words: Vec<String> =
            numbers.iter().map(|(name, number)| format!("{name}={number}")).collect();
        f.write_str(&words.join(" "))
    }
}

impl Progress {
    fn numbers(&self) -> [(&'static str, u64); 11] {
        let Report { files, hot_files, content_blocks, metadata_blocks, batches, .. } = self.report;
        [
            ("ended", self.ended.into()),
            ("files", files),
            ("hot_files", hot_files),
            ("content_blocks", content_blocks),
            ("metadata_blocks", metadata_blocks),
            ("batches", batches),
            ("content_ns", self.report.content_time.as_ns()),
            ("metadata_ns", self.report.metadata_time.as_ns()),
            ("other_ns", self.report.other_time.as_ns()),
            ("map_bytes_before", self.map_bytes.0),
            ("map_bytes", self.map_bytes.1),
        ]
    }

    /// Reads what [`ATTRIBUTE`] holds; `None` if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.split(' ').map(|word| word.split_once('='));
        let number = |name: &str| -> Option<u64> {
            let value = words.clone().flatten().find(|(other, _)| *other == name)?.1;
            value.parse().ok()
        };
        let time = |name: &str| number(name).map(SimSpan::from_ns);
        Some(Self {
            ended: number("ended")? != 0,
            report: Report {
                files: number("files")?,
                hot_files: number("hot_files")?,
                content_blocks: number("content_blocks")?,
                metadata_blocks: number("metadata_blocks")?,
                batches: number("batches")?,
                content_time: time("content_ns")?,
                metadata_time: time("metadata_ns")?,
                other_time: time("other_ns")?,
            },
            map_bytes: (number("map_bytes_before")?, number("map_bytes")?),
        })
    }
}

/// The run of a mount.
#[derive(Debug, Default)]
pub(crate) struct Tool {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    run: Option<(Run, Way)>,
    progress: Progress,
    /// Is true once the blocks that a power cut had left were given back.
    gave_back: bool,
}

impl Tool {
    /// Does what was written to the attribute.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where file system or drive cannot; [`Error::Invalid`] for anything
    /// but `run`, `undo` and `step`; what the file system says.
    pub(crate) fn written(&self, fs: &mut dyn FileSystem, value: &[u8]) -> Result<(), Error> {
        let cannot =
            || Error::Unsupported("letting pointers lead to the drive's own addresses".into());
        if value != b"step" {
            // what has no place yet cannot be reached by its address
            fs.sync()?;
        }
        let fs = fs.devirtualizer().ok_or_else(cannot)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match value {
            b"run" => state.begin(fs, Way::ToDevice),
            b"undo" => state.begin(fs, Way::ToVolume),
            b"step" => state.step(fs),
            _ => Err(Error::Invalid("give run, undo or step")),
        }
    }

    /// The attribute's value.
    pub(crate) fn read(&self) -> Vec<u8> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.progress.to_string().into_bytes()
    }
}

impl State {
    fn begin(&mut self, fs: &mut dyn Devirtualize, way: Way) -> Result<(), Error> {
        fs.renames_at_once()?;
        if !std::mem::replace(&mut self.gave_back, true) {
            fs.give_back_unreached()?;
        }
        let selection = match way {
            Way::ToDevice => Selection::due(fs, Hot::default())?,
            Way::ToVolume => Selection::all(fs)?,
        };
        let map = fs.device_map_bytes().unwrap_or(0);
        self.run = Some((Run::new(fs, way, selection)?, way));
        self.progress = Progress { map_bytes: (map, map), ..Progress::default() };
        Ok(())
    }

    fn step(&mut self, fs: &mut dyn Devirtualize) -> Result<(), Error> {
        let Some((run, way)) = &mut self.run else {
            return Err(Error::Invalid("no run was begun"));
        };
        let more = run.step(fs)?;
        if !more && *way == Way::ToVolume {
            dovetail_devirt::leave(fs)?;
        }
        self.progress.ended = !more;
        self.progress.report = run.report();
        self.progress.map_bytes.1 = fs.device_map_bytes().unwrap_or(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_as_it_was_written() {
        let report = Report {
            files: 1,
            hot_files: 2,
            content_blocks: 3,
            metadata_blocks: 4,
            batches: 5,
            content_time: SimSpan::from_ns(6),
            metadata_time: SimSpan::from_ns(7),
            other_time: SimSpan::from_ns(8),
        };
        let progress = Progress { ended: true, report, map_bytes: (9, 10) };
        assert_eq!(Progress::parse(&progress.to_string()), Some(progress));
        for wrong in ["", "ended=1", "ended=x files=1", "no words"] {
            assert_eq!(Progress::parse(wrong), None, "{wrong}");
        }
    }
}
