//! `rw=`: which calls a job makes, and in which order.

use super::value::{Expected, Value};
use crate::call::Call;

/// Operation on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Read it.
    Read,
    /// Write it.
    Write,
    /// Give it back: a hole is punched.
    Trim,
}

impl Direction {
    /// All, in fio's order: `bs=READ,WRITE,TRIM`.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Direction of the call; `None` for calls that move no data.
    pub const fn of(call: &Call) -> Option<Self> {
        match call {
            Call::Read { .. } => Some(Self::Read),
            Call::Write { .. } | Call::Append { .. } => Some(Self::Write),
            Call::PunchHole { .. } => Some(Self::Trim),
            _ => None,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// The value of `rw=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub reads: bool,
    pub writes: bool,
    pub trims: bool,
    pub random: bool,
    pub modifier: Modifier,
}

/// The number behind the `:` of `rw=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    /// Every block has an offset of its own.
    None,
    /// A random offset for every so many blocks only.
    Every(u64),
    /// Bytes added to every sequential offset.
    Skip(i64),
}

const PATTERN: Expected = "read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite or \
                           randtrimwrite, and maybe \":\" and a number above 0";

impl Pattern {
    pub(super) const READ: Self =
        Self { reads: true, writes: false, trims: false, random: false, modifier: Modifier::None };

    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        let (word, modifier) = match value.text.split_once(':') {
            Some((word, modifier)) => (word, Some(value.part(modifier))),
            None => (value.text, None),
        };
        let mut pattern = Self::from_word(word).ok_or(PATTERN)?;
        if let Some(modifier) = modifier {
            pattern.modifier = if pattern.random { every(modifier)? } else { skip(modifier)? };
        }
        Ok(pattern)
    }

    fn from_word(word: &str) -> Option<Self> {
        let random = word.starts_with("rand");
        let (reads, writes, trims) = match word.strip_prefix("rand").unwrap_or(word) {
            "read" => (true, false, false),
            "write" => (false, true, false),
            "trim" => (false, false, true),
            "rw" => (true, true, false),
            "readwrite" if !random => (true, true, false),
            "trimwrite" => (false, true, true),
            _ => return None,
        };
        Some(Self { reads, writes, trims, random, modifier: Modifier::None })
    }

    /// Reads and writes drawn by lot.
    pub(super) const fn is_mixed(&self) -> bool {
        self.reads && self.writes
    }

    /// Each block is trimmed and then written.
    pub(super) const fn is_trim_write(&self) -> bool {
        self.trims && self.writes
    }

    pub(super) const fn does(&self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.reads,
            Direction::Write => self.writes,
            Direction::Trim => self.trims,
        }
    }
}

fn every(value: Value<'_>) -> Result<Modifier, Expected> {
    value.size().ok().filter(|n| *n > 0).map(Modifier::Every).ok_or(PATTERN)
}

/// It may go backwards: `rw=read:-8k`.
fn skip(value: Value<'_>) -> Result<Modifier, Expected> {
    let (sign, digits) =
        value.text.strip_prefix('-').map_or((1, value.text), |digits| (-1, digits));
    let bytes = value.part(digits).size().ok().filter(|bytes| *bytes < 1 << 50);
    bytes.map(|bytes| Modifier::Skip(sign * bytes as i64)).ok_or(PATTERN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pattern, Expected> {
        Pattern::parse(Value { text, kilo: 1024 })
    }

    #[test]
    fn every_form_of_rw() {
        for (word, reads, writes, trims) in [
            ("read", true, false, false),
            ("write", false, true, false),
            ("trim", false, false, true),
            ("rw", true, true, false),
            ("trimwrite", false, true, true),
        ] {
            for (word, random) in [(word.to_owned(), false), (format!("rand{word}"), true)] {
                let expected = Pattern { reads, writes, trims, random, modifier: Modifier::None };
                assert_eq!(parse(&word), Ok(expected), "{word}");
            }
        }
        assert_eq!(parse("readwrite"), parse("rw"));
        assert_eq!(parse("randread:8").unwrap().modifier, Modifier::Every(8));
        assert_eq!(parse("write:-4k").unwrap().modifier, Modifier::Skip(-4096));
        for bad in ["", "foo", "rand", "randreadwrite", "randread:0", "read:x", "read:-"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
