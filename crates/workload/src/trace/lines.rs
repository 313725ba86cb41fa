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

/// Large enough that the cost of a read does not show, small enough to stay in the processor's
/// nearest caches.
const BUFFER_BYTES: usize = 64 << 10;

/// The text of a trace: its beginning, kept for the detection, then the rest.
type Text = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// The lines of a trace; every error names the file, and the line where that helps.
pub(crate) struct Lines {
    path: PathBuf,
    text: BufReader<Text>,
    compressed: bool,
    position: Position,
    /// A line that lies across the end of a buffer.
    line: Vec<u8>,
    /// Bytes of the buffer that the line last read takes; it lies there.
    taken: usize,
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
            taken: 0,
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
        self.text.consume(std::mem::take(&mut self.taken));
        let ahead = self.text.buffer();
        let ahead = &ahead[..ahead.len().min(LINE_BYTES_MAX)];
        let Some(end) = line_feed(ahead) else { return self.next_line_across() };
        self.number += 1;
        self.taken = end + 1;
        self.text_of(&self.text.buffer()[..end])
    }

    /// As [`Lines::next_line`], of one that does not lie in the buffer as a whole.
    fn next_line_across(&mut self) -> Result<Option<&str>, TraceError> {
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
        self.text_of(self.line.strip_suffix(b"\n").unwrap_or(&self.line))
    }

    /// The text of a line of these bytes.
    fn text_of<'a>(&self, text: &'a [u8]) -> Result<Option<&'a str>, TraceError> {
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

/// The index of the first line feed, looked for eight bytes at a time: lines are short.
#[inline]
fn line_feed(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let mut words = bytes.chunks_exact(8);
    for (index, word) in words.by_ref().enumerate() {
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        // a byte that is zero borrows from the bit above it; the lowest one is exact
        let different = word ^ (ONES * u64::from(b'\n'));
        let found = different.wrapping_sub(ONES) & !different & (ONES << 7);
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let rest = words.remainder();
    let at = bytes.len() - rest.len();
    rest.iter().position(|byte| *byte == b'\n').map(|index| at + index)
}

fn reading_failed(path: &Path, compressed: bool, source: io::Error) -> TraceError {
    let path = path.to_owned();
    if compressed && source.kind() == ErrorKind::UnexpectedEof {
        TraceError::Truncated { path }
    } else {
        TraceError::Read { path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_feed_is_found_wherever_it_is() {
        for len in 0..40 {
            for at in 0..=len {
                let mut bytes = vec![0x0b; len];
                bytes[at..].iter_mut().step_by(3).for_each(|byte| *byte = b'\n');
                let first = bytes.iter().position(|byte| *byte == b'\n');
                assert_eq!(line_feed(&bytes), first, "{len} {at}");
            }
        }
    }

    #[test]
    fn lines_across_the_end_of_a_buffer_are_whole() {
        let lines: Vec<String> = (0..60_000_u64).map(|n| format!("{n} {}", n * n * 31)).collect();
        let text = lines.join("\n");
        let mut read = Lines::read(Path::new("text"), Cursor::new(text.into_bytes())).unwrap();
        for line in &lines {
            assert_eq!(read.next_line().unwrap(), Some(line.as_str()));
        }
        assert_eq!(read.next_line().unwrap(), None);
    }
}
