//! A sparse image as a device that is only read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use dovetail_block::{
    BLOCK_SIZE, BlockDevice, BlockRange, Capabilities, Command, Completion, Content, DeviceError,
    DeviceInfo, performs_at_once,
};
use dovetail_time::SimTime;

use super::SparseError;
use super::chunks::{Chunks, Content as Stored, Run};

/// A sparse image: its chunks are looked up when blocks are read. What it does not store reads as
/// zeros.
#[derive(Debug)]
pub struct SparseImage {
    file: File,
    chunks: Chunks,
    /// Byte of the disk at which the first block begins.
    offset: u64,
}

impl SparseImage {
    /// Opens the sparse image at `path`.
    ///
    /// # Errors
    /// [`SparseError`].
    pub fn open(path: &Path) -> Result<Self, SparseError> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let chunks = Chunks::read(&file, len)?;
        Ok(Self { file, chunks, offset: 0 })
    }

    /// The device that begins at byte `offset` of the disk, as a partition does.
    pub(crate) fn with_offset(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// Bytes of the disk.
    pub fn bytes(&self) -> u64 {
        self.chunks.bytes
    }

    /// Reads from byte `at` of the disk on; returns the bytes that were read, fewer at the end.
    pub(crate) fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        for run in self.chunks.from(at) {
            if done == into.len() {
                break;
            }
            let skipped = at + done as u64 - run.start;
            let len = (run.len - skipped).min((into.len() - done) as u64) as usize;
            self.read_run(run, skipped, &mut into[done..done + len])?;
            done += len;
        }
        Ok(done)
    }

    /// Reads bytes of a run, from its byte `skipped` on.
    fn read_run(&self, run: &Run, skipped: u64, into: &mut [u8]) -> io::Result<()> {
        match run.content {
            Stored::At(byte) => self.file.read_exact_at(into, byte + skipped)?,
            Stored::Fill(word) => {
                let bytes = word.iter().cycle().skip((skipped % 4) as usize);
                into.iter_mut().zip(bytes).for_each(|(into, byte)| *into = *byte);
            }
            Stored::Nothing => into.fill(0),
        }
        Ok(())
    }

    /// The runs of the disk that hold something: first byte and length of each, and whether all its
    /// bytes are 0.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u64, u64, bool)> {
        self.chunks.runs.iter().map(|run| {
            let zeros = matches!(run.content, Stored::Nothing | Stored::Fill([0, 0, 0, 0]));
            (run.start, run.len, zeros)
        })
    }

    fn read(&self, range: BlockRange, into: Option<&mut [Content]>) -> Result<(), DeviceError> {
        let Some(into) = into else { return self.info().check(range, range.blocks) };
        self.info().check(range, into.len() as u64)?;
        let failed =
            |error: io::Error| DeviceError::Host(format!("the image cannot be read: {error}"));
        for (block, content) in (range.start.0..).zip(into) {
            let mut bytes = [0; BLOCK_SIZE as usize];
            self.read_at(self.offset + block * BLOCK_SIZE, &mut bytes).map_err(failed)?;
            *content = Content::Bytes(Arc::new(bytes));
        }
        Ok(())
    }
}

impl BlockDevice for SparseImage {
    fn info(&self) -> DeviceInfo {
        let capabilities = Capabilities { streams: 1, ..Capabilities::default() };
        DeviceInfo { blocks: self.bytes().saturating_sub(self.offset) / BLOCK_SIZE, capabilities }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Read { range, into } => self.read(range, into)?,
            Command::Write { .. } => return Err(DeviceError::NotWritable),
            Command::Flush => {}
            refused => return Err(refused.unsupported()),
        }
        Ok(Completion::at(at))
    }
}

performs_at_once!(SparseImage);
