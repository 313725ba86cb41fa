//! The table of what came out: a row for each figure, a column for each run.
//!
//! The best figure is marked only among runs of the same trace, and the figures that the trace itself dictates
//! (elapsed time, rates) only in a closed loop.

use super::format::{MISSING, bytes, count, duration_ns, escape, significant};
use super::scrolling_table;
use crate::results::{LatencyResult, RunResult};
use dovetail_ftl::stats::Percentiles;

/// Which value of a row is the best.
#[derive(Clone, Copy, PartialEq)]
enum Best {
    /// It means nothing.
    Neither,
    Least,
    /// The greatest, if requests are issued as fast as they complete.
    MostInClosedLoop,
    /// The least, if requests are issued as fast as they complete.
    LeastInClosedLoop,
}
use Best::{Least, LeastInClosedLoop, MostInClosedLoop, Neither};

/// A value as shown, and as compared; it is not compared where it does not exist.
struct Cell {
    text: String,
    value: Option<f64>,
}

struct Row {
    name: &'static str,
    best: Best,
    cell: fn(&RunResult) -> Cell,
}

struct Group {
    name: &'static str,
    rows: &'static [Row],
}

const fn row(name: &'static str, best: Best, cell: fn(&RunResult) -> Cell) -> Row {
    Row { name, best, cell }
}

const GROUPS: &[Group] = &[
    Group {
        name: "Requests",
        rows: &[
            row("Reads", Neither, |run| whole(run.trace.requests.read)),
            row("Writes", Neither, |run| whole(run.trace.requests.write)),
            row("Flushes", Neither, |run| whole(run.trace.requests.flush)),
            row("Discards", Neither, |run| whole(run.trace.requests.discard)),
        ],
    },
    Group {
        name: "Throughput",
        rows: &[
            row("Elapsed", LeastInClosedLoop, |run| time(run.totals.elapsed_s * 1e9)),
            row("Requests per second", MostInClosedLoop, |run| number(run.totals.iops)),
            row("Read, MB/s", MostInClosedLoop, |run| rate(run.totals.read_mb_per_s)),
            row("Written, MB/s", MostInClosedLoop, |run| rate(run.totals.write_mb_per_s)),
            row("Queue depth, mean", Neither, |run| number(run.totals.queue_depth_mean)),
            row("Queue depth, max", Neither, |run| whole(run.totals.queue_depth_max)),
        ],
    },
    Group {
        name: "Read latency",
        rows: &[
            row("p50", Least, |run| latency(&run.latency.read, |p| p.p50_ns)),
            row("p99", Least, |run| latency(&run.latency.read, |p| p.p99_ns)),
            row("p99.9", Least, |run| latency(&run.latency.read, |p| p.p999_ns)),
            row("Max", Least, |run| latency(&run.latency.read, |p| p.max_ns)),
        ],
    },
    Group {
        name: "Write latency",
        rows: &[
            row("p50", Least, |run| latency(&run.latency.write, |p| p.p50_ns)),
            row("p99", Least, |run| latency(&run.latency.write, |p| p.p99_ns)),
            row("p99.9", Least, |run| latency(&run.latency.write, |p| p.p999_ns)),
            row("Max", Least, |run| latency(&run.latency.write, |p| p.max_ns)),
        ],
    },
    Group {
        name: "Flush latency",
        rows: &[row("p99", Least, |run| latency(&run.latency.flush, |p| p.p99_ns))],
    },
    Group {
        name: "Flash",
        rows: &[
            row("Write amplification (WAF)", Least, |run| optional(run.totals.waf)),
            row("Pages moved by cleaning", Least, |run| whole(run.totals.programs.gc)),
            row("Pages moved by wear levelling", Neither, |run| whole(run.totals.programs.wear)),
            row("Lines cleaned", Neither, |run| whole(run.totals.gc_runs)),
            row("Lines that writes waited for", Least, |run| whole(run.totals.gc_stalls)),
            row("Blocks erased", Least, |run| whole(run.totals.erases)),
            row("Failed programs and erases", Neither, |run| {
                whole(run.totals.program_failures + run.totals.erase_failures)
            }),
            row("Blocks of data lost", Least, |run| whole(run.totals.lost_blocks)),
        ],
    },
    Group {
        name: "Wear, erases of a block",
        rows: &[
            row("Min", Neither, |run| whole(run.wear.erases_min.into())),
            row("Mean", Neither, |run| number(run.wear.erases_mean)),
            row("Max", Least, |run| whole(run.wear.erases_max.into())),
        ],
    },
    Group {
        name: "Memory",
        rows: &[
            row("Map at the end", Least, |run| size(run.memory.map_bytes)),
            row("Map, max", Least, |run| size(run.memory.map_bytes_max)),
            row("Other", Neither, |run| size(run.memory.other_bytes)),
        ],
    },
];

fn whole(value: u64) -> Cell {
    Cell { text: count(value), value: Some(value as f64) }
}

fn number(value: f64) -> Cell {
    Cell { text: significant(value), value: Some(value).filter(|v| v.is_finite()) }
}

fn optional(value: Option<f64>) -> Cell {
    value.map_or_else(missing, number)
}

/// A rate; 0 means that there was nothing to transfer, not that it was slow.
fn rate(value: f64) -> Cell {
    if value > 0.0 { number(value) } else { missing() }
}

fn time(ns: f64) -> Cell {
    Cell { text: duration_ns(ns), value: Some(ns).filter(|v| v.is_finite()) }
}

fn latency(of: &LatencyResult, figure: impl Fn(&Percentiles) -> u64) -> Cell {
    if of.percentiles.count == 0 { missing() } else { time(figure(&of.percentiles) as f64) }
}

fn size(value: u64) -> Cell {
    Cell { text: bytes(value), value: Some(value as f64) }
}

fn missing() -> Cell {
    Cell { text: MISSING.into(), value: None }
}

/// The summary of all runs.
pub(super) fn table(runs: &[RunResult]) -> String {
    if runs.is_empty() {
        return "<p>There are no runs.</p>".into();
    }
    let mut marked = false;
    let body: String = GROUPS.iter().map(|group| group_html(group, runs, &mut marked)).collect();
    let note = if marked {
        "\n<p class=\"note\">Bold on a tint: the best of the runs of the same trace, where the runs differ.</p>"
    } else {
        ""
    };
    format!("{}{note}", scrolling_table("Summary", runs, &body))
}

fn group_html(group: &Group, runs: &[RunResult], marked: &mut bool) -> String {
    let span = runs.len() + 1;
    let rows: String = group.rows.iter().map(|row| row_html(row, runs, marked)).collect();
    let name = group.name;
    format!(
        "<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"{span}\"><span>{name}</span></th></tr>\n{rows}</tbody>\n"
    )
}

fn row_html(row: &Row, runs: &[RunResult], marked: &mut bool) -> String {
    let cells: Vec<Cell> = runs.iter().map(row.cell).collect();
    let best = best_cells(row.best, runs, &cells);
    *marked |= best.contains(&true);
    let columns: String = cells.iter().zip(best).map(|(cell, best)| cell_html(cell, best)).collect();
    format!("<tr><th scope=\"row\">{}</th>{columns}</tr>\n", row.name)
}

fn cell_html(cell: &Cell, best: bool) -> String {
    let text = escape(&cell.text);
    if best {
        format!("<td><span class=\"best\">{text}<span class=\"hidden\"> (best)</span></span></td>")
    } else if cell.value.is_none() {
        format!("<td class=\"none\">{text}</td>")
    } else {
        format!("<td>{text}</td>")
    }
}

/// Which cells to mark: those that show the best value among the runs that they can be compared with.
fn best_cells(best: Best, runs: &[RunResult], cells: &[Cell]) -> Vec<bool> {
    (0..runs.len()).map(|at| is_best(best, at, runs, cells)).collect()
}

/// Ties are shared, but where all show the same, none is best.
fn is_best(best: Best, at: usize, runs: &[RunResult], cells: &[Cell]) -> bool {
    let peers: Vec<usize> =
        (0..runs.len()).filter(|&other| comparable(best, &runs[at], &runs[other])).collect();
    let values = peers.iter().filter_map(|&peer| cells[peer].value.map(|value| (value, peer)));
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0);
    let winner = if best == MostInClosedLoop { values.max_by(order) } else { values.min_by(order) };
    let differ = peers.iter().any(|&peer| cells[peer].value.is_some() && cells[peer].text != cells[at].text);
    differ && winner.is_some_and(|(_, winner)| cells[winner].text == cells[at].text)
}

fn comparable(best: Best, a: &RunResult, b: &RunResult) -> bool {
    let same_trace = a.trace.name == b.trace.name && a.trace.requests == b.trace.requests;
    let closed = [a, b].iter().all(|run| run.replay.mode == "closed");
    match best {
        Neither => false,
        Least => same_trace,
        MostInClosedLoop | LeastInClosedLoop => same_trace && closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(trace: &str, mode: &str, waf: Option<f64>, iops: f64) -> RunResult {
        let mut run = RunResult::default();
        run.trace.name = trace.into();
        run.replay.mode = mode.into();
        run.totals.waf = waf;
        run.totals.iops = iops;
        run
    }

    fn marks(best: Best, runs: &[RunResult], cell: fn(&RunResult) -> Cell) -> Vec<bool> {
        best_cells(best, runs, &runs.iter().map(cell).collect::<Vec<_>>())
    }

    fn waf(run: &RunResult) -> Cell {
        optional(run.totals.waf)
    }

    #[test]
    fn the_best_of_each_trace_is_marked() {
        let runs = [("a", 2.0), ("a", 1.5), ("b", 3.0), ("b", 4.0), ("c", 1.0)]
            .map(|(trace, waf)| run(trace, "timed", Some(waf), 0.0));
        assert_eq!(marks(Least, &runs, waf), [false, true, true, false, false]);
    }

    #[test]
    fn what_looks_the_same_is_not_better() {
        let runs = [1.5001, 1.5002].map(|waf| run("a", "timed", Some(waf), 0.0));
        assert_eq!(marks(Least, &runs, waf), [false, false]);
    }

    #[test]
    fn a_missing_value_is_never_best() {
        let runs = [None, Some(2.0), Some(3.0)].map(|waf| run("a", "timed", waf, 0.0));
        assert_eq!(marks(Least, &runs, waf), [false, true, false]);
    }

    #[test]
    fn rates_are_compared_in_a_closed_loop_alone() {
        let iops = |run: &RunResult| number(run.totals.iops);
        let timed = [10.0, 20.0].map(|iops| run("a", "timed", None, iops));
        let closed = [10.0, 20.0].map(|iops| run("a", "closed", None, iops));
        assert_eq!(marks(MostInClosedLoop, &timed, iops), [false, false]);
        assert_eq!(marks(MostInClosedLoop, &closed, iops), [false, true]);
    }
}
