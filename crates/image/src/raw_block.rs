//! Single blocks of a device, read and written as bytes.

use std::sync::Arc;

use dovetail_block::{
    BlockBytes, BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba,
};
use dovetail_time::SimTime;

/// The bytes of block `lba`.
pub(crate) fn read(device: &mut impl BlockDevice, lba: u64) -> Result<BlockBytes, DeviceError> {
    let (range, mut content) = (BlockRange::new(Lba(lba), 1), [Content::Empty]);
    device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut content) })?;
    match &content[0] {
        Content::Bytes(bytes) => Ok(**bytes),
        _ => Ok([0; 4096]),
    }
}

/// Writes block `lba`, so that it survives a power cut.
pub(crate) fn write(
    device: &mut impl BlockDevice,
    lba: u64,
    bytes: BlockBytes,
) -> Result<(), DeviceError> {
    let (range, content) = (BlockRange::new(Lba(lba), 1), [Content::Bytes(Arc::new(bytes))]);
    let data = Data::Blocks(&content);
    device.submit(
        SimTime::ZERO,
        Command::Write { range, data, hints: Hints::default(), fua: true },
    )?;
    device.submit(SimTime::ZERO, Command::Flush).map(drop)
}
