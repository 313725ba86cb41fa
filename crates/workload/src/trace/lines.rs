//! A trace line by line, in bounded memory.

use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::error::TraceError;
use super::source::{self, Position, Source};

/// The longest line that is read; the longest that any format is known to have is some hundred
/// bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

/// Bytes within which the end of a longer line is looked for. Assumed; a file without the end of a
/// line here is no text.
const LINE_SKIPPED_MAX: usize = 64 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes of the text that the detection of its format is shown.
const SAMPLE_BYTES: u64 = 64 << 10;

/// Large enough that the cost of a read does not show.
const BUFFER_BYTES: usize = 256 << 10;

/// The text of a trace: its beginning, kept for the detection, then the rest.
type Text = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// The lines of a trace; every error names the file, and the line where that helps.
pub(crate) struct Lines {
    path: PathBuf,
    text: BufReader<Text>,
    compressed: bool,
    position: Position,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Opens the trace at `path` and reads its beginning.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let opened = source::open(path);
        Self::of(path, opened.map_err(|source| TraceError::Open { path: path.into(), source })?)
    }

    /// The lines of what `reader` gives; `name` stands for the path.
    pub(crate) fn read(
        name: &Path,
        reader: impl Read + Send + 'static,
    ) -> Result<Self, TraceError> {
        let opened = source::of(reader, 0);
        Self::of(name, opened.map_err(|source| TraceError::Open { path: name.into(), source })?)
    }

    fn of(path: &Path, mut source: Source) -> Result<Self, TraceError> {
        let mut sample = Vec::new();
        let read = source.text.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample);
        let read = read.and_then(|_| {
            if sample.starts_with(BYTE_ORDER_MARK) {
                sample.drain(..BYTE_ORDER_MARK.len());
                source.text.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut sample)?;
            }
            Ok(())
        });
        read.map_err(|error| reading_failed(path, source.compressed, error))?;
        Ok(Self {
            path: path.to_owned(),
            text: BufReader::with_capacity(BUFFER_BYTES, Cursor::new(sample).chain(source.text)),
            compressed: source.compressed,
            position: source.position,
            line: Vec::new(),
            number: 0,
        })
    }

    /// The beginning of the text without a last line that goes on beyond it.
    pub(super) fn sample(&self) -> &[u8] {
        let bytes = self.beginning();
        if self.is_all_in_sample() {
            return bytes;
        }
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        &bytes[..end]
    }

    /// Returns whether the trace holds nothing but white space.
    pub(super) fn is_blank(&self) -> bool {
        self.is_all_in_sample() && self.beginning().trim_ascii().is_empty()
    }

    fn is_all_in_sample(&self) -> bool {
        (self.beginning().len() as u64) < SAMPLE_BYTES
    }

    /// First bytes of the text, up to 64 KiB.
    pub(super) fn beginning(&self) -> &[u8] {
        self.text.get_ref().get_ref().0.get_ref()
    }

    /// The next line without its line ending; `None` at the end of the trace.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, TraceError> {
        self.line.clear();
        let read =
            self.text.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.line);
        let length = read.map_err(|error| reading_failed(&self.path, self.compressed, error))?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        if length > LINE_BYTES_MAX {
            return Err(self.too_long());
        }
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        match std::str::from_utf8(text) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(TraceError::NotUtf8 { path: self.path.clone(), line: self.number }),
        }
    }

    /// Goes to the end of a line that is too long, which may be the end of the file.
    fn too_long(&mut self) -> TraceError {
        let ended = self.line.last() == Some(&b'\n') || {
            let mut rest = self.text.by_ref().take((LINE_SKIPPED_MAX - LINE_BYTES_MAX) as u64);
            match rest.skip_until(b'\n') {
                Err(error) => return reading_failed(&self.path, self.compressed, error),
                Ok(_) => rest.limit() > 0,
            }
        };
        let (path, line) = (self.path.clone(), self.number);
        if ended {
            TraceError::LineTooLong { path, line }
        } else {
            TraceError::NoText { path, line }
        }
    }

    /// The trace.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the line last read, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// See [`Position::get`].
    pub(super) fn progress(&self) -> (u64, u64) {
        self.position.get()
    }
}

fn reading_failed(path: &Path, compressed: bool, source: io::Error) -> TraceError {
    let path = path.to_owned();
    if compressed && source.kind() == ErrorKind::UnexpectedEof {
        TraceError::Truncated { path }
    } else {
        TraceError::Read { path, source }
    }
}
