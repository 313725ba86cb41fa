//! Options of a new volume.

use super::{DevicePart, MkfsError};
use crate::format::{Features, Timestamp, Variant};

/// Extensions of names whose files are cold, written once and kept: the list of mkfs.f2fs 1.15.
pub const COLD_EXTENSIONS: [&str; 36] = [
    "mp", "wm", "og", "jp", "avi", "m4v", "m4p", "mkv", "mov", "webm", "wav", "m4a", "3gp", "opus",
    "flac", "gif", "png", "svg", "webp", "jar", "deb", "iso", "gz", "xz", "zst", "pdf", "pyc",
    "ttc", "ttf", "exe", "apk", "cnt", "exo", "odex", "vdex", "so",
];

/// Extensions of names whose files are hot, written over and over: the list of mkfs.f2fs 1.15.
pub const HOT_EXTENSIONS: [&str; 4] = ["db", "vmdk", "vdi", "qcow2"];

/// Features that new volumes can have. Quota files and the like would have to be made too.
const SUPPORTED: [Features; 12] = [
    Features::BLKZONED,
    Features::ENCRYPT,
    Features::EXTRA_ATTR,
    Features::PROJECT_QUOTA,
    Features::INODE_CHECKSUM,
    Features::FLEXIBLE_INLINE_XATTR,
    Features::INODE_CRTIME,
    Features::LOST_FOUND,
    Features::VERITY,
    Features::SB_CHECKSUM,
    Features::CASEFOLD,
    Features::COMPRESSION,
];

/// Features that an inode's extra attributes store.
const NEED_EXTRA_ATTR: [Features; 5] = [
    Features::PROJECT_QUOTA,
    Features::INODE_CHECKSUM,
    Features::FLEXIBLE_INLINE_XATTR,
    Features::INODE_CRTIME,
    Features::COMPRESSION,
];

/// Segments in a zone at most. Assumed: 128 GiB; the format has no limit.
pub(super) const MAX_ZONE: u64 = 65_536;

/// Options of a new volume. [`MkfsOptions::default`] is what mkfs.f2fs does by default. The caller
/// draws uuid and version.
#[derive(Clone, Debug, PartialEq)]
pub struct MkfsOptions {
    /// F2FS, or IPLFS on a thin device; sections, zones, overprovision, `large_nat` and `heap` are
    /// F2FS's alone.
    pub variant: Variant,
    /// IPLFS: how far into its area each log begins, in blocks; tests put it near the end.
    pub log_start: u64,
    /// IPLFS: blocks of a checkpoint pack for its discard log; by default enough for all that the
    /// device can hold. Tests make it small: after a call that gives up more than fits no
    /// checkpoint finds space.
    pub discard_log_blocks: Option<u32>,
    /// The label, at most 512 UTF-16 units.
    pub label: String,
    /// The volume's UUID.
    pub uuid: [u8; 16],
    /// Features beyond the basic format.
    pub features: Features,
    /// The devices that it is made on, put end to end; none for a single one, which needs no path.
    pub devices: Vec<DevicePart>,
    /// Segments in a section; on a zoned device a section is a zone, whatever this says.
    pub segments_per_section: u32,
    /// Sections in a zone.
    pub sections_per_zone: u32,
    /// Percent of the main area kept from users; the best is computed if `None`.
    pub overprovision_percent: Option<f64>,
    /// A larger NAT: a fifth as many nodes as blocks.
    pub large_nat: bool,
    /// Logs begin at the main area's end, but for cold and warm data.
    pub heap: bool,
    /// Extensions of names whose files are cold.
    pub cold_extensions: Vec<String>,
    /// Extensions of names whose files are hot.
    pub hot_extensions: Vec<String>,
    /// Creation time of the root directory.
    pub time: Timestamp,
    /// User and group that own the root directory.
    pub root_owner: (u32, u32),
    /// Version of the first checkpoint; an odd random number keeps nodes of volumes before this one
    /// from being taken for its own.
    pub checkpoint_version: u64,
}

impl Default for MkfsOptions {
    fn default() -> Self {
        Self {
            variant: Variant::F2fs,
            log_start: 0,
            discard_log_blocks: None,
            label: String::new(),
            uuid: [0; 16],
            features: Features(0),
            devices: Vec::new(),
            segments_per_section: 1,
            sections_per_zone: 1,
            overprovision_percent: None,
            large_nat: false,
            heap: false,
            cold_extensions: COLD_EXTENSIONS.map(String::from).to_vec(),
            hot_extensions: HOT_EXTENSIONS.map(String::from).to_vec(),
            time: Timestamp::default(),
            root_owner: (0, 0),
            checkpoint_version: 1,
        }
    }
}

impl MkfsOptions {
    /// Checks all that does not depend on the device.
    pub(super) fn check(&self) -> Result<(), MkfsError> {
        self.check_features()?;
        let (segments, sections) = (self.segments_per_section, self.sections_per_zone);
        if !(1..=MAX_ZONE).contains(&(u64::from(segments) * u64::from(sections))) {
            return Err(MkfsError::Zone { segments, sections });
        }
        let units = self.label.encode_utf16().count();
        if units > 512 {
            return Err(MkfsError::Label { units });
        }
        self.check_extensions()
    }

    fn check_features(&self) -> Result<(), MkfsError> {
        let supported = SUPPORTED.iter().fold(Features(0), |all, one| all.with(*one));
        let supported = match self.variant {
            Variant::F2fs => supported,
            Variant::Iplfs(_) => supported.without(Features::BLKZONED),
        };
        let others = self.features.without(supported);
        if others != Features(0) {
            return Err(MkfsError::Features(others));
        }
        let needs = Features::EXTRA_ATTR;
        let missing = NEED_EXTRA_ATTR.into_iter().find(|&one| self.features.has(one));
        match missing {
            Some(feature) if !self.features.has(needs) => {
                Err(MkfsError::FeatureNeeds { feature, needs })
            }
            _ => Ok(()),
        }
    }

    fn check_extensions(&self) -> Result<(), MkfsError> {
        let count = self.cold_extensions.len() + self.hot_extensions.len();
        if count > 64 {
            return Err(MkfsError::Extensions(count));
        }
        let mut all = self.cold_extensions.iter().chain(&self.hot_extensions);
        match all.find(|extension| !(1..8).contains(&extension.len())) {
            Some(extension) => Err(MkfsError::Extension(extension.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut MkfsOptions)) -> MkfsError {
        let mut options = MkfsOptions::default();
        options.check().unwrap();
        change(&mut options);
        options.check().unwrap_err()
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let (feature, needs) = (Features::INODE_CRTIME, Features::EXTRA_ATTR);
        assert_eq!(refused(|o| o.features = feature), MkfsError::FeatureNeeds { feature, needs });
        let quota = Features::QUOTA_INO;
        assert_eq!(
            refused(|o| o.features = quota.with(Features::VERITY)),
            MkfsError::Features(quota)
        );
        assert_eq!(refused(|o| o.label = "x".repeat(513)), MkfsError::Label { units: 513 });
        assert_eq!(
            refused(|o| o.hot_extensions.push("longword".into())),
            MkfsError::Extension("longword".into())
        );
        assert_eq!(
            refused(|o| o.cold_extensions = vec!["a".into(); 61]),
            MkfsError::Extensions(65)
        );
        let zone = MkfsError::Zone { segments: 0, sections: 1 };
        assert_eq!(refused(|o| o.segments_per_section = 0), zone);
        assert!(zone.to_string().ends_with("1 to 65536 segments are allowed"));
    }
}
