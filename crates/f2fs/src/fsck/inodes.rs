//! Inodes: every field that can be compared with something.

use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};
use dovetail_vfs::kit::XattrNameSpace;

use super::directories::Directory;
use super::nodes::Node;
use super::tree::{Role, Visited};
use super::{Checker, Finding, Name};
use crate::error::Error;
use crate::format::{
    Features, FileType, Geometry, InlineFlags, InodeFlags, Nid, RawInode, XATTR_BYTES_IN_NODE,
    inode_checksums, parse_xattrs, u32_at,
};

/// All extra attributes that are known, in bytes.
const MAX_EXTRA: u32 = 36;
/// The most words of inline xattrs that the kernel leaves room for (`MAX_INLINE_XATTR_SIZE`).
const MAX_XATTR_WORDS: u32 = 903;
/// The longest target of a link: a block without the kernel's closing NUL.
const MAX_TARGET: u64 = 4095;
/// `i_advise`: the parent may be stale; encrypted; blocks behind the end are kept.
const LOST_PARENT: u8 = 0x02;
const ENCRYPTED: u8 = 0x04 | 0x08;
const KEEP_SIZE: u8 = 0x10;
/// Of a file with fs-verity, whose hashes lie behind its end.
const VERITY: u8 = 0x40;
/// `i_inline`: there is inline data; pinned; compressed blocks were released.
const DATA_EXISTS: u8 = 0x08;
const PINNED: u8 = 0x40;
const RELEASED: u8 = 0x80;
const CASEFOLD: Features = Features(0x1000);

/// A file whose blocks are being followed.
pub(super) struct File {
    pub(super) ino: Nid,
    pub(super) geometry: Geometry,
    pub(super) is_dir: bool,
    /// Blocks of a compressed cluster; 1 for what is not compressed.
    pub(super) cluster: u64,
    /// The blocks that compression saved are not counted.
    pub(super) released: bool,
    /// Blocks that were found, the inode included.
    pub(super) blocks: u64,
    /// Its pointers were followed, so that `blocks` are all that it has.
    is_walked: bool,
    /// It leads to an xattr node that cannot be used.
    lost_xattrs: bool,
    /// The last block of the file that exists.
    pub(super) last: Option<u64>,
    /// The extent: first block of the file, first block of the volume, length.
    pub(super) extent: (u32, u32, u32),
    /// Number of blocks that lie where the extent says.
    pub(super) in_extent: u32,
    pub(super) directory: Option<Directory>,
}

impl<D: BlockDevice> Checker<'_, D> {
    /// Enters inode `ino` and checks it and all that it holds; a directory is put on the list of
    /// those to be read. Returns its mode if it can be used.
    pub(super) fn enter_inode(&mut self, ino: Nid, role: Role) -> Result<Option<u16>, Error> {
        let node = self.enter_node(ino, ino, 0)?;
        let visited =
            node.as_ref().map_or_else(|| Visited::unusable(role), |node| Visited::of(node, role));
        let file_type = visited.file_type;
        self.inodes.insert(ino, visited);
        let Some(node) = node else { return Ok(None) };
        self.report.counts.inodes += 1;
        match file_type {
            FileType::DIRECTORY => self.report.counts.directories += 1,
            FileType::REGULAR => self.report.counts.files += 1,
            _ => {}
        }
        let raw = RawInode::of(&node.block);
        if file_type == FileType::UNKNOWN {
            self.found(Finding::InodeMode { ino, found: raw.i_mode.get() });
        }
        self.check_cold(ino, &node.footer, file_type == FileType::DIRECTORY);
        self.check_plain_fields(ino, raw, file_type);
        if self.check_geometry(ino, raw) && file_type != FileType::UNKNOWN {
            self.check_checksum(ino, &node.block);
            if file_type == FileType::DIRECTORY {
                self.todo.push(ino); // what it lists is entered while it is read: one directory at a time
            } else {
                self.check_content(ino, &node, file_type)?;
            }
        }
        Ok(Some(raw.i_mode.get()))
    }

    /// Fields that stand for themselves.
    fn check_plain_fields(&mut self, ino: Nid, raw: &RawInode, file_type: FileType) {
        let times = [
            ("i_atime_nsec", raw.i_atime_nsec),
            ("i_ctime_nsec", raw.i_ctime_nsec),
            ("i_mtime_nsec", raw.i_mtime_nsec),
        ];
        for (field, found) in times {
            if found.get() >= 1_000_000_000 {
                self.found(Finding::Nanoseconds { ino, field, found: found.get() });
            }
        }
        if raw.i_namelen.get() > 255 {
            self.found(Finding::InodeNameLength { ino, found: raw.i_namelen.get() });
        }
        let max = self.volume.superblock.variant.max_file_size();
        if raw.i_size.get() > max {
            self.found(Finding::InodeSize { ino, found: raw.i_size.get(), max });
        }
        let is_dir = file_type == FileType::DIRECTORY;
        let folds = InodeFlags(raw.i_flags.get()).has(InodeFlags::CASEFOLD);
        if folds && !(is_dir && self.volume.superblock.features.has(CASEFOLD)) {
            self.found(Finding::Casefold { ino });
        }
        let failures = raw.i_current_depth.get() & 0xFFFF;
        if file_type == FileType::REGULAR && failures != 0 && raw.i_inline & PINNED == 0 {
            self.found(Finding::GcFailures { ino, found: failures });
        }
        if is_dir && raw.i_current_depth.get() > 63 {
            self.found(Finding::DepthRange { ino, found: raw.i_current_depth.get(), max: 63 });
        }
        let size = raw.i_size.get();
        if file_type == FileType::SYMLINK && !(1..=MAX_TARGET).contains(&size) {
            self.found(Finding::SymlinkSize { ino, found: size });
        }
    }

    /// Checks the division of the inode's room. Returns false if it makes no sense.
    fn check_geometry(&mut self, ino: Nid, raw: &RawInode) -> bool {
        if !InlineFlags(raw.i_inline).has(InlineFlags::EXTRA_ATTR) {
            return true;
        }
        let features = self.volume.superblock.features;
        if !features.has(Features::EXTRA_ATTR) {
            self.found(Finding::ExtraFlag { ino });
        }
        let size = u32::from(raw.extra.i_extra_isize.get());
        if !(4..=MAX_EXTRA).contains(&size) || size % 4 != 0 {
            self.found(Finding::ExtraSize { ino, found: size, max: MAX_EXTRA });
            return false;
        }
        let words = u32::from(raw.extra.i_inline_xattr_size.get());
        let has_area = InlineFlags(raw.i_inline).has(InlineFlags::XATTR);
        let flexible = features.has(Features::FLEXIBLE_INLINE_XATTR);
        if flexible && (words > MAX_XATTR_WORDS || words == 0 && has_area) {
            self.found(Finding::InlineXattrSize { ino, found: words, max: MAX_XATTR_WORDS });
        }
        !flexible || words <= MAX_XATTR_WORDS
    }

    fn check_checksum(&mut self, ino: Nid, block: &BlockBytes) {
        let sums = inode_checksums(block, &self.volume.superblock);
        if let Some((found, expected)) = sums.filter(|(found, expected)| found != expected) {
            self.found(Finding::InodeChecksum { ino, found, expected });
        }
    }

    /// Checks the content of the inode: attributes, inline content, blocks.
    pub(super) fn check_content(
        &mut self,
        ino: Nid,
        node: &Node,
        file_type: FileType,
    ) -> Result<(), Error> {
        let raw = RawInode::of(&node.block);
        let geometry = raw.geometry(self.volume.superblock.layout());
        let mut file = File::new(ino, raw, geometry, file_type);
        self.check_xattrs(&mut file, node)?;
        self.check_compression(&mut file, raw, file_type);
        let inline = InlineFlags(raw.i_inline);
        let is_dir = file_type == FileType::DIRECTORY;
        let has_content =
            matches!(file_type, FileType::REGULAR | FileType::DIRECTORY | FileType::SYMLINK);
        let data = inline.has(InlineFlags::DATA);
        if data && (is_dir || !has_content) || inline.has(InlineFlags::DENTRY) && !is_dir {
            self.found(Finding::InlineFlags { ino, found: raw.i_inline });
        } else if data || inline.has(InlineFlags::DENTRY) {
            self.check_inline(&mut file, &node.block)?;
        } else if has_content {
            file.is_walked = true;
            self.walk_pointers(&mut file, node)?;
            self.check_ends(&file, raw);
        }
        self.finish_directory(&mut file);
        self.check_sums(&file, raw);
        Ok(())
    }

    fn check_sums(&mut self, file: &File, raw: &RawInode) {
        let (ino, found, expected) = (file.ino, raw.i_blocks.get(), file.blocks);
        if !file.is_walked && found > expected + u64::from(file.lost_xattrs) {
            self.found(Finding::BlocksHidden { ino, found, expected });
        } else if found != expected {
            self.found(Finding::InodeBlocks { ino, found, expected });
        }
        let (first, address, count) = file.extent;
        if count != 0 && file.in_extent != count {
            self.found(Finding::Extent {
                ino,
                first,
                address: crate::format::BlockAddr(address.into()),
                count,
            });
        }
    }

    fn check_xattrs(&mut self, file: &mut File, node: &Node) -> Result<(), Error> {
        let raw = RawInode::of(&node.block);
        let ino = file.ino;
        let mut area: Vec<u8> = Vec::new();
        if InlineFlags(raw.i_inline).has(InlineFlags::XATTR) {
            area.extend_from_slice(&node.block[file.geometry.inline_xattrs()]);
        }
        let nid = Nid(raw.i_xattr_nid.get());
        if nid.is_some() {
            let node = self.enter_xattr_node(nid, ino)?;
            file.lost_xattrs = node.is_none();
            if let Some(node) = node {
                self.check_cold(nid, &node.footer, file.is_dir);
                area.extend_from_slice(&node.block[..XATTR_BYTES_IN_NODE]);
                file.blocks += 1;
            }
        }
        match parse_xattrs(&area, ino) {
            Err(reason) => self.found(Finding::Xattrs { ino, reason }),
            Ok(list) => {
                for xattr in list.iter().filter(|xattr| xattr.index.prefix().is_none()) {
                    self.found(Finding::XattrIndex { ino, found: xattr.index.0 });
                }
            }
        }
        Ok(())
    }

    fn check_compression(&mut self, file: &mut File, raw: &RawInode, file_type: FileType) {
        let compressed = InodeFlags(raw.i_flags.get()).has(InodeFlags::COMPRESSED);
        if file_type != FileType::REGULAR || !compressed {
            return;
        }
        let ino = file.ino;
        let room = file.geometry.pointer_at(0) >= 360 + MAX_EXTRA as usize;
        if !self.volume.superblock.features.has(Features::COMPRESSION) || !room {
            self.found(Finding::Compression { ino, field: "i_flags", found: raw.i_flags.get() });
            return;
        }
        let log = raw.extra.i_log_cluster_size;
        if !(2..=8).contains(&log) {
            self.found(Finding::Compression {
                ino,
                field: "i_log_cluster_size",
                found: log.into(),
            });
            return;
        }
        let algorithm = raw.extra.i_compress_algorithm;
        if algorithm > 3 {
            self.found(Finding::Compression {
                ino,
                field: "i_compress_algorithm",
                found: algorithm.into(),
            });
        }
        file.cluster = 1 << log;
    }

    /// Inline data or inline entries.
    fn check_inline(&mut self, file: &mut File, block: &Arc<BlockBytes>) -> Result<(), Error> {
        let (ino, raw) = (file.ino, RawInode::of(block));
        let reserved = u32_at(&**block, file.geometry.pointer_at(0));
        if reserved != 0 {
            self.found(Finding::InlineReserved { ino, found: reserved });
        }
        let area = &block[file.geometry.inline_area()];
        let (found, max) = (raw.i_size.get(), area.len() as u64);
        if found > max {
            self.found(Finding::InlineSize { ino, found, max });
        }
        for nid in raw.i_nid.iter().filter(|nid| nid.get() != 0) {
            self.found(Finding::InlineNodes { ino, found: Nid(nid.get()) });
        }
        if file.is_dir {
            self.check_inline_entries(file, area)?;
        } else if raw.i_inline & DATA_EXISTS == 0 && area.iter().any(|&byte| byte != 0) {
            self.found(Finding::InlineUnmarked { ino });
        }
        Ok(())
    }

    /// Size and depth against the last block that exists.
    fn check_ends(&mut self, file: &File, raw: &RawInode) {
        let (ino, size) = (file.ino, raw.i_size.get());
        let Some(block) = file.last else { return };
        let expected = (block + 1) * 4096;
        if let Some(directory) = &file.directory {
            let (found, level) = (raw.i_current_depth.get(), directory.levels_to(block));
            if size < expected {
                self.found(Finding::DirectorySize { ino, found: size, expected });
            }
            if found < level {
                self.found(Finding::DirectoryDepth { ino, found, expected: level });
            }
        } else if size.div_ceil(4096) <= block && file.cluster == 1 && raw.i_advise & VERITY == 0 {
            self.found(if raw.i_advise & KEEP_SIZE != 0 {
                Finding::BlocksKept { ino, block, size }
            } else {
                Finding::BlocksBeyondSize { ino, block, size }
            });
        }
    }
}

impl File {
    fn new(ino: Nid, raw: &RawInode, geometry: Geometry, file_type: FileType) -> Self {
        let is_dir = file_type == FileType::DIRECTORY;
        let [first, address, len] = raw.i_ext.map(|word| word.get());
        Self {
            ino,
            geometry,
            is_dir,
            cluster: 1,
            released: raw.i_inline & RELEASED != 0,
            blocks: 1,
            is_walked: false,
            lost_xattrs: false,
            last: None,
            extent: (first, address, len),
            in_extent: 0,
            directory: is_dir.then(|| Directory::new(ino, raw)),
        }
    }
}

impl Visited {
    fn of(node: &Node, role: Role) -> Self {
        let raw = RawInode::of(&node.block);
        let name = raw.i_name[..raw.i_namelen.get().min(255) as usize].to_vec();
        Self {
            file_type: FileType::of_mode(raw.i_mode.get()),
            links: raw.i_links.get(),
            names: 0,
            subdirs: 0,
            parent: Nid(raw.i_pino.get()),
            name: Name(name),
            knows_name: raw.i_advise & (LOST_PARENT | ENCRYPTED) == 0,
            role,
        }
    }

    fn unusable(role: Role) -> Self {
        Self {
            file_type: FileType::UNKNOWN,
            links: 0,
            names: 0,
            subdirs: 0,
            parent: Nid::NONE,
            name: Name(Vec::new()),
            knows_name: false,
            role,
        }
    }
}
