//! Images of ext2, ext3 and ext4.

use dovetail_ext::format::{Compat, Incompat, Superblock};
use dovetail_ext::{Error as VolumeError, Volume};
use dovetail_vfs::{FileSystem, Moment};

use super::{check, inspect, label, mount};
use crate::format::device;
use crate::tree::Unmounted;
use crate::{
    Check, Error, Files, Format, Found, Inspected, Medium, Mount, Repair, Source, Structure, Tell,
};

/// The family of ext.
pub(crate) struct Ext;

impl Format for Ext {
    fn variants(&self) -> &'static [&'static str] {
        &["ext4", "ext3", "ext2"]
    }

    fn is_on(&self, device: &mut Medium) -> Result<bool, String> {
        match dovetail_ext::Ext::superblock_of(device) {
            // a backup says what it is; whether it can be mounted is another question
            Ok(_) | Err(VolumeError::Corrupt(_)) => Ok(true),
            Err(VolumeError::NotExt { .. }) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn has_copy_on(&self, device: &mut Medium) -> Result<bool, String> {
        match Volume::open(device) {
            Ok(volume) => Ok(volume.superblock_damage().is_some()),
            Err(VolumeError::Io(error)) => Err(error.to_string()),
            Err(_) => Ok(false),
        }
    }

    fn variant_on(&self, image: &Source) -> Result<&'static str, Error> {
        let mut device = device(image, false)?;
        match dovetail_ext::Ext::superblock_of(&mut device) {
            Ok(superblock) => Ok(variant(&superblock)),
            Err(error) => match Volume::open(device) {
                Ok(volume) => Ok(variant(volume.superblock())),
                Err(_) => Err(failed(image, error)),
            },
        }
    }

    /// The journal's content shows.
    fn files(
        &self,
        image: &Source,
        held: Result<(), String>,
        tell: Tell<'_>,
    ) -> Result<Files, Error> {
        let volume = volume(image, tell)?;
        if let Err(why) = held {
            tell(format!("{why}; this is what has reached it so far"));
        }
        let superblock = volume.superblock();
        let most_bytes = superblock.blocks_count.saturating_mul(superblock.block_size().into());
        Ok(Files { tree: Box::new(Unmounted(volume)), most_bytes, used_bytes: None })
    }

    fn mount(
        &self,
        image: &Source,
        request: &Mount<'_>,
        tell: Tell<'_>,
    ) -> Result<Box<dyn FileSystem + Send + Sync>, Error> {
        mount::mount(image, request, tell)
    }

    fn check(&self, image: &Source, _: &mut dyn FnMut(u64, u64)) -> Result<Check, Error> {
        check::check(image)
    }

    fn repair(&self, _: &Source) -> Result<Repair, Error> {
        Ok(Repair::Refused("ext volumes are not repaired here; use e2fsck".into()))
    }

    fn salvage(&self, image: &Source, _: Moment) -> Result<Repair, Error> {
        self.repair(image)
    }

    fn salvaged_files(
        &self,
        _: &Source,
        _: Moment,
        _: Tell<'_>,
    ) -> Result<(Files, Vec<Found>), Error> {
        Err(Error::Usage("ext volumes are not salvaged here: use e2fsck on a copy".into()))
    }

    fn label(&self, image: &Source) -> Result<String, Error> {
        label::label(image)
    }

    fn set_label(&self, image: &Source, label: &str, now: Moment) -> Result<(), Error> {
        label::set_label(image, label, now)
    }

    fn inspect(
        &self,
        image: &Source,
        structure: &Structure,
        tell: Tell<'_>,
    ) -> Result<Inspected, Error> {
        inspect::inspect(&mut volume(image, tell)?, structure).map(Inspected::from)
    }
}

pub(super) fn failed(image: &Source, error: impl std::fmt::Display) -> Error {
    Error::Failed(format!("{}: {error}", image.display()))
}

fn variant(superblock: &Superblock) -> &'static str {
    match (superblock.incompat.has(Incompat::EXTENTS), superblock.compat.has(Compat::HAS_JOURNAL)) {
        (true, _) => "ext4",
        (false, true) => "ext3",
        (false, false) => "ext2",
    }
}

fn volume(image: &Source, tell: Tell<'_>) -> Result<Volume<Medium>, Error> {
    let volume = Volume::open(device(image, false)?).map_err(|error| failed(image, error))?;
    if let Some(damage) = volume.superblock_damage() {
        tell(format!("{}: {damage}; the backup in group 1 is used", image.display()));
    }
    if let Some(damage) = volume.journal_damage() {
        tell(format!(
            "{}: {damage}; this is the volume without what the journal still held",
            image.display()
        ));
    }
    Ok(volume)
}
