//! Sources of calls: workloads and traces.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use dovetail_time::{Ratio, parse_bytes};
use dovetail_workload::Workload;
use dovetail_workload::file_trace::{FileTrace, FileTraceOptions, FileTraceWorkload, Pace};
use dovetail_workload::fio::{FioWorkload, JobFile, Variables};
use dovetail_workload::personality::{Personality, PersonalityWorkload};

use super::{BenchError, Stack};
use crate::results::JobSource;

/// A workload that can be started anew for each run.
#[derive(Clone, Debug)]
pub enum Source {
    /// A fio job file.
    Fio(Box<JobFile>),
    /// A personality of Filebench's.
    Personality(Box<Personality>),
    /// A file-level trace.
    FileTrace(FileTraceSource),
}

/// A file-level trace and how it is made again.
#[derive(Clone, Debug)]
pub struct FileTraceSource {
    /// The trace.
    pub trace: Arc<FileTrace>,
    /// As [`FileTraceOptions::pace`].
    pub pace: Pace,
    /// As [`FileTraceOptions::loops`].
    pub loops: f64,
    /// The scale at which the trace is made again as it is; at smaller ones it is shrunk.
    pub whole_at: Ratio,
}

impl Source {
    /// A fio job file from its text; `variables` are what `${NAME}` stands for.
    ///
    /// # Errors
    /// [`BenchError::Workload`]; also a variable that the text does not have.
    pub fn fio(text: &str, name: &str, variables: &[(String, String)]) -> Result<Self, BenchError> {
        if let Some((unused, _)) =
            variables.iter().find(|(set, _)| !text.contains(&format!("${{{set}}}")))
        {
            return Err(BenchError::Workload(format!("{name} has no variable ${{{unused}}}")));
        }
        let variables = Variables::from_iter(variables.iter().cloned());
        let file = JobFile::parse(text, name, &variables);
        Ok(Self::Fio(Box::new(file.map_err(|error| BenchError::Workload(error.to_string()))?)))
    }

    /// Name of the workload: of a job file the file's, without its folder.
    pub fn name(&self) -> &str {
        match self {
            Self::Fio(file) => {
                let name = Path::new(file.name()).file_name().and_then(OsStr::to_str);
                name.unwrap_or(file.name())
            }
            Self::Personality(personality) => personality.name(),
            Self::FileTrace(source) => source.trace.name(),
        }
    }

    /// The workload as it was given.
    pub fn given(&self) -> JobSource {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        match self {
            Self::Fio(file) => JobSource {
                text: Some(file.source().to_owned()),
                definitions: file.variables().map(owned).collect(),
            },
            Self::Personality(personality) => JobSource {
                text: Some(personality.text().to_owned()),
                definitions: personality.parameters().map(owned).collect(),
            },
            Self::FileTrace(source) => JobSource {
                text: None,
                definitions: BTreeMap::from([
                    ("pace".into(), format!("{:?}", source.pace)),
                    ("loops".into(), source.loops.to_string()),
                    ("whole_at".into(), source.whole_at.value().to_string()),
                ]),
            },
        }
    }

    /// A sentence about a job for a raw drive that runs on a file system.
    pub(super) fn note_on(&self, stack: &Stack) -> Option<String> {
        let Self::Fio(file) = self else { return None };
        let name = file.drive_name().filter(|_| !stack.is_raw())?;
        Some(format!(
            "{name} of the job is a file of that name on the volume; --stack raw gives the job the \
             drive itself."
        ))
    }

    /// The workload at a scale on a stack: on its files, or on its drive if it has no file system.
    ///
    /// # Errors
    /// [`BenchError::Workload`]; a workload that needs files on a stack that has none.
    pub fn start_on(
        &self,
        stack: &Stack,
        scale: Ratio,
        seed: u64,
    ) -> Result<Box<dyn Workload>, BenchError> {
        if !stack.is_raw() {
            return self.start(scale, seed);
        }
        let Self::Fio(file) = self else {
            return Err(BenchError::Workload(format!(
                "stack {}: {} works on files, and a raw drive has none: give a fio job with \
                 filename=/dev/nvme0n1, or a stack with a file system",
                stack.name,
                self.name()
            )));
        };
        let bytes = stack.partition_bytes(scale, seed)?;
        let workload = FioWorkload::on_drive(scaled_jobs(file, scale), seed, bytes);
        Ok(Box::new(workload.map_err(|error| BenchError::Workload(error.to_string()))?))
    }

    /// The workload at a scale, on files.
    ///
    /// # Errors
    /// [`BenchError::Workload`].
    pub fn start(&self, scale: Ratio, seed: u64) -> Result<Box<dyn Workload>, BenchError> {
        self.start_with_files(scale, seed, 0)
    }

    /// The workload at a scale, on files. A personality has at least `per_thread` files for each
    /// thread, if it has so many at full size: at a scale of thousandths its threads would find
    /// none.
    ///
    /// # Errors
    /// [`BenchError::Workload`].
    pub fn start_with_files(
        &self,
        scale: Ratio,
        seed: u64,
        per_thread: u64,
    ) -> Result<Box<dyn Workload>, BenchError> {
        let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
        match self {
            Self::Fio(file) => {
                let workload = FioWorkload::new(scaled_jobs(file, scale), seed);
                Ok(Box::new(workload.map_err(|error| failed(&error))?))
            }
            Self::Personality(personality) => {
                let threads = personality.threads().map_err(|error| failed(&error))?;
                let least = per_thread * u64::from(threads);
                let scaled = scaled_personality(personality, scale, least)?;
                Ok(Box::new(
                    PersonalityWorkload::new(&scaled, seed).map_err(|error| failed(&error))?,
                ))
            }
            Self::FileTrace(FileTraceSource { trace, pace, loops, whole_at }) => {
                let scale = (scale.value() / whole_at.value()).min(1.0);
                let options = FileTraceOptions { pace: *pace, loops: *loops, scale };
                let workload = FileTraceWorkload::new(trace, &options);
                Ok(Box::new(workload.map_err(|error| failed(&error))?))
            }
        }
    }
}

fn scaled_jobs(file: &JobFile, scale: Ratio) -> JobFile {
    if scale.value() < 1.0 { file.scaled(scale.value()) } else { file.clone() }
}

/// With fewer files, but not fewer than `least`: their sizes stay.
fn scaled_personality(
    personality: &Personality,
    scale: Ratio,
    least: u64,
) -> Result<Personality, BenchError> {
    let mut scaled = personality.clone();
    let files = personality.parameters().find(|(name, _)| *name == "nfiles");
    let files = files.and_then(|(_, value)| parse_bytes(value).ok()).map(|files| files as f64);
    if let Some(files) = files.filter(|_| scale.value() < 1.0) {
        let least = (least as f64).min(files).max(1.0);
        let fewer = ((files * scale.value()).max(least).ceil() as u64).to_string();
        scaled
            .set([("nfiles", fewer.as_str())])
            .map_err(|error| BenchError::Workload(error.to_string()))?;
    }
    Ok(scaled)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

    use super::*;

    #[test]
    fn files_of_a_personality_shrink_however_their_number_is_written() {
        for files in ["51200", "50k"] {
            let mut personality = Personality::load("varmail").unwrap();
            personality.set([("nfiles", files)]).unwrap();
            let scaled = scaled_personality(&personality, "1/16".parse().unwrap(), 1).unwrap();
            let left = scaled.parameters().find(|(name, _)| *name == "nfiles");
            assert_eq!(left.map(|(_, value)| value.to_string()), Some("3200".into()), "{files}");
        }
    }
}
