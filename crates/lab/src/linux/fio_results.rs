//! Results that fio itself reported, as records of threads.

use std::collections::BTreeMap;

use dovetail_ftl::stats::CommandKind;
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::fio::JobFile;
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
    total_ios: u64,
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
    bins: BTreeMap<String, u64>,
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

    /// Calls that read, write or trim.
    fn calls(&self) -> u64 {
        [&self.read, &self.write, &self.trim].map(|direction| direction.total_ios).iter().sum()
    }

    fn record(&self, times: Times) -> ThreadRecord {
        let Times { starts, from, to } = times;
        let mut record = ThreadRecord {
            read_bytes: self.read.io_bytes,
            written_bytes: self.write.io_bytes,
            span: Some((from, to)),
            ramp: (from > starts).then_some((starts, from)),
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

/// Begin of a job, and begin and end of what is measured of it.
#[derive(Clone, Copy, Debug)]
struct Times {
    starts: SimTime,
    from: SimTime,
    to: SimTime,
}

/// Records of a job's threads, their names, and how long all of it took.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) threads: Vec<ThreadRecord>,
    pub(super) jobs: Vec<String>,
    /// From the first call that counts to the end.
    pub(super) elapsed: SimSpan,
    /// The error number that a job ended with, and its name.
    pub(super) error: Option<(String, i32)>,
}

impl FioOutput {
    /// The records of a run of `file` that began at `begin`.
    ///
    /// # Errors
    /// Latencies without a histogram.
    pub(super) fn records(&self, file: &JobFile, begin: SimTime) -> Result<Records, String> {
        let times = self.times(file, begin);
        let failed = self.jobs.iter().find(|job| job.error != 0);
        let record = |(job, times): (&FioJob, &Times)| {
            let record = job.record(*times);
            // one that failed has calls without latencies
            if record.latencies.count() < job.calls() && failed.is_none() {
                return Err(format!("job {}: not every latency is told", job.jobname));
            }
            Ok(record)
        };
        let first = times.iter().map(|times| times.from).min().unwrap_or(begin);
        let last = times.iter().map(|times| times.to).max().unwrap_or(begin);
        Ok(Records {
            threads: self.jobs.iter().zip(&times).map(record).collect::<Result<_, _>>()?,
            jobs: self.jobs.iter().map(|job| job.jobname.clone()).collect(),
            elapsed: last.since(first),
            error: failed.map(|job| (job.jobname.clone(), job.error)),
        })
    }

    /// The times of each job. Groups of one phase run at a time; the next
    /// phase begins when the last one has ended. A job waits for the one that its `wait_for` names,
    /// and for its `startdelay`, which counts from the begin of the run; what comes behind its
    /// `ramp_time` is measured.
    fn times(&self, file: &JobFile, begin: SimTime) -> Vec<Times> {
        let phases = file.phases();
        let (mut phase, mut phase_begin, mut last_end) = (0, begin, begin);
        let mut ends: BTreeMap<&str, SimTime> = BTreeMap::new();
        let mut times = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            let of_job = phases.get(job.groupid as usize).copied().unwrap_or(phase);
            if of_job > phase {
                (phase, phase_begin) = (of_job, last_end);
            }
            let name = &job.jobname;
            let waited = file.waits_for(name).and_then(|name| ends.get(name)).copied();
            let delayed = begin + SimSpan::from_ns(file.start_delay_ns(name));
            let starts = phase_begin.max(waited.unwrap_or(begin)).max(delayed);
            let from = starts + SimSpan::from_ns(file.ramp_ns(name));
            let to = from + job.runtime();
            last_end = last_end.max(to);
            let end = ends.entry(&job.jobname).or_insert(to);
            *end = to.max(*end);
            times.push(Times { starts, from, to });
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use dovetail_workload::fio::Variables;
    use serde_json::json;

    use super::*;

    fn job(name: &str, group: u32, runtime_ms: u64) -> serde_json::Value {
        let none = json!({"io_bytes": 0, "total_ios": 0, "runtime": 0, "lat_ns": {"bins": {}}});
        let write = json!({"io_bytes": 8192, "total_ios": 2, "runtime": runtime_ms,
                           "lat_ns": {"bins": {"1000": 1, "3000": 1}}});
        json!({"jobname": name, "groupid": group, "error": 0, "read": none, "write": write,
               "trim": none, "sync": {"lat_ns": {"bins": {"5000": 1}}}})
    }

    fn records(text: &str, jobs: Vec<serde_json::Value>) -> Records {
        let file = JobFile::parse(text, "j", &Variables::new()).unwrap();
        let output: FioOutput = serde_json::from_value(json!({ "jobs": jobs })).unwrap();
        output.records(&file, SimTime::from_ns(500)).unwrap()
    }

    #[test]
    fn groups_run_at_a_time_and_a_stonewall_waits_for_all() {
        let text = "[a]\nsize=1m\n[b]\nsize=1m\nnew_group\n[c]\nsize=1m\nstonewall\n[d]\nsize=1m\nstartdelay=1s\n";
        let found = records(
            text,
            vec![job("a", 0, 300), job("b", 1, 200), job("c", 2, 50), job("d", 2, 100)],
        );
        assert_eq!(found.elapsed, SimSpan::from_ms(1100));
        let starts: Vec<u64> =
            found.threads.iter().map(|thread| thread.span.unwrap().0.as_ns() / 1_000_000).collect();
        assert_eq!(starts, [0, 0, 300, 1000]);
        assert_eq!(found.threads[0].latencies.count(), 3);
        assert_eq!(found.threads[0].written_bytes, 8192);
    }

    #[test]
    fn a_job_begins_when_the_one_it_waits_for_has_ended() {
        let text =
            "[a]\nsize=1m\nstartdelay=1s\n[b]\nsize=1m\nwait_for=a\nstartdelay=2s\nramp_time=4s\n";
        let found = records(text, vec![job("a", 0, 300), job("b", 0, 200)]);
        let begins: Vec<u64> =
            found.threads.iter().map(|thread| thread.span.unwrap().0.as_ns() / 1_000_000).collect();
        assert_eq!(begins, [1000, 2000 + 4000]);
        assert_eq!(found.elapsed, SimSpan::from_ms(5200));
        let ramps: Vec<_> = found.threads.iter().map(|thread| thread.ramp).collect();
        let at = |ms| SimTime::from_ns(500) + SimSpan::from_ms(ms);
        assert_eq!(ramps, [None, Some((at(2000), at(6000)))]);
    }

    #[test]
    fn what_is_measured_begins_behind_the_first_ramp() {
        let text = "[a]\nsize=1m\nramp_time=4s\n[b]\nsize=1m\nramp_time=3s\nstartdelay=2s\n";
        let found = records(text, vec![job("a", 0, 300), job("b", 0, 2200)]);
        assert_eq!(found.elapsed, SimSpan::from_ms(3200));
    }

    #[test]
    fn latencies_that_are_not_told_are_an_error() {
        let file = JobFile::parse("[a]\nsize=1m\n", "j", &Variables::new()).unwrap();
        let mut silent = job("a", 0, 1);
        silent["write"]["lat_ns"] = json!({});
        let output: FioOutput = serde_json::from_value(json!({ "jobs": [silent] })).unwrap();
        assert!(output.records(&file, SimTime::ZERO).unwrap_err().contains("job a"));
        let mut failed = job("a", 0, 1);
        failed["write"]["lat_ns"] = json!({});
        failed["error"] = 28.into();
        let found = records("[a]\nsize=1m\n", vec![failed]);
        assert_eq!(found.error, Some(("a".into(), 28)));
    }
}
