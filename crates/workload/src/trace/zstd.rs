//! Zstandard as a stream: any number of frames one after the other, skippable ones among them (RFC
//! 8878, section 3.1).

use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Bytes decoded at a time.
const AT_ONCE: usize = 1 << 17;

/// The content of all frames of `source`.
pub(super) struct Frames<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    /// A frame has begun, and its checksum was not compared yet.
    in_frame: bool,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source: BufReader::new(source), decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Decodes until there is content to hand out; `false` at the end of the source.
    fn advance(&mut self) -> io::Result<bool> {
        while self.decoder.can_collect() == 0 {
            if !self.in_frame {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(false);
                }
                self.begin_frame()?;
            } else if self.decoder.is_finished() {
                self.end_frame()?;
            } else {
                let strategy = BlockDecodingStrategy::UptoBytes(AT_ONCE);
                let decoded = self.decoder.decode_blocks(&mut self.source, strategy);
                decoded.map_err(|error| self.fault(&error))?;
            }
        }
        Ok(true)
    }

    fn begin_frame(&mut self) -> io::Result<()> {
        match self.decoder.reset(&mut self.source) {
            Ok(()) => self.in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let skipped =
                    io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                if skipped < length.into() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(self.fault(&error)),
        }
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(found)) if stored != found => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a checksum of its content is wrong",
            )),
            _ => Ok(()),
        }
    }

    /// An error at the end of the source means that it was cut short.
    fn fault(&mut self, error: &FrameDecoderError) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => io::ErrorKind::UnexpectedEof.into(),
            _ => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || !self.advance()? { Ok(0) } else { self.decoder.read(into) }
    }
}
