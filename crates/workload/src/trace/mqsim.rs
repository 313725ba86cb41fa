//! MQSim's ASCII format, which is DiskSim's with nanoseconds: `938513000 4 264719034 16 0`.
//!
//! Source: the README of github.com/CMU-SAFARI/MQSim, "Defining a Trace-based Workload", and
//! Tavakkol and others, "MQSim: A Framework for Enabling Realistic Studies of Modern Multi-Queue
//! SSD Devices", FAST 2018. MQSim's workload file may set another unit of time; here it is always
//! nanoseconds, its traces' own.

use dovetail_block::{ByteRange, SECTOR_SIZE};

use super::field::{Bad, Words, number, sector_range};
use super::format::{Event, Parsed, State};
use crate::request::Op;

pub(super) fn parse<'a>(line: &'a str, _: &mut State) -> Parsed<'a> {
    parse_usual(line).map_or_else(|| parse_any(line), |event| Ok(Some(event)))
}

/// A line as nearly all are: numbers that are short and in range. Each byte is looked at once.
fn parse_usual(line: &str) -> Option<Event<'_>> {
    let mut words = Words::new(line);
    let ns = words.short_number()?;
    let device = words.word();
    let start = words.short_number()?.checked_mul(SECTOR_SIZE)?;
    let len = words.short_number()?.checked_mul(SECTOR_SIZE)?;
    let op = match words.word() {
        "0" => Op::Write,
        "1" => Op::Read,
        _ => return None,
    };
    let is_range = len > 0 && start.checked_add(len).is_some();
    (is_range && words.is_at_end())
        .then(|| Event::plain(ns, device, op, ByteRange::new(start, len)))
}

/// Any line, and what is wrong with it.
fn parse_any(line: &str) -> Parsed<'_> {
    let mut words = Words::new(line);
    let [time, device, sector, sectors, kind, beyond] = std::array::from_fn(|_| words.word());
    if kind.is_empty() || !beyond.is_empty() {
        return Err(Bad::new("'ARRIVAL DEVICE SECTOR SECTORS TYPE'", line));
    }
    let ns = number(time, "an arrival time in nanoseconds")?;
    let range = sector_range(sector, sectors)?;
    let op = match kind {
        "0" => Op::Write,
        "1" => Op::Read,
        _ => return Err(Bad::new("0 (write) or 1 (read)", kind)),
    };
    Ok(Some(Event::plain(ns, device, op, range)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Format;
    use crate::trace::format::tests::parse as parse_as;

    #[test]
    fn a_line_is_a_request() {
        let range = ByteRange::new(264_719_034 * 512, 8192);
        assert_eq!(
            parse_as(Format::Mqsim, "938513000 4 264719034 16 0"),
            Ok(Some(Event::plain(938_513_000, "4", Op::Write, range)))
        );
        assert_eq!(parse_as(Format::Mqsim, "0\t0\t0\t8\t1 ").unwrap().unwrap().op, Op::Read);
    }

    #[test]
    fn usual_lines_are_read_as_any() {
        for line in ["0\t0\t0\t8\t1 ", " 12  4 264719034 16 0", "1 a\u{e9}b 8 8 1", "7 0 8 8 0 "] {
            let expected = parse_any(line).unwrap_or_else(|bad| panic!("{line}: {bad}"));
            assert_eq!(parse_usual(line), expected, "{line}");
        }
        for line in ["1 0 8 8", "1 0 8 8 00", "1 0 8 0 0", "1 0 36028797018963967 8 0", "x 0 8 8 0"]
        {
            assert_eq!(parse_usual(line), None, "{line}");
        }
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        for (line, message) in [
            ("1 0 8 8", "expected 'ARRIVAL DEVICE SECTOR SECTORS TYPE', found '1 0 8 8'"),
            ("1 0 8 8 0 9", "expected 'ARRIVAL DEVICE SECTOR SECTORS TYPE', found '1 0 8 8 0 9'"),
            ("1.5 0 8 8 0", "expected an arrival time in nanoseconds, found '1.5'"),
            ("1 0 8 0 0", "expected a length above 0, found '0'"),
            ("1 0 8 8 2", "expected 0 (write) or 1 (read), found '2'"),
        ] {
            assert_eq!(parse_as(Format::Mqsim, line), Err(message.to_owned()));
        }
    }
}
