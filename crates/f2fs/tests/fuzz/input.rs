//! Inputs: sound images with a few blocks damaged.

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, Lba, MemoryDevice,
};
use dovetail_f2fs::Volume;
use dovetail_f2fs::format::{AddressWidth, BlockAddr, Footer, Variant, area_start};
use dovetail_time::{Rng, SimTime};

use crate::common::bed::{Bed, BedDevice};
use crate::common::lab::Lab;

/// Blocks with one structure, and the fields (offset, bytes) in them.
type Structure = (Vec<u64>, Vec<(usize, usize)>);

/// A sound image to start from; its blocks are shared by all inputs.
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    lab: Lab,
    bed: Bed,
    structures: Vec<Structure>,
    /// Blocks that one use of an input may read or write before it counts as hanging.
    max_blocks: u64,
}

/// A seed with changed blocks.
pub(crate) struct Input<'a> {
    seed: &'a Seed,
    pub(crate) lab: Lab,
    /// The image on its zones, if it has any: what is written goes there.
    zoned: Option<BedDevice>,
    blocks: u64,
}

impl BlockDevice for Input<'_> {
    fn info(&self) -> DeviceInfo {
        self.zoned.as_ref().map_or_else(|| self.lab.image.info(), BlockDevice::info)
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Read { range, .. } | Command::Write { range, .. } = &command {
            self.blocks += range.blocks;
        }
        assert!(
            self.blocks < self.seed.max_blocks,
            "hangs: {} blocks were read and written",
            self.blocks
        );
        match &mut self.zoned {
            Some(device) => device.submit(at, command),
            None => self.lab.image.submit(at, command),
        }
    }
}

dovetail_block::performs_at_once!(Input<'_>);

fn fields(
    every: &[(usize, usize)],
    repeat: &[(usize, usize, usize, usize)],
) -> Vec<(usize, usize)> {
    let repeated = repeat
        .iter()
        .flat_map(|&(start, step, count, size)| (0..count).map(move |i| (start + i * step, size)));
    every.iter().copied().chain(repeated).collect()
}

impl Seed {
    pub(crate) fn new(name: &'static str, image: MemoryDevice) -> Self {
        Self::on(name, Bed::default(), image)
    }

    /// A seed on zones.
    pub(crate) fn zoned(name: &'static str, device: &BedDevice) -> Self {
        Self::on(name, device.bed(), device.image())
    }

    fn on(name: &'static str, bed: Bed, image: MemoryDevice) -> Self {
        let lab = Lab::new(image);
        let structures = structures(&lab);
        let max_blocks = 40 * lab.image.used().count() as u64 + 20_000;
        Self { name, lab, bed, structures, max_blocks }
    }

    pub(crate) fn sound(&self) -> Input<'_> {
        let zoned = self.bed.is_zoned().then(|| self.bed.device(&self.lab.image));
        Input { seed: self, lab: self.lab.clone(), zoned, blocks: 0 }
    }

    pub(crate) fn input(&self, rng: &mut Rng) -> Input<'_> {
        let mut input = self.sound();
        for _ in 0..=rng.below(5) {
            input.mutate(rng);
        }
        if self.bed.is_zoned() {
            let mut bed = self.bed.clone();
            if rng.below(3) == 0 {
                bed.contradict(rng);
            }
            input.zoned = Some(bed.device(&input.lab.image));
        }
        input
    }
}

const FOOTER: [(usize, usize); 5] = [(4072, 4), (4076, 4), (4080, 4), (4084, 8), (4092, 4)];
const INODE: [(usize, usize); 24] = [
    (0, 2),
    (2, 1),
    (3, 1),
    (12, 4),
    (16, 8),
    (24, 8),
    (56, 4),
    (72, 4),
    (76, 4),
    (80, 4),
    (84, 4),
    (88, 4),
    (347, 1),
    (348, 4),
    (352, 4),
    (356, 4),
    (360, 2),
    (362, 2),
    (364, 4),
    (368, 4),
    (392, 1),
    (393, 1),
    (3852, 4),
    (3876, 4),
];

/// The blocks of the main area: inodes, other nodes, and the data of directories.
#[derive(Default)]
struct Main {
    inodes: Vec<u64>,
    inner: Vec<u64>,
    data: Vec<u64>,
}

impl Main {
    fn of(lab: &Lab) -> Self {
        let s = &lab.superblock;
        let bytes = |block: &u64| lab.image.bytes(Lba(*block)).unwrap();
        let mut volume = Volume::open(lab.image.clone()).unwrap();
        let mut main = Self::default();
        let used = lab.image.used().map(|(lba, _)| lba.0);
        for block in used.filter(|block| (s.main_start.0..s.main_end().0).contains(block)) {
            let footer = Footer::parse(bytes(&block));
            let live = volume.nat(footer.nid).is_ok_and(|entry| entry.address.0 == block);
            (match (live, footer.nid == footer.ino) {
                (false, _) => &mut main.data,
                (true, true) => &mut main.inodes,
                (true, false) => &mut main.inner,
            })
            .push(block);
        }
        main.data.retain(|block| bytes(block)[2384] == b'.'); // directories have "." first
        main
    }
}

/// Structures of an image of IPLFS.
fn iplfs_structures(lab: &Lab) -> Vec<Structure> {
    let (s, c) = (&lab.superblock, &lab.checkpoint);
    let used: Vec<u64> = lab.image.used().map(|(lba, _)| lba.0).collect();
    let area = |from: u64, blocks: u32| -> Vec<u64> {
        used.iter()
            .copied()
            .filter(|block| (from..from + u64::from(blocks)).contains(block))
            .collect()
    };
    let Main { inodes, inner, data } = Main::of(lab);
    let pack = lab.pack(c.pack);
    let whole = [&INODE[..], &FOOTER].concat();
    let wide = s.variant.address_bytes();
    let (nat, pointer) = (5 + wide, |at, count| (at, wide, count, wide));
    let pointers =
        [pointer(360, 20), (4052, 4, 5, 4), (364, 1, 40, 1), (394, 11, 12, 4), (402, 11, 12, 2)];
    let lists = vec![
        (
            vec![0, 1],
            fields(&[], &[(1024, 4, 30, 4), (1024 + 1664, 4, 1, 4), (1024 + 2810, 4, 10, 4)]),
        ),
        (
            vec![pack],
            fields(
                &[(190, 2)],
                &[(0, 8, 11, 8), (88, 4, 8, 4), (192, 17, 20, 4), (201, 17, 20, 8)],
            ),
        ),
        (
            area(pack + u64::from(c.summary_start), s.pack_blocks - c.summary_start),
            fields(&[], &[(0, 8, 16, 8)]),
        ),
        (
            area(s.nat_start.0, 1024),
            fields(&[], &[(0, nat, 60, 1), (1, nat, 60, 4), (5, nat, 60, wide)]),
        ),
        (inodes, fields(&whole, &pointers)),
        (chain(lab), fields(&whole, &[pointer(360, 40), pointer(0, 40)])),
        (inner, fields(&FOOTER, &[(0, 4, 40, 4), pointer(0, 40)])),
        (
            data,
            fields(
                &[],
                &[
                    (0, 1, 27, 1),
                    (30, 11, 60, 4),
                    (34, 11, 60, 4),
                    (38, 11, 60, 2),
                    (40, 11, 60, 1),
                ],
            ),
        ),
    ];
    lists.into_iter().filter(|(blocks, _)| !blocks.is_empty()).collect()
}

/// Structures of the image, and where their fields are.
fn structures(lab: &Lab) -> Vec<Structure> {
    if lab.superblock.variant.is_iplfs() {
        return iplfs_structures(lab);
    }
    let s = &lab.superblock;
    let used: Vec<u64> = lab.image.used().map(|(lba, _)| lba.0).collect();
    let area = |from: u64, to: u64| -> Vec<u64> {
        used.iter().copied().filter(|block| (from..to).contains(block)).collect()
    };
    let pack = lab.pack(lab.checkpoint.pack);
    let Main { inodes, inner, data } = Main::of(lab);
    let (inode, footer) = (INODE, FOOTER);
    let head = [
        (0, 8),
        (8, 8),
        (16, 8),
        (24, 4),
        (28, 4),
        (32, 4),
        (132, 4),
        (136, 4),
        (140, 4),
        (144, 4),
        (148, 4),
        (152, 4),
        (156, 4),
        (160, 4),
        (164, 4),
    ];
    let pack_blocks = area(pack, pack + u64::from(lab.checkpoint.total_blocks));
    let lists = vec![
        (
            vec![0, 1],
            fields(
                &[],
                &[
                    (1024, 4, 30, 4),
                    (1024 + 1148, 4, 1, 4),
                    (1024 + 1664, 4, 1, 4),
                    (1024 + 2180, 4, 1, 4),
                    (1024 + 2745, 4, 3, 4),
                ],
            ),
        ),
        (
            vec![pack],
            fields(
                &head,
                &[
                    (36, 4, 3, 4),
                    (68, 2, 3, 2),
                    (84, 4, 3, 4),
                    (116, 2, 3, 2),
                    (176, 1, 6, 1),
                    (192, 1, 128, 1),
                ],
            ),
        ),
        (
            pack_blocks,
            fields(
                &[(0, 2), (507, 2), (3584, 2), (4091, 1)],
                &[(2, 13, 38, 4), (7, 13, 38, 4), (509, 78, 6, 4), (1014, 7, 400, 4)],
            ),
        ),
        (
            area(s.sit_start.0, s.nat_start.0),
            fields(&[], &[(0, 74, 30, 2), (2, 74, 30, 8), (30, 74, 30, 8)]),
        ),
        (
            area(s.nat_start.0, s.ssa_start.0),
            fields(&[], &[(0, 9, 60, 1), (1, 9, 60, 4), (5, 9, 60, 4)]),
        ),
        (
            area(s.ssa_start.0, s.main_start.0),
            fields(&[(4091, 1)], &[(0, 7, 100, 4), (4, 7, 100, 1), (5, 7, 100, 2)]),
        ),
        (
            inodes,
            fields(
                &[&inode[..], &footer].concat(),
                &[
                    (360, 4, 20, 4),
                    (4052, 4, 5, 4),
                    (364, 1, 40, 1),
                    (394, 11, 12, 4),
                    (398, 11, 12, 4),
                    (402, 11, 12, 2),
                ],
            ),
        ),
        (chain(lab), fields(&[&inode[..], &footer].concat(), &[(360, 4, 40, 4), (0, 4, 40, 4)])),
        (inner, fields(&footer, &[(0, 4, 40, 4)])),
        (
            data,
            fields(
                &[],
                &[
                    (0, 1, 27, 1),
                    (30, 11, 60, 4),
                    (34, 11, 60, 4),
                    (38, 11, 60, 2),
                    (40, 11, 60, 1),
                    (2384, 8, 60, 1),
                ],
            ),
        ),
    ];
    lists.into_iter().filter(|(blocks, _)| !blocks.is_empty()).collect()
}

impl Input<'_> {
    /// It lies on zones.
    pub(crate) fn is_zoned(&self) -> bool {
        self.zoned.is_some()
    }

    /// A copy of the devices as they are now.
    pub(crate) fn device(&self) -> BedDevice {
        self.zoned.clone().unwrap_or_else(|| Bed::default().device(&self.lab.image))
    }

    /// The input for its next use.
    pub(crate) fn rewound(&mut self) -> &mut Self {
        self.blocks = 0;
        self
    }

    fn mutate(&mut self, rng: &mut Rng) {
        let seed = self.seed;
        let (blocks, fields) = &seed.structures[rng.below(seed.structures.len() as u64) as usize];
        let block = blocks[rng.below(blocks.len() as u64) as usize];
        let bytes = self.lab.bytes(block);
        match rng.below(16) {
            0 => bytes[rng.below(4096) as usize] ^= 1 << rng.below(8),
            1 => bytes[rng.below(4096) as usize] = rng.below(256) as u8,
            2 => {
                let other = blocks[rng.below(blocks.len() as u64) as usize];
                *bytes = **seed.lab.image.bytes(Lba(other)).unwrap();
            }
            3 if rng.below(8) == 0 => bytes.fill(rng.below(2) as u8 * 0xFF),
            _ => {
                let (offset, size) = fields[rng.below(fields.len() as u64) as usize];
                let mut old = [0; 8];
                old[..size].copy_from_slice(&bytes[offset..offset + size]);
                let new = value(u64::from_le_bytes(old), seed, rng);
                bytes[offset..offset + size].copy_from_slice(&new.to_le_bytes()[..size]);
            }
        }
        if rng.below(16) != 0 {
            self.lab.seal(block);
        }
    }
}

/// The nodes that fsyncs wrote after the last checkpoint.
fn chain(lab: &Lab) -> Vec<u64> {
    let (version, mask) = lab.checkpoint.footer_version();
    let (log, variant) = (lab.checkpoint.logs[4], lab.superblock.variant);
    let mut next = match variant {
        Variant::F2fs => {
            lab.superblock.main_start.0 + u64::from(log.segment.0 * 512) + u64::from(log.offset)
        }
        Variant::Iplfs(_) => lab.checkpoint.positions[4].0,
    };
    let mut chain = Vec::new();
    while let Some(bytes) = lab.image.bytes(Lba(next)) {
        let footer = Footer::parse(bytes);
        if footer.checkpoint & mask != version & mask {
            break;
        }
        chain.push(next);
        next = footer.next_address(variant, BlockAddr(next)).0;
    }
    chain
}

/// A value that is likely to matter: a limit, a neighbour, a nid, a block, or anything.
fn value(old: u64, seed: &Seed, rng: &mut Rng) -> u64 {
    let s = &seed.lab.superblock;
    match rng.below(12) {
        0 => 0,
        1 => u64::MAX,
        2 => old.wrapping_add(1),
        3 => old.wrapping_sub(1),
        4 => old ^ 1 << rng.below(64),
        5 => rng.next_u64() >> rng.below(64),
        6 if s.variant == Variant::Iplfs(AddressWidth::Narrow) && rng.below(2) == 0 => {
            (rng.below(6) + 1) << 29 | rng.below(2000)
        }
        6 if s.variant.is_iplfs() => area_start(rng.below(6) as usize).0 + rng.below(2000),
        6 => s.main_start.0 + rng.below(u64::from(s.segment_count_main) * 512),
        7 => s.main_start.0 + rng.below(80),
        8 => rng.below(60),
        9 => u64::from(s.max_nid()) - rng.below(2),
        10 => u64::MAX - 1,
        _ => 1 << rng.below(64),
    }
}
