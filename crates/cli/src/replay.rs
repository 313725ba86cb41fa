//! `dovetail replay`: one run for each combination of trace, drive and options.

mod sensitivity;
mod spool;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use dovetail_ftl::{Overrides, Profile};
use dovetail_lab::replay::{Pacing, ReplayError, ReplayJob, memory_bytes, replay_shared};
use dovetail_lab::results::{OptionsResult, Results, RunResult};
use dovetail_lab::{HostCosts, NewDrive, Prepared, order, run_in_order};
use dovetail_time::{Ratio, SimSpan, format_bytes, parse_span};
use dovetail_workload::trace::{BlkEvent, Format, TraceOptions};

use crate::arguments::taken;
use crate::bench::threads;
use crate::call::{Watch, only_a_table};
use crate::choices::{Spare, bytes, cache_bytes, caches, choices, schemes};
use crate::output::Outputs;
use crate::progress::Seen;
use crate::provenance::provenance;
use crate::results::ResultFiles;
use crate::signals::{Stop, stopped_after};
use crate::{Failure, drive, memory};
use spool::Spool;

fn speed(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|s| (1e-6..=1e6).contains(s));
    number.ok_or_else(|| {
        "give a number from 0.000001 to 1000000: 2 is twice as fast as recorded".into()
    })
}

fn spare_percent(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|percent| (0.0..=1000.0).contains(percent));
    number.ok_or_else(|| "give a number from 0 to 1000: 7 keeps 7 % of the host's blocks".into())
}

fn span(text: &str) -> Result<SimSpan, String> {
    let span = parse_span(text).ok().filter(|span| *span > SimSpan::ZERO);
    span.ok_or_else(|| "give a time with its unit: 100ms, 5s, 250us".into())
}

/// Replay block traces on simulated drives, side by side.
///
/// Several traces, drives or comma-separated options make one run for each combination. Requests
/// are issued at their recorded times; --queue-depth replays in a closed loop instead.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// Trace files: blkparse text, fio iolog, MSR, Alibaba, Tencent or MQSim; plain, gzip or zstd;
    /// - is standard input.
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Drive profiles by name (see `dovetail drive list`) or .toml file.
    #[arg(long, short, required = true, value_delimiter = ',')]
    drive: Vec<String>,
    /// Shrink the drive's capacity and keep its ratios.
    #[arg(long, value_name = "RATIO", value_parser = drive::scale)]
    scale: Option<Ratio>,
    #[command(flatten)]
    spare: Spare,
    /// Mapping scheme, in place of the profile's; demand is a page map on flash of which a part is
    /// cached (see --cache).
    #[arg(long, value_name = "SCHEME", value_delimiter = ',', value_parser = schemes(), help_heading = "Drive")]
    map: Vec<String>,
    /// Cache policy of a map that lies on flash, whichever scheme it has; none for the whole map in
    /// memory.
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = caches(), help_heading = "Drive")]
    cache: Vec<String>,
    /// Bytes of that cache, 8 for an entry [default: the profile's, or 512 KiB]. Without --cache the
    /// policy is the profile's, or dftl.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = cache_bytes, help_heading = "Drive")]
    cache_size: Vec<u64>,
    /// Volatile write buffer, in place of the profile's; 0 for none.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = bytes, help_heading = "Drive")]
    buffer: Vec<u64>,
    /// Vary each assumed figure of the drive instead: halved and doubled, one run for each, as
    /// changes in percent.
    #[arg(long, help_heading = "Drive", conflicts_with_all = ["op", "gc", "map", "cache", "cache_size", "buffer", "json", "csv", "report"])]
    sensitivity: bool,
    /// Fill the drive first, in order and then at random until its write amplification is steady.
    #[arg(long, help_heading = "Drive")]
    precondition: bool,
    /// Format of the traces; found out from their first lines if not given.
    #[arg(long, help_heading = "Trace", value_parser = Format::from_str)]
    format: Option<Format>,
    /// Event of blkparse that is a request: Q (queued), I (inserted), D (dispatched) or C
    /// (completed).
    #[arg(long, default_value = "D", help_heading = "Trace", value_parser = BlkEvent::from_str)]
    event: BlkEvent,
    /// Only this device, disk or volume of a trace that has several.
    #[arg(long, help_heading = "Trace")]
    device: Option<String>,
    /// Leave out lines that cannot be read, and count them.
    #[arg(long, help_heading = "Trace")]
    skip_bad: bool,
    /// Fold addresses beyond the drive's end into it.
    #[arg(long, help_heading = "Trace")]
    wrap: bool,
    /// Play the trace on drives with zones through a log in the host, which maps blocks and cleans
    /// zones; it keeps so many percent for itself. Without it a write that is not at a zone's write
    /// pointer ends the replay.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "7", value_parser = spare_percent, help_heading = "Trace")]
    zone_translate: Option<f64>,
    /// Replay so many times faster than recorded.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed, help_heading = "Replay")]
    speed: f64,
    /// Replay in a closed loop with so many requests in flight, whatever their recorded times.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536), conflicts_with = "speed", help_heading = "Replay")]
    queue_depth: Option<u32>,
    /// Put a host before the drive, with the costs and limits that stacks have by default; some of
    /// them may be given: --host=queue_depth=32,request_ns=1000 (`dovetail help host-model`). Without
    /// it requests reach the drive as they are.
    #[arg(long, value_name = "COSTS", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = HostCosts::parse, help_heading = "Replay")]
    host: Option<HostCosts>,
    /// End after so many requests.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Replay")]
    limit: Option<u64>,
    /// Seed of all that is random.
    #[arg(long, default_value_t = 1, help_heading = "Replay")]
    seed: u64,
    /// Runs at the same time; all cores if not given.
    #[arg(long, short, value_name = "N", help_heading = "Replay")]
    jobs: Option<usize>,
    /// Length of the intervals of the time series; if not given, one that makes 256 to 512 of them.
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Output")]
    interval: Option<SimSpan>,
    #[command(flatten)]
    files: ResultFiles,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.sensitivity {
        let (_spool, arguments) = spooled(arguments)?;
        return sensitivity::run(&arguments);
    }
    let (_, failed) = perform(arguments, taken(), None)?;
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(failed.join("\ndovetail: "))) }
}

/// Results of a call from another program; `words` are those of the command line that it stands for.
/// The files that it names are written, and nothing is shown.
///
/// # Errors
/// Arguments that make no sense; a run that fails.
pub(crate) fn called(
    arguments: &Arguments,
    words: &[OsString],
    watch: &Watch<'_>,
) -> Result<Results, Failure> {
    if arguments.sensitivity {
        return Err(only_a_table("--sensitivity"));
    }
    let (results, failed) = perform(arguments, words, Some(watch))?;
    if failed.is_empty() { Ok(results) } else { Err(Failure::Failed(failed.join("; "))) }
}

/// The arguments with traces that are files, and where those lie that were none.
fn spooled(arguments: &Arguments) -> Result<(Spool, Arguments), Failure> {
    let mut spool = Spool::of(&arguments.traces)?;
    let traces = std::mem::take(&mut spool.traces);
    Ok((spool, Arguments { traces, ..arguments.clone() }))
}

/// Performs the replays and writes their results, to the terminal too if nobody else watches. Returns
/// them, and what is to be said of those that failed.
///
/// # Errors
/// It cannot begin, or was stopped; what there was until then is written.
fn perform(
    arguments: &Arguments,
    words: &[OsString],
    watch: Option<&Watch<'_>>,
) -> Result<(Results, Vec<String>), Failure> {
    let to_stdout = arguments.files.to_stdout().count();
    if to_stdout > 1 {
        return Err(Failure::Usage(
            "--json and --csv cannot both go to standard output: give one a file".into(),
        ));
    }
    let (_spool, arguments) = &spooled(arguments)?;
    let jobs = jobs(arguments)?;
    check_zones(arguments, &jobs)?;
    check_outputs(arguments)?;
    let stop = Stop::of(watch)?;
    let (runs, failed) = replays(&jobs, threads(arguments.jobs), stop.flag(), watch)?;
    let scale = arguments.scale.map_or(1.0, Ratio::value);
    let results = Results {
        provenance: Some(provenance(words)),
        options: Some(options(arguments)),
        ..Results::of(workload(&jobs), scale, arguments.seed, runs)
    };
    // the table is shown though a file cannot be written: the work is not lost
    let mut told = Ok(());
    if !results.runs.is_empty() {
        let is_shown = to_stdout == 0 && watch.is_none();
        told = Failure::all([
            arguments.files.write(&results),
            if is_shown { arguments.files.show(&results) } else { Ok(()) },
        ]);
    }
    let stopped = if stop.is_set() { Err(stopped_after(results.runs.len())) } else { Ok(()) };
    Failure::all([told, stopped]).map(|()| (results, failed))
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
    let jobs = jobs(arguments)?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let turns: Vec<_> = jobs.iter().map(|job| drives.turn(job.new_drive())).collect();
    let runs = jobs.iter().zip(&turns);
    let runs = runs.map(|(job, turn)| replay_shared(job, turn, &is_stopped, &mut |_| {}));
    let runs = runs.collect::<Result<Vec<_>, _>>().map_err(Failure::failed)?;
    let scale = arguments.scale.map_or(1.0, Ratio::value);
    let results = Results::of(workload(&jobs), scale, arguments.seed, runs);
    Ok(Results { options: Some(options(arguments)), ..results })
}

/// The drives that the runs of a call begin with preconditioned, one for each run.
///
/// # Errors
/// Arguments that make no sense.
pub(crate) fn new_drives(arguments: &Arguments) -> Result<Vec<NewDrive>, Failure> {
    let jobs = if arguments.precondition { jobs(arguments)? } else { Vec::new() };
    Ok(jobs.iter().map(ReplayJob::new_drive).collect())
}

/// Refuses arguments that make no sense, without running anything.
///
/// # Errors
/// Such arguments.
pub(crate) fn check(arguments: &Arguments) -> Result<(), Failure> {
    check_zones(arguments, &jobs(arguments)?)
}

fn check_zones(arguments: &Arguments, jobs: &[ReplayJob]) -> Result<(), Failure> {
    if arguments.zone_translate.is_some() && jobs.iter().all(|job| job.zone_log.is_none()) {
        return Err(Failure::Usage(
            "--zone-translate is for drives with zones, and none of these has any".into(),
        ));
    }
    Ok(())
}

/// Bytes of memory that such a call takes: those of its largest drive.
///
/// # Errors
/// Arguments that make no sense.
pub(crate) fn memory_of(arguments: &Arguments) -> Result<u64, Failure> {
    Ok(memory::of(jobs(arguments)?.iter().map(|job| &job.drive)))
}

/// The options that decide the results and stand nowhere else in them.
fn options(arguments: &Arguments) -> OptionsResult {
    OptionsResult {
        precondition: arguments.precondition,
        wrap: arguments.wrap,
        skip_bad: arguments.skip_bad,
        limit: arguments.limit,
        event: Some(arguments.event.to_string()),
        device: arguments.device.clone(),
        interval_s: arguments.interval.map(SimSpan::as_secs_f64),
        ..OptionsResult::default()
    }
}

/// Performs the jobs in parallel; returns the results in their order, and what the others say. Once
/// `stop` is set, of those under way what they have is a result, and others are left out.
///
/// # Errors
/// There is not enough memory.
fn replays(
    jobs: &[ReplayJob],
    threads: usize,
    stop: &AtomicBool,
    watch: Option<&Watch<'_>>,
) -> Result<(Vec<RunResult>, Vec<String>), Failure> {
    // a trace that cannot be read is said when it is replayed
    let less = |index: usize| memory_bytes(&jobs[index]).ok();
    memory::check(jobs.iter().map(|job| &job.drive), threads, less)?;
    let room = memory::for_copies(jobs.iter().map(|job| &job.drive), threads);
    let (drives, order) = shared(jobs, Prepared::within(room), threads);
    let seen = Seen::of(jobs.iter().map(|job| job.label.clone()).collect(), watch);
    Ok(perform_shared(jobs, (&drives, &order), threads, stop, &seen))
}

/// The same with preconditioned drives, and in this order.
fn perform_shared(
    jobs: &[ReplayJob],
    (drives, order): (&Prepared, &[usize]),
    threads: usize,
    stop: &AtomicBool,
    seen: &Seen<'_>,
) -> (Vec<RunResult>, Vec<String>) {
    let is_stopped = || stop.load(Ordering::Relaxed);
    let outcomes = run_in_order(jobs, order, threads, |index, job| {
        let turn = drives.turn(job.new_drive());
        let mut tell = |progress| seen.tell(index, progress);
        let begun = (!is_stopped()).then(|| replay_shared(job, &turn, &is_stopped, &mut tell));
        seen.done(index);
        match begun {
            None | Some(Err(ReplayError::Stopped)) => None,
            Some(outcome) => Some(outcome.map_err(|error| spool::shown(&error.to_string()))),
        }
    });
    let outcomes: Vec<_> = outcomes.into_iter().flatten().collect();
    let (done, failed): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    let mut messages: Vec<String> = failed.into_iter().filter_map(Result::err).collect();
    messages.dedup();
    (done.into_iter().flatten().collect(), messages)
}

/// Preconditioned drives for these jobs, and the order in which the jobs begin.
fn shared(jobs: &[ReplayJob], drives: Prepared, threads: usize) -> (Prepared, Vec<usize>) {
    let new = |job: &ReplayJob| job.precondition.then(|| job.new_drive());
    jobs.iter().filter_map(new).for_each(|drive| drives.expect(&drive));
    let number = |job: &ReplayJob| drives.numbers(&[new(job)?]).pop();
    let numbers: Vec<_> = jobs.iter().map(number).collect();
    (drives, order(&numbers, threads))
}

/// Checks the outputs before the work: they can be written, and replace no input.
fn check_outputs(arguments: &Arguments) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    arguments.traces.iter().for_each(|trace| outputs.input(trace));
    arguments.drive.iter().for_each(|drive| outputs.input(Path::new(drive)));
    arguments.files.check(&mut outputs)?;
    arguments.files.check_writable()
}

/// The names of all traces.
fn workload(jobs: &[ReplayJob]) -> String {
    let mut names: Vec<String> = jobs.iter().map(ReplayJob::trace_name).collect();
    names.dedup();
    names.join(", ")
}

fn jobs(arguments: &Arguments) -> Result<Vec<ReplayJob>, Failure> {
    let mut jobs = Vec::new();
    for trace in &arguments.traces {
        for name in &arguments.drive {
            let profile = drive::load(name)?;
            for overrides in all_overrides(arguments) {
                jobs.push(job(arguments, trace, &profile, name, &overrides)?);
            }
        }
    }
    number_labels(&mut jobs);
    Ok(jobs)
}

/// Runs of one label get a number behind it.
fn number_labels(jobs: &mut [ReplayJob]) {
    let labels: Vec<String> = jobs.iter().map(|job| job.label.clone()).collect();
    for (index, job) in jobs.iter_mut().enumerate() {
        let is_same = |label: &&String| **label == labels[index];
        if labels.iter().filter(is_same).count() > 1 {
            let number = labels[..=index].iter().filter(is_same).count();
            job.label += &format!(" ({number})");
        }
    }
}

fn all_overrides(arguments: &Arguments) -> Vec<Overrides> {
    let mut all = Vec::new();
    for map in choices(&arguments.map) {
        for gc in choices(&arguments.spare.gc) {
            for over_provisioning in choices(&arguments.spare.op) {
                for buffer in choices(&arguments.buffer) {
                    all.push(Overrides {
                        scale: arguments.scale,
                        over_provisioning,
                        gc: gc.clone(),
                        map: map.clone(),
                        buffer,
                        seed: arguments.seed,
                        ..Overrides::default()
                    });
                }
            }
        }
    }
    let each = |overrides: &Overrides| with_caches(arguments, overrides);
    all.iter().flat_map(each).collect()
}

fn with_caches(arguments: &Arguments, overrides: &Overrides) -> Vec<Overrides> {
    let sizes = choices(&arguments.cache_size);
    let of_policy = |cache: Option<String>| {
        let with = move |&cache_size: &Option<u64>| Overrides {
            cache: cache.clone(),
            cache_size,
            ..overrides.clone()
        };
        sizes.iter().map(with).collect::<Vec<_>>()
    };
    choices(&arguments.cache).into_iter().flat_map(of_policy).collect()
}

fn job(
    arguments: &Arguments,
    trace: &Path,
    profile: &Profile,
    name: &str,
    overrides: &Overrides,
) -> Result<ReplayJob, Failure> {
    let pacing = match arguments.queue_depth {
        Some(depth) => Pacing::Closed { depth },
        None => Pacing::Timed { speed: arguments.speed },
    };
    let drive = profile.resolve(overrides).map_err(Failure::failed)?;
    Ok(ReplayJob {
        zone_log: arguments.zone_translate.filter(|_| drive.zones.is_some()),
        label: label(arguments, trace, profile, name, overrides),
        trace: trace.into(),
        trace_options: TraceOptions {
            format: arguments.format,
            skip_bad: arguments.skip_bad,
            device: arguments.device.clone(),
            blk_event: arguments.event,
        },
        drive,
        pacing,
        wrap: arguments.wrap,
        precondition: arguments.precondition,
        interval: arguments.interval,
        host: arguments.host.unwrap_or(HostCosts::NONE),
        limit: arguments.limit,
    })
}

/// Differences between the runs of this call.
fn label(
    arguments: &Arguments,
    trace: &Path,
    profile: &Profile,
    name: &str,
    overrides: &Overrides,
) -> String {
    let mut parts = Vec::new();
    if arguments.traces.len() > 1 {
        parts.push(trace_label(trace));
    }
    if arguments.drive.len() > 1 || parts.is_empty() {
        // Two files may hold profiles of one name, a copy of the project's own for example.
        let is_file = name.ends_with(".toml");
        parts.push(if is_file && arguments.drive.len() > 1 {
            name.to_string()
        } else {
            profile.name.clone()
        });
    }
    let mut differs =
        |several: bool, shown: Option<String>| parts.extend(shown.filter(|_| several));
    differs(arguments.map.len() > 1, overrides.map.clone());
    differs(arguments.cache.len() > 1, overrides.cache.clone());
    differs(
        arguments.cache_size.len() > 1,
        overrides.cache_size.map(|bytes| format!("cache {}", format_bytes(bytes))),
    );
    parts.extend(arguments.spare.shown(overrides.gc.as_deref(), overrides.over_provisioning));
    let mut differs =
        |several: bool, shown: Option<String>| parts.extend(shown.filter(|_| several));
    differs(
        arguments.buffer.len() > 1,
        overrides.buffer.map(|bytes| format!("buffer {}", format_bytes(bytes))),
    );
    parts.join(", ")
}

/// A trace's file name without the endings that say only how it is stored.
fn trace_label(trace: &Path) -> String {
    let name = trace.file_name().unwrap_or_default().to_string_lossy();
    let mut short: &str = &name;
    for ending in [".zst", ".gz", ".txt", ".csv", ".trace", ".log", ".blkparse"] {
        short = short.strip_suffix(ending).unwrap_or(short);
    }
    short.to_string()
}
