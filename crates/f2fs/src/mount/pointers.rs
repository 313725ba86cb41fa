//! The pointer to a block of a file: found, made, changed.

use dovetail_block::Scheduler;

use super::F2fs;
use crate::error::{Error, Place};
use crate::format::{
    BlockAddr, Features, InlineFlags, InodeFlags, NIDS_IN_NODE, Nid, NodePath, RawInode, Variant,
    XATTR_NODE_OFFSET, first_block, is_indirect, node_address, node_nid, set_node_nid,
    steps_inside,
};
use dovetail_vfs::mode::is_dir;

const N: u64 = NIDS_IN_NODE as u64;

/// A pointer to a block of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer {
    /// The inode or direct node in which it stands.
    pub(super) nid: Nid,
    /// Its index there, as summaries count.
    pub(super) index: u16,
    /// Its byte in the block.
    at: usize,
    /// Address that it points to.
    pub(super) address: BlockAddr,
}

/// Result of a search for a pointer.
pub(super) enum Found {
    Pointer(Pointer),
    /// A node is missing, and with it the file's blocks up to this one (not included).
    MissingUntil(u64),
}

/// Distribution of a file's blocks over its nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Pointers in the inode.
    pub(super) pointers: u64,
    /// Pointers used in a direct node.
    pub(super) direct: u64,
    /// The byte of the inode at which its first pointer stands.
    pub(super) first_at: usize,
    /// Pointers may be marks of compressed clusters.
    compressed: bool,
}

impl<D: Scheduler> F2fs<D> {
    /// Distribution of the blocks of inode `ino`.
    pub(super) fn shape(&mut self, ino: Nid) -> Result<Shape, Error> {
        let layout = self.superblock.layout();
        Ok(shape_of(self.inode(ino)?, layout))
    }

    /// The pointer to block `block` of the file.
    pub(super) fn find_pointer(&mut self, ino: Nid, block: u64) -> Result<Found, Error> {
        let layout = self.superblock.layout();
        let raw = self.inode(ino)?;
        let shape = shape_of(raw, layout);
        let Some(path) = NodePath::to(block, shape.pointers, shape.direct) else {
            return Ok(Found::MissingUntil(u64::MAX));
        };
        let Some(root) = path.root else {
            return self.inode_pointer(ino, &shape, path.index).map(Found::Pointer);
        };
        let mut nid = Nid(raw.i_nid[root].get());
        for (level, &(offset, index)) in path.steps[..path.depth].iter().enumerate() {
            if nid == Nid::NONE {
                return Ok(Found::MissingUntil(behind_subtree(block, &shape, &path, level)));
            }
            let node = self.node(nid, ino, offset)?;
            if level + 1 == path.depth {
                let address = node_address(node, index, layout.0);
                return self.checked(ino, &shape, (nid, index), address).map(Found::Pointer);
            }
            nid = node_nid(node, index);
        }
        Ok(Found::MissingUntil(block + 1))
    }

    /// The pointer to block `block`; the nodes on the path to it are made if they are missing.
    pub(super) fn make_pointer(&mut self, ino: Nid, block: u64) -> Result<Pointer, Error> {
        if let Found::Pointer(pointer) = self.find_pointer(ino, block)? {
            return Ok(pointer);
        }
        let shape = self.shape(ino)?;
        let path = NodePath::to(block, shape.pointers, shape.direct).ok_or(Error::FileTooBig)?;
        let Some(root) = path.root else { return self.inode_pointer(ino, &shape, path.index) };
        let mut parent = ino;
        for (level, &(offset, index)) in path.steps[..path.depth].iter().enumerate() {
            let nid = match level {
                0 => Nid(self.inode(ino)?.i_nid[root].get()),
                _ => node_nid(self.cached(parent)?, path.steps[level - 1].1),
            };
            let nid = if nid == Nid::NONE {
                let made = self.new_node(ino, offset)?;
                match level {
                    0 => self.edit_inode(ino)?.i_nid[root].set(made.0),
                    _ => {
                        self.load_node(parent, ino, path.steps[level - 1].0)?;
                        set_node_nid(self.edit_node(parent)?, path.steps[level - 1].1, made);
                    }
                }
                made
            } else {
                self.load_node(nid, ino, offset)?;
                nid
            };
            if level + 1 == path.depth {
                let variant = self.superblock.variant;
                let address = node_address(self.cached(nid)?, index, variant);
                return self.checked(ino, &shape, (nid, index), address);
            }
            parent = nid;
        }
        Err(Error::FileTooBig)
    }

    /// Pointer `index` of node `nid` of inode `ino` at `offset`: where a summary says that a
    /// block's owner is. `None` where no pointer to content can be.
    pub(super) fn pointer_at(
        &mut self,
        ino: Nid,
        nid: Nid,
        offset: u32,
        index: u16,
    ) -> Result<Option<Pointer>, Error> {
        let shape = self.shape(ino)?;
        if offset == 0 {
            let inside = u64::from(index) < shape.pointers;
            return if inside {
                self.inode_pointer(ino, &shape, index.into()).map(Some)
            } else {
                Ok(None)
            };
        }
        let no_content = offset == XATTR_NODE_OFFSET || is_indirect(offset);
        let variant = self.superblock.variant;
        if no_content || usize::from(index) >= variant.direct_pointers() {
            return Ok(None);
        }
        let address = node_address(self.node(nid, ino, offset)?, index.into(), variant);
        self.checked(ino, &shape, (nid, index.into()), address).map(Some)
    }

    /// The block of the file that pointer `index` of its node at `offset` leads to.
    pub(super) fn block_of_pointer(
        &mut self,
        ino: Nid,
        offset: u32,
        index: u16,
    ) -> Result<u64, Error> {
        let shape = self.shape(ino)?;
        Ok(first_block(offset, shape.pointers, shape.direct) + u64::from(index))
    }

    fn inode_pointer(&mut self, ino: Nid, shape: &Shape, index: usize) -> Result<Pointer, Error> {
        let variant = self.superblock.variant;
        let address =
            variant.address_at(self.cached(ino)?, shape.first_at + variant.address_bytes() * index);
        self.checked(ino, shape, (ino, index), address)
    }

    fn checked(
        &self,
        ino: Nid,
        shape: &Shape,
        (nid, index): (Nid, usize),
        address: BlockAddr,
    ) -> Result<Pointer, Error> {
        let start = if nid == ino { shape.first_at } else { 0 };
        let at = start + self.superblock.variant.address_bytes() * index;
        let mark = shape.compressed && address == BlockAddr::COMPRESSED;
        if !address.is_hole() && !mark {
            self.check_address(Place::Inode(ino), "a data pointer", address)?;
        }
        Ok(Pointer { nid, index: index as u16, at, address })
    }

    /// Points to another block from now on. The inode's recorded extent, if any, no longer holds.
    pub(super) fn set_pointer(
        &mut self,
        ino: Nid,
        pointer: &Pointer,
        to: BlockAddr,
    ) -> Result<(), Error> {
        let variant = self.superblock.variant;
        variant.put_address(self.edit_node(pointer.nid)?, pointer.at, to);
        self.space.note_promise(pointer.address, to);
        if self.inode(ino)?.i_ext[2].get() != 0 {
            self.edit_inode(ino)?.i_ext[2].set(0);
        }
        Ok(())
    }

    /// Block `block` of the file lies in a compressed cluster.
    pub(super) fn is_compressed(&mut self, ino: Nid, block: u64) -> Result<bool, Error> {
        let features = self.superblock.features;
        let cluster = cluster_blocks(self.inode(ino)?, features);
        if cluster == 1 {
            return Ok(false);
        }
        let head = self.find_pointer(ino, block - block % cluster)?;
        Ok(matches!(head, Found::Pointer(pointer) if pointer.address == BlockAddr::COMPRESSED))
    }

    /// The first block of the file at or after `from` and before `end` that has a pointer other
    /// than a hole's.
    pub(super) fn next_mapped(
        &mut self,
        ino: Nid,
        from: u64,
        end: u64,
    ) -> Result<Option<(u64, BlockAddr)>, Error> {
        let mut block = from;
        while block < end {
            match self.find_pointer(ino, block)? {
                Found::Pointer(pointer) if pointer.address == BlockAddr::NULL => block += 1,
                Found::Pointer(pointer) => return Ok(Some((block, pointer.address))),
                Found::MissingUntil(next) => block = next,
            }
        }
        Ok(None)
    }
}

/// The first block behind those that the node at `level` of the path to `block` leads to.
pub(super) fn behind_subtree(block: u64, shape: &Shape, path: &NodePath, level: usize) -> u64 {
    let below = shape.direct * N.pow((path.depth - 1 - level) as u32);
    block - steps_inside(block, shape.pointers, shape.direct, below) + below
}

pub(super) fn shape_of(raw: &RawInode, layout: (Variant, Features)) -> Shape {
    let geometry = raw.geometry(layout);
    let cluster = cluster_blocks(raw, layout.1);
    let direct = layout.0.direct_pointers() as u64;
    let pointers = geometry.pointers() as u64;
    // a division takes longer than all the rest, and few files are compressed
    let whole = |all: u64| if cluster == 1 { all } else { all - all % cluster };
    Shape {
        pointers: whole(pointers),
        direct: whole(direct),
        first_at: geometry.pointer_at(0),
        compressed: cluster > 1,
    }
}

/// Blocks of a compressed cluster, 4 to 256; 1 for a file that is not compressed.
fn cluster_blocks(raw: &RawInode, features: Features) -> u64 {
    let compressed = features.has(Features::COMPRESSION)
        && InodeFlags(raw.i_flags.get()).has(InodeFlags::COMPRESSED)
        && !is_dir(raw.i_mode.get());
    let extra = InlineFlags(raw.i_inline).has(InlineFlags::EXTRA_ATTR);
    match raw.extra.i_log_cluster_size {
        log @ 2..=8 if compressed && extra && raw.extra.i_extra_isize.get() >= 36 => 1 << log,
        _ => 1,
    }
}
