//! Results of a fio job in fio's own layout, for scripts and plotters that read it.

use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::ThreadId;
use dovetail_workload::fio::output::{JobReport, Latency, Totals, to_json};
use dovetail_workload::fio::{Direction, FioWorkload, Percentiles, ThreadInfo};
use serde_json::Value;

use super::BenchError;
use super::fio_record::{DirectionRecord, FioRecord, Latencies, add_samples};

/// Threads that are reported as one: a thread of its own, or a group's with `group_reporting`.
struct Report<'a> {
    /// The first thread's, whose name and description are shown.
    first: ThreadInfo<'a>,
    /// The last thread's, whose options are shown.
    last: ThreadInfo<'a>,
    all: FioRecord,
    totals: [Totals; 3],
    /// Of all threads together.
    runtime: SimSpan,
    error: i32,
}

impl<'a> Report<'a> {
    fn new(info: ThreadInfo<'a>) -> Self {
        Self {
            first: info,
            last: info,
            all: FioRecord::default(),
            totals: Default::default(),
            runtime: SimSpan::ZERO,
            error: 0,
        }
    }

    /// As fio does it: who wants group reporting joins the thread before, if that is of its group.
    fn takes(&self, info: &ThreadInfo<'_>) -> bool {
        info.is_grouped() && info.group() == self.last.group()
    }

    fn add(&mut self, info: ThreadInfo<'a>, record: &FioRecord, error: i32) {
        self.last = info;
        for (index, theirs) in record.directions.iter().enumerate() {
            self.all.directions[index].add(theirs);
            add_samples(&mut self.totals[index].bandwidth, &theirs.bandwidth());
            add_samples(&mut self.totals[index].iops, &theirs.iops());
        }
        self.all.syncs.add(&record.syncs);
        self.all.depths.add(&record.depths);
        self.all.spread.add(&record.spread);
        self.runtime = SimSpan::from_ns(self.runtime.as_ns() + record.runtime.as_ns());
        if self.error == 0 {
            self.error = error;
        }
    }

    /// The report, without shares of the group's bandwidth, which other reports decide.
    fn finish(self, elapsed: SimSpan) -> JobReport {
        let mut directions = self.totals;
        let percentiles = self.last.percentiles();
        directions
            .iter_mut()
            .zip(&self.all.directions)
            .for_each(|(totals, record)| fill(totals, record, percentiles));
        JobReport {
            name: self.first.job_name().into(),
            group: self.first.group(),
            error: self.error,
            description: self.first.description().map(Into::into),
            options: self.last.options().to_vec(),
            directions,
            syncs: result(&self.all.syncs, percentiles.of_syncs(), percentiles),
            runtime_ns: self.runtime.as_ns(),
            elapsed_ns: elapsed.as_ns(),
            iodepth: self.last.iodepth(),
            depths: self.all.depths,
            spread: self.all.spread,
        }
    }
}

/// All but the samples, which are added up by thread.
fn fill(totals: &mut Totals, record: &DirectionRecord, percentiles: &Percentiles) {
    totals.bytes = record.bytes;
    totals.calls = record.calls;
    totals.short_calls = record.short_calls;
    totals.runtime_ns = record.runtime.as_ns();
    totals.submission = result(&record.submission, percentiles.submission, percentiles);
    totals.completion = result(&record.completion, percentiles.completion, percentiles);
    totals.total = result(&record.total, percentiles.total, percentiles);
}

/// Latencies, with percentiles if these are `shown`.
fn result(latencies: &Latencies, shown: bool, percentiles: &Percentiles) -> Latency {
    latencies.result(if shown { &percentiles.list } else { &[] })
}

/// Mean bandwidth in percent of what the whole group moved in its time.
fn share_bandwidth(reports: &mut [JobReport], direction: Direction) {
    let index = direction as usize;
    let of_group = |reports: &[JobReport], group: u32| {
        let totals =
            || reports.iter().filter(|report| report.group == group).map(|r| &r.directions[index]);
        let bytes: u64 = totals().map(|totals| totals.bytes).sum();
        let runtime_ns = totals().map(|totals| totals.runtime_ns).max().unwrap_or(0);
        bytes as f64 / 1024.0 / (runtime_ns as f64 / 1e9)
    };
    for at in 0..reports.len() {
        let kib_a_second = of_group(reports, reports[at].group);
        let totals = &mut reports[at].directions[index];
        if totals.bandwidth.count > 0 && kib_a_second > 0.0 {
            totals.bandwidth_share = (100.0 * totals.bandwidth.mean / kib_a_second).min(100.0);
        }
    }
}

/// The errno that ended a thread.
fn errno(failure: Option<&BenchError>, thread: ThreadId) -> i32 {
    match failure {
        Some(BenchError::Call { thread: failed, source, .. }) if *failed == thread.0 => {
            source.errno()
        }
        _ => 0,
    }
}

/// Output of fio for a job that ran from `begin` to `end`; one record for each thread.
pub(super) fn build(
    workload: &FioWorkload,
    records: &[FioRecord],
    (begin, end): (SimTime, SimTime),
    failure: Option<&BenchError>,
) -> Value {
    let mut reports: Vec<Report<'_>> = Vec::new();
    for (thread, record) in (0..).map(ThreadId).zip(records) {
        let info = workload.info(thread);
        if !reports.last().is_some_and(|last| last.takes(&info)) {
            reports.push(Report::new(info));
        }
        if let Some(report) = reports.last_mut() {
            report.add(info, record, errno(failure, thread));
        }
    }
    let elapsed = end.since(begin);
    let mut reports: Vec<JobReport> =
        reports.into_iter().map(|report| report.finish(elapsed)).collect();
    Direction::ALL.into_iter().for_each(|direction| share_bandwidth(&mut reports, direction));
    to_json(workload.job_file().global_options(), end.as_ns() / 1_000_000_000, &reports)
}
