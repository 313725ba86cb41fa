//! Mounting: the journal is replayed, groups come into memory, and the orphans of the last mount
//! go.

use std::collections::BTreeSet;

use dovetail_block::{BLOCK_SIZE, Scheduler};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::kit::{Rounds, Throttle};
use dovetail_vfs::{Moment, PageCache};
use rustc_hash::FxHashMap;

use super::allocate::Windows;
use super::background::Background;
use super::extents::Roots;
use super::groups::Groups;
use super::inodes::InodeCache;
use super::map::State;
use super::meta::{MetaCache, Running};
use super::waiting::Waiting;
use super::{Ext, Options};
use crate::error::{Corrupt, Damage, Error, Incompatible, Place};
use crate::format::{
    BlockAddr, Compat, Group, GroupFlags, GroupNo, Incompat, RoCompat, SUPERBLOCK_SIZE,
    State as VolumeState, Superblock,
};
use crate::io::{Io, bytes};
use crate::journal::{Journal, JournalExtent, JournalFeatures, JournalMap, MAX_BLOCKS, UseOfLog};
use crate::places::Places;

impl<D: Scheduler> Ext<D> {
    /// Mounts the volume on `device` at the time `now`. What the journal holds is replayed, also
    /// for reading only (but for the option `noload`), and inodes that lost their last name go.
    ///
    /// # Errors
    /// Errors of [`Superblock::parse`]; [`Error::Incompatible`] for a volume that can be read but
    /// not written (mount it with `ro`); [`Error::Corrupt`] for damaged groups; [`Error::Journal`].
    pub fn mount(device: D, options: Options, now: impl Into<Moment>) -> Result<Self, Error> {
        let now = now.into();
        let mut io = Io::new(device, BLOCK_SIZE as usize, now.time);
        let superblock = read_superblock(&mut io)?;
        check_device(&io, &superblock)?;
        if options.physical_pointers {
            super::physical::check_spare_bit(superblock.blocks_count)?;
        }
        if !options.read_only {
            if options.no_load {
                return Err(Incompatible::NoLoad.into());
            }
            check_writable_volume(&superblock)?;
        }
        let mut io = Io::new(io.into_device(), superblock.block_size() as usize, now.time);
        io.set_places(Places::of(&io.device().info(), superblock.block_size().into()));
        // before the journal is replayed: places of another drive's would be written
        if superblock.incompat.has(Incompat::DEVIRTUALIZED) {
            superblock.drive.check_below(io.places().space()).map_err(Incompatible::from)?;
        }
        let was_cut = superblock.incompat.has(Incompat::RECOVER);
        let mut fs = Self::unloaded(io, superblock, options, now);
        fs.load_groups()?;
        fs.load_journal()?;
        fs.open_places()?;
        if !fs.read_only {
            fs.begin_mount()?;
            if was_cut {
                fs.recover_places()?;
            }
        }
        Ok(fs)
    }

    /// The superblock of a volume that [`Self::mount`] may mount, one with pointers to the device's
    /// own addresses included.
    ///
    /// # Errors
    /// Errors of [`Superblock::parse`].
    pub fn superblock_of(device: D) -> Result<Superblock, Error> {
        read_superblock(&mut Io::new(device, BLOCK_SIZE as usize, SimTime::ZERO))
    }

    fn unloaded(io: Io<D>, superblock: Superblock, options: Options, now: Moment) -> Self {
        let meta = MetaCache::new(
            (options.meta_cache_bytes / u64::from(superblock.block_size())) as usize,
        );
        Self {
            meta,
            groups: Groups::new(Vec::new()),
            inodes: InodeCache::default(),
            roots: Roots::default(),
            scratch: Vec::new(),
            pages: PageCache::new((options.page_cache_bytes / BLOCK_SIZE) as usize),
            throttle: Throttle::new(options.page_cache_bytes),
            rounds: Rounds::default(),
            delayed: Waiting::default(),
            unwritten: Waiting::default(),
            kept_from_caller: 0,
            lacked_room: false,
            emptied: BTreeSet::new(),
            windows: Windows::default(),
            running: Running::default(),
            last_commit: None,
            journal: None,
            orphans: Vec::new(),
            lifetimes: FxHashMap::default(),
            holds: FxHashMap::default(),
            listing: None,
            changed: None,
            batch: None,
            background: Background::new(now.time),
            date: now.date,
            random: Rng::new(options.seed ^ superblock.write_time),
            read_only: options.read_only,
            stopped: false,
            edits: 0,
            edits_before_call: 0,
            io,
            superblock,
            options,
        }
    }

    /// Reads all descriptors.
    fn load_groups(&mut self) -> Result<(), Error> {
        let superblock = self.superblock.clone();
        let count = superblock.group_count();
        let mut descs = Vec::new();
        for group in (0..count).map(GroupNo) {
            let slot = superblock.descriptor_slot(group);
            let block =
                self.meta(BlockAddr(slot.block), super::meta::Kind::Plain, Place::Group(group))?;
            let end = slot.offset + superblock.descriptor_size();
            let mut desc = Group::parse_checked(
                block.get(slot.offset..end).unwrap_or_default(),
                group,
                &superblock,
            )?;
            Corrupt::check_range(
                Place::Group(group),
                "bg_free_blocks_count",
                desc.free_blocks,
                (0, superblock.group_blocks(group).into()),
            )?;
            Corrupt::check_range(
                Place::Group(group),
                "bg_free_inodes_count",
                desc.free_inodes,
                (0, superblock.inodes_per_group.into()),
            )?;
            if !superblock.has_group_checksums() {
                // nobody keeps them right there
                desc.flags =
                    desc.flags.without(GroupFlags::INODE_UNINIT.with(GroupFlags::BLOCK_UNINIT));
            }
            descs.push(desc);
        }
        self.groups = Groups::new(descs);
        Ok(())
    }

    /// Opens the journal and replays it. Everything that was read before is read again then.
    fn load_journal(&mut self) -> Result<(), Error> {
        let superblock = &self.superblock;
        if !superblock.compat.has(Compat::HAS_JOURNAL) || self.options.no_load {
            return Ok(());
        }
        if superblock.journal_dev != 0 && !superblock.journal_ino.is_some() {
            return Err(Incompatible::ExternalJournal.into());
        }
        let map = self.journal_map()?;
        // as Linux: somebody else may have written the volume since, and said so
        let asks = self.superblock.incompat.has(Incompat::RECOVER);
        let use_of_log = if asks { UseOfLog::Replay } else { UseOfLog::Wipe };
        let (mut journal, replayed) =
            Journal::open(&mut self.io, map, self.superblock.blocks_count, use_of_log)?;
        if replayed.blocks > 0 {
            self.meta.clear();
            self.inodes.clear();
            self.superblock = read_superblock_of(&mut self.io)?;
            self.load_groups()?;
        }
        let mut features = JournalFeatures::REVOKE.0;
        if self.superblock.ro_compat.has(RoCompat::METADATA_CSUM) {
            features |= JournalFeatures::CSUM_V3.0;
        }
        if self.superblock.incompat.has(Incompat::BITS_64) {
            features |= JournalFeatures::WIDE.0;
        }
        journal.set_features(JournalFeatures(features));
        self.journal = Some(journal);
        Ok(())
    }

    /// Location of the journal's blocks, as its inode says.
    fn journal_map(&mut self) -> Result<JournalMap, Error> {
        let ino = self.superblock.journal_ino;
        let size = u64::from(self.superblock.block_size());
        let inode = self.inode(ino)?;
        let blocks = inode.size / size;
        Corrupt::check_range(
            Place::Inode(ino),
            "blocks of the journal",
            blocks,
            (2, MAX_BLOCKS.min(self.superblock.blocks_count)),
        )?;
        let (mut at, mut extents) = (0, Vec::new());
        while at < blocks {
            let run = self.map(ino, at as u32)?;
            let len = run.end().min(blocks) - at;
            match run.state {
                State::Written(start) => {
                    extents.push(JournalExtent { start: start.0, blocks: len as u32 });
                }
                _ => {
                    let place = Place::Inode(ino);
                    return Err(Corrupt::Mismatch {
                        place,
                        field: "holes in the journal",
                        found: 1,
                        expected: 0,
                    }
                    .into());
                }
            }
            at += len;
        }
        Ok(JournalMap::new(&extents))
    }

    /// Marks the volume as mounted, and works off what the last mount left.
    fn begin_mount(&mut self) -> Result<(), Error> {
        if self.journal.is_none() {
            return Err(Incompatible::NoJournal.into());
        }
        self.superblock.incompat = self.superblock.incompat.with(Incompat::RECOVER);
        self.superblock.mount_count = self.superblock.mount_count.saturating_add(1);
        self.superblock.mount_time = self.date_s();
        self.superblock.state.0 |= VolumeState::VALID;
        self.write_superblock()?;
        self.clean_orphans()?;
        self.commit()?;
        self.running.began = None;
        Ok(())
    }
}

/// The superblock of a device of which the block size is not known yet.
fn read_superblock<D: Scheduler>(io: &mut Io<D>) -> Result<Superblock, Error> {
    let block = bytes(&io.read(0)?);
    let bytes =
        block[1024..].first_chunk::<SUPERBLOCK_SIZE>().copied().unwrap_or([0; SUPERBLOCK_SIZE]);
    Superblock::parse_on_drive(&bytes, GroupNo(0))
}

fn read_superblock_of<D: Scheduler>(io: &mut Io<D>) -> Result<Superblock, Error> {
    let (at, offset) = if io.block_size() == 1024 { (1, 0) } else { (0, 1024) };
    let block = bytes(&io.read(at)?);
    let bytes =
        block[offset..].first_chunk::<SUPERBLOCK_SIZE>().copied().unwrap_or([0; SUPERBLOCK_SIZE]);
    Superblock::parse_on_drive(&bytes, GroupNo(0))
}

fn check_device<D: Scheduler>(io: &Io<D>, superblock: &Superblock) -> Result<(), Corrupt> {
    let found = io.device().info().blocks.saturating_mul(BLOCK_SIZE);
    let expected = superblock.blocks_count.saturating_mul(superblock.block_size().into());
    if found < expected { Err(Damage::Truncated { found, expected }.into()) } else { Ok(()) }
}

/// Refuses to write where something is not kept right.
fn check_writable_volume(superblock: &Superblock) -> Result<(), Incompatible> {
    let unmaintained = superblock.incompat.without(Incompat::WRITTEN.with(Incompat::DEVIRTUALIZED));
    if unmaintained != Incompat(0) {
        return Err(Incompatible::Unmaintained(unmaintained));
    }
    let read_only = superblock.ro_compat.without(RoCompat::WRITTEN);
    if read_only != RoCompat(0) {
        return Err(Incompatible::ReadOnlyFeatures(read_only));
    }
    Ok(())
}
