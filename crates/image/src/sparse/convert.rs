//! From a sparse image to a plain one, and back.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{
    CHUNK_HEADER, FILE_HEADER, FILL, MAGIC, MAJOR, RAW, SparseError, SparseImage, is_sparse,
};
use crate::CHUNK;

/// Bytes of a block of the sparse images that are written, as img2simg has it.
const BLOCK: usize = 4096;
/// Blocks of a chunk with bytes, at most: 64 MiB, as libsparse has it.
const MOST_RAW: u32 = (64 << 20) / BLOCK as u32;

/// A reason why an image cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The image that is read.
    #[error("{file}: {why}", file = .0.display(), why = .1)]
    From(PathBuf, SparseError),
    /// It is not of the kind that is asked for.
    #[error("{file}: {why}", file = .0.display(), why = .1)]
    Kind(PathBuf, &'static str),
    /// The image that is made.
    #[error("{file} cannot be written: {why}", file = .0.display(), why = .1)]
    To(PathBuf, io::Error),
}

/// Makes the plain image `to`, a new file, of the sparse image `from`. `tell` hears of bytes done
/// and of all. What is zero becomes a hole. Returns the bytes of the disk.
///
/// # Errors
/// [`ConvertError`]; nothing of `to` is left then.
pub fn to_plain(
    from: &Path,
    to: &Path,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<u64, ConvertError> {
    if !begins_sparse(from)? {
        let why = "it is no Android sparse image: there is nothing to convert";
        return Err(ConvertError::Kind(from.into(), why));
    }
    let image = SparseImage::open(from).map_err(|error| ConvertError::From(from.into(), error))?;
    made(to, |file| {
        file.set_len(image.bytes()).map_err(|error| ConvertError::To(to.into(), error))?;
        let mut buffer = vec![0; CHUNK];
        for (start, len, zeros) in image.runs() {
            let end = start + len;
            let mut at = if zeros { end } else { start };
            while at < end {
                let part = (end - at).min(CHUNK as u64) as usize;
                image
                    .read_at(at, &mut buffer[..part])
                    .map_err(|error| ConvertError::From(from.into(), error.into()))?;
                file.write_all_at(&buffer[..part], at)
                    .map_err(|error| ConvertError::To(to.into(), error))?;
                at += part as u64;
                tell(at, image.bytes());
            }
        }
        Ok(image.bytes())
    })
}

/// Makes the sparse image `to`, a new file, of the plain image `from`: blocks of one repeated word
/// are stored as that word, zeros among them, all others as they are. So a device that is written
/// with it holds the same bytes, whatever it held before. Returns the bytes of the sparse image.
///
/// # Errors
/// [`ConvertError`]; nothing of `to` is left then.
pub fn to_sparse(
    from: &Path,
    to: &Path,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<u64, ConvertError> {
    if begins_sparse(from)? {
        let why = "it is an Android sparse image already";
        return Err(ConvertError::Kind(from.into(), why));
    }
    let unread = |error: io::Error| ConvertError::From(from.into(), error.into());
    let mut file = File::open(from).map_err(unread)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(unread)?;
    file.rewind().map_err(unread)?;
    let Ok(blocks) = u32::try_from(bytes.div_ceil(BLOCK as u64)) else {
        let why = "it is larger than the 16 TiB that a sparse image can describe";
        return Err(ConvertError::Kind(from.into(), why));
    };
    made(to, |target| {
        let unwritten = |error| ConvertError::To(to.into(), error);
        let mut chunks = Chunks::new(target).map_err(unwritten)?;
        let mut source = io::BufReader::with_capacity(CHUNK, file);
        for block in 0..u64::from(blocks) {
            let mut content = [0; BLOCK];
            let len = (bytes - block * BLOCK as u64).min(BLOCK as u64) as usize;
            source.read_exact(&mut content[..len]).map_err(unread)?;
            chunks.add(&content).map_err(unwritten)?;
            tell(block * BLOCK as u64, bytes);
        }
        chunks.finish(blocks).map_err(unwritten)
    })
}

fn begins_sparse(path: &Path) -> Result<bool, ConvertError> {
    let failed = |error: io::Error| ConvertError::From(path.into(), error.into());
    let mut head = Vec::new();
    File::open(path).map_err(failed)?.take(4).read_to_end(&mut head).map_err(failed)?;
    Ok(is_sparse(&head))
}

/// Makes a new file, durable when this returns. A file that cannot be finished is removed again.
fn made<T>(
    to: &Path,
    fill: impl FnOnce(&File) -> Result<T, ConvertError>,
) -> Result<T, ConvertError> {
    let file = File::create_new(to).map_err(|error| ConvertError::To(to.into(), error))?;
    let done = fill(&file).and_then(|done| {
        file.sync_all().map_err(|error| ConvertError::To(to.into(), error))?;
        Ok(done)
    });
    if done.is_err() {
        drop(std::fs::remove_file(to)); // what failed first is told
    }
    done
}

/// Content of a chunk that is being gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Raw,
    Fill([u8; 4]),
}

/// Writes chunks, each as long as its content goes on.
struct Chunks<'a> {
    out: BufWriter<&'a File>,
    /// The chunk that is open: its content, its blocks, and the place of its header.
    open: Option<(Kind, u32, u64)>,
    written: u64,
    count: u32,
}

impl<'a> Chunks<'a> {
    fn new(file: &'a File) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(CHUNK, file);
        out.write_all(&[0; FILE_HEADER])?;
        Ok(Self { out, open: None, written: FILE_HEADER as u64, count: 0 })
    }

    fn add(&mut self, block: &[u8; BLOCK]) -> io::Result<()> {
        let word = [block[0], block[1], block[2], block[3]];
        let uniform = block.as_chunks::<4>().0.iter().all(|next| *next == word);
        let kind = if uniform { Kind::Fill(word) } else { Kind::Raw };
        match &mut self.open {
            Some((open, blocks, _)) if *open == kind && (uniform || *blocks < MOST_RAW) => {
                *blocks += 1;
            }
            _ => {
                self.close()?;
                self.open = Some((kind, 1, self.written));
                self.put(&[0; CHUNK_HEADER])?;
            }
        }
        if uniform { Ok(()) } else { self.put(block) }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes the header of the open chunk, and the word of one that is filled.
    fn close(&mut self) -> io::Result<()> {
        let Some((kind, blocks, at)) = self.open.take() else { return Ok(()) };
        if let Kind::Fill(word) = kind {
            self.put(&word)?;
        }
        let (code, stored) = match kind {
            Kind::Raw => (RAW, blocks * BLOCK as u32),
            Kind::Fill(_) => (FILL, 4),
        };
        let mut header = [0; CHUNK_HEADER];
        header[..2].copy_from_slice(&code.to_le_bytes());
        header[4..8].copy_from_slice(&blocks.to_le_bytes());
        header[8..].copy_from_slice(&(CHUNK_HEADER as u32 + stored).to_le_bytes());
        self.count += 1;
        self.out.flush()?;
        self.out.get_ref().write_all_at(&header, at)
    }

    fn finish(mut self, blocks: u32) -> io::Result<u64> {
        self.close()?;
        let mut header = [0; FILE_HEADER];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..6].copy_from_slice(&MAJOR.to_le_bytes());
        header[8..10].copy_from_slice(&(FILE_HEADER as u16).to_le_bytes());
        header[10..12].copy_from_slice(&(CHUNK_HEADER as u16).to_le_bytes());
        header[12..16].copy_from_slice(&(BLOCK as u32).to_le_bytes());
        header[16..20].copy_from_slice(&blocks.to_le_bytes());
        header[20..24].copy_from_slice(&self.count.to_le_bytes());
        self.out.flush()?;
        self.out.get_ref().write_all_at(&header, 0)?;
        Ok(self.written)
    }
}
