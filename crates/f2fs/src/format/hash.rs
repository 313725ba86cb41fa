//! The hash of a name in a directory: TEA, as in ext3's directories, over unsigned bytes.

const DELTA: u32 = 0x9E37_79B9;
const INITIAL: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
const PIECE: usize = 16;
const ROUNDS: u32 = 16;

/// The hash under which an entry called `name` is stored. "." and ".." have hash 0.
pub fn name_hash(name: &[u8]) -> u32 {
    if name == b"." || name == b".." {
        return 0;
    }
    let mut state = [INITIAL[0], INITIAL[1]];
    let mut rest = name;
    loop {
        mix(&mut state, words(rest));
        if rest.len() <= PIECE {
            return state[0];
        }
        rest = &rest[PIECE..];
    }
}

/// The next sixteen bytes as four words; what is missing is padded with the length of all that is
/// left.
fn words(rest: &[u8]) -> [u32; 4] {
    let length = rest.len() as u32;
    let pad = length | length << 8;
    let mut words = [pad | pad << 16; 4];
    for (i, &byte) in rest.iter().take(PIECE).enumerate() {
        let word = &mut words[i / 4];
        *word = u32::from(byte).wrapping_add(*word << 8);
    }
    words
}

fn mix(state: &mut [u32; 2], key: [u32; 4]) {
    let [mut b0, mut b1] = *state;
    let mut sum = 0_u32;
    for _ in 0..ROUNDS {
        sum = sum.wrapping_add(DELTA);
        b0 = b0.wrapping_add(round(b1, sum, key[0], key[1]));
        b1 = b1.wrapping_add(round(b0, sum, key[2], key[3]));
    }
    state[0] = state[0].wrapping_add(b0);
    state[1] = state[1].wrapping_add(b1);
}

fn round(x: u32, sum: u32, left: u32, right: u32) -> u32 {
    (x << 4).wrapping_add(left) ^ x.wrapping_add(sum) ^ (x >> 5).wrapping_add(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let vectors: [(&str, u32); 9] = [
            (".", 0),
            ("a", 0x6D0E_A4C1),
            ("lost+found", 0x2DBF_9E80),
            ("abcdefgh", 0x75C7_D754),
            ("0123456789abcdef", 0x5A07_88B2),
            ("0123456789abcdefg", 0xFB1A_23EC),
            ("hello world this is a long file name over 32 bytes.txt", 0x93EE_1878),
            ("é中文.txt", 0x3682_BDD1),
            ("..", 0),
        ];
        for (name, hash) in vectors {
            assert_eq!(name_hash(name.as_bytes()), hash, "{name}");
        }
    }
}
