//! Common parts of the IPLFS paper's figures: its drive, F2FS and IPLFS on a partition of it, and a
//! watch on the drive's commands.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use dovetail_host::Request;
use dovetail_lab::bench::{BenchError, Job, Source, Stack, Watcher, Watchers, run_watched};
use dovetail_lab::results::RunResult;
use dovetail_workload::personality::Personality;

use super::{Setting, stacks_before_6_4};

/// The paper's drive (section 6).
pub(crate) const DRIVE: &str = "openssd-230g";

/// Share of Filebench's file set that is there at a time (its default, prealloc=80).
pub(crate) const THERE: f64 = 0.8;

pub(crate) const GIB: f64 = 1_073_741_824.0;

/// Built-in stacks on a partition of the paper's drive; IPLFS has as much room and all its
/// addresses.
pub(crate) fn on_partition(names: &[&str], partition: &str) -> Result<Vec<Stack>, BenchError> {
    let cut = |stack| Stack { partition: Some(partition.to_owned()), ..as_published(stack) };
    Ok(stacks_before_6_4(names, DRIVE)?.into_iter().map(cut).collect())
}

/// IPLFS with the block addresses of the published code, 4 bytes.
fn as_published(mut stack: Stack) -> Stack {
    if stack.filesystem == "iplfs" {
        stack.mkfs.insert("address-bytes".into(), 4.into());
    }
    stack
}

/// Filebench's file server with files of 2 MiB (the paper's sections 6.2 and 6.4) that take so many
/// bytes, for so many seconds; both at full scale. Fifty threads, fewer where there are few files.
/// Four fifths of Filebench's files are there at a time.
pub(crate) fn file_server(
    setting: &Setting<'_>,
    bytes: f64,
    seconds: f64,
) -> Result<Source, BenchError> {
    const FILE: f64 = 2_097_152.0;
    /// Files for each thread at least: with fewer one may find none that it can create, or delete.
    const FILES_A_THREAD: f64 = 40.0;
    const THREADS: f64 = 50.0;
    let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
    let mut personality = Personality::load("fileserver").map_err(|error| failed(&error))?;
    let files = bytes / FILE / THERE;
    let threads = (files * setting.scale.value() / FILES_A_THREAD).clamp(1.0, THREADS) as u64;
    let (files, threads) = ((files as u64).to_string(), threads.to_string());
    let seconds = ((seconds * setting.scale.value()).ceil() as u64).max(1).to_string();
    let changes = [
        ("nfiles", files.as_str()),
        ("meanfilesize", "2m"),
        ("runtime", seconds.as_str()),
        ("nthreads", threads.as_str()),
    ];
    personality.set(changes).map_err(|error| failed(&error))?;
    Ok(Source::Personality(Box::new(personality)))
}

/// Runs a workload on a stack and shows `watch` every command that reaches the drive, from the
/// making of the volume on.
pub(crate) fn watched(
    setting: &Setting<'_>,
    stack: &Stack,
    source: &Source,
    watch: impl FnMut(&Request) + 'static,
) -> Result<RunResult, BenchError> {
    let mut workload = source.start(setting.scale, setting.seed)?;
    let stack = setting.changed(stack)?;
    let job = Job {
        label: stack.name.clone(),
        stack: &stack,
        scale: setting.scale,
        seed: setting.seed,
        stop: &|| setting.stop.load(Ordering::Relaxed),
        precondition: None,
        final_sync: false,
        restart: false,
        progress: &|_| {},
    };
    let watcher: Watcher = Rc::new(RefCell::new(watch));
    let watchers = Watchers { commands: Some(watcher), ..Watchers::default() };
    let run = run_watched(&job, workload.as_mut(), watchers)?;
    setting.go_on()?;
    match run.error {
        Some(error) => Err(BenchError::Workload(error)),
        None => Ok(run),
    }
}
