//! Calls that change nothing, for callers who share the mount: answered from what is in memory and
//! the blocks of the content. All else is left to the calls of the same name, which tell errors and
//! bring into memory what is missing.

use std::ops::Range;

use dovetail_block::{BlockBytes, Scheduler};
use dovetail_vfs::kit::{StoredBytes, read_shared};
use dovetail_vfs::mode::{S_IFREG, kind};
use dovetail_vfs::{Attr, Ino, SharedCalls};

use super::F2fs;
use super::data::ADVISE_ENCRYPTED;
use super::pointers::{behind_subtree, shape_of};
use super::vfs::nid;
use crate::error::Error;
use crate::format::{
    BLOCK, BlockAddr, InlineFlags, InodeFlags, Nid, NodePath, RawInode, Variant, node_nid,
};

impl<D: Scheduler> SharedCalls for F2fs<D> {
    fn read(&self, ino: Ino, offset: u64, into: &mut [u8]) -> Option<usize> {
        let node = self.node_in_memory(nid(ino), nid(ino), 0)?;
        let raw = RawInode::of(node);
        let len = raw.i_size.get().saturating_sub(offset).min(into.len() as u64) as usize;
        let into = &mut into[..len];
        if kind(raw.i_mode.get()) != S_IFREG || raw.i_advise & ADVISE_ENCRYPTED != 0 {
            return None;
        }
        if InlineFlags(raw.i_inline).has(InlineFlags::DATA) {
            let area = &node[raw.geometry(self.superblock.layout()).inline_area()];
            let start = usize::try_from(offset).ok().filter(|_| len > 0).unwrap_or(0);
            into.copy_from_slice(area.get(start..start + len)?);
            return Some(len);
        }
        if InodeFlags(raw.i_flags.get()).has(InodeFlags::COMPRESSED) {
            return None;
        }
        let stored = |range: Range<u64>| self.stored_bytes(nid(ino), node, range);
        let read = |at, into: &mut [u8]| self.io.read_shared(at, into);
        let end = offset + len as u64;
        let is_cached = |page| self.pages.peek(ino.0, page).is_some();
        if len > BLOCK && !is_cached((end - 1) / BLOCK as u64) {
            stored(end - 1..end)?; // before content is read in vain
        }
        read_shared((&self.pages, ino.0), offset, into, stored, read)?;
        Some(len)
    }

    fn getattr(&self, ino: Ino) -> Option<Attr> {
        self.node_in_memory(nid(ino), nid(ino), 0).map(|block| self.attr_of(nid(ino), block))
    }
}

impl<D: Scheduler> F2fs<D> {
    fn node_in_memory(&self, nid: Nid, ino: Nid, offset: u32) -> Option<&BlockBytes> {
        let node = self.nodes.peek(nid)?;
        ((node.ino, node.offset) == (ino, offset)).then_some(&node.block)
    }

    /// Location of the bytes at the start of `range` of the file whose inode is `inode`.
    fn stored_bytes(&self, ino: Nid, inode: &BlockBytes, range: Range<u64>) -> Option<StoredBytes> {
        const SIZE: u64 = BLOCK as u64;
        if self.io.is_moving_blocks() {
            return None;
        }
        let block = range.start / SIZE;
        let pointers = match self.pointers_from(ino, inode, block)? {
            Place::Pointers(pointers) => pointers,
            Place::HoleUntil(end) => {
                return Some(StoredBytes { end: end.saturating_mul(SIZE), at: None });
            }
        };
        let most = usize::try_from(range.end.div_ceil(SIZE) - block).ok()?;
        let first = pointers.get(0)?;
        let alike = |i: usize| {
            pointers.get(i).is_some_and(|next| match first.is_hole() {
                true => next.is_hole(),
                false => next == first.plus(i as u64),
            })
        };
        let blocks = (1..most).find(|&i| !alike(i)).unwrap_or(most) as u64;
        let end = (block + blocks) * SIZE;
        if first.is_hole() {
            return Some(StoredBytes { end, at: None });
        }
        let inside =
            self.superblock.in_main(first) && self.superblock.in_main(first.plus(blocks - 1));
        let at = first.0.checked_mul(SIZE).filter(|_| inside)? + range.start % SIZE;
        Some(StoredBytes { end, at: Some(at) })
    }

    /// Loads the inode and the nodes on the way to the blocks of these bytes; `false` if all of them
    /// were in memory.
    pub(super) fn load_pointers(&mut self, ino: Nid, bytes: Range<u64>) -> Result<bool, Error> {
        let before = self.nodes.loads();
        let end = self.inode(ino)?.i_size.get().min(bytes.end);
        if bytes.start < end && self.has_block_pointers(ino)? {
            let each = self.superblock.variant.direct_pointers();
            let last = (end - 1) / BLOCK as u64;
            for block in (bytes.start / BLOCK as u64..last).step_by(each).chain([last]) {
                self.find_pointer(ino, block)?;
            }
        }
        Ok(self.nodes.loads() > before)
    }

    /// The pointers to the blocks of a file from `block` on, as far as they stand in one node, if
    /// all nodes on the way to it are in memory.
    fn pointers_from<'a>(
        &'a self,
        ino: Nid,
        inode: &'a BlockBytes,
        block: u64,
    ) -> Option<Place<'a>> {
        let (raw, variant) = (RawInode::of(inode), self.superblock.variant);
        let shape = shape_of(raw, self.superblock.layout());
        let path = NodePath::to(block, shape.pointers, shape.direct)?;
        let each = variant.address_bytes();
        let (node, first_at, index, count) = match path.root {
            None => (inode, shape.first_at, path.index, shape.pointers),
            Some(root) => {
                let (mut node, mut next) = (inode, Nid(raw.i_nid.get(root)?.get()));
                let steps = &path.steps[..path.depth];
                for (level, &(offset, index)) in steps.iter().enumerate() {
                    if next == Nid::NONE {
                        return Some(Place::HoleUntil(behind_subtree(block, &shape, &path, level)));
                    }
                    node = self.node_in_memory(next, ino, offset)?;
                    if level + 1 < path.depth {
                        next = node_nid(node, index);
                    }
                }
                (node, 0, steps.last()?.1, shape.direct)
            }
        };
        let (from, until) = (first_at + each * index, first_at + each * count as usize);
        Some(Place::Pointers(Pointers { bytes: node.get(from..until)?, each, variant }))
    }
}

/// Place at which the pointers of a file's blocks stand.
enum Place<'a> {
    Pointers(Pointers<'a>),
    /// A node is missing, and with it the file's blocks up to this one (not included).
    HoleUntil(u64),
}

/// Pointers that stand side by side in a node.
struct Pointers<'a> {
    bytes: &'a [u8],
    /// Bytes of a pointer.
    each: usize,
    variant: Variant,
}

impl Pointers<'_> {
    fn get(&self, index: usize) -> Option<BlockAddr> {
        let at = self.each * index;
        (at < self.bytes.len()).then(|| self.variant.address_at(self.bytes, at))
    }
}
