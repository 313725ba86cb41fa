//! `dovetail reproduce`: the papers' figures, run again.

mod finished;
mod report;
mod scales;

pub(crate) use report::of as drawn;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use dovetail_lab::bench::BenchError;
use dovetail_lab::{FinishedRuns, Progress, Stage};
use dovetail_papers::{
    Change, Changes, FIGURES, Figure, Reproduction, Sensitivity, SensitivityPoint, Setting, Verdict,
};
use dovetail_time::{Ratio, did_you_mean};
use serde_json::{Map, Value};

use crate::arguments::taken;
use crate::bench::threads;
use crate::call::{Watch, only_a_table};
use crate::output::{Outputs, check_writable, write_asked};
use crate::progress::Heartbeat;
use crate::provenance::provenance;
use crate::results::notes;
use crate::signals::{stop_flag, stopped};
use crate::table::{list_width, of_words, paragraph, terminal_width};
use crate::{Failure, drive, print, to_stderr};

/// Run the papers' figures and tables again, and show both side by side.
///
/// A figure runs at a reduced scale unless --full or --scale says otherwise.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Figures by name; --list shows them, all stands for every one.
    figures: Vec<String>,
    /// Show what there is.
    #[arg(long, conflicts_with_all = ["full", "scale", "scales", "json", "sensitivity"])]
    list: bool,
    /// Show what a figure's main ratio makes of costs that no source gives, each at several values.
    #[arg(long)]
    sensitivity: bool,
    /// Run at the papers' own sizes.
    #[arg(long, conflicts_with = "scale")]
    full: bool,
    /// Run at this scale.
    #[arg(long, value_name = "RATIO", value_parser = drive::scale)]
    scale: Option<Ratio>,
    /// Run at each of these scales (two to eight), and show from which one on each result stays:
    /// the difference to the largest scale is within what its rule leaves to the paper.
    #[arg(long, value_name = "RATIO", value_delimiter = ',', value_parser = drive::scale)]
    #[arg(conflicts_with_all = ["full", "scale", "sensitivity", "strict"])]
    scales: Vec<Ratio>,
    /// An experiment: a key of the figure's stacks with another value, as in a stack's file;
    /// drive.TABLE.KEY for a figure of the drive, mount for more mount options, STACK:KEY for one
    /// stack with its variants. The statements stay the paper's.
    #[arg(long, value_name = "[STACK:]KEY=VALUE", conflicts_with = "list")]
    with: Vec<Change>,
    /// Seed of all that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs at the same time; all cores if not given.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// End with status 1 if a statement differs.
    #[arg(long, conflicts_with_all = ["list", "sensitivity"])]
    strict: bool,
    /// Keep finished runs in this folder, and take from it those that are there: a figure that was
    /// ended goes on with the runs that are left. It has the runs of workloads on stacks, and those
    /// of fdp-cachelib; a program that was built anew takes none of them.
    #[arg(long, value_name = "FOLDER", conflicts_with = "list")]
    keep: Option<PathBuf>,
    /// Statements and results as JSON, to a file; `-` is standard output, after the tables.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Statements as CSV, a row for each, to a file; `-` is standard output, after the tables.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "sensitivity", "scales"])]
    csv: Option<PathBuf>,
    /// Each figure drawn, the paper's numbers beside ours, with its statements: one HTML file that
    /// needs nothing else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "sensitivity", "scales"])]
    report: Option<PathBuf>,
}

/// The name that stands for all figures.
const ALL: &str = "all";

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let figures = chosen(arguments)?;
    if arguments.list {
        return list(&figures);
    }
    let mut outputs = Outputs::default();
    let given =
        [("--json", &arguments.json), ("--csv", &arguments.csv), ("--report", &arguments.report)];
    for (flag, path) in given {
        path.iter().try_for_each(|path| outputs.output(flag, path))?;
        check_writable(path.iter())?;
    }
    let finished = arguments.keep.as_deref().map(finished::open).transpose()?;
    let finished = finished.as_ref();
    let done = if arguments.sensitivity {
        sensitivity(arguments, finished, &figures)
    } else if arguments.scales.is_empty() {
        reproduce(arguments, finished, &figures)
    } else {
        scales::run(arguments, finished, &figures)
    };
    if let Some(failure) = finished.and_then(FinishedRuns::failure) {
        to_stderr(&format!("not all finished runs were kept: {failure}"));
    }
    done
}

fn reproduce(
    arguments: &Arguments,
    finished: Option<&FinishedRuns>,
    figures: &[&'static Figure],
) -> Result<(), Failure> {
    let stop = stop_flag()?;
    let mut all = Map::new();
    let mut rows = Vec::new();
    let mut page = dovetail_report::Figures::default();
    let mut failures = Vec::new();
    for (number, figure) in figures.iter().enumerate() {
        let beat = Heartbeat::new(format!("{} ({} of {})", figure.name, number + 1, figures.len()));
        let performed = perform(arguments, finished, figure, &stop);
        drop(beat);
        if stop.load(Ordering::Relaxed) {
            failures.push(stopped_at(figure.name, all.len()));
            break;
        }
        match performed {
            Ok(mut reproduction) => {
                reproduction.results.provenance = Some(provenance(taken()));
                tell_of_its_scale(arguments, figure, &reproduction);
                print(&shown(figure, &reproduction))?;
                if arguments.strict {
                    failures.extend(differing(figure, &reproduction));
                }
                rows.extend(csv_rows(figure, &reproduction));
                if arguments.report.is_some() {
                    page.add(&drawn(figure, &reproduction));
                }
                all.insert(
                    figure.name.into(),
                    serde_json::to_value(&reproduction).map_err(Failure::failed)?,
                );
            }
            Err(error) => failures.push(failed(arguments, figure, &error)),
        }
    }
    let has_any = !all.is_empty();
    Failure::all([
        write_asked(arguments.csv.as_ref().filter(|_| has_any), || csv_text(&rows)),
        write_asked(arguments.report.as_ref().filter(|_| has_any), || {
            Ok(page.html(&provenance(taken())))
        }),
        finish(arguments, &all, &failures),
    ])
}

/// Figures that another program asked for, by name; `words` are those of the command line that it
/// stands for. Nothing is shown or written.
///
/// # Errors
/// Arguments that make no sense; a figure that fails; it was stopped.
pub(crate) fn called(
    arguments: &Arguments,
    words: &[OsString],
    watch: &Watch<'_>,
) -> Result<Vec<(&'static str, Reproduction)>, Failure> {
    let tables = [
        ("--list", arguments.list),
        ("--sensitivity", arguments.sensitivity),
        ("--scales", !arguments.scales.is_empty()),
    ];
    if let Some((option, _)) = tables.into_iter().find(|(_, is_given)| *is_given) {
        return Err(only_a_table(option));
    }
    if arguments.keep.is_some() {
        return Err(Failure::Usage(
            "--keep is for the command line: runs that are kept belong to a program file".into(),
        ));
    }
    let figures = chosen(arguments)?;
    let mut all = Vec::new();
    for (done, figure) in (0..).zip(&figures) {
        let total = figures.len() as u64;
        (watch.tell)(figure.name, Progress { stage: Stage::Run, done, total, requests: 0 });
        let performed = perform(arguments, None, figure, watch.stop);
        if watch.stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let mut reproduction =
            performed.map_err(|error| Failure::Failed(format!("{}: {error}", figure.name)))?;
        reproduction.results.provenance = Some(provenance(words));
        all.push((figure.name, reproduction));
    }
    Ok(all)
}

const CSV_COLUMNS: [&str; 7] = ["figure", "scale", "statement", "paper", "ours", "rule", "verdict"];

/// A row for each statement of a figure.
fn csv_rows(figure: &Figure, reproduction: &Reproduction) -> Vec<[String; 7]> {
    let row = |c: &dovetail_papers::Comparison| {
        let verdict = report::verdict(c);
        let [what, paper, ours, rule] = [&c.what, &c.paper, &c.ours, &c.rule].map(Clone::clone);
        let scale = reproduction.results.scale.to_string();
        [figure.name.into(), scale, what, paper, ours, rule, verdict.into()]
    };
    reproduction.comparisons.iter().map(row).collect()
}

fn csv_text(rows: &[[String; 7]]) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(CSV_COLUMNS).map_err(Failure::failed)?;
    rows.iter().try_for_each(|row| writer.write_record(row)).map_err(Failure::failed)?;
    String::from_utf8(writer.into_inner().map_err(Failure::failed)?).map_err(Failure::failed)
}

/// The number of a figure's statements that differ from the paper's, if any, in a sentence.
fn differing(figure: &Figure, reproduction: &Reproduction) -> Option<String> {
    let verdicts = reproduction.comparisons.iter().map(dovetail_papers::Comparison::verdict);
    let differing = verdicts.filter(|verdict| *verdict == Verdict::Differs).count();
    (differing > 0).then(|| format!("{}: {differing} statements differ", figure.name))
}

/// A figure is whole or not: what only some of its runs show, the paper does not say.
fn stopped_at(name: &str, whole: usize) -> String {
    format!("stopped at {name}, which is left out; {whole} figures before it are shown")
}

fn finish(
    arguments: &Arguments,
    all: &Map<String, Value>,
    failures: &[String],
) -> Result<(), Failure> {
    let text = || Ok(serde_json::to_string_pretty(all).map_err(Failure::failed)? + "\n");
    // an earlier file stays where no figure has finished
    let written = write_asked(arguments.json.as_ref().filter(|_| !all.is_empty()), text);
    Failure::all([written, Failure::of_each(failures)])
}

fn sensitivity(
    arguments: &Arguments,
    finished: Option<&FinishedRuns>,
    figures: &[&'static Figure],
) -> Result<(), Failure> {
    let asked: Vec<_> =
        figures.iter().filter_map(|figure| Some((figure.name, figure.sensitivity?))).collect();
    if asked.is_empty() {
        let there = FIGURES.iter().filter(|figure| figure.sensitivity.is_some());
        let names = there.map(|figure| figure.name).collect::<Vec<_>>().join(", ");
        return Err(Failure::Usage(format!("--sensitivity is for {names}")));
    }
    let stop = stop_flag()?;
    let mut all = Map::new();
    let mut failures = Vec::new();
    for (name, sensitivity) in asked {
        let scale = scale(arguments, sensitivity.reduced);
        let performed =
            with_setting(arguments, finished, scale, &stop, |setting| sensitivity.run(setting));
        if stop.load(Ordering::Relaxed) {
            failures.push(stopped_at(name, all.len()));
            break;
        }
        match performed {
            Ok(points) => {
                print(&plot(name, sensitivity, scale, &points))?;
                all.insert(name.into(), serde_json::to_value(&points).map_err(Failure::failed)?);
            }
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    finish(arguments, &all, &failures)
}

/// A line for each value, with a bar from 0 to twice as much.
fn plot(
    name: &str,
    sensitivity: &Sensitivity,
    scale: Ratio,
    points: &[SensitivityPoint],
) -> String {
    let mut out = format!("{name}{}: {}\n", at_scale(scale.value()), sensitivity.what);
    let mut cost = "";
    for point in points {
        if point.cost != cost {
            cost = point.cost;
            out += &format!("\n{cost}, {}\n", point.unit);
        }
        let bar = "#".repeat((point.ratio.clamp(0.0, 2.0) * 30.0).round() as usize);
        let [above, below] = point.figures;
        out +=
            &format!("{:>8}  {:5.2}  {bar}  ({above:.0} / {below:.0})\n", point.value, point.ratio);
    }
    out + "\n"
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Figure>, Failure> {
    let names = &arguments.figures;
    if names.iter().any(|name| name == ALL) {
        return Ok(FIGURES.to_vec());
    }
    if names.is_empty() && !arguments.list && !arguments.sensitivity {
        let count = FIGURES.len();
        return Err(Failure::Usage(format!(
            "which figures? `dovetail reproduce --list` names them, `dovetail reproduce {ALL}` runs \
             all {count}, one after another, which can take hours"
        )));
    }
    if names.is_empty() {
        return Ok(FIGURES.to_vec());
    }
    let find = |name: &String| {
        Figure::find(name).ok_or_else(|| {
            let all = FIGURES.map(|figure| figure.name);
            let (hint, all) = (did_you_mean(name, all), all.join(", "));
            Failure::Usage(format!("there is no figure \"{name}\"{hint} (there are: {all})"))
        })
    };
    names.iter().map(find).collect()
}

fn scale(arguments: &Arguments, reduced: u32) -> Ratio {
    let reduced = || format!("1/{reduced}").parse().unwrap_or(Ratio::ONE);
    if arguments.full { Ratio::ONE } else { arguments.scale.unwrap_or_else(reduced) }
}

/// The error of a figure, with its own scale where a smaller one may be the cause.
fn failed(arguments: &Arguments, figure: &Figure, error: &str) -> String {
    let own = 1.0 / f64::from(figure.reduced);
    let below = arguments.scale.filter(|scale| scale.value() < own);
    let hint = below.map(|_| format!("; without --scale it runs at 1/{}", figure.reduced));
    format!("{}: {error}{}", figure.name, hint.unwrap_or_default())
}

/// A figure of one scale says so where another one is asked for.
fn tell_of_its_scale(arguments: &Arguments, figure: &Figure, reproduction: &Reproduction) {
    let ran = reproduction.results.scale;
    let asked = scale(arguments, figure.reduced).value();
    let is_asked = arguments.full || arguments.scale.is_some();
    if is_asked && (ran / asked - 1.0).abs() > 1e-9 {
        to_stderr(&format!(
            "{} ran at scale 1/{:.0}, the only one that it has",
            figure.name,
            1.0 / ran
        ));
    }
}

fn perform(
    arguments: &Arguments,
    finished: Option<&FinishedRuns>,
    figure: &Figure,
    stop: &AtomicBool,
) -> Result<Reproduction, String> {
    let scale = scale(arguments, figure.reduced);
    with_setting(arguments, finished, scale, stop, |setting| figure.run(setting))
}

fn with_setting<T>(
    arguments: &Arguments,
    finished: Option<&FinishedRuns>,
    scale: Ratio,
    stop: &AtomicBool,
    run: impl FnOnce(&Setting<'_>) -> Result<T, BenchError>,
) -> Result<T, String> {
    let threads = threads(arguments.jobs);
    let start = Instant::now();
    let clock = || start.elapsed();
    let changes = Changes::new(arguments.with.clone());
    let seed = arguments.seed;
    let setting =
        Setting { scale, seed, threads, stop, clock: Some(&clock), changes: &changes, finished };
    let done = run(&setting).map_err(|error| error.to_string())?;
    if let Some(missed) = changes.missed().next() {
        return Err(format!(
            "--with {missed} changed none of its stacks: it has none, or none of that name"
        ));
    }
    Ok(done)
}

fn list(figures: &[&Figure]) -> Result<(), Failure> {
    let row =
        |figure: &&Figure| [figure.name, figure.title, figure.source].map(String::from).to_vec();
    let rows: Vec<_> = figures.iter().map(row).collect();
    print(&figure_list(&rows))
}

/// A figure's name, what it shows, and where that stands: below it where lines have an end.
fn figure_list(rows: &[Vec<String>]) -> String {
    let width = list_width();
    if width == usize::MAX {
        return of_words(&["name", "what it shows", "source"], rows, width);
    }
    let lines = rows.iter().flat_map(|row| {
        [vec![row[0].clone(), row[1].clone()], vec![String::new(), row[2].clone()]]
    });
    of_words(&["name", "what it shows, and its source"], &lines.collect::<Vec<_>>(), width)
}

fn lines(table: &Table) -> String {
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n") + "\n"
}

fn at_scale(scale: f64) -> String {
    if scale < 1.0 { format!(" at 1/{:.0}", 1.0 / scale) } else { String::new() }
}

/// A figure as text: what it is, then the paper and ours side by side.
fn shown(figure: &Figure, reproduction: &Reproduction) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["", "paper", "ours", "agreement is", ""]);
    for comparison in &reproduction.comparisons {
        let verdict = match comparison.verdict() {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "DIFFERS",
            Verdict::Shown => "shown",
        };
        let c = comparison;
        table.add_row([c.what.as_str(), &c.paper, &c.ours, &c.rule, verdict]);
    }
    let scale = at_scale(reproduction.results.scale);
    let width = terminal_width();
    let title = format!("{}{scale}: {}", figure.name, figure.title);
    let head = [&title, figure.source, figure.setup].map(|text| paragraph(text, width)).concat();
    format!("{head}{}{}\n", lines(&table), notes(&reproduction.results, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_a_line_and_a_bar_for_each_value() {
        let figure = Figure::find("rmipu-figure-3").unwrap();
        let point = |cost, value, ratio| SensitivityPoint {
            cost,
            unit: "ns",
            value,
            figures: [ratio * 100.0, 100.0],
            ratio,
        };
        let points = [point("a", 1.0, 1.0), point("a", 2.0, 0.1), point("b", 0.5, 9.0)];
        let text = plot("f", figure.sensitivity.unwrap(), Ratio::ONE, &points);
        let bars: Vec<usize> = text.lines().map(|line| line.matches('#').count()).collect();
        assert_eq!(bars, [0, 0, 0, 30, 3, 0, 0, 60, 0], "{text}");
        assert!(text.contains("       2   0.10  ###  (10 / 100)\n"), "{text}");
    }
}
