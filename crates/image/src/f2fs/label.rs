//! The label of an F2FS or IPLFS volume: in both copies of its superblock.

use dovetail_block::BlockDevice;
use dovetail_f2fs::format::Superblock;
use dovetail_f2fs::{Volume, check_device};

use super::format::failed;
use crate::format::device;
use crate::{Error, Source, raw_block};

/// UTF-16 units of a label: the size of the superblock's field (`MAX_VOLUME_NAME`).
const MOST_UNITS: usize = 512;

pub(super) fn label(image: &Source) -> Result<String, Error> {
    let volume = Volume::open(device(image, false)?).map_err(|error| failed(image, error))?;
    Ok(volume.superblock().label.clone())
}

/// Writes the second copy, then the first: one of them is whole at any time.
pub(super) fn set_label(image: &Source, label: &str) -> Result<(), Error> {
    let units = label.encode_utf16().count();
    if units > MOST_UNITS || label.contains('\0') {
        return Err(Error::Usage(format!(
            "a label of F2FS has at most {MOST_UNITS} units of UTF-16, without NUL; this one has {units}"
        )));
    }
    let mut device = device(image, true)?;
    let mut copies = Vec::new();
    for copy in [1, 0] {
        let block =
            raw_block::read(&mut device, copy.into()).map_err(|error| failed(image, error))?;
        let superblock = Superblock::parse(&block, copy).map_err(|error| {
            let why = format!("superblock copy {copy} cannot be used: {error}");
            failed(image, format!("{why}; `dovetail fsck --repair` writes it again"))
        })?;
        check_device(&superblock, &device.info()).map_err(|error| failed(image, error))?;
        let labelled = Superblock { label: label.to_owned(), ..superblock };
        copies.push((copy, labelled.encode(&block)));
    }
    for (copy, block) in copies {
        raw_block::write(&mut device, copy.into(), block).map_err(|error| failed(image, error))?;
    }
    Ok(())
}
