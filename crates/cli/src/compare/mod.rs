//! `dovetail compare`: which figures of two results differ, and by how much.

mod finished;
mod json;
mod text;

use std::path::PathBuf;

use clap::Args;
use dovetail_lab::compare::{Compared, HEADLINES, Verdict, compare};

use crate::sources::{Source, read};
use crate::{Failure, complain, print};

/// Exit codes, those of diff(1).
const CHANGED: u8 = 1;
const TROUBLE: u8 = 2;

/// Text below the options' help.
const HELP: &str = "\
A and B are files that bench, replay or reproduce wrote with --json=FILE, or folders of sweeps. \
Changes are those of B relative to A, in percent. Runs of one name are compared. Those with other \
seeds are repetitions: a difference of their means counts only if it is larger than what seeds alone \
make in 19 of 20 comparisons (Student's t and the standard error over the seeds). Points that a \
sweep has not finished are counted, and left out on both sides.

Exit codes:
  0  nothing changed by more than the threshold and the spread over seeds
  1  something did, a run is missing or ended early on one side alone, or no run is on both
  2  wrong usage, or a file that cannot be read";

/// Compare two results: which figures changed, by how much, and beyond what seeds make.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// The first results: what is compared with.
    a: PathBuf,
    /// The second results; - for standard input.
    b: PathBuf,
    /// Change in percent up to which a figure counts as the same.
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    threshold: f64,
    /// All single figures, not only throughput, latencies, write amplification and the like.
    #[arg(long)]
    all: bool,
    /// JSON in place of the table (`dovetail help comparing`).
    #[arg(long)]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let number = number.filter(|percent| percent.is_finite() && *percent >= 0.0);
    number.ok_or_else(|| "give a number of percent such as 2 or 0.5, not below 0".into())
}

pub(crate) fn run(arguments: &Arguments) -> u8 {
    match perform(arguments) {
        Ok(false) => 0,
        Ok(true) => CHANGED,
        Err(Failure::Usage(message) | Failure::Failed(message)) => {
            complain(&message);
            TROUBLE
        }
    }
}

/// All that is told about two results.
struct Found<'a> {
    /// Names of the results.
    names: [String; 2],
    /// In percent.
    threshold: f64,
    /// Single figures beside the headline's.
    all: bool,
    /// Nothing but the program and the call differs.
    is_same: bool,
    both: Vec<Compared<'a>>,
    /// Names of runs that only the first, and only the second has.
    only: [Vec<&'a str>; 2],
    /// Points that each has not finished, if it is a sweep; they are left out on both sides.
    unfinished: [Vec<String>; 2],
}

impl Found<'_> {
    /// Something changed beyond threshold and spread, or no run is on both sides.
    fn is_changed(&self) -> bool {
        let is_whole = self.unfinished.iter().all(Vec::is_empty);
        let has_none = self.both.is_empty() && !(self.is_same && is_whole);
        has_none
            || self.only.iter().any(|names| !names.is_empty())
            || self.both.iter().any(is_changed)
    }
}

fn is_changed(both: &Compared<'_>) -> bool {
    let ended = |error: Option<&str>| error.is_some();
    ended(both.a.error()) != ended(both.b.error())
        || both.changes.iter().any(|(_, change)| change.verdict == Verdict::Changed)
}

/// Shows the comparison; true if something changed.
fn perform(arguments: &Arguments) -> Result<bool, Failure> {
    let (mut a, mut b) = (read(&arguments.a)?, read(&arguments.b)?);
    let unfinished = finished::leave_out_unfinished([&mut a, &mut b]);
    let (of_a, of_b) = (a.runs()?, b.runs()?);
    let is_headline = |path: &str| HEADLINES.iter().any(|headline| headline.path == path);
    let is_asked = |path: &str| arguments.all || is_headline(path);
    let (both, only) = compare(&of_a, &of_b, arguments.threshold, is_asked);
    let without = Source::without_provenance;
    let found = Found {
        names: [&arguments.a, &arguments.b].map(|path| path.display().to_string()),
        threshold: arguments.threshold,
        all: arguments.all,
        is_same: unfinished[0] == unfinished[1] && without(a) == without(b),
        both,
        only,
        unfinished,
    };
    let text = if arguments.json { json::text(&found) } else { text::text(&found) };
    print(&text)?;
    Ok(found.is_changed())
}
