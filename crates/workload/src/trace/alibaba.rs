//! The Alibaba block traces: `419,W,8792731648,16384,1577808144360767`.
//!
//! Source: the README of github.com/alibaba/block-traces, file io_traces.csv; "An In-Depth Analysis
//! of Cloud Block Storage Workloads in Large-Scale Production", IISWC 2020.

use super::field::{Bad, byte_range, columns, is_header, ticks};
use super::format::{Event, Parsed, State};
use crate::request::Op;

const NS_PER_US: u64 = 1_000;

pub(super) fn parse<'a>(line: &'a str, state: &mut State) -> Parsed<'a> {
    let columns = columns::<5>(line, "'DEVICE,OPCODE,OFFSET,LENGTH,TIMESTAMP'")?;
    if is_header(&columns, state) {
        return Ok(None);
    }
    let [device, opcode, offset, length, time] = columns;
    let op = match opcode {
        "R" => Op::Read,
        "W" => Op::Write,
        _ => return Err(Bad::new("R or W", opcode)),
    };
    let range = byte_range(offset, length)?;
    let ns = ticks(time, NS_PER_US, "a timestamp in microseconds")?;
    Ok(Some(Event::plain(ns, device, op, range)))
}

#[cfg(test)]
mod tests {
    use dovetail_block::ByteRange;

    use super::*;
    use crate::trace::Format;
    use crate::trace::format::tests::parse as parse_as;

    #[test]
    fn a_line_is_a_request() {
        let range = ByteRange::new(126_703_644_672, 4096);
        assert_eq!(
            parse_as(Format::Alibaba, "419,W,126703644672,4096,1577808000000626"),
            Ok(Some(Event::plain(1_577_808_000_000_626_000, "419", Op::Write, range)))
        );
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        for (line, message) in [
            ("0,R,0,512", "expected 'DEVICE,OPCODE,OFFSET,LENGTH,TIMESTAMP', found '0,R,0,512'"),
            ("0,r,0,512,1", "expected R or W, found 'r'"),
            ("0,R,0,0,1", "expected a length above 0, found '0'"),
            ("0,R,0,512,1e9", "expected a timestamp in microseconds, found '1e9'"),
        ] {
            assert_eq!(parse_as(Format::Alibaba, line), Err(message.to_owned()));
        }
    }
}
