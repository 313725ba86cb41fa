//! `dovetail bench`: a workload on several stacks, side by side.

mod fio_json;
mod sensitivity;
mod stacks;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use dovetail_lab::bench::{
    BenchError, Experiment, FileTraceSource, Fill, FillAmount, FillWith, Schedule, Source, Stack,
    new_drives as new_drives_of,
};
use dovetail_lab::results::Results;
use dovetail_lab::{NewDrive, Prepared};
use dovetail_time::Ratio;
use dovetail_workload::file_trace::{
    ClosedLoop, FileTrace, FileTraceError, FileTraceOptions, Pace,
};
use dovetail_workload::personality::{Personality, builtin_personalities};
use dovetail_workload::trace::{TraceOptions, TraceReader};

use crate::arguments::taken;
use crate::call::{Watch, only_a_table};
use crate::choices::{Spare, cache_bytes, caches, schemes};
use crate::output::{Outputs, check_writable, is_stdout};
use crate::progress::Seen;
use crate::provenance::provenance;
use crate::results::ResultFiles;
use crate::signals::{Stop, stop_flag, stopped_after};
use crate::{Failure, drive, memory};

/// Run a workload on several stacks in virtual time, side by side.
///
/// A stack is a file system with its options on a simulated drive (see `dovetail stack list`). The
/// workload is a fio job file, a personality of Filebench's by name or as a .toml file, or a
/// file-level trace, known by its content. The stack raw is a drive without a file system, for fio
/// jobs with filename=/dev/nvme0n1. Several drives or comma-separated options make one run for each
/// combination.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A fio job file of any name (- for standard input), a personality's name (fileserver,
    /// varmail, webserver, oltp, media, office, code), a personality's .toml file, or a file-level
    /// trace (plain, gzip or zstd).
    job: String,
    /// Stacks by name (see `dovetail stack list`) or .toml file.
    #[arg(long, short, required = true, value_delimiter = ',')]
    stack: Vec<String>,
    /// Drives' profiles (see `dovetail drive list`) in place of the stacks' own: a run on each.
    #[arg(long, short, value_name = "PROFILE", value_delimiter = ',', help_heading = "Drive")]
    drive: Vec<String>,
    #[command(flatten)]
    spare: Spare,
    /// Mount options besides those of the stacks, which they override; given several times, a run
    /// with each.
    #[arg(long, value_name = "OPTIONS")]
    mount: Vec<String>,
    /// Mapping scheme, in place of the drives' own; demand is a page map on flash of which a part
    /// is cached.
    #[arg(long, value_name = "SCHEME", value_delimiter = ',', value_parser = schemes(), help_heading = "Drive")]
    map: Vec<String>,
    /// Cache policy of a map that lies on flash: a run for each policy; none for the whole map in
    /// memory.
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = caches(), help_heading = "Drive")]
    cache: Vec<String>,
    /// Bytes of that cache at full scale, 8 for an entry [default: 512 KiB]. Without --cache the
    /// policy is the drive's own, or dftl.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = cache_bytes, help_heading = "Drive")]
    cache_size: Vec<u64>,
    /// Let pointers lead to the drive's own addresses beside the workload, in place of the stacks'
    /// own schedule: every=60s, pressure=8MiB (of the map, at full scale), idle=1s, hot=3s for
    /// files to leave, and unit=metadata-block for the paper's small batches.
    #[arg(long, value_name = "WHEN", value_parser = Schedule::parse)]
    devirtualize: Option<Schedule>,
    /// Shrink the drive, the page cache, the map's cache and the sizes in the job alike.
    #[arg(long, value_name = "RATIO", default_value = "1", value_parser = drive::scale)]
    scale: Ratio,
    /// A variable of the job file, or a parameter of the personality.
    #[arg(long = "set", short = 'D', value_name = "NAME=VALUE", value_parser = assignment)]
    variables: Vec<(String, String)>,
    /// Of a file-level trace: multiply each thread's gaps between calls; 0 is as fast as calls
    /// return [default: 1].
    #[arg(long, value_name = "FACTOR")]
    gaps: Option<f64>,
    /// Of a file-level trace with CPU times: each thread works between its calls for the CPU time
    /// that was recorded, on a host with so many CPUs.
    #[arg(long, value_name = "N", conflicts_with = "gaps")]
    cpus: Option<u32>,
    /// With --cpus: calls by which a thread may be ahead of the order of the trace [default: 1024].
    #[arg(long, value_name = "CALLS", requires = "cpus")]
    lead: Option<u32>,
    /// Of a file-level trace: how often it is made again; 2.5 is two times and a half [default: 1].
    #[arg(long, value_name = "N")]
    loops: Option<f64>,
    /// Of a file-level trace: the scale at which it is made again as it is; at smaller ones its
    /// files and the number of its calls are shrunk.
    #[arg(long, value_name = "RATIO", value_parser = drive::scale)]
    whole_at: Option<Ratio>,
    /// Fill the volume first: a share of the partition (50%), or bytes at full scale (100GiB).
    #[arg(long, value_name = "AMOUNT", value_parser = Fill::amount)]
    fill: Option<FillAmount>,
    /// With which files: as found on people's machines (Impressions, FAST'09), or of 1 GiB each.
    #[arg(long, value_enum, default_value = "impressions", requires = "fill")]
    fill_with: FillFiles,
    /// Fill the drive first, in order and then at random until its write amplification is steady.
    /// Then the volume is made, and its mkfs discards what the partition holds, unless the stack
    /// has it leave that.
    #[arg(long, help_heading = "Drive")]
    precondition: bool,
    /// Run each stack so many times, each time with another seed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Seed of all that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sync the file system when the job has ended, and count what that writes.
    #[arg(long)]
    final_sync: bool,
    /// Cut the power when the job has ended, mount again, and show how long that takes.
    #[arg(long)]
    restart: bool,
    /// Halve and double each cost of the host that is assumed, and show the change of the results
    /// in percent.
    #[arg(long, conflicts_with_all = ["json", "csv", "fio_json", "report", "repeat", "keep_going"])]
    sensitivity: bool,
    /// Runs at the same time; all cores if not given.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Show what there is, even if a run failed or ended early.
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    files: ResultFiles,
    /// Results in the layout of fio's own JSON; with several runs a file each (out.json becomes
    /// out-f2fs.json and so on).
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    fio_json: Option<PathBuf>,
}

/// The files of `--fill`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FillFiles {
    Impressions,
    Large,
}

impl From<FillFiles> for FillWith {
    fn from(files: FillFiles) -> Self {
        match files {
            FillFiles::Impressions => Self::Impressions,
            FillFiles::Large => Self::Large,
        }
    }
}

fn source(arguments: &Arguments) -> Result<Source, Failure> {
    if is_file_trace(&arguments.job) {
        return file_trace(arguments);
    }
    let options = [
        ("--gaps", arguments.gaps.is_some()),
        ("--cpus", arguments.cpus.is_some()),
        ("--loops", arguments.loops.is_some()),
        ("--whole-at", arguments.whole_at.is_some()),
    ];
    if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("{option} is for file-level traces, and {} is none", arguments.job);
        return Err(Failure::Usage(message));
    }
    load_source(&arguments.job, &arguments.variables)
}

/// A file-level trace, by its first lines; what is no file cannot be read twice.
fn is_file_trace(job: &str) -> bool {
    !job.ends_with(".fio") && Path::new(job).is_file() && FileTrace::is_one(Path::new(job))
}

/// A fio job: standard input, or a file that is neither a trace nor a personality. fio takes any
/// name.
fn is_fio_job(job: &str) -> bool {
    let is_other = job.ends_with(".toml") || builtin_personalities().any(|name| name == job);
    let is_there = std::fs::metadata(job).is_ok_and(|found| !found.is_dir());
    job == "-" || job.ends_with(".fio") || (is_there && !is_other && !is_file_trace(job))
}

/// A workload by its file or name, with its variables set; a file-level trace as it is.
pub(crate) fn load_source(job: &str, variables: &[(String, String)]) -> Result<Source, Failure> {
    if is_fio_job(job) {
        let (path, name) = if job == "-" { ("/dev/stdin", "stdin") } else { (job, job) };
        let failed = |error| Failure::Failed(format!("{name} cannot be read: {error}"));
        let text = dovetail_time::read_text(path).map_err(failed);
        let source =
            text.and_then(|text| Source::fio(&text, name, variables).map_err(Failure::failed));
        return source.map_err(|failure| block_trace(job).unwrap_or(failure));
    }
    if is_file_trace(job) {
        check_has_variables(job, variables)?;
        let trace = Arc::new(FileTrace::open(Path::new(job)).map_err(Failure::failed)?);
        return Ok(Source::FileTrace(FileTraceSource {
            trace,
            pace: Pace::Gaps(1.0),
            loops: 1.0,
            whole_at: Ratio::ONE,
        }));
    }
    let mut personality = Personality::load(job).map_err(Failure::failed)?;
    let given = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    personality.set(given).map_err(Failure::failed)?;
    Ok(Source::Personality(Box::new(personality)))
}

/// Sentence about a file that is no job, but a trace of blocks.
fn block_trace(job: &str) -> Option<Failure> {
    let is_one =
        Path::new(job).is_file() && TraceReader::open(job, &TraceOptions::default()).is_ok();
    is_one.then(|| {
        Failure::Failed(format!("{job} is a trace of blocks; play it with `dovetail replay`"))
    })
}

/// A file-level trace has no variables.
fn check_has_variables(trace: &str, variables: &[(String, String)]) -> Result<(), Failure> {
    match variables.first() {
        None => Ok(()),
        Some((name, _)) => Err(Failure::Usage(format!(
            "{trace} is a file-level trace and has no variable '{name}'"
        ))),
    }
}

fn file_trace(arguments: &Arguments) -> Result<Source, Failure> {
    check_has_variables(&arguments.job, &arguments.variables)?;
    let (pace, loops) = (pace(arguments), arguments.loops.unwrap_or(1.0));
    let trace = FileTrace::open(Path::new(&arguments.job)).map_err(Failure::failed)?;
    let options = FileTraceOptions { pace, loops, ..FileTraceOptions::default() };
    options.check(&trace).map_err(|error| match error {
        FileTraceError::Option { .. } => Failure::Usage(format!("--{error}")),
        _ => Failure::failed(error),
    })?;
    Ok(Source::FileTrace(FileTraceSource {
        trace: Arc::new(trace),
        pace,
        loops,
        whole_at: arguments.whole_at.unwrap_or(Ratio::ONE),
    }))
}

fn pace(arguments: &Arguments) -> Pace {
    match arguments.cpus {
        None => Pace::Gaps(arguments.gaps.unwrap_or(1.0)),
        Some(cpus) => {
            Pace::Closed(ClosedLoop { cpus, lead: arguments.lead.unwrap_or(ClosedLoop::LEAD) })
        }
    }
}

/// `NAME=VALUE`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.sensitivity {
        let stop = stop_flag()?;
        let (source, stacks) = (source(arguments)?, stacks::stacks(arguments)?);
        let experiment = experiment(arguments, &source, &stacks, &stop);
        check_experiment(arguments, &experiment)?;
        return sensitivity::run(&experiment, arguments.jobs);
    }
    let (_, complaints) = perform(arguments, taken(), None)?;
    Failure::of_each(&complaints)
}

/// Results of a call from another program; `words` are those of the command line that it stands for.
/// The files that it names are written, and nothing is shown.
///
/// # Errors
/// Arguments that make no sense; a run that cannot begin or, without --keep-going, ends early.
pub(crate) fn called(
    arguments: &Arguments,
    words: &[OsString],
    watch: &Watch<'_>,
) -> Result<Results, Failure> {
    if arguments.sensitivity {
        return Err(only_a_table("--sensitivity"));
    }
    let (results, complaints) = perform(arguments, words, Some(watch))?;
    if complaints.is_empty() || (arguments.keep_going && !results.runs.is_empty()) {
        Ok(results)
    } else {
        Err(Failure::Failed(complaints.join("; ")))
    }
}

/// Performs the runs and writes their results, to the terminal too if nobody else watches. Returns
/// them, and what is to be said of runs that failed.
///
/// # Errors
/// It cannot begin, or was stopped; what there was until then is written.
fn perform(
    arguments: &Arguments,
    words: &[OsString],
    watch: Option<&Watch<'_>>,
) -> Result<(Results, Vec<String>), Failure> {
    let fio_to_stdout = is_stdout(arguments.fio_json.as_deref()).then_some("--fio-json");
    let to_stdout = arguments.files.to_stdout().chain(fio_to_stdout).count();
    if to_stdout > 1 {
        return Err(Failure::Usage(
            "only one of --json, --csv and --fio-json can go to standard output: give the others files"
                .into(),
        ));
    }
    let source = source(arguments)?;
    let stacks = stacks::stacks(arguments)?;
    check_stacks(arguments, &stacks)?;
    arguments.files.check_writable()?;
    let stop = Stop::of(watch)?;
    let experiment = experiment(arguments, &source, &stacks, stop.flag());
    check_experiment(arguments, &experiment)?;
    let labels = experiment.labels();
    let fio_files = match &arguments.fio_json {
        Some(path) => fio_json::files(path, &source, &labels)?,
        None => Vec::new(),
    };
    check_writable(fio_files.iter())?;
    let outputs = check_outputs(arguments, &fio_files)?;
    let seen = Seen::of(labels.clone(), watch);
    let (results, failures) = run_seen(&experiment, arguments.jobs, &seen);
    drop(seen);
    let results = Results { provenance: Some(provenance(words)), ..results };
    let complaints = complaints(&results, &failures);
    let is_worth_keeping = match stop.is_set() {
        true => !results.runs.is_empty(),
        false => complaints.is_empty() || arguments.keep_going,
    };
    // the table is shown though a file cannot be written: the work is not lost
    let mut told = Ok(());
    if is_worth_keeping {
        let is_shown = to_stdout == 0 && watch.is_none();
        told = Failure::all([
            arguments.files.write(&results),
            fio_json::write_all(&fio_files, &labels, &results.runs),
            fio_json::write_logs(&outputs, &results.runs),
            if is_shown { arguments.files.show(&results) } else { Ok(()) },
        ]);
    }
    if stop.is_set() {
        Failure::all([told, Err(stopped_after(results.runs.len()))])?;
    } else if told.is_err() {
        Failure::all([told, Failure::of_each(&complaints)])?;
    }
    Ok((results, complaints))
}

/// Refuses before any run a workload that a stack cannot take.
fn check_experiment(arguments: &Arguments, experiment: &Experiment<'_>) -> Result<(), Failure> {
    if !arguments.keep_going {
        experiment.check().map_err(Failure::failed)?;
    }
    check_memory(experiment, arguments.jobs)
}

fn run_seen(
    experiment: &Experiment<'_>,
    jobs: Option<usize>,
    seen: &Seen<'_>,
) -> (Results, Vec<BenchError>) {
    let tell = |number, progress| seen.tell(number, progress);
    let drives = Prepared::within(room_for_copies(experiment, threads(jobs)));
    if experiment.precondition {
        let runs = (experiment.seed, experiment.repetitions);
        let new = new_drives_of(experiment.stacks, experiment.scale, runs);
        new.into_iter().flatten().for_each(|drive| drives.expect(&drive));
    }
    let experiment = Experiment { progress: &tell, drives: &drives, ..*experiment };
    experiment.run(threads(jobs), &|number| seen.done(number))
}

/// Results of a call that is one of many: nothing is shown or written, and its runs come one after
/// the other.
///
/// # Errors
/// Arguments that make no sense, a run that cannot begin or that ends early.
pub(crate) fn measure(
    arguments: &Arguments,
    stop: &AtomicBool,
    drives: &Prepared,
) -> Result<Results, Failure> {
    let source = source(arguments)?;
    let stacks = stacks::stacks(arguments)?;
    let experiment = Experiment { drives, ..experiment(arguments, &source, &stacks, stop) };
    let (results, failures) = experiment.run(1, &|_| {});
    let complaints = complaints(&results, &failures);
    if complaints.is_empty() { Ok(results) } else { Err(Failure::Failed(complaints.join("; "))) }
}

/// The drives that the runs of a call begin with preconditioned, one for each run.
///
/// # Errors
/// Arguments that make no sense.
pub(crate) fn new_drives(arguments: &Arguments) -> Result<Vec<NewDrive>, Failure> {
    if !arguments.precondition {
        return Ok(Vec::new());
    }
    let runs = (arguments.seed, arguments.repeat);
    let stacks = stacks::stacks(arguments)?;
    new_drives_of(&stacks, arguments.scale, runs).map_err(Failure::failed)
}

/// Refuses arguments that make no sense, without running anything. A recorded trace is read only
/// `with_trace`: it may be long, and options do not change it.
///
/// # Errors
/// Such arguments.
pub(crate) fn check(arguments: &Arguments, with_trace: bool) -> Result<(), Failure> {
    if with_trace || !is_file_trace(&arguments.job) {
        source(arguments)?;
    }
    check_stacks(arguments, &stacks::stacks(arguments)?)
}

fn check_stacks(arguments: &Arguments, stacks: &[Stack]) -> Result<(), Failure> {
    match stacks.iter().find(|stack| arguments.restart && stack.is_raw()) {
        None => Ok(()),
        Some(raw) => Err(Failure::Usage(format!(
            "--restart mounts a file system again, and stack {} has none: leave it out",
            raw.name
        ))),
    }
}

/// Bytes of memory that such a call takes: those of its largest drive.
///
/// # Errors
/// Arguments that make no sense.
pub(crate) fn memory_of(arguments: &Arguments) -> Result<u64, Failure> {
    let stacks = stacks::stacks(arguments)?;
    let drives = stacks
        .iter()
        .map(|stack| stack.drive_config(arguments.scale, arguments.seed).map_err(Failure::failed));
    Ok(memory::of(drives.collect::<Result<Vec<_>, _>>()?.iter()))
}

fn experiment<'a>(
    arguments: &Arguments,
    source: &'a Source,
    stacks: &'a [Stack],
    stop: &'a AtomicBool,
) -> Experiment<'a> {
    static NONE: Prepared = Prepared::none();
    Experiment {
        source,
        fill: arguments.fill.map(|amount| Fill { amount, with: arguments.fill_with.into() }),
        stacks,
        scale: arguments.scale,
        seed: arguments.seed,
        repetitions: arguments.repeat,
        stop,
        precondition: arguments.precondition,
        drives: &NONE,
        final_sync: arguments.final_sync,
        restart: arguments.restart,
        progress: &|_, _| {},
        finished: None,
    }
}

/// No output takes the place of an input or of another one.
fn check_outputs(arguments: &Arguments, fio_files: &[PathBuf]) -> Result<Outputs, Failure> {
    let mut outputs = Outputs::default();
    let named = arguments.stack.iter().chain(&arguments.drive).chain([&arguments.job]);
    named.for_each(|input| outputs.input(Path::new(input)));
    arguments.files.check(&mut outputs)?;
    fio_files.iter().try_for_each(|path| outputs.output("--fio-json", path))?;
    Ok(outputs)
}

/// All drives that are there at a time fit into memory.
fn check_memory(experiment: &Experiment<'_>, jobs: Option<usize>) -> Result<(), Failure> {
    let config = |stack: &Stack| {
        stack.drive_config(experiment.scale, experiment.seed).map_err(Failure::failed)
    };
    let stacks = experiment.stacks;
    let drives = stacks.iter().map(config).collect::<Result<Vec<_>, _>>()?;
    let repetitions = experiment.repetitions.max(1) as usize;
    let each = drives.iter().flat_map(|drive| std::iter::repeat_n(drive, repetitions));
    // a workload that cannot be run says so when it is
    let less = |run: usize| experiment.memory_bytes(&stacks[run / repetitions]).ok();
    memory::check(each, threads(jobs), less)
}

/// Runs at the same time.
pub(crate) fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Bytes for drives that are kept for further runs of an experiment.
fn room_for_copies(experiment: &Experiment<'_>, threads: usize) -> u64 {
    let drive = |stack: &Stack| stack.drive_config(experiment.scale, experiment.seed).ok();
    let drives: Vec<_> = experiment.stacks.iter().filter_map(drive).collect();
    memory::for_copies(drives.iter(), threads)
}

/// Error messages of runs that could not begin, and of those that ended early.
fn complaints(results: &Results, failures: &[BenchError]) -> Vec<String> {
    let mut all: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let early = results
        .runs
        .iter()
        .filter_map(|run| Some(format!("{}: {}", run.label, run.error.as_ref()?)));
    all.extend(early);
    all.dedup();
    all
}
