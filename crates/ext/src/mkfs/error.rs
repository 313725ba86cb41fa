//! Reasons why a volume cannot be made.

use crate::format::{Compat, Incompat, RoCompat};

use dovetail_time::did_you_mean;

/// Options that contradict each other, or that do not fit the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MkfsError {
    /// A device with zones.
    #[error(
        "the device is written in zones, and ext3 and ext4 write in place: use a drive without zones, or F2FS, which is made \
         for them (mkfs f2fs -m, the stack f2fs-zoned)"
    )]
    Zones,
    /// A device without room for the tables.
    #[error(
        "{bytes} bytes are too few: {short}; use a larger device, or fewer inodes and a smaller journal"
    )]
    TooSmall {
        /// The device's size.
        bytes: u64,
        /// Missing room, as a clause of the message.
        short: &'static str,
    },
    /// A device beyond what block numbers of 32 bits reach.
    #[error(
        "{blocks} blocks are too many: a volume made here has fewer than 2^32; use larger blocks"
    )]
    TooLarge {
        /// Blocks of the device, in the volume's block size.
        blocks: u64,
    },
    /// A block size that is not supported.
    #[error("blocks of {0} bytes cannot be used: 1024, 2048 and 4096 can")]
    BlockSize(u32),
    /// An inode size that is not supported.
    #[error("inodes of {0} bytes cannot be used: a power of two from 128 to the block's size can")]
    InodeSize(u32),
    /// A group of too few or too many blocks.
    #[error("a group cannot have {0} blocks: a multiple of 8 from 256 to {1} can be")]
    GroupSize(u32, u32),
    /// Groups that their descriptors would fill; mke2fs turns to meta_bg there.
    #[error(
        "groups of {blocks} blocks are too small: descriptors, and with resize_inode what is kept for more of them, take {head} in \
         each; use larger groups"
    )]
    SmallGroups {
        /// Blocks of a group.
        blocks: u32,
        /// Blocks of the descriptors, and those kept for more.
        head: u32,
    },
    /// An inode for too few or too many bytes.
    #[error("an inode for each {0} bytes makes no sense: 1024 to 67108864 are allowed")]
    InodeRatio(u32),
    /// More inodes than numbers of 32 bits.
    #[error(
        "{0} inodes are too many: give a larger ratio (-i), such that there are fewer than 2^32"
    )]
    Inodes(u64),
    /// A reserve that leaves nothing.
    #[error("a reserve of {0} % is too much: up to 50 is allowed")]
    Reserve(u32),
    /// A label that does not fit the superblock.
    #[error("the label is too long: {0} bytes, 16 are allowed")]
    Label(usize),
    /// A journal outside what kernels take, or what the volume has room for.
    #[error("a journal of {blocks} blocks cannot be made: {}", allowed(*min, *max))]
    Journal {
        /// Blocks that were asked for.
        blocks: u64,
        /// The smallest one.
        min: u64,
        /// The largest one.
        max: u64,
    },
    /// No feature of that name.
    #[error("there is no feature {0:?}{hint}", hint = did_you_mean(.0, feature_names()))]
    UnknownFeature(String),
    /// Features that new volumes cannot have.
    #[error("new volumes cannot have the features {}", together(*.0, *.1, *.2))]
    Features(Compat, Incompat, RoCompat),
    /// Two features that do not go together.
    #[error("the features {0} and {1} exclude each other")]
    FeatureExcludes(&'static str, &'static str),
    /// A feature that needs another one.
    #[error("the feature {0} needs the feature {1}")]
    FeatureNeeds(&'static str, &'static str),
}

/// The features of three words by their names.
fn together(compat: Compat, incompat: Incompat, ro_compat: RoCompat) -> String {
    let words = [compat.to_string(), incompat.to_string(), ro_compat.to_string()];
    let set: Vec<_> = words.iter().filter(|word| *word != "none").map(String::as_str).collect();
    set.join(" ")
}

fn feature_names() -> impl Iterator<Item = &'static str> {
    Compat::names().chain(Incompat::names()).chain(RoCompat::names())
}

/// The lengths that a journal may have, or the advice if there are none.
fn allowed(min: u64, max: u64) -> String {
    if max < min {
        return format!("it has at least {min}, and there is room for {max}; use a larger device");
    }
    format!("{min} to {max} are allowed here")
}
