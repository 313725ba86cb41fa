//! Results in the layout of fio's `--output-format=json`, so that what reads fio's reads ours.
//!
//! The layout is that of fio 3.33; `tests/fio_output.rs` compares the keys. Times are virtual. What
//! a simulation does not have (CPU time, page faults, context switches) is 0.

use serde_json::{Map, Value, json};

use super::pattern::Direction;

/// fio's default list (`percentile_list`).
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Latencies of calls, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Number of calls.
    pub calls: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Their standard deviation.
    pub stddev_ns: f64,
    /// Percentages, and the latency that so many of the calls stay below; empty where none are
    /// shown.
    pub percentiles_ns: Vec<(f64, u64)>,
}

/// A figure that was sampled over time, such as the bandwidth of every half second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    /// Number of samples.
    pub count: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
}

/// Totals of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Bytes read, written or trimmed.
    pub bytes: u64,
    /// Calls.
    pub calls: u64,
    /// Calls that moved fewer bytes than asked.
    pub short_calls: u64,
    /// Time of the job's reading and writing, with its syncs, pauses and waiting, in nanoseconds;
    /// reads that verify have a time of their own, which is added.
    pub runtime_ns: u64,
    /// Until a call was taken up; no calls for synchronous engines.
    pub submission: Latency,
    /// From there to its end.
    pub completion: Latency,
    /// Both together.
    pub total: Latency,
    /// Samples in KiB a second.
    pub bandwidth: Samples,
    /// Mean bandwidth in percent of the group's; 0 without samples.
    pub bandwidth_share: f64,
    /// Samples in calls a second.
    pub iops: Samples,
}

/// The figures of a job, or of the threads that are reported as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReport {
    /// Its name.
    pub name: String,
    /// Its group, from 0.
    pub group: u32,
    /// The errno that ended it, or 0.
    pub error: i32,
    /// `description`, if given.
    pub description: Option<String>,
    /// The options of its section, as given.
    pub options: Vec<(String, String)>,
    /// By direction: reads, writes, trims.
    pub directions: [Totals; 3],
    /// fsync and fdatasync, but for those that close files.
    pub syncs: Latency,
    /// Running time of its threads, together, in nanoseconds.
    pub runtime_ns: u64,
    /// From the start of the run to its end, in nanoseconds.
    pub elapsed_ns: u64,
    /// `iodepth`, whatever came of it.
    pub iodepth: u64,
    /// Calls under way when a call was made.
    pub depths: Depths,
    /// Completion latencies of calls, in fio's buckets.
    pub spread: Spread,
}

/// Counts of calls by how many were under way: 1, 2 to 3, 4 to 7, and so on to 64 and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depths([u64; 7]);

impl Depths {
    /// A call was made, and so many are under way with it: at least 1.
    pub fn record(&mut self, under_way: u64) {
        self.0[(under_way.max(1).ilog2() as usize).min(6)] += 1;
    }

    /// Takes in what others counted.
    pub fn add(&mut self, others: &Self) {
        self.0.iter_mut().zip(others.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Counts of calls by their latency, in fio's buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    counts: [[u64; 12]; 3],
}

/// Upper ends of a unit's buckets; the last one of the milliseconds has no end.
const BUCKETS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

impl Spread {
    /// A call took so long.
    pub fn record(&mut self, ns: u64) {
        let (unit, value) = match ns {
            0..1_000 => (0, ns),
            1_000..1_000_000 => (1, ns / 1_000),
            _ => (2, ns / 1_000_000),
        };
        let bucket = BUCKETS.iter().position(|end| value < *end).unwrap_or(BUCKETS.len());
        self.counts[unit][bucket] += 1;
    }

    /// Takes in what others counted.
    pub fn add(&mut self, others: &Self) {
        let theirs = others.counts.iter().flatten();
        self.counts.iter_mut().flatten().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
    }

    fn calls(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }
}

/// The whole output. `global_options` are those of the job file; `timestamp_s` is shown as the time
/// of the run, in seconds since 1970: virtual, too.
pub fn to_json(global_options: &[(String, String)], timestamp_s: u64, jobs: &[JobReport]) -> Value {
    let mut all = Map::new();
    all.insert(
        "fio version".into(),
        json!(concat!("fio-3.33-dovetail-", env!("CARGO_PKG_VERSION"))),
    );
    all.insert("timestamp".into(), json!(timestamp_s));
    all.insert("timestamp_ms".into(), json!(timestamp_s.saturating_mul(1_000)));
    all.insert("time".into(), json!(date(timestamp_s)));
    if !global_options.is_empty() {
        all.insert("global options".into(), options(global_options));
    }
    all.insert("jobs".into(), jobs.iter().map(job).collect());
    all.insert("disk_util".into(), json!([]));
    all.into()
}

fn options(given: &[(String, String)]) -> Value {
    given.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>().into()
}

fn job(report: &JobReport) -> Value {
    let calls: u64 = report.directions.iter().map(|totals| totals.calls).sum();
    let mut job = Map::new();
    job.insert("jobname".into(), json!(report.name));
    job.insert("groupid".into(), json!(report.group));
    job.insert("error".into(), json!(report.error));
    job.insert("eta".into(), json!(0));
    job.insert("elapsed".into(), json!(report.elapsed_ns.div_ceil(1_000_000_000)));
    if !report.options.is_empty() {
        job.insert("job options".into(), options(&report.options));
    }
    for direction in Direction::ALL {
        let name = format!("{direction:?}").to_lowercase();
        job.insert(name, totals(&report.directions[direction.index()]));
    }
    job.insert(
        "sync".into(),
        json!({"total_ios": report.syncs.calls, "lat_ns": latency(&report.syncs)}),
    );
    job.insert("job_runtime".into(), json!(milliseconds(report.runtime_ns)));
    for (name, value) in
        [("usr_cpu", json!(0.0)), ("sys_cpu", json!(0.0)), ("ctx", json!(0)), ("majf", json!(0))]
    {
        job.insert(name.into(), value);
    }
    job.insert("minf".into(), json!(0));
    insert_spreads(&mut job, report, calls);
    job.insert("latency_depth".into(), json!(report.iodepth));
    job.insert("latency_target".into(), json!(0));
    job.insert("latency_percentile".into(), json!(100.0));
    job.insert("latency_window".into(), json!(0));
    if let Some(description) = &report.description {
        job.insert("desc".into(), json!(description));
    }
    job.into()
}

fn insert_spreads(job: &mut Map<String, Value>, report: &JobReport, calls: u64) {
    const LEVELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
    const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
    let depths = report.depths.0;
    job.insert("iodepth_level".into(), shares(LEVELS.into_iter().zip(depths), depths.iter().sum()));
    // Calls are submitted and reaped one by one: up to four at a time.
    for name in ["iodepth_submit", "iodepth_complete"] {
        job.insert(name.into(), shares(BATCHES.into_iter().zip([0, calls, 0, 0, 0, 0, 0]), calls));
    }
    let all = report.spread.calls();
    for (name, counts, buckets) in [
        ("latency_ns", report.spread.counts[0], 10),
        ("latency_us", report.spread.counts[1], 10),
        ("latency_ms", report.spread.counts[2], 12),
    ] {
        let ends = BUCKETS.iter().map(u64::to_string).chain([">=2000".to_owned()]);
        job.insert(name.into(), shares(ends.zip(counts).take(buckets), all));
    }
}

fn shares(counts: impl Iterator<Item = (impl Into<String>, u64)>, all: u64) -> Value {
    let percent = |count: u64| if all == 0 { 0.0 } else { 100.0 * count as f64 / all as f64 };
    counts.map(|(name, count)| (name.into(), json!(percent(count)))).collect::<Map<_, _>>().into()
}

fn totals(totals: &Totals) -> Value {
    let seconds = totals.runtime_ns as f64 / 1e9;
    let a_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    json!({
        "io_bytes": totals.bytes,
        "io_kbytes": totals.bytes >> 10,
        "bw_bytes": a_second(totals.bytes) as u64,
        "bw": a_second(totals.bytes) as u64 / 1024,
        "iops": a_second(totals.calls),
        // rounded up, as in fio: not 0 where something was done
        "runtime": totals.runtime_ns.div_ceil(1_000_000),
        "total_ios": totals.calls,
        "short_ios": totals.short_calls,
        "drop_ios": 0,
        "slat_ns": latency(&totals.submission),
        "clat_ns": latency(&totals.completion),
        "lat_ns": latency(&totals.total),
        "bw_min": totals.bandwidth.min,
        "bw_max": totals.bandwidth.max,
        "bw_agg": totals.bandwidth_share,
        "bw_mean": totals.bandwidth.mean,
        "bw_dev": totals.bandwidth.deviation,
        "bw_samples": totals.bandwidth.count,
        "iops_min": totals.iops.min,
        "iops_max": totals.iops.max,
        "iops_mean": totals.iops.mean,
        "iops_stddev": totals.iops.deviation,
        "iops_samples": totals.iops.count,
    })
}

fn latency(latency: &Latency) -> Value {
    let mut value = json!({
        "min": latency.min_ns,
        "max": latency.max_ns,
        "mean": latency.mean_ns,
        "stddev": latency.stddev_ns,
        "N": latency.calls,
    });
    if latency.calls > 0 && !latency.percentiles_ns.is_empty() {
        let named = latency.percentiles_ns.iter();
        let named = named.map(|(percent, ns)| (format!("{percent:.6}"), Value::from(*ns)));
        value["percentile"] = named.collect::<Map<_, _>>().into();
    }
    value
}

const fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

/// As ctime(3) writes it, in UTC. Days to dates: Hinnant, "chrono-compatible low-level date
/// algorithms", `civil_from_days`.
fn date(timestamp_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (timestamp_s / 86_400, timestamp_s % 86_400);
    let since_march = days + 719_468;
    let (era, day_of_era) = (since_march / 146_097, since_march % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = year + era * 400 + u64::from(month >= 10);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[((month + 2) % 12) as usize]);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_ctime() {
        for (timestamp, expected) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (1_795_261_654, "Sat Nov 21 11:47:34 2026"),
        ] {
            assert_eq!(date(timestamp), expected);
        }
    }

    #[test]
    fn calls_fall_into_the_buckets_of_fio() {
        let (mut spread, mut depths) = (Spread::default(), Depths::default());
        [1, 999, 1_000, 2_500_000_000].into_iter().for_each(|ns| spread.record(ns));
        [0, 1, 3, 64, 1_000].into_iter().for_each(|depth| depths.record(depth));
        let report = JobReport { spread, depths, ..JobReport::default() };
        let job = job(&report);
        assert_eq!(
            (job["latency_ns"]["2"].as_f64(), job["latency_ns"]["1000"].as_f64()),
            (Some(25.0), Some(25.0))
        );
        assert_eq!(
            (job["latency_us"]["2"].as_f64(), job["latency_ms"][">=2000"].as_f64()),
            (Some(25.0), Some(25.0))
        );
        assert_eq!(
            (job["iodepth_level"]["1"].as_f64(), job["iodepth_level"][">=64"].as_f64()),
            (Some(40.0), Some(40.0))
        );
    }
}
