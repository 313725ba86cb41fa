//! Decodes LZO1X streams, also those with runs of zeros (LZO-RLE).
//!
//! The format as the kernel documents it (Documentation/staging/lzo.rst). A stream is a series of
//! instructions: a run of literals, or a match that repeats earlier output, followed by up to three
//! literals. What an instruction below 16 means depends on how many literals came before it.

/// Error in a compressed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LzoError {
    #[error("the stream ends within an instruction")]
    Ends,
    #[error("there is more in it than a cluster holds")]
    TooLong,
    #[error("a match begins before the first byte")]
    Distance,
    #[error("bytes follow the end of the stream")]
    Trailing,
}

/// The shortest stream that begins with a version.
const MIN_VERSIONED: usize = 5;
/// The shortest run of zeros.
const MIN_ZEROS: usize = 4;

/// Decodes `stream` into `into` and returns how many bytes it gave.
pub(super) fn decompress(stream: &[u8], into: &mut [u8]) -> Result<usize, LzoError> {
    let mut decoder = Decoder { input: stream, output: into, len: 0, literals: 0, has_runs: false };
    decoder.start()?;
    while decoder.instruction()? {}
    if decoder.input.is_empty() { Ok(decoder.len) } else { Err(LzoError::Trailing) }
}

struct Decoder<'a> {
    input: &'a [u8],
    output: &'a mut [u8],
    len: usize,
    /// Number of literals copied by the last instruction; 4 stands for all larger numbers.
    literals: usize,
    /// The stream has a version, and with it runs of zeros.
    has_runs: bool,
}

impl Decoder<'_> {
    /// The first byte has a coding of its own.
    fn start(&mut self) -> Result<(), LzoError> {
        if self.input.len() >= MIN_VERSIONED && self.input[0] == 17 {
            self.has_runs = self.input[1] > 0;
            self.input = &self.input[2..];
        }
        match self.input.first() {
            Some(&first @ 18..) => {
                self.byte()?;
                self.copy_literals(usize::from(first) - 17)
            }
            _ => Ok(()),
        }
    }

    /// Carries out the next instruction; false at the end of the stream.
    fn instruction(&mut self) -> Result<bool, LzoError> {
        let byte = self.byte()?;
        let code = usize::from(byte);
        match byte {
            0..=15 if self.literals == 0 => {
                let len = self.length(code, 4)? + 3;
                self.copy_literals(len)?;
            }
            0..=15 => self.short_match(code)?,
            16..=31 => return self.far_match(code),
            32..=63 => {
                let len = self.length(code, 5)? + 2;
                let tail = self.two_bytes()?;
                self.copy_match((tail >> 2) + 1, len, tail & 3)?;
            }
            64..=127 => self.near_match(code, 3 + ((code >> 5) & 1))?,
            128..=255 => self.near_match(code, 5 + ((code >> 5) & 3))?,
        }
        Ok(true)
    }

    fn short_match(&mut self, code: usize) -> Result<(), LzoError> {
        let (base, len) = if self.literals == 4 { (2049, 3) } else { (1, 2) };
        let distance = (usize::from(self.byte()?) << 2) + ((code >> 2) & 3) + base;
        self.copy_match(distance, len, code & 3)
    }

    fn near_match(&mut self, code: usize, len: usize) -> Result<(), LzoError> {
        let distance = (usize::from(self.byte()?) << 3) + ((code >> 2) & 7) + 1;
        self.copy_match(distance, len, code & 3)
    }

    /// A match 16 to 48 KiB back, a run of zeros or the end of the stream.
    fn far_match(&mut self, code: usize) -> Result<bool, LzoError> {
        if let Some(tail) = self.zeros_ahead(code) {
            self.two_bytes()?;
            let len = ((usize::from(self.byte()?) << 3) | (code & 7)) + MIN_ZEROS;
            self.room(len)?.fill(0);
            self.len += len;
            return self.copy_literals(tail & 3).map(|()| true);
        }
        let len = self.length(code, 3)? + 2;
        let tail = self.two_bytes()?;
        let distance = 16_384 + ((code & 8) << 11) + (tail >> 2);
        if distance == 16_384 {
            return Ok(false);
        }
        self.copy_match(distance, len, tail & 3).map(|()| true)
    }

    /// The two bytes after the instruction, when they make it a run of zeros: the largest distance.
    fn zeros_ahead(&self, code: usize) -> Option<usize> {
        let tail = usize::from(u16::from_le_bytes(*self.input.first_chunk()?));
        (self.has_runs && code & 8 != 0 && tail & 0xFFFC == 0xFFFC).then_some(tail)
    }

    /// A length in the low `bits` of the instruction, which goes on in the next bytes if they
    /// are 0.
    fn length(&mut self, code: usize, bits: u32) -> Result<usize, LzoError> {
        let mask = (1 << bits) - 1;
        if code & mask != 0 {
            return Ok(code & mask);
        }
        let zeros = self.input.iter().take_while(|&&byte| byte == 0).count();
        self.input = &self.input[zeros..];
        Ok(mask + 255 * zeros + usize::from(self.byte()?))
    }

    /// Copies `len` bytes from `distance` back; they may overlap with what is being written.
    fn copy_match(&mut self, distance: usize, len: usize, literals: usize) -> Result<(), LzoError> {
        self.room(len)?;
        let from = self.len.checked_sub(distance).ok_or(LzoError::Distance)?;
        if distance >= len {
            self.output.copy_within(from..from + len, self.len);
        } else {
            (0..len).for_each(|i| self.output[self.len + i] = self.output[from + i]);
        }
        self.len += len;
        self.copy_literals(literals)
    }

    fn copy_literals(&mut self, count: usize) -> Result<(), LzoError> {
        let (literals, rest) = self.input.split_at_checked(count).ok_or(LzoError::Ends)?;
        self.room(count)?.copy_from_slice(literals);
        self.input = rest;
        self.len += count;
        self.literals = count.min(4);
        Ok(())
    }

    /// The next `len` bytes of the output.
    fn room(&mut self, len: usize) -> Result<&mut [u8], LzoError> {
        let end = self.len.saturating_add(len);
        self.output.get_mut(self.len..end).ok_or(LzoError::TooLong)
    }

    fn byte(&mut self) -> Result<u8, LzoError> {
        let (first, rest) = self.input.split_first().ok_or(LzoError::Ends)?;
        self.input = rest;
        Ok(*first)
    }

    fn two_bytes(&mut self) -> Result<usize, LzoError> {
        Ok(usize::from(u16::from_le_bytes([self.byte()?, self.byte()?])))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: [u8; 3] = [17, 0, 0];

    fn decode(parts: &[&[u8]], room: usize) -> Result<Vec<u8>, LzoError> {
        let mut out = vec![0xAA; room];
        let len = decompress(&parts.concat(), &mut out)?;
        out.truncate(len);
        Ok(out)
    }

    #[test]
    fn literals_and_each_kind_of_match() {
        // 4 literals; a match of 5 bytes, 4 back, then 3 literals; 2 bytes, 1 back
        let parts: [&[u8]; 4] =
            [&[17 + 4, b'a', b'b', b'c', b'd'], &[0x8F, 0, b'x', b'y', b'z'], &[0, 0], &END];
        assert_eq!(decode(&parts, 14).unwrap(), b"abcdabcdaxyzzz");
        // 2 literals; a match of 4 bytes, 2 back; a long run of literals: 3 + 15 + 1 of them
        let run = [b'-'; 19];
        let parts: [&[u8]; 5] = [&[19, b'p', b'q'], &[0x64, 0], &[0, 1], &run, &END];
        assert_eq!(decode(&parts, 99).unwrap(), [b"pqpqpq".as_slice(), &run].concat());
        // a match of 2 + 31 + 255 + 12 bytes, 1 back
        assert_eq!(decode(&[&[18, b'z'], &[0x20, 0, 12, 0, 0], &END], 301).unwrap(), [b'z'; 301]);
    }

    #[test]
    fn far_matches() {
        let literals: Vec<u8> = (0..40_000_u32).map(|i| ((i * i) >> 7) as u8).collect();
        let (zeros, rest) = ((40_000 - 18) / 255, (40_000 - 18) % 255);
        let long = [vec![0; 1 + zeros], vec![rest as u8]].concat();
        let mut expected = literals.clone();
        expected.extend_from_within(40_000 - 2051..40_000 - 2048); // 3 bytes, 2049 + 2 back
        expected.extend_from_within(40_003 - 16_387..40_003 - 16_383); // 4 bytes, 16384 + 3 back
        expected.extend_from_within(40_007 - 32_768..40_007 - 32_758); // 2 + 7 + 1 bytes, 32768 back
        let parts: [&[u8]; 6] = [&long, &literals, &[8, 0], &[0x12, 12, 0], &[0x18, 1, 0, 0], &END];
        assert_eq!(decode(&parts, 50_000).unwrap(), expected);
    }

    #[test]
    fn runs_of_zeros_need_a_version() {
        // a run of (2 << 3 | 5) + 4 zeros with a literal after it
        let parts: [&[u8]; 4] = [&[17, 1], &[18, b'a'], &[0x1D, 0xFD, 0xFF, 2, b'b'], &END];
        let expected = [b"a".as_slice(), &[0; 25], b"b"].concat();
        assert_eq!(decode(&parts, 27).unwrap(), expected);
        assert_eq!(decode(&parts[1..], 27), Err(LzoError::Distance), "a match 49,151 back");
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert_eq!(decode(&[], 9), Err(LzoError::Ends));
        assert_eq!(decode(&[&[21, b'a', b'b', b'c']], 9), Err(LzoError::Ends));
        assert_eq!(decode(&[&[18, b'a'], &END], 0), Err(LzoError::TooLong));
        assert_eq!(
            decode(&[&[18, b'a'], &[0x20, 0, 0, 0, 1, 0, 0], &END], 9),
            Err(LzoError::TooLong)
        );
        assert_eq!(decode(&[&[18, b'a'], &[64, 9], &END], 9), Err(LzoError::Distance));
        assert_eq!(decode(&[&[18, b'a'], &END, &[0]], 9), Err(LzoError::Trailing));
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_a_result(stream in prop::collection::vec(any::<u8>(), 0..300), room in 0..5000_usize) {
            let _ = decompress(&stream, &mut vec![0; room]);
        }
    }
}
