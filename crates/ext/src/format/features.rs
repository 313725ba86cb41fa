//! Features of a volume beyond the basic format: three words, by what an implementation may do that
//! does not know a bit.

use std::fmt;

macro_rules! feature_word {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $constant:ident = $bit:literal, $text:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub u32);

        impl $name {
            $($(#[$doc])* pub const $constant: Self = Self($bit);)*

            const NAMES: &'static [(u32, &'static str)] = &[$(($bit, $text)),*];

            /// All bits of `other` are set.
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// These bits and those of `other`.
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits that are set here and not in `other`.
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// The names of all features of this word.
            pub fn names() -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().map(|(_, name)| *name)
            }

            /// The feature that mke2fs calls `name`; `None` if there is none in this word.
            pub fn named(name: &str) -> Option<Self> {
                Self::NAMES.iter().find(|(_, known)| *known == name).map(|(bit, _)| Self(*bit))
            }
        }

        impl fmt::Display for $name {
            /// Names joined by spaces, "none" for none, bit numbers for unknown ones.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_names(f, self.0, stringify!($name), Self::NAMES)
            }
        }
    };
}

fn write_names(
    f: &mut fmt::Formatter<'_>,
    bits: u32,
    word: &str,
    names: &[(u32, &str)],
) -> fmt::Result {
    if bits == 0 {
        return f.write_str("none");
    }
    let set = (0..32).filter(|bit| bits >> bit & 1 == 1);
    let names = set.map(|bit| match names.iter().find(|(known, _)| *known == 1 << bit) {
        Some((_, name)) => (*name).to_string(),
        None => format!("{} bit {bit}", word.to_lowercase()),
    });
    f.write_str(&names.collect::<Vec<_>>().join(" "))
}

feature_word! {
    /// Features that may be ignored by those who do not know them.
    Compat {
        /// Directories are given blocks in advance.
        DIR_PREALLOC = 0x1, "dir_prealloc";
        /// Inodes of AFS servers.
        IMAGIC_INODES = 0x2, "imagic_inodes";
        /// There is a journal.
        HAS_JOURNAL = 0x4, "has_journal";
        /// There are extended attributes.
        EXT_ATTR = 0x8, "ext_attr";
        /// Blocks are kept for more group descriptors.
        RESIZE_INODE = 0x10, "resize_inode";
        /// Directories may have an index of hashes.
        DIR_INDEX = 0x20, "dir_index";
        /// At most two backups of the superblock.
        SPARSE_SUPER2 = 0x200, "sparse_super2";
        /// The journal may hold fast commits.
        FAST_COMMIT = 0x400, "fast_commit";
        /// Inode numbers and the UUID never change.
        STABLE_INODES = 0x800, "stable_inodes";
        /// Orphans are listed in a file.
        ORPHAN_FILE = 0x1000, "orphan_file";
    }
}

feature_word! {
    /// Features that must be known even for reading.
    Incompat {
        /// Files may be compressed.
        COMPRESSION = 0x1, "compression";
        /// Directory entries have the type of the file.
        FILETYPE = 0x2, "filetype";
        /// The journal must be replayed first.
        RECOVER = 0x4, "needs_recovery";
        /// The device is a journal.
        JOURNAL_DEV = 0x8, "journal_dev";
        /// Descriptors lie in the groups that they describe.
        META_BG = 0x10, "meta_bg";
        /// Files may have extent trees.
        EXTENTS = 0x40, "extent";
        /// Block numbers have more than 32 bits.
        BITS_64 = 0x80, "64bit";
        /// A block keeps two hosts from mounting at a time.
        MMP = 0x100, "mmp";
        /// Bitmaps and inode tables may lie in other groups.
        FLEX_BG = 0x200, "flex_bg";
        /// Values of extended attributes may be inodes.
        EA_INODE = 0x400, "ea_inode";
        /// Directory entries may hold data.
        DIRDATA = 0x1000, "dirdata";
        /// The seed of checksums is stored.
        CSUM_SEED = 0x2000, "metadata_csum_seed";
        /// Directories may be larger than 2 GiB or have three levels.
        LARGE_DIR = 0x4000, "large_dir";
        /// Small files lie in their inodes.
        INLINE_DATA = 0x8000, "inline_data";
        /// Files may be encrypted.
        ENCRYPT = 0x1_0000, "encrypt";
        /// The case of names may not count.
        CASEFOLD = 0x2_0000, "casefold";
    }
}

feature_word! {
    /// Features that must be known for writing.
    RoCompat {
        /// Backups of the superblock in few groups only.
        SPARSE_SUPER = 0x1, "sparse_super";
        /// There may be files of 2 GiB and more.
        LARGE_FILE = 0x2, "large_file";
        /// Directories as trees, never used.
        BTREE_DIR = 0x4, "btree_dir";
        /// Sizes of files may count in blocks.
        HUGE_FILE = 0x8, "huge_file";
        /// Descriptors have a CRC-16 and say what is not initialised.
        GDT_CSUM = 0x10, "uninit_bg";
        /// Directories may have any number of subdirectories.
        DIR_NLINK = 0x20, "dir_nlink";
        /// Inodes have more fields.
        EXTRA_ISIZE = 0x40, "extra_isize";
        /// There are snapshots.
        HAS_SNAPSHOT = 0x80, "has_snapshot";
        /// There are quota files.
        QUOTA = 0x100, "quota";
        /// Blocks are allocated in clusters.
        BIGALLOC = 0x200, "bigalloc";
        /// Metadata have a CRC-32C.
        METADATA_CSUM = 0x400, "metadata_csum";
        /// Replicas.
        REPLICA = 0x800, "replica";
        /// Nothing may be written.
        READONLY = 0x1000, "read-only";
        /// Inodes have a project.
        PROJECT = 0x2000, "project";
        /// Blocks may belong to several files.
        SHARED_BLOCKS = 0x4000, "shared_blocks";
        /// Files may be sealed with a tree of hashes.
        VERITY = 0x8000, "verity";
        /// The orphan file is not empty.
        ORPHAN_PRESENT = 0x1_0000, "orphan_present";
    }
}

impl Incompat {
    /// Pointers may lead to places of the drive below. No feature of the kernel's, which therefore
    /// refuses the volume.
    pub const DEVIRTUALIZED: Self = Self(0x4000_0000);
    /// Features that can be read.
    pub const READ: Self =
        Self(Self::WRITTEN.0 | Self::META_BG.0 | Self::LARGE_DIR.0 | Self::MMP.0);
    /// Features that changes keep right, too.
    pub const WRITTEN: Self = Self(
        Self::FILETYPE.0
            | Self::RECOVER.0
            | Self::EXTENTS.0
            | Self::BITS_64.0
            | Self::FLEX_BG.0
            | Self::CSUM_SEED.0,
    );
}

impl RoCompat {
    /// Features that changes keep right; a volume with any other is read only.
    pub const WRITTEN: Self = Self(
        Self::SPARSE_SUPER.0
            | Self::LARGE_FILE.0
            | Self::HUGE_FILE.0
            | Self::GDT_CSUM.0
            | Self::DIR_NLINK.0
            | Self::EXTRA_ISIZE.0
            | Self::METADATA_CSUM.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_shown_by_name() {
        assert_eq!(Incompat(0x2C2).to_string(), "filetype extent 64bit flex_bg");
        assert_eq!(Incompat(0x8020).to_string(), "incompat bit 5 inline_data");
        assert_eq!(Compat(0).to_string(), "none");
        assert_eq!(RoCompat::named("metadata_csum"), Some(RoCompat::METADATA_CSUM));
        assert_eq!(RoCompat::named("extent"), None);
    }
}
