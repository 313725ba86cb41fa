//! The bytes of an image, whatever it is stored as: for looking at it before anything is known of
//! it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::sparse::is_sparse;
use crate::{Source, SparseImage};

/// The first device of a source, from its offset on.
#[derive(Debug)]
pub(crate) struct DiskBytes {
    stored: Stored,
    offset: u64,
}

#[derive(Debug)]
enum Stored {
    Plain(File),
    Sparse(Box<SparseImage>),
}

impl DiskBytes {
    /// Opens the first device of `source`. A damaged sparse image is taken as the file that it is.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn open(source: &Source) -> io::Result<Self> {
        let plain = Self { stored: Stored::Plain(File::open(source.path())?), offset: 0 };
        let sparse = match is_sparse(&plain.head(4)) {
            true => SparseImage::open(source.path()).ok(),
            false => None,
        };
        let stored = sparse.map_or(plain.stored, |image| Stored::Sparse(Box::new(image)));
        Ok(Self { stored, offset: source.offset() })
    }

    /// Bytes of it; `None` for a device.
    pub(crate) fn len(&self) -> Option<u64> {
        let all = match &self.stored {
            Stored::Plain(file) => {
                file.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len())?
            }
            Stored::Sparse(image) => image.bytes(),
        };
        Some(all.saturating_sub(self.offset))
    }

    /// Reads as much as there is.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let Some(start) = self.offset.checked_add(at) else { return 0 };
        match &self.stored {
            Stored::Plain(file) => {
                let mut len = 0;
                while let Ok(more @ 1..) = file.read_at(&mut into[len..], start + len as u64) {
                    len += more;
                }
                len
            }
            Stored::Sparse(image) => image.read_at(start, into).unwrap_or(0),
        }
    }

    /// The first bytes, at most so many.
    pub(crate) fn head(&self, most: usize) -> Vec<u8> {
        let mut head = vec![0; most];
        let len = self.read(0, &mut head);
        head.truncate(len);
        head
    }
}
