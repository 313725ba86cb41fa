//! `dovetail sweep`: a file of combinations, performed by `bench` or `replay`, and its table.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, FromArgMatches, Subcommand};
use dovetail_lab::results::Results;
use dovetail_sweep::{
    Budget, Command, Folder, Outcome, Performed, Point, Shard, Sweep, merge, table,
};
use dovetail_time::format_bytes;
use serde_json::{Map, Value};

use crate::bench::threads;
use crate::progress::Counter;
use crate::signals::{stop_flag, stopped};
use crate::{Failure, bench, csv_out, memory, print, replay};

/// Memory of the machine that a sweep takes at most, in percent: the rest is for what estimates miss
/// (assumed).
const MEMORY_PERCENT: u64 = 80;
/// Name of the table in the folder of results.
const TABLE: &str = "table.csv";
/// Options that are the sweep's own: each point writes into its folder, and runs on one core.
const OWN: [&str; 9] =
    ["json", "csv", "report", "fio-json", "jobs", "table", "columns", "keep-going", "sensitivity"];

/// Run a file of combinations: a command, shared options, and axes.
///
/// Each finished point is kept at once in the folder of results. The same command goes on where it
/// was stopped or killed. At the end the folder has table.csv, a row for each run.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Also>,
    /// The sweep: a TOML file (`dovetail help sweeps`).
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// Folder of results; made if it is not there [default: the file's name with .sweep].
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Only a part of the points, such as 1/4 to 4/4, for batch systems. All parts may share a
    /// folder.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Points at the same time; all cores if not given, fewer if memory is short.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Run points again that have failed.
    #[arg(long)]
    retry_failed: bool,
    /// Show the points, and the command of each, without running any.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Subcommand)]
enum Also {
    /// Join folders of results of one sweep, and write the table of all.
    Merge {
        /// Folder of the joined results; made if it is not there.
        into: PathBuf,
        /// Folders of the parts.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match (&arguments.command, &arguments.file) {
        (Some(Also::Merge { into, folders }), _) => join(into, folders),
        (None, Some(file)) => perform(arguments, file),
        (None, None) => Err(Failure::Usage("give the file of a sweep".into())),
    }
}

fn join(into: &Path, folders: &[PathBuf]) -> Result<(), Failure> {
    let (sweep, records) = merge(into, folders).map_err(Failure::failed)?;
    let text = table(&sweep, &records).map_err(Failure::failed)?;
    let path = into.join(TABLE);
    Folder::replace(&path, &text).map_err(Failure::failed)?;
    print(&format!("{} of {} points in {}\n", records.len(), sweep.points().len(), path.display()))
}

/// A point's command, its arguments understood.
enum Call {
    Bench(Box<bench::Arguments>),
    Replay(Box<replay::Arguments>),
}

impl Call {
    fn of(sweep: &Sweep, point: &Point) -> Result<Self, Failure> {
        let given = sweep.arguments(point);
        let named = |error: clap::Error| {
            // clap's first line is the sentence; its usage is that of another command line
            let text = error.to_string();
            let sentence = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Failure::Usage(format!("point {} ({}): {sentence}", point.number, point.name()))
        };
        let parse = |name: &'static str, of: fn(clap::Command) -> clap::Command| {
            let command = of(clap::Command::new(name).no_binary_name(true));
            command.try_get_matches_from(&given).map_err(named)
        };
        match sweep.command {
            Command::Bench => {
                let matches = parse("bench", bench::Arguments::augment_args)?;
                let arguments = bench::Arguments::from_arg_matches(&matches).map_err(named)?;
                Ok(Self::Bench(Box::new(arguments)))
            }
            Command::Replay => {
                let matches = parse("replay", replay::Arguments::augment_args)?;
                let arguments = replay::Arguments::from_arg_matches(&matches).map_err(named)?;
                Ok(Self::Replay(Box::new(arguments)))
            }
        }
    }

    /// Refuses what the command refuses before it runs, and what memory cannot hold.
    fn check(&self, point: &Point, room: Option<u64>) -> Result<(), Failure> {
        let checked = match self {
            Self::Bench(arguments) => bench::check(arguments, point.number == 0),
            Self::Replay(arguments) => replay::check(arguments),
        };
        let named = |message| format!("point {} ({}): {message}", point.number, point.name());
        checked.map_err(|failure| match failure {
            Failure::Usage(message) => Failure::Usage(named(message)),
            Failure::Failed(message) => Failure::Failed(named(message)),
        })?;
        let (needs, there) = (self.memory()?, room.unwrap_or(u64::MAX));
        if needs <= there {
            return Ok(());
        }
        let (needs, there) = (format_bytes(needs), format_bytes(there));
        let message = format!("its drive takes up to {needs} of memory, and {there} are available");
        Err(Failure::Failed(named(message)))
    }

    fn memory(&self) -> Result<u64, Failure> {
        match self {
            Self::Bench(arguments) => bench::memory_of(arguments),
            Self::Replay(arguments) => replay::memory_of(arguments),
        }
    }

    fn measure(&self, stop: &AtomicBool) -> Result<Results, Failure> {
        match self {
            Self::Bench(arguments) => bench::measure(arguments, stop),
            Self::Replay(arguments) => replay::measure(arguments, stop),
        }
    }
}

fn perform(arguments: &Arguments, file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = dovetail_time::read_text(file)
        .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
    let sweep = Sweep::parse(&text, &name).map_err(|error| Failure::Usage(error.to_string()))?;
    let calls = calls(&sweep)?;
    if arguments.list {
        return list(&sweep);
    }
    let shard = arguments.shard.unwrap_or(Shard::WHOLE);
    let results = arguments.results.clone().unwrap_or_else(|| file.with_extension("sweep"));
    let program = concat!("dovetail ", env!("DOVETAIL_VERSION"));
    let folder = Folder::open(&results, &sweep, program, shard).map_err(Failure::failed)?;
    let stop = stop_flag()?;
    let room = memory::room().map_or(u64::MAX, |bytes| bytes / 100 * MEMORY_PERCENT);
    let counter = Counter::new("points");
    let done = dovetail_sweep::run(
        (&sweep, shard),
        &folder,
        (threads(arguments.jobs), &Budget::new(room)),
        arguments.retry_failed,
        |point| calls[point.number as usize].memory().unwrap_or(0),
        |point| outcome(&calls[point.number as usize], &sweep, &stop),
        |performed, point| {
            let Performed { before, now, of, .. } = performed;
            counter.tell(before + now, of, &point.name());
        },
    );
    drop(counter);
    let done = done.map_err(Failure::failed)?;
    let text =
        table(&sweep, &folder.records().map_err(Failure::failed)?).map_err(Failure::failed)?;
    folder.write(TABLE, &text).map_err(Failure::failed)?;
    let table = results.join(TABLE);
    print(&format!("{} of {} points in {}\n", done.before + done.now, done.of, table.display()))?;
    if stop.load(Ordering::Relaxed) {
        return Err(stopped());
    }
    match done.failed {
        0 => Ok(()),
        1 => Err(Failure::Failed(
            "1 point failed: its row in the table says why; --retry-failed runs it again".into(),
        )),
        failed => Err(Failure::Failed(format!(
            "{failed} points failed: their rows say why; --retry-failed runs them again"
        ))),
    }
}

/// The calls of all points. What is wrong with one is found before any runs.
fn calls(sweep: &Sweep) -> Result<Vec<Call>, Failure> {
    let is_own = |argument: &String| {
        let name = argument.trim_start_matches("--").split('=').next().unwrap_or_default();
        argument.starts_with("--") && OWN.contains(&name)
    };
    let mut arguments = sweep.points().iter().flat_map(|point| sweep.arguments(point));
    if let Some(own) = arguments.find(is_own) {
        return Err(Failure::Usage(format!(
            "{own} is not for a sweep: each point is a run whose results go to the folder; leave it out"
        )));
    }
    if sweep.arguments(&sweep.points()[0]).iter().any(|argument| argument == "-") {
        return Err(Failure::Usage(
            "standard input is not for a sweep: its points read it many times; give a file".into(),
        ));
    }
    let room = memory::room();
    let call = |point: &Point| {
        let call = Call::of(sweep, point)?;
        call.check(point, room)?;
        Ok(call)
    };
    sweep.points().iter().map(call).collect()
}

fn list(sweep: &Sweep) -> Result<(), Failure> {
    let command = match sweep.command {
        Command::Bench => "bench",
        Command::Replay => "replay",
    };
    let line = |point: &Point| {
        format!("{:6} dovetail {command} {}\n", point.number, sweep.arguments(point).join(" "))
    };
    print(&sweep.points().iter().map(line).collect::<String>())
}

fn outcome(call: &Call, sweep: &Sweep, stop: &AtomicBool) -> Outcome {
    let measured = call.measure(stop);
    if stop.load(Ordering::Relaxed) {
        return Outcome::Stopped;
    }
    match measured.and_then(|results| kept(&results, sweep.series)) {
        Ok((runs, whole)) => Outcome::Done(runs, whole),
        Err(Failure::Usage(message) | Failure::Failed(message)) => Outcome::Failed(message),
    }
}

type Kept = (Vec<Map<String, Value>>, Option<String>);

/// Figures that describe the stack and the drive, which the sweep's file has: left out of the rows.
const DESCRIPTION: [&str; 3] = ["stack.host.", "drive.", "replay."];

/// Single figures of each run, and all of the results if they are to be kept.
fn kept(results: &Results, whole: bool) -> Result<Kept, Failure> {
    let is_found = |(name, value): &(String, Value)| {
        !value.is_null() && !DESCRIPTION.iter().any(|part| name.starts_with(part))
    };
    let figures = |run| csv_out::figures(run).map(|all| all.into_iter().filter(is_found).collect());
    let runs = results.runs.iter().map(figures).collect::<Result<_, _>>()?;
    let whole =
        whole.then(|| serde_json::to_string(results)).transpose().map_err(Failure::failed)?;
    Ok((runs, whole))
}
