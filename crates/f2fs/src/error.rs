//! Errors of reading, checking and writing a volume.

use std::fmt;

use dovetail_block::{DeviceError, WrongDrive};
use dovetail_vfs::kit::PathError;

use crate::format::{BlockAddr, CompressAlgorithm, Nid};
use crate::mkfs::MkfsError;

/// Error of an operation. Damage, missing support and device failures are separate variants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The device failed.
    #[error("the device failed: {0}")]
    Io(#[from] DeviceError),
    /// Neither superblock carries F2FS's magic number.
    #[error("this is not an F2FS volume: its magic number is {found:#010x} instead of 0xf2f52010")]
    NotF2fs {
        /// Number found in place of the magic number.
        found: u32,
    },
    /// The volume contradicts itself or the format.
    #[error("the volume is damaged: {0}")]
    Corrupt(#[from] Corrupt),
    /// The volume is sound as far as is known, and uses what is not supported.
    #[error("{0}")]
    Incompatible(#[from] Incompatible),
    /// The volume is full, or as good as full.
    #[error("no space is left on the volume")]
    NoSpace,
    /// A log of an IPLFS volume has used up its addresses.
    #[error(
        "log {0} of the volume has used up its addresses: copy the files to a new volume, with block addresses of 8 bytes"
    )]
    LogAtEnd(usize),
    /// The volume is mounted for reading only.
    #[error("the volume is mounted read-only")]
    ReadOnly,
    /// A block beyond the largest file.
    #[error("the file would be larger than F2FS can store")]
    FileTooBig,
    /// No volume can be made like this.
    #[error("{0}")]
    Mkfs(#[from] MkfsError),
    /// A path leads nowhere, or to a file of another kind.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Something that is read nowhere here, by the feature's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// Feature bits without support, each by the name that mkfs.f2fs gives it.
    #[error("the volume uses features that are not supported: {0}")]
    Features(crate::format::Features),
    /// The volume extends over several devices, and not all are there.
    #[error(
        "the volume has {expected} blocks on {devices} devices, and {found} are here: give the others, too (the next \
         one was {next} when it was made; --device names it)"
    )]
    MultiDevice {
        /// Devices of the volume.
        devices: usize,
        /// Blocks that are here.
        found: u64,
        /// Blocks of the volume.
        expected: u64,
        /// The path of the second device, as mkfs recorded it.
        next: String,
    },
    /// A zoned volume on a device without zones.
    #[error(
        "the volume was made for a zoned device, and this one has no zones: give its zone report (--zones), or mount \
         it read-only"
    )]
    NoZones,
    /// An ordinary volume on a device with zones.
    #[error(
        "the device is written in zones, and the volume was not made for that: make it again there, with the zoned \
         feature"
    )]
    NotMadeForZones,
    /// Zones that are not the volume's sections.
    #[error(
        "the device has zones of {found} blocks, and the volume was made for zones of {expected}"
    )]
    OtherZones {
        /// Blocks of the device's zones.
        found: u64,
        /// Blocks of the volume's sections.
        expected: u64,
    },
    /// Zones that do not lie where the volume's sections do.
    #[error(
        "the device's first zone that is written in order begins at block {first}, and the volume's files at block \
         {main}: the zones must cover the files, and nothing before them"
    )]
    ZonesElsewhere {
        /// The first block of a sequential zone.
        first: u64,
        /// The first block of the main area.
        main: u64,
    },
    /// A device that cannot have as many zones open or active as there are logs.
    #[error(
        "{logs} logs write to as many zones, and the device can have {limit} {counted} at once: mount with active_logs={fits}, or \
         use a device with more"
    )]
    TooFewZonesAtOnce {
        /// Logs of the mount.
        logs: u32,
        /// Zones that may be so at once.
        limit: u32,
        /// "open" or "active".
        counted: &'static str,
        /// A number of logs that would do, or the smallest there is.
        fits: u32,
    },
    /// A mount option that makes no sense on a zoned volume.
    #[error("a zoned volume cannot be mounted with {option}: {reason}")]
    ZonedOption {
        /// The option.
        option: &'static str,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// `inline_xattr_size` where it cannot be.
    #[error("the mount option inline_xattr_size cannot be used: {0}")]
    InlineXattrSize(&'static str),
    /// Features that can be read, but whose structures are not kept right by changes.
    #[error("the volume uses {0}, which is read but not written: mount it with the option ro")]
    Unmaintained(crate::format::Features),
    /// A volume without most of its logs, which nobody writes.
    #[error(
        "the volume has the feature readonly: its files are read (ls, cat, extract), and it is neither mounted nor checked"
    )]
    ReadOnlyVolume,
    /// The last checkpoint says that something is wrong or unfinished.
    #[error(
        "the last checkpoint is marked \"{0}\": check the volume first, or mount it with the option ro"
    )]
    CheckpointState(crate::format::CheckpointFlags),
    /// A mount option that needs a device that can remap.
    #[error(
        "{option} needs a device with a remap command, and this one has none: mount without it, or use a \
         drive whose profile has remap"
    )]
    NoRemap {
        /// The mount option.
        option: &'static str,
    },
    /// An IPLFS volume on a device whose every address has its room.
    #[error(
        "IPLFS never writes an address again, so it needs a drive with more addresses than room: use one whose profile \
         is thin"
    )]
    NotThin,
    /// A mount option that makes no sense on an IPLFS volume.
    #[error("an IPLFS volume cannot be mounted with {option}: {reason}")]
    IplfsOption {
        /// The option.
        option: &'static str,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// Pointers lead to addresses of a drive that is not the one below.
    #[error(transparent)]
    WrongDrive(#[from] WrongDrive),
    /// A volume or a mount whose pointers cannot lead to the drive's own addresses.
    #[error("{what} cannot have pointers to the drive's own addresses: {reason}")]
    BarredFromDeviceAddresses {
        /// The volume or the mount.
        what: &'static str,
        /// Reason for the refusal.
        reason: &'static str,
    },
    /// Pointers to places of the device, without what they need.
    #[error("letting pointers lead to the device's own addresses needs {0}: that")]
    DeviceAddresses(&'static str),
    /// Addresses of the volume reach the bit that tells places of the device.
    #[error(
        "the volume has {blocks} blocks; pointers to the device's own addresses need fewer than {limit}"
    )]
    NoSpareBit {
        /// Blocks of the volume.
        blocks: u64,
        /// The first count that is too many.
        limit: u64,
    },
    /// Blocks of another size than 4 KiB.
    #[error("the volume has blocks of 2^{log} bytes; only 4096 are supported")]
    BlockSize {
        /// The logarithm of the size.
        log: u32,
    },
    /// An encrypted file, directory or link.
    #[error("inode {0} is encrypted, and there is no key")]
    Encrypted(Nid),
    /// A cluster that is compressed in a way that is not known.
    #[error("inode {ino} is compressed by {algorithm}, which is not known")]
    Compressed {
        /// The file.
        ino: Nid,
        /// The algorithm's number.
        algorithm: CompressAlgorithm,
    },
}

/// Structure in which a fault was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A copy of the superblock: 0 or 1.
    Superblock(u32),
    /// A checkpoint pack: 1 or 2.
    Checkpoint(u32),
    /// The NAT's entry of a nid.
    Nat(Nid),
    /// The SIT's entry of a segment.
    Sit(u32),
    /// A node block.
    Node(Nid),
    /// An inode.
    Inode(Nid),
    /// A directory's entries.
    Directory(Nid),
    /// The extended attributes of an inode.
    Xattrs(Nid),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock(copy) => write!(f, "superblock copy {copy}"),
            Self::Checkpoint(pack) => write!(f, "checkpoint pack {pack}"),
            Self::Nat(nid) => write!(f, "NAT entry of nid {nid}"),
            Self::Sit(segno) => write!(f, "SIT entry of segment {segno}"),
            Self::Node(nid) => write!(f, "node {nid}"),
            Self::Inode(ino) => write!(f, "inode {ino}"),
            Self::Directory(ino) => write!(f, "directory {ino}"),
            Self::Xattrs(ino) => write!(f, "extended attributes of inode {ino}"),
        }
    }
}

/// One way of being damaged, with the values that disagree.
pub type Corrupt = dovetail_vfs::kit::Corrupt<Place, Nid, Damage>;

/// Damage that only F2FS and IPLFS know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The device ends before the volume.
    #[error(
        "the volume has {expected} blocks, the device {found}: the image is cut short; what is there can be read from \
         a copy that is extended to that size (truncate -s {})", expected * 4096
    )]
    Truncated {
        /// Blocks of the device.
        found: u64,
        /// Blocks of the volume.
        expected: u64,
    },
    /// Neither copy of the superblock can be used.
    #[error("both copies of the superblock are unusable: {first}; {second}")]
    BothSuperblocks {
        /// Damage of the first copy.
        first: Box<Corrupt>,
        /// Damage of the second copy.
        second: Box<Corrupt>,
    },
    /// Neither checkpoint pack can be used.
    #[error("both checkpoint packs are unusable: {first}; {second}")]
    BothCheckpoints {
        /// Damage of the first pack.
        first: Box<Corrupt>,
        /// Damage of the second pack.
        second: Box<Corrupt>,
    },
    /// An address outside the main area.
    #[error("{place}: {field} points to block {found}, outside the main area {first} to {last}")]
    Address {
        /// Structure that holds the address.
        place: Place,
        /// The pointer's field.
        field: &'static str,
        /// The address.
        found: BlockAddr,
        /// The first block of the main area.
        first: u64,
        /// Its last block.
        last: u64,
    },
    /// A nid that leads to nothing.
    #[error("nid {0} is used and has no node")]
    NoNode(Nid),
    /// A list of extended attributes that does not fit its area.
    #[error(
        "extended attributes of inode {ino}: the entry at byte {offset} goes beyond the end at {end}"
    )]
    XattrOverrun {
        /// The inode.
        ino: Nid,
        /// Byte of the area at which the entry begins.
        offset: u64,
        /// The size of the area.
        end: u64,
    },
    /// A compressed cluster that cannot be decompressed.
    #[error("inode {ino}: the compressed cluster at block {block}: {fault}")]
    Cluster {
        /// The file.
        ino: Nid,
        /// The block of the file where the cluster begins.
        block: u64,
        /// Damage of the cluster.
        fault: ClusterFault,
    },
    /// A block that something points to, and that is free by the SIT.
    #[error("block {0} is in use, and the SIT says that it holds nothing")]
    NotValid(BlockAddr),
    /// A block whose summary names an owner that does not point to it.
    #[error(
        "block {address} is valid, and node {nid}, its owner by the summary, does not point to it"
    )]
    Owner {
        /// The block.
        address: BlockAddr,
        /// The node that should point to it.
        nid: Nid,
    },
}

/// Damage of a compressed cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterFault {
    /// A marker in a place where no cluster begins.
    #[error("COMPRESS_ADDR stands where no cluster begins")]
    Misplaced,
    /// A length beyond the blocks that are stored.
    #[error("it says {found} bytes, its blocks hold {room}")]
    Length {
        /// Length that the header gives.
        found: u32,
        /// Bytes that the cluster's blocks hold.
        room: usize,
    },
    /// A checksum that does not fit the compressed bytes.
    #[error("the checksum is {found:#010x}, its bytes give {computed:#010x}")]
    Checksum {
        /// The checksum that is stored.
        found: u32,
        /// The checksum of what is stored.
        computed: u32,
    },
    /// Bytes that the algorithm cannot have made.
    #[error("{algorithm}: {message}")]
    Stream {
        /// The algorithm.
        algorithm: CompressAlgorithm,
        /// Message of the decoder.
        message: String,
    },
    /// Less content than a cluster has.
    #[error("it gives {found} bytes instead of {expected}")]
    Size {
        /// Number of bytes that it gave.
        found: usize,
        /// Number of bytes in a cluster.
        expected: usize,
    },
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Corrupt(damage.into())
    }
}

impl From<Error> for dovetail_vfs::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NoSpace | Error::LogAtEnd(_) => Self::NoSpace,
            Error::ReadOnly => Self::ReadOnly,
            Error::FileTooBig => Self::FileTooBig,
            Error::Path(error) => error.into(),
            Error::Incompatible(what) => Self::Unsupported(what.to_string()),
            Error::Corrupt(Corrupt::Format(Damage::NoNode(_))) => Self::NotFound,
            Error::Io(_) => Self::Io(error.to_string()),
            error => Self::Corrupt(error.to_string()),
        }
    }
}
