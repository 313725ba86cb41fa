//! The requests of a trace, with a look at those that come next.

use std::collections::VecDeque;

use dovetail_block::BlockRange;
use dovetail_workload::Request;
use dovetail_workload::trace::{TraceError, TraceReader};

/// Requests that are read before they are replayed (assumed): a few microseconds of work, longer
/// than memory takes to answer.
const AHEAD: usize = 8;

/// Requests in the order of the trace, no more than were asked for.
pub(super) struct Ahead {
    trace: TraceReader,
    /// Requests that may still be read.
    left: u64,
    coming: VecDeque<Request>,
    /// The error that ended the trace, behind what is coming.
    failed: Option<TraceError>,
}

impl Ahead {
    /// The first `limit` requests of a trace, or all.
    pub(super) fn new(trace: TraceReader, limit: Option<u64>) -> Self {
        Self { trace, left: limit.unwrap_or(u64::MAX), coming: VecDeque::new(), failed: None }
    }

    /// The trace, some requests ahead.
    pub(super) fn trace(&self) -> &TraceReader {
        &self.trace
    }

    /// The next request; `expect` hears of the blocks of each request when it is read.
    pub(super) fn next(
        &mut self,
        expect: impl Fn(BlockRange),
    ) -> Option<Result<Request, TraceError>> {
        while self.coming.len() < AHEAD && self.left > 0 {
            match self.trace.next() {
                Some(Ok(request)) => {
                    expect(request.range.blocks_touched());
                    self.left -= 1;
                    self.coming.push_back(request);
                }
                Some(Err(error)) => (self.failed, self.left) = (Some(error), 0),
                None => break,
            }
        }
        self.coming.pop_front().map(Ok).or_else(|| self.failed.take().map(Err))
    }
}
