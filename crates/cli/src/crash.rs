//! `dovetail crash`: power cuts of whole stacks, explored and explained.

mod table;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use dovetail_crash::{
    CrashError, CrashResults, Cuts, Exploration, Progress, Source, ace, language,
};
use dovetail_lab::bench::{BenchError, Source as Job, Stack};
use dovetail_time::{did_you_mean, format_bytes, parse_bytes};
use dovetail_workload::personality::builtin_personalities;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{Outputs, check_writable, is_stdout, write};
use crate::signals::stop_flag;
use crate::{Failure, print};

/// Text below the options' help.
const JOBS: &str = "\
JOB is one of
  ace-1        all sequences of an operation and an fsync, fdatasync or sync, as
               CrashMonkey's ACE
  ace-2        sequences of two, --count of them
  random       random operations, a run for each seed of --seeds
  a text file  of operations, one a line (create, write, fsync, ...), played
               with three clocks
  a fio job, a personality's name, or a file-level trace, as in `dovetail bench`";

/// Cut the power of whole stacks and hold what is left against what was promised.
///
/// A workload is played on each stack (file system over drive) in virtual time. At many moments the
/// power is cut: the drive loses its volatile memory, programs and erases under way are torn. What
/// is left is recovered, mounted, checked, and compared with what fsync, sync and the design
/// promise. What no promise explains is a violation; the exit code is 1 then.
#[derive(Debug, Args)]
#[command(after_help = JOBS)]
pub(crate) struct Arguments {
    /// The workload: one of those below.
    job: String,
    /// Stacks by name (see `dovetail stack list`) or .toml file.
    #[arg(long, short, required = true, value_delimiter = ',')]
    stack: Vec<String>,
    /// Moments that are cut: all, or N of each run chosen by the seed, and each return of an fsync
    /// or sync.
    #[arg(long, value_name = "N|all", default_value = "8", value_parser = cuts)]
    cuts: Cuts,
    /// Of ace-2: how many sequences, spread evenly over all [default: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Of random: the seeds, from the first up to, but without, the last [default: 0..30].
    #[arg(long, value_name = "FROM..TO", value_parser = seeds)]
    seeds: Option<(u64, u64)>,
    /// Operations of each run of random [default: 120], calls of a job at most [default: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// A variable of the job file, or a parameter of the personality.
    #[arg(long = "set", short = 'D', value_name = "NAME=VALUE", value_parser = crate::bench::assignment)]
    variables: Vec<(String, String)>,
    /// Play only part I of N of the runs, so that an exploration can be divided: 1/40, 2/40, ...
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = part)]
    part: (u64, u64),
    /// Size of the drives: small, so that they clean all the time.
    #[arg(long, value_name = "BYTES", default_value = "52MiB", value_parser = drive_size)]
    drive_size: u64,
    /// Page cache of each stack, from 64 KiB on: a small one has the background write back parts of
    /// files [default: the stack's own, smaller by as much as the drive].
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    memory: Option<u64>,
    /// Seeds the choice of cuts and the drives.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ask the file system's own checker as well (fsck.f2fs, e2fsck), about every volume. Slow.
    #[arg(long)]
    referee: bool,
    /// Play one cut again, as a violation names it, and show its operations.
    #[arg(long, value_name = "ID", conflicts_with_all = ["json", "report"])]
    replay: Option<String>,
    /// Runs at the same time; all cores if not given.
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Results as JSON: --json FILE to a file, --json alone to standard output in place of the
    /// table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    json: Option<PathBuf>,
    /// A report with pictures: one HTML file that needs nothing else.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
}

fn cuts(text: &str) -> Result<Cuts, String> {
    match text {
        "all" => Ok(Cuts::All),
        text => text.parse().map(Cuts::Sampled).map_err(|_| "give a number, or all".into()),
    }
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let parsed =
        text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    const MOST: u64 = 1_000_000;
    let seeds = parsed.filter(|(from, to)| from < to && to - from <= MOST);
    seeds.ok_or_else(|| "give two numbers, as in 0..30, at most a million apart".into())
}

/// A size within these; `advice` is for others.
fn size(text: &str, within: RangeInclusive<u64>, advice: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    if within.contains(&bytes) { Ok(bytes) } else { Err(advice.into()) }
}

fn memory(text: &str) -> Result<u64, String> {
    size(text, 64 << 10..=1 << 40, "give 64 KiB to 1 TiB")
}

fn drive_size(text: &str) -> Result<u64, String> {
    let advice = "give 16 MiB to 1 GiB (F2FS needs 52 MiB): every cut copies the drive";
    size(text, 16 << 20..=1 << 30, advice)
}

/// The part that is all.
const WHOLE: (u64, u64) = (0, 1);

/// A part, counted from 0, and the number of parts.
fn part(text: &str) -> Result<(u64, u64), String> {
    let parsed =
        text.split_once('/').and_then(|(i, n)| Some((i.parse::<u64>().ok()?, n.parse().ok()?)));
    let part = parsed.filter(|(i, n)| (1..=*n).contains(i)).map(|(i, n)| (i - 1, n));
    part.ok_or_else(|| "give I/N, I from 1 to N, as in 3/40".into())
}

/// Bytes of a file of operations at most.
const MOST_TEXT: u64 = 16 << 20;

/// Refuses options of another job.
fn check_options(arguments: &Arguments) -> Result<(), Failure> {
    let of_jobs = [
        ("--count", arguments.count.is_some(), "ace-2"),
        ("--seeds", arguments.seeds.is_some(), "random"),
    ];
    let stray = |(_, is_given, job): &(&str, bool, &str)| *is_given && arguments.job != *job;
    match of_jobs.into_iter().find(stray) {
        None => Ok(()),
        Some((option, _, job)) => Err(Failure::Usage(format!("{option} is for the job {job}"))),
    }
}

/// Refuses options of a job that is made of calls for one that is made of operations.
fn check_list_options(arguments: &Arguments) -> Result<(), Failure> {
    let given = [
        ("--steps", arguments.steps.is_some() && arguments.job != "random"),
        ("--set", !arguments.variables.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::Usage(format!("{option} is not for the job {}", arguments.job)))
        }
    }
}

fn source(arguments: &Arguments) -> Result<Source, Failure> {
    check_options(arguments)?;
    let source = find_source(arguments)?;
    if !matches!(source, Source::Job { .. }) {
        check_list_options(arguments)?;
    }
    Ok(source)
}

/// Jobs of lists of operations, by their names.
const LISTS: [&str; 3] = ["ace-1", "ace-2", "random"];

fn find_source(arguments: &Arguments) -> Result<Source, Failure> {
    let lists =
        |name: &str, lists, every_clock| Source::Lists { name: name.into(), lists, every_clock };
    match arguments.job.as_str() {
        "ace-1" => return Ok(lists("ace-1", ace::sequences_of_one(), true)),
        "ace-2" => {
            let count = arguments.count.unwrap_or(1000);
            return Ok(lists("ace-2", ace::sequences_of_two(count), false));
        }
        "random" => {
            let (from, to) = arguments.seeds.unwrap_or((0, 30));
            return Ok(Source::Random { seeds: from..to, steps: arguments.steps.unwrap_or(120) });
        }
        _ => {}
    }
    let path = Path::new(&arguments.job);
    if let Some(text) = operations(path)? {
        let actions = language::parse(&text)
            .map_err(|error| Failure::Failed(format!("{}, {error}", path.display())))?;
        let name =
            path.file_stem().map_or_else(|| "operations".into(), |name| name.to_string_lossy());
        return Ok(lists(&name, vec![actions], true));
    }
    let known = || LISTS.into_iter().chain(builtin_personalities());
    let job = &arguments.job;
    if !path.exists() && job != "-" && known().all(|name| name != job) {
        return Err(Failure::Failed(format!(
            "there is no file {job}, and no job of that name{} (there are {})",
            did_you_mean(job, known()),
            known().collect::<Vec<_>>().join(", ")
        )));
    }
    let job: Job = crate::bench::load_source(job, &arguments.variables)?;
    Ok(Source::Job { job: Box::new(job), calls: arguments.steps.unwrap_or(1000) })
}

/// The text of a file that holds operations.
fn operations(path: &Path) -> Result<Option<String>, Failure> {
    use std::io::Read;
    let Ok(file) = std::fs::File::open(path) else { return Ok(None) };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MOST_TEXT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Failed(format!("{} cannot be read: {error}", path.display())))?;
    let text = String::from_utf8(bytes).ok().filter(|text| language::is_one(text));
    if text.as_ref().is_some_and(|text| text.len() as u64 > MOST_TEXT) {
        return Err(Failure::Failed(format!(
            "{} is longer than 16 MiB of operations",
            path.display()
        )));
    }
    Ok(text)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let source = source(arguments)?;
    let stacks = arguments.stack.iter().map(|name| {
        Stack::load(name).map_err(|error| match error {
            BenchError::UnknownStack(_) => Failure::Usage(error.to_string()),
            _ => Failure::failed(error),
        })
    });
    let stacks = stacks.collect::<Result<Vec<_>, _>>()?;
    check_outputs(arguments)?;
    check_writable([&arguments.json, &arguments.report].into_iter().flatten())?;
    let stop = stop_flag()?;
    let exploration = Exploration {
        source: &source,
        stacks: &stacks,
        cuts: arguments.cuts,
        drive_bytes: arguments.drive_size,
        memory_bytes: arguments.memory,
        seed: arguments.seed,
        part: arguments.part,
        with_referee: arguments.referee,
        stop: &stop,
    };
    if let Some(id) = &arguments.replay {
        return replay(&exploration, id);
    }
    let results = explore(&exploration, arguments.jobs).map_err(Failure::failed)?;
    write_all(arguments, &results)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Failed("stopped; what is shown was found until then".into()));
    }
    let violations: usize = results.stacks.iter().map(|stack| stack.violations.len()).sum();
    match violations {
        0 if arguments.part == WHOLE => check_was_cut(&results),
        0 => Ok(()),
        1 => Err(Failure::Failed("a promise was broken".into())),
        many => Err(Failure::Failed(format!("{many} promises were broken"))),
    }
}

/// A job that wrote nothing has tested nothing.
fn check_was_cut(results: &CrashResults) -> Result<(), Failure> {
    let Some(uncut) = results.stacks.iter().find(|stack| stack.cuts == 0) else { return Ok(()) };
    Err(Failure::Failed(format!(
        "nothing was cut on {}: the {} operations of {} on a drive of {} write nothing; give a \
         longer workload or a larger --drive-size",
        uncut.stack,
        uncut.operations,
        results.workload,
        format_bytes(results.drive_bytes)
    )))
}

/// No output takes the place of an input or of another one.
fn check_outputs(arguments: &Arguments) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    arguments
        .stack
        .iter()
        .chain([&arguments.job])
        .for_each(|input| outputs.input(Path::new(input)));
    let given = [("--json", &arguments.json), ("--report", &arguments.report)];
    given
        .into_iter()
        .try_for_each(|(flag, path)| path.iter().try_for_each(|path| outputs.output(flag, path)))
}

fn explore(exploration: &Exploration<'_>, jobs: Option<usize>) -> Result<CrashResults, CrashError> {
    let threads =
        jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let progress = Progress::default();
    let done = AtomicBool::new(false);
    /// Ends the progress bar's thread, also when a run panics.
    struct Ended<'a>(&'a AtomicBool);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let bar = ProgressBar::new(exploration.count()).with_message("0");
    if let Ok(style) =
        ProgressStyle::with_template("{bar:24} {pos}/{len} runs, {msg} cuts, {eta} left")
    {
        bar.set_style(style);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                bar.set_position(progress.runs.load(Ordering::Relaxed));
                bar.set_message(progress.cuts.load(Ordering::Relaxed).to_string());
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        });
        let ended = Ended(&done);
        let results = exploration.run(threads, &progress);
        drop(ended);
        bar.finish_and_clear();
        results
    })
}

fn replay(exploration: &Exploration<'_>, id: &str) -> Result<(), Failure> {
    let replayed = exploration.replay(id).map_err(Failure::failed)?;
    print(&replayed.timeline)?;
    match replayed.violation {
        None => print("what was found is explained by the promises\n"),
        Some(what) => Err(Failure::Failed(what)),
    }
}

fn write_all(arguments: &Arguments, results: &CrashResults) -> Result<(), Failure> {
    if let Some(path) = &arguments.json {
        let mut text = serde_json::to_string_pretty(results).map_err(Failure::failed)?;
        text.push('\n');
        write(path, &text)?;
    }
    if let Some(path) = &arguments.report {
        write(path, &dovetail_crash::html(results))?;
    }
    match is_stdout(arguments.json.as_deref()) {
        true => Ok(()),
        false => print(&table::text(results)),
    }
}
