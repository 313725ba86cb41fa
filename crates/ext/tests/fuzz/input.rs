//! Inputs: sound images with a few fields damaged.

use std::ops::Range;

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, Lba, MemoryDevice,
};
use dovetail_ext::format::Superblock;
use dovetail_time::{Rng, SimTime};

use crate::structures::{Structure, structures, superblock};

/// A sound image to start from; its blocks are shared by all inputs.
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    image: MemoryDevice,
    superblock: Superblock,
    structures: Vec<Structure>,
    /// Blocks that one use of an input may read or write before it counts as hanging.
    max_blocks: u64,
}

/// A seed with changed blocks.
pub(crate) struct Input<'a> {
    seed: &'a Seed,
    pub(crate) image: MemoryDevice,
    blocks: u64,
}

impl BlockDevice for Input<'_> {
    fn info(&self) -> DeviceInfo {
        self.image.info()
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
        self.image.submit(at, command)
    }
}

dovetail_block::performs_at_once!(Input<'_>);

impl Seed {
    pub(crate) fn new(name: &'static str, image: MemoryDevice) -> Self {
        let max_blocks = 40 * image.used().count() as u64 + 20_000;
        Self {
            name,
            superblock: superblock(&image),
            structures: structures(&image),
            image,
            max_blocks,
        }
    }

    pub(crate) fn sound(&self) -> Input<'_> {
        Input { seed: self, image: self.image.clone(), blocks: 0 }
    }

    pub(crate) fn input(&self, rng: &mut Rng) -> Input<'_> {
        let mut input = self.sound();
        for _ in 0..=rng.below(5) {
            input.mutate(rng);
        }
        input
    }
}

impl Input<'_> {
    /// Bytes in which the input differs from its seed: byte of the image, what was there, what is
    /// there.
    pub(crate) fn damage(&self) -> Vec<(u64, u8, u8)> {
        let zeros = [0; 4096];
        let of = |image: &MemoryDevice, lba| image.bytes(lba).map_or(zeros, |bytes| **bytes);
        let used: Vec<Lba> = self.image.used().map(|(lba, _)| lba).collect();
        let blocks = used.into_iter().flat_map(|lba| {
            let (old, new) = (of(&self.seed.image, lba), of(&self.image, lba));
            let differ = (0..4096).filter(move |&byte| old[byte] != new[byte]);
            differ.map(move |byte| (lba.0 * 4096 + byte as u64, old[byte], new[byte]))
        });
        blocks.collect()
    }

    /// A check says nothing of inodes behind those that were ever used, where descriptors count
    /// them.
    pub(crate) fn is_judged_whole(&self) -> bool {
        !self.seed.superblock.has_group_checksums()
    }

    /// The input for its next use.
    pub(crate) fn rewound(&mut self) -> &mut Self {
        self.blocks = 0;
        self
    }

    /// Bytes that lie in one block of the device.
    fn bytes(&mut self, range: Range<u64>) -> &mut [u8] {
        let start = (range.start % 4096) as usize;
        let block = self.image.bytes_mut(Lba(range.start / 4096)).unwrap();
        &mut block[start..start + (range.end - range.start) as usize]
    }

    fn mutate(&mut self, rng: &mut Rng) {
        let structure =
            &self.seed.structures[rng.below(self.seed.structures.len() as u64) as usize];
        let mut pick =
            |ranges: &[Range<u64>]| ranges[rng.below(ranges.len() as u64) as usize].clone();
        let (one, other, field) =
            (pick(&structure.parts), pick(&structure.parts), pick(&structure.fields));
        let len = (one.end - one.start) as usize;
        match rng.below(16) {
            0 => self.bytes(one)[rng.below(len as u64) as usize] ^= 1 << rng.below(8),
            1 => self.bytes(one)[rng.below(len as u64) as usize] = rng.below(256) as u8,
            2 => {
                let copy = self.bytes(other).to_vec();
                let len = copy.len().min(len);
                self.bytes(one)[..len].copy_from_slice(&copy[..len]);
            }
            3 if rng.below(8) == 0 => self.bytes(one).fill(rng.below(2) as u8 * 0xFF),
            _ => self.change_field(field, structure.big_endian, rng),
        }
        if rng.below(16) != 0 {
            self.seal_superblock();
        }
    }

    fn change_field(&mut self, field: Range<u64>, big_endian: bool, rng: &mut Rng) {
        let superblock = &self.seed.superblock;
        let blocks = superblock.blocks_count;
        let place = self.bytes(field);
        let size = place.len();
        let mut old = [0; 8];
        old[..size].copy_from_slice(place);
        if big_endian {
            old[..size].reverse();
        }
        let mut new =
            value(u64::from_le_bytes(old), (blocks, superblock.inodes_count), rng).to_le_bytes();
        if big_endian {
            new[..size].reverse();
        }
        place.copy_from_slice(&new[..size]);
    }

    /// The superblock's checksum, where it has one, is right again.
    fn seal_superblock(&mut self) {
        let bytes = self.bytes(1024..2048);
        if u32::from_le_bytes(bytes[0x64..0x68].try_into().unwrap()) & 0x400 != 0 {
            // the format's CRC-32C is not inverted at its end
            let sum = !crc32c::crc32c(&bytes[..1020]);
            bytes[1020..].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// A value that is likely to matter: a limit, a neighbour, a block, an inode, or anything.
fn value(old: u64, (blocks, inodes): (u64, u32), rng: &mut Rng) -> u64 {
    match rng.below(12) {
        0 => 0,
        1 => u64::MAX,
        2 => old.wrapping_add(1),
        3 => old.wrapping_sub(1),
        4 => old ^ 1 << rng.below(64),
        5 => rng.next_u64() >> rng.below(64),
        6 => rng.below(blocks),
        7 => rng.below(u64::from(inodes)),
        8 => rng.below(60),
        9 => blocks - rng.below(3),
        10 => u64::from(inodes) + rng.below(2),
        _ => 1 << rng.below(64),
    }
}
