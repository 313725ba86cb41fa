//! The algorithms of compressed clusters.

mod lzo;

use crate::format::CompressAlgorithm;

/// Decodes `stream` into `into`: how many bytes it gave, or what is wrong with it. `None` for an unknown algorithm.
/// No more memory is used than `into` and a decoder's fixed tables.
pub(crate) fn decompress(
    algorithm: CompressAlgorithm,
    stream: &[u8],
    into: &mut [u8],
) -> Option<Result<usize, String>> {
    match algorithm {
        // the stream itself says whether it has runs of zeros
        CompressAlgorithm::LZO | CompressAlgorithm::LZO_RLE => Some(told(lzo::decompress(stream, into))),
        CompressAlgorithm::LZ4 => Some(told(lz4_flex::block::decompress_into(stream, into))),
        CompressAlgorithm::ZSTD => Some(told(zstd::bulk::decompress_to_buffer(stream, into))),
        _ => None,
    }
}

fn told<E: ToString>(result: Result<usize, E>) -> Result<usize, String> {
    result.map_err(|error| error.to_string())
}
