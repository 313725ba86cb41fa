//! Telling the format of a trace from its first lines.

use super::blkparse::BlkEvent;
use super::format::{Format, State};

/// Number of lines that are looked at, blank ones not counted.
const SAMPLE_LINES: usize = 48;

/// The format whose parser accepts more of the first lines than any other's, and at least half of
/// them, so that a few bad lines do not matter. `None` if there is no such format.
pub(super) fn detect(sample: &[u8]) -> Option<Format> {
    let lines: Vec<&[u8]> = sample
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty())
        .take(SAMPLE_LINES)
        .collect();
    let mut scores: Vec<(usize, Format)> =
        Format::ALL.iter().map(|f| (accepted(*f, &lines), *f)).collect();
    scores.sort_by_key(|(accepted, _)| *accepted);
    match scores[..] {
        [.., (second, _), (best, format)] if best > second && best * 2 >= lines.len() => {
            Some(format)
        }
        _ => None,
    }
}

/// Number of `lines` that the parser of `format` accepts.
fn accepted(format: Format, lines: &[&[u8]]) -> usize {
    let mut state = State::new(BlkEvent::default());
    let mut accepts = |line: &[u8]| {
        let good =
            std::str::from_utf8(line).is_ok_and(|text| (format.parser())(text, &mut state).is_ok());
        state.first = false;
        good
    };
    lines.iter().filter(|line| accepts(line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_told_from_its_lines() {
        for (text, format) in [
            (
                "253,0    0        1     0.000000000   263  Q   R 126976 + 8 [cp]\n",
                Format::Blkparse,
            ),
            (
                "  8,16   1        1     0.000000000   263  D  FN [kworker/0:2H]\r\n",
                Format::Blkparse,
            ),
            ("fio version 2 iolog\n/dev/sda add\n/dev/sda read 0 4096\n", Format::FioV2),
            ("fio version 3 iolog\r\n0 f add\r\n0 f open\r\n9 f sync 0 0\r\n", Format::FioV3),
            ("128166372003061629,usr,0,Read,7014609920,24576,41286\n", Format::Msr),
            ("419,W,8792731648,16384,1577808144360767\n", Format::Alibaba),
            (
                "device_id,opcode,offset,length,timestamp\n419,W,0,16384,1577808144360767",
                Format::Alibaba,
            ),
            ("\n\n1538323200,12910952,128,0,1063\n", Format::Tencent),
            ("0 0 0 128 0\n1000 0 128 128 0\n", Format::Mqsim),
        ] {
            assert_eq!(detect(text.as_bytes()), Some(format), "{text}");
        }
    }

    #[test]
    fn some_bad_lines_do_not_hide_a_format() {
        assert_eq!(
            detect(b"0 0 0 128 0\nhello\n1000 0 128 128 0\n\xFF\xFE\n"),
            Some(Format::Mqsim)
        );
        assert_eq!(detect(b"0 0 0 128 0\nhello\nworld\n"), None);
    }

    #[test]
    fn what_could_be_several_formats_or_none_is_not_guessed() {
        assert_eq!(detect(b""), None);
        assert_eq!(detect(b"a,b,c,d,e\n"), None, "a header of Alibaba or Tencent");
        assert_eq!(detect(b"\x1F\x8B\x00\n\x00"), None);
        assert_eq!(detect(b"0,303567,3584,w,0.000000\n"), None, "SPC");
    }
}
