//! Requests and bytes of real traces, as a count of their lines by other means gives them: of the
//! samples and the example that ship with the project always; of the full traces when they are
//! there.

#![allow(clippy::unwrap_used, reason = "helpers of tests are not recognized as tests")]

use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use dovetail_workload::trace::{BlkEvent, Format, TraceOptions, TraceReader};
use dovetail_workload::{Op, Request};

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Requests: reads, writes, discards, flushes.
    requests: [u64; 4],
    /// Bytes: read, written, discarded.
    bytes: [u64; 3],
}

impl AddAssign<Request> for Counts {
    /// A write that begins with a flush counts as both, as its RWBS field does.
    fn add_assign(&mut self, request: Request) {
        let kind = match request.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            Op::Flush => 3,
        };
        self.requests[kind] += 1;
        self.requests[3] += u64::from(request.preflush);
        if let Some(bytes) = self.bytes.get_mut(kind) {
            *bytes += request.range.len;
        }
    }
}

fn count(path: &Path, format: Format, blk_event: BlkEvent) -> Counts {
    let mut reader =
        TraceReader::open(path, &TraceOptions { blk_event, ..Default::default() }).unwrap();
    assert_eq!(reader.format(), format, "{}", path.display());
    let mut counts = Counts::default();
    for request in &mut reader {
        counts += request.unwrap();
    }
    let (read, total) = reader.progress();
    assert_eq!(read, total, "the file is read to its end");
    counts
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn check_blkparse(path: &Path, event: BlkEvent, requests: [u64; 4], bytes: [u64; 3]) {
    let counted = count(path, Format::Blkparse, event);
    assert_eq!(counted, Counts { requests, bytes }, "{event} of {}", path.display());
}

fn check_mqsim(path: &Path, [reads, writes]: [u64; 2], [read, written]: [u64; 2]) {
    let expected = Counts { requests: [reads, writes, 0, 0], bytes: [read, written, 0] };
    assert_eq!(count(path, Format::Mqsim, BlkEvent::default()), expected, "{}", path.display());
}

#[test]
fn samples_of_blkparse_have_the_counts_of_each_event() {
    let sample = data("f2fs-files.blkparse");
    check_blkparse(&sample, BlkEvent::Queue, [10, 11, 0, 1], [40_960, 2_220_032, 0]);
    check_blkparse(&sample, BlkEvent::Insert, [0, 2, 0, 0], [0, 8192, 0]);
    check_blkparse(&sample, BlkEvent::Dispatch, [10, 8, 0, 1], [40_960, 1_654_784, 0]);
    check_blkparse(&sample, BlkEvent::Complete, [10, 8, 0, 1], [40_960, 1_654_784, 0]);
    let sample = data("ext4-sqlite-delete.blkparse");
    check_blkparse(&sample, BlkEvent::Dispatch, [2, 74, 5, 19], [8192, 10_063_872, 2_207_744]);
    check_blkparse(&sample, BlkEvent::Complete, [0, 0, 5, 0], [0, 0, 2_207_744]);
}

#[test]
fn samples_of_mqsim_have_their_counts() {
    check_mqsim(&data("mqsim-tpcc-small.trace"), [76, 124], [622_592, 1_150_976]);
    check_mqsim(&data("mqsim-wsrch-small.trace"), [200, 0], [3_014_656, 0]);
}

#[test]
fn the_example_trace_has_its_counts() {
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/f2fs-randwrite.blkparse.zst");
    check_blkparse(&example, BlkEvent::Dispatch, [75, 13_283, 0, 6_494], [307_200, 475_021_312, 0]);
}

/// The directory of the full traces: `traces` in `DOVETAIL_SHARED`, or in `shared` beside the
/// project.
fn full_traces() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("DOVETAIL_SHARED").map_or_else(beside, PathBuf::from);
    Some(shared.join("traces")).filter(|traces| traces.is_dir())
}

#[test]
fn full_traces_have_their_counts() {
    let Some(traces) = full_traces() else {
        println!("skipped: no full traces; DOVETAIL_SHARED names the directory that holds traces/");
        return;
    };
    for (name, requests, bytes) in [
        ("f2fs-randwrite", [75, 13_283, 0, 6_494], [307_200, 475_021_312, 0]),
        ("ext4-randwrite", [1, 66_243, 0, 6_342], [4_096, 385_990_656, 0]),
        ("f2fs-sqlite-wal", [3, 16_961, 0, 4_083], [12_288, 248_881_152, 0]),
        ("ext4-sqlite-delete", [7, 56_142, 4_003, 12_033], [32_768, 635_179_008, 230_957_056]),
        ("f2fs-files", [19, 1_294, 0, 4], [77_824, 197_410_816, 0]),
        ("ext4-files", [8, 1_071, 80, 44], [49_152, 319_221_760, 2_842_832_896]),
    ] {
        let path = traces.join(name).with_extension("blkparse.zst");
        check_blkparse(&path, BlkEvent::Dispatch, requests, bytes);
    }
    check_mqsim(&traces.join("mqsim-tpcc-small.trace"), [4_381, 2_618], [36_315_136, 23_403_520]);
    // One line more than it has line endings.
    check_mqsim(&traces.join("mqsim-wsrch-small.trace"), [24_779, 4], [382_085_120, 32_768]);
}
