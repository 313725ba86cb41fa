//! Options that do not go together.

use super::block_size::BlockSizes;
use super::error::FioError;
use super::job_file::{Job, JobFile};
use super::options::THREADS_MAX;
use super::value::Extent;

/// Direct calls are whole blocks of this size.
const DIRECT_BYTES: u64 = 4096;

pub(super) fn check(file: &JobFile) -> Result<(), FioError> {
    let mut threads = 0;
    for job in &file.jobs {
        threads += job.settings.numjobs;
        if threads > THREADS_MAX {
            return Err(file.job_error(
                job,
                format!("is the one too many: {THREADS_MAX} threads are the most"),
            ));
        }
        match problem(job) {
            Some(problem) => return Err(file.job_error(job, problem)),
            None => continue,
        }
    }
    Ok(())
}

fn problem(job: &Job) -> Option<&'static str> {
    let settings = &job.settings;
    if settings.time_based && settings.runtime_ns == 0 {
        return Some("has time_based without runtime; add runtime=10s or the like");
    }
    let is_some = |rates: [u64; 3]| rates.iter().any(|rate| *rate > 0);
    if is_some(settings.rate) && is_some(settings.rate_iops) {
        return Some("has both rate and rate_iops; remove one of them, or set it to 0");
    }
    if settings.blocks.iter().any(BlockSizes::range_cuts_splits) {
        return Some("has sizes in bssplit that bsrange leaves out; remove bsrange or widen it");
    }
    if settings.create_on_open && settings.pattern.reads {
        return Some("reads files that create_on_open leaves empty; remove create_on_open");
    }
    if settings.direct && !direct_is_aligned(job) {
        return Some(
            "has direct=1 with blocks or offsets that are not whole blocks of 4096 bytes; change bs or offset",
        );
    }
    None
}

fn direct_is_aligned(job: &Job) -> bool {
    let settings = &job.settings;
    let aligned = |extent| match extent {
        Extent::Bytes(bytes) => bytes.is_multiple_of(DIRECT_BYTES),
        Extent::Percent(_) => true,
    };
    let blocks = settings.directions().all(|direction| {
        let sizes = &settings.blocks[direction.index()];
        sizes.min.is_multiple_of(DIRECT_BYTES)
            && settings.align_of(direction).is_multiple_of(DIRECT_BYTES)
    });
    let stepping = settings.skip() % DIRECT_BYTES as i64 == 0
        && (!settings.unaligned || settings.blocks.iter().all(|b| b.is_fixed()));
    blocks && stepping && aligned(settings.offset) && aligned(settings.offset_increment)
}
