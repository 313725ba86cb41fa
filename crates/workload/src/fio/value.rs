//! Values of options: sizes, times, lists, as fio reads them.
//!
//! fio passes over what follows a number that it understood (`bs=4x` is 4 bytes); here that is an
//! error.

use std::ops::RangeInclusive;

/// Description of the value that was expected.
pub(super) type Expected = &'static str;

/// The text of a value and how its units are meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    pub text: &'a str,
    /// `kb_base`: what `k` stands for, 1024 or 1000.
    pub kilo: u64,
}

/// Counts that an option takes, and how a message says so.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub range: RangeInclusive<u64>,
    pub expected: Expected,
}

/// A size, or a share of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Bytes(u64),
    Percent(u64),
}

impl Extent {
    /// In bytes, of `whole`.
    pub(super) fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

pub(super) const NS_PER_US: u64 = 1_000;
pub(super) const NS_PER_S: u64 = 1_000_000_000;

const SIZE: Expected = "a size such as 4096, 4k or 1m";
const TIME: Expected = "a time such as 10, 500ms or 2m";
const RANGE: Expected = "a range such as 1k-4k";

impl<'a> Value<'a> {
    /// The same units, another text.
    pub(super) fn part(self, text: &'a str) -> Self {
        Self { text: text.trim(), ..self }
    }

    /// 0 or 1; a bare option is 1.
    pub(super) fn flag(self) -> Result<bool, Expected> {
        match self.text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err("0 or 1"),
        }
    }

    /// A whole number, with the suffixes of a size.
    pub(super) fn count(self, counts: Counts) -> Result<u64, Expected> {
        let count = self.size().map_err(|_| counts.expected)?;
        if counts.range.contains(&count) { Ok(count) } else { Err(counts.expected) }
    }

    pub(super) fn percent(self) -> Result<u8, Expected> {
        self.text.parse().ok().filter(|p| *p <= 100).ok_or("a percentage from 0 to 100")
    }

    /// Bytes. `kib` is the other base than `k`, `kb` and `ki`: so does fio 3.33, whatever its
    /// manual says.
    pub(super) fn size(self) -> Result<u64, Expected> {
        let lower = self.text.to_ascii_lowercase();
        let (number, suffix) = number_and_suffix(&lower).ok_or(SIZE)?;
        let (power, rest) = match suffix.chars().next().and_then(|c| "kmgtp".find(c)) {
            Some(at) => (at as u32 + 1, &suffix[1..]),
            None => (0, suffix),
        };
        let base = match (power, rest) {
            (0, "" | "b") => 1,
            (1.., "" | "b" | "i") => self.kilo,
            (1.., "ib") => 2024 - self.kilo,
            _ => return Err(SIZE),
        };
        base.checked_pow(power).and_then(|unit| number.checked_mul(unit)).ok_or(SIZE)
    }

    /// A size above 0.
    pub(super) fn some_size(self) -> Result<u64, Expected> {
        self.size().ok().filter(|size| *size > 0).ok_or("a size above 0, such as 4k or 1m")
    }

    /// A size, or `N%`.
    pub(super) fn extent(self) -> Result<Extent, Expected> {
        let Some(percent) = self.text.strip_suffix('%') else {
            return self.size().map(Extent::Bytes);
        };
        let percent = percent.trim_end().parse().ok().filter(|p| *p <= 100);
        percent.map(Extent::Percent).ok_or("a size such as 1m, or a share from 0% to 100%")
    }

    /// Nanoseconds; a number alone is in units of `unit_ns`.
    pub(super) fn time(self, unit_ns: u64) -> Result<u64, Expected> {
        let lower = self.text.to_ascii_lowercase();
        let (number, suffix) = number_and_suffix(&lower).ok_or(TIME)?;
        let unit = match suffix {
            "" => unit_ns,
            "us" | "usec" => NS_PER_US,
            "ms" | "msec" => 1_000_000,
            "s" | "sec" => NS_PER_S,
            "m" => 60 * NS_PER_S,
            "h" => 3_600 * NS_PER_S,
            "d" => 86_400 * NS_PER_S,
            _ => return Err(TIME),
        };
        number.checked_mul(unit).ok_or(TIME)
    }

    /// `low-high` or `low:high`, each read by `read`; the wrong way round is turned.
    pub(super) fn range(
        self,
        read: fn(Self) -> Result<u64, Expected>,
    ) -> Result<(u64, u64), Expected> {
        let (low, high) = self.text.split_once(['-', ':']).ok_or(RANGE)?;
        let (low, high) = (read(self.part(low))?, read(self.part(high))?);
        Ok((low.min(high), low.max(high)))
    }

    /// A range, or one value as both ends.
    pub(super) fn range_or_one(
        self,
        read: fn(Self) -> Result<u64, Expected>,
    ) -> Result<(u64, u64), Expected> {
        match read(self) {
            Ok(one) => Ok((one, one)),
            Err(_) if self.text.contains(['-', ':']) => self.range(read),
            Err(expected) => Err(expected),
        }
    }

    /// Up to three values for reads, writes and trims. One that is left empty keeps `default`; the
    /// last one goes for those behind it, unless a comma follows it.
    pub(super) fn triple<T: Clone>(
        self,
        default: [T; 3],
        read: impl Fn(Self) -> Result<T, Expected>,
    ) -> Result<[T; 3], Expected> {
        let mut triple = default;
        let parts: Vec<&str> = self.text.split(',').collect();
        if parts.len() > 3 || self.text.is_empty() {
            return Err("one value, or up to three separated by commas");
        }
        for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
            let value = read(self.part(part))?;
            let last = at + 1 == parts.len();
            let until = if last { 3 } else { at + 1 };
            triple[at..until].fill(value);
        }
        Ok(triple)
    }

    /// A finite number with a fraction.
    pub(super) fn fraction(self) -> Result<f64, Expected> {
        self.text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .ok_or("a number such as 1.2")
    }
}

/// Decimal or `0x` digits, and what follows them.
fn number_and_suffix(lower: &str) -> Option<(u64, &str)> {
    if let Some(hex) = lower.strip_prefix("0x") {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        return Some((u64::from_str_radix(&hex[..end], 16).ok()?, &hex[end..]));
    }
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    Some((lower[..end].parse().ok()?, &lower[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value { text, kilo: 1024 }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4KB", 4096),
            ("4ki", 4096),
            ("4kib", 4000),
            ("0x1000", 4096),
        ] {
            assert_eq!(value(text).size(), Ok(bytes), "{text}");
        }
        assert_eq!(Value { text: "4kib", kilo: 1000 }.size(), Ok(4096));
        assert_eq!(Value { text: "1m", kilo: 1000 }.size(), Ok(1_000_000));
        for bad in ["", "k", "4x", "1.5k", "-1", "4 k", "99999999p", "4bb", "ß"] {
            assert_eq!(value(bad).size(), Err(SIZE), "{bad}");
        }
    }

    #[test]
    fn times() {
        for (text, ns) in
            [("10", 10 * NS_PER_S), ("5us", 5_000), ("2M", 120 * NS_PER_S), ("3msec", 3_000_000)]
        {
            assert_eq!(value(text).time(NS_PER_S), Ok(ns), "{text}");
        }
        assert_eq!(value("10x").time(NS_PER_S), Err(TIME));
    }

    #[test]
    fn triples_fill_as_in_fio() {
        let read = |text| value(text).triple([1, 1, 1], Value::size);
        assert_eq!(read("8"), Ok([8, 8, 8]));
        assert_eq!(read("8,"), Ok([8, 1, 1]));
        assert_eq!(read(",8"), Ok([1, 8, 8]));
        assert_eq!(read(",8,"), Ok([1, 8, 1]));
        assert_eq!(read("2,3"), Ok([2, 3, 3]));
        assert!(read("1,2,3,4").is_err());
    }

    #[test]
    fn ranges_turn_around() {
        assert_eq!(value("4k-1k").range(Value::size), Ok((1024, 4096)));
        assert_eq!(value("1:2").range_or_one(Value::size), Ok((1, 2)));
        assert_eq!(value("7").range_or_one(Value::size), Ok((7, 7)));
        assert_eq!(value("a").range_or_one(Value::size), Err(SIZE), "not a wrong range");
        assert_eq!(value("1-a").range_or_one(Value::size), Err(SIZE));
        assert_eq!(value("7").range(Value::size), Err(RANGE));
    }
}
