//! Times of inodes: 32 bits of seconds, and in larger inodes two bits more and nanoseconds.

use dovetail_vfs::Timestamp;

/// The time in `seconds`, which are signed, and in an inode's extra word: two bits that extend them
/// beyond 2038, then 30 bits of nanoseconds.
pub(super) fn decode_time(seconds: u32, extra: Option<u32>) -> Timestamp {
    let base = i64::from(seconds as i32);
    let Some(extra) = extra else { return Timestamp { seconds: base, nanoseconds: 0 } };
    Timestamp { seconds: base + (i64::from(extra & 3) << 32), nanoseconds: extra >> 2 }
}

/// The two words of a time; what they cannot hold comes out as the nearest time that they can.
/// Without an extra word the first one alone is stored.
pub(super) fn encode_time(time: Timestamp, has_extra: bool) -> (u32, u32) {
    let min = i64::from(i32::MIN);
    let max = i64::from(i32::MAX) + if has_extra { 3 << 32 } else { 0 };
    let seconds = time.seconds.clamp(min, max);
    let base = seconds as i32;
    let epoch = ((seconds - i64::from(base)) >> 32) as u32 & 3;
    let is_inside = min < time.seconds && time.seconds < max; // Linux: timestamp_truncate
    let nanoseconds = if is_inside { time.nanoseconds } else { 0 };
    (base as u32, epoch | nanoseconds << 2)
}

/// The time that an inode with or without an extra word has where `time` is set.
pub(super) fn storable(time: Timestamp, has_extra: bool) -> Timestamp {
    let (seconds, extra) = encode_time(time, has_extra);
    decode_time(seconds, has_extra.then_some(extra))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_extend_signed_seconds() {
        // the table of the kernel's documentation (inodes, timestamps)
        let cases = [
            (0, 0x8000_0000, -0x8000_0000),
            (0, 0, 0),
            (0, 0x7FFF_FFFF, 0x7FFF_FFFF),
            (1, 0x8000_0000, 0x8000_0000),
            (1, 0, 0x1_0000_0000),
            (2, 0x7FFF_FFFF, 0x2_7FFF_FFFF),
            (3, 0x7FFF_FFFF, 0x3_7FFF_FFFF),
        ];
        for (epoch, low, seconds) in cases {
            let time = Timestamp { seconds, nanoseconds: 999_999_999 };
            let extra = epoch | 999_999_999 << 2;
            assert_eq!(decode_time(low, Some(extra)), time);
            if !matches!(seconds, -0x8000_0000 | 0x3_7FFF_FFFF) {
                assert_eq!(encode_time(time, true), (low, extra));
            }
        }
        let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        assert_eq!(storable(time(4_102_488_000, 5), false), time(0x7FFF_FFFF, 0));
        assert_eq!(storable(time(4_102_488_000, 5), true), time(4_102_488_000, 5));
        assert_eq!(storable(time(1 << 40, 5), true), time(0x3_7FFF_FFFF, 0));
        assert_eq!(storable(time(-(1 << 40), 5), true), time(-0x8000_0000, 0));
        let late = Timestamp { seconds: 1 << 40, nanoseconds: 0 };
        assert_eq!(encode_time(late, true), (0x7FFF_FFFF, 3));
        assert_eq!(encode_time(late, false).0, 0x7FFF_FFFF);
        assert_eq!(decode_time(0xFFFF_FFFF, None).seconds, -1);
    }
}
