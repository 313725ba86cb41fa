//! One replay from the first request to its results.

use dovetail_ftl::ConfigError;
use dovetail_host::CheckedDevice;
use dovetail_workload::trace::TraceReader;
use tracing::{info, info_span};

use super::ahead::Ahead;
use super::trace_actor::TraceActor;
use super::{ReplayError, ReplayJob};
use crate::below::Below;
use crate::prepared::{NoDrive, Prepared, Turn};
use crate::progress::{Progress, Stage};
use crate::results::{PreconditionResult, RunResult, TraceResult, notes};

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
    replay_shared(job, &Prepared::none().turn(job.new_drive()), stop, progress)
}

/// The same, beginning with a copy of a preconditioned drive where `turn`, which is for the job's
/// own drive, has one. The results are the same.
///
/// # Errors
/// As [`replay_until`].
pub fn replay_shared(
    job: &ReplayJob,
    turn: &Turn<'_>,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, ReplayError> {
    let _span = info_span!("run", label = job.label).entered();
    let trace = TraceReader::open(&job.trace, &job.trace_options)?;
    let mut trace = Ahead::new(trace, job.limit);
    let (drive, prepared) = drive(job, turn, stop, progress)?;
    info!("replaying");
    let mut actor = TraceActor::new(job, drive);
    let mut stopped = stop();
    while !stopped && let Some(request) = trace.next(|range| actor.expect(range)) {
        actor.request(request?)?;
        stopped = stop();
        let requests = actor.requests();
        if requests.is_multiple_of(REPORT_EVERY) {
            let (done, total) = trace.trace().progress();
            progress(Progress { stage: Stage::Run, done, total, requests });
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
    let trace = trace.trace();
    let trace = TraceResult {
        name: job.trace_name(),
        format: trace.format().to_string(),
        skipped_lines: trace.skipped(),
        reordered: trace.reordered(),
        ..requests
    };
    let result = RunResult { trace: Some(trace), precondition: prepared, ..result };
    Ok(RunResult { notes: notes(&result, stopped), ..result })
}

/// The drive, preconditioned if the job says so.
fn drive(
    job: &ReplayJob,
    turn: &Turn<'_>,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(CheckedDevice<Below>, Option<PreconditionResult>), ReplayError> {
    let failed = |fault| {
        let name = job.drive.name.clone();
        match fault {
            NoDrive::Config(source) => ReplayError::Config { name, source },
            NoDrive::Log(source) => ReplayError::NoLog { name, source },
        }
    };
    if !job.precondition {
        return Ok((turn.new_drive().make().map_err(failed)?, None));
    }
    if job.drive.zones.is_some() && job.zone_log.is_none() {
        return Err(failed(NoDrive::Config(ConfigError::Zones(
            "they are not preconditioned: the drive moves none of the host's data (a log in the host does: --zone-translate)",
        ))));
    }
    let (drive, done) = turn.aged(failed, stop, progress)?;
    Ok((drive, Some(done)))
}
