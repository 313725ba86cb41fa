//! Hashes of names in the index of a directory: the early one, half of MD4, and TEA.

/// Hash that an index uses: its number, 0 to 2, and how characters beyond 127 count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashVersion {
    /// 0 legacy, 1 half MD4, 2 TEA.
    pub algorithm: u8,
    /// Characters are unsigned; otherwise signed, as they were on x86 when the format was made.
    pub unsigned: bool,
}

impl HashVersion {
    /// The hash of early ext3.
    pub const LEGACY: u8 = 0;
    /// Three short rounds of MD4.
    pub const HALF_MD4: u8 = 1;
    /// The Tiny Encryption Algorithm.
    pub const TEA: u8 = 2;
}

/// Larger than any hash that a name has: it marks the end of a directory in positions.
const END: u32 = 0x7FFF_FFFF << 1;
/// Initial value of MD4 (RFC 1320).
const MD4_START: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
/// The additive constants of MD4's second and third round: square roots of 2 and 3 (RFC 1320).
const MD4_ROUND_2: u32 = 0x5A82_7999;
const MD4_ROUND_3: u32 = 0x6ED9_EBA1;
/// TEA's constant (Wheeler and Needham, 1994): 2^32 over the golden ratio.
const TEA_DELTA: u32 = 0x9E37_79B9;

/// The hash of `name` in an index of this version, and what orders names of one hash; `None` for
/// another algorithm. `seed` is the superblock's; four zeros stand for MD4's own start. The lowest
/// bit is always clear: an index uses it to say that a block continues the one before it.
pub fn name_hash(name: &[u8], version: HashVersion, seed: [u32; 4]) -> Option<(u32, u32)> {
    let start = if seed == [0; 4] { MD4_START } else { seed };
    let (hash, minor) = match version.algorithm {
        HashVersion::LEGACY => (legacy(name, version.unsigned), 0),
        HashVersion::HALF_MD4 => {
            let state = chunks(name, 32)
                .fold(start, |state, chunk| half_md4(state, words(&chunk, version.unsigned)));
            (state[1], state[2])
        }
        HashVersion::TEA => {
            let state = chunks(name, 16)
                .fold(start, |state, chunk| tea(state, words(&chunk, version.unsigned)));
            (state[0], state[1])
        }
        _ => return None,
    };
    let hash = hash & !1;
    Some((if hash == END { END - 2 } else { hash }, minor))
}

/// The value of a character, extended to 32 bits.
fn character(byte: u8, unsigned: bool) -> u32 {
    if unsigned { byte.into() } else { i32::from(byte as i8) as u32 }
}

fn legacy(name: &[u8], unsigned: bool) -> u32 {
    let (mut newer, mut older) = (0x12A3_FE2D_u32, 0x37AB_E8F9_u32);
    for &byte in name {
        let mut next =
            older.wrapping_add(newer ^ character(byte, unsigned).wrapping_mul(7_152_373));
        if next & 0x8000_0000 != 0 {
            next = next.wrapping_sub(0x7FFF_FFFF);
        }
        (older, newer) = (newer, next);
    }
    newer << 1
}

/// A part of a name, and how many bytes of the name were left where it begins: that number fills
/// what is missing.
struct Chunk<'a> {
    bytes: &'a [u8],
    left: usize,
}

fn chunks(name: &[u8], size: usize) -> impl Iterator<Item = Chunk<'_>> {
    let starts = (0..name.len()).step_by(size);
    starts.map(move |start| Chunk {
        bytes: &name[start..name.len().min(start + size)],
        left: name.len() - start,
    })
}

/// The chunk as `N` words, characters from the highest byte down, the rest filled with the length
/// in every byte.
fn words<const N: usize>(chunk: &Chunk<'_>, unsigned: bool) -> [u32; N] {
    let fill = (chunk.left as u32 & 0xFF) * 0x0101_0101;
    let word = |bytes: &[u8]| {
        bytes.iter().fold(fill, |word, &b| (word << 8).wrapping_add(character(b, unsigned)))
    };
    let mut words = [fill; N];
    for (to, bytes) in words.iter_mut().zip(chunk.bytes.chunks(4)) {
        *to = word(bytes);
    }
    words
}

/// One block of MD4 with a third of its steps: each round uses the eight words once.
fn half_md4(state: [u32; 4], x: [u32; 8]) -> [u32; 4] {
    type Round = (fn(u32, u32, u32) -> u32, u32, [usize; 8], [u32; 4]);
    let rounds: [Round; 3] = [
        (|x, y, z| (x & y) | (!x & z), 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]),
        (
            |x, y, z| (x & y) | (x & z) | (y & z),
            MD4_ROUND_2,
            [1, 3, 5, 7, 0, 2, 4, 6],
            [3, 5, 9, 13],
        ),
        (|x, y, z| x ^ y ^ z, MD4_ROUND_3, [3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15]),
    ];
    let [mut a, mut b, mut c, mut d] = state;
    for (mix, constant, order, shifts) in rounds {
        for (step, word) in order.into_iter().enumerate() {
            let sum = a.wrapping_add(mix(b, c, d)).wrapping_add(x[word]).wrapping_add(constant);
            (a, b, c, d) = (d, sum.rotate_left(shifts[step % 4]), b, c);
        }
    }
    [
        state[0].wrapping_add(a),
        state[1].wrapping_add(b),
        state[2].wrapping_add(c),
        state[3].wrapping_add(d),
    ]
}

/// Sixteen cycles of TEA over the first two words of the state, with the chunk as the key.
fn tea(state: [u32; 4], key: [u32; 4]) -> [u32; 4] {
    let [mut y, mut z, ..] = state;
    let half = |v: u32, sum: u32, a: u32, b: u32| {
        (v << 4).wrapping_add(a) ^ v.wrapping_add(sum) ^ (v >> 5).wrapping_add(b)
    };
    for cycle in 1..=16_u32 {
        let sum = TEA_DELTA.wrapping_mul(cycle);
        y = y.wrapping_add(half(z, sum, key[0], key[1]));
        z = z.wrapping_add(half(y, sum, key[2], key[3]));
    }
    [state[0].wrapping_add(y), state[1].wrapping_add(z), state[2], state[3]]
}
