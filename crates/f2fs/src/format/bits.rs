//! F2FS counts bits in two orders, and which one depends on the bitmap.

/// Bit `n` of a version bitmap or a segment's valid map: the most significant bit of a byte comes
/// first. Bits beyond the end are clear.
pub fn msb_first(map: &[u8], n: usize) -> bool {
    map.get(n / 8).is_some_and(|byte| byte & (0x80 >> (n % 8)) != 0)
}

/// Bit `n` of a directory's bitmap: the least significant bit of a byte comes first. Bits beyond
/// the end are clear.
pub fn lsb_first(map: &[u8], n: usize) -> bool {
    map.get(n / 8).is_some_and(|byte| byte & (1 << (n % 8)) != 0)
}

/// Sets or clears bit `n` of a bitmap that [`msb_first`] reads; nothing beyond the end.
pub fn set_msb_first(map: &mut [u8], n: usize, on: bool) {
    set(map, n, 0x80 >> (n % 8), on);
}

/// Sets or clears bit `n` of a bitmap that [`lsb_first`] reads; nothing beyond the end.
pub fn set_lsb_first(map: &mut [u8], n: usize, on: bool) {
    set(map, n, 1 << (n % 8), on);
}

/// Turns bit `n` of a bitmap that [`msb_first`] reads over; nothing beyond the end.
pub fn flip_msb_first(map: &mut [u8], n: usize) {
    let old = msb_first(map, n);
    set_msb_first(map, n, !old);
}

fn set(map: &mut [u8], n: usize, mask: u8, on: bool) {
    if let Some(byte) = map.get_mut(n / 8) {
        *byte = if on { *byte | mask } else { *byte & !mask };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bit_that_is_set_is_read_and_no_other_changes(before: [u8; 5], n in 0..48_usize, on: bool) {
            for (set, get) in [(set_msb_first as fn(&mut [u8], usize, bool), msb_first as fn(&[u8], usize) -> bool),
                (set_lsb_first, lsb_first)] {
                let mut after = before;
                set(&mut after, n, on);
                for i in 0..48 {
                    let expected = if i == n && n < 40 { on } else { get(&before, i) };
                    prop_assert_eq!(get(&after, i), expected);
                }
            }
        }
    }

    #[test]
    fn the_two_orders_mirror_each_other_inside_a_byte() {
        let map = [0b1000_0001, 0b0000_0010];
        let set = |f: fn(&[u8], usize) -> bool| (0..20).filter(|&n| f(&map, n)).collect::<Vec<_>>();
        assert_eq!(set(msb_first), [0, 7, 14]);
        assert_eq!(set(lsb_first), [0, 7, 9]);
    }
}
