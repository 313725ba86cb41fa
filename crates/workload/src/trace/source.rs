//! The bytes of a trace, decompressed, and how far in the file they are.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::gzip::Members;
use super::zstd::Frames;

/// Enough of a file to know its compression by.
const MAGIC_BYTES: u64 = 4;

/// An open trace.
pub(super) struct Source {
    /// The text.
    pub(super) text: Box<dyn Read + Send>,
    /// Is true if a text that ends too early can be told from one that ends.
    pub(super) compressed: bool,
    /// Amount of the file that has been read.
    pub(super) position: Position,
}

/// Amount of a file that has been read, in its own (compressed) bytes; includes what is read ahead.
pub(super) struct Position {
    read: Arc<AtomicU64>,
    total: u64,
}

impl Position {
    /// Bytes read and bytes in all; the latter is 0 when the file is no regular file.
    pub(super) fn get(&self) -> (u64, u64) {
        (self.read.load(Ordering::Relaxed), self.total)
    }
}

/// Opens the file at `path` and sees from its first bytes whether it is compressed.
pub(super) fn open(path: &Path) -> io::Result<Source> {
    let file = File::open(path)?;
    let total = file.metadata()?.len();
    of(file, total)
}

/// The same of anything that can be read, of `total` bytes (0: not known).
pub(super) fn of(file: impl Read + Send + 'static, total: u64) -> io::Result<Source> {
    let read = Arc::new(AtomicU64::new(0));
    let mut file = Counted { inner: file, read: Arc::clone(&read) };
    let mut magic = Vec::with_capacity(MAGIC_BYTES as usize);
    file.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic)?;
    let kind = Compression::of(&magic);
    let whole = Cursor::new(magic).chain(file);
    let text: Box<dyn Read + Send> = match kind {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(Members::new(Box::new(whole))),
        Compression::Zstd => Box::new(Frames::new(whole)),
    };
    let position = Position { read, total };
    Ok(Source { text, compressed: kind != Compression::None, position })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// Gzip: RFC 1952, section 2.3.1. Zstandard: RFC 8878, sections 3.1.1 and, for the skippable
    /// frame that pzstd begins with, 3.1.2.
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1F, 0x8B, ..] => Self::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Counts what is read through it.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
