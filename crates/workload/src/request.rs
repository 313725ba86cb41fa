//! One request of a block workload.

use dovetail_block::ByteRange;
use dovetail_time::SimTime;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads its range.
    Read,
    /// Writes its range.
    Write,
    /// Tells the device that the content of its range is no longer needed.
    Discard,
    /// Makes everything acknowledged before durable; has no range.
    Flush,
}

/// One request, as a trace or a generator gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time of issue, relative to the first request.
    pub at: SimTime,
    /// Operation.
    pub op: Op,
    /// Bytes that it touches, at any alignment; start 0 and length 0 for a flush, never empty
    /// otherwise.
    pub range: ByteRange,
    /// The device's cache is to be flushed before this request is performed; false for
    /// [`Op::Flush`], which is nothing else.
    pub preflush: bool,
    /// Force unit access: the request completes only when its own data is durable.
    pub fua: bool,
}
