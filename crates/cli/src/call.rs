//! The commands as functions, for programs other than the command line, such as the Python package.
//!
//! A call is the words of the command line behind `dovetail`, so that options, defaults and messages
//! are the same there and here, and so are the bytes of the results. Results are values; files
//! that the words of `bench` and `replay` name are written too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory, Parser};
pub use dovetail_image::Entry;
use dovetail_lab::results::{Results, RunResult};
pub use dovetail_lab::{Progress, Stage};
use dovetail_papers::Reproduction;
use dovetail_sweep::{Fingerprints, Point, Record, Shard, Sweep, check_files, fingerprints_of};
use dovetail_workload::personality::builtin_personalities;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::Failure;
use crate::{Cli, Command, bench, csv_out, image, output, replay, reproduce, results, run, sweep};

/// A caller that waits: it hears of progress, and may end the call.
pub struct Watch<'a> {
    /// Set to end the call, from any thread.
    pub stop: &'a AtomicBool,
    /// Hears how far the run of a label has come, from the threads that work.
    pub tell: &'a (dyn Fn(&str, Progress) + Sync),
}

/// Refusal of an option that shows a table in place of results.
pub(crate) fn only_a_table(option: &str) -> Failure {
    Failure::Usage(format!("{option} shows a table in place of results; use the command line"))
}

/// The first line of a message of clap is its sentence; a usage of the command line follows.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
    // arguments that are missing, values that are possible, names that are near stand below
    let below = lines.take_while(|line| !line.starts_with("Usage:"));
    let below = below.filter(|line| !line.starts_with("For more"));
    [first].into_iter().chain(below).collect::<Vec<_>>().join(" ")
}

fn parse(words: &[OsString]) -> Result<Command, Failure> {
    let name = OsString::from("dovetail");
    let cli = Cli::try_parse_from([&name].into_iter().chain(words));
    cli.map(|cli| cli.command).map_err(|error| Failure::Usage(sentence(&error)))
}

fn other_command(wanted: &str) -> Failure {
    Failure::Usage(format!("the first word must be {wanted}"))
}

/// `dovetail bench`; the words begin with `bench`.
///
/// # Errors
/// Those of the command, a run that ends early without --keep-going, and a call that was ended.
pub fn bench(words: &[OsString], watch: &Watch<'_>) -> Result<Results, Failure> {
    match parse(words)? {
        Command::Bench(arguments) => bench::called(&arguments, words, watch),
        _ => Err(other_command("bench")),
    }
}

/// `dovetail replay`; the words begin with `replay`.
///
/// # Errors
/// Those of the command, and a call that was ended.
pub fn replay(words: &[OsString], watch: &Watch<'_>) -> Result<Results, Failure> {
    match parse(words)? {
        Command::Replay(arguments) => replay::called(&arguments, words, watch),
        _ => Err(other_command("replay")),
    }
}

/// `dovetail reproduce`; the words begin with `reproduce`. Figures by their names, in order.
///
/// # Errors
/// Those of the command, and a call that was ended.
pub fn reproduce(
    words: &[OsString],
    watch: &Watch<'_>,
) -> Result<Vec<(&'static str, Reproduction)>, Failure> {
    match parse(words)? {
        Command::Reproduce(arguments) => reproduce::called(&arguments, words, watch),
        _ => Err(other_command("reproduce")),
    }
}

/// Output of a command that was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Exit code: 0 done, 1 something failed, 2 wrong usage; of `fsck` those of fsck(8).
    pub code: u8,
    /// Bytes that it wrote to standard output.
    pub output: Vec<u8>,
    /// Sentences that it wrote to standard error.
    pub errors: Vec<String>,
}

/// Commands that end by themselves and talk to nobody meanwhile.
const SHORT: [&str; 19] = [
    "cat", "compare", "cp", "doctor", "drive", "extract", "fsck", "help", "image", "inspect",
    "label", "ln", "ls", "mkdir", "mkfs", "mv", "report", "rm", "stack",
];

/// Any command that ends by itself, such as `ls`, `extract` or `mkfs`; its output is returned.
///
/// # Errors
/// Another command, or arguments that make no sense. A command that fails has an exit code.
pub fn short(words: &[OsString]) -> Result<Output, Failure> {
    let first = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    if !SHORT.contains(&first) {
        let all = SHORT.join(", ");
        return Err(Failure::Usage(format!("\"{first}\" cannot be called so; these can: {all}")));
    }
    let command = parse(words)?;
    let (code, captured) = output::capture(|| run(command));
    Ok(Output { code, output: captured.output, errors: captured.errors })
}

/// The files that `dovetail ls` lists, and sentences about those that cannot be read; the words begin
/// with `ls`.
///
/// # Errors
/// Arguments that make no sense, an image that cannot be read, and no such path.
pub fn list(words: &[OsString]) -> Result<(Vec<Entry>, Vec<String>), Failure> {
    match parse(words)? {
        // what it would say of the volume comes with the damage
        Command::Ls(arguments) => {
            let (listed, said) = output::capture(|| image::entries(&arguments));
            listed
                .map(|(entries, damage)| (entries, said.errors.into_iter().chain(damage).collect()))
        }
        _ => Err(other_command("ls")),
    }
}

/// Version of the program and the commit that it is built from.
pub const VERSION: &str = env!("DOVETAIL_VERSION");

/// Results as `--json` writes them.
///
/// # Errors
/// A number that JSON cannot hold, which is not to be expected.
pub fn json(results: &Results) -> Result<String, Failure> {
    results::json(results)
}

/// Results as the table of the terminal, `width` columns wide.
pub fn table(results: &Results, width: usize) -> String {
    results::table(results, Some(width))
}

/// Single figures of a run, by their path in the results with dots.
///
/// # Errors
/// A number that JSON cannot hold, which is not to be expected.
pub fn figures(run: &RunResult) -> Result<Vec<(String, Value)>, Failure> {
    csv_out::figures(run)
}

/// An option of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOption {
    /// Name without dashes.
    pub name: String,
    /// It has a value; otherwise it is a switch.
    pub has_value: bool,
    /// It may be given several times.
    pub is_list: bool,
    /// The call needs it.
    pub is_required: bool,
    /// Help of the command line.
    pub help: String,
}

/// The options of a command, in the order of its help; without those of all commands.
pub fn options(command: &str) -> Vec<CommandOption> {
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(command) else { return Vec::new() };
    let option = |argument: &clap::Arg| {
        let help = argument.get_long_help().or(argument.get_help());
        let action = argument.get_action();
        Some(CommandOption {
            name: argument.get_long()?.to_owned(),
            has_value: action.takes_values(),
            is_list: matches!(action, clap::ArgAction::Append),
            is_required: argument.is_required_set(),
            help: help.map(ToString::to_string).unwrap_or_default(),
        })
    };
    command.get_arguments().filter_map(option).collect()
}

/// The command line of a process that is not the `dovetail` program: its words behind the program's
/// name. Returns the exit code.
pub fn program(words: &[OsString]) -> u8 {
    let name = OsString::from("dovetail");
    crate::main_of([name].into_iter().chain(words.iter().cloned()).collect())
}

/// A sweep with its folder of results, whose points are performed here or by others.
pub struct OpenSweep {
    begun: sweep::Begun,
    away: OnceLock<Away>,
}

/// A sweep as it is performed in another directory, and the content of its files.
struct Away {
    sweep: Sweep,
    files: Fingerprints,
}

/// A point's result: a line of the folder, and the whole result if the sweep keeps it.
pub type PointResult = (String, Option<String>);

/// A point as another process performs it, maybe on another machine: the sweep with its paths from
/// the root, the point, the program that must do it, and the files that must be there.
#[derive(Serialize, Deserialize)]
struct Task {
    program: String,
    sweep: Sweep,
    point: Point,
    files: Fingerprints,
}

impl OpenSweep {
    /// Reads the text of a sweep, named `name` in messages, and opens its folder of results, or makes
    /// it. `shard` is a part such as `1/4`.
    ///
    /// # Errors
    /// A text that makes no sense; a folder of another sweep, in use, or that cannot be written.
    pub fn open(
        text: &str,
        name: &str,
        results: &Path,
        shard: Option<&str>,
    ) -> Result<Self, Failure> {
        let shard = shard.map(str::parse).transpose();
        let shard = shard.map_err(Failure::Usage);
        let begun = sweep::Begun::parse(text, name, results, shard?.unwrap_or(Shard::WHOLE))?;
        Ok(Self { begun, away: OnceLock::new() })
    }

    /// Numbers and names of the points that are to be performed; with `retries` also those that
    /// failed before.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn waiting(&self, retries: bool) -> Result<Vec<(u32, String)>, Failure> {
        let points = self.begun.waiting(retries)?;
        Ok(points.into_iter().map(|point| (point.number, point.name())).collect())
    }

    /// Number of all points.
    pub fn len(&self) -> usize {
        self.begun.sweep.points().len()
    }

    /// Number of the points of the shard.
    pub fn of_shard(&self) -> usize {
        self.begun.of_shard()
    }

    /// A sweep without points, which there is none of.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The task of a point, for [`perform_task`] in any process.
    ///
    /// # Errors
    /// No such point; a file of the sweep cannot be read, or names another one by a relative path.
    pub fn task(&self, point: u32) -> Result<String, Failure> {
        let Away { sweep, files } = self.away()?;
        let there = sweep.points().get(point as usize);
        let point = there.ok_or_else(|| Failure::Usage(format!("there is no point {point}")))?;
        let sweep = sweep.of_one(point);
        let of_point = |name| Some((String::from(name), files.get(name)?.clone()));
        let files = sweep.files().filter_map(of_point).collect();
        let task = Task { program: sweep::PROGRAM.into(), point: point.clone(), sweep, files };
        serde_json::to_string(&task).map_err(Failure::failed)
    }

    fn away(&self) -> Result<&Away, Failure> {
        if let Some(away) = self.away.get() {
            return Ok(away);
        }
        let here = sweep::here()?;
        let is_built_in = |name: &str| builtin_personalities().any(|known| known == name);
        let sweep = self.begun.sweep.absolute(&here, is_built_in);
        let here = here.display();
        if here.to_string().contains(',') && sweep.files().count() > 0 {
            return Err(Failure::Failed(format!(
                "{here}: a path with a comma cannot be told to workers; call from another directory"
            )));
        }
        sweep::check_named_in_turn(&sweep)?;
        let files = fingerprints_of(sweep.files()).map_err(Failure::failed)?;
        Ok(self.away.get_or_init(|| Away { sweep, files }))
    }

    /// Keeps the result of a point: durable when this returns.
    ///
    /// # Errors
    /// It cannot be written, or is no result.
    pub fn keep(&self, (record, whole): &PointResult) -> Result<(), Failure> {
        let record: Record = serde_json::from_str(record).map_err(Failure::failed)?;
        if let Some(text) = whole {
            self.begun.folder.keep(record.point, text).map_err(Failure::failed)?;
        }
        self.begun.folder.append(&record).map_err(Failure::failed)
    }

    /// Performs the points that are missing in this process, so many at a time. The watch hears of
    /// each that is done, by its name.
    ///
    /// # Errors
    /// A result cannot be kept. A point that fails has its row.
    pub fn perform(
        &self,
        jobs: Option<usize>,
        retries: bool,
        watch: &Watch<'_>,
    ) -> Result<(), Failure> {
        self.begun
            .perform(bench::threads(jobs), retries, watch.stop, &|performed, point| {
                let (done, total) = (performed.before + performed.now, performed.of as u64);
                let done = done as u64;
                let progress = Progress { stage: Stage::Run, done, total, requests: done };
                (watch.tell)(&point.name(), progress);
            })
            .map(drop)
    }

    /// Writes the table of what is finished; returns its path, the number of finished points, and
    /// of those that failed.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn finish(&self) -> Result<(PathBuf, usize, usize), Failure> {
        let records = self.begun.folder.records().map_err(Failure::failed)?;
        let failed = records.values().filter(|record| record.error.is_some()).count();
        Ok((self.begun.write_table()?, records.len(), failed))
    }
}

/// Performs a point that [`OpenSweep::task`] describes. `None` if it was stopped.
///
/// # Errors
/// A task of another version of the program, a file that is not here or has another content. A
/// point that fails is a result.
pub fn perform_task(task: &str, stop: &AtomicBool) -> Result<Option<PointResult>, Failure> {
    let task: Task = serde_json::from_str(task).map_err(Failure::failed)?;
    if task.program != sweep::PROGRAM {
        let (theirs, ours) = (task.program, sweep::PROGRAM);
        return Err(Failure::Failed(format!(
            "the sweep is of {theirs}, and this worker has {ours}: install the same version"
        )));
    }
    check_files(&task.files).map_err(Failure::failed)?;
    let Some((record, whole)) = sweep::perform_point(&task.sweep, &task.point, stop)? else {
        return Ok(None);
    };
    Ok(Some((serde_json::to_string(&record).map_err(Failure::failed)?, whole)))
}
