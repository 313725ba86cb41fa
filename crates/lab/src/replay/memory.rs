//! Memory that a replay takes.

use std::collections::BTreeSet;

use dovetail_block::BLOCK_SIZE;
use dovetail_ftl::DriveConfig;
use dovetail_workload::Op;
use dovetail_workload::trace::TraceReader;

use super::{ReplayError, ReplayJob};

/// Bytes of memory that simulating a job's drive takes at most: all of the drive where it is
/// preconditioned, otherwise what the trace writes. The trace is read for that, until it has written
/// as much as the drive holds.
///
/// # Errors
/// The trace cannot be read.
pub fn memory_bytes(job: &ReplayJob) -> Result<u64, ReplayError> {
    if job.precondition {
        return Ok(job.drive.memory_bytes());
    }
    let trace = TraceReader::open(&job.trace, &job.trace_options)?;
    let limit = job.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let capacity = job.drive.address_blocks().max(1).saturating_mul(BLOCK_SIZE);
    let (mut blocks, mut stretches) = (0_u64, BTreeSet::new());
    for request in trace.take(limit) {
        let request = request?;
        if request.range.end() > capacity && !job.wrap {
            // the replay ends here, and says so
            break;
        }
        if request.op != Op::Write {
            continue;
        }
        let touched = request.range.blocks_touched();
        blocks = blocks.saturating_add(touched.blocks);
        if blocks >= job.drive.user_blocks {
            return Ok(job.drive.memory_bytes());
        }
        // one that is folded into the drive lies at the end, if not here
        let first = request.range.start % capacity / BLOCK_SIZE;
        let last = first.saturating_add(touched.blocks);
        stretches.extend(first / DriveConfig::STRETCH_BLOCKS..=last / DriveConfig::STRETCH_BLOCKS);
    }
    Ok(job.drive.memory_bytes_written(blocks, stretches.len() as u64 + 1))
}
