//! Opening: the superblock, and what the journal still holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_block::{BLOCK_SIZE, BlockDevice, Content};

use super::{Blocks, Volume, backup};
use crate::error::{Corrupt, Damage, Error, Incompatible, Place};
use crate::format::{
    BlockAddr, Compat, GroupNo, Incompat, MAGIC, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, Superblock,
};
use crate::journal::{
    JournalError, JournalExtent, JournalMap, JournalSuperblock, MAX_BLOCKS, Stop, replay,
};

/// Content of the journal of a volume that was not unmounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Transactions that are complete.
    pub transactions: u32,
    /// Blocks whose newest content is in the journal.
    pub blocks: u64,
}

/// The bytes in the place of the first superblock are nothing, or of the same volume as a copy: a
/// file system that was made over an older one leaves copies of that.
fn superblock_is_of(first: &[u8; SUPERBLOCK_SIZE], copy: &[u8; SUPERBLOCK_SIZE]) -> bool {
    let (uuid, magic) = (0x68..0x78, 0x38..0x3A);
    first.iter().all(|byte| *byte == 0)
        || first[uuid.clone()] == copy[uuid]
        || first[magic.clone()] == copy[magic]
}

impl<D: BlockDevice> Volume<D> {
    /// Opens the volume on `device`. Nothing is written, now or later; after a power cut the volume
    /// is shown as it is after its recovery. Where its journal is damaged it shows as far as that
    /// goes: see [`Self::journal_damage`].
    ///
    /// # Errors
    /// [`Error::NotExt`]; [`Error::Incompatible`] for what is not supported; [`Error::Corrupt`]
    /// when the superblock is damaged and has no whole backup, or the device is shorter than the
    /// volume; [`Error::Io`].
    pub fn open(device: D) -> Result<Self, Error> {
        let mut volume = Self::open_unrecovered(device)?;
        if volume.backup.is_some() && volume.superblock.journal_ino.is_some() {
            // a backup does not know whether the volume was unmounted
            volume.superblock.incompat = volume.superblock.incompat.with(Incompat::RECOVER);
        }
        if volume.superblock.incompat.has(Incompat::RECOVER) {
            match volume.recover() {
                Err(error @ (Error::Io(_) | Error::Journal(JournalError::Io(_)))) => {
                    return Err(error);
                }
                Err(damage) => volume.leave_journal(damage),
                Ok(()) => {}
            }
        }
        Ok(volume)
    }

    /// As [`Self::open`], but without a look at the journal.
    pub(crate) fn open_unrecovered(device: D) -> Result<Self, Error> {
        let mut blocks = Blocks::new(device, BLOCK_SIZE as u32);
        if blocks.bytes() < SUPERBLOCK_OFFSET + SUPERBLOCK_SIZE as u64 {
            return Err(Error::NotExt { found: 0 });
        }
        let first = backup::bytes_at(&mut blocks, SUPERBLOCK_OFFSET)?;
        let superblock = Superblock::parse_on_drive(&first, GroupNo(0));
        let damage = match &superblock {
            Err(Error::Corrupt(damage)) => Some(damage.clone()),
            Err(Error::NotExt { found }) => {
                Corrupt::check_equal(Place::Superblock(GroupNo(0)), "s_magic", *found, MAGIC).err()
            }
            _ => None,
        };
        let (superblock, backup) = match damage {
            Some(damage) => match backup::backup(&mut blocks)? {
                Some((copy, bytes)) if superblock_is_of(&first, &bytes) => {
                    (copy, Some((damage, Box::new(bytes))))
                }
                _ => (superblock?, None),
            },
            None => (superblock?, None),
        };
        blocks.set_block_size(superblock.block_size());
        if superblock.incompat.has(Incompat::DEVIRTUALIZED) {
            let places = blocks.follow_places();
            superblock.drive.check_below(places.space()).map_err(Incompatible::from)?;
        }
        let (found, expected) = (
            blocks.bytes(),
            superblock.blocks_count.saturating_mul(superblock.block_size().into()),
        );
        if found < expected {
            return Err(Damage::Truncated { found, expected }.into());
        }
        Ok(Self { blocks, superblock, recovery: None, journal_damage: None, backup })
    }

    /// Shows what lies in place, as the journal is damaged.
    fn leave_journal(&mut self, damage: Error) {
        self.blocks.redirect(BTreeMap::new());
        self.recovery = None;
        self.journal_damage = Some(damage);
    }

    /// Lets what the journal holds show.
    fn recover(&mut self) -> Result<(), Error> {
        let map = self.journal_map()?;
        let superblock = self.journal_superblock(&map)?;
        let found = replay(&superblock, |at| self.journal_block(&map, at))?;
        if let Stop::Damaged(at) = found.stop {
            let tid = found.next;
            self.journal_damage = Some(JournalError::Transaction { tid, at }.into());
        }
        let blocks = self.superblock.blocks_count;
        let mut beyond =
            found.copies.range(blocks..).filter(|(block, _)| !self.blocks.has_place(**block));
        if let Some((&block, _)) = beyond.next() {
            return Err(JournalError::Target { block, blocks }.into());
        }
        let place = |at: u32| BlockAddr(map.physical(at).unwrap_or(0));
        let redirected: BTreeMap<_, _> = found
            .copies
            .iter()
            .map(|(&block, source)| (BlockAddr(block), (place(source.at), source.escaped)))
            .collect();
        let (transactions, blocks) = (found.transactions, redirected.len() as u64);
        let recovery = Recovery { transactions, blocks };
        self.recovery =
            Some(recovery).filter(|recovery| self.backup.is_none() || recovery.blocks > 0);
        self.blocks.redirect(redirected);
        match self.read_superblock_again() {
            // not in the journal: the first one is as damaged as before
            Err(Error::Corrupt(_) | Error::NotExt { .. }) if self.backup.is_some() => Ok(()),
            read => read,
        }
    }

    /// The superblock may itself be in the journal.
    fn read_superblock_again(&mut self) -> Result<(), Error> {
        let block_size = u64::from(self.superblock.block_size());
        let block = self.blocks.metadata(BlockAddr(SUPERBLOCK_OFFSET / block_size))?;
        let start = (SUPERBLOCK_OFFSET % block_size) as usize;
        let Some(bytes) = block[start..].first_chunk() else { return Ok(()) };
        let recovered = Superblock::parse_on_drive(bytes, GroupNo(0))?;
        let same = |s: &Superblock| {
            (s.log_block_size, s.blocks_count, s.blocks_per_group, s.inodes_per_group)
        };
        let place = Place::Superblock(GroupNo(0));
        if same(&recovered) != same(&self.superblock) {
            let (found, expected) = (recovered.blocks_count, self.superblock.blocks_count);
            return Err(Corrupt::Mismatch {
                place,
                field: "s_blocks_count in the journal",
                found,
                expected,
            }
            .into());
        }
        self.superblock = recovered;
        Ok(())
    }

    /// Location of the journal's blocks.
    ///
    /// # Errors
    /// [`Incompatible::ExternalJournal`]; a journal with holes, or of a size that none has; a
    /// damaged inode.
    pub fn journal_map(&mut self) -> Result<JournalMap, Error> {
        if !self.superblock.compat.has(Compat::HAS_JOURNAL)
            || !self.superblock.journal_ino.is_some()
        {
            return Err(Incompatible::ExternalJournal.into());
        }
        let inode = self.inode(self.superblock.journal_ino)?;
        let place = Place::Inode(inode.ino);
        let blocks = inode.size / u64::from(self.superblock.block_size());
        let most = MAX_BLOCKS.min(self.superblock.blocks_count);
        Corrupt::check_range(place, "the journal's blocks", blocks, (2, most))?;
        let mut runs = Vec::new();
        let mut block = 0;
        while block < blocks {
            let run = self.run(&inode, block)?;
            let len = run.len.min(blocks - block);
            let start = run.mapped.data().ok_or(Corrupt::Range {
                place,
                field: "the journal's blocks",
                found: block,
                min: blocks,
                max: blocks,
            })?;
            runs.push(JournalExtent { start: start.0, blocks: len as u32 });
            block += len;
        }
        Ok(JournalMap::new(&runs))
    }

    /// The superblock of the journal that lies in `map`.
    ///
    /// # Errors
    /// [`Error::Journal`], [`Error::Io`].
    pub fn journal_superblock(&mut self, map: &JournalMap) -> Result<JournalSuperblock, Error> {
        let first = self.blocks.metadata(BlockAddr(map.physical(0).unwrap_or(0)))?;
        Ok(JournalSuperblock::parse(&first, self.superblock.block_size(), map.blocks())?)
    }

    fn journal_block(&mut self, map: &JournalMap, at: u32) -> Result<Content, Error> {
        let place = map.physical(at).ok_or(JournalError::NoSuperblock)?;
        let block = self.blocks.metadata(BlockAddr(place))?;
        let mut bytes = [0; BLOCK_SIZE as usize];
        bytes[..block.len()].copy_from_slice(&block);
        Ok(Content::Bytes(Arc::new(bytes)))
    }
}
