//! Options of a new volume.

use super::MkfsError;
use super::geometry::usage;
use crate::format::{Compat, Incompat, RoCompat};

/// Member of the ext family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Without a journal.
    Ext2,
    /// With a journal, and block maps.
    Ext3,
    /// With a journal, extents and checksums.
    Ext4,
}

/// Options of a new volume. [`MkfsOptions::new`] has the defaults of mke2fs; uuid, hash seed and
/// time are for the caller to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsOptions {
    /// Features that may be ignored.
    pub compat: Compat,
    /// Features that must be known.
    pub incompat: Incompat,
    /// Features that must be known for writing.
    pub ro_compat: RoCompat,
    /// Bytes in a block: 1024, 2048 or 4096; by the device's size if `None`.
    pub block_size: Option<u32>,
    /// Blocks of a group: a multiple of 8, from 256 to as many as a block has bits; those if `None`.
    pub blocks_per_group: Option<u32>,
    /// Bytes in an inode.
    pub inode_size: u32,
    /// Bytes of the device for each inode; by the device's size if `None`.
    pub inode_ratio: Option<u32>,
    /// Inodes of the volume, rounded so that each group has as many; by the ratio if `None`.
    pub inodes: Option<u32>,
    /// Blocks of the journal; by the volume's size if `None`.
    pub journal_blocks: Option<u32>,
    /// Percent of the blocks that only the owner of the reserve may fill.
    pub reserved_percent: u32,
    /// The label, at most 16 bytes.
    pub label: String,
    /// The volume's UUID.
    pub uuid: [u8; 16],
    /// Initial value of the hashes of names.
    pub hash_seed: [u8; 16],
    /// Time at which it is made, in seconds since 1970.
    pub time: u64,
    /// The owner of the root directory, user and group.
    pub root_owner: (u32, u32),
    /// Leaves inode tables that were never used to the kernel, which zeroes them after the first
    /// mount. Only where groups have checksums, and the device has no discard.
    pub lazy_itable_init: bool,
}

/// Features that all kinds have by the defaults of mke2fs (`base_features`).
const BASE_COMPAT: Compat =
    Compat(Compat::EXT_ATTR.0 | Compat::RESIZE_INODE.0 | Compat::DIR_INDEX.0);
const BASE_RO_COMPAT: RoCompat = RoCompat(RoCompat::SPARSE_SUPER.0 | RoCompat::LARGE_FILE.0);

impl MkfsOptions {
    /// The defaults of mke2fs for a kind.
    pub const fn new(kind: Kind) -> Self {
        let journal = if matches!(kind, Kind::Ext2) { Compat(0) } else { Compat::HAS_JOURNAL };
        let (incompat, ro_compat) = match kind {
            Kind::Ext2 | Kind::Ext3 => (Incompat(0), RoCompat(0)),
            Kind::Ext4 => (
                Incompat::EXTENTS.with(Incompat::BITS_64).with(Incompat::FLEX_BG),
                RoCompat::HUGE_FILE
                    .with(RoCompat::DIR_NLINK)
                    .with(RoCompat::EXTRA_ISIZE)
                    .with(RoCompat::METADATA_CSUM),
            ),
        };
        Self {
            compat: BASE_COMPAT.with(journal),
            incompat: Incompat::FILETYPE.with(incompat),
            ro_compat: BASE_RO_COMPAT.with(ro_compat),
            block_size: None,
            blocks_per_group: None,
            inode_size: 256,
            inode_ratio: None,
            inodes: None,
            journal_blocks: None,
            reserved_percent: 5,
            label: String::new(),
            uuid: [0; 16],
            hash_seed: [0; 16],
            time: 0,
            root_owner: (0, 0),
            lazy_itable_init: true,
        }
    }

    /// Bytes in a block of a volume on a device of so many bytes.
    pub fn block_size_on(&self, bytes: u64) -> u32 {
        self.block_size.unwrap_or(usage(bytes).0)
    }

    /// Changes features as an argument of mke2fs's `-O` says: `NAME` adds one, `^NAME` takes it
    /// away, `none` all of them.
    ///
    /// # Errors
    /// [`MkfsError::UnknownFeature`]; whether they go together is seen when the volume is made.
    pub fn change_feature(&mut self, argument: &str) -> Result<(), MkfsError> {
        if argument == "none" {
            (self.compat, self.incompat, self.ro_compat) = Default::default();
            return Ok(());
        }
        let (name, on) = argument.strip_prefix('^').map_or((argument, true), |name| (name, false));
        let name = if name == "extents" { "extent" } else { name };
        if let Some(feature) = Compat::named(name) {
            let without = self.compat.without(feature);
            self.compat = if on { without.with(feature) } else { without };
        } else if let Some(feature) = Incompat::named(name) {
            let without = self.incompat.without(feature);
            self.incompat = if on { without.with(feature) } else { without };
        } else if let Some(feature) = RoCompat::named(name) {
            let without = self.ro_compat.without(feature);
            self.ro_compat = if on { without.with(feature) } else { without };
        } else {
            return Err(MkfsError::UnknownFeature(name.into()));
        }
        Ok(())
    }

    /// Checks all that does not depend on the device.
    pub(super) fn check(&self) -> Result<(), MkfsError> {
        self.check_features()?;
        if !matches!(self.block_size, None | Some(1024 | 2048 | 4096)) {
            return Err(MkfsError::BlockSize(self.block_size.unwrap_or(0)));
        }
        if !self.inode_size.is_power_of_two() || !(128..=4096).contains(&self.inode_size) {
            return Err(MkfsError::InodeSize(self.inode_size));
        }
        match self.inode_ratio {
            Some(ratio) if !(1 << 10..=1 << 26).contains(&ratio) => {
                return Err(MkfsError::InodeRatio(ratio));
            }
            _ => {}
        }
        if self.reserved_percent > 50 {
            return Err(MkfsError::Reserve(self.reserved_percent));
        }
        if self.label.len() > 16 {
            return Err(MkfsError::Label(self.label.len()));
        }
        Ok(())
    }

    fn check_features(&self) -> Result<(), MkfsError> {
        let compat = self.compat.without(BASE_COMPAT).without(Compat::HAS_JOURNAL);
        let incompat = self.incompat.without(Incompat(Incompat::WRITTEN.0 & !Incompat::RECOVER.0));
        let ro_compat = self.ro_compat.without(RoCompat::WRITTEN);
        if (compat.0, incompat.0, ro_compat.0) != (0, 0, 0) {
            return Err(MkfsError::Features(compat, incompat, ro_compat));
        }
        if self.ro_compat.has(RoCompat::METADATA_CSUM.with(RoCompat::GDT_CSUM)) {
            return Err(MkfsError::FeatureExcludes("metadata_csum", "uninit_bg"));
        }
        let seeded = self.incompat.has(Incompat::CSUM_SEED);
        if seeded && !self.ro_compat.has(RoCompat::METADATA_CSUM) {
            return Err(MkfsError::FeatureNeeds("metadata_csum_seed", "metadata_csum"));
        }
        if self.compat.has(Compat::RESIZE_INODE) && !self.ro_compat.has(RoCompat::SPARSE_SUPER) {
            return Err(MkfsError::FeatureNeeds("resize_inode", "sparse_super"));
        }
        if self.compat.has(Compat::RESIZE_INODE) && !self.ro_compat.has(RoCompat::LARGE_FILE) {
            return Err(MkfsError::FeatureNeeds("resize_inode", "large_file"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut MkfsOptions)) -> MkfsError {
        let mut options = MkfsOptions::new(Kind::Ext4);
        options.check().unwrap();
        change(&mut options);
        options.check().unwrap_err()
    }

    #[test]
    fn features_change_by_their_names() {
        let changed = |arguments: &[&str]| {
            let mut options = MkfsOptions::new(Kind::Ext4);
            arguments.iter().for_each(|argument| options.change_feature(argument).unwrap());
            (options.compat, options.incompat, options.ro_compat)
        };
        let usual = MkfsOptions::new(Kind::Ext4);
        let (compat, incompat, ro_compat) = changed(&["^has_journal", "^extents", "uninit_bg"]);
        assert_eq!(compat, usual.compat.without(Compat::HAS_JOURNAL));
        assert_eq!(incompat, usual.incompat.without(Incompat::EXTENTS));
        assert_eq!(ro_compat, usual.ro_compat.with(RoCompat::GDT_CSUM));
        let alone = (Compat(0), Incompat::FILETYPE, RoCompat(0));
        assert_eq!(changed(&["^filetype", "none", "filetype"]), alone);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let unknown = refused(|o| o.incompat = o.incompat.with(Incompat::MMP));
        assert_eq!(unknown, MkfsError::Features(Compat(0), Incompat::MMP, RoCompat(0)));
        let needs = refused(|o| o.ro_compat = o.ro_compat.without(RoCompat::SPARSE_SUPER));
        assert_eq!(needs, MkfsError::FeatureNeeds("resize_inode", "sparse_super"));
        assert_eq!(refused(|o| o.block_size = Some(512)), MkfsError::BlockSize(512));
        assert_eq!(refused(|o| o.inode_size = 200), MkfsError::InodeSize(200));
        assert_eq!(refused(|o| o.inode_ratio = Some(1)), MkfsError::InodeRatio(1));
        assert_eq!(refused(|o| o.reserved_percent = 51), MkfsError::Reserve(51));
        assert_eq!(
            MkfsOptions::new(Kind::Ext4).change_feature("metadata_cksum"),
            Err(MkfsError::UnknownFeature("metadata_cksum".into()))
        );
        assert_eq!(refused(|o| o.label = "seventeen letters".into()), MkfsError::Label(17));
    }
}
