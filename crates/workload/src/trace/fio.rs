//! fio's iologs, versions 2 and 3: `/dev/sda write 4096 8192`, with a time in front in version 3.
//!
//! Source: fio's HOWTO, section "Trace file format". It gives the timestamps of version 3 no unit;
//! they are microseconds (`log_io_u` in fio's iolog.c). Of `wait` it says: microseconds, relative
//! to the `wait` before, below 100 discarded; that is what is done here, though fio itself
//! (`read_iolog_get`, fio issues 247 and 756) takes milliseconds since the start of the job.

use super::field::{Bad, Words, byte_range, number, ticks};
use super::format::{Event, Parsed, State};
use crate::request::Op;

const NS_PER_US: u64 = 1_000;

/// `wait` lines of less are discarded.
const WAIT_US_MIN: u64 = 100;

pub(super) fn parse_v2<'a>(line: &'a str, state: &mut State) -> Parsed<'a> {
    if state.first {
        return header(line, "fio version 2 iolog", "the header 'fio version 2 iolog'");
    }
    let mut words = Words::new(line);
    let (file, action) = (words.word(), words.word());
    if action == "wait" {
        state.clock_ns = state.clock_ns.saturating_add(wait_ns(words.word())?);
        return Ok(None);
    }
    parse_action(state.clock_ns, file, action, &mut words)
}

pub(super) fn parse_v3<'a>(line: &'a str, state: &mut State) -> Parsed<'a> {
    if state.first {
        return header(line, "fio version 3 iolog", "the header 'fio version 3 iolog'");
    }
    let mut words = Words::new(line);
    let ns = ticks(words.word(), NS_PER_US, "a timestamp in microseconds")?;
    let (file, action) = (words.word(), words.word());
    parse_action(ns, file, action, &mut words)
}

fn header<'a>(line: &str, header: &str, expected: &'static str) -> Parsed<'a> {
    if line.trim_ascii_end() == header { Ok(None) } else { Err(Bad::new(expected, line)) }
}

fn wait_ns(offset: &str) -> Result<u64, Bad> {
    let us = number(offset, "microseconds to wait")?;
    Ok(if us < WAIT_US_MIN { 0 } else { us.saturating_mul(NS_PER_US) })
}

/// The action of a line and its offset and length, the same in both versions.
fn parse_action<'a>(ns: u64, file: &'a str, action: &str, words: &mut Words<'a>) -> Parsed<'a> {
    let op = match action {
        "read" => Op::Read,
        "write" => Op::Write,
        "trim" => Op::Discard,
        "sync" | "datasync" => return Ok(Some(Event::flush(ns, file))),
        // sync_file_range(2) starts write-back and flushes no device.
        "add" | "open" | "close" | "sync_file_range" => return Ok(None),
        _ => {
            return Err(Bad::new(
                "an action (add, open, close, read, write, trim, sync or datasync)",
                action,
            ));
        }
    };
    let range = byte_range(words.word(), words.word())?;
    Ok(Some(Event::plain(ns, file, op, range)))
}

#[cfg(test)]
mod tests {
    use dovetail_block::ByteRange;

    use super::*;
    use crate::trace::Format;
    use crate::trace::format::tests::parse as parse_as;

    #[test]
    fn actions_of_version_2() {
        let v2 = |line: &'static str| parse_as(Format::FioV2, line).unwrap();
        let range = ByteRange::new(4096, 8192);
        assert_eq!(
            v2("/dev/sda read 4096 8192"),
            Some(Event::plain(0, "/dev/sda", Op::Read, range))
        );
        assert_eq!(
            v2("/dev/sda write 4096 8192"),
            Some(Event::plain(0, "/dev/sda", Op::Write, range))
        );
        assert_eq!(
            v2("/dev/sda trim 4096 8192"),
            Some(Event::plain(0, "/dev/sda", Op::Discard, range))
        );
        assert_eq!(v2("/dev/sda sync 0 0"), Some(Event::flush(0, "/dev/sda")));
        assert_eq!(v2("/dev/sda datasync 0 0"), Some(Event::flush(0, "/dev/sda")));
        for none in
            ["/dev/sda add", "/dev/sda open", "/dev/sda close", "/dev/sda sync_file_range 0 4096"]
        {
            assert_eq!(v2(none), None, "{none}");
        }
    }

    #[test]
    fn timestamps_of_version_3_are_microseconds() {
        let event = parse_as(Format::FioV3, "1500 f.0 write 0 4096").unwrap().unwrap();
        assert_eq!((event.ns, event.device), (1_500_000, "f.0"));
    }

    #[test]
    fn waits_of_version_2_add_up() {
        let mut state = State { first: false, ..State::new(Default::default()) };
        let mut at = |line: &'static str| parse_v2(line, &mut state).unwrap().map(|e| e.ns);
        assert_eq!(at("f wait 2000 0"), None);
        assert_eq!(at("f read 0 512"), Some(2_000_000));
        assert_eq!(at("f wait 99 0"), None);
        assert_eq!(at("f wait 100"), None);
        assert_eq!(at("f read 0 512"), Some(2_100_000));
    }

    #[test]
    fn the_first_line_is_the_header() {
        let mut state = State::new(Default::default());
        assert_eq!(parse_v3("fio version 3 iolog", &mut state).unwrap(), None);
        assert_eq!(
            parse_v2("fio version 3 iolog", &mut state).unwrap_err().to_string(),
            "expected the header 'fio version 2 iolog', found 'fio version 3 iolog'"
        );
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        let action =
            "expected an action (add, open, close, read, write, trim, sync or datasync), found";
        for (format, line, message) in [
            (Format::FioV2, "f mmap 0 512", format!("{action} 'mmap'")),
            (Format::FioV2, "f", format!("{action} the end of the line")),
            (
                Format::FioV2,
                "f read 0",
                "expected a length in bytes, found the end of the line".to_owned(),
            ),
            (Format::FioV2, "f read -1 512", "expected an offset in bytes, found '-1'".to_owned()),
            (Format::FioV2, "f read 0 0", "expected a length above 0, found '0'".to_owned()),
            (Format::FioV2, "f wait x", "expected microseconds to wait, found 'x'".to_owned()),
            (
                Format::FioV3,
                "f read 0 512",
                "expected a timestamp in microseconds, found 'f'".to_owned(),
            ),
            (Format::FioV3, "5 f wait 100 0", format!("{action} 'wait'")),
        ] {
            assert_eq!(parse_as(format, line), Err(message), "{line}");
        }
    }
}
