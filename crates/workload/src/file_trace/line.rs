//! One line of a file-level trace: `F ID BYTES NAME [BEGIN]`, or
//! `START THREAD OP FILE OFFSET BYTES DURATION [CPU]`, with tabs between.

use crate::trace::{Bad, number};

const CALL: &str = "'START THREAD OP FILE OFFSET BYTES DURATION [CPU]' with tabs between, or 'F ID BYTES NAME [BEGIN]'";
/// Bytes of a file, and how far a call may reach: 1 PiB. Assumed; beyond any file system's limit
/// here.
const BYTES_MAX: u64 = 1 << 50;
/// A start, a duration or a CPU time: a thousand days.
const MICROSECONDS_MAX: u64 = 1000 * 86_400 * 1_000_000;

/// Content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    File(LoggedFile<'a>),
    Call(LoggedCall),
}

/// A file as it stands in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedFile<'a> {
    pub(super) id: u64,
    /// The size that it reached.
    pub(super) bytes: u64,
    pub(super) name: &'a str,
    /// The size with which it began; absent if it did not grow.
    pub(super) begin: Option<u64>,
}

/// A call as it stands in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedCall {
    pub(super) start_us: u64,
    pub(super) thread: u64,
    pub(super) op: LoggedOp,
    pub(super) file: u64,
    /// `None` for behind the end of the file.
    pub(super) offset: Option<u64>,
    pub(super) bytes: u64,
    pub(super) duration_us: u64,
    /// CPU time of the thread since its last call.
    pub(super) cpu_us: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoggedOp {
    Read,
    Write,
    Datasync,
    Sync,
    Allocate,
}

impl LoggedOp {
    fn parse(text: &str) -> Result<Self, Bad> {
        Ok(match text {
            "r" => Self::Read,
            "w" => Self::Write,
            "d" => Self::Datasync,
            "s" => Self::Sync,
            "a" => Self::Allocate,
            _ => return Err(Bad::new("r, w, d (fdatasync), s (fsync) or a (fallocate)", text)),
        })
    }
}

/// Parses a line; `None` for a blank line and a comment.
pub(super) fn parse(line: &str) -> Result<Option<Line<'_>>, Bad> {
    if line.trim_ascii().is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let columns: Vec<&str> = line.split('\t').collect();
    match columns[..] {
        ["F", id, bytes, name] => file(id, bytes, name, None).map(Some),
        ["F", id, bytes, name, begin] => file(id, bytes, name, Some(begin)).map(Some),
        [start, thread, op, file, offset, bytes, duration, ref cpu @ ..] if cpu.len() <= 1 => {
            let call = LoggedCall {
                start_us: at_most(start, MICROSECONDS_MAX, "a start in microseconds")?,
                thread: number(thread, "a thread's number")?,
                op: LoggedOp::parse(op)?,
                file: number(file, "a file's number")?,
                offset: self::offset(offset)?,
                bytes: at_most(bytes, BYTES_MAX, "a number of bytes")?,
                duration_us: at_most(duration, MICROSECONDS_MAX, "a duration in microseconds")?,
                cpu_us: cpu.first().map(|cpu| cpu_time(cpu)).transpose()?,
            };
            checked(call)
                .map(Line::Call)
                .map(Some)
                .ok_or_else(|| Bad::new("a read with an offset", line))
        }
        _ => Err(Bad::new(CALL, line)),
    }
}

fn cpu_time(text: &str) -> Result<u64, Bad> {
    at_most(text, MICROSECONDS_MAX, "a CPU time in microseconds")
}

fn file<'a>(id: &str, bytes: &str, name: &'a str, begin: Option<&str>) -> Result<Line<'a>, Bad> {
    let is_path = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if !is_path || name.contains('\0') {
        return Err(Bad::new("a path below the root of the file system, without . and ..", name));
    }
    let id = number(id, "a file's number")?;
    let bytes = at_most(bytes, BYTES_MAX, "a number of bytes")?;
    let begin = begin.map(|begin| at_most(begin, bytes, "at most the size that the file reached"));
    Ok(Line::File(LoggedFile { id, bytes, name, begin: begin.transpose()? }))
}

fn offset(text: &str) -> Result<Option<u64>, Bad> {
    if text == "-1" {
        Ok(None)
    } else {
        at_most(text, BYTES_MAX, "an offset in bytes, or -1").map(Some)
    }
}

fn at_most(text: &str, most: u64, expected: &'static str) -> Result<u64, Bad> {
    Some(number(text, expected)?)
        .filter(|value| *value <= most)
        .ok_or_else(|| Bad::new(expected, text))
}

/// Only what writes can go behind the end.
fn checked(call: LoggedCall) -> Option<LoggedCall> {
    let writes = matches!(call.op, LoggedOp::Write | LoggedOp::Allocate);
    let syncs = matches!(call.op, LoggedOp::Datasync | LoggedOp::Sync);
    (writes || syncs || call.offset.is_some()).then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_file_or_a_call() {
        let file = LoggedFile { id: 3, bytes: 4096, name: "test/a b.ibd", begin: None };
        assert_eq!(parse("F\t3\t4096\ttest/a b.ibd").unwrap(), Some(Line::File(file)));
        let grown = LoggedFile { begin: Some(100), ..file };
        assert_eq!(parse("F\t3\t4096\ttest/a b.ibd\t100").unwrap(), Some(Line::File(grown)));
        let call = LoggedCall {
            start_us: 10,
            thread: 2,
            op: LoggedOp::Write,
            file: 3,
            offset: None,
            bytes: 512,
            duration_us: 7,
            cpu_us: None,
        };
        assert_eq!(parse("10\t2\tw\t3\t-1\t512\t7").unwrap(), Some(Line::Call(call)));
        let with_cpu = LoggedCall { cpu_us: Some(5), ..call };
        assert_eq!(parse("10\t2\tw\t3\t-1\t512\t7\t5").unwrap(), Some(Line::Call(with_cpu)));
        assert_eq!(parse("# a comment").unwrap(), None);
        assert_eq!(parse(" ").unwrap(), None);
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        for (line, message) in [
            (
                "1\t2\tx\t0\t0\t1\t1",
                "expected r, w, d (fdatasync), s (fsync) or a (fallocate), found 'x'",
            ),
            (
                "1\t2\tr\t0\t-1\t1\t1",
                "expected a read with an offset, found '1\\t2\\tr\\t0\\t-1\\t1\\t1'",
            ),
            ("1\t2\tr\t0\t-2\t1\t1", "expected an offset in bytes, or -1, found '-2'"),
            (
                "1\t2\tw\t0\t0\t2251799813685248\t1",
                "expected a number of bytes, found '2251799813685248'",
            ),
            ("F\t1\t2\ta\t3", "expected at most the size that the file reached, found '3'"),
            (
                "F\t1\t2\t../a",
                "expected a path below the root of the file system, without . and .., found '../a'",
            ),
            (
                "F\t1\t2\t/a",
                "expected a path below the root of the file system, without . and .., found '/a'",
            ),
            (
                "F\t1\t2\t",
                "expected a path below the root of the file system, without . and .., found the end of the line",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err().to_string(), message);
        }
        assert!(parse("1 2 w 0 0 1 1").is_err(), "spaces");
        assert!(parse("1\t2\tw\t0\t0\t1\t1\t1\t1").is_err(), "a column too many");
    }
}
