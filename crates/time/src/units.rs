//! Sizes and ratios as people write them.

use std::fmt;
use std::str::FromStr;

use crate::SimSpan;

/// A size or ratio that could not be read; the message says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

const SUFFIXES: [(&str, u64); 16] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("b", 1),
];

/// Reads a size: a whole number with an optional suffix. K, M, G, T, P and KiB, ... are powers of
/// 1024 as in fio, kB, MB, GB, TB, PB powers of 1000 as on a drive's label.
///
/// # Errors
/// A text that is not such a number, or one beyond 2^64 bytes.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| {
            lower.strip_suffix(suffix).map(|rest| (rest.trim_end(), *factor))
        })
        .unwrap_or((lower.as_str(), 1));
    let count: u64 = digits.parse().map_err(|_| {
        UnitError(format!("'{text}' is not a size; write 4096, 64K, 32M, 2G or 1T"))
    })?;
    count.checked_mul(factor).ok_or_else(|| UnitError(format!("'{text}' is beyond 2^64 bytes")))
}

/// Reads a time: a number with `ns`, `us`, `ms`, `s`, `min` or `h` behind it.
///
/// # Errors
/// A text that is not such a number, or one beyond 2^64 nanoseconds.
pub fn parse_span(text: &str) -> Result<SimSpan, UnitError> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9), ("h", 3600e9)];
    let found = UNITS.iter().find_map(|(unit, ns)| Some((text.trim().strip_suffix(unit)?, ns)));
    let ns = found.and_then(|(number, ns)| Some(number.trim_end().parse::<f64>().ok()? * ns));
    match ns {
        Some(ns) if (0.0..u64::MAX as f64).contains(&ns) => Ok(SimSpan::from_ns(ns.round() as u64)),
        _ => Err(UnitError(format!("'{text}' is not a time; write 500ms, 60s or 5min"))),
    }
}

/// A size with at most three digits before a binary suffix: `64.0 KiB`, `1.50 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A whole number with its digits in groups of three: `1,234,567`.
pub fn format_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A positive fraction, written `1/16` or `0.25` or `1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio(f64);

impl Ratio {
    /// The whole.
    pub const ONE: Self = Self(1.0);

    /// A fraction.
    ///
    /// # Errors
    /// A number that is not above 0, or not finite.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        match value {
            value if value > 0.0 && value.is_finite() => Ok(Self(value)),
            _ => Err(UnitError(format!("'{value}' is not a ratio above 0; write 1/16 or 0.0625"))),
        }
    }

    /// The fraction as a number above 0.
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl FromStr for Ratio {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let number = |part: &str| part.trim().parse::<f64>().ok();
        let value = match text.split_once('/') {
            Some((above, below)) => number(above).zip(number(below)).map(|(a, b)| a / b),
            None => number(text),
        };
        match value {
            Some(v) if v > 0.0 && v.is_finite() => Ok(Self(v)),
            _ => Err(UnitError(format!("'{text}' is not a ratio above 0; write 1/16 or 0.0625"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_fio_writes_them() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("64k"), Ok(65536));
        assert_eq!(parse_bytes("2 GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("7B"), Ok(7));
        assert_eq!(parse_bytes("250GB"), Ok(250_000_000_000));
        assert!(parse_bytes("12 apples").unwrap_err().to_string().contains("64K"));
        assert!(parse_bytes("99999999T").is_err());
    }

    #[test]
    fn times_read_with_their_unit() {
        assert_eq!(parse_span("250ms"), Ok(SimSpan::from_ms(250)));
        assert_eq!(parse_span("1.5 us"), Ok(SimSpan::from_ns(1500)));
        assert_eq!(parse_span("5min"), Ok(SimSpan::from_ms(300_000)));
        assert_eq!(parse_span("0s"), Ok(SimSpan::ZERO));
        for wrong in ["60", "-1s", "s", "nans", "1e30h", "infs"] {
            assert!(parse_span(wrong).unwrap_err().to_string().contains("60s"), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_counts_print_short() {
        assert_eq!(format_bytes(512), "512 B");
        assert_eq!(format_bytes(65536), "64.0 KiB");
        assert_eq!(format_bytes(1023 << 10), "1.00 MiB");
        assert_eq!(format_count(1_234_567), "1,234,567");
        assert_eq!(format_count(12), "12");
    }

    #[test]
    fn ratios_read_as_fractions() {
        assert_eq!("1/16".parse::<Ratio>().unwrap().value(), 0.0625);
        assert_eq!("0.5".parse::<Ratio>().unwrap().value(), 0.5);
        for wrong in ["0", "1/0", "-1", "x"] {
            assert!(wrong.parse::<Ratio>().is_err(), "{wrong}");
        }
    }
}
