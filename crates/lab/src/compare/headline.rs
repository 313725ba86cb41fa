//! The figures of a run that are looked at first.

/// Unit of a figure, for who shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Seconds.
    S,
    /// Bytes.
    Bytes,
    /// A number as it is.
    Number,
}

/// A figure of every run.
#[derive(Clone, Copy, Debug)]
pub struct Headline {
    /// Path of its field in a run of the JSON, with dots.
    pub path: &'static str,
    /// Title of a few letters.
    pub title: &'static str,
    /// Unit of its value.
    pub unit: Unit,
    /// True if less is better, false if more is; `None` where neither is.
    pub less_is_better: Option<bool>,
}

const fn less(path: &'static str, title: &'static str, unit: Unit) -> Headline {
    Headline { path, title, unit, less_is_better: Some(true) }
}

const fn more(path: &'static str, title: &'static str, unit: Unit) -> Headline {
    Headline { path, title, unit, less_is_better: Some(false) }
}

const fn neither(path: &'static str, title: &'static str, unit: Unit) -> Headline {
    Headline { path, title, unit, less_is_better: None }
}

/// The figures, in the order in which they are shown.
pub const HEADLINES: [Headline; 30] = [
    less("totals.elapsed_s", "elapsed", Unit::S),
    more("totals.calls_per_s", "calls/s", Unit::Number),
    more("totals.read_mb_per_s", "read MB/s", Unit::Number),
    more("totals.write_mb_per_s", "write MB/s", Unit::Number),
    less("latency.read.p50_ns", "read p50", Unit::Ns),
    less("latency.read.p99_ns", "read p99", Unit::Ns),
    less("latency.read.p999_ns", "read p99.9", Unit::Ns),
    less("latency.write.p50_ns", "write p50", Unit::Ns),
    less("latency.write.p99_ns", "write p99", Unit::Ns),
    less("latency.write.p999_ns", "write p99.9", Unit::Ns),
    less("latency.flush.p50_ns", "sync p50", Unit::Ns),
    less("latency.flush.p99_ns", "sync p99", Unit::Ns),
    less("latency.flush.p999_ns", "sync p99.9", Unit::Ns),
    less("latency.discard.p50_ns", "discard p50", Unit::Ns),
    less("latency.discard.p99_ns", "discard p99", Unit::Ns),
    less("latency.discard.p999_ns", "discard p99.9", Unit::Ns),
    less("totals.fs_waf", "fs WAF", Unit::Number),
    less("zone_log.waf", "host log's WAF", Unit::Number),
    less("totals.device_waf", "drive WAF", Unit::Number),
    less("totals.total_waf", "WAF in all", Unit::Number),
    less("totals.programs.gc", "pages moved", Unit::Number),
    less("totals.gc_stalls", "stalls", Unit::Number),
    less("totals.erases", "erases", Unit::Number),
    neither("totals.discarded_blocks", "discarded", Unit::Number),
    less("totals.lost_blocks", "blocks lost", Unit::Number),
    less("totals.cpu_s", "CPU time", Unit::S),
    less("memory.map_bytes_max", "map memory", Unit::Bytes),
    more("lifetime.rated_years", "rated years", Unit::Number),
    less("restart.drive_s", "drive restart", Unit::S),
    less("restart.mount_s", "mount", Unit::S),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{RestartResult, RunResult, ZoneLogResult};

    /// A path that no run has would never show a change.
    #[test]
    fn every_path_is_a_field_of_a_run() {
        let mut run = RunResult::default();
        (run.restart, run.zone_log) =
            (Some(RestartResult::default()), Some(ZoneLogResult::default()));
        let run = serde_json::to_value(run).unwrap();
        for headline in HEADLINES {
            let pointer = format!("/{}", headline.path.replace('.', "/"));
            assert!(run.pointer(&pointer).is_some(), "{}", headline.path);
        }
    }
}
