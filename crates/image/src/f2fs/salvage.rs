//! Salvage of an F2FS image: in place, or in memory for a copy out of it.

use dovetail_block::BLOCK_SIZE;
use dovetail_f2fs::fsck::{self, RepairError, Saved};
use dovetail_f2fs::{BackgroundGc, F2fs, Options, Volume};
use dovetail_vfs::check::Severity;
use dovetail_vfs::{FileSystem, Moment};

use super::format::{failed, most_bytes};
use super::in_memory;
use crate::format::device;
use crate::tree::Unmounted;
use crate::{Error, Files, Found, Repair, Source, Tell};

pub(super) fn salvage(image: &Source, now: Moment) -> Result<Repair, Error> {
    match fsck::salvage(device(image, true)?, now) {
        Ok(saved) => Ok(Repair::Salvaged(saved.iter().map(found).collect())),
        Err(RepairError::Volume(error)) => Err(failed(image, error)),
        Err(refusal) => Ok(Repair::Refused(refusal.to_string())),
    }
}

pub(super) fn files(
    image: &Source,
    now: Moment,
    tell: Tell<'_>,
) -> Result<(Files, Vec<Found>), Error> {
    let volume = Volume::open(device(image, false)?).map_err(|error| failed(image, error))?;
    let superblock = volume.superblock().clone();
    let used_bytes = Some(volume.checkpoint().valid_block_count * BLOCK_SIZE);
    let most_bytes = most_bytes(&superblock);
    let mut overlay = in_memory::over(volume.into_device(), &superblock);
    match fsck::salvage(&mut overlay, now) {
        Ok(saved) => {
            let options = Options { background_gc: BackgroundGc::Off, ..Options::default() };
            let fs = F2fs::mount(overlay, options, now).map_err(|error| failed(image, error))?;
            let tree: Box<dyn FileSystem> = Box::new(fs);
            let files = Files { tree: Box::new(tree), most_bytes, used_bytes };
            Ok((files, saved.iter().map(found).collect()))
        }
        Err(RepairError::Volume(error)) => Err(failed(image, error)),
        Err(refusal) => {
            tell(format!("{refusal}; files without a path are left out"));
            let mut volume =
                Volume::open(device(image, false)?).map_err(|error| failed(image, error))?;
            volume.find_nodes().map_err(|error| failed(image, error))?;
            let tree = Box::new(Unmounted(volume));
            Ok((Files { tree, most_bytes, used_bytes }, Vec::new()))
        }
    }
}

fn found(saved: &Saved) -> Found {
    let severity = if saved.is_loss() { Severity::Warning } else { Severity::Note };
    Found {
        kind: saved.kind(),
        severity,
        text: saved.to_string(),
        values: saved.values(),
        is_repairable: false,
    }
}
