//! The algorithms of compressed clusters.

mod lzo;

use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::FrameDecoderError;

use crate::format::CompressAlgorithm;

/// The window that every decoder of Zstandard should have room for (RFC 8878, section 3.1.1.1.2); a
/// cluster needs less.
const MAX_ZSTD_WINDOW: u64 = 8 << 20;

/// Decodes `stream` into `into`: how many bytes it gave, or what is wrong with it. `None` for an
/// unknown algorithm. No more memory is used than `into` and a decoder's fixed tables.
pub(crate) fn decompress(
    algorithm: CompressAlgorithm,
    stream: &[u8],
    into: &mut [u8],
) -> Option<Result<usize, String>> {
    match algorithm {
        // the stream itself says whether it has runs of zeros
        CompressAlgorithm::LZO | CompressAlgorithm::LZO_RLE => {
            Some(told(lzo::decompress(stream, into)))
        }
        CompressAlgorithm::LZ4 => Some(told(lz4_flex::block::decompress_into(stream, into))),
        CompressAlgorithm::ZSTD => Some(told(unzstd(stream, into))),
        _ => None,
    }
}

fn unzstd(stream: &[u8], into: &mut [u8]) -> Result<usize, FrameDecoderError> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(MAX_ZSTD_WINDOW);
    decoder.decode_all(stream, into)
}

fn told<E: ToString>(result: Result<usize, E>) -> Result<usize, String> {
    result.map_err(|error| error.to_string())
}
