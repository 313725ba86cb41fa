//! Images without a file system of ours, told by their first bytes: a sentence for each, with the
//! way on.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::Source;

/// Bytes that are looked at: to behind the magic number of btrfs.
const HEAD: usize = 66 << 10;
/// A volume of a few blocks does not exist.
const TINY: u64 = 16 << 10;
const SECTOR: u64 = 512;

/// A magic number: its place, its bytes, and the sentence.
type Magic = (usize, &'static [u8], &'static str);

/// Files that hold an image in another form.
const WRAPPED: [Magic; 9] = [
    (0, b"\x3a\xff\x26\xed", "it is an Android sparse image: simg2img makes a plain one of it"),
    (0, b"\xfd7zXZ\0", "it is compressed with xz: unpack it first (xz -d)"),
    (0, b"\x1f\x8b", "it is compressed with gzip: unpack it first (gzip -d)"),
    (0, b"\x28\xb5\x2f\xfd", "it is compressed with zstd: unpack it first (zstd -d)"),
    (0, b"BZh", "it is compressed with bzip2: unpack it first (bzip2 -d)"),
    (0, b"\x04\x22\x4d\x18", "it is compressed with lz4: unpack it first (lz4 -d)"),
    (0, b"PK\x03\x04", "it is a zip archive: unpack it first (unzip)"),
    (0, b"QFI\xfb", "it is a qcow2 image: qemu-img convert -O raw makes a plain one of it"),
    (257, b"ustar", "it is a tar archive: unpack it first (tar -x)"),
];

/// File systems and the like that are not ours.
const OTHERS: [Magic; 11] = [
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
    (0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
];

/// A sentence about the image; `None` if nothing is recognised.
pub(crate) fn describe(source: &Source) -> Option<String> {
    let file = File::open(source.path()).ok()?;
    let meta = file.metadata().ok()?;
    let bytes = meta.len().saturating_sub(source.offset());
    if meta.is_file() && bytes < TINY {
        return Some(too_small(bytes, source.offset()));
    }
    let mut head = vec![0; HEAD];
    let len = read(&file, source.offset(), &mut head);
    let head = &head[..len];
    let wrapped = WRAPPED.iter().find(|magic| has(head, magic));
    let other = || OTHERS.iter().find(|magic| has(head, magic));
    wrapped
        .map(|(_, _, sentence)| (*sentence).to_owned())
        .or_else(|| other().map(|(_, _, name)| format!("it holds {name}, which is not known here")))
        .or_else(|| partitions(&file, source.offset(), head))
}

fn too_small(bytes: u64, offset: u64) -> String {
    match (bytes, offset) {
        (0, 0) => "it is empty: no file system is on it".into(),
        (0, _) => format!("it ends before byte {offset}, the offset"),
        (bytes, _) => format!("it has {bytes} bytes, and no file system is so small"),
    }
}

/// Reads as much as there is.
fn read(file: &File, offset: u64, into: &mut [u8]) -> usize {
    let mut len = 0;
    while let Ok(more @ 1..) = file.read_at(&mut into[len..], offset + len as u64) {
        len += more;
    }
    len
}

fn has(head: &[u8], (at, bytes, _): &Magic) -> bool {
    head.get(*at..at + bytes.len()) == Some(bytes)
}

/// The places of a disk's partitions.
fn partitions(file: &File, offset: u64, head: &[u8]) -> Option<String> {
    let mut found = if head.get(512..520) == Some(b"EFI PART") {
        gpt(file, offset, head)
    } else if head.get(510..512) == Some(&[0x55, 0xaa]) {
        mbr(head)
    } else {
        return None;
    };
    found.sort_unstable();
    let bytes: Vec<_> = found.iter().map(|sector| (sector * SECTOR).to_string()).collect();
    let first = bytes.first()?;
    Some(format!(
        "it is a disk with partitions, at bytes {}: give --offset {first} or another of them",
        bytes.join(", ")
    ))
}

fn le32(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, |bytes| u32::from_le_bytes(bytes).into())
}

fn le64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// First sectors of the partitions in a master boot record: entries of 16 bytes from 446 on, their
/// kind at 4, their start at 8.
fn mbr(head: &[u8]) -> Vec<u64> {
    let entries = head[446..510].chunks_exact(16).filter(|entry| entry[4] != 0);
    entries.map(|entry| le32(&entry[8..12])).filter(|sector| *sector > 0).collect()
}

/// First sectors of the partitions of a GPT: its header names their place, number and size.
fn gpt(file: &File, offset: u64, head: &[u8]) -> Vec<u64> {
    const MOST: u64 = 128;
    let (at, count, size) = (le64(&head[584..592]), le32(&head[592..596]), le32(&head[596..600]));
    if !(128..=4096).contains(&size) {
        return Vec::new();
    }
    let mut table = vec![0; (count.min(MOST) * size) as usize];
    let len = read(file, offset.saturating_add(at.saturating_mul(SECTOR)), &mut table);
    let entries = table[..len].chunks_exact(size as usize);
    let used = entries.filter(|entry| entry[..16] != [0; 16]);
    used.map(|entry| le64(&entry[32..40])).filter(|sector| *sector > 0).collect()
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
    fn partitions_are_told_with_their_places() {
        let entry = |start: u32| {
            let mut entry = [0; 16];
            entry[4] = 0x83;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry
        };
        let (one, two) = (entry(8192), entry(2048));
        let mbr: [(usize, &[u8]); 3] = [(446, &one), (462, &two), (510, &[0x55, 0xaa])];
        let found = described(&mbr, 1 << 20).unwrap();
        assert!(found.contains("at bytes 1048576, 4194304: give --offset 1048576"), "{found}");
        let mut header = [0; 600 - 512];
        header[..8].copy_from_slice(b"EFI PART");
        header[72..80].copy_from_slice(&2_u64.to_le_bytes());
        header[80..84].copy_from_slice(&4_u32.to_le_bytes());
        header[84..88].copy_from_slice(&128_u32.to_le_bytes());
        let mut partition = [1; 128];
        partition[32..40].copy_from_slice(&2048_u64.to_le_bytes());
        let gpt: [(usize, &[u8]); 3] = [(510, &[0x55, 0xaa]), (512, &header), (1024, &partition)];
        let found = described(&gpt, 1 << 20).unwrap();
        assert!(found.contains("at bytes 1048576: give"), "{found}");
    }
}
