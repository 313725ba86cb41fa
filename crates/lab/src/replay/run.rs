//! One replay from the first request to its results.

use dovetail_ftl::{ConfigError, Storage};
use dovetail_host::CheckedDevice;
use dovetail_workload::trace::TraceReader;
use tracing::{info, info_span};

use super::trace_actor::TraceActor;
use super::{ReplayError, ReplayJob};
use crate::below::Below;
use crate::precondition::precondition;
use crate::progress::{Progress, Stage};
use crate::results::{RunResult, TraceResult, notes};

/// Requests between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;

/// Replays a trace on a drive of its own. The same job gives the same result.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(
    job: &ReplayJob,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, ReplayError> {
    replay_until(job, &|| false, progress)
}

/// The same, until `stop` says that it is to end: the result then holds what was replayed by then.
///
/// # Errors
/// See [`ReplayError`]; [`ReplayError::Stopped`] if the end came before the first request.
pub fn replay_until(
    job: &ReplayJob,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, ReplayError> {
    let _span = info_span!("run", label = job.label).entered();
    let mut trace = TraceReader::open(&job.trace, &job.trace_options)?;
    let drive = Storage::new(job.drive.clone())
        .map_err(|source| ReplayError::Config { name: job.drive.name.clone(), source })?;
    let drive = Below::new(drive, job.zone_log)
        .map_err(|source| ReplayError::NoLog { name: job.drive.name.clone(), source })?;
    let mut drive = CheckedDevice::new(drive);
    if job.precondition && job.drive.zones.is_some() && job.zone_log.is_none() {
        let source = ConfigError::Zones(
            "they are not preconditioned: the drive moves none of the host's data (a log in the host does: --zone-translate)",
        );
        return Err(ReplayError::Config { name: job.drive.name.clone(), source });
    }
    let prepared = match job.precondition {
        true => Some(precondition(&mut drive, job.drive.seed, stop, progress)?),
        false => None,
    };
    info!("replaying");
    let mut actor = TraceActor::new(job, drive);
    let mut stopped = stop();
    while !stopped && let Some(request) = trace.next() {
        actor.request(request?)?;
        stopped = stop();
        let requests = actor.requests();
        if requests.is_multiple_of(REPORT_EVERY) {
            let (done, total) = trace.progress();
            progress(Progress { stage: Stage::Run, done, total, requests });
        }
        if job.limit.is_some_and(|limit| requests >= limit) {
            break;
        }
    }
    if actor.requests() == 0 && stopped {
        return Err(ReplayError::Stopped);
    }
    if actor.requests() == 0 {
        return Err(ReplayError::NoRequest(job.trace.display().to_string()));
    }
    info!(requests = actor.requests(), "ended");
    let (result, requests) = actor.finish()?;
    let trace = TraceResult {
        name: job.trace_name(),
        format: trace.format().to_string(),
        skipped_lines: trace.skipped(),
        reordered: trace.reordered(),
        ..requests
    };
    let result = RunResult { trace: Some(trace), precondition: prepared, ..result };
    Ok(RunResult { notes: notes(&result), ..result })
}
