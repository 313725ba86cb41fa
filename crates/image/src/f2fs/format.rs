//! Images of F2FS and IPLFS.

use dovetail_block::BLOCK_SIZE;
use dovetail_f2fs::format::{Features, Superblock, Variant as Layout};
use dovetail_f2fs::{Error as VolumeError, F2fs as Mounted, Options, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::{FileSystem, Moment};

use super::{check, in_memory, inspect, label, mount, salvage};
use crate::format::device;
use crate::tree::Unmounted;
use crate::{
    Check, Error, Files, Format, Found, Inspected, Medium, Mount, Repair, Source, Structure, Tell,
};

/// Blocks that a compressed cluster of F2FS has at most, of which one is stored at least.
const MAX_CLUSTER: u64 = 256;

/// F2FS with its variant IPLFS.
pub(crate) struct F2fs;

impl Format for F2fs {
    fn variants(&self) -> &'static [&'static str] {
        &["f2fs", "iplfs"]
    }

    /// Everything that is wrong with it is said when it is read.
    fn is_on(&self, device: &mut Medium) -> Result<bool, String> {
        Ok(!matches!(Volume::open(device), Err(VolumeError::NotF2fs { .. })))
    }

    fn variant_on(&self, image: &Source) -> Result<&'static str, Error> {
        let variant = Volume::open(device(image, false)?).map(|volume| volume.superblock().variant);
        Ok(if matches!(variant, Ok(Layout::Iplfs(_))) { "iplfs" } else { "f2fs" })
    }

    /// Fsynced files are recovered and orphans removed in memory; where that cannot be, the last
    /// checkpoint.
    fn files(
        &self,
        image: &Source,
        held: Result<(), String>,
        tell: Tell<'_>,
    ) -> Result<Files, Error> {
        let volume = volume(image)?;
        let most_bytes = most_bytes(volume.superblock());
        let used_bytes = Some(volume.checkpoint().valid_block_count * BLOCK_SIZE);
        match held.and_then(|()| mounted(image, volume.superblock())) {
            Ok(fs) => Ok(Files { tree: Box::new(fs), most_bytes, used_bytes }),
            Err(why) => {
                tell(format!("{why}; this is the last checkpoint"));
                Ok(Files { tree: Box::new(Unmounted(volume)), most_bytes, used_bytes })
            }
        }
    }

    fn mount(
        &self,
        image: &Source,
        request: &Mount<'_>,
        _: Tell<'_>,
    ) -> Result<Box<dyn FileSystem + Send + Sync>, Error> {
        mount::mount(image, request)
    }

    fn check(&self, image: &Source, progress: &mut dyn FnMut(u64, u64)) -> Result<Check, Error> {
        check::check(image, progress)
    }

    fn repair(&self, image: &Source) -> Result<Repair, Error> {
        check::repair(image)
    }

    fn salvage(&self, image: &Source, now: Moment) -> Result<Repair, Error> {
        salvage::salvage(image, now)
    }

    fn salvaged_files(
        &self,
        image: &Source,
        now: Moment,
        tell: Tell<'_>,
    ) -> Result<(Files, Vec<Found>), Error> {
        salvage::files(image, now, tell)
    }

    fn label(&self, image: &Source) -> Result<String, Error> {
        label::label(image)
    }

    fn set_label(&self, image: &Source, label: &str, _: Moment) -> Result<(), Error> {
        label::set_label(image, label)
    }

    fn inspect(
        &self,
        image: &Source,
        structure: &Structure,
        _: Tell<'_>,
    ) -> Result<Inspected, Error> {
        inspect::inspect(volume(image)?, structure)
    }
}

pub(super) fn failed(image: &Source, error: impl std::fmt::Display) -> Error {
    Error::Failed(format!("{}: {error}", image.display()))
}

/// The volume as of its last checkpoint.
fn volume(image: &Source) -> Result<Volume<Medium>, Error> {
    Volume::open(device(image, false)?).map_err(|error| failed(image, error))
}

pub(super) fn most_bytes(superblock: &Superblock) -> u64 {
    let blocks = match superblock.variant {
        Layout::F2fs => superblock.block_count,
        Layout::Iplfs(_) => superblock.capacity,
    };
    let cluster = if superblock.features.has(Features::COMPRESSION) { MAX_CLUSTER } else { 1 };
    blocks.saturating_mul(BLOCK_SIZE).saturating_mul(cluster)
}

fn mounted(image: &Source, superblock: &Superblock) -> Result<Box<dyn FileSystem>, String> {
    let device = device(image, false).map_err(|error| error.to_string())?;
    let device = in_memory::over(device, superblock);
    let fs = Mounted::mount(device, Options::default(), SimTime::ZERO);
    Ok(Box::new(fs.map_err(|error| failed(image, error).to_string())?))
}
