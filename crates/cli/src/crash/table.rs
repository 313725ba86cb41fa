//! The table of an exploration.

use dovetail_crash::{CrashResults, Distribution, StackResult};
use dovetail_time::format_count;

/// A row: its title and its cell of a stack.
type Row = (&'static str, fn(&StackResult) -> String);

const ROWS: [Row; 19] = [
    ("runs", |r| format_count(r.runs)),
    ("operations", |r| format_count(r.operations)),
    ("fsyncs and syncs", |r| format_count(r.promises)),
    ("moments", |r| format_count(r.moments)),
    ("power cuts", |r| format_count(r.cuts)),
    ("cuts in recovery", |r| format_count(r.cuts_in_recovery)),
    ("violations", |r| format_count(r.violations.len() as u64)),
    ("", |_| String::new()),
    ("unsynced file: old", |r| share(r, r.old)),
    ("  new", |r| share(r, r.new)),
    ("  mixed", |r| share(r, r.mixed)),
    ("  absent", |r| share(r, r.absent)),
    ("operations lost, mean", |r| of_cuts(r, number(r.lost_operations.mean))),
    ("  p99", |r| of_cuts(r, number(r.lost_operations.p99))),
    ("work lost, p50 / p99", |r| of_cuts(r, both(&r.lost_ms) + " ms")),
    ("", |_| String::new()),
    ("drive ready, p50 / p99", |r| of_cuts(r, both(&r.drive_ms) + " ms")),
    ("mounted after, p50 / p99", |r| of_cuts(r, both(&r.mount_ms) + " ms")),
    ("blocks read to mount", |r| of_cuts(r, both(&r.blocks_read))),
];

/// A figure measured over cuts; a run that was stopped may have none.
fn of_cuts(result: &StackResult, measured: String) -> String {
    if result.cuts == 0 { "-".into() } else { measured }
}

fn share(result: &StackResult, count: u64) -> String {
    let all = result.old + result.new + result.mixed + result.absent;
    if all == 0 { "-".into() } else { format!("{:.1} %", 100.0 * count as f64 / all as f64) }
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn both(of: &Distribution) -> String {
    format!("{} / {}", number(of.p50), number(of.p99))
}

/// The table, a column for each stack, then each violation with the sequence that shows it.
pub(super) fn text(results: &CrashResults) -> String {
    let mut text = String::new();
    let title = ROWS.iter().map(|(title, _)| title.len()).max().unwrap_or(0);
    let cells: Vec<Vec<String>> = results
        .stacks
        .iter()
        .map(|stack| ROWS.iter().map(|(_, cell)| cell(stack)).collect())
        .collect();
    // as many stacks beside each other as fit 80 columns
    let widths: Vec<usize> = results
        .stacks
        .iter()
        .zip(&cells)
        .map(|(stack, cells)| {
            cells.iter().map(String::len).chain([stack.stack.len()]).max().unwrap_or(0) + 2
        })
        .collect();
    let mut from = 0;
    while from < widths.len() {
        let mut to = from + 1;
        let mut used = title + widths[from];
        while to < widths.len() && used + widths[to] <= 80 {
            used += widths[to];
            to += 1;
        }
        let line = |first: &str, cell: &dyn Fn(usize) -> String| {
            let cells: String = (from..to)
                .map(|stack| format!("{:>width$}", cell(stack), width = widths[stack]))
                .collect();
            format!("{first:title$}{cells}").trim_end().to_string() + "\n"
        };
        text += &line("", &|stack| results.stacks[stack].stack.clone());
        for (row, (title, _)) in ROWS.iter().enumerate() {
            text += &line(title, &|stack| cells[stack][row].clone());
        }
        text += "\n";
        from = to;
    }
    for violation in results.stacks.iter().flat_map(|stack| &stack.violations) {
        text +=
            &format!("VIOLATION {}\n  {}\n", violation.id, violation.what.replace('\n', "\n  "));
        text += "  the shortest sequence found that shows it:\n";
        violation.sequence.lines().for_each(|line| text += &format!("    {line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_without_cuts_shows_no_measurements() {
        let cut = StackResult { stack: "f2fs".into(), cuts: 1, ..StackResult::default() };
        let uncut = StackResult { stack: "ext4".into(), ..StackResult::default() };
        let cells = |of: &StackResult| ROWS.map(|(_, cell)| cell(of));
        let measured =
            |of: &StackResult| cells(of).iter().filter(|cell| cell.contains('.')).count();
        assert_eq!((measured(&cut), measured(&uncut)), (6, 0));
    }
}
