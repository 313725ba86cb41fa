//! Extent trees: runs of blocks, in the inode and in blocks below it.

use super::{BlockAddr, Ino, Superblock, crc32c};
use crate::error::{Corrupt, Damage, Place};

/// The magic number of each node.
pub const EXTENT_MAGIC: u16 = 0xF30A;
/// The longest extent that was written, in blocks; longer lengths mean one that was not.
pub const MAX_WRITTEN: u16 = 0x8000;
/// The longest extent that was reserved and not written.
pub const MAX_UNWRITTEN: u16 = MAX_WRITTEN - 1;
/// Levels of a tree at most (the kernel's documentation, "Extent Tree").
pub const MAX_EXTENT_DEPTH: u16 = 5;
/// Bytes of the header, and of each entry.
const ENTRY: usize = 12;

/// A run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first block of the file.
    pub block: u32,
    /// Number of blocks: 1 to [`MAX_WRITTEN`], or to [`MAX_UNWRITTEN`] if it was not written.
    pub len: u16,
    /// Address of the first of them.
    pub start: BlockAddr,
    /// It was written; otherwise it reads as zeros.
    pub written: bool,
}

impl Extent {
    /// The first block of the file after it.
    pub const fn end(&self) -> u64 {
        self.block as u64 + self.len as u64
    }

    /// `next` continues it, and both are no longer than one may be.
    pub fn takes(&self, next: &Self) -> bool {
        let most = if self.written { MAX_WRITTEN } else { MAX_UNWRITTEN };
        self.end() == u64::from(next.block)
            && self.start.0 + u64::from(self.len) == next.start.0
            && self.written == next.written
            && u32::from(self.len) + u32::from(next.len) <= most.into()
    }
}

/// An entry that leads to a node below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentIndex {
    /// The first block of the file that the node below may speak of.
    pub block: u32,
    /// The node.
    pub node: BlockAddr,
}

/// The entries of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtentEntries {
    /// Runs of blocks, in order; of a node of depth 0.
    Leaf(Vec<Extent>),
    /// Nodes below, in order.
    Index(Vec<ExtentIndex>),
}

/// A node of the tree: the root in an inode's `i_block`, or a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentNode {
    /// Levels below: 0 for a leaf.
    pub depth: u16,
    /// Entries that it has room for.
    pub max: u16,
    /// Counts nothing today.
    pub generation: u32,
    /// The entries.
    pub entries: ExtentEntries,
}

impl ExtentNode {
    /// A leaf without entries that fits in `bytes` bytes: 60 for a root.
    pub fn new_leaf(bytes: usize) -> Self {
        let max = extents_in(bytes);
        Self { depth: 0, max, generation: 0, entries: ExtentEntries::Leaf(Vec::new()) }
    }

    /// Decodes the node in `bytes`, of the tree of inode `ino`; `at` is its block, 0 for the root.
    /// The checksum is not looked at.
    ///
    /// # Errors
    /// A wrong magic number, more entries than room, more room than bytes, a depth beyond 5;
    /// entries that are not in order or overlap; lengths of 0.
    pub fn parse(bytes: &[u8], ino: Ino, at: BlockAddr) -> Result<Self, Corrupt> {
        let place = Place::Extents(ino, at);
        let header = bytes.first_chunk::<ENTRY>().unwrap_or(&[0; ENTRY]);
        let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        Corrupt::check_equal(place, "eh_magic", word(0), EXTENT_MAGIC)?;
        let (count, max, depth) = (word(2), word(4), word(6));
        Corrupt::check_range(place, "eh_max", max, (1, extents_in(bytes.len()).into()))?;
        Corrupt::check_range(place, "eh_entries", count, (0, max.into()))?;
        Corrupt::check_range(place, "eh_depth", depth, (0, MAX_EXTENT_DEPTH.into()))?;
        let generation = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let raw = bytes[ENTRY..].as_chunks::<ENTRY>().0.iter().take(count.into());
        let entries = if depth == 0 {
            ExtentEntries::Leaf(raw.map(decode_extent).collect())
        } else {
            Corrupt::check_range(place, "eh_entries", count, (1, max.into()))?;
            ExtentEntries::Index(raw.map(decode_index).collect())
        };
        entries.check(place)?;
        Ok(Self { depth, max, generation, entries })
    }

    /// Writes header and entries into `bytes`; what lies behind them stays, but a checksum must be
    /// renewed ([`seal_extent_block`]). Entries beyond the room are dropped.
    pub fn encode(&self, bytes: &mut [u8]) {
        let (header, rest) = bytes.split_at_mut(ENTRY);
        header[0..2].copy_from_slice(&EXTENT_MAGIC.to_le_bytes());
        header[2..4].copy_from_slice(&(self.len() as u16).to_le_bytes());
        header[4..6].copy_from_slice(&self.max.to_le_bytes());
        header[6..8].copy_from_slice(&self.depth.to_le_bytes());
        header[8..12].copy_from_slice(&self.generation.to_le_bytes());
        let slots = rest.as_chunks_mut::<ENTRY>().0.iter_mut();
        match &self.entries {
            ExtentEntries::Leaf(list) => {
                slots.zip(list).for_each(|(slot, extent)| *slot = encode_extent(extent));
            }
            ExtentEntries::Index(list) => {
                slots.zip(list).for_each(|(slot, index)| put_index(slot, index));
            }
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match &self.entries {
            ExtentEntries::Leaf(list) => list.len(),
            ExtentEntries::Index(list) => list.len(),
        }
    }

    /// It has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ExtentEntries {
    fn check(&self, place: Place) -> Result<(), Corrupt> {
        let mut end = 0;
        match self {
            Self::Leaf(list) => list.iter().try_for_each(|extent| {
                let most = (1 << 32) - u64::from(extent.block);
                Corrupt::check_range(place, "ee_len", extent.len, (1, most))?;
                check_order(place, extent.block, &mut end, extent.end())
            }),
            Self::Index(list) => list.iter().try_for_each(|index| {
                check_order(place, index.block, &mut end, u64::from(index.block) + 1)
            }),
        }
    }
}

fn check_order(place: Place, block: u32, end: &mut u64, new_end: u64) -> Result<(), Corrupt> {
    if u64::from(block) < *end {
        return Err(Damage::Order { place, block, end: *end }.into());
    }
    *end = new_end;
    Ok(())
}

/// Entries that a node of `bytes` bytes has room for.
pub const fn extents_in(bytes: usize) -> u16 {
    (bytes.saturating_sub(ENTRY) / ENTRY) as u16
}

fn decode_extent(bytes: &[u8; ENTRY]) -> Extent {
    let [b0, b1, b2, b3, l0, l1, h0, h1, s0, s1, s2, s3] = *bytes;
    let len = u16::from_le_bytes([l0, l1]);
    let written = len <= MAX_WRITTEN;
    Extent {
        block: u32::from_le_bytes([b0, b1, b2, b3]),
        len: if written { len } else { len - MAX_WRITTEN },
        start: BlockAddr(u64::from_le_bytes([s0, s1, s2, s3, h0, h1, 0, 0])),
        written,
    }
}

fn encode_extent(extent: &Extent) -> [u8; ENTRY] {
    let [b0, b1, b2, b3] = extent.block.to_le_bytes();
    let [l0, l1] =
        (if extent.written { extent.len } else { extent.len + MAX_WRITTEN }).to_le_bytes();
    let [s0, s1, s2, s3, h0, h1, ..] = extent.start.0.to_le_bytes();
    [b0, b1, b2, b3, l0, l1, h0, h1, s0, s1, s2, s3]
}

fn decode_index(bytes: &[u8; ENTRY]) -> ExtentIndex {
    let [b0, b1, b2, b3, l0, l1, l2, l3, h0, h1, ..] = *bytes;
    ExtentIndex {
        block: u32::from_le_bytes([b0, b1, b2, b3]),
        node: BlockAddr(u64::from_le_bytes([l0, l1, l2, l3, h0, h1, 0, 0])),
    }
}

/// The last two bytes have no meaning, and kernels leave what is there.
fn put_index(slot: &mut [u8; ENTRY], index: &ExtentIndex) {
    slot[..4].copy_from_slice(&index.block.to_le_bytes());
    slot[4..10].copy_from_slice(&index.node.0.to_le_bytes()[..6]);
}

/// Entry of a node under which a block of the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtentEntry {
    /// A run with the block.
    Extent(Extent),
    /// None: the block is a hole.
    Hole,
    /// A node below.
    Index(ExtentIndex),
}

/// Searches the node in `bytes`, of `depth` levels below (any number, if `None`), for `block`,
/// without a copy of its entries. Gives the depth, the entry, and the first block of the entry
/// behind it, 2^32 if there is none. `None` for a node that [`ExtentNode::parse`] refuses.
pub fn search_extents(
    bytes: &[u8],
    depth: Option<u16>,
    block: u32,
) -> Option<(u16, ExtentEntry, u64)> {
    let word = |at: usize| Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (magic, count, max, found) = (word(0)?, word(2)?, word(4)?, word(6)?);
    let is_node = magic == EXTENT_MAGIC
        && (1..=extents_in(bytes.len())).contains(&max)
        && (u16::from(found > 0)..=max).contains(&count)
        && (0..=MAX_EXTENT_DEPTH).contains(&found);
    if !is_node || depth.is_some_and(|depth| depth != found) {
        return None;
    }
    let entries = bytes[ENTRY..].as_chunks::<ENTRY>().0.get(..count.into())?;
    if !are_in_order(entries, found) {
        return None;
    }
    let behind = entries.partition_point(|entry| first_block(entry) <= block);
    // blocks before the first index belong to its node
    let behind = behind.max(usize::from(found > 0));
    let end = entries.get(behind).map_or(1 << 32, |entry| first_block(entry).into());
    let entry = match behind.checked_sub(1).map(|at| &entries[at]) {
        Some(index) if found > 0 => ExtentEntry::Index(decode_index(index)),
        Some(run) if decode_extent(run).end() > block.into() => {
            ExtentEntry::Extent(decode_extent(run))
        }
        Some(_) | None => ExtentEntry::Hole,
    };
    Some((found, entry, end))
}

/// Has blocks `from` to before `end` of one unwritten extent hold content from now on, in the bytes
/// of a leaf; parts join their neighbours where they can. False, with nothing changed, if there is
/// no such extent, or no room for its parts.
pub fn mark_written_in(bytes: &mut [u8], from: u32, end: u64) -> bool {
    let word = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (count, max) = (word(2), word(4));
    let slots = &bytes[ENTRY..].as_chunks::<ENTRY>().0[..count];
    let Some(at) = slots.partition_point(|slot| first_block(slot) <= from).checked_sub(1) else {
        return false;
    };
    let extent = decode_extent(&slots[at]);
    if extent.written || extent.end() < end || u64::from(from) >= end {
        return false;
    }
    let part = |start: u64, end: u64, written: bool| Extent {
        block: start as u32,
        len: (end - start) as u16,
        start: BlockAddr(extent.start.0 + (start - u64::from(extent.block))),
        written,
    };
    let (first, last) = (u64::from(extent.block), extent.end());
    let near = |index: usize| slots.get(index).map(decode_extent);
    let parts = [
        at.checked_sub(1).and_then(near),
        (first < from.into()).then(|| part(first, from.into(), false)),
        Some(part(from.into(), end, true)),
        (end < last).then(|| part(end, last, false)),
        near(at + 1),
    ];
    let before = at - usize::from(at > 0);
    let behind = (at + 2).min(count);
    let (joined, len) = joined(parts);
    let new_count = count - (behind - before) + len;
    if new_count > max {
        return false;
    }
    let rest = ENTRY * (1 + behind)..ENTRY * (1 + count);
    bytes.copy_within(rest, ENTRY * (1 + before + len));
    for (slot, extent) in joined[..len].iter().enumerate() {
        let place = ENTRY * (1 + before + slot);
        bytes[place..place + ENTRY].copy_from_slice(&encode_extent(extent));
    }
    bytes[2..4].copy_from_slice(&(new_count as u16).to_le_bytes());
    true
}

/// Extents in order, those that continue each other as one, and how many that are.
fn joined(parts: [Option<Extent>; 5]) -> ([Extent; 5], usize) {
    const NONE: Extent = Extent { block: 0, len: 0, start: BlockAddr(0), written: true };
    let (mut list, mut len) = ([NONE; 5], 0);
    for next in parts.into_iter().flatten() {
        if len > 0 && list[len - 1].takes(&next) {
            list[len - 1].len += next.len;
        } else {
            list[len] = next;
            len += 1;
        }
    }
    (list, len)
}

fn first_block(entry: &[u8; ENTRY]) -> u32 {
    u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]])
}

/// As [`ExtentEntries::check`], without a copy.
fn are_in_order(entries: &[[u8; ENTRY]], depth: u16) -> bool {
    let mut end = 0;
    entries.iter().all(|entry| {
        let block = u64::from(first_block(entry));
        let len = if depth > 0 { 1 } else { decode_extent(entry).len.into() };
        let follows = block >= end;
        end = block + len;
        follows && len > 0 && end <= 1 << 32
    })
}

/// Offset of the checksum of a node in a block: behind the last entry that it has room for.
fn tail_offset(block: &[u8]) -> Option<usize> {
    let max = u16::from_le_bytes([*block.get(4)?, *block.get(5)?]);
    let offset = ENTRY + ENTRY * usize::from(max);
    (offset + 4 <= block.len()).then_some(offset)
}

/// The checksum of a node in a block of its own, stored and computed; `None` if there is no room
/// for it. `seed` is [`super::Inode::checksum_seed`].
pub fn extent_block_checksums(block: &[u8], seed: u32) -> Option<(u32, u32)> {
    let offset = tail_offset(block)?;
    let found = u32::from_le_bytes(*block[offset..].first_chunk()?);
    Some((found, crc32c(seed, &block[..offset])))
}

/// Puts the checksum into a node in a block of its own.
pub fn seal_extent_block(block: &mut [u8], seed: u32) {
    if let (Some(offset), Some((_, computed))) =
        (tail_offset(block), extent_block_checksums(block, seed))
    {
        block[offset..offset + 4].copy_from_slice(&computed.to_le_bytes());
    }
}

/// The first block that a file of extents cannot have: block numbers have 32 bits.
pub const MAX_EXTENT_BLOCKS: u64 = u32::MAX as u64;

/// Checks that the blocks of an extent lie on the volume.
///
/// # Errors
/// [`Damage::Address`].
pub fn check_extent(extent: &Extent, place: Place, superblock: &Superblock) -> Result<(), Corrupt> {
    let last = BlockAddr(extent.start.0 + u64::from(extent.len) - 1);
    if superblock.contains(extent.start) && superblock.contains(last) {
        return Ok(());
    }
    let (first, last) = (u64::from(superblock.first_data_block) + 1, superblock.blocks_count - 1);
    Err(Damage::Address { place, field: "ee_start", found: extent.start, first, last }.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn leaf(extents: &[(u32, u16, u64, bool)]) -> ExtentNode {
        let extent =
            |&(block, len, start, written)| Extent { block, len, start: BlockAddr(start), written };
        let list = extents.iter().map(extent).collect();
        ExtentNode { entries: ExtentEntries::Leaf(list), ..ExtentNode::new_leaf(60) }
    }

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let node =
            leaf(&[(0, 0x8000, 1 << 40, true), (0x8000, 0x7FFF, 7, false), (u32::MAX, 1, 9, true)]);
        let mut bytes = [0; 60];
        node.encode(&mut bytes);
        assert_eq!(bytes[..8], [0x0A, 0xF3, 3, 0, 4, 0, 0, 0]);
        assert_eq!(ExtentNode::parse(&bytes, Ino(12), BlockAddr(0)).unwrap(), node);
        let index = ExtentNode {
            depth: 2,
            max: 4,
            generation: 5,
            entries: ExtentEntries::Index(vec![ExtentIndex { block: 3, node: BlockAddr(1 << 47) }]),
        };
        index.encode(&mut bytes);
        assert_eq!(ExtentNode::parse(&bytes, Ino(12), BlockAddr(0)).unwrap(), index);
    }

    #[test]
    fn entries_out_of_order_are_refused() {
        for bad in [
            leaf(&[(5, 10, 100, true), (14, 1, 300, true)]),
            leaf(&[(5, 0, 100, true)]),
            leaf(&[(u32::MAX, 2, 100, true)]),
        ] {
            let mut bytes = [0; 60];
            bad.encode(&mut bytes);
            assert!(ExtentNode::parse(&bytes, Ino(12), BlockAddr(0)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_tail_lies_behind_the_last_entry_there_is_room_for() {
        for (size, offset) in [(1024, 1020), (2048, 2040), (4096, 4092)] {
            let mut block = vec![0; size];
            ExtentNode::new_leaf(size).encode(&mut block);
            seal_extent_block(&mut block, 7);
            assert_eq!(tail_offset(&block), Some(offset));
            let (found, computed) = extent_block_checksums(&block, 7).unwrap();
            assert_eq!(found, computed);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(mut bytes in prop::collection::vec(any::<u8>(), 60..1024), depth in 0..7_u8) {
            bytes[..8].copy_from_slice(&[0x0A, 0xF3, 2, 0, 3, 0, depth, 0]);
            let _ = ExtentNode::parse(&bytes, Ino(12), BlockAddr(9));
            let _ = ExtentNode::parse(&bytes[..7], Ino(12), BlockAddr(9));
            let _ = extent_block_checksums(&bytes, 0);
        }

        /// Against a list with an entry for each block, joined where it can be.
        #[test]
        fn blocks_are_marked_as_written_as_a_list_of_them_would_be(
            lens in prop::collection::vec((1..6_u16, 0..3_u32, any::<bool>()), 1..12),
            spare in 0..4_usize,
            at in (0..40_u32, 1..5_u64),
        ) {
            let (mut list, mut block): (Vec<Extent>, u32) = (Vec::new(), 0);
            for (len, gap, written) in lens {
                let first = block + gap;
                let start = BlockAddr(first.into());
                let extent = Extent { block: first, len, start, written };
                block = extent.end() as u32;
                match list.last_mut() {
                    Some(last) if last.takes(&extent) => last.len += len,
                    _ => list.push(extent),
                }
            }
            let (from, end) = (at.0, u64::from(at.0) + at.1);
            let room = list.len() + spare;
            let mut bytes = vec![0; ENTRY * (room + 1)];
            let entries = ExtentEntries::Leaf(list.clone());
            ExtentNode { entries, ..ExtentNode::new_leaf(bytes.len()) }.encode(&mut bytes);
            let before = bytes.clone();
            let done = mark_written_in(&mut bytes, from, end);
            let inside = |e: &Extent| e.block <= from && e.end() >= end && !e.written;
            let mut expected: Vec<Extent> = Vec::new();
            for extent in &list {
                for block in extent.block..extent.end() as u32 {
                    let written = extent.written || (u64::from(from)..end).contains(&block.into());
                    let one = Extent { block, len: 1, start: BlockAddr(block.into()), written };
                    match expected.last_mut() {
                        Some(last) if last.takes(&one) => last.len += 1,
                        _ => expected.push(one),
                    }
                }
            }
            let fits = expected.len() <= room;
            prop_assert_eq!(done, list.iter().any(inside) && fits);
            if done {
                let found = ExtentNode::parse(&bytes, Ino(12), BlockAddr(9)).unwrap();
                prop_assert_eq!(found.entries, ExtentEntries::Leaf(expected));
            } else {
                prop_assert_eq!(bytes, before);
            }
        }

        #[test]
        fn a_search_finds_what_a_decoded_node_has(
            mut bytes in prop::collection::vec(0..3_u8, 60..200),
            count in 0..6_u8,
            depth in 0..3_u8,
            block in 0..1_000_u32,
        ) {
            bytes[..8].copy_from_slice(&[0x0A, 0xF3, count, 0, 5, 0, depth, 0]);
            for (number, entry) in bytes[ENTRY..].as_chunks_mut::<ENTRY>().0.iter_mut().enumerate() {
                (entry[2], entry[3]) = (0, 0);
                entry[1] = (entry[1] + number as u8) / 2;
            }
            let parsed = ExtentNode::parse(&bytes, Ino(12), BlockAddr(9)).ok();
            let found = search_extents(&bytes, Some(depth.into()), block);
            prop_assert_eq!(found.is_some(), parsed.is_some());
            prop_assert_eq!(search_extents(&bytes, Some(u16::from(depth) + 1), block), None);
            let expected = parsed.map(|node| match node.entries {
                ExtentEntries::Leaf(list) => {
                    let run = list.iter().find(|e| (u64::from(e.block)..e.end()).contains(&block.into()));
                    let next = list.iter().find(|e| e.block > block);
                    let entry = run.map_or(ExtentEntry::Hole, |run| ExtentEntry::Extent(*run));
                    (0, entry, next.map_or(1 << 32, |next| next.block.into()))
                }
                ExtentEntries::Index(list) => {
                    let at = list.iter().rposition(|e| e.block <= block).unwrap_or(0);
                    let end = list.get(at + 1).map_or(1 << 32, |next| next.block.into());
                    (depth.into(), ExtentEntry::Index(list[at]), end)
                }
            });
            prop_assert_eq!(found, expected);
        }
    }
}
