//! A comparison as a table in the terminal.

use dovetail_lab::compare::{Change, Compared, HEADLINES, Headline, Unit, Verdict};
use dovetail_time::{SimSpan, format_bytes};

use super::{Found, is_changed};
use crate::table::{digits, list_width, wrap};

/// Descriptions that differ and are named; the JSON has all.
const SETUP_SHOWN: usize = 8;
/// Runs that one side alone has and that are named; the JSON has all.
const NAMED: usize = 8;
/// Runs up to which each has its part, changed or not.
const ALWAYS_TOLD: usize = 4;
/// Columns of a terminal whose width is not known.
const WIDTH: usize = 80;
/// Marks of a figure that seeds may have changed, and of the line below the tables.
const WITHIN: &str = "within the spread";
const LEGEND: &str = "The change is that of the mean over the seeds; \u{b1} is what seeds alone \
                      stay below in 19 of 20 comparisons.";

/// The comparison, as wide as the terminal.
pub(super) fn text(found: &Found<'_>) -> String {
    let [a, b] = &found.names;
    let width = match list_width() {
        usize::MAX => WIDTH,
        width => width,
    };
    if found.is_same {
        let runs = counted(found.both.iter().map(|both| both.a.runs.len()).sum(), "run");
        let same = format!("{a} and {b} are the same: {runs}, no figure differs.\n");
        return [same].into_iter().chain(unfinished(found, width)).collect();
    }
    let mut parts = vec![format!("A  {a}\nB  {b}\n")];
    parts.extend(unfinished(found, width));
    let shared = shared_setup(&found.both);
    parts.extend(shared.map(|shared| setup(shared, width)));
    let is_told = |both: &&Compared<'_>| found.both.len() <= ALWAYS_TOLD || has_something(both);
    let told: Vec<_> = found.both.iter().filter(is_told).collect();
    parts.extend(told.iter().map(|both| part(both, found, shared.is_some(), width)));
    parts.extend(match found.both.len() - told.len() {
        0 => None,
        rest => Some(format!("{} without a change\n", counted(rest, "more run"))),
    });
    let sides = ["A", "B"].into_iter().zip(&found.only);
    let only = sides.filter(|(_, names)| !names.is_empty());
    let only = only.map(|(side, names)| wrapped(&only_one_has(side, names), width));
    parts.extend(only);
    let changes = || found.both.iter().flat_map(|both| &both.changes).map(|(_, change)| change);
    if changes().any(|change| is_shown(change) && change.spread_percent.is_some()) {
        parts.push(wrapped(LEGEND, width));
    }
    parts.push(wrapped(&verdict(found), width));
    parts.join("\n")
}

/// A line on the points that the sides have not finished; nothing where there are none.
fn unfinished(found: &Found<'_>, width: usize) -> Option<String> {
    let sides = ["A", "B"].into_iter().zip(&found.unfinished);
    let sides = sides.filter(|(_, points)| !points.is_empty()).map(|(side, points)| {
        let are = if points.len() == 1 { "is" } else { "are" };
        format!("{} of {side} {are} not finished", counted(points.len(), "point"))
    });
    let sides: Vec<String> = sides.collect();
    let text = format!("{}: what both have is compared.", sides.join(", "));
    (!sides.is_empty()).then(|| wrapped(&text, width))
}

fn only_one_has(side: &str, names: &[&str]) -> String {
    let shown = &names[..names.len().min(NAMED)];
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more (--json)"),
    };
    format!("only {side} has: {}{more}", shown.join("; "))
}

/// Differences of the setup that several runs have all alike: they are told once.
fn shared_setup<'a>(both: &'a [Compared<'_>]) -> Option<&'a [(String, String, String)]> {
    let (first, others) = both.split_first()?;
    let is_shared = !others.is_empty() && others.iter().all(|other| other.setup == first.setup);
    (is_shared && !first.setup.is_empty()).then_some(&first.setup)
}

fn has_something(both: &Compared<'_>) -> bool {
    let has_notes = both.notes().iter().any(|notes| !notes.is_empty());
    has_notes || is_changed(both) || both.changes.iter().any(|(_, change)| is_shown(change))
}

/// The last sentence.
fn verdict(found: &Found<'_>) -> String {
    if found.both.is_empty() {
        return "No run is on both sides.".into();
    }
    let has_seeds = |both: &Compared<'_>| both.a.runs.len().max(both.b.runs.len()) > 1;
    let beyond = match found.both.iter().any(has_seeds) {
        true => " and beyond the spread over seeds",
        false => "",
    };
    let threshold = format!("more than {} %{beyond}", found.threshold);
    let changed = found.both.iter().flat_map(|both| &both.changes);
    let changed = changed.filter(|(_, change)| change.verdict == Verdict::Changed).count();
    let runs = found.both.iter().filter(|both| is_changed(both)).count();
    match (changed, found.both.len()) {
        (0, _) => format!("No figure changed by {threshold}."),
        (changed, 1) => format!("{} changed by {threshold}.", counted(changed, "figure")),
        (changed, of) => {
            format!(
                "{} changed by {threshold}, in {runs} of {of} runs.",
                counted(changed, "figure")
            )
        }
    }
}

/// The runs of one name on both sides.
fn part(both: &Compared<'_>, found: &Found<'_>, is_setup_told: bool, width: usize) -> String {
    let mut out = title(both) + "\n";
    for (side, error) in [("A", both.a.error()), ("B", both.b.error())] {
        out += &error
            .map(|error| wrapped(&format!("  ended early in {side}: {error}"), width))
            .unwrap_or_default();
    }
    for (side, notes) in ["A", "B"].into_iter().zip(both.notes()) {
        let notes = notes.iter().map(|note| wrapped(&format!("  note in {side}: {note}"), width));
        out.extend(notes);
    }
    if !is_setup_told {
        out += &setup(&both.setup, width);
    }
    let shown: Vec<_> = ordered(both).into_iter().filter(|(_, change)| is_shown(change)).collect();
    let rows: Vec<[String; 6]> = shown.iter().map(|(path, change)| row(path, change)).collect();
    out += &table(&rows, width);
    let count =
        |verdict| both.changes.iter().filter(|(_, change)| change.verdict == verdict).count();
    let (same, small) = (count(Verdict::Same), count(Verdict::Small));
    let what = if found.all { "figure" } else { "headline figure" };
    let others = match (same, small) {
        (0, 0) => return out,
        (same, 0) => format!("  {} the same\n", counted(same, what)),
        (0, small) => format!("  {} within {} %\n", counted(small, what), found.threshold),
        (same, small) => {
            format!("  {} the same, {small} within {} %\n", counted(same, what), found.threshold)
        }
    };
    out + &others
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The names, and how many runs there are where they are several.
fn title(both: &Compared<'_>) -> String {
    let (a, b) = (&both.a, &both.b);
    let name = match a.name == b.name {
        true => a.name.to_string(),
        false => format!("{} in A, {} in B", a.name, b.name),
    };
    match (a.runs.len(), b.runs.len()) {
        (1, 1) => name,
        (a, b) if a == b => format!("{name}, {a} runs each"),
        (a, b) => format!("{name}, {} against {b}", counted(a, "run")),
    }
}

/// Descriptions of stack, drive and trace that differ.
fn setup(differences: &[(String, String, String)], width: usize) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let is_short = |text: &String| text.len() <= 30 && !text.contains('\n');
    let shown = |text: &String| if text.is_empty() { "none".into() } else { text.clone() };
    let named = |(path, a, b): &(String, String, String)| match is_short(a) && is_short(b) {
        true => format!("{path} {} -> {}", shown(a), shown(b)),
        false => path.clone(),
    };
    let mut all: Vec<String> = differences.iter().take(SETUP_SHOWN).map(named).collect();
    if differences.len() > SETUP_SHOWN {
        all.push(format!("{} more (--json)", differences.len() - SETUP_SHOWN));
    }
    wrapped(&format!("  setup differs: {}", all.join("; ")), width)
}

/// Headline figures in their order, then the others by path.
fn ordered<'a>(both: &'a Compared<'_>) -> Vec<&'a (String, Change)> {
    let place = |path: &str| HEADLINES.iter().position(|headline| headline.path == path);
    let mut all: Vec<_> = both.changes.iter().collect();
    all.sort_by_key(|(path, _)| place(path).unwrap_or(HEADLINES.len()));
    all
}

fn is_shown(change: &Change) -> bool {
    matches!(change.verdict, Verdict::Changed | Verdict::Spread)
}

/// Title, both values, change, what seeds make, and the mark.
fn row(path: &str, change: &Change) -> [String; 6] {
    let headline = HEADLINES.iter().find(|headline| headline.path == path);
    let title = headline.map_or(path, |headline| headline.title).to_string();
    let value = |mean: Option<f64>| mean.map_or_else(|| "-".into(), |mean| shown(mean, headline));
    let by = match (change.a.mean, change.b.mean, change.percent) {
        (_, _, Some(percent)) if percent.abs() >= 1000.0 => format!("{percent:+.0} %"),
        (_, _, Some(percent)) => format!("{percent:+.1} %"),
        (None, ..) => "new".into(),
        (_, None, _) => "gone".into(),
        _ => "from 0".into(),
    };
    let spread =
        change.spread_percent.map_or_else(String::new, |spread| format!("\u{b1} {spread:.1} %"));
    let mark = if change.verdict == Verdict::Spread { WITHIN } else { "" };
    [title, value(change.a.mean), value(change.b.mean), by, spread, mark.into()]
}

fn shown(value: f64, headline: Option<&Headline>) -> String {
    match headline.map_or(Unit::Number, |headline| headline.unit) {
        Unit::Ns => SimSpan::from_ns(value.round() as u64).to_string(),
        Unit::S => SimSpan::from_ns((value * 1e9).round() as u64).to_string(),
        Unit::Bytes => format_bytes(value.round() as u64),
        Unit::Number => number(value),
    }
}

/// Four significant digits, however small it is.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v < 0.1 => format!("{value:.*}", (3.0 - v.log10().floor()).min(12.0) as usize),
        _ => digits(value),
    }
}

/// The rows in columns; where that is wider than `width`, the titles stand on lines of their own.
fn table(rows: &[[String; 6]], width: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = ["", "A", "B", "change", "", ""].map(String::from);
    let all = || std::iter::once(&head).chain(rows);
    let widest = |at: usize| all().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(widest);
    let is_wide = 2 + widths.iter().map(|width| width + 2).sum::<usize>() > width + 2;
    let line = |row: &[String; 6]| {
        let [title, cells @ ..] = row;
        let cells = cells.iter().zip(&widths[1..]).map(|(cell, width)| format!("  {cell:>width$}"));
        let cells: String = cells.collect();
        let (first, gap) = (widths[0], 4);
        let text = match is_wide {
            true if title.is_empty() => format!("{:gap$}{cells}", ""),
            true => format!("  {title}\n{:gap$}{cells}", ""),
            false => format!("  {title:first$}{cells}"),
        };
        text.trim_end().to_string() + "\n"
    };
    all().map(line).collect()
}

/// A paragraph in lines of at most `width`, the later ones indented by two more than the first.
fn wrapped(text: &str, width: usize) -> String {
    let indent = &text[..text.len() - text.trim_start().len()];
    wrap(text, width, &format!("{indent}  "))
}

#[cfg(test)]
mod tests {
    use dovetail_lab::compare::{Run, compare};

    use super::*;

    fn run(name: &str, waf: f64, p99: f64) -> Run {
        Run {
            name: name.into(),
            figures: [
                ("totals.device_waf".to_string(), waf),
                ("latency.write.p99_ns".to_string(), p99),
                ("a.path.that.is.quite.long.as.some.of.all.figures.are".to_string(), p99),
            ]
            .into(),
            ..Run::default()
        }
    }

    fn found<'a>(a: &'a [Run], b: &'a [Run], all: bool) -> Found<'a> {
        let (both, only) = compare(a, b, 2.0, |path| {
            all || path != "a.path.that.is.quite.long.as.some.of.all.figures.are"
        });
        let names = ["a.json", "b.json"].map(String::from);
        let unfinished = Default::default();
        Found { names, threshold: 2.0, all, is_same: false, both, only, unfinished }
    }

    #[test]
    fn what_changed_stands_in_the_order_of_the_headlines() {
        let (a, b) = ([run("f2fs", 2.0, 1.5e6)], [run("f2fs", 2.5, 1.2e6)]);
        let text = text(&found(&a, &b, false));
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let at = lines.iter().position(|line| line.starts_with(&["write", "p99"])).unwrap();
        assert_eq!(lines[at], ["write", "p99", "1.50", "ms", "1.20", "ms", "-20.0", "%"], "{text}");
        assert_eq!(lines[at + 1], ["drive", "WAF", "2.000", "2.500", "+25.0", "%"], "{text}");
        assert!(text.ends_with("2 figures changed by more than 2 %.\n"), "{text}");
    }

    #[test]
    fn what_seeds_may_have_done_is_marked() {
        let seeds = |wafs: [f64; 3]| wafs.map(|waf| run("f2fs", waf, 1.0)).to_vec();
        let (a, b) = (seeds([1.0, 2.0, 3.0]), seeds([1.2, 2.2, 3.2]));
        let found = found(&a, &b, false);
        let text = text(&found);
        let line = text.lines().find(|line| line.contains("drive WAF")).unwrap();
        assert!(line.contains("+10.0 %") && line.ends_with(" %  within the spread"), "{text}");
        assert!(
            text.contains("f2fs, 3 runs each") && text.contains("1 headline figure the same"),
            "{text}"
        );
        assert!(!found.is_changed() && text.contains("No figure changed"), "{text}");
    }

    #[test]
    fn a_line_fits_a_terminal_whatever_is_shown() {
        let (a, b) = (
            [run("f2fs", 2.0, 1.5e6), run("x", 1.0, 1.0)],
            [run("f2fs", 2.5, 1.2e6), run("y", 1.0, 1.0)],
        );
        let text = text(&found(&a, &b, true));
        assert!(
            text.contains("  a.path.that.is.quite.long.as.some.of.all.figures.are\n"),
            "{text}"
        );
        assert!(text.contains("only A has: x\n") && text.contains("only B has: y\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn of_many_runs_those_are_told_that_changed() {
        let side = |waf: f64| {
            let run = |at: usize| {
                let mut run = run(&format!("run-{at}"), if at == 3 { waf } else { 1.0 }, 1.0);
                run.setup.insert("drive.map".into(), format!("map-{waf}"));
                run
            };
            (0..9).map(run).collect::<Vec<_>>()
        };
        let (a, b) = (side(1.0), side(2.0));
        let text = text(&found(&a, &b, false));
        assert!(text.contains("run-3\n") && !text.contains("run-4"), "{text}");
        assert!(text.contains("\n8 more runs without a change\n"), "{text}");
        assert_eq!(text.matches("setup differs: drive.map map-1 -> map-2").count(), 1, "{text}");
        assert!(text.ends_with("1 figure changed by more than 2 %, in 1 of 9 runs.\n"), "{text}");
    }

    #[test]
    fn of_many_names_the_first_stand() {
        let text = only_one_has("A", &["x"; 10]);
        assert_eq!(text, "only A has: x; x; x; x; x; x; x; x; and 2 more (--json)");
    }

    #[test]
    fn small_numbers_keep_their_digits() {
        assert_eq!(
            [0.0, 0.000_429_26, 0.05, 1.25, 1e-30].map(number)[..4],
            ["0", "0.0004293", "0.05000", "1.250"]
        );
    }

    #[test]
    fn long_sentences_are_wrapped() {
        assert_eq!(wrapped("  one two three", 9), "  one two\n    three\n");
    }
}
