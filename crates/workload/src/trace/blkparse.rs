//! blkparse's default text: `8,0 3 1 0.000000000 697 D W 223490 + 8 [kjournald]`.
//!
//! Source: blkparse(1), sections "Default output", "Action identifiers" and "RWBS description",
//! and, where the page is silent, blkparse_fmt.c of blktrace: there a request without sectors has
//! no `SECTOR + SECTORS`, and one that passes a command through to the device (`smartctl`, say) has
//! its bytes or nothing in that place.

use std::fmt;
use std::str::FromStr;

use super::field::{Bad, Words, number, seconds, sector_range};
use super::format::{Event, Parsed, State};
use crate::request::Op;

/// Event in the life of a block request that counts as the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlkEvent {
    /// `Q`: the file system's request, before the block layer splits or merges it.
    Queue,
    /// `I`: inserted into the scheduler's queue; requests that go to the device directly have none.
    Insert,
    /// `D`: dispatched, what the device saw.
    #[default]
    Dispatch,
    /// `C`: completed. Times are those of the completion.
    Complete,
}

impl BlkEvent {
    /// blkparse's letter for it.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Queue => "Q",
            Self::Insert => "I",
            Self::Dispatch => "D",
            Self::Complete => "C",
        }
    }
}

impl fmt::Display for BlkEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.letter())
    }
}

/// A text that names no event; the message lists those that there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an event to replay; the events are Q (queued), I (inserted), D (dispatched), C (completed)"
)]
pub struct UnknownEvent(String);

impl FromStr for BlkEvent {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        let all = [Self::Queue, Self::Insert, Self::Dispatch, Self::Complete];
        let found = all.into_iter().find(|e| e.letter().eq_ignore_ascii_case(text));
        found.ok_or_else(|| UnknownEvent(text.to_owned()))
    }
}

/// Content of the RWBS field.
struct Rwbs {
    /// `None` for `N`: no data.
    op: Option<Op>,
    preflush: bool,
    fua: bool,
}

pub(super) fn parse<'a>(line: &'a str, state: &mut State) -> Parsed<'a> {
    let mut words = Words::new(line);
    let device = words.word();
    if !is_device(device) {
        return if is_summary(line) {
            Ok(None)
        } else {
            Err(Bad::new("an event, 'MAJOR,MINOR CPU ...'", line))
        };
    }
    let [_cpu, _sequence, time, _pid, action] = std::array::from_fn(|_| words.word());
    if action.is_empty() {
        return Err(Bad::new("'MAJOR,MINOR CPU SEQUENCE TIME PID ACTION'", line));
    }
    if action != state.blk_event.letter() {
        return Ok(None);
    }
    let ns = seconds(time, "a time in seconds before the process id")?;
    let rwbs = rwbs(words.word())?;
    extent(ns, device, &rwbs, &mut words)
}

/// Major and minor number with a comma.
fn is_device(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    word.split_once(',').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Returns whether a line is from the statistics that blkparse prints after the events: totals by
/// CPU and device, and by process with `-s`.
fn is_summary(line: &str) -> bool {
    const STARTS: [&str; 6] =
        ["CPU", "Total (", "Throughput (", "Events (", "Skips: ", "Input file "];
    // " Reads Queued:          19,       76KiB ..."
    let is_figure = line.contains(':')
        && line
            .strip_prefix(' ')
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    // "fio (697)" or "fio (697, ...)" heads the figures of a process.
    let is_process = line.ends_with(')') && line.contains(" (");
    is_figure || is_process || STARTS.iter().any(|start| line.starts_with(start))
}

/// `F`? then one of `R W D N`, then any of `F` (FUA), `A` (readahead), `S` (sync), `M` (metadata)
/// and, from old kernels, `B` (barrier: durable in this place of the order, so preflush and FUA).
fn rwbs(word: &str) -> Result<Rwbs, Bad> {
    let bad = || Bad::new("RWBS such as R, WS, DS or FN after the action", word);
    let (preflush, rest) = word.strip_prefix('F').map_or((false, word), |rest| (true, rest));
    let (main, modifiers) = rest.as_bytes().split_first().ok_or_else(bad)?;
    let op = match main {
        b'R' => Some(Op::Read),
        b'W' => Some(Op::Write),
        b'D' => Some(Op::Discard),
        b'N' => None,
        _ => return Err(bad()),
    };
    let mut rwbs = Rwbs { op, preflush, fua: false };
    for modifier in modifiers {
        match modifier {
            b'F' => rwbs.fua = true,
            b'B' => (rwbs.preflush, rwbs.fua) = (true, true),
            b'A' | b'S' | b'M' => {}
            _ => return Err(bad()),
        }
    }
    Ok(rwbs)
}

/// The rest of the line: `SECTOR + SECTORS ...`, or what stands there when no sectors are
/// transferred.
fn extent<'a>(ns: u64, device: &'a str, rwbs: &Rwbs, words: &mut Words<'a>) -> Parsed<'a> {
    let Some(op) = rwbs.op else { return Ok(without_sectors(ns, device, rwbs)) };
    let sector = words.word();
    if starts_bracket(sector) {
        return Ok(without_sectors(ns, device, rwbs));
    }
    number(sector, "a sector number after the RWBS")?;
    let plus = words.word();
    if starts_bracket(plus) {
        return Ok(without_sectors(ns, device, rwbs));
    }
    let sectors = words.word();
    if plus != "+" {
        let found = format!("{plus} {sectors}");
        return Err(Bad::new("'+ SECTORS' after the sector number", found.trim_end()));
    }
    let range = sector_range(sector, sectors)?;
    Ok(Some(Event { ns, op, range, preflush: rwbs.preflush, fua: rwbs.fua, device }))
}

/// `[process]`, `[error]`, `(elapsed time)` or `(command bytes)`.
fn starts_bracket(word: &str) -> bool {
    word.starts_with(['[', '('])
}

/// An event that transfers no sectors: a flush, or nothing that a replay could repeat.
fn without_sectors<'a>(ns: u64, device: &'a str, rwbs: &Rwbs) -> Option<Event<'a>> {
    rwbs.preflush.then(|| Event::flush(ns, device))
}

#[cfg(test)]
mod tests {
    use dovetail_block::ByteRange;

    use super::*;
    use crate::trace::Format;
    use crate::trace::format::tests::parse as parse_as;

    fn dispatch(rest: &str) -> Result<Option<Event<'static>>, String> {
        let line = format!("253,0    0      431     5.842795776    83  D {rest}").leak();
        parse_as(Format::Blkparse, line)
    }

    fn request(rest: &str) -> (Op, ByteRange, bool, bool) {
        let event = dispatch(rest).unwrap().unwrap();
        assert_eq!((event.ns, event.device), (5_842_795_776, "253,0"));
        (event.op, event.range, event.preflush, event.fua)
    }

    #[test]
    fn the_rwbs_field_says_what_a_request_is() {
        let range = ByteRange::new(8208 * 512, 4096);
        assert_eq!(request("RAM 8208 + 8 [cp]"), (Op::Read, range, false, false));
        assert_eq!(request("  W 8208 + 8 [cp]"), (Op::Write, range, false, false));
        assert_eq!(request(" WS 8208 + 8 (     123) [cp]"), (Op::Write, range, false, false));
        assert_eq!(request(" DS 8208 + 8 [cp]"), (Op::Discard, range, false, false));
        assert_eq!(request("WFSM 8208 + 8 [cp]"), (Op::Write, range, false, true));
        assert_eq!(request("FWS 8208 + 8 [cp]"), (Op::Write, range, true, false));
        assert_eq!(request("FWFSM 8208 + 8 [cp]"), (Op::Write, range, true, true));
        assert_eq!(request("WBS 8208 + 8 [cp]"), (Op::Write, range, true, true));
    }

    #[test]
    fn a_flush_has_no_sectors() {
        for flush in [
            " FN [kworker/0:2H]",
            "FWS [jbd2/sda1-8]",
            " FN (     123) [jbd2]",
            " FN 0 [0]",
            "FWS 0 [0]",
            " FN",
        ] {
            assert_eq!(request(flush), (Op::Flush, ByteRange::new(0, 0), false, false), "{flush}");
        }
    }

    #[test]
    fn what_moves_no_sectors_is_no_request() {
        for none in [
            "  R 36 (12 00 00 00 24 00 ..) [smartctl]",
            "  R 512 [smartctl]",
            "  N 0 [smartctl]",
            "  N [0]",
            "WFSM 4120 [0]",
            "  W [kworker/0:2H]",
        ] {
            assert_eq!(dispatch(none), Ok(None), "{none}");
        }
    }

    #[test]
    fn other_actions_and_the_summary_are_no_requests() {
        for line in [
            "253,0    0        1     0.000000000   263  Q   R 126976 + 8 [cp]",
            "253,0    0        3     0.000009216   263  P   N [cp]",
            "253,0    0     7496     6.415727360    14 UT   N [kworker/u4:1] 1",
            "253,0    0      122     5.828890112   247  X  WS 126984 / 128040 [f2fs_ckpt-253:0]",
            "  8,0    1        0     0.000010001     0  m   N cfq697 D W what ever, it says",
            "8,0 3 2 0.000011 697 A W 223490 + 8 <- (8,1) 223427",
            "CPU0 (f2fs-files):",
            " Reads Queued:          19,       76KiB\t Writes Queued:        2927,   192784KiB",
            " IO unplugs:           143        \t Timer unplugs:           2",
            "Total (sda):",
            "Throughput (R/W): 4KiB/s / 12481KiB/s",
            "Events (f2fs-files): 8961 entries",
            "Skips: 0 forward (0 -   0.0%)",
            "Input file f2fs-files.blktrace.0 added",
            "fio (697, ...)",
        ] {
            assert_eq!(parse_as(Format::Blkparse, line), Ok(None), "{line}");
        }
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        let after_action = "expected RWBS such as R, WS, DS or FN after the action, found ";
        for (rest, message) in [
            (
                " WS 4120 - 8 [fio]",
                "expected '+ SECTORS' after the sector number, found '- 8'".to_owned(),
            ),
            (
                " WS 4120",
                "expected '+ SECTORS' after the sector number, found the end of the line"
                    .to_owned(),
            ),
            (" WS 4120 + x [fio]", "expected a number of sectors, found 'x'".to_owned()),
            (" WS 4120 + 0 [fio]", "expected a length above 0, found '0'".to_owned()),
            (" WS fio", "expected a sector number after the RWBS, found 'fio'".to_owned()),
            (
                " WS",
                "expected a sector number after the RWBS, found the end of the line".to_owned(),
            ),
            (" XS 4120 + 8 [fio]", format!("{after_action}'XS'")),
            (" WQ 4120 + 8 [fio]", format!("{after_action}'WQ'")),
            ("  F 4120 + 8 [fio]", format!("{after_action}'F'")),
            ("", format!("{after_action}the end of the line")),
        ] {
            assert_eq!(dispatch(rest), Err(message), "{rest}");
        }
    }

    #[test]
    fn lines_that_are_no_events_are_bad() {
        for (line, message) in [
            (
                "253,0 0 1 x.5 83 D W 0 + 8 [a]",
                "expected a time in seconds before the process id, found 'x.5'",
            ),
            (
                "253,0 0 1 0.5",
                "expected 'MAJOR,MINOR CPU SEQUENCE TIME PID ACTION', found '253,0 0 1 0.5'",
            ),
            ("hello", "expected an event, 'MAJOR,MINOR CPU ...', found 'hello'"),
            ("1,2,3,4,5", "expected an event, 'MAJOR,MINOR CPU ...', found '1,2,3,4,5'"),
        ] {
            assert_eq!(parse_as(Format::Blkparse, line), Err(message.to_owned()));
        }
    }

    #[test]
    fn the_chosen_event_is_the_request() {
        let line = "253,0    0       12     0.000019968   263  C   R 126976 + 8 [0]";
        let mut state = State::new("c".parse().unwrap());
        assert_eq!(
            parse(line, &mut state).unwrap().unwrap().range,
            ByteRange::new(126_976 * 512, 4096)
        );
        assert_eq!(parse_as(Format::Blkparse, line), Ok(None), "not a dispatch");
        assert_eq!(
            "G".parse::<BlkEvent>().unwrap_err().to_string(),
            "'G' is not an event to replay; the events are Q (queued), I (inserted), D (dispatched), C (completed)"
        );
    }
}
