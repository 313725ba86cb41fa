//! The chunks of a sparse image, and which bytes of the disk each holds.

use std::fs::File;
use std::io::{self, BufReader, Read};

use super::{CHUNK_HEADER, CRC32, DONT_CARE, FILE_HEADER, FILL, MAGIC, MAJOR, RAW, SparseError};

/// Content of a run of the disk's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Bytes of the file, from this one on.
    At(u64),
    /// Four bytes, again and again.
    Fill([u8; 4]),
    /// Not stored; it reads as zeros.
    Nothing,
}

/// A run of the disk's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first of them.
    pub(super) start: u64,
    /// Number of bytes.
    pub(super) len: u64,
    pub(super) content: Content,
}

/// The runs of a disk, in order and without gaps.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) runs: Vec<Run>,
    /// Bytes of the disk.
    pub(super) bytes: u64,
}

/// The header of a sparse image.
struct Header {
    file_header: u64,
    chunk_header: u64,
    /// Bytes of a block.
    block: u64,
    blocks: u64,
    chunks: u32,
}

fn damaged(why: impl Into<String>) -> SparseError {
    SparseError::Damaged(why.into())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Header {
    fn parse(bytes: &[u8; FILE_HEADER]) -> Result<Self, SparseError> {
        if u32_at(bytes, 0) != MAGIC {
            return Err(damaged("its magic number is not there"));
        }
        let (major, minor) = (u16_at(bytes, 4), u16_at(bytes, 6));
        if major != MAJOR {
            return Err(damaged(format!("its version is {major}.{minor}, known is 1.0")));
        }
        let header = Self {
            file_header: u16_at(bytes, 8).into(),
            chunk_header: u16_at(bytes, 10).into(),
            block: u32_at(bytes, 12).into(),
            blocks: u32_at(bytes, 16).into(),
            chunks: u32_at(bytes, 20),
        };
        if header.file_header < FILE_HEADER as u64 || header.chunk_header < CHUNK_HEADER as u64 {
            return Err(damaged("its headers are shorter than headers are"));
        }
        if header.block == 0 || !header.block.is_multiple_of(4) {
            return Err(damaged(format!("it has blocks of {} bytes", header.block)));
        }
        Ok(header)
    }
}

impl Chunks {
    /// Reads all headers of a sparse image of `len` bytes.
    ///
    /// # Errors
    /// [`SparseError`].
    pub(super) fn read(file: &File, len: u64) -> Result<Self, SparseError> {
        let mut from = Cursor { file: BufReader::new(file), at: 0, len };
        let header = Header::parse(&from.take()?)?;
        from.skip(header.file_header - FILE_HEADER as u64)?;
        let (mut runs, mut blocks) = (Vec::new(), 0);
        for number in 0..header.chunks {
            let run = from.chunk(&header, number, blocks)?;
            blocks += run.len / header.block;
            if blocks > header.blocks {
                let most = header.blocks;
                return Err(damaged(format!("its chunks have more than its {most} blocks")));
            }
            if run.len > 0 {
                runs.push(run);
            }
        }
        // libsparse takes what is missing at the end for a gap as well
        let bytes = header.blocks * header.block;
        let start = blocks * header.block;
        if start < bytes {
            runs.push(Run { start, len: bytes - start, content: Content::Nothing });
        }
        Ok(Self { runs, bytes })
    }

    /// The runs from the one with byte `at` on.
    pub(super) fn from(&self, at: u64) -> &[Run] {
        let first = self.runs.partition_point(|run| run.start + run.len <= at);
        &self.runs[first..]
    }
}

/// A place in the file.
struct Cursor<'a> {
    file: BufReader<&'a File>,
    at: u64,
    len: u64,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SparseError> {
        let mut bytes = [0; N];
        self.check(N as u64)?;
        self.file.read_exact(&mut bytes).map_err(SparseError::Io)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), SparseError> {
        self.check(bytes)?;
        let offset = i64::try_from(bytes).map_err(io::Error::other)?;
        self.file.seek_relative(offset)?;
        self.at += bytes;
        Ok(())
    }

    /// So many bytes are there.
    fn check(&self, bytes: u64) -> Result<(), SparseError> {
        if self.len - self.at >= bytes {
            return Ok(());
        }
        let (len, wanted) = (self.len, self.at + bytes);
        Err(damaged(format!("it has {len} bytes and needs {wanted} at least: it was cut short")))
    }

    /// Reads the chunk that begins here, for the disk from block `first` on.
    fn chunk(&mut self, header: &Header, number: u32, first: u64) -> Result<Run, SparseError> {
        let head: [u8; CHUNK_HEADER] = self.take()?;
        let (kind, blocks, all) =
            (u16_at(&head, 0), u64::from(u32_at(&head, 4)), u64::from(u32_at(&head, 8)));
        self.skip(header.chunk_header - CHUNK_HEADER as u64)?;
        let len = blocks * header.block;
        let stored = match kind {
            RAW => len,
            FILL | CRC32 => 4,
            DONT_CARE => 0,
            _ => return Err(damaged(format!("chunk {number} is of type {kind:#06x}"))),
        };
        if all != header.chunk_header + stored {
            let expected = header.chunk_header + stored;
            return Err(damaged(format!("chunk {number} claims {all} bytes, not {expected}")));
        }
        let start = first * header.block;
        let content = match kind {
            RAW => {
                let at = self.at;
                self.skip(stored)?;
                Content::At(at)
            }
            FILL => Content::Fill(self.take()?),
            CRC32 => {
                self.skip(stored)?;
                return Ok(Run { start, len: 0, content: Content::Nothing });
            }
            _ => Content::Nothing,
        };
        Ok(Run { start, len, content })
    }
}
