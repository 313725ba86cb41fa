//! The layout of the flash, and the addresses that follow from it.

use std::fmt;

use dovetail_block::BLOCK_SIZE;

/// A physical page number: all pages of the drive in one row, 32 bits, so that a dense map takes
/// four bytes an entry. Neighbours lie on different planes, dies and channels: page `p` of block
/// `b` on unit `u` is `(b * pages_per_block + p) * units + u`. Writing in this order uses all dies
/// at once, and the pages of a superblock (block `b` of every unit) are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);

/// An erase block: block `b` of unit `u` is `b * units + u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

impl fmt::Display for Ppn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Division by a number that is known early and used often: one multiplication. Exact for all
/// 32-bit operands (Lemire, Kaser and Kurz, "Faster remainder by direct computation", SPE 2019).
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    divisor: u32,
    magic: u64,
}

impl Divisor {
    /// Divides by `divisor`, at least 1.
    pub const fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Self { divisor, magic: (u64::MAX / divisor as u64).wrapping_add(1) }
    }

    /// The number that it divides by.
    #[inline]
    pub const fn divisor(self) -> u32 {
        self.divisor
    }

    /// `n / divisor`.
    #[inline]
    pub const fn quotient(self, n: u32) -> u32 {
        if self.divisor == 1 { n } else { ((self.magic as u128 * n as u128) >> 64) as u32 }
    }

    /// `n / divisor` and `n % divisor`.
    #[inline]
    pub const fn divide(self, n: u32) -> (u32, u32) {
        let quotient = self.quotient(n);
        (quotient, n - quotient * self.divisor)
    }
}

/// The layout of the flash. A *unit* is one plane: units are numbered channel first, then die, then
/// plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels, 1 to 256.
    pub channels: u32,
    /// Dies on each channel, 1 to 256.
    pub dies_per_channel: u32,
    /// Planes in each die, 1 to 32.
    pub planes_per_die: u32,
    /// Erase blocks in each plane, at least 1.
    pub blocks_per_plane: u32,
    /// Pages in each erase block, 1 to 65,536.
    pub pages_per_block: u32,
    /// Bytes in each page: 4096, 8192 or 16384.
    pub page_bytes: u32,
}

/// A geometry that no drive can have; names the field and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// One field is out of its range.
    #[error("{field} is {value}, allowed is {allowed}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// The value found.
        value: u32,
        /// The values allowed.
        allowed: &'static str,
    },
    /// More pages than 32 bits can number.
    #[error("the flash would have {0} pages, at most 4294967294 can be addressed")]
    TooManyPages(u64),
}

impl Geometry {
    /// Checks the fields against their ranges.
    ///
    /// # Errors
    /// The first field out of range, or more than 2^32 - 2 pages.
    pub fn check(&self) -> Result<(), GeometryError> {
        let field = |ok: bool, field, value, allowed| {
            if ok { Ok(()) } else { Err(GeometryError::Field { field, value, allowed }) }
        };
        field((1..=256).contains(&self.channels), "channels", self.channels, "1 to 256")?;
        field(
            (1..=256).contains(&self.dies_per_channel),
            "dies_per_channel",
            self.dies_per_channel,
            "1 to 256",
        )?;
        field(
            (1..=32).contains(&self.planes_per_die),
            "planes_per_die",
            self.planes_per_die,
            "1 to 32",
        )?;
        field(self.blocks_per_plane >= 1, "blocks_per_plane", self.blocks_per_plane, "at least 1")?;
        field(
            (1..=65_536).contains(&self.pages_per_block),
            "pages_per_block",
            self.pages_per_block,
            "1 to 65536",
        )?;
        let page_ok = matches!(self.page_bytes, 4096 | 8192 | 16384);
        field(page_ok, "page_bytes", self.page_bytes, "4096, 8192 or 16384")?;
        let pages = u64::from(self.units())
            * u64::from(self.blocks_per_plane)
            * u64::from(self.pages_per_block);
        if pages > u64::from(u32::MAX) - 1 {
            Err(GeometryError::TooManyPages(pages))
        } else {
            Ok(())
        }
    }

    /// Dies in all.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Planes in all: what can be written side by side.
    pub const fn units(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Erase blocks in all.
    pub const fn blocks(&self) -> u32 {
        self.units() * self.blocks_per_plane
    }

    /// Pages in all.
    pub const fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    /// Bytes of flash in all, without the out-of-band areas.
    pub const fn raw_bytes(&self) -> u64 {
        self.pages() as u64 * self.page_bytes as u64
    }

    /// Blocks of 4 KiB that one page holds: 1, 2 or 4.
    pub const fn subpages_per_page(&self) -> u32 {
        self.page_bytes / BLOCK_SIZE as u32
    }

    /// The page `page` of `block`.
    pub const fn ppn(&self, block: BlockId, page: u32) -> Ppn {
        let (row, unit) = (block.0 / self.units(), block.0 % self.units());
        Ppn((row * self.pages_per_block + page) * self.units() + unit)
    }

    /// Returns which block a page lies in, and its index there.
    pub const fn locate(&self, ppn: Ppn) -> (BlockId, u32) {
        let units = self.units();
        let (row, unit) = (ppn.0 / units, ppn.0 % units);
        (BlockId(row / self.pages_per_block * units + unit), row % self.pages_per_block)
    }

    /// The die and the plane within it of a unit.
    pub const fn die_of(&self, unit: u32) -> (u32, u32) {
        (unit % self.dies(), unit / self.dies())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry {
        channels: 2,
        dies_per_channel: 3,
        planes_per_die: 2,
        blocks_per_plane: 5,
        pages_per_block: 7,
        page_bytes: 16384,
    };

    #[test]
    fn every_page_has_its_own_number() {
        let mut seen = vec![false; SMALL.pages() as usize];
        for block in 0..SMALL.blocks() {
            for page in 0..SMALL.pages_per_block {
                let ppn = SMALL.ppn(BlockId(block), page);
                assert_eq!(SMALL.locate(ppn), (BlockId(block), page));
                assert!(!std::mem::replace(&mut seen[ppn.0 as usize], true));
            }
        }
        assert!(seen.iter().all(|&s| s));
    }

    #[test]
    fn divisors_divide() {
        let edges = [0, 1, 2, 3, 4095, 4096, 4097, 1 << 31, u32::MAX - 1, u32::MAX];
        for d in [1, 2, 3, 7, 64, 576, 16384, 65_535, (1 << 31) + 1, u32::MAX] {
            for n in edges.into_iter().chain([d - 1, d, d.saturating_add(1)]) {
                assert_eq!(Divisor::new(d).divide(n), (n / d, n % d), "{n} / {d}");
            }
        }
    }

    #[test]
    fn a_wrong_field_is_named() {
        let wrong = Geometry { page_bytes: 2048, ..SMALL };
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "page_bytes is 2048, allowed is 4096, 8192 or 16384"
        );
        assert!(Geometry { blocks_per_plane: u32::MAX / 8, ..SMALL }.check().is_err());
        assert_eq!(SMALL.check(), Ok(()));
    }
}
