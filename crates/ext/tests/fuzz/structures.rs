//! Location of the structures of an image, and of the fields in them.

use std::ops::Range;

use dovetail_block::{Lba, MemoryDevice};
use dovetail_ext::format::{GroupNo, Superblock};

use crate::common::superblock_bytes;

/// All of one kind. Places are bytes of the image.
pub(crate) struct Structure {
    /// Each one of them, as a whole.
    pub(crate) parts: Vec<Range<u64>>,
    /// Their fields.
    pub(crate) fields: Vec<Range<u64>>,
    /// The journal's are.
    pub(crate) big_endian: bool,
}

/// Offset and bytes of the fields that lead somewhere or count something.
type Fields = &'static [(u64, u64)];

#[rustfmt::skip]
const SUPERBLOCK: Fields = &[
    (0x00, 4), (0x04, 4), (0x08, 4), (0x0C, 4), (0x10, 4), (0x14, 4), (0x18, 4), (0x1C, 4), (0x20, 4), (0x24, 4),
    (0x28, 4), (0x3A, 2), (0x4C, 4), (0x54, 4), (0x58, 2), (0x5C, 4), (0x60, 4), (0x64, 4), (0xCE, 2), (0xE0, 4),
    (0xE4, 4), (0xE8, 4), (0xFC, 1), (0xFD, 1), (0xFE, 2), (0x100, 4), (0x104, 4), (0x108, 4), (0x150, 4), (0x154, 4),
    (0x158, 4), (0x15C, 2), (0x15E, 2), (0x160, 4), (0x174, 1), (0x175, 1), (0x270, 4),
];
#[rustfmt::skip]
const GROUP: Fields = &[
    (0x00, 4), (0x04, 4), (0x08, 4), (0x0C, 2), (0x0E, 2), (0x10, 2), (0x12, 2), (0x18, 2), (0x1A, 2), (0x1C, 2),
    (0x1E, 2),
];
#[rustfmt::skip]
const INODE: Fields = &[
    (0x00, 2), (0x02, 2), (0x04, 4), (0x10, 4), (0x14, 4), (0x18, 2), (0x1A, 2), (0x1C, 4), (0x20, 4), (0x28, 4),
    (0x2A, 2), (0x2C, 2), (0x2E, 2), (0x30, 4), (0x34, 4), (0x38, 2), (0x3A, 2), (0x3C, 4), (0x40, 4), (0x44, 2),
    (0x48, 4), (0x50, 4), (0x54, 4), (0x58, 4), (0x5C, 4), (0x60, 4), (0x64, 4), (0x68, 4), (0x6C, 4), (0x74, 2),
    (0x76, 2),
];
/// Of inodes of 256 bytes: the size of the known fields, and attributes behind them.
#[rustfmt::skip]
const INODE_TAIL: Fields =
    &[(0x80, 2), (0xA0, 4), (0xA4, 1), (0xA5, 1), (0xA6, 2), (0xA8, 4), (0xAC, 4), (0xB4, 1), (0xB6, 2), (0xBC, 4)];
#[rustfmt::skip]
const XATTR: Fields = &[
    (0x00, 4), (0x04, 4), (0x08, 4), (0x20, 1), (0x21, 1), (0x22, 2), (0x24, 4), (0x28, 4), (0x2C, 4), (0x30, 1),
    (0x31, 1), (0x32, 2), (0x38, 4),
];
#[rustfmt::skip]
const JOURNAL_HEADER: Fields = &[
    (0x00, 4), (0x04, 4), (0x08, 4), (0x0C, 4), (0x10, 4), (0x14, 4), (0x18, 4), (0x1C, 4), (0x20, 4), (0x24, 4),
    (0x28, 4), (0x2C, 4), (0x30, 4), (0x40, 4), (0x50, 1), (0x0E, 2), (0x16, 2), (0x22, 2), (0x2A, 2), (0x32, 2),
];

pub(crate) fn superblock(image: &MemoryDevice) -> Superblock {
    Superblock::parse(&superblock_bytes(image), GroupNo(0)).unwrap()
}

/// The structures of an image, those of which it has none left out.
pub(crate) fn structures(image: &MemoryDevice) -> Vec<Structure> {
    let superblock = superblock(image);
    let mut all = vec![table(std::iter::once(1024..2048).collect(), SUPERBLOCK)];
    let groups: Vec<_> = (0..superblock.group_count()).map(GroupNo).collect();
    let descriptors = groups.iter().map(|&group| descriptor(&superblock, group)).collect();
    all.push(table(descriptors, GROUP));
    let inodes =
        groups.iter().flat_map(|&group| inodes(image, &superblock, group)).collect::<Vec<_>>();
    all.push(table(inodes.clone(), INODE));
    if superblock.inode_size >= 256 {
        all.push(table(inodes, INODE_TAIL));
    }
    all.extend(blocks(image, superblock.block_size().into()));
    all.retain(|structure| !structure.parts.is_empty() && !structure.fields.is_empty());
    all
}

fn table(parts: Vec<Range<u64>>, fields: Fields) -> Structure {
    let of = |part: &Range<u64>| {
        let start = part.start;
        fields.iter().map(move |(offset, size)| start + offset..start + offset + size)
    };
    Structure { fields: parts.iter().flat_map(of).collect(), parts, big_endian: false }
}

fn descriptor(superblock: &Superblock, group: GroupNo) -> Range<u64> {
    let slot = superblock.descriptor_slot(group);
    let start = slot.block * u64::from(superblock.block_size()) + slot.offset as u64;
    start..start + superblock.descriptor_size() as u64
}

fn bytes(image: &MemoryDevice, range: &Range<u64>) -> Option<Vec<u8>> {
    let block = image.bytes(Lba(range.start / 4096))?;
    let start = (range.start % 4096) as usize;
    Some(block[start..start + (range.end - range.start) as usize].to_vec())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

/// The inodes of a group that hold something.
fn inodes(image: &MemoryDevice, superblock: &Superblock, group: GroupNo) -> Vec<Range<u64>> {
    let descriptor = bytes(image, &descriptor(superblock, group)).unwrap();
    let table = u64::from(word(&descriptor, 8)) * u64::from(superblock.block_size());
    let size = u64::from(superblock.inode_size);
    let slots = (0..u64::from(superblock.inodes_per_group))
        .map(|n| table + n * size..table + (n + 1) * size);
    slots
        .filter(|slot| bytes(image, slot).is_some_and(|slot| slot.iter().any(|&byte| byte != 0)))
        .collect()
}

/// Blocks of `size` bytes by what they begin with: nodes of extent trees, directories, attributes,
/// the journal's own, and blocks of numbers (pointers, bitmaps, tables); copies in the journal
/// among them.
fn blocks(image: &MemoryDevice, size: u64) -> Vec<Structure> {
    let (mut extents, mut directories, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut journal, mut numbers, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    let used =
        image.used().flat_map(|(lba, _)| (0..4096 / size).map(move |n| lba.0 * 4096 + n * size));
    for block in used.map(|start| start..start + size) {
        let Some(content) = bytes(image, &block) else { continue };
        match (word(&content, 0), half(&content, 0)) {
            (_, 0xF30A) => extents.push(block),
            (0x9839_3BC0, _) => journal.push(block),
            (0xEA02_0000, _) => attributes.push(block),
            _ => match dir_entries(&content) {
                Some(found) => {
                    entries.extend(found.iter().map(|at| block.start + at..block.start + at + 12));
                    directories.push(block);
                }
                None if content[0] != b'p' => numbers.push(block),
                None => {}
            },
        }
    }
    let words = |blocks: Vec<Range<u64>>, from: u64, count: u64| {
        let of = |block: &Range<u64>| {
            let start = block.start;
            (0..count).map(move |n| start + from + 4 * n..start + from + 4 * n + 4)
        };
        Structure { fields: blocks.iter().flat_map(of).collect(), parts: blocks, big_endian: false }
    };
    let halves = |block: &Range<u64>| {
        let start = block.start;
        (0..20).map(move |n| start + 2 * n..start + 2 * n + 2)
    };
    let mut nodes = words(extents, 12, 12);
    nodes.fields.extend(nodes.parts.iter().flat_map(halves));
    let entries = table(entries, &[(0, 4), (4, 2), (6, 1), (7, 1), (6, 2), (8, 4)]);
    vec![
        nodes,
        Structure { parts: directories, ..entries },
        table(attributes, XATTR),
        Structure { big_endian: true, ..table(journal, JOURNAL_HEADER) },
        words(numbers, 0, 16),
    ]
}

/// Offsets of the entries, if this is a block of a directory.
fn dir_entries(block: &[u8]) -> Option<Vec<u64>> {
    let (mut at, mut found) = (0, Vec::new());
    while at < block.len() {
        let len = usize::from(half(block, at + 4));
        let named = 8 + usize::from(block[at + 6]);
        if !len.is_multiple_of(4) || len < named.max(12) || at + len > block.len() {
            return None;
        }
        found.push(at as u64);
        at += len;
    }
    Some(found)
}
