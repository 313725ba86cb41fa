//! A run's figures over the volume that its workload had written.

use dovetail_lab::results::RunResult;

const BLOCK: u64 = 4096;

/// The last interval that ends before `bytes` were written, or the first.
fn at(run: &RunResult, bytes: f64) -> usize {
    let written = &run.series.written_bytes;
    written
        .partition_point(|written| (*written as f64) < bytes)
        .min(written.len().saturating_sub(1))
}

/// Mean write bandwidth of the workload between two points of the volume that it had written, in
/// MB/s.
pub(crate) fn bandwidth(run: &RunResult, from_bytes: f64, to_bytes: f64) -> f64 {
    let series = &run.series;
    let (from, to) = (at(run, from_bytes), at(run, to_bytes));
    let written = series.written_bytes[to] - series.written_bytes[from];
    written as f64 / 1e6 / (series.time_s[to] - series.time_s[from]).max(1e-9)
}

/// The file system's write amplification between two such points.
pub(crate) fn fs_waf(run: &RunResult, from_bytes: f64, to_bytes: f64) -> f64 {
    let series = &run.series;
    let (from, to) = (at(run, from_bytes), at(run, to_bytes));
    let blocks: u64 =
        series.written.values().map(|column| column[from + 1..=to].iter().sum::<u64>()).sum();
    let written = series.written_bytes[to] - series.written_bytes[from];
    (blocks * BLOCK) as f64 / (written as f64).max(1.0)
}

/// A figure in each of `parts` equal parts of the first `bytes` written.
pub(crate) fn parts(
    run: &RunResult,
    bytes: f64,
    parts: u32,
    figure: fn(&RunResult, f64, f64) -> f64,
) -> Vec<f64> {
    let end = |part: u32| bytes / f64::from(parts) * f64::from(part);
    (0..parts).map(|part| figure(run, end(part), end(part + 1))).collect()
}

/// Least and greatest.
pub(crate) fn span(values: &[f64]) -> (f64, f64) {
    let fold = |with: fn(f64, f64) -> f64, from| values.iter().copied().fold(from, with);
    (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_parts_are_those_of_their_intervals() {
        let mut run = RunResult::default();
        run.series.time_s = vec![1.0, 2.0, 4.0, 8.0];
        run.series.written_bytes = [1, 2, 3, 4].map(|mb| mb * 1_000_000).to_vec();
        run.series.written.insert("data".into(), vec![250; 4]);
        run.series.written.insert("node".into(), vec![0, 0, 250, 250]);
        assert_eq!(parts(&run, 4e6, 2, bandwidth), [1.0, 1.0 / 3.0]);
        assert!((fs_waf(&run, 2e6, 4e6) - 2.048).abs() < 1e-9);
        assert_eq!(span(&[2.0, 1.0, 3.0]), (1.0, 3.0));
    }
}
