//! Results of `dovetail bench` and `dovetail replay`, and where they go.

mod jobs;
mod rows;
mod sort;
mod spread;
mod table;

use std::path::PathBuf;

use clap::Args;
use dovetail_lab::results::{Results, RunResult};

use crate::output::{Outputs, check_writable, is_stdout, write_asked};
use crate::table::{paragraph, terminal_width};
use crate::{Failure, csv_out, print};

/// Files for results.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultFiles {
    /// Results as JSON: --json FILE to a file, --json alone to standard output in place of the
    /// table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Single figures as CSV, a row for each run: --csv FILE to a file, --csv alone to standard
    /// output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// A report with pictures: one HTML file that needs nothing else.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    /// Runs as columns, or as rows with few figures; by itself it is rows for more than four runs.
    #[arg(long, value_enum, help_heading = "Output")]
    table: Option<Shape>,
    /// Runs as rows, with these figures: words of the table's lines, such as elapsed,WAF,p99.
    #[arg(
        long,
        value_name = "WORDS",
        value_delimiter = ',',
        conflicts_with = "table",
        help_heading = "Output"
    )]
    columns: Vec<String>,
    /// Order of the runs in the table: by a figure, a word of the table's lines such as WAF or
    /// p99; -WAF is descending.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true, help_heading = "Output")]
    sort: Option<String>,
}

/// The way in which the table shows runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shape {
    Columns,
    Rows,
}

/// Runs that stand beside each other, unless it is asked for otherwise.
const BESIDE: usize = 4;

/// The figures that stand at their floors because of the scale, a paragraph each.
pub(crate) fn notes(results: &Results, width: Option<usize>) -> String {
    let notes = results.floor_notes();
    let lines = notes.iter().map(|note| paragraph(&format!("note: {note}"), width));
    lines.fold(String::from(if notes.is_empty() { "" } else { "\n" }), |all, line| all + &line)
}

/// Results as `--json` writes them.
pub(crate) fn json(results: &Results) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(results).map_err(Failure::failed)?;
    Ok(text + "\n")
}

/// Results as a table of runs: by itself, beside each other or one below the other.
pub(crate) fn table(results: &Results, width: Option<usize>) -> String {
    let runs = &results.runs;
    let by_itself = match runs.len() > BESIDE {
        true => rows::text(runs, &[], width.unwrap_or(usize::MAX)),
        false => None,
    };
    let text = by_itself.unwrap_or_else(|| table::LAYOUT.text(runs, width));
    text + &below(results, width)
}

/// Lines below a table of runs.
fn below(results: &Results, width: Option<usize>) -> String {
    let runs = &results.runs;
    spread::text(runs) + &table::notes(runs, width) + &notes(results, width)
}

/// A word of an option is in no line of the table.
fn unknown(option: &str, words: &str, runs: &[RunResult]) -> Failure {
    let lines = table::LAYOUT.lines(runs);
    let names: Vec<_> = lines.iter().map(|line| line[0].trim()).collect();
    Failure::Usage(format!(
        "{option} {words}: some word is in no line of the table; lines are {}",
        names.join("; ")
    ))
}

impl ResultFiles {
    fn named(&self) -> [(&'static str, &Option<PathBuf>); 3] {
        [("--json", &self.json), ("--csv", &self.csv), ("--report", &self.report)]
    }

    /// The results that go to standard output, by their flags.
    pub(crate) fn to_stdout(&self) -> impl Iterator<Item = &'static str> {
        let files = [("--json", &self.json), ("--csv", &self.csv)];
        files.into_iter().filter(|(_, path)| is_stdout(path.as_deref())).map(|(flag, _)| flag)
    }

    /// No file takes the place of an input or of another output.
    pub(crate) fn check(&self, outputs: &mut Outputs) -> Result<(), Failure> {
        self.named().into_iter().try_for_each(|(flag, path)| {
            path.iter().try_for_each(|path| outputs.output(flag, path))
        })
    }

    /// Checks that the files can be written: better before the work than after it.
    pub(crate) fn check_writable(&self) -> Result<(), Failure> {
        check_writable(self.named().into_iter().filter_map(|(_, path)| path.as_ref()))
    }

    /// The runs in the shape that is asked for.
    fn shaped(&self, runs: &[RunResult], width: Option<usize>) -> Result<String, Failure> {
        let by_itself = if runs.len() > BESIDE { Shape::Rows } else { Shape::Columns };
        if self.columns.is_empty() && self.table.unwrap_or(by_itself) == Shape::Columns {
            return Ok(table::LAYOUT.text(runs, width));
        }
        let text = rows::text(runs, &self.columns, width.unwrap_or(usize::MAX));
        text.ok_or_else(|| unknown("--columns", &self.columns.join(","), runs))
    }

    /// The runs in the order that is asked for, if one is.
    fn sorted(&self, runs: &[RunResult]) -> Result<Option<Vec<RunResult>>, Failure> {
        let Some(by) = &self.sort else { return Ok(None) };
        sort::sorted(runs, by).map(Some).ok_or_else(|| unknown("--sort", by, runs))
    }

    /// Shows the table. Where a word of an option is in none of its lines, the runs are shown
    /// without that option, and then it is an error: the work is not lost.
    pub(crate) fn show(&self, results: &Results) -> Result<(), Failure> {
        if results.runs.is_empty() {
            return Ok(());
        }
        let width = terminal_width();
        let (sorted, order) = match self.sorted(&results.runs) {
            Ok(sorted) => (sorted, Ok(())),
            Err(failure) => (None, Err(failure)),
        };
        let runs = sorted.as_ref().unwrap_or(&results.runs);
        let (text, shape) = match self.shaped(runs, width) {
            Ok(text) => (text + &below(results, width), Ok(())),
            Err(failure) => (table(results, width), Err(failure)),
        };
        print(&text)?;
        order.and(shape)
    }

    /// Writes the files, each though another one fails.
    pub(crate) fn write(&self, results: &Results) -> Result<(), Failure> {
        Failure::all([
            write_asked(self.json.as_ref(), || json(results)),
            write_asked(self.csv.as_ref(), || csv_out::text(results)),
            write_asked(self.report.as_ref(), || Ok(dovetail_report::html(results))),
        ])
    }
}
