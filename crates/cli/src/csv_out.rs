//! Results as CSV: one row a run, one column a figure.

use dovetail_lab::results::{LatencyResult, RunResult};

use crate::Failure;

/// The figures of a run by column name; the names are those of the JSON, with dots.
fn columns(run: &RunResult) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut put = |name: &str, value: String| out.push((name.to_string(), value));
    put("label", run.label.clone());
    put("trace.name", run.trace.name.clone());
    put("drive.profile", run.drive.profile.clone());
    put("drive.capacity_bytes", run.drive.capacity_bytes.to_string());
    put("drive.over_provisioning_percent", run.drive.over_provisioning_percent.to_string());
    put("drive.map", run.drive.map.clone());
    put("drive.gc", run.drive.gc.clone());
    put("drive.buffer_bytes", run.drive.buffer_bytes.to_string());
    put("trace.requests.read", run.trace.requests.read.to_string());
    put("trace.requests.write", run.trace.requests.write.to_string());
    put("trace.requests.discard", run.trace.requests.discard.to_string());
    put("trace.requests.flush", run.trace.requests.flush.to_string());
    put("trace.bytes.read", run.trace.bytes.read.to_string());
    put("trace.bytes.write", run.trace.bytes.write.to_string());
    put("trace.bytes.discard", run.trace.bytes.discard.to_string());
    let totals = &run.totals;
    put("totals.elapsed_s", totals.elapsed_s.to_string());
    put("totals.iops", totals.iops.to_string());
    put("totals.read_mb_per_s", totals.read_mb_per_s.to_string());
    put("totals.write_mb_per_s", totals.write_mb_per_s.to_string());
    put("totals.waf", totals.waf.map(|waf| waf.to_string()).unwrap_or_default());
    put("totals.programs.host", totals.programs.host.to_string());
    put("totals.programs.gc", totals.programs.gc.to_string());
    put("totals.programs.wear", totals.programs.wear.to_string());
    put("totals.programs.retire", totals.programs.retire.to_string());
    put("totals.programs.journal", totals.programs.journal.to_string());
    put("totals.erases", totals.erases.to_string());
    put("totals.gc_runs", totals.gc_runs.to_string());
    put("totals.gc_stalls", totals.gc_stalls.to_string());
    put("memory.map_bytes", run.memory.map_bytes.to_string());
    put("memory.map_bytes_max", run.memory.map_bytes_max.to_string());
    put("wear.erases_min", run.wear.erases_min.to_string());
    put("wear.erases_mean", run.wear.erases_mean.to_string());
    put("wear.erases_max", run.wear.erases_max.to_string());
    let latencies = [
        ("read", &run.latency.read),
        ("write", &run.latency.write),
        ("flush", &run.latency.flush),
        ("discard", &run.latency.discard),
    ];
    for (kind, latency) in latencies {
        for (figure, value) in latency_columns(latency) {
            put(&format!("latency.{kind}.{figure}"), value);
        }
    }
    out
}

fn latency_columns(latency: &LatencyResult) -> [(&'static str, String); 7] {
    let p = latency.percentiles;
    [
        ("mean_ns", p.mean_ns.to_string()),
        ("p50_ns", p.p50_ns.to_string()),
        ("p90_ns", p.p90_ns.to_string()),
        ("p99_ns", p.p99_ns.to_string()),
        ("p999_ns", p.p999_ns.to_string()),
        ("p9999_ns", p.p9999_ns.to_string()),
        ("max_ns", p.max_ns.to_string()),
    ]
}

/// All runs as CSV with a header.
pub(crate) fn text(runs: &[RunResult]) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (i, run) in runs.iter().enumerate() {
        let columns = columns(run);
        if i == 0 {
            writer.write_record(columns.iter().map(|(name, _)| name)).map_err(Failure::failed)?;
        }
        writer.write_record(columns.iter().map(|(_, value)| value)).map_err(Failure::failed)?;
    }
    let bytes = writer.into_inner().map_err(Failure::failed)?;
    String::from_utf8(bytes).map_err(Failure::failed)
}
