//! The Tencent block storage traces: `1538323200,12910952,128,0,1063`.
//!
//! Source: the README of the traces at the SNIA IOTTA repository; Zhang and others, "OSCA: An
//! Online-Model Based Cache Allocation Scheme in Cloud Block Storage Systems", USENIX ATC 2020.
//! Times are whole seconds, so that requests come in bursts, in the order of the file.

use super::field::{Bad, columns, is_header, seconds, sector_range};
use super::format::{Event, Parsed, State};
use crate::request::Op;

pub(super) fn parse<'a>(line: &'a str, state: &mut State) -> Parsed<'a> {
    let columns = columns::<5>(line, "'TIMESTAMP,OFFSET,SIZE,IOTYPE,VOLUME'")?;
    if is_header(&columns, state) {
        return Ok(None);
    }
    let [time, sector, sectors, kind, volume] = columns;
    let ns = seconds(time, "a timestamp in seconds")?;
    let range = sector_range(sector, sectors)?;
    let op = match kind {
        "0" => Op::Read,
        "1" => Op::Write,
        _ => return Err(Bad::new("0 (read) or 1 (write)", kind)),
    };
    Ok(Some(Event::plain(ns, volume, op, range)))
}

#[cfg(test)]
mod tests {
    use dovetail_block::ByteRange;

    use super::*;
    use crate::trace::Format;
    use crate::trace::format::tests::parse as parse_as;

    #[test]
    fn a_line_is_a_request() {
        let range = ByteRange::new(6144 * 512, 8 * 512);
        assert_eq!(
            parse_as(Format::Tencent, "1538323200,6144,8,1,1063"),
            Ok(Some(Event::plain(1_538_323_200_000_000_000, "1063", Op::Write, range)))
        );
        assert_eq!(parse_as(Format::Tencent, "1,6144,8,0,7").unwrap().unwrap().op, Op::Read);
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        for (line, message) in [
            ("1,2,3,0", "expected 'TIMESTAMP,OFFSET,SIZE,IOTYPE,VOLUME', found '1,2,3,0'"),
            ("x,2,3,0,1", "expected a timestamp in seconds, found 'x'"),
            ("1,2,0,0,1", "expected a length above 0, found '0'"),
            ("1,2,3,2,1", "expected 0 (read) or 1 (write), found '2'"),
        ] {
            assert_eq!(parse_as(Format::Tencent, line), Err(message.to_owned()));
        }
    }
}
