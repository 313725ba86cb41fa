//! Each kind of damage has its own finding, and fsck.f2fs is never stricter.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it saw"
)]

use crate::common;
use crate::common::bed::{Bed, copied, zoned_beds};
use crate::common::kernel_image;
use crate::common::lab::{At, Lab, Referee};
use crate::common::mutation::{Mutation, OF_IPLFS, one};
use dovetail_block::MemoryDevice;
use dovetail_f2fs::Volume;
use dovetail_f2fs::format::name_hash;
use dovetail_f2fs::fsck::{
    Finding, Options, Remedy, RepairError, Severity, check, repair, salvage,
};
use dovetail_testkit::{Recording, RecordingDevice};
use dovetail_time::SimTime;
use dovetail_vfs::Moment;
use dovetail_vfs::kit::VolumeTree;

const FILE: &str = "a/rnd";
const BIG: &str = "a/big.bin";

/// The first of the nids of an inode that lead to nodes.
fn nid_slot(lab: &Lab, path: &str, slot: usize) -> At {
    lab.in_inode(path, 4052 + 4 * slot)
}

/// The direct node at the start of a big file.
fn direct(lab: &mut Lab) -> u32 {
    let at = nid_slot(lab, BIG, 0);
    lab.u32(at)
}

fn indirect(lab: &mut Lab) -> u32 {
    let at = nid_slot(lab, BIG, 2);
    lab.u32(at)
}

/// A block of data whose segment no log writes to.
fn settled(lab: &mut Lab) -> At {
    let at = lab.data(BIG, 100);
    assert!(!lab.is_log(lab.segment_of(at).0));
    at
}

/// A node whose segment no log writes to.
fn settled_node(lab: &mut Lab) -> (At, u32) {
    let inode = (1..900).map(|n| format!("a/many/file-with-a-rather-long-name-{n:05}.txt"));
    let mut volume = Volume::open(lab.image.clone()).unwrap();
    for path in inode {
        let Ok(inode) = volume.resolve_link(path.as_bytes()) else { continue };
        let at = lab.node(inode.ino.0);
        if !lab.is_log(lab.segment_of(at).0) {
            return (at, inode.ino.0);
        }
    }
    panic!("all nodes lie in logs");
}

fn free_segment(lab: &mut Lab) -> u32 {
    (0..lab.superblock.segment_count_main)
        .find(|&segno| {
            let at = lab.sit(segno);
            !lab.is_log(segno) && lab.u16(at) & 0x3FF == 0
        })
        .unwrap()
}

fn main_start(lab: &Lab) -> u64 {
    lab.superblock.main_start.0
}

/// An entry behind level 0 of the large directory, and its name.
fn deep_entry(lab: &Lab) -> (common::lab::Dentry, String) {
    let level_0 = [0, 1].map(|block| lab.data("a/many", block).block);
    let mut volume = Volume::open(lab.image.clone()).unwrap();
    let inode = volume.resolve(b"a/many").unwrap();
    let names = volume.entries(&inode).unwrap().into_iter().filter(|entry| !entry.is_dot());
    let names = names.map(|entry| String::from_utf8(entry.name).unwrap());
    let mut entries = names.map(|name| (lab.dentry("a/many", &name), name));
    entries.find(|(dentry, _)| !level_0.contains(&dentry.block)).unwrap()
}

/// Flips one bit, so that the blocks of a file or directory are none of its content any more.
fn file_as_socket(lab: &mut Lab) {
    let at = lab.in_inode(FILE, 1);
    lab.flip(at, 0x40);
}

fn dir_as_device(lab: &mut Lab) {
    let at = lab.in_inode("a/many", 1);
    lab.flip(at, 0x20);
}

fn file_as_inline(lab: &mut Lab) {
    let at = lab.in_inode(FILE, 3);
    lab.flip(at, 2);
}

/// The root, which has one block.
fn root_as_inline(lab: &mut Lab) {
    let at = lab.node(3).plus(3);
    lab.flip(at, 4);
}

const LONG: &str = "file-with-a-rather-long-name-00001.txt";

const MUTATIONS: &[Mutation] = &[
    one("superblock copy 0", &["SuperblockCopy"], |lab| {
        lab.set(At { block: 0, byte: 1024 }, &[0; 4]);
    }),
    one("superblock copy 1", &["SuperblockCopy"], |lab| {
        lab.set(At { block: 1, byte: 1024 + 60 }, &[9]);
    }),
    one("superblock label of copy 1", &["SuperblocksDiffer"], |lab| {
        lab.set(At { block: 1, byte: 1024 + 124 }, b"x");
    }),
    one("both superblocks", &["Unusable"], |lab| {
        for block in [0, 1] {
            lab.set(At { block, byte: 1024 + 60 }, &[9]);
        }
    }),
    one("a log outside the main area", &["CheckpointInvalid"], |lab| {
        lab.checkpoint(84, &5000_u32.to_le_bytes());
    }),
    one("rsvd_segment_count", &["CheckpointField"], |lab| lab.checkpoint(24, &[0; 4])),
    one("unknown checkpoint flag", &["CheckpointFlag"], |lab| lab.checkpoint(135, &[0x80])),
    one("orphan flag", &["OrphanFlag"], |lab| {
        let flags = lab.checkpoint.flags.0 | 2;
        lab.checkpoint(132, &flags.to_le_bytes());
    }),
    one("valid_block_count", &["ValidBlocks"], |lab| lab.checkpoint_add(16, 1)),
    one("valid_node_count", &["ValidNodes"], |lab| lab.checkpoint_add(144, 1)),
    one("valid_inode_count", &["ValidInodes"], |lab| lab.checkpoint_add(148, 1)),
    one("free_segment_count", &["FreeSegments"], |lab| lab.checkpoint_add(32, 1)),
    one("next_free_nid", &["NextFreeNid"], |lab| lab.checkpoint(152, &[0xFF; 4])),
    one("alloc_type of a node log", &["LogAllocation"], |lab| lab.checkpoint(176 + 4, &[9])),
    one(
        "two logs in one segment",
        &["LogsCollide", "LogBlockUsed", "LogTailUsed", "LogType", "SummaryNode", "SummaryType"],
        |lab| {
            // warm data is moved to where warm nodes are; what the node log says of the segment
            // then counts
            let segno = lab.checkpoint.logs[4].segment.0;
            lab.checkpoint(36, &segno.to_le_bytes());
        },
    ),
    one("blkoff at a used block", &["LogBlockUsed"], |lab| {
        let offset = lab.checkpoint.logs[4].offset - 1;
        lab.checkpoint(70, &offset.to_le_bytes());
    }),
    one(
        "a valid bit behind an appending log",
        &["LogTailUsed", "SitCount", "BlocksLeaked"],
        |lab| {
            let segno = lab.checkpoint.logs[4].segment.0;
            let at = lab.sit(segno).plus(2 + 63);
            lab.flip(at, 1);
        },
    ),
    one("type of a log's segment", &["LogType"], |lab| {
        let segno = lab.checkpoint.logs[4].segment.0;
        let at = lab.sit(segno);
        let value = lab.u16(at) & 0x3FF | 3 << 10;
        lab.set(at, &value.to_le_bytes());
    }),
    one(
        "NAT journal count",
        &[
            "JournalCount",
            "BlocksFree",
            "BlocksLeaked",
            "FooterNid",
            "InodeUnreachable",
            "ValidBlocks",
            "ValidInodes",
        ],
        |lab| {
            let at = lab.nat_journal();
            lab.set(at, &100_u16.to_le_bytes());
        },
    ),
    one("SIT journal entry for no segment", &["JournalEntry"], |lab| {
        let at = lab.sit_journal();
        let count = lab.u16(at);
        assert!(count < 6);
        lab.set(at, &(count + 1).to_le_bytes());
        lab.set(at.plus(2 + usize::from(count) * 78), &100_000_u32.to_le_bytes());
    }),
    one("SIT count", &["SitCount"], |lab| {
        let data = settled(lab);
        let at = lab.sit(lab.segment_of(data).0);
        let value = lab.u16(at) - 1;
        lab.set(at, &value.to_le_bytes());
    }),
    one("SIT type that does not exist", &["SitType"], |lab| {
        let segno = free_segment(lab);
        let at = lab.sit(segno);
        lab.set(at, &(9_u16 << 10).to_le_bytes());
    }),
    one("SIT entry below the journal's", &["SitOverridden"], |lab| {
        let journal = lab.sit_journal();
        let count = lab.u16(journal);
        assert!(count < 6);
        let segno = free_segment(lab);
        lab.set(journal, &(count + 1).to_le_bytes());
        // an entry of zeros: nothing is in use
        lab.set(journal.plus(2 + usize::from(count) * 78), &segno.to_le_bytes());
        lab.set(journal.plus(6 + usize::from(count) * 78), &[0; 74]);
        let at = lab.sit_in_table(segno).plus(10);
        lab.flip(at, 8);
    }),
    one("SIT type of another class", &["SitClass"], |lab| {
        let data = settled(lab);
        let at = lab.sit(lab.segment_of(data).0);
        let value = lab.u16(at) & 0x3FF | 4 << 10;
        lab.set(at, &value.to_le_bytes());
    }),
    one("SIT bit cleared", &["BlocksFree", "SitCount"], |lab| {
        let data = settled(lab);
        let (at, mask) = lab.valid_bit(data);
        lab.flip(at, mask);
    }),
    one("SIT bit set for nothing", &["BlocksLeaked", "SitCount"], |lab| {
        let segno = free_segment(lab);
        let at = lab.sit(segno).plus(10);
        lab.flip(at, 8);
    }),
    one("NAT entry of nid 0", &["NatZero"], |lab| {
        let at = lab.nat(0).plus(5);
        lab.set(at, &(main_start(lab) as u32).to_le_bytes());
    }),
    one("NAT entry of nid 1", &["NatReserved"], |lab| {
        let at = lab.nat(1).plus(5);
        lab.set(at, &7_u32.to_le_bytes());
    }),
    one("NAT entry without an inode", &["NatNoInode"], |lab| {
        let nid = direct(lab);
        let at = lab.nat(nid).plus(1);
        lab.set(at, &[0; 4]);
    }),
    one("NAT entry with another inode", &["NatInode"], |lab| {
        let nid = direct(lab);
        let at = lab.nat(nid).plus(1);
        lab.add(at, 1);
    }),
    one("NAT address outside", &["NatAddress", "BlocksLeaked", "ValidInodes"], |lab| {
        let (_, nid) = settled_node(lab);
        let at = lab.nat(nid).plus(5);
        lab.set(at, &3_u32.to_le_bytes());
    }),
    one("NAT entry for nothing", &["NodeUnreachable", "NatBits"], |lab| {
        let at = lab.nat(100_000);
        let address = lab.node(3).block as u32;
        lab.set(at.plus(1), &3_u32.to_le_bytes());
        lab.set(at.plus(5), &address.to_le_bytes());
    }),
    one(
        "a nid beyond the NAT",
        &["NidRange", "BlocksBeyondSize", "DataAddress", "InodeBlocks", "ValidBlocks"],
        |lab| {
            let at = nid_slot(lab, "a/s00", 4);
            lab.set(at, &[0xF0; 4]);
            let inline = lab.in_inode("a/s00", 3); // inline content leads nowhere; make it a file of blocks
            lab.set(inline, &[1]);
        },
    ),
    one("a nid that does not exist", &["NodeMissing"], |lab| {
        let at = nid_slot(lab, FILE, 4);
        lab.set(at, &200_000_u32.to_le_bytes());
    }),
    one("a node of two files", &["NodeShared"], |lab| {
        let nid = direct(lab);
        let at = nid_slot(lab, BIG, 4);
        lab.set(at, &nid.to_le_bytes());
    }),
    one("a block of two files", &["BlockShared", "BlocksLeaked", "Extent"], |lab| {
        let (from, to) = (lab.in_inode(FILE, 360 + 40), lab.in_inode(FILE, 360 + 44));
        let address = lab.u32(from);
        lab.set(to, &address.to_le_bytes());
    }),
    one(
        "footer nid",
        &["FooterNid", "BlocksLeaked", "Extent", "FreeSegments", "InodeBlocks", "ValidBlocks"],
        |lab| {
            let nid = direct(lab);
            let at = lab.node(nid).plus(4072);
            lab.add(at, 1);
        },
    ),
    one("footer ino", &["FooterInode"], |lab| {
        let nid = direct(lab);
        let at = lab.node(nid).plus(4076);
        lab.add(at, 1);
    }),
    one("footer offset of a direct node", &["FooterOffset"], |lab| {
        let nid = direct(lab);
        let at = lab.node(nid).plus(4080);
        lab.add(at, 8);
    }),
    one("footer offset of an indirect node", &["FooterOffset"], |lab| {
        let nid = indirect(lab);
        let at = lab.node(nid).plus(4080);
        lab.add(at, 8);
    }),
    one("footer cold bit", &["FooterCold"], |lab| {
        let at = lab.in_inode(FILE, 4080);
        lab.flip(at, 1);
    }),
    one("footer next pointer", &["FooterNext"], |lab| {
        let at = lab.in_inode(FILE, 4092);
        lab.set(at, &5_u32.to_le_bytes());
    }),
    one("footer version", &["FooterVersion"], |lab| {
        let at = lab.in_inode(FILE, 4084);
        let version = lab.checkpoint.version as u32 + 5;
        lab.set(at, &version.to_le_bytes());
    }),
    one("type of a data summary", &["SummaryType"], |lab| {
        let data = settled(lab);
        let at = At { byte: 4091, ..lab.summary(data) };
        lab.set(at, &[1]);
    }),
    one("summary of a node", &["SummaryNode"], |lab| {
        let (node, _) = settled_node(lab);
        let at = lab.summary(node);
        lab.add(at, 1);
    }),
    one("nid in a data summary", &["SummaryData"], |lab| {
        let data = settled(lab);
        let at = lab.summary(data);
        lab.add(at, 1);
    }),
    one("version in a data summary", &["SummaryData"], |lab| {
        let data = settled(lab);
        let at = lab.summary(data).plus(4);
        lab.flip(at, 1);
    }),
    one("place in a data summary", &["SummaryData"], |lab| {
        let data = settled(lab);
        let at = lab.summary(data).plus(5);
        lab.flip(at, 1);
    }),
    one("mode of no type", &["InodeMode"], |lab| {
        let at = lab.in_inode("a/fifo", 0);
        lab.set(at, &[0, 0]);
    }),
    one(
        "mode of a file as that of a socket",
        &["BlocksHidden", "BlocksLeaked", "DentryType", "Extent", "ValidBlocks"],
        file_as_socket,
    ),
    one(
        "mode of a directory as that of a device",
        &[
            "BlocksHidden",
            "BlocksLeaked",
            "DentryType",
            "DirectoryLinks",
            "FooterCold",
            "InodeUnreachable",
            "Links",
            "ValidBlocks",
        ],
        dir_as_device,
    ),
    one(
        "inline data of a file of blocks",
        &[
            "BlocksHidden",
            "BlocksLeaked",
            "Extent",
            "InlineReserved",
            "InlineSize",
            "InlineUnmarked",
            "ValidBlocks",
        ],
        file_as_inline,
    ),
    one(
        "inline entries of a root of blocks",
        &[
            "BlocksHidden",
            "BlocksLeaked",
            "DirectoryLinks",
            "Dots",
            "InlineReserved",
            "InlineSize",
            "InodeUnreachable",
            "ValidBlocks",
        ],
        root_as_inline,
    ),
    one("i_blocks", &["InodeBlocks"], |lab| {
        let at = lab.in_inode(FILE, 24);
        lab.add(at, 1);
    }),
    one("i_size of 2^60", &["InodeSize"], |lab| {
        let at = lab.in_inode(FILE, 16 + 7);
        lab.set(at, &[0x10]);
    }),
    one("i_size too small", &["BlocksBeyondSize"], |lab| {
        let at = lab.in_inode(FILE, 16);
        lab.set(at, &1_000_000_u64.to_le_bytes());
    }),
    one("an empty link", &["SymlinkSize"], |lab| {
        let at = lab.in_inode("a/link", 16);
        lab.set(at, &[0; 8]);
    }),
    one("a pointer outside", &["DataAddress", "BlocksLeaked", "Extent"], |lab| {
        let at = lab.in_inode(FILE, 360 + 40);
        lab.set(at, &5_u32.to_le_bytes());
    }),
    one("the mark of a compressed cluster", &["ClusterMark", "BlocksLeaked", "Extent"], |lab| {
        let at = lab.in_inode(FILE, 360 + 40);
        lab.set(at, &0xFFFF_FFFE_u32.to_le_bytes());
    }),
    one("compressed without the feature", &["Compression"], |lab| {
        let at = lab.in_inode(FILE, 80);
        lab.flip(at, 4);
    }),
    one("a pointer cleared", &["InodeBlocks", "BlocksLeaked", "Extent", "ValidBlocks"], |lab| {
        let at = lab.in_inode(FILE, 360 + 40);
        lab.set(at, &[0; 4]);
    }),
    one("extent", &["Extent"], |lab| {
        let at = lab.in_inode(BIG, 352);
        lab.set(at, &[1, 0, 0, 0]);
        lab.set(at.plus(4), &[3, 0, 0, 0]);
    }),
    one("extra attributes without the feature", &["ExtraFlag", "ExtraSize"], |lab| {
        let at = lab.in_inode("a/fifo", 3);
        lab.flip(at, 0x20);
        lab.set(at.plus(357), &38_u16.to_le_bytes());
    }),
    one("inline data of a fifo", &["InlineFlags"], |lab| {
        let at = lab.in_inode("a/fifo", 3);
        lab.flip(at, 2);
    }),
    one("reserved word before inline data", &["InlineReserved"], |lab| {
        let at = lab.in_inode("a/s00", 360);
        lab.set(at, &[1]);
    }),
    one("too much inline data", &["InlineSize"], |lab| {
        let at = lab.in_inode("a/s00", 16);
        lab.set(at, &3500_u32.to_le_bytes());
    }),
    one("inline data not marked", &["InlineUnmarked"], |lab| {
        let at = lab.in_inode("a/s00", 3);
        lab.flip(at, 8);
    }),
    one("a node of an inline file", &["InlineNodes"], |lab| {
        let at = nid_slot(lab, "a/s00", 0);
        lab.set(at, &7_u32.to_le_bytes());
    }),
    one("length of an inode's name", &["InodeNameLength", "ParentName"], |lab| {
        let at = lab.in_inode("a/s08", 88);
        lab.set(at, &256_u32.to_le_bytes());
    }),
    one("casefold flag", &["Casefold"], |lab| {
        let at = lab.in_inode("a/s00", 83);
        lab.flip(at, 0x40);
    }),
    one("nanoseconds", &["Nanoseconds"], |lab| {
        let at = lab.in_inode(FILE, 56);
        lab.set(at, &1_000_000_000_u32.to_le_bytes());
    }),
    one("failed cleanings", &["GcFailures"], |lab| {
        let at = lab.in_inode(FILE, 72);
        lab.set(at, &[1]);
    }),
    one("links of a file", &["Links"], |lab| {
        let at = lab.in_inode(FILE, 12);
        lab.add(at, 1);
    }),
    one("links of a file with two names", &["Links"], |lab| {
        let at = lab.in_inode(BIG, 12);
        lab.add(at, u32::MAX);
    }),
    one("links of a directory", &["DirectoryLinks"], |lab| {
        let at = lab.in_inode("a", 12);
        lab.add(at, 1);
    }),
    one("i_pino of a file", &["ParentInode"], |lab| {
        let at = lab.in_inode("a/s08", 84);
        lab.add(at, 1);
    }),
    one("i_name of a file", &["ParentName"], |lab| {
        let at = lab.in_inode("a/s08", 92);
        lab.set(at, b"t");
    }),
    one("i_pino of a directory", &["DotDotInode", "DirectoryParent"], |lab| {
        let at = lab.in_inode("a/d1", 84);
        lab.add(at, 1);
    }),
    one("magic of xattrs", &["Xattrs"], |lab| {
        let at = lab.in_inode("a/s03", 4052 - 200);
        lab.flip(at, 1);
    }),
    one("length of an xattr", &["Xattrs"], |lab| {
        let at = lab.in_inode("a/s03", 4052 - 200 + 26);
        lab.set(at, &4000_u16.to_le_bytes());
    }),
    one("name space of an xattr", &["XattrIndex"], |lab| {
        let at = lab.in_inode("a/s03", 4052 - 200 + 24);
        lab.set(at, &[77]);
    }),
    one(
        "the root is a file",
        &["RootType", "FooterCold", "GcFailures", "InodeUnreachable", "Links"],
        |lab| {
            let at = lab.node(3);
            lab.set(at, &0o100_644_u16.to_le_bytes());
        },
    ),
    one(
        "\".\" has another name",
        &["Dots", "DentryHash", "DirectoryLinks", "DirectoryTwice"],
        |lab| {
            let dentry = lab.dentry("a/d1", ".");
            lab.set(dentry.name(), b"x");
        },
    ),
    one("\".\" leads elsewhere", &["DotInode"], |lab| {
        let dentry = lab.dentry("a/d1", ".");
        lab.add(dentry.at(4), 1);
    }),
    one("\"..\" leads elsewhere", &["DotDotInode"], |lab| {
        let dentry = lab.dentry("a/d1", "..");
        lab.add(dentry.at(4), 1);
    }),
    one("i_current_depth too small", &["DirectoryDepth"], |lab| {
        let at = lab.in_inode("a/many", 72);
        lab.set(at, &[1]);
    }),
    one("i_current_depth too large", &["DepthRange"], |lab| {
        let at = lab.in_inode("a/many", 72);
        lab.set(at, &[64]);
    }),
    one("i_size of a directory too small", &["DirectorySize"], |lab| {
        let at = lab.in_inode("a/many", 16);
        lab.set(at, &4096_u64.to_le_bytes());
    }),
    one("an entry beyond the NAT", &["DentryInode", "InodeUnreachable"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        lab.set(dentry.at(4), &[0xFF; 4]);
    }),
    one("an entry for nothing", &["DentryDangling", "InodeUnreachable"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        lab.set(dentry.at(4), &200_000_u32.to_le_bytes());
    }),
    one("an entry for a node that is no inode", &["DentryNode", "InodeUnreachable"], |lab| {
        let nid = direct(lab);
        let dentry = lab.dentry("a/many", LONG);
        lab.set(dentry.at(4), &nid.to_le_bytes());
    }),
    one("an entry removed", &["InodeUnreachable"], |lab| {
        let dentry = lab.dentry("a", "s30");
        let (at, mask) = dentry.bit(0);
        lab.flip(at, mask);
    }),
    one("the entry of a directory removed", &["InodeUnreachable", "DirectoryLinks"], |lab| {
        let dentry = lab.dentry("a", "d1");
        let (at, mask) = dentry.bit(0);
        lab.flip(at, mask);
    }),
    one("type of an entry", &["DentryType"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        lab.set(dentry.at(10), &[3]);
    }),
    one("type of an entry that does not exist", &["DentryType"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        lab.set(dentry.at(10), &[12]);
    }),
    one("an entry without a name", &["DentryLength", "InodeUnreachable"], |lab| {
        let dentry = lab.dentry("a", "s30");
        lab.set(dentry.at(8), &[0, 0]);
    }),
    one("a name with a slash", &["DentryName", "DentryHash", "ParentName"], |lab| {
        let dentry = lab.dentry("a", "s30");
        lab.set(dentry.name(), b"/");
    }),
    one("a later slot of a long name is free", &["DentrySlots"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        let (at, mask) = dentry.bit(2);
        lab.flip(at, mask);
    }),
    one("a later slot of a long name has a length", &["DentryTail"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        lab.set(dentry.at(11 + 8), &[4]);
    }),
    one("hash of an entry", &["DentryHash"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        lab.flip(dentry.at(0), 1);
    }),
    one("two entries of one name", &["DuplicateName", "ParentName", "DentryHash"], |lab| {
        let dentry = lab.dentry("a", "s30");
        lab.set(dentry.name(), b"s31");
    }),
    one("a map of empty NAT blocks", &["NatBits"], |lab| {
        let block = lab.pack(lab.checkpoint.pack) + 511;
        lab.flip(At { block, byte: 8 + 64 + 20 }, 1);
    }),
    one("an entry in a wrong bucket", &["DentryBucket", "ParentName"], |lab| {
        let (dentry, name) = deep_entry(lab);
        let bucket = |name: &str| name_hash(name.as_bytes()) % 2;
        let other = ('a'..='z').map(|letter| name.replace("file", &format!("fil{letter}")));
        let other = other.into_iter().find(|other| bucket(other) != bucket(&name)).unwrap();
        lab.set(dentry.name(), other.as_bytes());
        lab.set(dentry.at(0), &name_hash(other.as_bytes()).to_le_bytes());
    }),
    one(
        "a cycle of directories that nothing leads to",
        &["DirectoryTwice", "DentryType", "DirectoryLinks", "InodeUnreachable"],
        |lab| {
            let [inner, outer] = ["a/d1/d2", "a/d1/d2/d3/d4/d5"].map(|path| lab.ino(path));
            let (at, mask) = lab.dentry("a/d1", "d2").bit(0);
            let pino = lab.in_inode("a/d1/d2", 84);
            let (dots, deep) =
                (lab.dentry("a/d1/d2", ".."), lab.dentry("a/d1/d2/d3/d4/d5", "deep"));
            lab.flip(at, mask);
            lab.set(pino, &outer.to_le_bytes());
            lab.set(dots.at(4), &outer.to_le_bytes());
            lab.set(deep.at(4), &inner.to_le_bytes());
        },
    ),
    one(
        "a directory listed twice",
        &["DirectoryTwice", "DentryType", "InodeUnreachable", "DirectoryLinks"],
        |lab| {
            let ino = lab.ino("a/d1");
            let dentry = lab.dentry("a", "s30");
            lab.set(dentry.at(4), &ino.to_le_bytes());
        },
    ),
];

/// Damage that needs a volume with extra attributes and inode checksums.
const WITH_FEATURES: &[Mutation] = &[
    one("a byte of an inode with a checksum", &["InodeChecksum"], |lab| {
        let at = lab.in_inode(FILE, 4);
        lab.flip(at, 1);
    }),
    one("size of the extra attributes", &["ExtraSize"], |lab| {
        let at = lab.in_inode("a/fifo", 360);
        lab.set(at, &4000_u16.to_le_bytes());
    }),
    one("size of the extra attributes that is no multiple of 4", &["ExtraSize"], |lab| {
        let at = lab.in_inode("a/fifo", 360);
        lab.set(at, &38_u16.to_le_bytes());
    }),
    one("size of the inline xattrs", &["InlineXattrSize"], |lab| {
        let at = lab.in_inode("a/fifo", 362);
        lab.set(at, &910_u16.to_le_bytes());
    }),
];

/// Damage to a volume with a large NAT bitmap and sections of four segments.
const WITH_LARGE_NAT: &[Mutation] = &[
    one("i_blocks on a volume with a large NAT", &["InodeBlocks"], |lab| {
        let at = lab.in_inode(FILE, 24);
        lab.add(at, 1);
    }),
    one("hash of an entry on a volume with a large NAT", &["DentryHash"], |lab| {
        let dentry = lab.dentry("a/many", LONG);
        lab.flip(dentry.at(0), 1);
    }),
    one("valid_node_count on a volume with a large NAT", &["ValidNodes"], |lab| {
        lab.checkpoint_add(144, 1);
    }),
    one("free_segment_count on a volume with a large NAT", &["FreeSegments"], |lab| {
        lab.checkpoint_add(32, 1);
    }),
];

/// Damage to a volume with an orphan.
const WITH_ORPHAN: &[Mutation] = &[
    one("index of an orphan block", &["OrphanBlock"], |lab| {
        let at = orphans(lab);
        lab.set(at.plus(4084), &[9]);
    }),
    one("links of an orphan", &["OrphanLinks"], |lab| {
        let at = orphans(lab);
        let ino = lab.u32(at);
        let at = lab.node(ino).plus(12);
        lab.set(at, &[1]);
    }),
    one("an orphan with a name", &["OrphanNamed", "InodeUnreachable"], |lab| {
        let (at, ino) = (orphans(lab), lab.ino(FILE));
        lab.set(at, &ino.to_le_bytes());
    }),
    one("an orphan that does not exist", &["OrphanMissing", "InodeUnreachable"], |lab| {
        let at = orphans(lab);
        lab.set(at, &200_000_u32.to_le_bytes());
    }),
    one("an orphan listed twice", &["OrphanTwice"], |lab| {
        let at = orphans(lab);
        let (ino, count) = (lab.u32(at), lab.u32(at.plus(4088)));
        lab.set(at.plus(4 * count as usize), &ino.to_le_bytes());
        lab.set(at.plus(4088), &(count + 1).to_le_bytes());
    }),
    one("orphans without the flag", &["OrphanFlag"], |lab| {
        let flags = lab.checkpoint.flags.0 & !2;
        lab.checkpoint(132, &flags.to_le_bytes());
    }),
];

/// Damage to a volume that was not unmounted.
const NOT_UNMOUNTED: &[Mutation] = &[
    one("size of the pack", &["CheckpointSize"], |lab| {
        let total = lab.checkpoint.total_blocks + 1;
        lab.checkpoint(136, &total.to_le_bytes());
    }),
    one("blkoff too low", &["LogBlockUsed"], |lab| {
        let offset = lab.checkpoint.logs[4].offset - 1;
        lab.checkpoint(70, &offset.to_le_bytes());
    }),
];

fn orphans(lab: &mut Lab) -> At {
    At { block: lab.pack(lab.checkpoint.pack) + 1 + u64::from(lab.superblock.cp_payload), byte: 0 }
}

/// The default image with `a/s30` as an orphan: without a name, without links, listed in an orphan
/// block.
fn with_orphan() -> MemoryDevice {
    let mut lab = Lab::new(kernel_image("f2fs-default"));
    let ino = lab.ino("a/s30");
    let (at, mask) = lab.dentry("a", "s30").bit(0);
    let links = lab.in_inode("a/s30", 12);
    lab.flip(at, mask);
    lab.set(links, &[0; 4]);
    let (start, total) = (lab.pack(lab.checkpoint.pack), lab.checkpoint.total_blocks);
    for block in (start + 1..start + u64::from(total)).rev() {
        *lab.bytes(block + 1) = *lab.bytes(block);
    }
    let mut orphans = [0; 4096];
    orphans[..4].copy_from_slice(&ino.to_le_bytes());
    orphans[4084..4092].copy_from_slice(&[1, 0, 1, 0, 1, 0, 0, 0]);
    *lab.bytes(start + 1) = orphans;
    let flags = lab.checkpoint.flags.0 | 2;
    lab.checkpoint(136, &(total + 1).to_le_bytes());
    lab.checkpoint(140, &(lab.checkpoint.summary_start + 1).to_le_bytes());
    lab.checkpoint(132, &flags.to_le_bytes());
    lab.image
}

fn kinds(bed: &Bed, image: &MemoryDevice) -> Vec<(&'static str, Severity)> {
    let report = check(bed.device(image), Options::default(), |_| {}).unwrap();
    let mut kinds: Vec<_> = report.kinds().map(|(kind, _)| (kind.name, kind.severity)).collect();
    kinds.retain(|(_, severity)| *severity != Severity::Note);
    kinds.sort_unstable();
    kinds
}

fn check_all(image: MemoryDevice, mutations: &[Mutation]) -> usize {
    check_on(&Bed::default(), image, mutations)
}

fn check_on(bed: &Bed, image: MemoryDevice, mutations: &[Mutation]) -> usize {
    let sound = Lab::new(image);
    assert_eq!(kinds(bed, &sound.image), []);
    let mut referee = Referee::new(&sound.image);
    let sound_verdict = referee.judge(&sound.image);
    assert!(sound_verdict.clean, "{sound_verdict:?}");
    let (mut seen, mut wrong) = (0, Vec::new());
    for mutation @ Mutation { name, damage, .. } in mutations {
        let mut lab = sound.clone();
        damage(&mut lab);
        let expected = mutation.sorted_kinds();
        let found = kinds(bed, &lab.image);
        let mut names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
        names.retain(|name| !OF_ZONES.contains(name)); // that depends on where the logs are
        let is_ours = bed.is_zoned(); // no kernel's: it has neither extents nor a NAT journal
        let as_expected = if is_ours {
            names.contains(&mutation.kinds[0]) && names.iter().all(|name| expected.contains(name))
        } else {
            names == expected
        };
        let verdict = referee.judge(&lab.image);
        let error = found.iter().any(|(_, severity)| *severity == Severity::Error);
        println!(
            "{name:45} {names:?}; fsck.f2fs: {}",
            if verdict.clean { "clean" } else { "complains" }
        );
        seen += usize::from(!verdict.clean);
        if !as_expected {
            wrong.push(format!("{name}: {names:?} instead of {expected:?}"));
        }
        if !verdict.clean && !error {
            wrong.push(format!("{name}: fsck.f2fs is stricter: {:?}", verdict.complaints));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} mutations, fsck.f2fs sees {seen}", mutations.len());
    seen
}

#[test]
fn one_damage_one_finding_and_fsck_f2fs_is_never_stricter() {
    let seen = check_all(kernel_image("f2fs-default"), MUTATIONS);
    assert!(MUTATIONS.len() >= 80 && seen < MUTATIONS.len());
    check_all(kernel_image("f2fs-features"), WITH_FEATURES);
    check_all(with_orphan(), WITH_ORPHAN);
    check_all(kernel_image("f2fs-largenat-sections"), WITH_LARGE_NAT);
    check_all(kernel_image("f2fs-crash"), NOT_UNMOUNTED);
}

/// Kinds of zoned volumes: `zoned.rs` has them.
const OF_ZONES: [&str; 3] = ["LogPointer", "ZoneLeft", "BeyondPointer"];

#[test]
fn most_kinds_have_a_mutation() {
    let all = [MUTATIONS, WITH_FEATURES, WITH_ORPHAN, NOT_UNMOUNTED].concat();
    let covered = |kind: &str| all.iter().any(|mutation| mutation.kinds.contains(&kind));
    let elsewhere = |name: &str| OF_IPLFS.contains(&name) || OF_ZONES.contains(&name);
    let of_f2fs = Finding::KINDS.iter().filter(|kind| !elsewhere(kind.name));
    let missing: Vec<_> =
        of_f2fs.filter(|kind| !covered(kind.name)).map(|kind| kind.name).collect();
    println!("without a mutation: {missing:?}");
    assert!(missing.len() <= 6, "{missing:?}");
}

/// A repair of each mutation: what is repairable is gone afterwards, for us and for fsck.f2fs; the
/// rest stays as it is.
#[test]
fn what_needs_no_guess_is_repaired_and_stays_repaired() {
    let mut repairs = Repairs::default();
    for (image, mutations) in [
        (kernel_image("f2fs-default"), MUTATIONS),
        (kernel_image("f2fs-features"), WITH_FEATURES),
        (with_orphan(), WITH_ORPHAN),
        (kernel_image("f2fs-largenat-sections"), WITH_LARGE_NAT),
    ] {
        repairs.of_all(&Bed::default(), image, mutations);
    }
    println!("{repairs:?}");
    assert!(repairs.repaired >= 45, "{repairs:?}");
}

/// A type or flag that denies the blocks of an inode is not believed.
#[test]
fn one_bit_of_mode_or_flags_does_not_cost_the_content() {
    let sound = Lab::new(kernel_image("f2fs-default"));
    for damage in [file_as_socket, dir_as_device, file_as_inline, root_as_inline] {
        let mut lab = sound.clone();
        damage(&mut lab);
        let before = kinds(&Bed::default(), &lab.image);
        let is_hidden = |error: &RepairError| {
            let RepairError::Hidden(finding) = error else { return false };
            finding.kind().name == "BlocksHidden"
        };
        let refused = repair(&mut lab.image).unwrap_err();
        assert!(is_hidden(&refused), "{refused}");
        let refused = salvage(&mut lab.image, Moment::at(SimTime::ZERO)).unwrap_err();
        assert!(is_hidden(&refused), "{refused}");
        assert_eq!(kinds(&Bed::default(), &lab.image), before, "nothing was written");
    }
}

/// Repairs of mutations by their outcome, and the cuts in them.
#[derive(Debug, Default)]
struct Repairs {
    repaired: usize,
    refused: usize,
    cuts: usize,
}

impl Repairs {
    fn of_all(&mut self, bed: &Bed, image: MemoryDevice, mutations: &[Mutation]) {
        let sound = Lab::new(image);
        let mut referee = Referee::new(&sound.image);
        for Mutation { name, damage, .. } in mutations {
            let mut lab = sound.clone();
            damage(&mut lab);
            self.of_one(name, bed, &lab.image, &mut referee);
        }
    }

    fn of_one(&mut self, name: &str, bed: &Bed, image: &MemoryDevice, referee: &mut Referee) {
        let before = kinds(bed, image);
        let guesses = before.iter().filter(|(kind, _)| remedy(kind) != Remedy::Repaired).count();
        let mut device = RecordingDevice::over(bed.device(image), image.clone());
        let recording = device.recording();
        match repair(&mut device) {
            Err(error) => {
                assert!(guesses > 0, "{name}: {error}");
                assert!(recording.events().is_empty(), "{name}: nothing is written");
                self.refused += 1;
                return;
            }
            Ok(done) => assert_eq!(done.is_empty(), recording.events().is_empty(), "{name}"),
        }
        let (repaired_image, repaired_bed) = (recording.newest(), device.into_inner().bed());
        let after = kinds(&repaired_bed, &repaired_image);
        let left: Vec<_> =
            after.iter().filter(|(kind, _)| remedy(kind) == Remedy::Repaired).collect();
        assert!(left.is_empty(), "{name}: {before:?}, then {after:?}");
        assert!(after.len() <= guesses, "{name}: {before:?}, then {after:?}");
        assert_eq!(repair(repaired_bed.device(&repaired_image)), Ok(vec![]), "{name}");
        if guesses == 0 {
            let verdict = referee.judge(&repaired_image);
            assert!(verdict.clean, "{name}: {:?}", verdict.complaints);
            self.cuts += cut_everywhere(name, (&recording, &repaired_bed), &before, &after);
            self.repaired += 1;
        }
    }
}

fn remedy(kind: &str) -> Remedy {
    Finding::KINDS.iter().find(|known| known.name == kind).unwrap().remedy
}

/// A power cut during the repair leaves the volume as it was, or repaired; a summary or superblock
/// may be repaired before the rest, and zones that the repair had begun may be left. Returns the cuts.
fn cut_everywhere(
    name: &str,
    (recording, bed): (&Recording, &Bed),
    before: &[(&str, Severity)],
    after: &[(&str, Severity)],
) -> usize {
    let mut cuts = 0;
    for seed in 0..4 {
        for crash in recording.crashes(seed) {
            cuts += 1;
            let found = kinds(bed, &crash.device);
            let is_known = |kind: &(&str, Severity)| {
                before.contains(kind) || after.contains(kind) || kind.0 == "ZoneLeft"
            };
            let known = found.iter().all(is_known);
            assert!(
                known,
                "{name}, cut {}, {:?}, seed {seed}: {found:?}",
                crash.cut, crash.survivors
            );
        }
    }
    cuts
}

/// The same tree on zones: the same damage gives the same findings, and is repaired in the order of
/// the zones.
#[test]
fn damage_to_a_zoned_volume_is_found_and_repaired_as_on_any_other() {
    for (name, empty) in zoned_beds() {
        let device = copied(kernel_image("f2fs-default"), empty);
        let (image, bed) = (device.image(), device.bed());
        let of_a_kernel = ["NatBits", "Xattrs", "XattrIndex"]; // not copied, or never written
        let mut mutations = MUTATIONS.to_vec();
        mutations.retain(|mutation| !of_a_kernel.contains(&mutation.kinds[0]));
        let seen = check_on(&bed, image.clone(), &mutations);
        let mut repairs = Repairs::default();
        repairs.of_all(&bed, image, &mutations);
        println!("{name}: fsck.f2fs sees {seen}; {repairs:?}");
        assert!(repairs.repaired >= 45, "{repairs:?}");
    }
}
