//! The table turned: a row for each run, a column for each of few figures. For sweeps.

use dovetail_lab::results::{LatencyResult, RunResult};
use dovetail_time::{SimSpan, format_bytes, format_count};

use super::table::{LAYOUT, rate};

/// Space between columns.
const GAP: &str = "  ";

/// A column: its title and each run's figure.
type Column = (String, Vec<String>);
type Figure = (&'static str, fn(&RunResult) -> Option<String>);

/// The columns unless others are asked for; one that no run has a figure for is left out.
const FIGURES: [Figure; 15] = [
    ("elapsed", |r| Some(SimSpan::from_ns((r.totals.elapsed_s * 1e9) as u64).to_string())),
    ("calls/s", |r| (r.totals.calls > 0).then(|| rate(r.totals.calls_per_s))),
    ("read MB/s", |r| (r.totals.read_bytes > 0).then(|| format!("{:.1}", r.totals.read_mb_per_s))),
    ("write MB/s", |r| {
        (r.totals.written_bytes > 0).then(|| format!("{:.1}", r.totals.write_mb_per_s))
    }),
    ("read p99", |r| p99(&r.latency.read)),
    ("write p99", |r| p99(&r.latency.write)),
    ("sync p99", |r| (!r.stack.is_raw()).then(|| p99(&r.latency.flush))?),
    ("flush p99", |r| r.stack.is_raw().then(|| p99(&r.latency.flush))?),
    ("fs WAF", |r| waf(r.totals.fs_waf)),
    ("WAF", |r| waf(r.totals.device_waf)),
    ("total WAF", |r| waf(r.totals.total_waf)),
    ("moved", |r| count(r.totals.drive.programs.gc)),
    ("erases", |r| count(r.totals.drive.erases)),
    ("map", |r| Some(format_bytes(r.memory.map_bytes_max))),
    ("ended early", |r| r.error.as_ref().map(|_| "yes".into())),
];

fn p99(latency: &LatencyResult) -> Option<String> {
    let p = latency.percentiles;
    (p.count > 0).then(|| SimSpan::from_ns(p.p99_ns).to_string())
}

fn waf(waf: Option<f64>) -> Option<String> {
    waf.map(|waf| format!("{waf:.3}"))
}

fn count(n: u64) -> Option<String> {
    (n > 0).then(|| format_count(n))
}

/// The runs as rows within a width: columns that do not fit beside the others come below. `chosen`
/// are words of the lines of the large table that are wanted as columns in place of the usual ones;
/// `None` if a word is in none of them.
pub(super) fn text(runs: &[RunResult], chosen: &[String], width: usize) -> Option<String> {
    let columns = if chosen.is_empty() { usual(runs) } else { named(runs, chosen)? };
    let (shared, labels) = labels(runs);
    let mut out = String::new();
    let mut rest = &columns[..];
    while !rest.is_empty() {
        let fits = |count: &usize| block(&labels, &rest[..*count]).1 <= width;
        let count = (1..=rest.len()).rev().find(fits).unwrap_or(1);
        out += if out.is_empty() { "" } else { "\n" };
        out += &block(&labels, &rest[..count]).0;
        rest = &rest[count..];
    }
    if !shared.is_empty() {
        out = format!("all: {shared}\n\n{out}");
    }
    Some(out)
}

fn usual(runs: &[RunResult]) -> Vec<Column> {
    let column = |(title, figure): &Figure| {
        let figures: Vec<Option<String>> = runs.iter().map(figure).collect();
        let is_there = figures.iter().any(Option::is_some);
        let shown = figures.into_iter().map(|figure| figure.unwrap_or_else(|| "-".into()));
        is_there.then(|| ((*title).to_string(), shown.collect()))
    };
    FIGURES.iter().filter_map(column).collect()
}

/// The cells of a column: the usual one that is called `word`, else the first one or the first line
/// of the large table that has it in its name. `None` if none has.
pub(super) fn column(runs: &[RunResult], word: &str) -> Option<Vec<String>> {
    let word = word.trim().to_lowercase();
    let usual = usual(runs);
    let title = |column: &Column| column.0.to_lowercase();
    let found = usual.iter().find(|column| title(column) == word);
    let found = found.or_else(|| usual.iter().find(|column| title(column).contains(&word)));
    match found {
        Some((_, cells)) => Some(cells.clone()),
        None => named(runs, &[word])?.into_iter().next().map(|(_, cells)| cells),
    }
}

/// Lines of the large table that have one of the words in their names, in the order of the words; of
/// a word that is in none, the usual columns that have it, such as WAF.
fn named(runs: &[RunResult], words: &[String]) -> Option<Vec<Column>> {
    let lines = LAYOUT.lines(runs);
    let mut columns: Vec<Column> = Vec::new();
    for word in words {
        let word = word.trim().to_lowercase();
        let has_it = |title: &str| title.to_lowercase().contains(&word);
        let of_lines = lines.iter().filter(|line| has_it(&line[0]));
        let mut found: Vec<Column> =
            of_lines.map(|line| (line[0].trim().to_string(), line[1..].to_vec())).collect();
        if found.is_empty() {
            found = usual(runs).into_iter().filter(|(title, _)| has_it(title)).collect();
        }
        if found.is_empty() {
            return None;
        }
        found.retain(|(title, _)| columns.iter().all(|(known, _)| known != title));
        columns.extend(found);
    }
    Some(columns)
}

/// The common begin of all runs' labels, and the labels without it.
fn labels(runs: &[RunResult]) -> (String, Vec<String>) {
    let split: Vec<Vec<&str>> = runs.iter().map(|run| run.label.split(", ").collect()).collect();
    let shortest = split.iter().map(Vec::len).min().unwrap_or(0);
    let is_shared = |at: &usize| split.iter().all(|parts| parts[*at] == split[0][*at]);
    let shared = (0..shortest.saturating_sub(1)).take_while(is_shared).count();
    let start = split.first().map(|parts| parts[..shared].join(", ")).unwrap_or_default();
    (start, split.iter().map(|parts| parts[shared..].join(", ")).collect())
}

/// Some columns beside the labels, and the width that they take.
fn block(labels: &[String], columns: &[Column]) -> (String, usize) {
    let widest = |texts: &[String], title: &str| {
        texts.iter().map(String::as_str).chain([title]).map(|text| text.chars().count()).max()
    };
    let first = widest(labels, "").unwrap_or(0);
    let widths: Vec<usize> =
        columns.iter().map(|(title, texts)| widest(texts, title).unwrap_or(0)).collect();
    let line = |label: &str, cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths).map(|(cell, width)| format!("{GAP}{cell:>width$}"));
        format!("{label:first$}{}\n", cells.collect::<String>())
    };
    let mut out = line("", &mut columns.iter().map(|(title, _)| title.as_str()));
    for (at, label) in labels.iter().enumerate() {
        out += &line(label, &mut columns.iter().map(|(_, texts)| texts[at].as_str()));
    }
    (out, first + widths.iter().map(|width| width + GAP.len()).sum::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<RunResult> {
        let run = |op: u32| {
            let mut run =
                RunResult { label: format!("femu-32g, op {op} %"), ..RunResult::default() };
            run.totals.device_waf = Some(10.0 / f64::from(op));
            run.totals.drive.erases = u64::from(op) * 1000;
            run
        };
        vec![run(7), run(28)]
    }

    #[test]
    fn each_run_is_a_row_and_what_all_share_stands_once() {
        let text = text(&runs(), &[], 200).unwrap();
        assert!(text.starts_with("all: femu-32g\n\n"), "{text}");
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2], ["elapsed", "WAF", "erases", "map"], "{text}");
        assert_eq!(rows[4], ["op", "28", "%", "0", "ns", "0.357", "28,000", "0", "B"], "{text}");
    }

    #[test]
    fn columns_that_do_not_fit_come_below_and_others_can_be_chosen() {
        let narrow = text(&runs(), &[], 24).unwrap();
        assert!(narrow.lines().all(|line| line.chars().count() <= 24), "{narrow}");
        assert_eq!(narrow.matches("op 28 %").count(), 2, "{narrow}");
        let chosen = text(&runs(), &["ERASES".into(), "drive's write".into()], 200).unwrap();
        let header =
            chosen.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(header, "erases drive's write amplification", "{chosen}");
        assert_eq!(text(&runs(), &["no such".into()], 200), None);
        let usual = text(&runs(), &["erases".into(), "WAF".into()], 200).unwrap();
        assert!(usual.lines().nth(2).is_some_and(|header| header.contains("  WAF")), "{usual}");
    }
}
