//! Mounting: the state of the last checkpoint in memory, orphans gone, fsynced files rolled
//! forward.

use dovetail_block::Scheduler;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::kit::{Rounds, Throttle};
use dovetail_vfs::{Moment, PageCache};

use super::background::Background;
use super::committed::Committed;
use super::io::Io;
use super::mount_state::MountState;
use super::nat::NatTable;
use super::node_cache::NodeCache;
use super::orphans::Orphans;
use super::physical::Physical;
use super::since::SinceCheckpoint;
use super::space::{Found, Space};
use super::updates::UpdateState;
use super::{Counts, Events, F2fs, IpuPolicy, Options};
use crate::error::{Corrupt, Error, Incompatible, Place};
use crate::format::{
    BLOCK, BlockAddr, Checkpoint, CheckpointFlags, Extent, Features, Nid, Superblock, parse_orphans,
};
use crate::volume::Volume;

/// Features whose structures are kept right by every change.
const WRITABLE: Features = Features(
    Features::ENCRYPT.0
        | Features::BLKZONED.0
        | Features::EXTRA_ATTR.0
        | Features::PROJECT_QUOTA.0
        | Features::INODE_CHECKSUM.0
        | Features::FLEXIBLE_INLINE_XATTR.0
        | Features::INODE_CRTIME.0
        | Features::LOST_FOUND.0
        | Features::VERITY.0
        | Features::SB_CHECKSUM.0
        | Features::COMPRESSION.0,
);

impl<D: Scheduler> F2fs<D> {
    /// Mounts the volume on `device` at virtual time `now`. What fsyncs wrote after the last
    /// checkpoint is recovered, which ends with a checkpoint.
    ///
    /// # Errors
    /// Errors of [`Volume::open`]; [`Error::Incompatible`] for a volume that can be read but not
    /// written (mount it with `ro`); [`Error::Corrupt`] for tables that contradict each other.
    pub fn mount(device: D, options: Options, now: impl Into<Moment>) -> Result<Self, Error> {
        let now = now.into().time;
        Self::check_remap(&device, &options)?;
        Self::check_remapped_cleaning(&device, &options)?;
        let mut volume = Volume::open(device)?;
        if volume.superblock().features.has(Features::READ_ONLY) {
            return Err(Incompatible::ReadOnlyVolume.into());
        }
        let mut options = options;
        Space::check_device(&volume.device_info(), volume.superblock(), &mut options)?;
        options.check_inline_xattr(volume.superblock().features)?;
        let discard_log = volume.discard_log()?;
        if !options.read_only {
            check_writable_volume(volume.superblock(), volume.checkpoint())?;
        }
        let mut fs = Self::from_volume(volume, discard_log, options, now)?;
        fs.space.check_counts(&fs.superblock, fs.committed.checkpoint())?;
        fs.open_device_addresses()?;
        if !fs.state.is_mounted_read_only() {
            let listed = fs.read_orphans()?;
            fs.state.begin_recovery();
            fs.recover(&listed)?;
            fs.repair_zones()?;
            fs.state.end_recovery();
            fs.recover_device_addresses()?;
        }
        Ok(fs)
    }

    fn from_volume(
        volume: Volume<D>,
        discard_log: Vec<Extent>,
        options: Options,
        now: SimTime,
    ) -> Result<Self, Error> {
        let Volume { blocks, superblock, checkpoint, bitmaps, nat_journal, sit_journal, .. } =
            volume;
        let mut io = Io::new(blocks.into_device(), now);
        let last_nid = u64::from(superblock.max_nid()) - 1;
        for nid in nat_journal.keys() {
            Corrupt::check_range(Place::Nat(*nid), "nid in the journal", nid.0, (0, last_nid))?;
        }
        let head = io.read(pack_start(&superblock, &checkpoint))?;
        let found = Found {
            superblock: &superblock,
            checkpoint: &checkpoint,
            sit_bitmap: &bitmaps.sit,
            sit_journal: &sit_journal,
            discard_log,
        };
        let space = Space::load(&mut io, found, &options)?;
        let small = options.is_small(superblock.segment_count_main);
        let counts = Counts {
            valid_blocks: checkpoint.valid_block_count,
            valid_nodes: checkpoint.valid_nodes,
            valid_inodes: checkpoint.valid_inodes,
        };
        Ok(Self {
            space,
            nat: NatTable::new(
                superblock.variant,
                superblock.max_nid(),
                checkpoint.next_free_nid,
                nat_journal,
            ),
            nodes: NodeCache::new((options.node_cache_bytes / BLOCK as u64) as usize),
            pages: PageCache::new((options.page_cache_bytes / BLOCK as u64) as usize),
            throttle: Throttle::new(options.page_cache_bytes),
            rounds: Rounds::default(),
            inline_names: Default::default(),
            dirty_dents: Default::default(),
            lifetimes: Default::default(),
            scratch: Default::default(),
            counts,
            since: SinceCheckpoint::default(),
            updates: UpdateState::new(options.ipu_policy.unwrap_or(IpuPolicy::default_for(small))),
            orphans: Orphans::default(),
            physical: Physical::default(),
            background: Background::new(now, checkpoint.elapsed_s, &options),
            events: Events::default(),
            random: Rng::new(options.seed ^ checkpoint.version),
            mounted_at: now,
            state: MountState::new(options.read_only),
            committed: Committed::new(checkpoint, head, bitmaps),
            io,
            superblock,
            options,
        })
    }

    /// Lets logs of a zoned volume go on where their zones can be written, and ends the zones that
    /// they leave. Where there was something to recover they have moved already, with a checkpoint.
    fn repair_zones(&mut self) -> Result<(), Error> {
        let was_cut = !self.committed.checkpoint().flags.has(CheckpointFlags::UMOUNT);
        if self.space.move_from_pointers(&mut self.io, was_cut && self.events.checkpoints == 0)? {
            // records in another segment than where the checkpoint left the log are not found
            self.since.break_chain();
        }
        self.space.repair_zones(&mut self.io)
    }

    fn read_orphans(&mut self) -> Result<Vec<Nid>, Error> {
        let mut listed = Vec::new();
        if !self.committed.checkpoint().flags.has(CheckpointFlags::ORPHAN) {
            return Ok(listed);
        }
        let start = pack_start(&self.superblock, self.committed.checkpoint());
        for offset in 1 + self.superblock.cp_payload..self.committed.checkpoint().summary_start {
            listed.extend(parse_orphans(&*self.io.read(start.plus(offset.into()))?));
        }
        Ok(listed)
    }
}

/// Refuses to write where something is not kept right, or is not right already.
fn check_writable_volume(superblock: &Superblock, checkpoint: &Checkpoint) -> Result<(), Error> {
    let unmaintained = superblock.features.without(WRITABLE);
    if unmaintained != Features(0) {
        return Err(Incompatible::Unmaintained(unmaintained).into());
    }
    let refused = CheckpointFlags::ERROR.0
        | CheckpointFlags::FSCK.0
        | CheckpointFlags::QUOTA_NEED_FSCK.0
        | CheckpointFlags::DISABLED.0
        | CheckpointFlags::DISABLED_QUICK.0
        | CheckpointFlags::RESIZEFS.0;
    let found = CheckpointFlags(checkpoint.flags.0 & refused);
    if found != CheckpointFlags(0) {
        return Err(Incompatible::CheckpointState(found).into());
    }
    Ok(())
}

fn pack_start(superblock: &Superblock, checkpoint: &Checkpoint) -> BlockAddr {
    crate::volume::open::pack_start(superblock, checkpoint.pack)
}
