//! Zone reports as text, as `blkzone report` of util-linux prints them.

use std::fmt::Write as _;

use super::{Zone, ZoneState, Zones};
use crate::addr::{Lba, SECTORS_IN_BLOCK};

/// A device's zones, and the state and written blocks of each sequential one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// The zones.
    pub zones: Zones,
    /// State and count of written blocks of each sequential zone, in order.
    pub states: Vec<(ZoneState, u64)>,
}

/// A text that is no zone report, or one of zones that do not lie as they must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// A line without a field.
    #[error(
        "line {line} has no number after {field:?}; each line is to be as blkzone report prints it"
    )]
    Field {
        /// Number of the line, from 1.
        line: usize,
        /// The field's name in the report.
        field: &'static str,
    },
    /// No line at all has a zone.
    #[error("there is no zone in it; each line is to be as blkzone report prints it")]
    Empty,
    /// A zone that does not follow the one before.
    #[error(
        "line {line}: the zone begins at sector {found:#x}, and the one before ends at {expected:#x}"
    )]
    Gap {
        /// Number of the line, from 1.
        line: usize,
        /// Start of the zone, in sectors.
        found: u64,
        /// End of the zone before.
        expected: u64,
    },
    /// A conventional zone behind a sequential one, or zones of several sizes or capacities.
    #[error(
        "line {line}: {what}; conventional zones are to come first, and sequential ones to have one size and capacity"
    )]
    Uneven {
        /// Number of the line, from 1.
        line: usize,
        /// The part that does not fit.
        what: &'static str,
    },
    /// A write pointer that a zone of this condition cannot have.
    #[error(
        "line {line}: the write pointer is {pointer:#x} sectors behind the zone's start; a zone of this condition has at most {most:#x}"
    )]
    Pointer {
        /// Number of the line, from 1.
        line: usize,
        /// The write pointer, in sectors from the zone's start.
        pointer: u64,
        /// The greatest that is possible: none in an empty zone, the capacity in others.
        most: u64,
    },
}

impl ZoneReport {
    /// Reads a report.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn parse(text: &str) -> Result<Self, ReportError> {
        let (mut zones, mut states, mut end) = (None::<Zones>, Vec::new(), 0);
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        for (line, text) in lines.map(|(number, text)| (number + 1, text)) {
            let zone = Line::parse(line, text)?;
            if zone.start != end {
                return Err(ReportError::Gap { line, found: zone.start, expected: end });
            }
            end = zone.start + zone.len;
            let uneven = |what| Err(ReportError::Uneven { line, what });
            if zone.condition == CONVENTIONAL {
                if zones.is_some() {
                    return uneven("a conventional zone behind a sequential one");
                }
                continue;
            }
            let Some(state) = state_of(zone.condition) else {
                return uneven("a zone condition that there is not");
            };
            let (blocks, capacity) =
                (zone.len / SECTORS_IN_BLOCK, zone.capacity / SECTORS_IN_BLOCK);
            let first = Lba(zone.start / SECTORS_IN_BLOCK);
            let known = zones.get_or_insert(Zones::covering(first, 0, blocks.max(1), capacity));
            if (known.blocks, known.capacity) != (blocks, capacity) || capacity > blocks {
                return uneven("a zone of another size or capacity");
            }
            known.count += 1;
            if let Some(most) = zone.greatest_pointer(state).filter(|&most| zone.pointer > most) {
                return Err(ReportError::Pointer { line, pointer: zone.pointer, most });
            }
            let written =
                if state == ZoneState::Full { capacity } else { zone.pointer / SECTORS_IN_BLOCK };
            states.push((state, written.min(capacity)));
        }
        Ok(Self { zones: zones.ok_or(ReportError::Empty)?, states })
    }

    /// The text of a report of zones.
    pub fn text(zones: &Zones, report: &[Zone]) -> String {
        let mut text = String::new();
        for zone in report {
            let start = zone.start.0;
            let (len, capacity) = match zone.state {
                Some(_) => (zones.blocks, zone.capacity),
                None => (zone.capacity, zone.capacity),
            };
            let condition = zone.state.map_or(CONVENTIONAL, condition_of);
            let kind =
                if zone.state.is_some() { "2(SEQ_WRITE_REQUIRED)" } else { "1(CONVENTIONAL)" };
            let [start, len, capacity, pointer] =
                [start, len, capacity, zone.written()].map(|blocks| blocks * SECTORS_IN_BLOCK);
            let _ = writeln!(
                text,
                "  start: {start:#011x}, len {len:#08x}, cap {capacity:#08x}, wptr {pointer:#08x} \
                 reset:0 non-seq:0, zcond:{condition:2}({}) [type: {kind}]",
                short(condition),
            );
        }
        text
    }
}

/// Zone conditions of Linux: `enum blk_zone_cond`.
const CONVENTIONAL: u64 = 0;
const CONDITIONS: [(u64, &str, ZoneState); 7] = [
    (1, "em", ZoneState::Empty),
    (2, "oi", ZoneState::ImplicitlyOpen),
    (3, "oe", ZoneState::ExplicitlyOpen),
    (4, "cl", ZoneState::Closed),
    (13, "ro", ZoneState::ReadOnly),
    (14, "fu", ZoneState::Full),
    (15, "of", ZoneState::Offline),
];

fn state_of(condition: u64) -> Option<ZoneState> {
    CONDITIONS.into_iter().find(|(number, ..)| *number == condition).map(|(.., state)| state)
}

fn condition_of(state: ZoneState) -> u64 {
    let known = CONDITIONS.into_iter().find(|(.., known)| *known == state);
    known.map_or(CONVENTIONAL, |(number, ..)| number)
}

fn short(condition: u64) -> &'static str {
    let known = CONDITIONS.into_iter().find(|(number, ..)| *number == condition);
    known.map_or("nw", |(_, name, _)| name)
}

/// A line of a report, in sectors of 512 bytes; the pointer is relative to the start.
struct Line {
    start: u64,
    len: u64,
    capacity: u64,
    pointer: u64,
    condition: u64,
}

impl Line {
    fn parse(line: usize, text: &str) -> Result<Self, ReportError> {
        let number = |field: &'static str| {
            let rest = text.split_once(field).map(|(_, rest)| rest.trim_start_matches([':', ' ']));
            let digits = rest.map(|rest| {
                rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
            });
            let parse = |digits: &str| match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => digits.parse().ok(),
            };
            // no device is larger, and sums of two stay within 64 bits
            let found = digits.and_then(parse).filter(|&number| number < 1 << 62);
            found.ok_or(ReportError::Field { line, field })
        };
        let len = number("len")?;
        // older versions do not print the capacity
        let capacity = if text.contains("cap ") { number("cap")? } else { len };
        let (start, pointer, condition) = (number("start")?, number("wptr")?, number("zcond")?);
        Ok(Self { start, len, capacity, pointer, condition })
    }

    /// The greatest pointer of a zone in this state; `None` where devices may print any number.
    fn greatest_pointer(&self, state: ZoneState) -> Option<u64> {
        match state {
            ZoneState::Empty => Some(0),
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed => {
                Some(self.capacity)
            }
            ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDevice, ZonedDevice, query};

    #[test]
    fn what_is_printed_is_read_again() {
        let zones = Zones::covering(Lba(16), 48, 16, 12);
        let states = [(ZoneState::Closed, 3), (ZoneState::Full, 12), (ZoneState::Empty, 0)];
        let mut device = ZonedDevice::found(MemoryDevice::new(64), zones, states);
        let text = ZoneReport::text(&zones, &query::zones(&mut device).unwrap());
        let line = "  start: 0x000000080, len 0x000080, cap 0x000060, wptr 0x000018 \
                    reset:0 non-seq:0, zcond: 4(cl) [type: 2(SEQ_WRITE_REQUIRED)]";
        assert_eq!(text.lines().nth(1), Some(line));
        let read = ZoneReport::parse(&text).unwrap();
        assert_eq!(read, ZoneReport { zones, states: states.to_vec() });
    }

    #[test]
    fn what_is_no_report_is_said() {
        let error = |text: &str| ZoneReport::parse(text).unwrap_err().to_string();
        assert!(error("").starts_with("there is no zone in it"));
        assert!(error("hello").starts_with("line 1 has no number after \"len\""));
        let line = |start: u64, kind: u64| {
            format!("start: {start:#x}, len 0x80, cap 0x80, wptr 0x0 zcond: {kind}\n")
        };
        assert!(error(&(line(0, 1) + &line(0x100, 1))).contains("begins at sector 0x100"));
        assert!(error(&(line(0, 1) + &line(0x80, 0))).contains("conventional zones are to come"));
        assert!(error(&line(0, 9)).contains("a zone condition that there is not"));
        let written = |pointer: u64, kind: u64| {
            format!("start: 0x0, len 0x80, cap 0x60, wptr {pointer:#x} zcond: {kind}\n")
        };
        assert!(error(&written(8, 1)).contains("is 0x8 sectors behind"), "an empty zone");
        assert!(error(&written(0x68, 4)).ends_with("has at most 0x60"), "a closed zone");
        assert!(ZoneReport::parse(&written(0x60, 4)).is_ok());
        assert!(
            ZoneReport::parse(&written(0x80, 14)).is_ok(),
            "a full zone's pointer says nothing"
        );
    }
}
