//! Opening: superblock, the newer valid checkpoint pack, its bitmaps and journals.

use dovetail_block::{BlockDevice, DeviceError, DeviceInfo};

use super::Volume;
use super::cache::Blocks;
use crate::device_addresses::DeviceAddresses;
use crate::error::{Corrupt, Damage, Error, Incompatible, Place};
use crate::format::{
    BLOCK, Bitmaps, BlockAddr, Checkpoint, CheckpointFlags, Features, NatJournal, SitJournal,
    Superblock, compact_journals, iplfs_journal, nat_journal, sit_journal,
};

/// The bits up to `readonly` (0x4000).
const READABLE: Features = Features(0x7FFF);

impl<D: BlockDevice> Volume<D> {
    /// Opens the volume on `device`. Nothing is written, now or later; after a power cut the state
    /// of the last checkpoint is shown.
    ///
    /// # Errors
    /// [`Error::NotF2fs`]; [`Error::Incompatible`] for what is not supported; [`Error::Corrupt`]
    /// when both superblocks or both checkpoint packs are damaged, or the device is shorter than
    /// the volume; [`Error::Io`].
    pub fn open(device: D) -> Result<Self, Error> {
        let mut blocks = Blocks::new(device);
        let superblock = read_superblock(&mut blocks)?;
        if superblock.devirtualized {
            let addresses = DeviceAddresses::of(&blocks.device_info());
            superblock.drive.check_below(addresses.space()).map_err(Incompatible::from)?;
            blocks.set_device_addresses(addresses);
        }
        let checkpoint = elect(&mut blocks, &superblock)?;
        let bitmaps = read_bitmaps(&mut blocks, &superblock, &checkpoint)?;
        let (nat, sit) = read_journals(&mut blocks, &superblock, &checkpoint)?;
        let (nat_journal, sit_journal) = (nat.into_iter().collect(), sit.into_iter().collect());
        Ok(Self {
            blocks,
            superblock,
            checkpoint,
            bitmaps,
            nat_journal,
            sit_journal,
            decompressed: None,
        })
    }
}

/// The first copy that passes all checks.
fn read_superblock<D: BlockDevice>(blocks: &mut Blocks<D>) -> Result<Superblock, Error> {
    let first = match usable_superblock(blocks, 0) {
        Ok(superblock) => return Ok(superblock),
        Err(error) => error,
    };
    let second = match usable_superblock(blocks, 1) {
        Ok(superblock) => return Ok(superblock),
        Err(error) => error,
    };
    Err(match (first, second) {
        // a device that is too short is so for both
        (short @ Error::Corrupt(Corrupt::Format(Damage::Truncated { .. })), _)
        | (_, short @ Error::Corrupt(Corrupt::Format(Damage::Truncated { .. }))) => short,
        (Error::Corrupt(first), Error::Corrupt(second)) => {
            let (first, second) = (Box::new(first), Box::new(second));
            Damage::BothSuperblocks { first, second }.into()
        }
        (Error::NotF2fs { .. }, second @ (Error::Corrupt(_) | Error::Incompatible(_))) => second,
        (first, _) => first,
    })
}

/// Copy 0 or 1 of the superblock, checked: it has features that are known, and fits on the device.
pub(crate) fn usable_superblock<D: BlockDevice>(
    blocks: &mut Blocks<D>,
    copy: u32,
) -> Result<Superblock, Error> {
    if u64::from(copy) >= blocks.count() {
        return Err(Error::NotF2fs { found: 0 });
    }
    let superblock = Superblock::parse(&*blocks.metadata(BlockAddr(copy.into()))?, copy)?;
    let unknown = superblock.features.without(READABLE);
    if unknown != Features(0) {
        return Err(Incompatible::Features(unknown).into());
    }
    check_device(&superblock, &blocks.device_info())?;
    Ok(superblock)
}

/// Checks that the volume of a superblock fits on a device.
///
/// # Errors
/// [`Damage::Truncated`]; [`Incompatible::MultiDevice`] for the first of several devices.
pub fn check_device(superblock: &Superblock, device: &DeviceInfo) -> Result<(), Error> {
    let expected = superblock.device_blocks().iter().sum();
    let found = device.blocks;
    if found < expected {
        if let [_, next, ..] = &superblock.devices[..] {
            let (devices, next) = (superblock.devices.len(), next.path.clone());
            return Err(Incompatible::MultiDevice { devices, found, expected, next }.into());
        }
        return Err(Damage::Truncated { found, expected }.into());
    }
    let room = device.capacity();
    if superblock.variant.is_iplfs() && room < superblock.capacity {
        return Err(Damage::Truncated { found: room, expected: superblock.capacity }.into());
    }
    Ok(())
}

/// The valid pack with the larger version; pack 1 if they are the same.
fn elect<D: BlockDevice>(
    blocks: &mut Blocks<D>,
    superblock: &Superblock,
) -> Result<Checkpoint, Error> {
    let first = read_pack(blocks, superblock, 1);
    let second = read_pack(blocks, superblock, 2);
    match (first, second) {
        (Ok(first), Ok(second)) => {
            let newer = second.version.wrapping_sub(first.version) as i64 > 0;
            Ok(if newer { second } else { first })
        }
        (Ok(pack), Err(_)) | (Err(_), Ok(pack)) => Ok(pack),
        (Err(Error::Corrupt(first)), Err(Error::Corrupt(second))) => {
            let (first, second) = (Box::new(first), Box::new(second));
            Err(Damage::BothCheckpoints { first, second }.into())
        }
        (Err(error), Err(_)) => Err(error),
    }
}

/// First block of checkpoint pack `pack` (1 or 2).
pub(crate) fn pack_start(superblock: &Superblock, pack: u32) -> BlockAddr {
    superblock.cp_start.plus(u64::from(pack - 1) * u64::from(superblock.pack_blocks))
}

/// A pack is valid when its head and its tail are, with the same version.
pub(crate) fn read_pack<D: BlockDevice>(
    blocks: &mut Blocks<D>,
    superblock: &Superblock,
    pack: u32,
) -> Result<Checkpoint, Error> {
    let start = pack_start(superblock, pack);
    let head = Checkpoint::parse(&*blocks.metadata(start)?, pack, superblock)?;
    let tail = blocks.metadata(start.plus(u64::from(head.total_blocks) - 1))?;
    let tail = Checkpoint::parse(&tail, pack, superblock)?;
    Corrupt::check_equal(
        Place::Checkpoint(pack),
        "the tail's version",
        tail.version,
        head.version,
    )?;
    Ok(head)
}

fn read_bitmaps<D: BlockDevice>(
    blocks: &mut Blocks<D>,
    superblock: &Superblock,
    checkpoint: &Checkpoint,
) -> Result<Bitmaps, Error> {
    let mut pack = vec![0; (1 + superblock.cp_payload as usize) * BLOCK];
    blocks.data(pack_start(superblock, checkpoint.pack), &mut pack)?;
    Ok(Bitmaps::parse(&pack, checkpoint, superblock)?)
}

fn read_journals<D: BlockDevice>(
    blocks: &mut Blocks<D>,
    superblock: &Superblock,
    checkpoint: &Checkpoint,
) -> Result<(NatJournal, SitJournal), DeviceError> {
    let start = pack_start(superblock, checkpoint.pack);
    if superblock.variant.is_iplfs() {
        return Ok((iplfs_journal(&*blocks.metadata(start)?), Vec::new()));
    }
    if checkpoint.flags.has(CheckpointFlags::COMPACT) {
        let block = blocks.metadata(start.plus(checkpoint.summary_start.into()))?;
        return Ok(compact_journals(&block));
    }
    let after = if checkpoint.has_node_summaries() { 6 } else { 3 };
    let hot = start.plus(checkpoint.total_blocks.saturating_sub(1 + after).into());
    let nat = nat_journal(&*blocks.metadata(hot)?);
    let sit = sit_journal(&*blocks.metadata(hot.plus(2))?);
    Ok((nat, sit))
}
