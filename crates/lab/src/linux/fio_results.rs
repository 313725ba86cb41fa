//! Results that fio itself reported, as records of threads.

use dovetail_ftl::stats::CommandKind;
use dovetail_time::{SimSpan, SimTime};
use serde::Deserialize;

use crate::record::ThreadRecord;

/// The parts of fio's JSON that are read. Times are in nanoseconds unless their names say else.
#[derive(Debug, Deserialize)]
pub(super) struct FioOutput {
    jobs: Vec<FioJob>,
}

#[derive(Debug, Deserialize)]
struct FioJob {
    jobname: String,
    groupid: u32,
    error: i32,
    read: FioDirection,
    write: FioDirection,
    trim: FioDirection,
    sync: FioSync,
}

#[derive(Debug, Deserialize)]
struct FioDirection {
    io_bytes: u64,
    /// In milliseconds.
    runtime: u64,
    lat_ns: FioLatency,
}

#[derive(Debug, Deserialize)]
struct FioSync {
    lat_ns: FioLatency,
}

#[derive(Debug, Deserialize)]
struct FioLatency {
    /// Numbers of calls by latency, as `--output-format=json+` has them.
    #[serde(default)]
    bins: std::collections::BTreeMap<String, u64>,
}

impl FioLatency {
    fn bins(&self) -> impl Iterator<Item = (SimSpan, u64)> {
        let bins = self.bins.iter();
        bins.filter_map(|(ns, count)| Some((SimSpan::from_ns(ns.parse().ok()?), *count)))
    }
}

impl FioJob {
    fn runtime(&self) -> SimSpan {
        let longest = [&self.read, &self.write, &self.trim].map(|direction| direction.runtime);
        SimSpan::from_ms(longest.into_iter().max().unwrap_or(0))
    }

    fn record(&self, begin: SimTime) -> ThreadRecord {
        let mut record = ThreadRecord {
            read_bytes: self.read.io_bytes,
            written_bytes: self.write.io_bytes,
            span: Some((begin, begin + self.runtime())),
            ..ThreadRecord::default()
        };
        let kinds = [
            (CommandKind::Read, &self.read.lat_ns),
            (CommandKind::Write, &self.write.lat_ns),
            (CommandKind::Discard, &self.trim.lat_ns),
            (CommandKind::Flush, &self.sync.lat_ns),
        ];
        for (kind, latency) in kinds {
            latency.bins().for_each(|(span, times)| record.latencies.record_n(kind, span, times));
        }
        record
    }
}

/// Records of a job's threads, their names, and how long all of it took.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) threads: Vec<ThreadRecord>,
    pub(super) jobs: Vec<String>,
    pub(super) elapsed: SimSpan,
    /// The error number that a job ended with, and its name.
    pub(super) error: Option<(String, i32)>,
}

impl FioOutput {
    /// The records of a run that began at `begin`; a group that waited for others (`stonewall`)
    /// begins when they ended.
    pub(super) fn records(&self, begin: SimTime) -> Records {
        let (mut start, mut end, mut group) = (begin, begin, None);
        let mut threads = Vec::new();
        for job in &self.jobs {
            if group != Some(job.groupid) {
                (start, group) = (end, Some(job.groupid));
            }
            threads.push(job.record(start));
            end = end.max(start + job.runtime());
        }
        let failed = self.jobs.iter().find(|job| job.error != 0);
        Records {
            threads,
            jobs: self.jobs.iter().map(|job| job.jobname.clone()).collect(),
            elapsed: end.since(begin),
            error: failed.map(|job| (job.jobname.clone(), job.error)),
        }
    }
}
