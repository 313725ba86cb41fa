//! Findings of a check: one variant for each kind, with the values that disagree.

use dovetail_vfs::check::Name;
use dovetail_vfs::findings;

use crate::error::Corrupt;
use crate::format::{BlockAddr, GroupNo, Ino};

findings! {
    remedy: ();

    /// The superblock cannot be used: nothing else was checked.
    Unusable: Error, { reason: Corrupt } => "nothing more can be checked: {reason}";
    /// The first superblock is damaged; the volume was checked by its backup.
    Backup: Error, { reason: Corrupt } => "{reason}; the backup in group 1 is whole and was used";
    /// A structure that cannot be decoded: a field outside its range, a wrong checksum, a block
    /// outside the volume.
    Damaged: Error, { reason: Corrupt } => "{reason}";
    /// The journal cannot be used, or not to its end.
    Journal: Error, { reason: String } => "{reason}";
    /// The volume was not unmounted; the check saw it as it is after its recovery.
    AwaitsRecovery: Note, { count: u64 } => "the journal holds {count} blocks that the next mount will put in their places";
    /// The kernel has noted an error.
    ErrorsNoted: Warning, { count: u32 } => "kernels have noted {count} errors";
    /// A volume without a journal was not unmounted.
    NotUnmounted: Warning, { found: u16 } => "the volume was not unmounted: s_state is {found:#x}";
    /// Something that this check does not know how to check.
    NotChecked: Note, { what: String } => "not checked: {what}";
    /// More than half of the blocks are reserved.
    Reserved: Error, { found: u64, expected: u64 } => "{found} blocks are reserved, at most {expected} may be";
    /// Blocks belong to two owners.
    BlockShared: Error, { address: BlockAddr, what: String } => "block {address} belongs to {what} and to something else";
    /// The inode that keeps blocks for more descriptors leads elsewhere.
    ResizeInode: Error, { address: BlockAddr, found: u32, expected: u32 } => "the inode for resizing, block {address}: a pointer leads to {found}, not {expected}";
    /// An orphan is listed twice, or is none.
    Orphan: Error, { ino: Ino, what: &'static str } => "inode {ino} is listed as an orphan and {what}";
    /// An inode in use has a mode that no kind of file has.
    Mode: Error, { ino: Ino, found: u16 } => "inode {ino} is of no known kind: its mode is {found:#o}";
    /// An inode in use says when it was deleted.
    DeletionTime: Error, { ino: Ino, found: u32 } => "inode {ino} is in use and was deleted at {found}";
    /// An inode that is not in use does not say when it was deleted.
    NoDeletionTime: Error, { ino: Ino } => "inode {ino} has no links, a mode, and no time of deletion";
    /// A field holds something where nothing is kept.
    Vacant: Error, { ino: Ino, field: &'static str, found: u32 } => "inode {ino}: {field} is {found}, and nothing is kept there";
    /// A flag that does not fit the file or the volume's features.
    Flags: Error, { ino: Ino, what: &'static str } => "inode {ino} has the flag {what}, which cannot be";
    /// The size does not fit the blocks.
    Size: Error, { ino: Ino, found: u64, expected: u64 } => "inode {ino} has {found} bytes, by its blocks {expected}";
    /// A file is larger than its pointers can reach, or its extents.
    SizeLimit: Error, { ino: Ino, found: u64, expected: u64 } => "inode {ino} has {found} bytes, no file of this volume has more than {expected}";
    /// The count of blocks is wrong.
    Sectors: Error, { ino: Ino, found: u64, expected: u64 } => "inode {ino} counts {found} sectors, it has {expected}";
    /// An entry of an extent tree and the node that it leads to begin at other blocks.
    ExtentStart: Error, { ino: Ino, found: u32, expected: u32 } => "inode {ino}: an entry of the extent tree begins at block {found}, the node below at {expected}";
    /// The extents of a leaf reach into those of the next one.
    ExtentEnd: Error, { ino: Ino, found: u64, expected: u64 } => "inode {ino}: the extents of a leaf end at block {found}, the leaf at {expected}";
    /// A link's target is not as long as its size.
    LinkTarget: Error, { ino: Ino } => "the target of link {ino} is not as long as its size";
    /// A block of attributes is used by another number of inodes than it says.
    XattrReferences: Error, { address: BlockAddr, found: u32, expected: u32 } => "attribute block {address} says that {found} inodes use it, {expected} do";
    /// A directory has a hole.
    DirectoryHole: Error, { dir: Ino, block: u32 } => "directory {dir} has no block {block}";
    /// The first entries of a directory are not "." and "..".
    Dots: Error, { dir: Ino, what: &'static str, found: Ino, expected: Ino } => "directory {dir}: \"{what}\" leads to inode {found}, not {expected}";
    /// A directory has an entry "." or ".." in another place.
    DotElsewhere: Error, { dir: Ino, name: Name } => "directory {dir} has a further entry {name}";
    /// Two entries have one name.
    NameTwice: Error, { dir: Ino, name: Name } => "directory {dir} has two entries {name}";
    /// An entry leads to an inode that is not used.
    EntryFree: Error, { dir: Ino, name: Name, ino: Ino } => "directory {dir}: {name} leads to inode {ino}, which is free";
    /// An entry leads to an inode that there cannot be, or that is kept for the format.
    EntryInode: Error, { dir: Ino, name: Name, ino: Ino } => "directory {dir}: {name} leads to inode {ino}, which no file can have";
    /// An entry says that its inode is of another kind.
    EntryType: Error, { dir: Ino, name: Name, found: u8, expected: u8 } => "directory {dir}: {name} is said to be of type {found}, its inode is of {expected}";
    /// A name whose hash is not between those of its block in the index.
    IndexHash: Error, { dir: Ino, block: u32, name: Name } => "directory {dir}: {name} should not be in block {block} by the index";
    /// A block of the directory that the index leads to twice or not at all.
    IndexBlock: Error, { dir: Ino, block: u32, what: &'static str } => "directory {dir}: the index leads to block {block} {what}";
    /// A hash of the index is not larger than the one before.
    IndexOrder: Error, { dir: Ino, block: u32 } => "directory {dir}: the index in block {block} is not in order";
    /// A directory has two parents, or contains itself.
    DirectoryShared: Error, { dir: Ino, ino: Ino } => "directory {ino} is in directory {dir} and in another one";
    /// An inode that nothing leads to.
    Unconnected: Error, { ino: Ino } => "no directory has an entry for inode {ino}";
    /// The count of links is wrong.
    Links: Error, { ino: Ino, found: u32, expected: u64 } => "inode {ino} counts {found} links, it has {expected}";

    /// A bitmap does not have its checksum.
    BitmapChecksum: Error, { group: GroupNo, what: &'static str, found: u32, expected: u32 } => "the {what} bitmap of group {group} should have the checksum {found:#x}, it has {expected:#x}";
    /// Blocks in use are marked as free: the next write may destroy them.
    BlocksFree: Error, { group: GroupNo, first: BlockAddr, count: u64 } => "group {group}: {count} blocks that are in use are marked as free, the first is {first}";
    /// Free blocks are marked as in use.
    BlocksLeaked: Error, { group: GroupNo, first: BlockAddr, count: u64 } => "group {group}: {count} blocks that belong to nothing are marked as in use, the first is {first}";
    /// Inodes in use are marked as free.
    InodesFree: Error, { group: GroupNo, first: Ino, count: u64 } => "group {group}: {count} inodes in use are marked as free, the first is {first}";
    /// Free inodes are marked as in use.
    InodesLeaked: Error, { group: GroupNo, first: Ino, count: u64 } => "group {group}: {count} free inodes are marked as in use, the first is {first}";
    /// Bits of a bitmap beyond the group's end are not set.
    Padding: Error, { group: GroupNo, what: &'static str } => "the {what} bitmap of group {group} is not filled up behind its end";
    /// A group says that what is in use was never written.
    Uninitialised: Error, { group: GroupNo, what: &'static str } => "group {group} says that its {what} was never written, and it is in use";
    /// A count of a group's descriptor is wrong.
    GroupCount: Error, { group: GroupNo, field: &'static str, found: u32, expected: u32 } => "group {group}: {field} is {found}, not {expected}";
    /// A pointer leads to a place of the drive at which the drive has nothing: the volume lies on
    /// another drive, or the block is lost.
    PlaceMissing: Error, { address: BlockAddr } => "block {address} is a place of the drive, which has nothing there";
    /// The drive holds blocks by places that nothing leads to, as a power cut leaves them. The next
    /// mount for writing gives them back.
    PlacesLeaked: Warning, { first: BlockAddr, count: u64 } => "the drive holds {count} blocks that no pointer leads to, the first at {first}";
    /// A count of the superblock is wrong. Kernels compute it from the groups' counts, and write it
    /// when they unmount.
    Total: Warning, { field: &'static str, found: u64, expected: u64 } => "the superblock's {field} is {found}, not {expected}";
}
