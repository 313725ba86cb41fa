//! Why a volume, or something in it, cannot be read.

use std::fmt;

use dovetail_block::DeviceError;

use crate::format::{BlockAddr, CompressAlgorithm, Nid};
use crate::mkfs::MkfsError;

/// Why an operation failed. What is broken, what is merely not supported and what the device refused are kept
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The device failed.
    #[error("the device failed: {0}")]
    Io(#[from] DeviceError),
    /// Neither superblock carries F2FS's magic number.
    #[error("this is not an F2FS volume: its magic number is {found:#010x} instead of 0xf2f52010")]
    NotF2fs {
        /// What stands where the magic number should.
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
        "log {0} of the volume has come to the end of its 2^58 addresses: copy the files to a new volume"
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
    /// No entry of that name.
    #[error("there is no {0}")]
    NotFound(String),
    /// A file in the place of a directory.
    #[error("{0} is not a directory")]
    NotADirectory(String),
    /// Something other than a regular file in the place of one.
    #[error("{0} is not a regular file")]
    NotAFile(String),
    /// Something other than a symbolic link in the place of one.
    #[error("inode {0} is not a symbolic link")]
    NotASymlink(Nid),
    /// More symbolic links on one path than the kernel follows.
    #[error("{path} leads through more than {limit} symbolic links")]
    TooManySymlinks {
        /// The path as it was given.
        path: String,
        /// How many are followed.
        limit: u32,
    },
}

/// Something that is read nowhere here, by the feature's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// Feature bits without support, each by the name that mkfs.f2fs gives it.
    #[error("the volume uses features that are not supported: {0}")]
    Features(crate::format::Features),
    /// The volume extends over several devices.
    #[error("the volume extends over several devices (the next one is {next}), which is not supported")]
    MultiDevice {
        /// The path of the second device, as mkfs.f2fs recorded it.
        next: String,
    },
    /// Features that can be read, but whose structures are not kept right by changes.
    #[error("the volume uses {0}, which is read but not written: mount it with the option ro")]
    Unmaintained(crate::format::Features),
    /// The last checkpoint says that something is wrong or unfinished.
    #[error("the last checkpoint is marked \"{0}\": check the volume first, or mount it with the option ro")]
    CheckpointState(crate::format::CheckpointFlags),
    /// A mount option that needs a device that can remap.
    #[error(
        "mode={mode} needs a device with a remap command, and this one has none: mount with mode=adaptive, or use a drive \
         whose profile has remap"
    )]
    NoRemap {
        /// The mode.
        mode: &'static str,
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
        /// Why not.
        reason: &'static str,
    },
    /// Pointers lead to places of the drive below, and this is not it.
    #[error(
        "the volume has pointers to its drive's own addresses: mount it on that drive, or make it an ordinary one there with \
         `dovetail devirtualize --undo`"
    )]
    Devirtualized,
    /// Pointers to places of the device, without what they need.
    #[error("letting pointers lead to the device's own addresses needs {0}: that")]
    DeviceAddresses(&'static str),
    /// Addresses of the volume reach the bit that tells places of the device.
    #[error("the volume has {blocks} blocks; pointers to the device's own addresses need fewer than {limit}")]
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

/// Where something was found.
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// A field outside the values that it may have.
    #[error("{place}: {field} is {found}, allowed is {min} to {max}")]
    Range {
        /// Where.
        place: Place,
        /// The field, by the kernel's name.
        field: &'static str,
        /// What it holds.
        found: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// A field that must have another value, because of other fields.
    #[error("{place}: {field} is {found}, not {expected}")]
    Mismatch {
        /// Where.
        place: Place,
        /// The field, by the kernel's name.
        field: &'static str,
        /// What it holds.
        found: u64,
        /// What follows from the rest.
        expected: u64,
    },
    /// A checksum that does not fit its bytes.
    #[error("{place}: the checksum is {found:#010x}, its bytes give {computed:#010x}")]
    Checksum {
        /// Where.
        place: Place,
        /// The checksum that is stored.
        found: u32,
        /// The checksum of what is stored.
        computed: u32,
    },
    /// The device ends before the volume.
    #[error("the volume has {expected} blocks, the device {found}: the image is cut short")]
    Truncated {
        /// Blocks of the device.
        found: u64,
        /// Blocks of the volume.
        expected: u64,
    },
    /// Neither copy of the superblock can be used.
    #[error("both copies of the superblock are unusable: {first}; {second}")]
    BothSuperblocks {
        /// What is wrong with the first.
        first: Box<Corrupt>,
        /// What is wrong with the second.
        second: Box<Corrupt>,
    },
    /// Neither checkpoint pack can be used.
    #[error("both checkpoint packs are unusable: {first}; {second}")]
    BothCheckpoints {
        /// What is wrong with the first.
        first: Box<Corrupt>,
        /// What is wrong with the second.
        second: Box<Corrupt>,
    },
    /// An address outside the main area.
    #[error("{place}: {field} points to block {found}, outside the main area {first} to {last}")]
    Address {
        /// Where the address stands.
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
    /// A name that no file may have.
    #[error("directory {dir}: an entry is called {name}, which no file may be")]
    Name {
        /// The directory.
        dir: Nid,
        /// The name, as [`dovetail_vfs::shown`] has it.
        name: String,
    },
    /// An entry that leads to no inode.
    #[error("directory {dir}: {name} leads to inode {ino}, the last one is {last}")]
    EntryInode {
        /// The directory.
        dir: Nid,
        /// The name, as [`dovetail_vfs::shown`] has it.
        name: String,
        /// The inode.
        ino: Nid,
        /// The last one that there may be.
        last: u64,
    },
    /// "." or ".." a second time.
    #[error("directory {dir}: a further entry is called {name}")]
    FurtherDot {
        /// The directory.
        dir: Nid,
        /// Which of the two.
        name: String,
    },
    /// A list of extended attributes that does not fit its area.
    #[error("extended attributes of inode {ino}: the entry at byte {offset} goes beyond the end at {end}")]
    XattrOverrun {
        /// The inode.
        ino: Nid,
        /// Where the entry begins.
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
        /// What is wrong with it.
        fault: ClusterFault,
    },
    /// A block that something points to, and that is free by the SIT.
    #[error("block {0} is in use, and the SIT says that it holds nothing")]
    NotValid(BlockAddr),
    /// A block whose summary names an owner that does not point to it.
    #[error("block {address} is valid, and node {nid}, its owner by the summary, does not point to it")]
    Owner {
        /// The block.
        address: BlockAddr,
        /// The node that should point to it.
        nid: Nid,
    },
    /// A directory that contains itself, or has two parents.
    #[error("directory {0} is reached twice: the tree has a loop")]
    DirectoryLoop(Nid),
}

/// What is wrong with a compressed cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterFault {
    /// A marker in a place where no cluster begins.
    #[error("COMPRESS_ADDR stands where no cluster begins")]
    Misplaced,
    /// A length beyond the blocks that are stored.
    #[error("it says {found} bytes, its blocks hold {room}")]
    Length {
        /// What the header says.
        found: u32,
        /// What there is.
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
        /// What its decoder says.
        message: String,
    },
    /// Less content than a cluster has.
    #[error("it gives {found} bytes instead of {expected}")]
    Size {
        /// How many bytes it gave.
        found: usize,
        /// How many a cluster has.
        expected: usize,
    },
}

impl Corrupt {
    /// Nothing if `found` lies in `min..=max`.
    ///
    /// # Errors
    /// [`Corrupt::Range`].
    pub(crate) fn check_range<V: Into<u64>>(
        place: Place,
        field: &'static str,
        found: V,
        (min, max): (u64, u64),
    ) -> Result<(), Self> {
        let found = found.into();
        if (min..=max).contains(&found) {
            return Ok(());
        }
        Err(Self::Range { place, field, found, min, max })
    }

    /// Nothing if the two are equal.
    ///
    /// # Errors
    /// [`Corrupt::Mismatch`].
    pub(crate) fn check_equal<F: Into<u64>, E: Into<u64>>(
        place: Place,
        field: &'static str,
        found: F,
        expected: E,
    ) -> Result<(), Self> {
        let (found, expected) = (found.into(), expected.into());
        if found == expected {
            return Ok(());
        }
        Err(Self::Mismatch { place, field, found, expected })
    }

    /// Nothing if the checksums are equal.
    ///
    /// # Errors
    /// [`Corrupt::Checksum`].
    pub(crate) fn check_checksum(place: Place, found: u32, computed: u32) -> Result<(), Self> {
        if found == computed { Ok(()) } else { Err(Self::Checksum { place, found, computed }) }
    }
}

impl From<Error> for dovetail_vfs::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NoSpace | Error::LogAtEnd(_) => Self::NoSpace,
            Error::ReadOnly => Self::ReadOnly,
            Error::FileTooBig => Self::FileTooBig,
            Error::NotFound(_) => Self::NotFound,
            Error::NotADirectory(_) => Self::NotADirectory,
            Error::Incompatible(what) => Self::Unsupported(what.to_string()),
            Error::Corrupt(Corrupt::NoNode(_)) => Self::NotFound,
            Error::Io(_) => Self::Io(error.to_string()),
            error => Self::Corrupt(error.to_string()),
        }
    }
}
