//! Results side by side in a terminal: a column for each run, a line for each figure.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use dovetail_lab::bench::results::{BenchRun, Counts};
use dovetail_lab::results::{LatencyResult, MapCacheResult, RunResult};
use dovetail_time::{SimSpan, format_bytes, format_count};
use dovetail_vfs::Figure;

/// Lines of the table.
pub(crate) enum Row<R> {
    /// One line; `show` gives `None` where a run has no such figure.
    One { name: &'static str, show: fn(&R) -> Option<String> },
    /// A line for each figure of the runs' file systems.
    Figures { indent: &'static str, of: fn(&[R]) -> Vec<&'static Figure>, counts: fn(&R) -> &Counts },
}

pub(crate) const fn row<R>(name: &'static str, show: fn(&R) -> Option<String>) -> Row<R> {
    Row::One { name, show }
}

/// Which lines there are for runs of one kind.
pub(crate) struct Layout<R: 'static> {
    /// What a run is called.
    pub(crate) label: fn(&R) -> &str,
    /// The lines, in groups set apart by an empty one. A line that no run has a figure for is left out.
    pub(crate) groups: &'static [&'static [Row<R>]],
}

pub(crate) fn some(n: u64) -> Option<String> {
    (n > 0).then(|| format_count(n))
}

pub(crate) fn counted(requests: u64, bytes: u64) -> Option<String> {
    (requests > 0).then(|| format!("{} ({})", format_count(requests), format_bytes(bytes)))
}

pub(crate) fn latency(latency: &LatencyResult) -> Option<String> {
    let p = latency.percentiles;
    let span = SimSpan::from_ns;
    (p.count > 0).then(|| format!("{} / {} / {}", span(p.p50_ns), span(p.p99_ns), span(p.p999_ns)))
}

/// Runs that may have a demand-paged map.
pub(crate) trait MapOnFlash: Sized + 'static {
    fn map_cache(&self) -> Option<&MapCacheResult>;

    /// Its lines.
    const ROWS: &'static [Row<Self>] = &[
        row("read hits in the map's cache", |r| percent(r.map_cache()?.hit_ratio.read, 2)),
        row("write hits in the map's cache", |r| percent(r.map_cache()?.hit_ratio.write, 2)),
        row("translation pages read", |r| some(r.map_cache()?.translation_reads.total())),
        row("translation pages written", |r| some(r.map_cache()?.translation_writes.total())),
        row("write part, MAHT at the end", |r| split(r.map_cache()?)),
        row("read latency of dftl's", |r| percent(r.map_cache()?.of_dftl.read, 1)),
        row("write latency of dftl's", |r| percent(r.map_cache()?.of_dftl.write, 1)),
        row("  summed as by FlashSim, reads", |r| percent(r.map_cache()?.summed_of_dftl.read, 1)),
        row("  summed as by FlashSim, writes", |r| percent(r.map_cache()?.summed_of_dftl.write, 1)),
    ];
}

impl MapOnFlash for BenchRun {
    fn map_cache(&self) -> Option<&MapCacheResult> {
        self.map_cache.as_ref()
    }
}

impl MapOnFlash for RunResult {
    fn map_cache(&self) -> Option<&MapCacheResult> {
        self.map_cache.as_ref()
    }
}

fn percent(ratio: Option<f64>, digits: usize) -> Option<String> {
    ratio.map(|ratio| format!("{:.digits$} %", ratio * 100.0))
}

fn split(cache: &MapCacheResult) -> Option<String> {
    let is_split = cache.policy == "split";
    is_split.then(|| format!("{}, {}", format_count(cache.write_part), format_count(cache.maht)))
}

impl<R> Layout<R> {
    /// The runs as columns, as many beside each other as fit into `width` (all, if it is not known).
    pub(crate) fn text(&self, runs: &[R], width: Option<usize>) -> String {
        let mut out = String::new();
        let mut rest = runs;
        while !rest.is_empty() {
            let fits = |count: &usize| {
                let widest = self.columns(&rest[..*count]).lines().map(|line| line.chars().count()).max();
                width.is_none_or(|width| widest.is_none_or(|widest| widest <= width))
            };
            let count = (1..=rest.len()).rev().find(fits).unwrap_or(1);
            if !out.is_empty() {
                out.push('\n');
            }
            out += &self.columns(&rest[..count]);
            rest = &rest[count..];
        }
        out
    }

    fn columns(&self, runs: &[R]) -> String {
        let mut table = Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let labels = runs.iter().map(|run| (self.label)(run).to_owned());
        table.set_header(std::iter::once(String::new()).chain(labels));
        for (i, group) in self.groups.iter().enumerate() {
            let rows: Vec<_> = group.iter().flat_map(|row| row.lines(runs)).collect();
            if i > 0 && !rows.is_empty() {
                table.add_row([""]);
            }
            table.add_rows(rows);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let trimmed: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
        trimmed.join("\n") + "\n"
    }
}

impl<R> Row<R> {
    /// The lines that some run has a figure for.
    fn lines(&self, runs: &[R]) -> Vec<Vec<String>> {
        match self {
            Self::One { name, show } => cells(name, runs, show).into_iter().collect(),
            Self::Figures { indent, of, counts } => {
                let count = |run: &R, figure: &Figure| counts(run).get(figure.key).copied().and_then(some);
                let line = |figure: &'static Figure| {
                    cells(&format!("{indent}{}", figure.title), runs, |run| count(run, figure))
                };
                of(runs).into_iter().filter_map(line).collect()
            }
        }
    }
}

/// The name of a line and its figures; `None` when no run has one.
fn cells<R>(name: &str, runs: &[R], show: impl Fn(&R) -> Option<String>) -> Option<Vec<String>> {
    let figures: Vec<_> = runs.iter().map(show).collect();
    figures.iter().any(Option::is_some).then(|| {
        let shown = figures.into_iter().map(|figure| figure.unwrap_or_else(|| "-".into()));
        std::iter::once(name.to_string()).chain(shown).collect()
    })
}
