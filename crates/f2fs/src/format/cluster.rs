//! The header of a compressed cluster, and the numbers of the algorithms.

use std::fmt;

use super::u32_at;

/// Bytes of the header, before the compressed ones.
pub(crate) const CLUSTER_HEADER: usize = 24;

/// Compression algorithm of a file (`i_compress_algorithm`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressAlgorithm(pub u8);

impl CompressAlgorithm {
    /// LZO1X.
    pub const LZO: Self = Self(0);
    /// LZ4, also at the levels of LZ4HC.
    pub const LZ4: Self = Self(1);
    /// Zstandard.
    pub const ZSTD: Self = Self(2);
    /// LZO1X with runs of zeros.
    pub const LZO_RLE: Self = Self(3);
}

impl fmt::Display for CompressAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ["lzo", "lz4", "zstd", "lzo-rle"].get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "algorithm {}", self.0),
        }
    }
}

/// Header of a compressed cluster, at the start of its first data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClusterHeader {
    /// Number of compressed bytes that follow.
    pub(crate) len: u32,
    /// Their checksum, where the inode says that there is one.
    pub(crate) checksum: u32,
}

impl ClusterHeader {
    /// The header at the start of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self { len: u32_at(bytes, 0), checksum: u32_at(bytes, 4) }
    }
}
