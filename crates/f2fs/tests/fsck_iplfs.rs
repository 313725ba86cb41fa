//! IPLFS: each kind of damage has its own finding, what leaked is repaired, and nothing else is
//! touched.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it saw"
)]

use crate::common::iplfs::{all_features, iplfs_device, iplfs_options};
use crate::common::lab::{At, Lab};
use crate::common::mutation::{Mutation, OF_IPLFS, one};
use dovetail_block::{
    AREA_BLOCKS, BlockDevice, BlockRange, Command, Completion, Content, Data, DeviceError,
    DeviceInfo, Hints, Lba, MemoryDevice,
};
use dovetail_f2fs::format::{BlockAddr, Extent, area_start, discard_log_checksum, log_extent};
use dovetail_f2fs::fsck::{Finding, Options, Report, Severity, check, repair};
use dovetail_f2fs::mkfs::MkfsOptions;
use dovetail_f2fs::{F2fs, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, XattrFlags};

const BIG: &str = "a/big";
/// Block 0 of a file is named by the first pointer of an inode without extra attributes.
const POINTERS: usize = 360;

fn make(fs: &mut F2fs<MemoryDevice>, dir: Ino, name: &str, content: &[u8]) -> Ino {
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&Caller::default(), dir, name.as_bytes(), &node).unwrap().ino;
    fs.write(&Caller::default(), ino, 0, content).unwrap();
    ino
}

/// A volume with a file that has direct and indirect nodes, a directory of several blocks, xattrs,
/// and a checkpoint whose discard log has extents.
fn used(options: &MkfsOptions) -> MemoryDevice {
    let mut fs =
        F2fs::mount(iplfs_device(64 << 20, options), Default::default(), SimTime::ZERO).unwrap();
    let (root, caller) = (fs.root(), Caller::default());
    let dir =
        fs.create(&caller, root, b"a", &NewNode { mode: 0o040_755, rdev: (0, 0) }).unwrap().ino;
    let big = make(&mut fs, dir, "big", &[7; 4096 * 1600]);
    for n in 0..400 {
        make(&mut fs, dir, &format!("file-with-a-rather-long-name-{n:05}.txt"), &[n as u8; 100]);
    }
    let small = make(&mut fs, root, "small", &[3; 5 * 4096]);
    fs.setxattr(&caller, small, b"user.large", &[7; 2000], XattrFlags::default()).unwrap();
    fs.sync().unwrap();
    fs.write(&caller, big, 4096 * 700, &[8; 4096 * 3]).unwrap();
    fs.write(&caller, big, 4096 * 710, &[8; 4096]).unwrap();
    fs.sync().unwrap();
    fs.into_device()
}

fn report(image: &MemoryDevice) -> Report {
    check(image.clone(), Options::default(), |_| {}).unwrap()
}

fn kinds(image: &MemoryDevice) -> Vec<&'static str> {
    let mut kinds: Vec<_> = report(image).kinds().map(|(kind, _)| kind.name).collect();
    kinds.sort_unstable();
    kinds
}

fn write(lab: &mut Lab, block: u64) {
    let range = BlockRange::new(Lba(block), 1);
    let content = [Content::Bytes(std::sync::Arc::new([9; 4096]))];
    let (data, hints) = (Data::Blocks(&content), Hints::default());
    lab.image.submit(SimTime::ZERO, Command::Write { range, data, hints, fua: false }).unwrap();
}

fn discard(lab: &mut Lab, block: u64) {
    let ranges = [BlockRange::new(Lba(block), 1).into()];
    lab.image.submit(SimTime::ZERO, Command::Discard { ranges: &ranges }).unwrap();
}

fn u64_at(lab: &mut Lab, at: At) -> u64 {
    u64::from_le_bytes(lab.bytes(at.block)[at.byte..at.byte + 8].try_into().unwrap())
}

fn put(lab: &mut Lab, at: At, value: u64) {
    lab.set(at, &value.to_le_bytes());
}

/// First block of the discard log.
fn log_block(lab: &Lab) -> u64 {
    lab.pack(lab.checkpoint.pack) + u64::from(lab.checkpoint.summary_start)
}

fn discard_log(lab: &Lab) -> Vec<Extent> {
    Volume::open(lab.image.clone()).unwrap().discard_log().unwrap()
}

/// A discard log of a block at most, in the place of one.
fn set_discard_log(lab: &mut Lab, extents: &[Extent]) {
    assert!((1..=4096).contains(&lab.checkpoint.discard_log_bytes));
    let mut log = Vec::new();
    extents.iter().for_each(|extent| log_extent(&mut log, *extent));
    let at = At { block: log_block(lab), byte: 0 };
    lab.set(at, &log);
    lab.checkpoint(80, &(log.len() as u64).to_le_bytes());
    lab.checkpoint(88, &discard_log_checksum(&log).to_le_bytes());
}

fn with_discard(lab: &mut Lab, start: u64, blocks: u64) {
    let mut extents = discard_log(lab);
    extents.push(Extent { start: BlockAddr(start), blocks });
    set_discard_log(lab, &extents);
}

/// The direct node at the start of the big file.
fn direct(lab: &mut Lab) -> u32 {
    let at = lab.in_inode(BIG, 4052);
    lab.u32(at)
}

/// Place of a node's address in the NAT: in the journal or the table.
fn nat_address(lab: &mut Lab, nid: u32) -> At {
    let journal = At { block: lab.pack(lab.checkpoint.pack), byte: 190 };
    for entry in 0..usize::from(lab.u16(journal)) {
        let at = journal.plus(2 + 17 * entry);
        if lab.u32(at) == nid {
            return at.plus(9);
        }
    }
    lab.nat(nid).plus(5)
}

/// Takes an extent out of the discard log.
fn take_discard(lab: &mut Lab, is_it: impl Fn(u64) -> bool) -> Extent {
    let mut extents = discard_log(lab);
    let at = extents.iter().position(|extent| is_it(extent.start.0)).unwrap();
    let taken = extents.remove(at);
    set_discard_log(lab, &extents);
    taken
}

/// A block in the area of a node log that is held, and that nothing speaks of any more.
fn take_dead_node(lab: &mut Lab) -> u64 {
    let taken = take_discard(lab, |start| start >= area_start(3).0);
    (1..taken.blocks).for_each(|n| discard(lab, taken.start.0 + n));
    taken.start.0
}

const MUTATIONS: &[Mutation] = &[
    one("superblock copy 0", &["SuperblockCopy"], |lab| {
        lab.set(At { block: 0, byte: 1024 + 60 }, &[9]);
    }),
    one("superblock copy 1", &["SuperblockCopy"], |lab| {
        lab.set(At { block: 1, byte: 1024 + 60 }, &[9]);
    }),
    one("both superblocks", &["Unusable"], |lab| {
        (0..2).for_each(|block| lab.set(At { block, byte: 1024 + 60 }, &[9]));
    }),
    one("both packs", &["Unusable"], |lab| {
        (1..=2).for_each(|pack| lab.set(At { block: lab.pack(pack), byte: 4092 }, &[0; 4]));
    }),
    one("the other pack", &["CheckpointTorn"], |lab| {
        let at = At { block: lab.pack(3 - lab.checkpoint.pack), byte: 4092 };
        lab.flip(at, 1);
    }),
    one("user_block_count", &["CheckpointField"], |lab| {
        let capacity = lab.superblock.capacity;
        lab.checkpoint(8, &capacity.to_le_bytes());
    }),
    one("valid_block_count", &["ValidBlocks"], |lab| lab.checkpoint_add(16, 1)),
    one("valid_node_count", &["ValidNodes"], |lab| lab.checkpoint_add(104, 1)),
    one("valid_inode_count", &["ValidInodes"], |lab| lab.checkpoint_add(108, 1)),
    one("next_free_nid", &["NextFreeNid"], |lab| lab.checkpoint(112, &[0xFF; 4])),
    one("unknown checkpoint flag", &["CheckpointFlag"], |lab| lab.checkpoint(95, &[0x80])),
    one("orphan flag", &["OrphanFlag"], |lab| {
        let flags = lab.checkpoint.flags.0 | 2;
        lab.checkpoint(92, &flags.to_le_bytes());
    }),
    one("pack size", &["CheckpointSize"], |lab| lab.checkpoint_add(96, 1)),
    one("position of a data log", &["LogBeyond"], |lab| {
        let last = lab.data(BIG, 710).block;
        assert_eq!(last + 1, lab.checkpoint.positions[0].0, "a short overwrite is hot");
        lab.checkpoint(24, &last.to_le_bytes());
    }),
    one(
        "position of a node log, at its start",
        &[
            "LogBeyond",
            "DeviceLeak",
            "DiscardOutside",
            "NodeUnreachable",
            "ValidBlocks",
            "ValidInodes",
            "ValidNodes",
        ],
        |lab| lab.checkpoint(24 + 8 * 4, &area_start(4).0.to_le_bytes()),
    ),
    one("NAT journal count", &["JournalCount"], |lab| lab.checkpoint(190, &101_u16.to_le_bytes())),
    one("NAT journal entry for no nid", &["JournalEntry"], |lab| {
        let head = At { block: lab.pack(lab.checkpoint.pack), byte: 190 };
        let count = lab.u16(head);
        lab.set(head.plus(2 + 17 * usize::from(count)), &u32::MAX.to_le_bytes());
        lab.checkpoint(190, &(count + 1).to_le_bytes());
    }),
    one("a byte of the discard log", &["DiscardLog"], |lab| {
        let at = At { block: log_block(lab), byte: 3 };
        lab.flip(at, 1);
    }),
    one("a live block in the discard log", &["DiscardLive"], |lab| {
        let block = lab.data(BIG, 5).block;
        with_discard(lab, block, 1);
    }),
    one("a whole area in the discard log", &["DiscardLive", "DiscardOutside"], |lab| {
        with_discard(lab, area_start(1).0, AREA_BLOCKS);
    }),
    one("metadata in the discard log", &["DiscardOutside"], |lab| with_discard(lab, 512, 1)),
    one("blocks beyond a log in the discard log", &["DiscardOutside"], |lab| {
        let position = lab.checkpoint.positions[1].0;
        with_discard(lab, position, 3);
    }),
    one("addresses beyond all areas in the discard log", &["DiscardOutside"], |lab| {
        with_discard(lab, u64::MAX, 3);
    }),
    one("a discard log that names nothing", &["DeviceLeak"], |lab| {
        let start = discard_log(lab)[0].start;
        set_discard_log(lab, &[Extent { start, blocks: 0 }]);
    }),
    one("a block that is held for nobody", &["DeviceLeak"], |lab| {
        let taken = take_discard(lab, |_| true);
        (1..taken.blocks).for_each(|n| discard(lab, taken.start.0 + n));
    }),
    one("a block in area 0 that is held for nobody", &["DeviceLeak"], |lab| write(lab, 100)),
    one("a block far out in area 0", &["DeviceLeak"], |lab| write(lab, AREA_BLOCKS - 1)),
    one("a live block that is not held", &["DeviceLost"], |lab| {
        let block = lab.data(BIG, 900).block;
        discard(lab, block);
    }),
    one("a pointer beyond its log", &["LogBeyond", "DeviceLeak"], |lab| {
        let (at, position) = (lab.in_inode(BIG, POINTERS), lab.checkpoint.positions[1].0);
        put(lab, at, position + 5);
    }),
    one("a pointer into area 0", &["DataAddress", "DeviceLeak"], |lab| {
        let at = lab.in_inode(BIG, POINTERS);
        put(lab, at, 600);
    }),
    one("a pointer among nodes", &["LogClass", "DeviceLeak"], |lab| {
        let (at, block) = (lab.in_inode(BIG, POINTERS), take_dead_node(lab));
        put(lab, at, block);
    }),
    one("a block of two files", &["BlockShared", "DeviceLeak"], |lab| {
        let at = lab.in_inode(BIG, POINTERS);
        let first = u64_at(lab, at);
        put(lab, at.plus(8), first);
    }),
    one(
        "NAT address among data",
        &["LogClass", "DeviceLeak", "FooterNid", "InodeBlocks", "ValidBlocks"],
        |lab| {
            let (nid, block) = (direct(lab), lab.data(BIG, 710).block);
            let at = nat_address(lab, nid);
            put(lab, at, block);
            lab.seal(at.block);
        },
    ),
    one("links of a file", &["Links"], |lab| {
        let at = lab.in_inode(BIG, 12);
        lab.add(at, 1);
    }),
    one("links of a directory", &["DirectoryLinks"], |lab| {
        let at = lab.in_inode("a", 12);
        lab.add(at, 1);
    }),
    one("i_blocks", &["InodeBlocks"], |lab| {
        let at = lab.in_inode(BIG, 24);
        lab.add(at, 1);
    }),
    one("footer ino", &["FooterInode"], |lab| {
        let nid = direct(lab);
        let at = lab.node(nid).plus(4076);
        lab.add(at, 1);
    }),
    one("cold bit", &["FooterCold"], |lab| {
        let nid = direct(lab);
        let at = lab.node(nid).plus(4080);
        lab.flip(at, 1);
    }),
    one("a node that does not exist", &["NodeMissing"], |lab| {
        let at = lab.in_inode(BIG, 4052 + 16);
        lab.set(at, &5000_u32.to_le_bytes());
    }),
    one("hash of a name", &["DentryHash"], |lab| {
        let at = lab.dentry("a", "big").at(0);
        lab.flip(at, 0x10);
    }),
    one("type of a name", &["DentryType"], |lab| {
        let at = lab.dentry("a", "big").at(10);
        lab.set(at, &[2]);
    }),
    one("a name that leads nowhere", &["DentryDangling", "InodeUnreachable"], |lab| {
        let at = lab.dentry("a", "file-with-a-rather-long-name-00007.txt").at(4);
        lab.set(at, &5000_u32.to_le_bytes());
    }),
];

#[test]
fn one_damage_one_finding() {
    let sound = Lab::new(used(&iplfs_options()));
    assert_eq!(kinds(&sound.image), [""; 0], "{:?}", report(&sound.image).findings);
    let mut wrong = Vec::new();
    for mutation @ Mutation { name, damage, .. } in MUTATIONS {
        let mut lab = sound.clone();
        damage(&mut lab);
        let (found, expected) = (kinds(&lab.image), mutation.sorted_kinds());
        if found != expected {
            wrong.push(format!(
                "{name}: {found:?} instead of {expected:?}: {:?}",
                report(&lab.image).findings
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_of_iplfs_alone_has_a_mutation() {
    for kind in OF_IPLFS {
        assert!(Finding::KINDS.iter().any(|known| known.name == kind), "{kind}");
        assert!(MUTATIONS.iter().any(|mutation| mutation.kinds.contains(&kind)), "{kind}");
    }
}

/// Leaked blocks are discarded, a superblock is copied; all else is refused in a sentence, and
/// nothing is written.
#[test]
fn a_repair_touches_nothing_else() {
    let sound = Lab::new(used(&iplfs_options()));
    let repairable = [&["DeviceLeak"][..], &["SuperblockCopy"], &["SuperblocksDiffer"]];
    let (mut repaired, mut refused) = (0, 0);
    for Mutation { name, damage, kinds: expected } in MUTATIONS {
        let mut lab = sound.clone();
        damage(&mut lab);
        let mut image = lab.image.clone();
        match repair(&mut image) {
            Ok(done) if repairable.contains(expected) => {
                assert!(!done.is_empty(), "{name}");
                assert_eq!(kinds(&image), [""; 0], "{name}");
                repaired += 1;
            }
            done => {
                assert!(done.as_ref().map_or(true, Vec::is_empty), "{name}: {done:?}");
                assert!(image.used().eq(lab.image.used()), "{name}: something was written");
                refused += usize::from(done.is_err());
            }
        }
    }
    assert!(repaired >= 6 && refused >= 15, "{repaired} repaired, {refused} refused");
}

#[test]
fn a_report_tells_the_active_regions() {
    let mut lab = Lab::new(used(&MkfsOptions {
        features: all_features(),
        log_start: 1 << 40,
        ..iplfs_options()
    }));
    let report = report(&lab.image);
    assert_eq!(report.findings, []);
    let live: u64 = report.counts.areas.iter().map(|area| area.live).sum();
    assert_eq!((report.counts.areas.len(), live), (6, report.counts.blocks));
    let warm = report.counts.areas[1];
    let (first, last) = warm.active.unwrap();
    assert!(first >= 1 << 40 && last < warm.position && last - first + 1 >= warm.live, "{warm:?}");
    assert_eq!((warm.held, warm.waiting, warm.beyond), (Some(warm.live + 4), 4, 0), "{warm:?}");
    let beyond = lab.checkpoint.positions[1].0 + 7;
    write(&mut lab, beyond);
    let report = check(lab.image.clone(), Options::default(), |_| {}).unwrap();
    assert_eq!(
        (report.findings.len(), report.counts.areas[1].beyond),
        (0, 1),
        "the next mount discards it"
    );
}

/// A device that answers no query.
struct Silent(MemoryDevice);

impl BlockDevice for Silent {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Query(query) => Err(query.unsupported()),
            command => self.0.submit(at, command),
        }
    }
}

#[test]
fn a_device_that_does_not_tell_what_it_holds_is_a_note() {
    let image = used(&iplfs_options());
    let report = check(Silent(image), Options::default(), |_| {}).unwrap();
    let names: Vec<_> = report.kinds().map(|(kind, _)| (kind.name, kind.severity)).collect();
    assert_eq!(names, [("NotChecked", Severity::Note)]);
    assert_eq!(report.counts.areas[1].held, None);
}
