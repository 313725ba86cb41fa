//! Taking a line apart: words, columns, numbers, ranges. All formats share these.

use std::fmt;

use dovetail_block::{ByteRange, SECTOR_SIZE};

use super::format::State;

/// At most this much of a bad line is quoted, in characters.
const QUOTED_CHARS: usize = 40;

/// Numbers of so many digits fit into 64 bits.
const SHORT_DIGITS: usize = 18;

const NS_PER_SEC: u64 = 1_000_000_000;

/// Fault of a line.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) expected: &'static str,
    /// The text that stands there instead, control characters escaped, long text cut.
    pub(crate) found: String,
}

impl Bad {
    pub(crate) fn new(expected: &'static str, found: &str) -> Self {
        let mut text: String =
            found.chars().take(QUOTED_CHARS).flat_map(char::escape_debug).collect();
        if found.chars().nth(QUOTED_CHARS).is_some() {
            text.push_str("...");
        }
        let found =
            if text.is_empty() { "the end of the line".to_owned() } else { format!("'{text}'") };
        Self { expected, found }
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

/// The words of a line, between spaces and tabs.
pub(super) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line }
    }

    /// The next word; empty at the end of the line.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while end < bytes.len() && !is_blank(bytes[end]) {
            end += 1;
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(&byte) = self.rest.as_bytes().first()
            && is_blank(byte)
        {
            self.rest = &self.rest[1..];
        }
    }

    /// The next word as a number, read once; `None`, and the word is still to come, if it is none of
    /// up to 18 digits.
    #[inline]
    pub(super) fn short_number(&mut self) -> Option<u64> {
        self.skip_blanks();
        let bytes = self.rest.as_bytes();
        let (mut value, mut end) = (0_u64, 0);
        while let Some(digit) = bytes.get(end).map(|byte| byte.wrapping_sub(b'0'))
            && digit <= 9
        {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            end += 1;
        }
        let is_word = bytes.get(end).is_none_or(|byte| is_blank(*byte));
        if !is_word || end == 0 || end > SHORT_DIGITS {
            return None;
        }
        self.rest = &self.rest[end..];
        Some(value)
    }

    /// Nothing but blanks is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest.is_empty()
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The `N` columns of a CSV line, without spaces around them; `expected` names them all. There are
/// no quotes in any of the formats.
pub(super) fn columns<'a, const N: usize>(
    line: &'a str,
    expected: &'static str,
) -> Result<[&'a str; N], Bad> {
    let mut columns = [""; N];
    let mut count = 0;
    let mut start = 0;
    let ends = line.bytes().enumerate().filter(|(_, b)| *b == b',').map(|(at, _)| at);
    for end in ends.chain([line.len()]) {
        let Some(column) = columns.get_mut(count) else { return Err(Bad::new(expected, line)) };
        *column = line[start..end].trim_ascii();
        start = end + 1;
        count += 1;
    }
    if count == N { Ok(columns) } else { Err(Bad::new(expected, line)) }
}

/// Returns whether these columns are names: then the first line is a header, and no request.
pub(super) fn is_header<const N: usize>(columns: &[&str; N], state: &State) -> bool {
    state.first && columns.iter().all(|c| c.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// A whole number of digits only.
pub(crate) fn number(text: &str, expected: &'static str) -> Result<u64, Bad> {
    digits(text).ok_or_else(|| Bad::new(expected, text))
}

fn digits(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Nanoseconds in a time of `ticks` whole units of `ns_per_tick`.
pub(super) fn ticks(text: &str, ns_per_tick: u64, expected: &'static str) -> Result<u64, Bad> {
    digits(text).and_then(|n| n.checked_mul(ns_per_tick)).ok_or_else(|| Bad::new(expected, text))
}

/// Nanoseconds in a time of seconds with or without a fraction of at most nine digits.
pub(super) fn seconds(text: &str, expected: &'static str) -> Result<u64, Bad> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let ns = || {
        let missing = 9usize.checked_sub(fraction.len())?;
        let fraction = digits(fraction)? * 10u64.pow(missing as u32);
        digits(whole)?.checked_mul(NS_PER_SEC)?.checked_add(fraction)
    };
    ns().ok_or_else(|| Bad::new(expected, text))
}

/// The range of a request that transfers data, from its two columns in units of `unit` bytes: not
/// empty, and all of it below 2^64 bytes.
fn range(start: &str, len: &str, unit: u64, names: [&'static str; 2]) -> Result<ByteRange, Bad> {
    let first = number(start, names[0])?;
    let count = number(len, names[1])?;
    if count == 0 {
        return Err(Bad::new("a length above 0", len));
    }
    let bytes = |n: u64| n.checked_mul(unit);
    match bytes(first).zip(bytes(count)).filter(|(start, len)| start.checked_add(*len).is_some()) {
        Some((start, len)) => Ok(ByteRange::new(start, len)),
        None => Err(Bad::new("a range that ends below 2^64 bytes", &format!("{start} + {len}"))),
    }
}

/// A range from columns in bytes.
pub(super) fn byte_range(offset: &str, length: &str) -> Result<ByteRange, Bad> {
    range(offset, length, 1, ["an offset in bytes", "a length in bytes"])
}

/// A range from columns in sectors of 512 bytes.
pub(super) fn sector_range(sector: &str, sectors: &str) -> Result<ByteRange, Bad> {
    range(sector, sectors, SECTOR_SIZE, ["a sector number", "a number of sectors"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        let ns = |text| seconds(text, "a time").map_err(|bad| bad.to_string());
        assert_eq!(ns("12.000000345"), Ok(12_000_000_345));
        assert_eq!(ns("3.5"), Ok(3_500_000_000));
        assert_eq!(ns("1538323200"), Ok(1_538_323_200_000_000_000));
        for wrong in ["", ".", "1.", ".5", "1.0000000001", "-1.0", "99999999999.0", "1.2.3"] {
            assert_eq!(ns(wrong), Err(Bad::new("a time", wrong).to_string()), "{wrong}");
        }
    }

    #[test]
    fn ranges_stay_below_two_to_the_64() {
        let message = |start, len| sector_range(start, len).unwrap_err().to_string();
        assert_eq!(sector_range("36028797018963967", "0").unwrap_err().found, "'0'");
        assert_eq!(
            message("36028797018963968", "1"),
            "expected a range that ends below 2^64 bytes, found '36028797018963968 + 1'"
        );
        assert_eq!(
            message("36028797018963966", "2"),
            "expected a range that ends below 2^64 bytes, found '36028797018963966 + 2'"
        );
        assert_eq!(sector_range("8", "16").unwrap(), ByteRange::new(4096, 8192));
        assert_eq!(message("8", "x"), "expected a number of sectors, found 'x'");
        assert_eq!(message("8", ""), "expected a number of sectors, found the end of the line");
        assert_eq!(
            message("18446744073709551616", "1"),
            "expected a sector number, found '18446744073709551616'"
        );
    }

    #[test]
    fn what_is_quoted_is_short_and_printable() {
        let bad = Bad::new("a word", &"\u{0}\u{7f}".repeat(1000));
        assert_eq!(bad.found, format!("'{}...'", "\\0\\u{7f}".repeat(20)));
    }

    #[test]
    fn columns_are_counted() {
        assert_eq!(columns::<3>("a, b ,", "three").unwrap(), ["a", "b", ""]);
        assert!(columns::<3>("a,b", "three").is_err());
        assert!(columns::<3>("a,b,c,d", "three").is_err());
    }
}
