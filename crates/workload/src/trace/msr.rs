//! The MSR Cambridge traces: `128166372003061629,usr,0,Read,7014609920,24576,41286`.
//!
//! Source: the README of the traces at the SNIA IOTTA repository; Narayanan, Donnelly and Rowstron,
//! "Write Off-Loading: Practical Power Management for Enterprise Storage", FAST 2008.

use super::field::{Bad, byte_range, columns, is_header, ticks};
use super::format::{Event, Parsed, State};
use crate::request::Op;

/// A tick of Windows' file time.
const NS_PER_TICK: u64 = 100;

pub(super) fn parse<'a>(line: &'a str, state: &mut State) -> Parsed<'a> {
    let columns = columns::<7>(line, "'TIMESTAMP,HOSTNAME,DISK,TYPE,OFFSET,SIZE,RESPONSETIME'")?;
    if is_header(&columns, state) {
        return Ok(None);
    }
    let [time, _host, disk, kind, offset, size, _response] = columns;
    let ns = ticks(time, NS_PER_TICK, "a timestamp in ticks of 100 ns")?;
    let op = match kind {
        _ if kind.eq_ignore_ascii_case("Read") => Op::Read,
        _ if kind.eq_ignore_ascii_case("Write") => Op::Write,
        _ => return Err(Bad::new("Read or Write", kind)),
    };
    Ok(Some(Event::plain(ns, disk, op, byte_range(offset, size)?)))
}

#[cfg(test)]
mod tests {
    use dovetail_block::ByteRange;

    use super::*;
    use crate::trace::Format;
    use crate::trace::format::tests::parse as parse_as;

    #[test]
    fn a_line_is_a_request() {
        let range = ByteRange::new(7_014_609_920, 24_576);
        assert_eq!(
            parse_as(Format::Msr, "128166372003061629,usr,1,Read,7014609920,24576,41286"),
            Ok(Some(Event::plain(12_816_637_200_306_162_900, "1", Op::Read, range)))
        );
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        for (line, message) in [
            (
                "1,usr,0,Read,0",
                "expected 'TIMESTAMP,HOSTNAME,DISK,TYPE,OFFSET,SIZE,RESPONSETIME', found '1,usr,0,Read,0'",
            ),
            ("1.5,usr,0,Read,0,512,1", "expected a timestamp in ticks of 100 ns, found '1.5'"),
            ("1,usr,0,Trim,0,512,1", "expected Read or Write, found 'Trim'"),
            ("1,usr,0,Write,0,0,1", "expected a length above 0, found '0'"),
            ("1,usr,0,Write,,512,1", "expected an offset in bytes, found the end of the line"),
        ] {
            assert_eq!(parse_as(Format::Msr, line), Err(message.to_owned()));
        }
    }
}
