//! Decoding and encoding what a real kernel wrote gives the same bytes again.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::sync::OnceLock;

use crate::common::kernel_image;
use dovetail_block::{BlockBytes, Content, ImageDevice, Lba, MemoryDevice};
use dovetail_f2fs::format::{
    Bitmaps, BlockAddr, Checkpoint, CheckpointFlags, DentryBlock, DentryBlockMut, DirEntry, Nid,
    SIT_ENTRIES_IN_BLOCK, SegNo, Superblock, Variant, Xattr, compact_block_count, compact_journals,
    compact_summaries, encode_xattrs, name_hash, nat_block_address, nat_block_other, nat_entry,
    parse_compact, put_written_kib, set_nat_entry, set_sit_entry, sit_block_address,
    sit_block_other, sit_entry, ssa_address, summaries, summary_block, summary_kind, written_kib,
};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{Visit, Volume};
use proptest::prelude::*;

const IMAGES: [&str; 4] = ["f2fs-default", "f2fs-features", "f2fs-largenat-sections", "f2fs-crash"];

struct Image {
    name: &'static str,
    memory: MemoryDevice,
    superblock: Superblock,
    checkpoint: Checkpoint,
    bitmaps: Bitmaps,
}

impl Image {
    fn open(name: &'static str) -> Self {
        let memory = kernel_image(name);
        let volume = Volume::open(memory.clone()).unwrap();
        let (superblock, checkpoint) = (volume.superblock().clone(), volume.checkpoint().clone());
        let mut image = Self {
            name,
            memory,
            superblock,
            checkpoint,
            bitmaps: Bitmaps { sit: vec![], nat: vec![] },
        };
        let pack: Vec<u8> = (0..=image.superblock.cp_payload).flat_map(|n| image.pack(n)).collect();
        image.bitmaps = Bitmaps::parse(&pack, &image.checkpoint, &image.superblock).unwrap();
        image
    }

    fn block(&self, address: BlockAddr) -> BlockBytes {
        match self.memory.get(Lba(address.0)) {
            Content::Bytes(bytes) => **bytes,
            _ => [0; 4096],
        }
    }

    /// Block `n` of the checkpoint's pack.
    fn pack(&self, n: u32) -> BlockBytes {
        self.block(self.superblock.cp_start.plus(u64::from((self.checkpoint.pack - 1) * 512 + n)))
    }
}

fn images() -> impl Iterator<Item = Image> {
    IMAGES.into_iter().map(Image::open)
}

#[test]
fn checkpoints() {
    for image in images() {
        let head = image.pack(0);
        let mut base = head;
        base[..36].fill(0xAA); // known fields come from the value, not from the base
        base[132..176].fill(0xAA);
        base[192..].fill(0);
        let (blocks, checksum) = image.checkpoint.encode(&image.bitmaps, &image.superblock, &base);
        assert!(blocks[0] == head, "{}", image.name);
        assert_eq!(checksum, image.checkpoint.checksum);
        assert!(image.pack(image.checkpoint.total_blocks - 1) == head, "the tail is the same");
        let payload = (1..=image.superblock.cp_payload).map(|n| image.pack(n));
        assert!(payload.eq(blocks[1..].iter().copied()), "{}", image.name);
    }
}

#[test]
fn nat_blocks() {
    for image in images() {
        let variant = Variant::F2fs;
        for first in
            (0..image.superblock.max_nid()).step_by(variant.nat_entries_in_block() as usize)
        {
            let nids = (first..first + variant.nat_entries_in_block()).map(Nid);
            let (superblock, bitmap) = (&image.superblock, &image.bitmaps.nat);
            let addresses =
                [nat_block_address, nat_block_other].map(|f| f(superblock, bitmap, Nid(first)));
            assert_eq!(addresses[0].0.abs_diff(addresses[1].0), 512);
            for block in addresses.map(|address| image.block(address)) {
                let mut again = [0; 4096];
                nids.clone().for_each(|nid| {
                    set_nat_entry(&mut again, nid, nat_entry(&block, nid, variant), variant);
                });
                assert!(again == block, "{} nid {first}", image.name);
            }
        }
    }
}

#[test]
fn sit_blocks() {
    for image in images() {
        for first in (0..image.superblock.segment_count_main).step_by(SIT_ENTRIES_IN_BLOCK as usize)
        {
            let segments = (first..first + SIT_ENTRIES_IN_BLOCK).map(SegNo);
            let (superblock, bitmap) = (&image.superblock, &image.bitmaps.sit);
            let addresses =
                [sit_block_address, sit_block_other].map(|f| f(superblock, bitmap, SegNo(first)));
            assert_eq!(
                addresses[0].0.abs_diff(addresses[1].0),
                u64::from(superblock.segment_count_sit / 2 * 512)
            );
            for block in addresses.map(|address| image.block(address)) {
                let mut again = [0; 4096];
                segments.clone().for_each(|n| set_sit_entry(&mut again, n, &sit_entry(&block, n)));
                assert!(again == block, "{} segment {first}", image.name);
            }
        }
    }
}

/// The kernel leaves old journals in summary blocks where they mean nothing.
fn without_journal(mut block: BlockBytes) -> BlockBytes {
    block[3584..4091].fill(0);
    block
}

#[test]
fn summary_blocks() {
    for image in images() {
        let area = (0..image.superblock.segment_count_main)
            .map(|n| ssa_address(&image.superblock, SegNo(n)));
        let mut written = 0;
        for block in area.map(|address| image.block(address)).filter(|block| *block != [0; 4096]) {
            let again = summary_block(&summaries(&block), summary_kind(&block).unwrap());
            assert!(again == without_journal(block), "{}", image.name);
            written += 1;
        }
        assert!(written > 3, "{}: {written}", image.name);
    }
}

#[test]
fn node_summaries_of_a_clean_unmount() {
    for image in images().filter(|image| image.checkpoint.has_node_summaries()) {
        let first = image.checkpoint.total_blocks - 4;
        for n in first..first + 3 {
            let block = image.pack(n);
            let again = summary_block(&summaries(&block), summary_kind(&block).unwrap());
            assert!(again == without_journal(block), "{} block {n}", image.name);
        }
        let hot = image.pack(first);
        let mut again = without_journal(hot);
        put_written_kib(&mut again, written_kib(&hot));
        assert!(written_kib(&hot) > 1000 && again == hot, "{}: {}", image.name, written_kib(&hot));
    }
}

#[test]
fn compacted_summaries() {
    let mut compacted = 0;
    for image in images().filter(|image| image.checkpoint.flags.has(CheckpointFlags::COMPACT)) {
        let logs = &image.checkpoint.logs[..3];
        let count = |n: usize| if logs[n].in_holes { 512 } else { usize::from(logs[n].offset) };
        let counts = [0, 1, 2].map(count);
        let many = compact_block_count(counts).unwrap();
        let start = image.checkpoint.summary_start;
        let blocks: Vec<_> = (start..start + many as u32).map(|n| image.pack(n)).collect();
        let (nat, sit) = compact_journals(&blocks[0]);
        let parsed = parse_compact(&blocks, counts);
        let given = [0, 1, 2].map(|log| (&*parsed[log], counts[log]));
        let again = compact_summaries(given, &nat, &sit);
        // entries of journals beyond the count are left over from before
        let (nat_end, sit_end) = (2 + nat.len() * 13, 507 + 2 + sit.len() * 78);
        assert!(again[0][..nat_end] == blocks[0][..nat_end], "{}", image.name);
        assert!(again[0][507..sit_end] == blocks[0][507..sit_end], "{}", image.name);
        assert!(
            again[0][1014..] == blocks[0][1014..] && again[1..] == blocks[1..],
            "{}",
            image.name
        );
        compacted += 1;
    }
    assert!(compacted >= 2, "{compacted}");
}

#[test]
fn xattrs_and_access_control_lists() {
    let (mut lists, mut acls) = (0, 0);
    for name in IMAGES {
        let mut volume = Volume::open(kernel_image(name)).unwrap();
        let root = volume.root().unwrap();
        volume.walk(root, |volume, entry| {
            let inode = entry.inode.unwrap();
            let list = volume.xattrs(&inode).unwrap();
            if list.is_empty() {
                return Visit::Enter;
            }
            let layout = encode_xattrs(&list, inode.inline_xattrs().len()).unwrap();
            assert!(layout.inline == inode.inline_xattrs(), "{name} {}", inode.ino);
            assert_eq!(layout.node.is_some(), inode.xattr_nid.is_some());
            for xattr in &list {
                let again = Xattr::from_system(xattr.full_name().as_bytes(), &xattr.system_value());
                assert_eq!(again.as_ref(), Ok(xattr));
                acls += usize::from(xattr.system_value() != xattr.value);
            }
            lists += 1;
            Visit::Enter
        });
    }
    assert!(lists > 10 && acls > 1, "{lists} {acls}");
}

/// The entries of directory blocks: taken out, and inserted again in the same order.
#[test]
fn directory_entries() {
    let mut blocks = 0;
    for image in images() {
        for (_, content) in image.memory.used() {
            let Content::Bytes(block) = content else { continue };
            let entries: Result<Vec<_>, _> =
                DentryBlock::block(block, Nid(3)).entries_from(0).collect();
            let hashed = |entry: &DirEntry| entry.hash == name_hash(&entry.name);
            let Ok(entries) = entries else { continue };
            if entries.len() < 3 || !entries.iter().all(|(_, entry)| hashed(entry)) {
                continue; // no block of a directory
            }
            let mut bytes = **block;
            let mut edit = DentryBlockMut::block(&mut bytes);
            for (slot, entry) in &entries {
                assert_eq!(edit.find(&entry.name, entry.hash), Some(*slot));
                edit.remove(*slot);
                assert!(edit.find(&entry.name, entry.hash).is_none());
            }
            assert!(edit.is_empty());
            for (_, entry) in &entries {
                edit.insert(&entry.name, entry.hash, entry.ino, entry.file_type).unwrap();
            }
            let again: Vec<_> =
                DentryBlock::block(&bytes, Nid(3)).entries().map(Result::unwrap).collect();
            assert!(again.iter().eq(entries.iter().map(|(_, entry)| entry)));
            blocks += 1;
        }
    }
    assert!(blocks > 20, "{blocks}");
}

#[test]
fn superblocks() {
    for image in images() {
        let block = image.block(BlockAddr(0));
        let mut base = block;
        base[1024..1024 + 108].fill(0xAA); // known fields come from the value, not from the base
        base[1024 + 32..1024 + 36].copy_from_slice(&block[1024 + 32..1024 + 36]);
        base[1024 + 1148..1024 + 1668].fill(0xAA);
        assert!(image.superblock.encode(&base) == block, "{}", image.name);
        assert!(image.superblock.cold_extensions.contains(&b"mp".to_vec()));
        assert!(image.superblock.hot_extensions.contains(&b"db".to_vec()));
    }
}

/// The bitmaps stand in three ways: in the head, half in the payload, and after the checksum.
fn layouts() -> [(Superblock, Checkpoint); 4] {
    [(1 << 30, false), (4 << 40, false), (1 << 30, true), (4 << 40, true)].map(
        |(bytes, large_nat)| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("image");
            std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            let options = MkfsOptions { large_nat, ..MkfsOptions::default() };
            mkfs(&mut ImageDevice::open_read_write(&path).unwrap(), &options).unwrap();
            let volume = Volume::open(ImageDevice::open_read_only(&path).unwrap()).unwrap();
            (volume.superblock().clone(), volume.checkpoint().clone())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checkpoints_of_any_layout_and_content(
        bits in prop::collection::vec(any::<u8>(), 997),
        numbers: [u32; 7],
        offsets in prop::array::uniform6((0..512_u16, any::<bool>())),
        flags: u32,
    ) {
        static LAYOUTS: OnceLock<[(Superblock, Checkpoint); 4]> = OnceLock::new();
        for (superblock, checkpoint) in LAYOUTS.get_or_init(layouts) {
            let mut checkpoint = checkpoint.clone();
            let kept = CheckpointFlags::LARGE_NAT.with(CheckpointFlags::UMOUNT).with(CheckpointFlags::COMPACT);
            checkpoint.flags = CheckpointFlags(flags).without(kept).with(CheckpointFlags(checkpoint.flags.0 & kept.0));
            checkpoint.version = u64::from(numbers[0]) << 20;
            checkpoint.valid_block_count = u64::from(numbers[1]) * 3;
            checkpoint.elapsed_s = u64::from(numbers[2]) << 9;
            (checkpoint.valid_nodes, checkpoint.valid_inodes) = (numbers[3], numbers[4]);
            (checkpoint.free_segments, checkpoint.next_free_nid) = (numbers[5], numbers[6]);
            for (log, (offset, in_holes)) in checkpoint.logs.iter_mut().zip(offsets) {
                (log.offset, log.in_holes) = (offset, in_holes);
            }
            let mut bits = bits.iter().copied().cycle();
            let mut bitmap = |segments: u32| bits.by_ref().take(segments as usize / 2 * 64).collect();
            let sit = bitmap(superblock.segment_count_sit);
            let bitmaps = Bitmaps { sit, nat: bitmap(superblock.segment_count_nat) };
            let (blocks, checksum) = checkpoint.encode(&bitmaps, superblock, &[0; 4096]);
            prop_assert_eq!(blocks.len() as u32, 1 + superblock.cp_payload);
            checkpoint.checksum = checksum;
            prop_assert_eq!(&Checkpoint::parse(&blocks[0], 1, superblock), &Ok(checkpoint.clone()));
            let found = Bitmaps::parse(blocks.as_flattened(), &checkpoint, superblock);
            prop_assert_eq!(found, Ok(bitmaps));
        }
    }
}
