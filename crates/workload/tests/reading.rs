//! Behaviour that all formats share: compression, line endings, bad lines, devices, time, progress,
//! errors.

#![allow(clippy::unwrap_used, reason = "helpers of tests are not recognized as tests")]

use std::io::Write;
use std::path::PathBuf;

use dovetail_block::ByteRange;
use dovetail_workload::trace::{Format, TraceError, TraceOptions, TraceReader};
use dovetail_workload::{Op, Request};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;

const MSR: &str = "\
128166372003061629,usr,0,Read,7014609920,24576,41286
128166372016382155,usr,1,Write,1317441536,8192,1963
128166372026382245,usr,0,Write,2436440064,4096,1835
";

const MQSIM_WITH_BAD_LINES: &str = "0 0 0 8 0\n1000 0 8 0 0\n\nhello\n2000 0 16 8 1\n";

/// A trace in a file of its own, gone with the value.
struct Trace {
    _dir: TempDir,
    path: PathBuf,
}

impl Trace {
    fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        Self { _dir: dir, path }
    }

    fn open(&self, options: &TraceOptions) -> Result<TraceReader, TraceError> {
        TraceReader::open(&self.path, options)
    }

    /// All requests; no line may be bad.
    fn requests(&self, options: &TraceOptions) -> Vec<Request> {
        self.open(options).unwrap().map(Result::unwrap).collect()
    }

    /// The message of the first error, without the directory.
    fn error(&self, options: &TraceOptions) -> String {
        let error = match self.open(options) {
            Ok(reader) => reader.filter_map(Result::err).next().unwrap(),
            Err(error) => error,
        };
        let dir = self.path.parent().unwrap().display();
        error.to_string().replace(&format!("{dir}/"), "")
    }
}

fn detect() -> TraceOptions {
    TraceOptions::default()
}

fn skip_bad(format: Format) -> TraceOptions {
    TraceOptions { format: Some(format), skip_bad: true, ..detect() }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

fn plain(ns: u64, op: Op, start: u64, len: u64) -> Request {
    let at = dovetail_time::SimTime::from_ns(ns);
    Request { at, op, range: ByteRange::new(start, len), preflush: false, fua: false }
}

fn msr_requests() -> Vec<Request> {
    vec![
        plain(0, Op::Read, 7_014_609_920, 24_576),
        plain(1_332_052_600, Op::Write, 1_317_441_536, 8192),
        plain(2_332_061_600, Op::Write, 2_436_440_064, 4096),
    ]
}

#[test]
fn times_are_relative_to_the_first_request() {
    assert_eq!(Trace::new("usr_0.csv", MSR).requests(&detect()), msr_requests());
}

#[test]
fn compressed_traces_equal_plain_ones_whatever_the_name() {
    let bytes = MSR.as_bytes();
    let (first, second) = bytes.split_at(70);
    for content in [
        gzip(bytes),
        zstd(bytes),
        [gzip(first), gzip(second)].concat(),
        [zstd(first), zstd(second)].concat(),
        [vec![0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 0], zstd(bytes)].concat(),
    ] {
        assert_eq!(Trace::new("a.csv", content).requests(&detect()), msr_requests());
    }
}

#[test]
fn what_follows_the_last_member_of_a_gzip_file_is_ignored() {
    let bytes = MSR.as_bytes();
    let members = [gzip(&bytes[..70]), gzip(&bytes[70..])].concat();
    for trailing in [&b"\0\0\0\0\0\0"[..], b"\x1f", b"\0", b"garbage", b"\x1f\x8a\x08 no member"] {
        for whole in [gzip(bytes), members.clone()] {
            let trace = Trace::new("a.gz", [&whole, trailing].concat());
            assert_eq!(trace.requests(&detect()), msr_requests(), "{trailing:?}");
        }
    }
    // a member that begins and does not end is cut short
    let cut = [&members, &gzip(bytes)[..20]].concat();
    let message = Trace::new("a.gz", cut).error(&skip_bad(Format::Msr));
    assert_eq!(message, "a.gz is cut short: its compressed data ends too early");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let marked = [b"\xef\xbb\xbf", MSR.as_bytes()].concat();
    for content in [marked.clone(), gzip(&marked), zstd(&marked)] {
        assert_eq!(Trace::new("a.csv", content).requests(&detect()), msr_requests());
    }
    // longer than what is looked at to tell the format
    let long: String = (0..20_000).map(|n| format!("{n} 0 {} 8 0\n", n * 7919 % 65_536)).collect();
    let marked = Trace::new("a.trace", [b"\xef\xbb\xbf", long.as_bytes()].concat());
    assert_eq!(marked.requests(&detect()), Trace::new("a.trace", long).requests(&detect()));
}

#[test]
fn a_device_without_lines_ends_with_a_sentence() {
    let options =
        TraceOptions { format: Some(Format::Msr), skip_bad: true, ..TraceOptions::default() };
    let error = TraceReader::open("/dev/zero", &options).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "/dev/zero:1: no line ends within 64 MiB: this is not a text");
}

#[test]
fn line_endings_headers_and_a_missing_last_newline_change_nothing() {
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    for content in [
        MSR.replace('\n', "\r\n"),
        MSR.trim_end().to_owned(),
        format!("{header}{MSR}"),
        format!("\r\n{header}\n{MSR}\n\n").replace('\n', "\r\n"),
    ] {
        assert_eq!(Trace::new("a.csv", content).requests(&detect()), msr_requests());
    }
}

#[test]
fn a_header_is_only_the_first_line() {
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    let message = Trace::new("a.csv", format!("{MSR}{header}")).error(&detect());
    assert!(
        message.starts_with("a.csv:4: expected a timestamp in ticks of 100 ns, found 'Timestamp'"),
        "{message}"
    );
}

#[test]
fn the_first_bad_line_ends_the_trace_with_its_number() {
    let trace = Trace::new("a.trace", MQSIM_WITH_BAD_LINES);
    let mut reader = trace.open(&TraceOptions { format: Some(Format::Mqsim), ..detect() }).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().unwrap().unwrap_err().is_bad_line());
    assert!(reader.next().is_none());
    assert_eq!(
        trace.error(&TraceOptions { format: Some(Format::Mqsim), ..detect() }),
        "a.trace:2: expected a length above 0, found '0' (--skip-bad counts such lines and goes on)"
    );
}

#[test]
fn a_bad_event_is_reported_as_the_manual_shows() {
    let lines =
        "253,0 0 1 0.1 83 Q WS 0 + 8 [a]\n".repeat(16) + "253,0 0 1 0.1 83 D WS 4120 - 8 [a]\n";
    assert_eq!(
        Trace::new("ext4.blkparse", lines).error(&detect()),
        "ext4.blkparse:17: expected '+ SECTORS' after the sector number, found '- 8' \
         (--skip-bad counts such lines and goes on)"
    );
}

#[test]
fn bad_lines_can_be_counted_and_passed_over() {
    let trace = Trace::new("a.trace", MQSIM_WITH_BAD_LINES);
    let mut reader = trace.open(&TraceOptions { skip_bad: true, ..detect() }).unwrap();
    let requests: Vec<Request> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(requests, [plain(0, Op::Write, 0, 4096), plain(2000, Op::Read, 8192, 4096)]);
    assert_eq!((reader.format(), reader.skipped()), (Format::Mqsim, 2));
}

#[test]
fn text_that_is_not_utf8_is_a_bad_line() {
    let trace = Trace::new("a.trace", b"0 0 0 8 0\n1 0 \xFF 8 0\n2 0 8 8 0\n");
    let message = "a.trace:2: not UTF-8 text (--skip-bad counts such lines and goes on)";
    assert_eq!(trace.error(&detect()), message);
    let mut reader = trace.open(&skip_bad(Format::Mqsim)).unwrap();
    assert_eq!((reader.by_ref().count(), reader.skipped()), (2, 1));
}

#[test]
fn a_line_without_end_is_bad_and_passed_over_in_bounded_memory() {
    let endless =
        [b"0 0 0 8 0\n".to_vec(), vec![b'9'; 1 << 20], b"\n7 0 8 8 0\n".to_vec()].concat();
    let trace = Trace::new("a.trace", endless);
    let options = TraceOptions { format: Some(Format::Mqsim), ..detect() };
    let message =
        "a.trace:2: a line of more than 65536 bytes (--skip-bad counts such lines and goes on)";
    assert_eq!(trace.error(&options), message);
    let mut reader = trace.open(&skip_bad(Format::Mqsim)).unwrap();
    assert_eq!((reader.by_ref().map(Result::unwrap).count(), reader.skipped()), (2, 1));
}

#[test]
fn lines_up_to_the_limit_are_read() {
    for (length, skipped) in [(65_535, 0), (65_536, 1), (65_537, 1)] {
        let long = format!("0 0 0 8 0{}\n1 0 8 8 0\n", " ".repeat(length - 9));
        let trace = Trace::new("a.trace", long);
        let mut reader = trace.open(&skip_bad(Format::Mqsim)).unwrap();
        assert_eq!(
            (reader.by_ref().count() as u64, reader.skipped()),
            (2 - skipped, skipped),
            "{length}"
        );
    }
}

#[test]
fn a_compressed_trace_that_is_cut_short_is_an_error_even_when_bad_lines_are_not() {
    let long: String = (0..200_000).map(|n| format!("{n} 0 {} 8 0\n", n * 7919 % 65_536)).collect();
    for whole in [gzip(long.as_bytes()), zstd(long.as_bytes())] {
        for part in [whole.len() / 2, whole.len() - 1, 12] {
            let trace = Trace::new("a.trace.zst", &whole[..part]);
            let message = "a.trace.zst is cut short: its compressed data ends too early";
            assert_eq!(trace.error(&skip_bad(Format::Mqsim)), message);
        }
    }
}

#[test]
fn damaged_compressed_data_is_an_error_that_names_the_file() {
    let mut damaged = zstd(MSR.as_bytes());
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0xA5);
    let message = Trace::new("a.zst", damaged).error(&skip_bad(Format::Msr));
    assert!(message.starts_with("cannot read a.zst: "), "{message}");
}

#[test]
fn a_device_can_be_chosen() {
    let options = TraceOptions { device: Some("0".into()), ..detect() };
    let requests = Trace::new("a.csv", MSR).requests(&options);
    assert_eq!(requests, [msr_requests()[0], msr_requests()[2]]);
    let options = TraceOptions { device: Some("1".into()), ..detect() };
    let requests = Trace::new("a.csv", MSR).requests(&options);
    assert_eq!(
        requests,
        [plain(0, Op::Write, 1_317_441_536, 8192)],
        "time starts with the device's first request"
    );
    let two = "8,0 0 1 0.1 83 D WS 0 + 8 [a]\n8,16 0 1 0.2 83 D WS 8 + 8 [a]\n";
    let options = TraceOptions { device: Some("8,16".into()), ..detect() };
    assert_eq!(Trace::new("a", two).requests(&options), [plain(0, Op::Write, 4096, 4096)]);
}

#[test]
fn time_never_goes_back() {
    let trace =
        Trace::new("a.trace", "50 0 0 8 0\n90 0 8 8 0\n40 0 16 8 0\n70 0 24 8 0\n95 0 32 8 0\n");
    let mut reader = trace.open(&detect()).unwrap();
    let times: Vec<u64> = reader.by_ref().map(|r| r.unwrap().at.as_ns()).collect();
    assert_eq!((times, reader.reordered()), (vec![0, 40, 40, 40, 45], 2));
}

#[test]
fn progress_ends_at_the_size_of_the_file() {
    let long: String = (0..100_000).map(|n| format!("{n} 0 {} 8 0\n", n * 7919 % 65_536)).collect();
    for content in [long.clone().into_bytes(), gzip(long.as_bytes()), zstd(long.as_bytes())] {
        let trace = Trace::new("a.trace", &content);
        let mut reader = trace.open(&detect()).unwrap();
        let (start, total) = reader.progress();
        assert_eq!(total, content.len() as u64);
        assert!(start < total, "not all is read at once");
        assert!(reader.all(|r| r.is_ok()));
        let mut reader = trace.open(&detect()).unwrap();
        assert_eq!(reader.by_ref().count(), 100_000);
        assert_eq!(reader.progress(), (total, total));
    }
}

#[test]
fn traces_without_requests_just_end_when_the_format_is_given() {
    for content in ["", "\n\n", "fio version 3 iolog\n"] {
        let options = TraceOptions { format: Some(Format::FioV3), ..detect() };
        assert_eq!(Trace::new("a", content).requests(&options), []);
    }
}

#[test]
fn a_format_that_cannot_be_told_is_asked_for() {
    for empty in [&b""[..], b"\r\n\n", &gzip(b"")] {
        assert_eq!(
            Trace::new("a.log", empty).error(&detect()),
            "a.log is empty: there is nothing to replay in it"
        );
    }
    for unknown in [&b"dear diary\n"[..], &[0; 100_000], b"a,b,c,d,e\n"] {
        assert_eq!(
            Trace::new("a.log", unknown).error(&detect()),
            "cannot tell the format of a.log from its first lines; give it with --format, \
             one of blkparse, fio2, fio3, msr, alibaba, tencent, mqsim"
        );
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = TraceReader::open("no/such.trace", &detect()).err().unwrap();
    assert!(error.to_string().starts_with("cannot open no/such.trace: "), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Plain, and as the inside of each compression, and behind the first bytes of each.
    #[test]
    fn no_file_panics_or_goes_on_for_ever(
        content in proptest::collection::vec(any::<u8>(), 0..400),
        magic in prop::sample::select(vec![
            &b""[..], b"\x1F\x8B\x08\x00", b"\x28\xB5\x2F\xFD", b"fio version 2 iolog\n", b"8,0 0 1 0.1 1 D R 0 + 8\n",
        ]),
    ) {
        let content = [magic, &content].concat();
        for content in [gzip(&content), zstd(&content), content] {
            let trace = Trace::new("a", &content);
            let _ = trace.open(&detect()).map(Iterator::count);
            for format in Format::ALL {
                let _ = trace.open(&skip_bad(*format)).map(Iterator::count);
            }
        }
    }
}
