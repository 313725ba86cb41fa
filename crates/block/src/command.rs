//! The commands that a device performs.

use std::sync::Arc;

use crate::addr::{BLOCK_SIZE, BlockRange, Lba, SectorRange};
use crate::content::{Content, Pattern};
use crate::device::DeviceError;
use crate::devirtualize::Devirtualize;
use crate::placement::Lifetime;
use crate::query::Query;
use crate::remap::{RemapPair, RemapWhen};
use crate::zone::ZoneAction;

/// The number of a write stream, or of a reclaim unit handle: blocks that the writer expects to die
/// together. Devices with fewer streams take the number modulo theirs; one with reclaim units takes
/// the first handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u8);

/// The inode number that a block belongs to, as the file system tells it; 0 is "not told".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode(pub u32);

/// Hints of the writer about the blocks that it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Stream to place them in.
    pub stream: StreamId,
    /// Their expected lifetime.
    pub lifetime: Lifetime,
    /// Inode that they belong to.
    pub inode: Inode,
}

/// Content of a write.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Block `i` of the write holds pattern [`Pattern::nth`]`(i)`.
    Patterns(Pattern),
    /// One content for each block.
    Blocks(&'a [Content]),
    /// The bytes of all blocks, one after the other; whole blocks.
    Bytes(&'a [u8]),
}

impl<'a> Data<'a> {
    /// Number of blocks given; `None` for patterns, of which there are as many as the range has
    /// blocks.
    pub const fn blocks(&self) -> Option<u64> {
        match self {
            Self::Patterns(_) => None,
            Self::Blocks(blocks) => Some(blocks.len() as u64),
            Self::Bytes(bytes) => Some(bytes.len() as u64 / BLOCK_SIZE),
        }
    }

    /// The content of block `i` of the write.
    pub fn block(&self, i: u64) -> Content {
        match self {
            Self::Patterns(first) => Content::Pattern(first.nth(i)),
            Self::Blocks(blocks) => blocks[i as usize].clone(),
            Self::Bytes(bytes) => Content::Bytes(Arc::new(bytes.as_chunks().0[i as usize])),
        }
    }

    /// The blocks from `from` on, `count` of them.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn part(self, from: u64, count: u64) -> Data<'a> {
        let (first, end) = (from as usize, (from + count) as usize);
        match self {
            Self::Patterns(pattern) => Self::Patterns(pattern.nth(from)),
            Self::Blocks(blocks) => Self::Blocks(&blocks[first..end]),
            Self::Bytes(bytes) => {
                Self::Bytes(&bytes[first * BLOCK_SIZE as usize..end * BLOCK_SIZE as usize])
            }
        }
    }
}

/// One command to a device. Commands that only some devices have come with a capability of their
/// own (see [`crate::Capabilities`]); a device answers one that it lacks with
/// [`crate::DeviceError::Unsupported`].
#[derive(Debug)]
pub enum Command<'a> {
    /// Reads a range of blocks.
    Read {
        /// Blocks to read.
        range: BlockRange,
        /// Destination of the content: one entry a block; `None` when only the time counts.
        into: Option<&'a mut [Content]>,
    },
    /// Writes a range of blocks.
    Write {
        /// Blocks to write.
        range: BlockRange,
        /// Content to write.
        data: Data<'a>,
        /// Hints of the writer.
        hints: Hints,
        /// Force unit access: complete only when these blocks survive a power cut.
        fua: bool,
    },
    /// Completes when everything acknowledged before survives a power cut.
    Flush,
    /// The content of these ranges is no longer needed; blocks that lie in one as a whole read as
    /// empty from now on, parts of blocks keep what they hold.
    Discard {
        /// Any number of ranges, at any alignment.
        ranges: &'a [SectorRange],
    },
    /// Moves blocks to other addresses without writing them again: wholly or not at all, and
    /// durable when it completes, with the content that it moves. Sources and destinations are
    /// distinct. See [`crate::RemapLimits`].
    Remap {
        /// Destination and source of each block.
        pairs: &'a [RemapPair],
        /// Now, or as part of a batch.
        when: RemapWhen,
    },
    /// Lets blocks be reached by their device addresses, and drops their mappings.
    Devirtualize(Devirtualize<'a>),
    /// Writes blocks at the write pointer of a zone; the answer is the address of the first
    /// ([`crate::Answer::Addresses`]).
    Append {
        /// The first block of the zone.
        zone: Lba,
        /// Number of blocks.
        blocks: u64,
        /// Content to write.
        data: Data<'a>,
        /// Hints of the writer.
        hints: Hints,
        /// Force unit access: complete only when these blocks survive a power cut.
        fua: bool,
    },
    /// Changes the state of one zone, or of all for which the action makes sense. A reset or finish
    /// is durable when it completes.
    Zone {
        /// The first block of the zone; `None` for all.
        start: Option<Lba>,
        /// The change.
        action: ZoneAction,
    },
    /// Lets these handles go on with reclaim units that are empty; see [`crate::ReclaimUnits`].
    UpdateHandles(&'a [StreamId]),
    /// Asks without changing anything; takes no time.
    Query(Query),
}

impl<'a> Command<'a> {
    /// An ordinary write: without hints, volatile until a flush.
    pub fn write(range: BlockRange, data: Data<'a>) -> Self {
        Self::Write { range, data, hints: Hints::default(), fua: false }
    }

    /// The refusal of a device that lacks the command.
    pub const fn unsupported(&self) -> DeviceError {
        DeviceError::Unsupported(match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Flush => "flush",
            Self::Discard { .. } => "discard",
            Self::Remap { .. } => "remap",
            Self::Devirtualize(_) => "devirtualize",
            Self::Append { .. } => "append",
            Self::Zone { .. } => "zone",
            Self::UpdateHandles(_) => "update-handles",
            Self::Query(query) => return query.unsupported(),
        })
    }
}
