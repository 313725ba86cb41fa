//! Findings of a check: one variant for each kind, with the values that disagree.

use std::fmt;

use dovetail_vfs::check::Name;
use dovetail_vfs::findings;

use crate::error::Corrupt;
use crate::format::{BlockAddr, CheckpointFlags, Nid, SegNo};

/// Action of [`super::repair()`] on a kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Writes the right value, which follows from the rest of the volume.
    Repaired,
    /// Several states are possible; choosing one would be a guess.
    Guess,
    /// Nothing is to be done.
    Nothing,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repaired => "yes",
            Self::Guess => "no: would be a guess",
            Self::Nothing => "nothing to do",
        })
    }
}

findings! {
    remedy: Remedy;

    /// Neither copy of the superblock, or neither checkpoint pack, can be used: nothing else was
    /// checked.
    Unusable: Error, Guess, { reason: Corrupt } => "nothing more can be checked: {reason}";
    /// One copy of the superblock cannot be used; the other one is.
    SuperblockCopy: Error, Repaired, { copy: u32, reason: String } => "superblock copy {copy} cannot be used: {reason}";
    /// Both copies of the superblock can be used, and they differ.
    SuperblocksDiffer: Warning, Repaired, { offset: usize } => "the two superblocks differ from byte {offset} on";
    /// The pack that is not in use is incomplete, as a power cut while it is written leaves it.
    CheckpointTorn: Note, Nothing, { pack: u32, reason: String } => "checkpoint pack {pack} is incomplete: {reason}";
    /// A pack has a good checksum and contradicts the volume or itself.
    CheckpointInvalid: Error, Repaired, { pack: u32, reason: String } => "checkpoint pack {pack} cannot be used: {reason}";
    /// The size of the pack is not that of its parts.
    CheckpointSize: Error, Repaired, { found: u32, expected: u32 } => "the checkpoint pack claims {found} blocks, its parts have {expected}";
    /// A constant of the checkpoint (reserves, user blocks) is outside what a kernel accepts.
    CheckpointField: Error, Guess, { field: &'static str, found: u64, min: u64, max: u64 } => "the checkpoint's {field} is {found}, allowed is {min} to {max}";
    /// The checkpoint has flags that no known kernel sets.
    CheckpointFlag: Warning, Repaired, { found: CheckpointFlags } => "the checkpoint has unknown flags: {found}";
    /// The kernel has noted an error, or wants a check.
    CheckWanted: Note, Nothing, { found: CheckpointFlags } => "the volume is marked to be checked: {found}";
    /// The orphan flag and the orphan blocks contradict each other.
    OrphanFlag: Error, Repaired, { found: bool, count: u32 } => "the checkpoint's orphan flag is {found}, and it has {count} orphan blocks";
    /// A field of an orphan block is wrong.
    OrphanBlock: Error, Repaired, { block: u32, field: &'static str, found: u32, expected: u32 } => "orphan block {block}: {field} is {found}, not {expected}";
    /// An orphan (an inode without a name that is still to be freed) has a link count other than 0.
    OrphanLinks: Error, Guess, { ino: Nid, found: u32 } => "inode {ino} is listed as an orphan and has {found} links";
    /// An orphan is listed twice.
    OrphanTwice: Error, Repaired, { ino: Nid } => "inode {ino} is listed twice as an orphan";
    /// An orphan has a name.
    OrphanNamed: Error, Guess, { ino: Nid } => "inode {ino} is listed as an orphan and has a name";
    /// An orphan does not exist.
    OrphanMissing: Error, Repaired, { ino: Nid } => "inode {ino} is listed as an orphan and does not exist";
    /// A log writes to no segment.
    LogSegment: Error, Guess, { log: u8, found: SegNo } => "log {log} writes to segment {found}, which does not exist";
    /// Two logs write to one segment.
    LogsCollide: Error, Guess, { log: u8, other: u8, segno: SegNo } => "logs {log} and {other} both write to segment {segno}";
    /// A log neither appends nor fills holes.
    LogAllocation: Error, Guess, { log: u8, found: u8 } => "log {log} has allocation type {found}, allowed are 0 and 1";
    /// The segment of a log is marked as that of another one.
    LogType: Error, Repaired, { log: u8, segno: SegNo, found: u8 } => "segment {segno} is that of log {log} and is marked as that of log {found}";
    /// The next block of a log is in use.
    LogBlockUsed: Error, Guess, { log: u8, segno: SegNo, offset: u32 } => "log {log} would write next to block {offset} of segment {segno}, which is in use";
    /// A log that appends has blocks in use behind its position.
    LogTailUsed: Error, Guess, { log: u8, segno: SegNo, offset: u32 } => "log {log} appends to segment {segno}, and block {offset} behind its position is in use";
    /// A journal claims more entries than it has room for.
    JournalCount: Error, Guess, { what: &'static str, found: u32, max: u32 } => "the {what} journal claims {found} entries and has room for {max}";
    /// A journal has an entry for what does not exist.
    JournalEntry: Error, Repaired, { what: &'static str, found: u32, max: u32 } => "the {what} journal has an entry for {found}, and the last is {max}";
    /// The count of blocks is wrong.
    ValidBlocks: Error, Repaired, { found: u64, expected: u64 } => "the checkpoint counts {found} blocks in use, there are {expected}";
    /// The count of nodes is wrong.
    ValidNodes: Error, Repaired, { found: u32, expected: u32 } => "the checkpoint counts {found} nodes, there are {expected}";
    /// The count of inodes is wrong.
    ValidInodes: Error, Repaired, { found: u32, expected: u32 } => "the checkpoint counts {found} inodes, there are {expected}";
    /// The count of free segments is wrong.
    FreeSegments: Error, Repaired, { found: u32, expected: u32 } => "the checkpoint counts {found} free segments, there are {expected}";
    /// A log of a zoned volume is to write a block that is not at the write pointer of its zone, as
    /// after a power cut: the next mount lets the log go on in another zone.
    LogPointer: Warning, Nothing, { log: u8, segno: SegNo, offset: u32, zone: u32, written: u64 } => "log {log} is to write block {offset} of segment {segno} next, and of its zone, section {zone}, {written} blocks are written";
    /// A zone holds blocks that belong to nothing, and no log writes there: it was not reset.
    ZoneLeft: Warning, Repaired, { zone: u32, written: u64 } => "section {zone} holds nothing, and {written} blocks of its zone are written";
    /// Blocks in use lie beyond the write pointer of their zone: the device has lost them.
    BeyondPointer: Error, Guess, { zone: u32, offset: u64, written: u64 } => "section {zone} has block {offset} in use, and only {written} blocks of its zone are written";
    /// The search for a free nid begins at a number that is no nid.
    NextFreeNid: Warning, Repaired, { found: Nid, max: u32 } => "the search for a free nid begins at {found}, and the last is {max}";
    /// The maps of full and empty NAT blocks are marked as valid and are wrong: a kernel would hand
    /// out nids in use.
    NatBits: Warning, Repaired, { block: u32 } => "the maps of full and empty NAT blocks are wrong for block {block}";
    /// Files were fsynced after the checkpoint; the next mount recovers them.
    AwaitsRecovery: Note, Nothing, { count: u64 } => "{count} fsynced files await recovery by the next mount";
    /// A pointer of IPLFS leads beyond the position of the log: there is nothing yet, and the log
    /// will write something else there.
    LogBeyond: Error, Guess, { address: BlockAddr, nid: Nid, log: u8 } => "node {nid} leads to block {address}, where log {log} has not written yet";
    /// A pointer of IPLFS leads to the area of a log that writes other things: to data among nodes,
    /// or the other way round.
    LogClass: Error, Guess, { address: BlockAddr, nid: Nid, log: u8, what: &'static str } => "node {nid} has {what} at block {address}, in the area of log {log}, which has none";
    /// The discard log (IPLFS) cannot be read.
    DiscardLog: Error, Guess, { reason: Corrupt } => "the discard log cannot be used: {reason}";
    /// The discard log (IPLFS) names blocks that no log has written: outside the areas of the logs,
    /// or beyond their positions.
    DiscardOutside: Error, Guess, { first: BlockAddr, blocks: u64 } => "the discard log names {blocks} blocks from {first} on, not all of which a log has written";
    /// The discard log (IPLFS) names blocks that belong to something: the next mount would destroy
    /// them.
    DiscardLive: Error, Guess, { first: BlockAddr, blocks: u64 } => "the discard log names {blocks} blocks that belong to something, the first is {first}";
    /// The drive holds blocks of an IPLFS volume that belong to nothing and wait for no discard:
    /// they take room for ever.
    DeviceLeak: Error, Repaired, { first: BlockAddr, blocks: u64 } => "the drive holds {blocks} blocks from {first} on that belong to nothing";
    /// The drive does not hold a block that belongs to something: its content is lost.
    DeviceLost: Error, Guess, { address: BlockAddr } => "block {address} belongs to something, and the drive does not hold it";
    /// Something that this check does not know how to check.
    NotChecked: Note, Nothing, { what: &'static str } => "not checked: {what}";

    /// A segment's count of blocks is not that of its map.
    SitCount: Error, Repaired, { segno: SegNo, found: u32, expected: u32 } => "segment {segno} counts {found} blocks in use, its map has {expected}";
    /// A segment is marked as that of a log that does not exist.
    SitType: Error, Repaired, { segno: SegNo, found: u8 } => "segment {segno} is marked as that of log {found}, the last is 5";
    /// An entry below a newer one of the journal contradicts itself: Linux does not mount it.
    SitOverridden: Error, Repaired, { segno: SegNo } => "segment {segno}: its entry in the table contradicts itself; the journal has a newer one, but kernels check both";
    /// A segment with nodes is marked as one with data, or the other way round.
    SitClass: Error, Repaired, { segno: SegNo, found: u8, what: &'static str } => "segment {segno} is marked as that of log {found} and holds {what}";
    /// Blocks that belong to a file are marked as free: the next write may destroy them.
    BlocksFree: Error, Repaired, { segno: SegNo, first: BlockAddr, count: u32 } => "segment {segno}: {count} blocks that belong to files are marked as free, the first is {first}";
    /// Blocks that belong to nothing are marked as in use.
    BlocksLeaked: Error, Repaired, { segno: SegNo, first: BlockAddr, count: u32 } => "segment {segno}: {count} blocks that belong to nothing are marked as in use, the first is {first}";
    /// A block belongs to two owners.
    BlockShared: Error, Guess, { address: BlockAddr, nid: Nid } => "block {address} belongs to node {nid} and to something else";

    /// Nid 0, which means "none", has an entry in the NAT.
    NatZero: Error, Repaired, { address: BlockAddr } => "nid 0 has a NAT entry, block {address}";
    /// Nids 1 and 2 stand for the metadata and have fixed entries.
    NatReserved: Error, Repaired, { nid: Nid, address: BlockAddr } => "the NAT entry of the reserved nid {nid} points to block {address} instead of 1";
    /// A NAT entry names no inode that its node belongs to.
    NatNoInode: Error, Repaired, { nid: Nid } => "the NAT entry of node {nid} names no inode";
    /// A NAT entry names another inode than the one whose pointers lead to the node.
    NatInode: Error, Repaired, { nid: Nid, found: Nid, expected: Nid } => "the NAT says that node {nid} belongs to inode {found}, not {expected}";
    /// A NAT entry leads outside the main area.
    NatAddress: Error, Guess, { nid: Nid, address: BlockAddr } => "the NAT entry of node {nid} points to block {address}, outside the main area";
    /// Something points to a nid that there cannot be.
    NidRange: Error, Guess, { ino: Nid, field: &'static str, found: Nid } => "inode {ino}: {field} leads to node {found}, which cannot be";
    /// Something points to a node that does not exist.
    NodeMissing: Error, Guess, { nid: Nid, ino: Nid } => "inode {ino} needs node {nid}, which does not exist";
    /// Two pointers lead to one node.
    NodeShared: Error, Guess, { nid: Nid, ino: Nid } => "inode {ino} leads to node {nid}, which is already part of something";
    /// Nothing leads to a node.
    NodeUnreachable: Error, Guess, { nid: Nid, ino: Nid } => "nothing leads to node {nid} of inode {ino}";
    /// Nothing leads to an inode: a file or directory without a name that is no orphan.
    InodeUnreachable: Error, Guess, { ino: Nid, name: Name } => "no directory has an entry for inode {ino}, once called {name}";
    /// The block that the NAT names for a node is that of another one.
    FooterNid: Error, Guess, { nid: Nid, found: Nid, address: BlockAddr } => "block {address} should be node {nid} and says that it is node {found}";
    /// A node says that it belongs to another inode.
    FooterInode: Error, Repaired, { nid: Nid, found: Nid, expected: Nid } => "node {nid} says that it belongs to inode {found}, not {expected}";
    /// A node says that it stands at another place in its file.
    FooterOffset: Error, Repaired, { nid: Nid, found: u32, expected: u32 } => "node {nid} says that it is number {found} of its file's nodes, it is {expected}";
    /// The cold bit of a node does not fit what it belongs to.
    FooterCold: Warning, Repaired, { nid: Nid, found: bool } => "the cold bit of node {nid} is {found}; it is set for all but directories";
    /// A node names a place outside the main area as the next of its log.
    FooterNext: Warning, Guess, { nid: Nid, found: BlockAddr } => "node {nid} names block {found} as the next of its log";
    /// A node claims to be written after a checkpoint that is yet to come.
    FooterVersion: Warning, Guess, { nid: Nid, found: u32, max: u32 } => "node {nid} claims to be written after checkpoint {found}, the last is {max}";
    /// The summary of a segment says that it holds data, and it holds nodes, or the other way
    /// round.
    SummaryType: Error, Repaired, { segno: SegNo, found: u8, expected: u8 } => "the summary of segment {segno} has type {found}, its blocks {expected} (0: data, 1: nodes)";
    /// The summary of a node's block names another node.
    SummaryNode: Error, Repaired, { address: BlockAddr, nid: Nid, found: Nid } => "the summary of block {address} names node {found}, it is {nid}";
    /// The summary of a data block names another owner.
    SummaryData: Error, Repaired, { address: BlockAddr, nid: Nid, version: u8, index: u32, found_nid: Nid, found_version: u8, found_index: u32 } => "the summary of block {address} names pointer {found_index} of node {found_nid} (version {found_version}), it is pointer {index} of node {nid} (version {version})";

    /// The checksum of an inode does not fit its bytes.
    InodeChecksum: Error, Guess, { ino: Nid, found: u32, expected: u32 } => "inode {ino} has checksum {found:#010x}, its bytes give {expected:#010x}";
    /// An inode is of no type that there is.
    InodeMode: Error, Guess, { ino: Nid, found: u16 } => "inode {ino} has mode {found:#o}, which is no type of file";
    /// The root is no directory.
    RootType: Error, Guess, { found: u16 } => "the root has mode {found:#o}, which is no directory";
    /// An inode counts other blocks than it has.
    InodeBlocks: Error, Repaired, { ino: Nid, found: u64, expected: u64 } => "inode {ino} counts {found} blocks, it has {expected}";
    /// An inode counts blocks, and its type or its inline flags say that it has none: one of them is
    /// damaged, and a type taken at its word would give the blocks up.
    BlocksHidden: Error, Guess, { ino: Nid, found: u64, expected: u64 } => "inode {ino} counts {found} blocks, by its type and inline flags it has {expected}";
    /// A size that no file can have.
    InodeSize: Error, Guess, { ino: Nid, found: u64, max: u64 } => "inode {ino} has {found} bytes, at most {max} are possible";
    /// A symbolic link without a target.
    SymlinkSize: Error, Guess, { ino: Nid, found: u64 } => "the symbolic link {ino} has a target of {found} bytes";
    /// Blocks behind the end of a file, without the mark that fallocate leaves.
    BlocksBeyondSize: Warning, Guess, { ino: Nid, block: u64, size: u64 } => "inode {ino} has {size} bytes and a block {block}";
    /// Blocks behind the end of a file, kept there by fallocate.
    BlocksKept: Note, Nothing, { ino: Nid, block: u64, size: u64 } => "inode {ino} has {size} bytes and keeps blocks up to {block}, by fallocate";
    /// A pointer leads outside the main area.
    DataAddress: Error, Guess, { ino: Nid, block: u64, address: BlockAddr } => "block {block} of inode {ino} lies at {address}, outside the main area";
    /// The mark of a compressed cluster stands where none can begin.
    ClusterMark: Error, Guess, { ino: Nid, block: u64 } => "block {block} of inode {ino} has the mark of a compressed cluster";
    /// The parameters of compression are wrong, or the volume has none.
    Compression: Error, Guess, { ino: Nid, field: &'static str, found: u32 } => "inode {ino} is compressed, and its {field} is {found}";
    /// The extent does not describe the blocks of the file. The kernel trusts it: wrong data is
    /// read.
    Extent: Error, Repaired, { ino: Nid, first: u32, address: BlockAddr, count: u32 } => "the extent of inode {ino} ({count} blocks from {first} on at {address}) is not what its pointers say";
    /// An inode has extra attributes, and the volume has not.
    ExtraFlag: Error, Guess, { ino: Nid } => "inode {ino} has extra attributes, which the volume has not";
    /// The size of the extra attributes is impossible.
    ExtraSize: Error, Guess, { ino: Nid, found: u32, max: u32 } => "inode {ino} has {found} bytes of extra attributes, allowed are multiples of 4 up to {max}";
    /// The size of the inline xattr area is impossible.
    InlineXattrSize: Error, Guess, { ino: Nid, found: u32, max: u32 } => "inode {ino} has {found} words for inline xattrs, at most {max} are possible";
    /// Inline content where there can be none.
    InlineFlags: Error, Guess, { ino: Nid, found: u8 } => "inode {ino} has inline flags {found:#04x}, which do not fit its type";
    /// The reserved word before inline content is not 0.
    InlineReserved: Error, Repaired, { ino: Nid, found: u32 } => "the reserved word before the inline content of inode {ino} is {found:#x}";
    /// More inline content than there is room for.
    InlineSize: Error, Guess, { ino: Nid, found: u64, max: u64 } => "inode {ino} has {found} bytes inline and room for {max}";
    /// Inline content without the flag that there is some.
    InlineUnmarked: Error, Guess, { ino: Nid } => "inode {ino} holds inline content and is marked as empty";
    /// An inode with inline content leads to nodes as well.
    InlineNodes: Error, Guess, { ino: Nid, found: Nid } => "inode {ino} holds its content inline and leads to node {found}";
    /// The length of an inode's name is impossible.
    InodeNameLength: Error, Guess, { ino: Nid, found: u32 } => "inode {ino} has a name of {found} bytes, at most 255 are possible";
    /// Case folding where there is none.
    Casefold: Error, Guess, { ino: Nid } => "inode {ino} is marked for case folding, which it cannot have";
    /// The nanoseconds of a time are a second or more.
    Nanoseconds: Warning, Guess, { ino: Nid, field: &'static str, found: u32 } => "inode {ino}: {field} is {found}, a second or more";
    /// A file counts failed cleanings, and is not pinned.
    GcFailures: Warning, Repaired, { ino: Nid, found: u32 } => "inode {ino} is not pinned and counts {found} failed cleanings";
    /// A file has more or fewer names than it counts.
    Links: Error, Repaired, { ino: Nid, found: u32, expected: u32 } => "inode {ino} counts {found} links, it has {expected} names";
    /// A directory's count of links is not 2 and one for each subdirectory.
    DirectoryLinks: Error, Repaired, { ino: Nid, found: u32, expected: u32 } => "directory {ino} counts {found} links, 2 and its subdirectories are {expected}";
    /// An inode names another directory than the one with its only name.
    ParentInode: Warning, Guess, { ino: Nid, found: Nid, expected: Nid } => "inode {ino} names directory {found} as its parent, its name stands in {expected}";
    /// An inode is called otherwise than its only name.
    ParentName: Warning, Guess, { ino: Nid, name: Name, expected: Name } => "inode {ino} is called {name} and listed as {expected}";
    /// The list of extended attributes is damaged.
    Xattrs: Error, Guess, { ino: Nid, reason: Corrupt } => "inode {ino}: {reason}";
    /// An extended attribute of a name space that no known kernel has.
    XattrIndex: Warning, Guess, { ino: Nid, found: u8 } => "inode {ino} has an extended attribute of name space {found}, which is not known";

    /// A directory has not exactly one "." and one "..".
    Dots: Error, Guess, { ino: Nid, found: u32 } => "directory {ino} has {found} entries called \".\" or \"..\" instead of 2";
    /// "." leads to another inode.
    DotInode: Error, Guess, { ino: Nid, found: Nid } => "\".\" of directory {ino} leads to inode {found}";
    /// ".." and the inode disagree about the parent.
    DotDotInode: Error, Guess, { ino: Nid, found: Nid, expected: Nid } => "\"..\" of directory {ino} leads to inode {found}, its inode says {expected}";
    /// A directory names another parent than the one that lists it.
    DirectoryParent: Error, Guess, { ino: Nid, found: Nid, expected: Nid } => "directory {ino} names inode {found} as its parent and is listed in {expected}";
    /// A directory has two names.
    DirectoryTwice: Error, Guess, { ino: Nid, dir: Nid, name: Name } => "directory {ino} is listed a second time, as {name} in directory {dir}";
    /// Entries lie in levels that a lookup does not reach.
    DirectoryDepth: Error, Repaired, { ino: Nid, found: u32, expected: u32 } => "directory {ino} has {found} levels, its entries reach level {expected}";
    /// A depth that no directory can have.
    DepthRange: Error, Guess, { ino: Nid, found: u32, max: u32 } => "directory {ino} has {found} levels, at most {max} are possible";
    /// Entries lie behind the directory's end, where a listing does not reach.
    DirectorySize: Error, Repaired, { ino: Nid, found: u64, expected: u64 } => "directory {ino} has {found} bytes, its blocks reach to {expected}";
    /// An entry leads to a number that no inode can have.
    DentryInode: Error, Repaired, { dir: Nid, name: Name, ino: Nid } => "{name} in directory {dir} leads to inode {ino}, which cannot be";
    /// An entry leads to nothing.
    DentryDangling: Error, Repaired, { dir: Nid, name: Name, ino: Nid } => "{name} in directory {dir} leads to inode {ino}, which does not exist";
    /// An entry leads to a node that is no inode.
    DentryNode: Error, Guess, { dir: Nid, name: Name, nid: Nid } => "{name} in directory {dir} leads to node {nid}, which is no inode";
    /// An entry says another type than the inode.
    DentryType: Error, Repaired, { dir: Nid, name: Name, found: u8, expected: u8 } => "{name} in directory {dir} has type {found}, its inode {expected}";
    /// An entry's name has an impossible length.
    DentryLength: Error, Guess, { dir: Nid, block: u64, slot: usize, found: u16 } => "entry {slot} in block {block} of directory {dir} has a name of {found} bytes";
    /// A name that no file may have.
    DentryName: Error, Guess, { dir: Nid, name: Name } => "an entry of directory {dir} is called {name}, which no file may be";
    /// A long name whose later slots are marked as free: the next name would overwrite it.
    DentrySlots: Error, Repaired, { dir: Nid, name: Name, slot: usize } => "slot {slot} of {name} in directory {dir} is marked as free";
    /// A later slot of a long name claims to be an entry of its own.
    DentryTail: Warning, Repaired, { dir: Nid, name: Name, slot: usize, found: u16 } => "slot {slot} of {name} in directory {dir} has a name length of its own, {found}";
    /// An entry lies where a lookup does not search.
    DentryBucket: Error, Guess, { dir: Nid, name: Name, block: u64 } => "{name} lies in block {block} of directory {dir}, where its hash does not lead";
    /// An entry's hash is not that of its name: a lookup does not find it.
    DentryHash: Error, Repaired, { dir: Nid, name: Name, found: u32, expected: u32 } => "{name} in directory {dir} has hash {found:#010x} instead of {expected:#010x}";
    /// Two entries of one name.
    DuplicateName: Error, Guess, { dir: Nid, name: Name } => "directory {dir} has two entries called {name}";
}
