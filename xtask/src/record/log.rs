//! The interposer's log, and what it says as a file-level trace.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// Bytes of a record; `interposer.c` has its layout.
const RECORD: usize = 64;
const NS_PER_US: u64 = 1000;

/// A call of the log.
struct Logged {
    start_ns: u64,
    duration_ns: u64,
    cpu_ns: u64,
    /// -1: where the file ends.
    offset: i64,
    bytes: u64,
    thread: u32,
    /// Of the file, in `Log::files`.
    file: usize,
    op: char,
}

struct LoggedFile {
    name: String,
    /// Its size when the recording first saw it.
    begin: u64,
    /// The size that it reached.
    reached: u64,
}

/// Calls of a recording, in the order in which they began.
#[derive(Default)]
pub(super) struct Log {
    files: Vec<LoggedFile>,
    /// By the number of an opening in the log.
    openings: HashMap<u32, usize>,
    names: HashMap<String, usize>,
    calls: Vec<Logged>,
}

impl Log {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut reader = BufReader::new(File::open(path).map_err(failed)?);
        let mut records = Records::new(&mut reader).map_err(failed)?;
        let mut log = Self::default();
        while let Some(record) = records.next().map_err(failed)? {
            match record.kind() {
                '\0' => {} // the call failed, or the program ended in it
                'F' => {
                    let name = records.name(&record).map_err(failed)?;
                    log.open(record.u32(44), name, record.u64(48));
                }
                op => log.call(&record, op),
            }
        }
        log.calls.sort_by_key(|call| call.start_ns);
        log.find_sizes();
        Ok(log)
    }

    fn open(&mut self, opening: u32, name: String, size: u64) {
        let next = self.files.len();
        let file = *self.names.entry(name.clone()).or_insert(next);
        if file == next {
            self.files.push(LoggedFile { name, begin: size, reached: size });
        }
        self.openings.insert(opening, file);
    }

    fn call(&mut self, record: &Record, op: char) {
        let Some(&file) = self.openings.get(&record.u32(44)) else { return };
        self.calls.push(Logged {
            start_ns: record.u64(0),
            duration_ns: record.u64(8),
            cpu_ns: record.u64(16),
            offset: record.u64(24) as i64,
            bytes: record.u64(32),
            thread: record.u32(40),
            file,
            op,
        });
    }

    fn find_sizes(&mut self) {
        for call in self.calls.iter().filter(|call| matches!(call.op, 'w' | 'a')) {
            let reached = &mut self.files[call.file].reached;
            let offset = u64::try_from(call.offset).unwrap_or(*reached);
            *reached = (*reached).max(offset + call.bytes);
        }
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Writes the trace: the files, then the calls. Starts and durations are rounded down to
    /// `clock_us`.
    pub(super) fn write(&self, into: &mut impl Write, clock_us: u64) -> std::io::Result<()> {
        writeln!(
            into,
            "# F id bytes name begin; start_us thread op file offset bytes duration_us cpu_us"
        )?;
        for (id, file) in self.files.iter().enumerate() {
            writeln!(into, "F\t{id}\t{}\t{}\t{}", file.reached, file.name, file.begin)?;
        }
        let to_clock = |ns: u64| ns / NS_PER_US / clock_us * clock_us;
        let begin_ns = self.calls.first().map_or(0, |call| call.start_ns);
        let mut threads = HashMap::new();
        for call in &self.calls {
            let next = threads.len();
            let (thread, rest_ns) = threads.entry(call.thread).or_insert((next, 0));
            let cpu_ns = call.cpu_ns + *rest_ns;
            *rest_ns = cpu_ns % NS_PER_US;
            writeln!(
                into,
                "{}\t{thread}\t{}\t{}\t{}\t{}\t{}\t{}",
                to_clock(call.start_ns - begin_ns),
                call.op,
                call.file,
                call.offset,
                call.bytes,
                to_clock(call.duration_ns),
                cpu_ns / NS_PER_US
            )?;
        }
        Ok(())
    }
}

/// A record of the log.
struct Record([u8; RECORD]);

impl Record {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[at..at + N]);
        bytes
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.array(at))
    }

    fn kind(&self) -> char {
        char::from_u32(self.u32(60)).unwrap_or('\0')
    }
}

/// The records behind the first one, which tells their number.
struct Records<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Records<R> {
    fn new(reader: R) -> std::io::Result<Self> {
        let mut records = Self { reader, left: 1 };
        let head = records.next()?.unwrap_or(Record([0; RECORD]));
        records.left = head.u64(0);
        Ok(records)
    }

    /// The next record; `None` after the last one, or where the log is full.
    fn next(&mut self) -> std::io::Result<Option<Record>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut bytes = [0; RECORD];
        self.left -= 1;
        match self.reader.read_exact(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(Some(Record(bytes))),
        }
    }

    /// The name of a file, which fills the records behind its own.
    fn name(&mut self, file: &Record) -> std::io::Result<String> {
        let bytes = file.u32(56) as usize;
        let mut name = Vec::new();
        while name.len() < bytes {
            let Some(Record(part)) = self.next()? else { break };
            name.extend_from_slice(&part);
        }
        name.truncate(bytes);
        Ok(String::from_utf8_lossy(&name).into_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

    use super::*;
    use std::process::Command;

    /// A file of 10 bytes is appended to, read and synced.
    #[test]
    fn a_program_that_is_recorded_leaves_its_calls() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/record-test");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a"), [b'a'; 10]).unwrap();
        let recorder = crate::record::Recorder::new(&folder).unwrap();
        let mut dd = Command::new("dd");
        dd.current_dir(&folder).args(["if=/dev/zero", "of=a", "bs=4096", "count=2"]);
        dd.args(["oflag=append", "conv=notrunc,fsync", "status=none"]);
        crate::run(recorder.record(&mut dd)).unwrap();
        let trace = folder.join("trace.tsv");
        recorder.write(&trace, 1).unwrap();
        let text = std::fs::read_to_string(&trace).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines[1], ["F", "0", "8202", "a", "10"]);
        let calls: Vec<_> = lines[2..].iter().map(|call| call[1..6].join(" ")).collect();
        assert_eq!(calls, ["0 w 0 -1 4096", "0 w 0 -1 4096", "0 s 0 0 0"]);
        assert!(lines[2..].iter().all(|call| call.len() == 8), "a CPU time each");
    }
}
