//! The registry of formats, and what a parser of lines is given and gives back.

use std::fmt;
use std::str::FromStr;

use dovetail_block::ByteRange;

use super::blkparse::{self, BlkEvent};
use super::field::Bad;
use super::{alibaba, fio, mqsim, msr, tencent};
use crate::request::Op;

/// State that a parser keeps from line to line.
pub(super) struct State {
    /// This is the first line of the trace that is not blank: the place of a header.
    pub(super) first: bool,
    /// Event of a blkparse trace that counts as a request.
    pub(super) blk_event: BlkEvent,
    /// The time that `wait` lines of a fio log have added up to.
    pub(super) clock_ns: u64,
}

impl State {
    pub(super) fn new(blk_event: BlkEvent) -> Self {
        Self { first: true, blk_event, clock_ns: 0 }
    }
}

/// A request as it stands in a trace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    /// The time in nanoseconds since whatever the trace counts from.
    pub(super) ns: u64,
    pub(super) op: Op,
    pub(super) range: ByteRange,
    pub(super) preflush: bool,
    pub(super) fua: bool,
    /// The device, volume, disk or file, as the trace writes it.
    pub(super) device: &'a str,
}

impl<'a> Event<'a> {
    /// A read, write or discard with neither preflush nor FUA.
    pub(super) fn plain(ns: u64, device: &'a str, op: Op, range: ByteRange) -> Self {
        Self { ns, op, range, preflush: false, fua: false, device }
    }

    pub(super) fn flush(ns: u64, device: &'a str) -> Self {
        Self::plain(ns, device, Op::Flush, ByteRange::new(0, 0))
    }
}

/// Result of parsing a line: a request, something else that belongs there (`None`), or bad.
pub(super) type Parsed<'a> = Result<Option<Event<'a>>, Bad>;

/// A parser of one line, given without its line ending and never blank.
pub(super) type ParseLine = for<'a> fn(&'a str, &mut State) -> Parsed<'a>;

/// Declares [`Format`] from one line a format: variant, name at the command line, parser,
/// description.
macro_rules! formats {
    ($($variant:ident = $name:literal, $parse:path, $about:literal;)+) => {
        /// A format of traces. Written and read (`Display`, `FromStr`) as its name at the command
        /// line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format {
            $(#[doc = concat!("`", $name, "`: ", $about, ".")] $variant,)+
        }

        impl Format {
            /// Every format.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name at the command line: lower-case letters and digits.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Description of the format, in half a line for a list of formats.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about),+ }
            }

            pub(super) const fn parser(self) -> ParseLine {
                match self { $(Self::$variant => $parse),+ }
            }
        }
    };
}

formats! {
    Blkparse = "blkparse", blkparse::parse, "the default text of blkparse";
    FioV2 = "fio2", fio::parse_v2, "a fio iolog of version 2";
    FioV3 = "fio3", fio::parse_v3, "a fio iolog of version 3";
    Msr = "msr", msr::parse, "CSV of the MSR Cambridge traces (SNIA)";
    Alibaba = "alibaba", alibaba::parse, "CSV of the Alibaba block traces";
    Tencent = "tencent", tencent::parse, "CSV of the Tencent block storage traces (SNIA)";
    Mqsim = "mqsim", mqsim::parse, "the ASCII format of MQSim, times in nanoseconds";
}

/// A name that is no format; the message lists those that are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a trace format; the formats are {names}", names = names())]
pub struct UnknownFormat(String);

/// The names of all formats, with commas.
pub(super) fn names() -> String {
    Format::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.iter().find(|f| f.name().eq_ignore_ascii_case(text));
        found.copied().ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Parses `line` as one of `format` that is not the first; a bad line gives its message.
    pub(in crate::trace) fn parse(format: Format, line: &str) -> Result<Option<Event<'_>>, String> {
        let mut state = State { first: false, ..State::new(BlkEvent::Dispatch) };
        (format.parser())(line, &mut state).map_err(|bad| bad.to_string())
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(*format));
        }
        assert_eq!("MSR".parse(), Ok(Format::Msr));
    }

    #[test]
    fn an_unknown_name_lists_the_formats() {
        assert_eq!(
            "spc".parse::<Format>().unwrap_err().to_string(),
            "'spc' is not a trace format; the formats are blkparse, fio2, fio3, msr, alibaba, tencent, mqsim"
        );
    }

    proptest::proptest! {
        /// Also lines with the punctuation of the formats, which reach further than random text.
        #[test]
        fn no_line_panics_in_any_format(
            any in ".*",
            near in "[0-9]{0,3}[,. ]?[0-9 ,.+RWDFNCS\\[(-]{0,60}",
            first: bool,
        ) {
            for format in Format::ALL {
                for event in [BlkEvent::Dispatch, BlkEvent::Complete] {
                    for line in [&any, &near] {
                        let mut state = State { first, ..State::new(event) };
                        let _ = (format.parser())(line, &mut state);
                    }
                }
            }
        }
    }
}
