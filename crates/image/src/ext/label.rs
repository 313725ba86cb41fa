//! The label of an ext volume: in its first superblock, as e2label writes it.

use dovetail_ext::format::{Incompat, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, Superblock};
use dovetail_vfs::Moment;

use super::format::failed;
use crate::format::device;
use crate::{Error, Format, Mount, Source, raw_block};

/// Bytes of a label: the size of the superblock's field.
const MOST_BYTES: usize = 16;

pub(super) fn label(image: &Source) -> Result<String, Error> {
    let mut device = device(image, false)?;
    let superblock = dovetail_ext::Ext::superblock_of(&mut device);
    let label = superblock.map_err(|error| failed(image, error))?.label;
    let len = label.iter().position(|byte| *byte == 0).unwrap_or(label.len());
    Ok(String::from_utf8_lossy(&label[..len]).into_owned())
}

pub(super) fn set_label(image: &Source, label: &str, now: Moment) -> Result<(), Error> {
    let (bytes, len) = (label.as_bytes(), label.len());
    if len > MOST_BYTES || bytes.contains(&0) {
        return Err(Error::Usage(format!(
            "a label of ext has at most {MOST_BYTES} bytes, without NUL; this one has {len}"
        )));
    }
    replay(image, now)?;
    let mut device = device(image, true)?;
    let mut block = raw_block::read(&mut device, 0).map_err(|error| failed(image, error))?;
    let place = SUPERBLOCK_OFFSET as usize..SUPERBLOCK_OFFSET as usize + SUPERBLOCK_SIZE;
    let mut base = [0; SUPERBLOCK_SIZE];
    base.copy_from_slice(&block[place.clone()]);
    let superblock = dovetail_ext::Ext::superblock_of(&mut device);
    let superblock = superblock.map_err(|error| failed(image, error))?;
    let mut stored = [0; MOST_BYTES];
    stored[..len].copy_from_slice(bytes);
    block[place].copy_from_slice(&Superblock { label: stored, ..superblock }.encode(&base));
    raw_block::write(&mut device, 0, block).map_err(|error| failed(image, error))
}

/// Replays the journal: a superblock in it would bring the old label back.
fn replay(image: &Source, now: Moment) -> Result<(), Error> {
    let superblock = dovetail_ext::Ext::superblock_of(device(image, false)?);
    let superblock = superblock.map_err(|error| failed(image, error))?;
    if !superblock.incompat.has(Incompat::RECOVER) {
        return Ok(());
    }
    let request = Mount { read_only: false, options: "", seed: 0, now };
    let fs = super::Ext.mount(image, &request, &mut |_| {})?;
    fs.unmount().map_err(|error| failed(image, error))
}
