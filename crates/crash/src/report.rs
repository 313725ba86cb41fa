//! The report of an exploration: what was promised held or not, what becomes of the rest, and how
//! long a stack takes to be back.

use dovetail_report::{Plain, escape, plain_html};
use dovetail_time::{format_bytes, format_count};

use crate::results::{CrashResults, StackResult};

const TERMS: &str = "A cut is a moment at which the power goes: the drive loses its volatile memory, programs and erases \
    under way are torn. A violation is a state that neither POSIX, the mount options nor the design allows. Unsynced files \
    are those with changes that no fsync or sync had made durable; they are found old (as last made durable), new (with all \
    changes), mixed (with a part of them) or absent. Ready: virtual time from power on until the drive has recovered and the \
    volume is mounted.";

/// A part of a bar: its name, its colour of the style sheet, and how many there are.
type Share = (&'static str, &'static str, fn(&StackResult) -> u64);

/// The states in which unsynced files are found.
const SHARES: [Share; 4] = [
    ("old", "--run-0", |r| r.old),
    ("new", "--run-2", |r| r.new),
    ("mixed", "--run-1", |r| r.mixed),
    ("absent", "--run-3", |r| r.absent),
];

/// A row of the table: its title, and its cell of a stack.
type Row = (&'static str, fn(&StackResult) -> String);

const ROWS: [Row; 12] = [
    ("Runs", |r| format_count(r.runs)),
    ("Operations", |r| format_count(r.operations)),
    ("fsyncs and syncs", |r| format_count(r.promises)),
    ("Moments", |r| format_count(r.moments)),
    ("Power cuts", |r| format_count(r.cuts)),
    ("Cuts in recovery", |r| format_count(r.cuts_in_recovery)),
    ("Violations", |r| format_count(r.violations.len() as u64)),
    ("Operations lost, mean / p99", |r| two(r, r.lost_operations.mean, r.lost_operations.p99, "")),
    ("Work lost, p50 / p99", |r| two(r, r.lost_ms.p50, r.lost_ms.p99, " ms")),
    ("Drive recovered, p50 / p99", |r| two(r, r.drive_ms.p50, r.drive_ms.p99, " ms")),
    ("Mounted after, p50 / p99", |r| two(r, r.mount_ms.p50, r.mount_ms.p99, " ms")),
    ("Blocks read to mount, p50 / p99", |r| two(r, r.blocks_read.p50, r.blocks_read.p99, "")),
];

/// Two figures measured over cuts; a run that was stopped may have none.
fn two(of: &StackResult, one: f64, other: f64, unit: &str) -> String {
    if of.cuts == 0 { "-".into() } else { format!("{one:.1} / {other:.1}{unit}") }
}

/// The report as one HTML page that needs no network. The same results give the same bytes.
pub fn html(results: &CrashResults) -> String {
    plain_html(&Plain {
        title: format!("Dovetail crash of {}", escape(&results.workload)),
        heading: "Dovetail crash",
        lede: lede(results),
        summary: [shares(results), ready(results)].concat(),
        setup: [table(results), violations(results)].concat(),
        terms: TERMS,
    })
}

fn lede(results: &CrashResults) -> String {
    let cuts: u64 = results.stacks.iter().map(|stack| stack.cuts + stack.cuts_in_recovery).sum();
    let violations: usize = results.stacks.iter().map(|stack| stack.violations.len()).sum();
    let verdict = match violations {
        0 => "Every state that was found is one that the promises allow.".to_string(),
        1 => "<strong>One state violates a promise.</strong>".into(),
        many => format!("<strong>{many} states violate a promise.</strong>"),
    };
    let memory = results
        .memory_bytes
        .map_or(String::new(), |bytes| format!(", with a page cache of {}", format_bytes(bytes)));
    format!(
        "{} power cuts under {} on drives of {}{memory}, seed {}. {verdict}",
        format_count(cuts),
        escape(&results.workload),
        format_bytes(results.drive_bytes),
        results.seed
    )
}

/// A picture: bars, one above the other, each of several parts.
fn bars(title: &str, legend: &[(&str, &str)], rows: &[(String, Vec<f64>, String)]) -> String {
    let most = rows.iter().map(|(_, parts, _)| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let height = rows.len() * 26 + 4;
    let mut svg = String::new();
    for (row, (name, parts, note)) in rows.iter().enumerate() {
        let y = row * 26 + 4;
        svg += &format!(
            "<text x=\"130\" y=\"{}\" text-anchor=\"end\" fill=\"currentColor\">{}</text>",
            y + 14,
            escape(name)
        );
        let mut x = 140.0;
        for ((label, colour), part) in legend.iter().zip(parts) {
            let width = part / most * 380.0;
            svg += &format!(
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" style=\"fill:var({colour})\">\
                 <title>{label}</title></rect>"
            );
            x += width;
        }
        let y = y + 14;
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{y}\" fill=\"currentColor\">{}</text>",
            x + 6.0,
            escape(note)
        );
    }
    let swatch = |(label, colour): &(&str, &str)| {
        format!(
            "<svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" \
             style=\"fill:var({colour})\"/></svg> {label} &nbsp; "
        )
    };
    let legend: String = legend.iter().map(swatch).collect();
    format!(
        "<figure><figcaption>{title}<br>{legend}</figcaption><div class=\"scroll\"><svg role=\"img\" \
         aria-label=\"{title}\" viewBox=\"0 0 840 {height}\" width=\"840\" height=\"{height}\" \
         font-size=\"13\">{svg}</svg></div></figure>"
    )
}

fn shares(results: &CrashResults) -> String {
    let row = |stack: &StackResult| {
        let counts: Vec<f64> = SHARES.iter().map(|(_, _, count)| count(stack) as f64).collect();
        let all: f64 = counts.iter().sum();
        let parts: Vec<f64> =
            counts.iter().map(|count| if all > 0.0 { count / all } else { 0.0 }).collect();
        let shown = SHARES
            .iter()
            .zip(&parts)
            .map(|((name, ..), part)| format!("{name} {:.0} %", part * 100.0));
        (stack.stack.clone(), parts.clone(), shown.collect::<Vec<_>>().join(", "))
    };
    let legend: Vec<(&str, &str)> =
        SHARES.iter().map(|(name, colour, _)| (*name, *colour)).collect();
    let rows =
        results.stacks.iter().map(row).filter(|(_, parts, _)| parts.iter().sum::<f64>() > 0.0);
    let rows: Vec<_> = rows.collect();
    bars("What is found of files with unsynced changes", &legend, &rows)
}

fn ready(results: &CrashResults) -> String {
    let row = |stack: &StackResult| {
        let (drive, mount) = (stack.drive_ms.mean, stack.mount_ms.mean);
        (stack.stack.clone(), vec![drive, mount], format!("{drive:.0} + {mount:.1} ms"))
    };
    let legend = [("drive recovers", "--run-4"), ("volume is mounted", "--run-5")];
    let rows: Vec<_> = results.stacks.iter().map(row).collect();
    bars("Time until ready after a cut, mean", &legend, &rows)
}

fn table(results: &CrashResults) -> String {
    let head: String = results
        .stacks
        .iter()
        .map(|stack| format!("<th scope=\"col\">{}</th>", escape(&stack.stack)))
        .collect();
    let rows = ROWS.iter().map(|(title, cell)| {
        let cells: String =
            results.stacks.iter().map(|stack| format!("<td>{}</td>", cell(stack))).collect();
        format!("<tr><th scope=\"row\">{title}</th>{cells}</tr>\n")
    });
    let rows: String = rows.collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures\"><table>\
         <thead><tr><td></td>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>"
    )
}

fn violations(results: &CrashResults) -> String {
    let one = |violation: &crate::Violation| {
        format!(
            "<h3>{}</h3><pre>{}</pre><p>The shortest sequence found that shows it:</p><pre>{}</pre>",
            escape(&violation.id),
            escape(&violation.what),
            escape(&violation.sequence)
        )
    };
    results.stacks.iter().flat_map(|stack| &stack.violations).map(one).collect()
}
