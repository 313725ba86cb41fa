//! Decodes what kernels and mke2fs wrote: it has the checksums that we compute, and is encoded to
//! the same bytes again.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common::{TempImage, block, kernel_image, superblock_bytes, tool, tree};
use dovetail_block::MemoryDevice;
use dovetail_ext::format::{
    BlockAddr, Compat, DirBlock, DirFormat, DxBlock, ExtentEntries, ExtentNode, FileType, Group,
    GroupFlags, GroupNo, HashVersion, Incompat, Ino, Inode, InodeFlags, PointerWay, RoCompat,
    Superblock, bit, bitmap_checksum, dir_block_checksums, dx_block_checksums, dx_table_offset,
    encode_inline_xattrs, encode_xattr_block, extent_block_checksums, group_checksums, name_hash,
    parse_inline_xattrs, parse_xattr_block, pointer, xattr_block_checksums, xattr_block_header,
};

/// The hash of each entry of a block of attributes.
fn entry_hashes(block: &[u8]) -> Vec<u32> {
    let word = |at: usize| u32::from_le_bytes(*block[at..].first_chunk().unwrap());
    let (mut at, mut hashes) = (32, Vec::new());
    while word(at) != 0 {
        hashes.push(word(at + 12));
        at += (16 + usize::from(block[at])).next_multiple_of(4);
    }
    hashes
}

/// Structures seen, by kind.
#[derive(Debug, Default)]
struct Seen {
    inodes: u32,
    extent_blocks: u32,
    directory_blocks: u32,
    index_blocks: u32,
    inline_xattrs: u32,
    xattr_blocks: u32,
}

struct Check {
    device: MemoryDevice,
    superblock: Superblock,
    seen: Seen,
}

fn check(device: MemoryDevice) -> (Superblock, Seen) {
    let bytes = superblock_bytes(&device);
    let superblock = Superblock::parse(&bytes, GroupNo(0)).unwrap();
    assert!(superblock.encode(&bytes) == bytes);
    let mut check = Check { device, superblock, seen: Seen::default() };
    (0..check.superblock.group_count()).for_each(|n| check.group(GroupNo(n)));
    (check.superblock, check.seen)
}

impl Check {
    fn block(&self, at: BlockAddr) -> Vec<u8> {
        block(&self.device, &self.superblock, at)
    }

    fn group(&mut self, number: GroupNo) {
        let slot = self.superblock.descriptor_slot(number);
        let table = self.block(BlockAddr(slot.block));
        let bytes = &table[slot.offset..][..self.superblock.descriptor_size()];
        let group = Group::parse_checked(bytes, number, &self.superblock).unwrap();
        let mut again = bytes.to_vec();
        group.encode(&mut again, number, &self.superblock);
        assert!(again == bytes, "group {number}");
        assert_eq!(
            group_checksums(bytes, number, &self.superblock).is_some(),
            self.superblock.compat.0 != 0 && self.has_group_checksums()
        );
        self.bitmaps(&group, number);
        self.inodes(&group, number);
    }

    fn has_group_checksums(&self) -> bool {
        self.superblock.ro_compat.has(RoCompat::METADATA_CSUM)
            || self.superblock.ro_compat.has(RoCompat::GDT_CSUM)
    }

    fn bitmaps(&self, group: &Group, number: GroupNo) {
        let pairs = [
            (
                GroupFlags::BLOCK_UNINIT,
                group.block_bitmap,
                self.superblock.clusters_per_group,
                group.block_bitmap_csum,
            ),
            (
                GroupFlags::INODE_UNINIT,
                group.inode_bitmap,
                self.superblock.inodes_per_group,
                group.inode_bitmap_csum,
            ),
        ];
        for (uninit, at, bits, found) in pairs {
            let checksum = bitmap_checksum(&self.block(at), bits, &self.superblock);
            if let Some(checksum) = checksum.filter(|_| !group.flags.has(uninit)) {
                assert_eq!(found, checksum, "group {number}");
            }
        }
    }

    fn inodes(&mut self, group: &Group, number: GroupNo) {
        if group.flags.has(GroupFlags::INODE_UNINIT) {
            return;
        }
        let bitmap = self.block(group.inode_bitmap);
        for index in (0..self.superblock.inodes_per_group).filter(|&n| bit(&bitmap, n as usize)) {
            let slot = self.superblock.inode_slot(index);
            let table = self.block(BlockAddr(group.inode_table.0 + slot.block));
            let bytes = &table[slot.offset..][..self.superblock.inode_size.into()];
            let ino = Ino(number.0 * self.superblock.inodes_per_group + index + 1);
            assert_eq!(self.superblock.inode_group(ino), (number, index));
            if bytes[..2] != [0; 2] {
                self.inode(bytes, ino);
            }
        }
    }

    fn inode(&mut self, bytes: &[u8], ino: Ino) {
        self.seen.inodes += 1;
        let inode = Inode::parse(bytes, ino, &self.superblock).unwrap();
        let mut again = bytes.to_vec();
        inode.encode(&mut again, &self.superblock);
        assert!(again == bytes, "inode {ino}: {inode:?}");
        self.xattrs(&inode);
        if !matches!(inode.file_type(), FileType::REGULAR | FileType::DIRECTORY) {
            return;
        }
        let blocks = self.blocks_of(&inode);
        if inode.is_dir() {
            for (number, at) in blocks {
                self.directory_block(&inode, number, at);
            }
        }
    }

    fn xattrs(&mut self, inode: &Inode) {
        let list = parse_inline_xattrs(&inode.xattr_area, inode.ino).unwrap();
        if !list.is_empty() {
            self.seen.inline_xattrs += 1;
            let again = encode_inline_xattrs(&list, inode.xattr_area.len()).unwrap();
            assert_eq!(parse_inline_xattrs(&again, inode.ino).unwrap(), list);
        }
        if inode.xattr_block.is_some() {
            self.seen.xattr_blocks += 1;
            let bytes = self.block(inode.xattr_block);
            let list = parse_xattr_block(&bytes, inode.xattr_block).unwrap();
            let again = encode_xattr_block(&list, bytes.len()).unwrap();
            assert_eq!(parse_xattr_block(&again, inode.xattr_block).unwrap(), list);
            let (hash, found) = (xattr_block_header(&again).hash, xattr_block_header(&bytes).hash);
            // mke2fs leaves the hash of the whole block out, not those of the entries
            assert!(found == hash || found == 0, "inode {}", inode.ino);
            assert_eq!(entry_hashes(&again), entry_hashes(&bytes), "inode {}", inode.ino);
            if let Some(seed) = self.superblock.checksum_seed() {
                let (found, computed) = xattr_block_checksums(&bytes, inode.xattr_block, seed);
                assert_eq!(found, computed);
            }
        }
    }

    fn blocks_of(&mut self, inode: &Inode) -> Vec<(u32, BlockAddr)> {
        if !inode.flags.has(InodeFlags::EXTENTS) {
            let count = inode.size.div_ceil(self.superblock.block_size().into()) as u32;
            return (0..count.min(600))
                .map(|n| (n, self.mapped(inode, n)))
                .filter(|(_, at)| at.is_some())
                .collect();
        }
        let mut blocks = Vec::new();
        self.extents(inode, &inode.block, BlockAddr::NONE, &mut blocks);
        blocks
    }

    fn mapped(&self, inode: &Inode, block: u32) -> BlockAddr {
        let way = PointerWay::to(block, self.superblock.block_size() / 4).unwrap();
        let (first, rest) = way.slots().split_first().unwrap();
        let start = inode.pointers()[*first as usize];
        let down = |at: u32, slot: &u32| {
            if at == 0 { 0 } else { pointer(&self.block(BlockAddr(at.into())), *slot) }
        };
        BlockAddr(rest.iter().fold(start, down).into())
    }

    fn extents(
        &mut self,
        inode: &Inode,
        bytes: &[u8],
        at: BlockAddr,
        found: &mut Vec<(u32, BlockAddr)>,
    ) {
        let node = ExtentNode::parse(bytes, inode.ino, at).unwrap();
        let mut again = bytes.to_vec();
        node.encode(&mut again);
        assert!(again == bytes, "inode {}", inode.ino);
        if let Some(seed) = inode.checksum_seed(&self.superblock).filter(|_| at.is_some()) {
            let (found, computed) = extent_block_checksums(bytes, seed).unwrap();
            assert_eq!(found, computed);
        }
        match node.entries {
            ExtentEntries::Leaf(list) => {
                let blocks = |e: dovetail_ext::format::Extent| {
                    (0..u32::from(e.len))
                        .map(move |n| (e.block + n, BlockAddr(e.start.0 + u64::from(n))))
                };
                found.extend(list.into_iter().flat_map(blocks));
            }
            ExtentEntries::Index(list) => list.into_iter().for_each(|index| {
                self.seen.extent_blocks += 1;
                let bytes = self.block(index.node);
                self.extents(inode, &bytes, index.node, found);
            }),
        }
    }

    fn directory_block(&mut self, dir: &Inode, number: u32, at: BlockAddr) {
        let bytes = self.block(at);
        let seed = dir.checksum_seed(&self.superblock);
        let format = DirFormat {
            has_type: self.superblock.incompat.has(Incompat::FILETYPE),
            has_checksum: seed.is_some(),
        };
        let entries = DirBlock::new(&bytes, format, dir.ino, number).entries().count();
        let indexed = dir.flags.has(InodeFlags::INDEX) && dx_table_offset(&bytes).is_some();
        if indexed {
            self.seen.index_blocks += 1;
            assert!(entries == 2 || number > 0);
            self.index_block(dir, number, &bytes);
        } else {
            self.seen.directory_blocks += 1;
        }
        if let Some(seed) = seed {
            let sums = if indexed {
                dx_block_checksums(&bytes, seed)
            } else {
                dir_block_checksums(&bytes, seed)
            };
            let (found, computed) = sums.unwrap();
            assert_eq!(found, computed, "directory {}, block {number}", dir.ino);
        }
    }

    /// Every name of a leaf has a hash between that of its entry and the next one.
    fn index_block(&self, dir: &Inode, number: u32, bytes: &[u8]) {
        let has_checksum = self.superblock.checksum_seed().is_some();
        let node = if number == 0 {
            DxBlock::parse_root(bytes, dir.ino, has_checksum, false).unwrap()
        } else {
            DxBlock::parse_node(bytes, dir.ino, number, has_checksum).unwrap()
        };
        let mut again = bytes.to_vec();
        node.encode(&mut again);
        assert!(again == bytes, "directory {}, block {number}", dir.ino);
        let Some(info) = node.info.filter(|info| info.indirect_levels == 0) else { return };
        let version = self.superblock.hash_version(info.hash_version);
        let format = DirFormat { has_type: true, has_checksum };
        for (index, entry) in node.entries.iter().enumerate() {
            let leaf = self.block(self.clone_map(dir, entry.block));
            for record in DirBlock::new(&leaf, format, dir.ino, entry.block).entries() {
                let (hash, _) =
                    name_hash(record.unwrap().name, version, self.superblock.hash_seed).unwrap();
                let position = node.position(hash);
                assert!(
                    position == index || node.entries[index + 1].hash & 1 == 1,
                    "{hash:#x} {position} {index}"
                );
            }
        }
    }

    fn clone_map(&self, dir: &Inode, block: u32) -> BlockAddr {
        if !dir.flags.has(InodeFlags::EXTENTS) {
            return self.mapped(dir, block);
        }
        let mut check = Check {
            device: self.device.clone(),
            superblock: self.superblock.clone(),
            seen: Seen::default(),
        };
        check.blocks_of(dir).into_iter().find(|(n, _)| *n == block).unwrap().1
    }
}

#[test]
fn what_a_kernel_wrote_as_ext4() {
    let (superblock, seen) = check(kernel_image("ext4-default"));
    assert!(
        superblock.compat.has(Compat::HAS_JOURNAL)
            && superblock.ro_compat.has(RoCompat::METADATA_CSUM)
    );
    assert!(superblock.incompat.without(Incompat::WRITTEN) == Incompat(0));
    assert!(superblock.ro_compat.without(RoCompat::WRITTEN) == RoCompat(0));
    assert!(seen.inodes > 1000 && seen.extent_blocks > 0 && seen.directory_blocks > 20, "{seen:?}");
    assert!(seen.index_blocks > 0 && seen.inline_xattrs > 0, "{seen:?}");
}

#[test]
fn what_a_kernel_wrote_as_ext3() {
    let (superblock, seen) = check(kernel_image("ext3-default"));
    assert_eq!(superblock.checksum_seed(), None);
    assert!(
        seen.inodes > 1000 && seen.extent_blocks == 0 && seen.directory_blocks > 20,
        "{seen:?}"
    );
    assert!(seen.index_blocks > 0 && seen.inline_xattrs > 0, "{seen:?}");
}

#[test]
fn what_mke2fs_makes_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    tree::populate(folder.path());
    let folder = folder.path().to_str().unwrap();
    let shapes: [&[&str]; 8] = [
        &["-t", "ext4"],
        &["-t", "ext4", "-b", "4096", "-I", "128"],
        &["-t", "ext4", "-b", "2048", "-O", "^64bit"],
        &["-t", "ext4", "-O", "^metadata_csum,uninit_bg"],
        &["-t", "ext4", "-O", "^metadata_csum,uninit_bg,^64bit,^flex_bg"],
        &["-t", "ext4", "-O", "metadata_csum_seed,meta_bg,^resize_inode,large_dir"],
        &["-t", "ext3", "-b", "4096", "-I", "128"],
        &["-t", "ext2", "-r", "1", "-b", "1024", "-O", "^filetype"],
    ];
    for shape in shapes {
        let image = TempImage::mke2fs(128 << 20, &[shape, &["-d", folder]].concat());
        let (_, seen) = check(image.load());
        assert!(seen.inodes > 900 && seen.xattr_blocks > 0, "{shape:?}: {seen:?}");
    }
}

#[test]
fn names_have_the_hashes_that_debugfs_computes() {
    let image = TempImage::mke2fs(8 << 20, &["-t", "ext4"]);
    let seed = "01020304-0506-0708-090a-0b0c0d0e0f10";
    let words = [0x0403_0201, 0x0807_0605, 0x0C0B_0A09, 0x100F_0E0D];
    let long = "x".repeat(200);
    for name in [
        "a",
        "abcd",
        "lost+found",
        "a-name-of-thirty-two-bytes-00000",
        "\u{e4}\u{f6}\u{fc}-\u{65e5}",
        &long,
    ] {
        for algorithm in 0..3 {
            for unsigned in [false, true] {
                let number = algorithm + if unsigned { 3 } else { 0 };
                let request = format!("dx_hash -h {number} -s {seed} {name}");
                let said = tool("debugfs", &["-R", &request, image.text()]);
                let (hash, minor) =
                    name_hash(name.as_bytes(), HashVersion { algorithm, unsigned }, words).unwrap();
                let ours = format!("Hash of {name} is 0x{hash:x} (minor 0x{minor:x})");
                assert_eq!(said.trim(), ours, "{request}");
            }
        }
    }
}
