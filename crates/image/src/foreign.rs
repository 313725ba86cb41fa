//! Images without a file system of ours, told by their first bytes: a sentence for each, with the
//! way on.

use dovetail_block::{BLOCK_SIZE, BlockDevice};
use dovetail_time::format_bytes;

use crate::disk_bytes::DiskBytes;
use crate::partitions::{Partition, partitions};
use crate::{FORMATS, Medium, Source};

/// Bytes that are looked at: to behind the magic number of btrfs.
const HEAD: usize = 66 << 10;
/// A volume of a few blocks does not exist.
const TINY: u64 = 16 << 10;

/// A magic number: its place, its bytes, and the sentence.
type Magic = (usize, &'static [u8], &'static str);

/// Files that hold an image in another form.
const WRAPPED: [Magic; 19] = [
    (0, b"\xfd7zXZ\0", "it is compressed with xz: unpack it first (xz -d)"),
    (0, b"\x1f\x8b", "it is compressed with gzip: unpack it first (gzip -d)"),
    (0, b"\x28\xb5\x2f\xfd", "it is compressed with zstd: unpack it first (zstd -d)"),
    (0, b"BZh", "it is compressed with bzip2: unpack it first (bzip2 -d)"),
    (0, b"\x04\x22\x4d\x18", "it is compressed with lz4: unpack it first (lz4 -d)"),
    (0, b"PK\x03\x04", "it is a zip archive: unpack it first (unzip)"),
    (0, b"QFI\xfb", "it is a qcow2 image: qemu-img convert -O raw makes a plain one of it"),
    (257, b"ustar", "it is a tar archive: unpack it first (tar -x)"),
    (0, b"\x02\x21\x4c\x18", "it is compressed with lz4: unpack it first (lz4 -d)"),
    (0, b"7z\xbc\xaf\x27\x1c", "it is a 7-Zip archive: unpack it first (7z x)"),
    (0, b"KDMV", "it is a VMDK image: qemu-img convert -O raw makes a plain one of it"),
    (0, b"vhdxfile", "it is a VHDX image: qemu-img convert -O raw makes a plain one of it"),
    (0, b"conectix", "it is a VHD image: qemu-img convert -O raw makes a plain one of it"),
    (64, b"\x7f\x10\xda\xbe", "it is a VDI image: qemu-img convert -O raw makes a plain one of it"),
    (0, b"ANDROID!", "it is an Android boot image: it holds a kernel and no volume"),
    (0, b"CrAU", "it is an Android update (payload.bin): payload-dumper takes its images out"),
    (
        4096,
        b"\x67\x44\x6c\x61",
        "it is Android's super partition, which holds others: lpunpack takes them out",
    ),
    (0, b"VMFS", "it is a VMFS image, which is not known here"),
    (0, b"UBI#", "it is a UBI image of raw flash: ubireader takes its volumes out"),
];

/// File systems and the like that are not ours.
const OTHERS: [Magic; 14] = [
    (65_600, b"_BHRfS_M", "btrfs"),
    (0, b"XFSB", "XFS"),
    (1024, b"\xe2\xe1\xf5\xe0", "EROFS"),
    (0, b"hsqs", "SquashFS"),
    (3, b"NTFS    ", "NTFS"),
    (3, b"EXFAT   ", "exFAT"),
    (82, b"FAT32   ", "FAT"),
    (54, b"FAT1", "FAT"),
    (32_769, b"CD001", "ISO 9660"),
    (4086, b"SWAPSPACE2", "swap space"),
    (0, b"\x45\x3d\xcd\x28", "cramfs"),
    (512, b"LABELONE", "LVM, whose volumes vgchange -ay shows"),
    (4096, b"\xfc\x4e\x2b\xa9", "a part of an md array (RAID)"),
    (0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
];

/// A sentence about the image; `None` if nothing is recognised.
pub(crate) fn describe(source: &Source) -> Option<String> {
    let disk = DiskBytes::open(source).ok()?;
    let head = disk.head(HEAD);
    let wrapped = WRAPPED.iter().find(|magic| has(&head, magic));
    let other = || OTHERS.iter().find(|magic| has(&head, magic));
    let small = || disk.len().filter(|bytes| *bytes < TINY);
    wrapped
        .map(|(_, _, sentence)| (*sentence).to_owned())
        .or_else(|| small().map(|bytes| too_small(bytes, source.offset())))
        .or_else(|| other().map(|(_, _, name)| format!("it holds {name}, which is not known here")))
        .or_else(|| parted(source, &partitions(&disk)))
}

/// The partitions of a disk, a line each, with what they hold.
fn parted(source: &Source, found: &[Partition]) -> Option<String> {
    let kinds: Vec<_> = found.iter().map(|partition| kind(source, partition)).collect();
    let ours = || kinds.iter().zip(found).find(|(kind, _)| kind.is_some());
    let first = ours().map(|(_, partition)| partition).or(found.first())?;
    let mut text = format!(
        "it is a disk with partitions: give --partition {} or another of them, or --offset with its byte",
        first.number
    );
    for (partition, kind) in found.iter().zip(&kinds) {
        let (number, offset) = (partition.number, partition.offset);
        let (bytes, name) = (format_bytes(partition.bytes), &partition.name);
        let kind = kind.as_deref().unwrap_or("nothing that is known here");
        let name = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        text += &format!("\n  {number:>3}{name}: {kind}, {bytes} from byte {offset} on");
    }
    Some(text)
}

/// The name of what a partition holds, if that is known.
fn kind(source: &Source, partition: &Partition) -> Option<String> {
    let offset = source.offset().checked_add(partition.offset)?;
    let part = Source::from(source.path()).with_offset(offset);
    let mut device = Medium::open_read_only(part.clone()).ok()?;
    if device.info().blocks * BLOCK_SIZE < TINY {
        return None;
    }
    let ours = FORMATS.iter().find(|format| format.is_on(&mut device).unwrap_or(false));
    if let Some(format) = ours {
        return format.variant_on(&part).ok().map(str::to_owned);
    }
    let head = DiskBytes::open(&part).ok()?.head(HEAD);
    if let Some((_, _, name)) = OTHERS.iter().find(|magic| has(&head, magic)) {
        return Some((*name).to_owned());
    }
    let copied = FORMATS.iter().find(|format| format.has_copy_on(&mut device).unwrap_or(false));
    copied.and_then(|format| format.variant_on(&part).ok()).map(str::to_owned)
}

fn too_small(bytes: u64, offset: u64) -> String {
    match (bytes, offset) {
        (0, 0) => "it is empty: no file system is on it".into(),
        (0, _) => format!("it ends before byte {offset}, the offset"),
        (bytes, _) => format!("it has {bytes} bytes, and no file system is so small"),
    }
}

fn has(head: &[u8], (at, bytes, _): &Magic) -> bool {
    head.get(*at..at + bytes.len()) == Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(patches: &[(usize, &[u8])], len: usize) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let mut bytes = vec![0; len];
        patches.iter().for_each(|(at, patch)| bytes[*at..at + patch.len()].copy_from_slice(patch));
        std::fs::write(&path, bytes).unwrap();
        describe(&path.into())
    }

    #[test]
    fn everything_is_known_by_its_magic_number() {
        for (at, bytes, sentence) in WRAPPED {
            assert_eq!(described(&[(at, bytes)], 1 << 20).as_deref(), Some(sentence));
        }
        for (at, bytes, name) in OTHERS {
            let found = described(&[(at, bytes)], 1 << 20).unwrap();
            assert_eq!(found, format!("it holds {name}, which is not known here"));
        }
        assert_eq!(described(&[], 1 << 20), None);
        assert_eq!(described(&[], 0).unwrap(), "it is empty: no file system is on it");
        assert!(described(&[], 6).unwrap().starts_with("it has 6 bytes"));
    }

    #[test]
    fn a_small_file_is_told_by_its_magic_number_too() {
        assert!(described(&[(0, b"\x1f\x8b")], 6).unwrap().contains("gzip"));
    }

    #[test]
    fn partitions_are_told_with_their_places() {
        let entry = |start: u32| {
            let mut entry = [0; 16];
            entry[4] = 0x83;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&2048_u32.to_le_bytes());
            entry
        };
        let (one, two) = (entry(8192), entry(2048));
        let mbr: [(usize, &[u8]); 3] = [(446, &one), (462, &two), (510, &[0x55, 0xaa])];
        let found = described(&mbr, 1 << 20).unwrap();
        for words in [
            "give --partition 1 or",
            "2: nothing that is known here, 1.00 MiB from byte 1048576 on",
        ] {
            assert!(found.contains(words), "{found}");
        }
        let mut header = [0; 600 - 512];
        header[..8].copy_from_slice(b"EFI PART");
        header[72..80].copy_from_slice(&2_u64.to_le_bytes());
        header[80..84].copy_from_slice(&4_u32.to_le_bytes());
        header[84..88].copy_from_slice(&128_u32.to_le_bytes());
        let mut partition = [1; 128];
        partition[32..40].copy_from_slice(&2048_u64.to_le_bytes());
        partition[40..48].copy_from_slice(&4095_u64.to_le_bytes());
        partition[56..66].copy_from_slice(b"d\0a\0t\0a\0\0\0");
        let gpt: [(usize, &[u8]); 3] = [(510, &[0x55, 0xaa]), (512, &header), (1024, &partition)];
        let found = described(&gpt, 1 << 20).unwrap();
        let line = "1 \"data\": nothing that is known here, 1.00 MiB from byte 1048576 on";
        assert!(found.contains(line), "{found}");
    }

    #[test]
    fn a_partition_behind_every_byte_is_told_and_not_opened() {
        let mut header = [0; 88];
        header[..8].copy_from_slice(b"EFI PART");
        header[72..80].copy_from_slice(&2_u64.to_le_bytes());
        header[80..84].copy_from_slice(&4_u32.to_le_bytes());
        header[84..88].copy_from_slice(&128_u32.to_le_bytes());
        let mut partition = [1; 128];
        let last = (1_u64 << 55) - 1;
        partition[32..40].copy_from_slice(&last.to_le_bytes());
        partition[40..48].copy_from_slice(&last.to_le_bytes());
        partition[56..].fill(0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        for offset in [0, 4096] {
            let mut bytes = vec![0; 1 << 20];
            bytes[offset + 512..][..88].copy_from_slice(&header);
            bytes[offset + 1024..][..128].copy_from_slice(&partition);
            std::fs::write(&path, bytes).unwrap();
            let source = Source::from(path.as_path()).with_offset(offset as u64);
            let found = describe(&source).unwrap();
            assert!(found.contains("1: nothing that is known here"), "{found}");
            assert_eq!(source.with_partition(1).is_ok(), offset == 0);
        }
    }
}
