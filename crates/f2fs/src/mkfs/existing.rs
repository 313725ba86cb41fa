//! Detection of what a device already holds.

use dovetail_block::{
    BLOCK_SIZE, BlockBytes, BlockDevice, BlockRange, Command, Content, DeviceError, Lba,
};
use dovetail_time::SimTime;

/// Marks of well-known formats (libblkid has the same): name, byte, mark.
const MARKS: [(&str, usize, &[u8]); 19] = [
    ("an IPLFS volume", 1024, b"IPLF"),
    ("an IPLFS volume", 4096 + 1024, b"IPLF"),
    ("an F2FS volume", 1024, &[0x10, 0x20, 0xF5, 0xF2]),
    ("an F2FS volume", 4096 + 1024, &[0x10, 0x20, 0xF5, 0xF2]),
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xEF]),
    ("an XFS file system", 0, b"XFSB"),
    ("a Btrfs file system", 0x1_0040, b"_BHRfS_M"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("a FAT file system", 54, b"FAT"),
    ("a FAT file system", 82, b"FAT32"),
    ("an ISO 9660 file system", 0x8001, b"CD001"),
    ("a squashfs file system", 0, b"hsqs"),
    ("an EROFS file system", 1024, &[0xE2, 0xE1, 0xF5, 0xE0]),
    ("a LUKS volume", 0, b"LUKS\xBA\xBE"),
    ("an LVM volume", 512, b"LABELONE"),
    ("a swap area", 4086, b"SWAPSPACE2"),
    ("a partition table", 512, b"EFI PART"),
    ("a partition table", 510, &[0x55, 0xAA]),
];

/// Blocks that the marks stand in.
const LOOKED_AT: u64 = 17;

/// Description of the format that `device` holds by its marks; `None` if none is known.
///
/// # Errors
/// The device's.
pub fn existing_content<D: BlockDevice>(
    device: &mut D,
) -> Result<Option<&'static str>, DeviceError> {
    let blocks = LOOKED_AT.min(device.info().blocks);
    let mut contents = vec![Content::Empty; blocks as usize];
    let range = BlockRange::new(Lba(0), blocks);
    device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut contents) })?;
    let bytes: Vec<u8> = contents.iter().flat_map(bytes).collect();
    let found = MARKS
        .iter()
        .find(|(_, at, mark)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(mark)));
    Ok(found.map(|(name, ..)| *name))
}

fn bytes(content: &Content) -> BlockBytes {
    match content {
        Content::Bytes(bytes) => **bytes,
        _ => [0; BLOCK_SIZE as usize],
    }
}
