//! Android sparse images: the chunks of a disk one after the other, without those that nobody
//! needs.
//!
//! The format is that of libsparse (`sparse_format.h` of Android's platform/system/core): a header,
//! then chunks with a header each. All numbers are little-endian.

mod chunks;
mod convert;
mod device;

pub use convert::{ConvertError, to_plain, to_sparse};
pub use device::SparseImage;

use std::io;

/// The magic number at the start.
const MAGIC: u32 = 0xED26_FF3A;
/// The only major version there is; the minor one does not matter.
const MAJOR: u16 = 1;
/// Bytes of the file's header, and of a chunk's; a later version may have longer ones.
const FILE_HEADER: usize = 28;
const CHUNK_HEADER: usize = 12;

/// Kinds of chunks: their bytes follow, four bytes that are repeated, nothing that anybody needs, a
/// checksum.
const RAW: u16 = 0xCAC1;
const FILL: u16 = 0xCAC2;
const DONT_CARE: u16 = 0xCAC3;
const CRC32: u16 = 0xCAC4;

/// A reason why a sparse image cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SparseError {
    /// The file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It contradicts itself.
    #[error("it is an Android sparse image, and a damaged one: {0}")]
    Damaged(String),
    /// It is to be written to.
    #[error(
        "it is an Android sparse image, which is only read: `dovetail image unsparse SPARSE PLAIN` makes a plain \
         image of it, which can be written, and `dovetail image sparse PLAIN SPARSE` a sparse one again"
    )]
    ReadOnly,
}

/// A file that begins so is a sparse image.
pub(crate) fn is_sparse(head: &[u8]) -> bool {
    head.starts_with(&MAGIC.to_le_bytes())
}
