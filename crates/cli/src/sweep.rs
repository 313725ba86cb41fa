//! `dovetail sweep`: a file of combinations, performed by `bench` or `replay`, and its table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, FromArgMatches, Subcommand};
use dovetail_lab::results::Results;
use dovetail_lab::{NewDrive, Prepared, order};
use dovetail_sweep::{
    Command, Folder, Outcome, Performed, Point, Record, Shard, Sweep, SweepError, merge, table,
    waiting,
};
use dovetail_time::format_bytes;
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::bench::threads;
use crate::call::sentence;
use crate::progress::Counter;
use crate::signals::{stop_flag, stopped_after};
use crate::{Failure, bench, csv_out, memory, print, replay};

/// Name of the table in the folder of results.
const TABLE: &str = "table.csv";
/// Options that are the sweep's own: each point writes into its folder, and runs on one core.
const OWN: [&str; 10] = [
    "json",
    "csv",
    "report",
    "fio-json",
    "jobs",
    "table",
    "columns",
    "sort",
    "keep-going",
    "sensitivity",
];

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
    print(&ended(records.len(), sweep.points().len(), into, &path))
}

/// Count of the points that are there, and the commands that look at them.
fn ended(done: usize, of: usize, folder: &Path, table: &Path) -> String {
    let folder = folder.display();
    format!(
        "{done} of {of} points in {}\n\
         look at them:        dovetail report {folder}\n\
         beside another one:  dovetail compare {folder} OTHER\n",
        table.display()
    )
}

/// `point 3 (op=12 seed=2)`; of a sweep without axes there is nothing to tell.
fn numbered(point: &Point) -> String {
    match point.name() {
        name if name.is_empty() => format!("point {}", point.number),
        name => format!("point {} ({name})", point.number),
    }
}

/// A point's command, its arguments understood.
enum Call {
    Bench(Box<bench::Arguments>),
    Replay(Box<replay::Arguments>),
}

impl Call {
    fn of(sweep: &Sweep, point: &Point, described: Option<&Path>) -> Result<Self, Failure> {
        let given = sweep.arguments(point, described);
        let named = |error: clap::Error| {
            let sentence = sentence(&error);
            Failure::Usage(format!("{}: {sentence}", numbered(point)))
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

    /// Refuses what the command refuses before it runs.
    fn check(&self, point: &Point) -> Result<(), Failure> {
        let checked = match self {
            Self::Bench(arguments) => bench::check(arguments, point.number == 0),
            Self::Replay(arguments) => replay::check(arguments),
        };
        let named = |message| format!("{}: {message}", numbered(point));
        checked.map_err(|failure| match failure {
            Failure::Usage(message) => Failure::Usage(named(message)),
            Failure::Failed(message) => Failure::Failed(named(message)),
        })
    }

    /// Refuses what the memory of this machine cannot hold.
    fn check_memory(&self, point: &Point, room: Option<u64>) -> Result<(), Failure> {
        // a combination of figures that makes no drive fails when it runs: a row, not the end of all
        let (needs, there) = (self.memory().unwrap_or(0), room.unwrap_or(u64::MAX));
        if needs <= there {
            return Ok(());
        }
        let (needs, there) = (format_bytes(needs), format_bytes(there));
        Err(Failure::Failed(format!(
            "{}: its drive takes up to {needs} of memory, and {there} are available",
            numbered(point)
        )))
    }

    fn memory(&self) -> Result<u64, Failure> {
        match self {
            Self::Bench(arguments) => bench::memory_of(arguments),
            Self::Replay(arguments) => replay::memory_of(arguments),
        }
    }

    /// Drives that its runs begin with preconditioned.
    fn new_drives(&self) -> Result<Vec<NewDrive>, Failure> {
        match self {
            Self::Bench(arguments) => bench::new_drives(arguments),
            Self::Replay(arguments) => replay::new_drives(arguments),
        }
    }

    fn measure(&self, stop: &AtomicBool, drives: &Prepared) -> Result<Results, Failure> {
        match self {
            Self::Bench(arguments) => bench::measure(arguments, stop, drives),
            Self::Replay(arguments) => replay::measure(arguments, stop, drives),
        }
    }
}

fn perform(arguments: &Arguments, file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = dovetail_time::read_text(file)
        .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
    let sweep = Sweep::parse(&text, &name).map_err(|error| Failure::Usage(error.to_string()))?;
    let calls = Calls::of(&sweep)?;
    if arguments.list {
        return list(&sweep);
    }
    let shard = arguments.shard.unwrap_or(Shard::WHOLE);
    let results = arguments.results.clone().unwrap_or_else(|| file.with_extension("sweep"));
    if results == file {
        return Err(Failure::Usage(format!(
            "the folder of results would take the place of {name} itself: give --results FOLDER"
        )));
    }
    check_memory(&sweep, &calls.all)?;
    let begun = Begun::new(sweep, calls, &results, shard)?;
    let stop = stop_flag()?;
    let counter = Counter::new("points");
    let done = begun.perform(
        threads(arguments.jobs),
        arguments.retry_failed,
        &stop,
        &|performed, point| {
            let Performed { before, now, of, .. } = performed;
            counter.tell(before + now, of, &point.name());
        },
    );
    drop(counter);
    let done = done?;
    let table = begun.write_table()?;
    print(&ended(done.before + done.now, done.of, &results, &table))?;
    if stop.load(Ordering::Relaxed) {
        return Err(stopped_after((done.before + done.now) as usize));
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

/// The program and its version, as folders of results name who made them.
pub(crate) const PROGRAM: &str = concat!("dovetail ", env!("DOVETAIL_VERSION"));

/// A sweep whose folder of results is open.
pub(crate) struct Begun {
    pub(crate) sweep: Sweep,
    pub(crate) folder: Folder,
    calls: Calls,
    results: PathBuf,
    shard: Shard,
}

impl Begun {
    /// Reads the text of a sweep, called `name`, and opens its folder.
    ///
    /// # Errors
    /// A text that makes no sense; a folder of another sweep, or one that cannot be written.
    pub(crate) fn parse(
        text: &str,
        name: &str,
        results: &Path,
        shard: Shard,
    ) -> Result<Self, Failure> {
        let sweep = Sweep::parse(text, name).map_err(|error| Failure::Usage(error.to_string()))?;
        let calls = Calls::of(&sweep)?;
        Self::new(sweep, calls, results, shard)
    }

    fn new(sweep: Sweep, calls: Calls, results: &Path, shard: Shard) -> Result<Self, Failure> {
        let folder = Folder::open(results, &sweep, PROGRAM, shard).map_err(Failure::failed)?;
        Ok(Self { sweep, folder, calls, results: results.into(), shard })
    }

    /// Number of the points of the shard.
    pub(crate) fn of_shard(&self) -> usize {
        self.sweep.points().iter().filter(|point| self.shard.has(point.number)).count()
    }

    /// Points of the shard that are to be performed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn waiting(&self, retries: bool) -> Result<Vec<&Point>, Failure> {
        let finished = self.folder.records().map_err(Failure::failed)?;
        Ok(waiting(&self.sweep, self.shard, &finished, retries))
    }

    /// Performs the points that are missing; `told` hears of each.
    ///
    /// # Errors
    /// A result cannot be kept.
    pub(crate) fn perform(
        &self,
        threads: usize,
        retries: bool,
        stop: &AtomicBool,
        told: &(dyn Fn(Performed, &Point) + Sync),
    ) -> Result<Performed, Failure> {
        let (sweep, calls) = (&self.sweep, &self.calls.all[..]);
        check_memory(sweep, calls)?;
        let drives = &Prepared::within(memory::in_all());
        let points = Points { sweep, calls, drives, threads, stop };
        let folder = (&self.folder, self.shard);
        points.perform(folder, retries, told).map_err(Failure::failed)
    }

    /// Writes the table of all that is finished; returns its path.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn write_table(&self) -> Result<PathBuf, Failure> {
        let text = |records: &_| table(&self.sweep, records).map_err(Failure::failed);
        self.folder.write(TABLE, text)?;
        Ok(self.results.join(TABLE))
    }
}

/// The points of a sweep, and what they are performed with.
struct Points<'a> {
    sweep: &'a Sweep,
    calls: &'a [Call],
    drives: &'a Prepared,
    threads: usize,
    stop: &'a AtomicBool,
}

impl Points<'_> {
    /// Performs the points of a shard that the folder has no result of.
    fn perform(
        &self,
        (folder, shard): (&Folder, Shard),
        retries: bool,
        told: impl Fn(Performed, &Point) + Sync,
    ) -> Result<Performed, SweepError> {
        dovetail_sweep::run(
            (self.sweep, shard),
            folder,
            (self.threads, retries),
            |points| self.order(points),
            |point| self.drives.reserve(self.call(point).memory().unwrap_or(0)),
            |point| outcome(self.call(point), self.sweep.series, self.stop, self.drives),
            told,
        )
    }

    fn call(&self, point: &Point) -> &Call {
        &self.calls[point.number as usize]
    }

    /// Counts the runs that begin with preconditioned drives; returns the order in which points
    /// begin, so that those with the same drives follow each other.
    fn order(&self, points: &[&Point]) -> Vec<usize> {
        let numbers = |point: &&Point| {
            let new = self.call(point).new_drives().unwrap_or_default();
            new.iter().for_each(|drive| self.drives.expect(drive));
            Some(self.drives.numbers(&new)).filter(|numbers| !numbers.is_empty())
        };
        order(&points.iter().map(numbers).collect::<Vec<_>>(), self.threads)
    }
}

/// The calls of all points, and the files of what the sweep describes, for as long.
struct Calls {
    all: Vec<Call>,
    _described: Option<TempDir>,
}

impl Calls {
    /// Parses and checks all calls, before any runs.
    fn of(sweep: &Sweep) -> Result<Self, Failure> {
        let is_own = |argument: &String| {
            let name = argument.trim_start_matches("--").split('=').next().unwrap_or_default();
            argument.starts_with("--") && OWN.contains(&name)
        };
        let mut arguments = sweep.points().iter().flat_map(|point| sweep.arguments(point, None));
        if let Some(own) = arguments.find(is_own) {
            return Err(Failure::Usage(format!(
                "{own} is not for a sweep: each point is a run whose results go to the folder; leave it out"
            )));
        }
        if sweep.arguments(&sweep.points()[0], None).iter().any(|argument| argument == "-") {
            return Err(Failure::Usage(
                "standard input is not for a sweep: its points read it many times; give a file"
                    .into(),
            ));
        }
        let described = described(sweep, &here()?)?;
        let call = |point: &Point| {
            let call = Call::of(sweep, point, described.as_ref().map(TempDir::path))?;
            call.check(point)?;
            Ok(call)
        };
        let all = sweep.points().iter().map(call).collect::<Result<_, Failure>>()?;
        Ok(Self { all, _described: described })
    }
}

/// The files of the stacks and drives that a sweep describes; none if it describes none. `at` is the
/// directory of the call.
fn described(sweep: &Sweep, at: &Path) -> Result<Option<TempDir>, Failure> {
    if !sweep.has_described() {
        return Ok(None);
    }
    let folder = tempfile::tempdir().map_err(Failure::failed)?;
    let path = folder.path().display();
    if path.to_string().contains(',') {
        let message =
            format!("{path}: options are lists with commas; set TMPDIR to another folder");
        return Err(Failure::Failed(message));
    }
    sweep.write_described(folder.path(), at).map_err(Failure::failed)?;
    Ok(Some(folder))
}

/// Refuses files of stacks that name others by paths which lead elsewhere in another directory.
///
/// # Errors
/// The first such file.
pub(crate) fn check_named_in_turn(sweep: &Sweep) -> Result<(), Failure> {
    for file in sweep.files().filter(|file| file.ends_with(".toml")) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let table: toml::Table = text.parse().unwrap_or_default();
        for key in ["drive", "kernel"] {
            let named = table.get(key).and_then(toml::Value::as_str);
            // without the ending a drive is one that comes with the program
            let named = named.filter(|name| key == "kernel" || name.ends_with(".toml"));
            let is_elsewhere = |path: &&Path| path.is_relative() && path.is_file();
            if let Some(named) = named.map(Path::new).filter(is_elsewhere) {
                return Err(Failure::Failed(format!(
                    "{file} names {} by a path that leads elsewhere on a worker: give it from the root, or describe \
                     the stack in the sweep",
                    named.display()
                )));
            }
        }
    }
    Ok(())
}

/// The directory of the call.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    let failed = |error| Failure::Failed(format!("the current directory is not known: {error}"));
    std::env::current_dir().map_err(failed)
}

/// This machine can hold each point.
fn check_memory(sweep: &Sweep, calls: &[Call]) -> Result<(), Failure> {
    let room = memory::room();
    let mut each = sweep.points().iter().zip(calls);
    each.try_for_each(|(point, call)| call.check_memory(point, room))
}

fn list(sweep: &Sweep) -> Result<(), Failure> {
    let command = sweep.command.name();
    let line = |point: &Point| {
        format!(
            "{:6} dovetail {command} {}\n",
            point.number,
            sweep.arguments(point, None).join(" ")
        )
    };
    print(&sweep.points().iter().map(line).collect::<String>())
}

/// Performs a point of a sweep away from its folder. `None` if it was stopped.
///
/// # Errors
/// Arguments that make no sense: those of a point that failed are in its record.
pub(crate) fn perform_point(
    sweep: &Sweep,
    point: &Point,
    stop: &AtomicBool,
) -> Result<Option<(Record, Option<String>)>, Failure> {
    // its files have their paths from the root already
    let described = described(sweep, Path::new("/"))?;
    let call = Call::of(sweep, point, described.as_ref().map(TempDir::path))?;
    let drives = Prepared::within(memory::in_all());
    call.new_drives()?.iter().for_each(|drive| drives.expect(drive));
    Ok(outcome(&call, sweep.series, stop, &drives).into_record(point))
}

fn outcome(call: &Call, with_series: bool, stop: &AtomicBool, drives: &Prepared) -> Outcome {
    let measured = catch_unwind(AssertUnwindSafe(|| call.measure(stop, drives)));
    let fault = |_| {
        let message = "an internal fault, described on standard error; please report it";
        Failure::Failed(message.into())
    };
    let measured = measured.map_err(fault).and_then(|measured| measured);
    if stop.load(Ordering::Relaxed) {
        return Outcome::Stopped;
    }
    match measured.and_then(|results| kept(&results, with_series)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Three traces on twenty drives: by the axes, and by a point's inputs.
    fn sweeps(folder: &Path) -> [Sweep; 2] {
        let trace = |name: &str, step: u64| {
            let line = |n: u64| format!("/f write {} 4096\n", n * step % 3000 * 4096);
            let lines: String = (0..2000).map(line).collect();
            let path = folder.join(name);
            std::fs::write(&path, format!("fio version 2 iolog\n/f add\n/f open\n{lines}"))
                .unwrap();
            path.display().to_string()
        };
        let traces = [trace("a.iolog", 1), trace("b.iolog", 7), trace("c.iolog", 1013)];
        let head =
            "[options]\ndrive = 'femu-32g'\nprecondition = true\nscale = '1/1024'\nwrap = true\n";
        let drives = "op = [40, 50, 60, 70, 80]\nseed = { from = 1, to = 4 }\n";
        let depths = "queue-depth = [1, 4, 16]\n";
        let of = |inputs: &[String], axes: &str| {
            let inputs = format!("command = 'replay'\ninputs = {inputs:?}\n");
            let text = format!("{inputs}{head}[axes]\n{axes}[keep]\nseries = true\n");
            Sweep::parse(&text, "test.toml").unwrap()
        };
        [of(&traces[..1], &format!("{depths}{drives}")), of(&traces, drives)]
    }

    /// The table and the whole results of a sweep.
    fn performed(sweep: &Sweep, drives: &Prepared, threads: usize) -> Vec<String> {
        let (calls, stop) = (Calls::of(sweep).unwrap(), AtomicBool::new(false));
        let points = Points { sweep, calls: &calls.all, drives, threads, stop: &stop };
        let results = tempfile::tempdir().unwrap();
        let folder = Folder::open(results.path(), sweep, "test", Shard::WHOLE).unwrap();
        let done = points.perform((&folder, Shard::WHOLE), false, |_, _| {}).unwrap();
        let records = folder.records().unwrap();
        assert_eq!((done.now, done.failed), (sweep.points().len(), 0), "{records:?}");
        let series = std::fs::read_dir(results.path().join("series")).unwrap();
        let mut files: Vec<PathBuf> = series.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let whole = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
        whole.chain([table(sweep, &records).unwrap()]).collect()
    }

    #[test]
    fn points_that_share_drives_have_the_results_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        for sweep in sweeps(folder.path()) {
            let alone = Prepared::none();
            let expected = performed(&sweep, &alone, 2);
            assert_eq!(alone.aged(), 60);
            for threads in [1, 2] {
                let drives = Prepared::within(4 << 30);
                assert!(performed(&sweep, &drives, threads) == expected, "{threads}");
                assert_eq!(drives.aged(), 20, "{threads}");
            }
        }
    }
}
