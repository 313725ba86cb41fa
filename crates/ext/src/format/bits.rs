//! Bitmaps of blocks and inodes: the least significant bit of a byte comes first, set means used.

use std::ops::Range;

/// Bit `n`; bits beyond the end are clear.
pub fn bit(map: &[u8], n: usize) -> bool {
    map.get(n / 8).is_some_and(|byte| byte & (1 << (n % 8)) != 0)
}

/// Sets or clears bit `n`; nothing beyond the end.
pub fn set_bit(map: &mut [u8], n: usize, on: bool) {
    if let Some(byte) = map.get_mut(n / 8) {
        let mask = 1 << (n % 8);
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
}

/// Sets or clears all bits of `range`; nothing beyond the end.
pub fn set_bits(map: &mut [u8], range: Range<usize>, on: bool) {
    let mut n = range.start;
    while n < range.end.min(map.len() * 8) {
        if n.is_multiple_of(8) && n + 8 <= range.end {
            map[n / 8] = if on { 0xFF } else { 0 };
            n += 8;
        } else {
            set_bit(map, n, on);
            n += 1;
        }
    }
}

/// Number of set bits in `range`.
pub fn count_bits(map: &[u8], range: Range<usize>) -> usize {
    let (first, last) = (range.start.next_multiple_of(8).min(range.end), range.end);
    let whole = first / 8..(last / 8).max(first / 8);
    let tail = (whole.end * 8).max(first)..last;
    let single = (range.start..first).chain(tail).filter(|&n| bit(map, n)).count();
    let whole = map.get(whole.start.min(map.len())..whole.end.min(map.len())).unwrap_or_default();
    single + whole.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

/// The first bit of `range` that is `on`; bits beyond the end are clear.
pub fn next_bit(map: &[u8], range: Range<usize>, on: bool) -> Option<usize> {
    let skipped = if on { 0 } else { u64::MAX };
    let mut n = range.start;
    while n < range.end {
        let found = (word(map, n / 8) ^ skipped) >> (n % 8);
        if found != 0 {
            let first = n + found.trailing_zeros() as usize;
            return (first < range.end).then_some(first);
        }
        n = (n / 8 + 8) * 8;
    }
    None
}

/// The eight bytes from `first` on; those beyond the end are 0.
fn word(map: &[u8], first: usize) -> u64 {
    if let Some(bytes) = map.get(first..first + 8) {
        return u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    let mut bytes = [0; 8];
    let rest = map.get(first..).unwrap_or_default();
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_their_bits(map: [u8; 9], start in 0..80_usize, len in 0..80_usize, on: bool) {
            let range = start..start + len;
            let slow = |map: &[u8]| range.clone().filter(|&n| bit(map, n)).count();
            prop_assert_eq!(count_bits(&map, range.clone()), slow(&map));
            prop_assert_eq!(next_bit(&map, range.clone(), on), range.clone().find(|&n| bit(&map, n) == on));
            let mut after = map;
            set_bits(&mut after, range.clone(), on);
            for n in 0..72 {
                prop_assert_eq!(bit(&after, n), if range.contains(&n) { on } else { bit(&map, n) });
            }
        }
    }

    #[test]
    fn the_least_significant_bit_comes_first() {
        let map = [0b1000_0001, 0b0000_0010];
        assert_eq!((0..20).filter(|&n| bit(&map, n)).collect::<Vec<_>>(), [0, 7, 9]);
    }
}
