//! The two checksums of ext: CRC-32C of metadata_csum, CRC-16 of the older group descriptors.
//!
//! Both chain: the checksum of `a` followed by `b` is the checksum of `b` with that of `a` as its
//! seed. Neither is inverted at its end.

use super::Ino;

/// Initial value of a CRC-32C, unless another one is named.
pub const CRC32C_START: u32 = !0;

/// The CRC-32C (Castagnoli) of `bytes`, continuing from `seed`.
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    !::crc32c::crc32c_append(!seed, bytes)
}

/// The CRC-16 (reflected polynomial 0xA001, that of ANSI and USB) of `bytes`, continuing from
/// `seed`.
pub fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .fold(seed, |crc, &byte| (0..8).fold(crc ^ u16::from(byte), |crc, _| half_crc16(crc)))
}

fn half_crc16(crc: u16) -> u16 {
    (crc >> 1) ^ if crc & 1 == 1 { 0xA001 } else { 0 }
}

/// Initial value of the checksums of an inode's own structures (itself, its extents, its directory
/// blocks). It is made of the volume's seed, the inode's number and its generation.
pub fn inode_seed(seed: u32, ino: Ino, generation: u32) -> u32 {
    crc32c(crc32c(seed, &ino.0.to_le_bytes()), &generation.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(!crc32c(CRC32C_START, b"123456789"), 0xE306_9283, "RFC 3720");
        assert_eq!(crc16(0, b"123456789"), 0xBB3D, "CRC-16/ARC");
        assert_eq!(crc16(0xFFFF, b"123456789"), 0x4B37, "CRC-16/MODBUS");
    }

    #[test]
    fn they_chain() {
        assert_eq!(crc32c(crc32c(7, b"12345"), b"6789"), crc32c(7, b"123456789"));
        assert_eq!(crc16(crc16(7, b"12345"), b"6789"), crc16(7, b"123456789"));
    }
}
