//! A stack on a small drive, made once and copied for every run.

use std::sync::Arc;

use dovetail_block::{
    AREA_BLOCKS, BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, MemoryDevice, Pattern,
};
use dovetail_ftl::{Drive, DriveConfig, MapCacheConfig, RemapConfig, UnrecoveredDrive};
use dovetail_lab::bench::{Stack, Volume};
use dovetail_nand::{Geometry, NandConfig};
use dovetail_testkit::crash::Clock;
use dovetail_time::{Ratio, Rng, SimTime};
use dovetail_vfs::FileSystem;

use crate::CrashError;
use crate::wire::Wire;

/// Pages of an erase block: few, so that blocks are erased often.
const PAGES_PER_BLOCK: u32 = 64;
/// Spare blocks beside those that the capacity takes, in percent of them (assumed: what consumer
/// drives have), and the blocks that the drive needs for itself whatever its size.
const SPARE_PERCENT: u64 = 7;
const OWN_BLOCKS: u64 = 40;
/// Pages of the write buffer at most: a larger one would hold all that a short workload writes.
const MOST_BUFFER_PAGES: u32 = 32;
/// Blocks renamed in one batch at most, for the same reason.
const MOST_RENAMES: u32 = 300;
/// Erases before the workload begins: the drive cleans from then on.
const ERASES_BEFORE: u64 = 8;

/// A stack with an empty volume on a drive that has been in use.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) stack: Stack,
    scale: Ratio,
    drive: UnrecoveredDrive,
    /// The range of a thin drive that is filled beside the volume.
    pub(crate) foreign: Option<BlockRange>,
    /// Blocks that were filled before the workload.
    pub(crate) filled: Arc<Vec<Lba>>,
    /// Blocks of the drive.
    pub(crate) blocks: u64,
}

impl Rig {
    /// Makes the stack's volume on a drive of `blocks` blocks like the stack's own, of which the
    /// rest is filled. The page cache is smaller by as much as the drive, unless `memory` says how
    /// many bytes it has.
    pub(crate) fn new(
        stack: &Stack,
        blocks: u64,
        memory: Option<u64>,
        seed: u64,
    ) -> Result<Self, CrashError> {
        let full = stack.drive_config(Ratio::ONE, seed)?;
        if full.zones.is_some() {
            return Err(CrashError::Zones(stack.name.clone()));
        }
        let scale = Ratio::new(blocks as f64 / full.user_blocks as f64).map_err(|_| {
            CrashError::DriveSize { wanted: blocks * 4096, most: full.user_blocks * 4096 }
        })?;
        let stack = match memory {
            None => stack.clone(),
            // memory shrinks with the drive, too
            Some(bytes) => Stack {
                memory: ((bytes as f64 / scale.value()).ceil() as u64).to_string(),
                ..stack.clone()
            },
        };
        let config = small(&full, blocks);
        let drive = |reason: String| CrashError::Drive { stack: stack.name.clone(), reason };
        let aged = Drive::new(config).map_err(|error| drive(error.to_string()))?;
        let volume = Volume::new(&stack, scale)?;
        let image = formatted(&volume, &aged)?;
        let filled = free(&aged, &image, blocks);
        let aged =
            age(aged, &image, &filled, blocks, seed).map_err(|error| drive(error.to_string()))?;
        let foreign = aged.info().capabilities.thin.map(|_| foreign(blocks));
        let filled = Arc::new(filled);
        Ok(Self { stack, scale, drive: aged.into_unrecovered(), foreign, filled, blocks })
    }

    /// Another one like it, for another thread.
    pub(crate) fn copy(&self) -> Self {
        Self {
            stack: self.stack.clone(),
            drive: self.drive.copy(),
            filled: Arc::clone(&self.filled),
            ..*self
        }
    }

    pub(crate) fn volume(&self) -> Result<Volume<'_>, CrashError> {
        Ok(Volume::new(&self.stack, self.scale)?)
    }

    /// By how much the drive is smaller than the stack's own.
    pub(crate) fn scale(&self) -> Ratio {
        self.scale
    }

    /// The drive as it was made, switched on.
    pub(crate) fn start(&self) -> Result<Wire, CrashError> {
        let failed = |reason: String| CrashError::Drive { stack: self.stack.name.clone(), reason };
        let (drive, _) = self.drive.copy().recover().map_err(|lost| failed(lost.1.to_string()))?;
        Ok(Wire::new(drive))
    }
}

/// Pages of the write buffer for a drive that has so many. One without any gets one: on it a file
/// system that forgets to flush would lose nothing.
fn buffer_pages(full: u32) -> u32 {
    if full == 0 { MOST_BUFFER_PAGES } else { full.min(MOST_BUFFER_PAGES) }
}

/// Lines that a log-block map needs beside its log lines: one to copy to, what is left of the last
/// data line, and those that wait for their erase.
const LINES_FOR_MERGES: u64 = 6;

/// A drive like `full`, of two dies: the same policies and times, less of everything.
fn small(full: &DriveConfig, blocks: u64) -> DriveConfig {
    let page_bytes = full.nand.geometry.page_bytes;
    let pages = blocks.div_ceil(u64::from(page_bytes / 4096));
    let needed = pages.div_ceil(u64::from(PAGES_PER_BLOCK));
    let log_lines = full.log_block.map_or(0, |map| u64::from(map.log_lines) + LINES_FOR_MERGES);
    let flash_blocks = needed + needed * SPARE_PERCENT / 100 + OWN_BLOCKS + 2 * log_lines;
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: flash_blocks.div_ceil(2) as u32,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes,
    };
    let most = full.devirtualize.map(|most| most.min(MOST_RENAMES));
    DriveConfig {
        nand: NandConfig { geometry, factory_bad: Vec::new(), ..full.nand.clone() },
        user_blocks: blocks,
        foreground_lines: 0,
        background_lines: 0,
        buffer_pages: buffer_pages(full.buffer_pages),
        map_cache: full.map_cache.map(|cache| MapCacheConfig {
            bytes: (cache.bytes / (full.user_blocks / blocks).max(1)).max(4096),
            ..cache
        }),
        remap: full.remap.map(|remap| small_remap(remap, most)),
        devirtualize: most,
        ..full.clone()
    }
}

/// A drive that renames takes as many pairs in a remap as a batch has.
fn small_remap(mut remap: RemapConfig, renames: Option<u32>) -> RemapConfig {
    if let Some(most) = renames {
        remap.limits.pairs_per_command = most;
    }
    if let Some(records) = remap.store.discard_records() {
        remap.store.set_discard_records(records.min(64));
    }
    remap
}

/// The stack's volume in memory, mounted once and left clean.
fn formatted(volume: &Volume<'_>, drive: &Drive) -> Result<MemoryDevice, CrashError> {
    let info = drive.info();
    let memory = match info.capabilities.thin {
        Some(thin) => MemoryDevice::thin(info.blocks, thin.capacity / 2),
        None => MemoryDevice::new(info.blocks),
    };
    let memory = crate::shared::Shared::new(memory);
    volume.make(Box::new(memory.clone()))?;
    let mut fs = volume.mount(Box::new(memory.clone()))?;
    let failed = |error: dovetail_vfs::Error| CrashError::Setup(error.to_string());
    let root = fs.root();
    // a directory that the model does not have
    let caller = dovetail_vfs::Caller { now: Clock::moving(0), ..Default::default() };
    match fs.rmdir(&caller, root, b"lost+found") {
        Ok(()) | Err(dovetail_vfs::Error::NotFound) => {}
        Err(error) => return Err(failed(error)),
    }
    fs.unmount().map_err(failed)?;
    Ok(memory.into_inner())
}

/// Of a thin drive a half stays free for the volume; what fills the other half lies in the
/// metadata's area, far behind them.
fn foreign(blocks: u64) -> BlockRange {
    BlockRange::new(Lba(AREA_BLOCKS / 2), blocks / 2)
}

/// The content of a block that is not the volume's.
pub(crate) fn filling(lba: Lba, blocks: u64) -> Pattern {
    Pattern::new(lba.0 % blocks)
}

/// Blocks that the volume leaves to be filled.
fn free(drive: &Drive, image: &MemoryDevice, blocks: u64) -> Vec<Lba> {
    let is_thin = drive.info().capabilities.thin.is_some();
    let filled = if is_thin { foreign(blocks) } else { BlockRange::new(Lba(0), blocks) };
    filled.iter().filter(|lba| is_thin || matches!(image.get(*lba), Content::Empty)).collect()
}

/// Puts the volume on the drive and something into the rest of its room, and overwrites that until
/// the drive has erased.
fn age(
    mut drive: Drive,
    image: &MemoryDevice,
    free: &[Lba],
    blocks: u64,
    seed: u64,
) -> Result<Drive, dovetail_block::DeviceError> {
    let mut now = SimTime::ZERO;
    let mut write = |drive: &mut Drive, lba: Lba, data: Data<'_>| {
        let range = BlockRange::new(lba, 1);
        now = drive
            .submit(now, Command::Write { range, data, hints: Hints::default(), fua: false })?
            .done;
        Ok::<_, dovetail_block::DeviceError>(now)
    };
    for (lba, content) in image.used() {
        write(&mut drive, lba, Data::Blocks(std::slice::from_ref(content)))?;
    }
    for lba in free {
        write(&mut drive, *lba, Data::Patterns(filling(*lba, blocks)))?;
    }
    let mut rng = Rng::new(seed).fork(5);
    let mut end = SimTime::ZERO;
    while drive.counters().erases < ERASES_BEFORE {
        let lba = free[rng.below(free.len() as u64) as usize];
        end = write(&mut drive, lba, Data::Patterns(filling(lba, blocks)))?;
    }
    drive.submit(end, Command::Flush)?;
    Ok(drive)
}
