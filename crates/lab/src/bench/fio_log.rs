//! fio's logs: `write_bw_log`, `write_lat_log` and `write_iops_log`, a line for each call or window.

use std::fmt::Write;

use dovetail_time::SimSpan;
use dovetail_workload::ThreadId;
use dovetail_workload::fio::{Direction, FioWorkload, LogSettings};

use super::fio_record::FioRecord;

/// A log that fio would have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioLog {
    /// Begin of its name: `write_bw_log` as given, or the job's name.
    pub prefix: String,
    /// The rest: `_bw.1.log`.
    pub ending: String,
    /// Its lines.
    pub text: String,
}

/// A call as the logs see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its end, since the thread's first call began.
    pub(super) end: SimSpan,
    pub(super) direction: Direction,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    /// Time until it was taken up, and from then to its end, in ns.
    pub(super) taken_up_ns: u64,
    pub(super) completion_ns: u64,
}

/// A value of a call, and how those of a window are put together.
#[derive(Clone, Copy)]
enum Value {
    /// KB a second of a call; of a window what was moved in it, in KiB a second.
    Bandwidth,
    /// One for each call; of a window calls a second.
    Iops,
    /// A time in ns; of a window its mean, or the longest (`log_max_value`).
    Time(fn(&Entry) -> u64),
}

/// The logs of all threads that want some.
pub(super) fn build(workload: &FioWorkload, records: &[FioRecord]) -> Vec<FioLog> {
    let mut all = Vec::new();
    for (thread, record) in (0..).map(ThreadId).zip(records) {
        let info = workload.info(thread);
        let logs = info.logs();
        let mut add = |prefix: &Option<String>, kind: &str, value: Value| {
            let Some(prefix) = prefix else { return };
            let prefix = if prefix.is_empty() { info.job_name() } else { prefix };
            let log = FioLog {
                prefix: prefix.to_owned(),
                ending: ending(kind, thread, logs.shared),
                text: text(&record.log, logs, value),
            };
            match all.iter_mut().find(|other: &&mut FioLog| logs.shared && other.is_file_of(&log)) {
                Some(other) => other.text.push_str(&log.text),
                None => all.push(log),
            }
        };
        let total = |entry: &Entry| entry.taken_up_ns + entry.completion_ns;
        add(&logs.bandwidth, "bw", Value::Bandwidth);
        add(&logs.latency, "lat", Value::Time(total));
        add(&logs.latency, "clat", Value::Time(|entry| entry.completion_ns));
        // engines that wait for each call have no time of submission
        if info.depth() > 1 {
            add(&logs.latency, "slat", Value::Time(|entry| entry.taken_up_ns));
        }
        add(&logs.iops, "iops", Value::Iops);
    }
    all
}

impl FioLog {
    fn is_file_of(&self, other: &Self) -> bool {
        (&self.prefix, &self.ending) == (&other.prefix, &other.ending)
    }
}

/// End of a log's name: with `per_job_logs=0` the same for all threads.
fn ending(kind: &str, thread: ThreadId, is_shared: bool) -> String {
    if is_shared { format!("_{kind}.log") } else { format!("_{kind}.{}.log", thread.0 + 1) }
}

fn text(entries: &[Entry], logs: &LogSettings, value: Value) -> String {
    let mut out = String::new();
    let mut line = |ms: u64, value: u64, direction: Direction, bytes: u64, offset: u64| {
        let offset = if logs.offset { format!("{offset}, ") } else { String::new() };
        // writing to a string does not fail
        let _ = writeln!(out, "{ms}, {value}, {}, {bytes}, {offset}0", direction as usize);
    };
    if logs.window_ms == 0 {
        for entry in entries {
            line(ms(entry), of_call(value, entry), entry.direction, entry.bytes, entry.offset);
        }
        return out;
    }
    for window in entries.chunk_by(|a, b| ms(a) / logs.window_ms == ms(b) / logs.window_ms) {
        let end = (ms(&window[0]) / logs.window_ms + 1) * logs.window_ms;
        for direction in Direction::ALL {
            let of_direction = || window.iter().filter(|entry| entry.direction == direction);
            if of_direction().next().is_some() {
                let value = of_window(value, of_direction(), logs);
                line(end, value, direction, 0, 0);
            }
        }
    }
    out
}

const fn ms(entry: &Entry) -> u64 {
    entry.end.as_ns() / 1_000_000
}

fn of_call(value: Value, entry: &Entry) -> u64 {
    match value {
        Value::Bandwidth => {
            (u128::from(entry.bytes) * 1_000_000 / u128::from(entry.completion_ns.max(1))) as u64
        }
        Value::Iops => 1,
        Value::Time(of) => of(entry),
    }
}

fn of_window<'a>(
    value: Value,
    entries: impl Iterator<Item = &'a Entry>,
    logs: &LogSettings,
) -> u64 {
    let (mut count, mut bytes, mut sum, mut longest) = (0, 0, 0_u128, 0);
    for entry in entries {
        let ns = if let Value::Time(of) = value { of(entry) } else { 0 };
        count += 1;
        bytes += entry.bytes;
        sum += u128::from(ns);
        longest = ns.max(longest);
    }
    match value {
        Value::Bandwidth => bytes * 1000 / logs.window_ms / 1024,
        Value::Iops => count * 1000 / logs.window_ms,
        Value::Time(_) if logs.longest => longest,
        Value::Time(_) => (sum / u128::from(count.max(1))) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let entry = |us: u64, direction, bytes| Entry {
            end: SimSpan::from_us(us),
            direction,
            bytes,
            offset: us * 4096,
            taken_up_ns: 500,
            completion_ns: 20_938,
        };
        vec![
            entry(21, Direction::Write, 4096),
            entry(1500, Direction::Read, 8192),
            entry(1600, Direction::Write, 4096),
            entry(9000, Direction::Write, 4096),
        ]
    }

    #[test]
    fn each_call_is_a_line_as_fio_3_33_writes_it() {
        let logs = LogSettings::default();
        let first = |value| text(&entries(), &logs, value).lines().next().unwrap().to_string();
        assert_eq!(first(Value::Bandwidth), "0, 195625, 1, 4096, 0");
        assert_eq!(first(Value::Iops), "0, 1, 1, 4096, 0");
        assert_eq!(first(Value::Time(|entry| entry.completion_ns)), "0, 20938, 1, 4096, 0");
        let with_offset = LogSettings { offset: true, ..logs };
        let text = text(&entries(), &with_offset, Value::Iops);
        assert_eq!(text.lines().nth(1), Some("1, 1, 0, 8192, 6144000, 0"));
    }

    #[test]
    fn windows_have_one_line_for_each_direction() {
        let logs = LogSettings { window_ms: 4, ..LogSettings::default() };
        let lines = |value| text(&entries(), &logs, value);
        assert_eq!(lines(Value::Iops), "4, 250, 0, 0, 0\n4, 500, 1, 0, 0\n12, 250, 1, 0, 0\n");
        assert_eq!(
            lines(Value::Bandwidth),
            "4, 2000, 0, 0, 0\n4, 2000, 1, 0, 0\n12, 1000, 1, 0, 0\n"
        );
        let mean = lines(Value::Time(|entry| entry.taken_up_ns));
        assert_eq!(mean.lines().next(), Some("4, 500, 0, 0, 0"));
    }

    #[test]
    fn a_window_has_its_longest_time_if_asked() {
        let mut entries = entries();
        entries[2].completion_ns += 10_000;
        let mean = LogSettings { window_ms: 4, ..LogSettings::default() };
        let longest = LogSettings { longest: true, ..mean.clone() };
        let second = |logs| {
            let text = text(&entries, logs, Value::Time(|entry| entry.completion_ns));
            text.lines().nth(1).unwrap().to_string()
        };
        assert_eq!(second(&mean), "4, 25938, 1, 0, 0");
        assert_eq!(second(&longest), "4, 30938, 1, 0, 0");
    }
}
