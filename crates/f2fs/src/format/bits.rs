//! F2FS counts bits in two orders, and which one depends on the bitmap.

/// Bit `n` of a version bitmap or a segment's valid map: the most significant bit of a byte comes first.
/// Bits beyond the end are clear.
pub fn msb_first(map: &[u8], n: usize) -> bool {
    map.get(n / 8).is_some_and(|byte| byte & (0x80 >> (n % 8)) != 0)
}

/// Bit `n` of a directory's bitmap: the least significant bit of a byte comes first. Bits beyond the end are
/// clear.
pub fn lsb_first(map: &[u8], n: usize) -> bool {
    map.get(n / 8).is_some_and(|byte| byte & (1 << (n % 8)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_orders_mirror_each_other_inside_a_byte() {
        let map = [0b1000_0001, 0b0000_0010];
        let set = |f: fn(&[u8], usize) -> bool| (0..20).filter(|&n| f(&map, n)).collect::<Vec<_>>();
        assert_eq!(set(msb_first), [0, 7, 14]);
        assert_eq!(set(lsb_first), [0, 7, 9]);
    }
}
