//! The checksum of F2FS: CRC-32 (reflected polynomial 0xEDB88320) with a seed and without the final
//! inversion.
//!
//! It chains: the checksum of `a` followed by `b` is the checksum of `b` with that of `a` as its
//! seed.

/// The seed of superblock, checkpoint and compressed cluster checksums: the file system's magic
/// number.
pub const CRC_SEED: u32 = super::superblock::MAGIC;

/// The checksum of `bytes`, continuing from `seed`.
pub fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!seed);
    hasher.update(bytes);
    !hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32(CRC_SEED, b"123456789"), 0x1657_A0C3);
        assert_eq!(crc32(0xFFFF_FFFF, b"123456789"), 0x340B_C6D9);
    }

    #[test]
    fn it_chains() {
        assert_eq!(crc32(crc32(7, b"12345"), b"6789"), crc32(7, b"123456789"));
    }
}
