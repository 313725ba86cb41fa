//! Features of a volume beyond the basic format.

use std::fmt;

/// The superblock's feature bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub u32);

impl Features {
    /// Files may be encrypted.
    pub const ENCRYPT: Self = Self(0x1);
    /// The volume lies on a zoned device.
    pub const BLKZONED: Self = Self(0x2);
    /// Inodes may have extra attributes.
    pub const EXTRA_ATTR: Self = Self(0x8);
    /// Inodes have a project id.
    pub const PROJECT_QUOTA: Self = Self(0x10);
    /// Inodes have a checksum.
    pub const INODE_CHECKSUM: Self = Self(0x20);
    /// Each inode says how large its inline xattr area is.
    pub const FLEXIBLE_INLINE_XATTR: Self = Self(0x40);
    /// There are quota files.
    pub const QUOTA_INO: Self = Self(0x80);
    /// Inodes have a creation time.
    pub const INODE_CRTIME: Self = Self(0x100);
    /// There is a directory lost+found.
    pub const LOST_FOUND: Self = Self(0x200);
    /// Files may be sealed with a tree of hashes.
    pub const VERITY: Self = Self(0x400);
    /// The superblock has a checksum.
    pub const SB_CHECKSUM: Self = Self(0x800);
    /// The case of names may not count.
    pub const CASEFOLD: Self = Self(0x1000);
    /// Files may be compressed.
    pub const COMPRESSION: Self = Self(0x2000);
    /// Nobody writes the volume.
    pub const READ_ONLY: Self = Self(0x4000);

    /// All bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names of all features, as mkfs.f2fs has them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }

    /// The feature that mkfs.f2fs calls `name`; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        let name = if name == "quota" { "quota_ino" } else { name };
        let bit = NAMES.iter().position(|known| *known == name)?;
        Some(Self(1 << bit))
    }

    /// The bits that are set here and not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The names that mkfs.f2fs gives the bits, from the lowest up; the last two are of newer kernels.
const NAMES: [&str; 17] = [
    "encrypt",
    "blkzoned",
    "atomic_write",
    "extra_attr",
    "project_quota",
    "inode_checksum",
    "flexible_inline_xattr",
    "quota_ino",
    "inode_crtime",
    "lost_found",
    "verity",
    "sb_checksum",
    "casefold",
    "compression",
    "readonly",
    "device_alias",
    "packed_ssa",
];

impl fmt::Display for Features {
    /// Names joined by commas, "none" for none, bit numbers for unknown ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        let names = (0..32).filter(|bit| self.0 >> bit & 1 == 1).map(|bit| match NAMES.get(bit) {
            Some(name) => (*name).to_string(),
            None => format!("bit {bit}"),
        });
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_shown_by_name() {
        assert_eq!(Features(0x829).to_string(), "encrypt,extra_attr,inode_checksum,sb_checksum");
        assert_eq!(Features(0x4000_0000).to_string(), "bit 30");
        assert_eq!(Features(0).to_string(), "none");
        assert_eq!(Features::named("sb_checksum"), Some(Features::SB_CHECKSUM));
        assert_eq!(Features::named("quota"), Some(Features::QUOTA_INO));
        assert_eq!(Features::named("magic"), None);
    }
}
