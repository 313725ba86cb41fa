//! The partitions of a disk: of a GPT, or of a master boot record with its logical ones.

use crate::disk_bytes::DiskBytes;
use crate::{Error, Source};

/// Bytes of a sector, by which a master boot record counts.
const SECTOR: u64 = 512;

/// A partition, by the number that Linux gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1 on.
    pub number: u32,
    /// The byte of the disk at which it begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its name in a GPT; empty without one.
    pub name: String,
}

/// Entries of a GPT that are read at most.
const MOST_GPT: u64 = 128;
/// Logical partitions that are looked at, at most; their chain may be a circle.
const MOST_LOGICAL: u32 = 60;
/// The kinds of an extended partition, which holds logical ones.
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];
/// The number of the first logical partition.
const FIRST_LOGICAL: u32 = 5;
/// Places of the GPT's header: behind the first sector, of 512 or of 4096 bytes.
const GPT_SECTORS: [u64; 2] = [512, 4096];

impl Source {
    /// The same that begins where partition `number` of its first device does.
    ///
    /// # Errors
    /// A disk without such a partition; a file that cannot be read.
    pub fn with_partition(self, number: u32) -> Result<Self, Error> {
        let failed = |why: String| Error::Failed(format!("{}: {why}", self.display()));
        let disk = DiskBytes::open(&self).map_err(|error| failed(error.to_string()))?;
        let found = partitions(&disk);
        if let Some(partition) = found.iter().find(|partition| partition.number == number) {
            let offset = self.offset().checked_add(partition.offset);
            let offset = offset.ok_or_else(|| failed("the partition is behind its end".into()))?;
            return Ok(self.with_offset(offset));
        }
        let numbers: Vec<_> = found.iter().map(|found| found.number.to_string()).collect();
        Err(failed(match numbers.as_slice() {
            [] => "it has no table of partitions".into(),
            numbers => format!("it has no partition {number}; it has {}", numbers.join(", ")),
        }))
    }
}

/// The partitions of a disk in the order of its table; none of what has no table.
pub(crate) fn partitions(disk: &DiskBytes) -> Vec<Partition> {
    if let Some(found) = GPT_SECTORS.iter().find_map(|sector| gpt(disk, *sector)) {
        return found;
    }
    mbr(disk)
}

fn le32(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, |bytes| u32::from_le_bytes(bytes).into())
}

fn le64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// An entry of a master boot record: kind, first sector, sectors.
type MbrEntry = (u8, u64, u64);

/// The four entries of the record in a sector, if there is one: 16 bytes each from 446 on, their
/// kind at 4, their start at 8, their length at 12.
fn record(disk: &DiskBytes, sector: u64) -> Option<[MbrEntry; 4]> {
    let mut bytes = [0; SECTOR as usize];
    let len = disk.read(sector.checked_mul(SECTOR)?, &mut bytes);
    if len < bytes.len() || bytes[510..] != [0x55, 0xAA] {
        return None;
    }
    let entry = |number: usize| {
        let entry = &bytes[446 + 16 * number..462 + 16 * number];
        (entry[4], le32(&entry[8..12]), le32(&entry[12..16]))
    };
    Some([0, 1, 2, 3].map(entry))
}

/// A partition of so many sectors, from one on.
fn partition(number: u32, start: u64, sectors: u64) -> Partition {
    Partition { number, offset: start * SECTOR, bytes: sectors * SECTOR, name: String::new() }
}

fn mbr(disk: &DiskBytes) -> Vec<Partition> {
    let Some(entries) = record(disk, 0) else { return Vec::new() };
    let mut found = Vec::new();
    for (number, (kind, start, sectors)) in (1..).zip(entries) {
        match kind {
            0 => {}
            kind if EXTENDED.contains(&kind) => found.extend(logical(disk, start)),
            _ if start > 0 => found.push(partition(number, start, sectors)),
            _ => {}
        }
    }
    found.sort_by_key(|partition| partition.number);
    found
}

/// The logical partitions of an extended one: a chain of records, each with a partition and the
/// place of the next.
fn logical(disk: &DiskBytes, extended: u64) -> Vec<Partition> {
    let (mut found, mut next) = (Vec::new(), extended);
    for _ in 0..MOST_LOGICAL {
        let Some([(kind, start, sectors), (link, further, _), ..]) = record(disk, next) else {
            break;
        };
        // as Linux: a record without a partition takes no number
        if kind != 0 && start > 0 && sectors > 0 {
            let number = FIRST_LOGICAL + found.len() as u32;
            found.push(partition(number, next + start, sectors));
        }
        if !EXTENDED.contains(&link) || further == 0 {
            break;
        }
        next = extended + further;
    }
    found
}

/// The partitions of a GPT on a disk with sectors of this size: its header names the place, number
/// and size of the entries.
fn gpt(disk: &DiskBytes, sector: u64) -> Option<Vec<Partition>> {
    let mut header = [0; 92];
    if disk.read(sector, &mut header) < header.len() || !header.starts_with(b"EFI PART") {
        return None;
    }
    let (at, count, size) = (le64(&header[72..80]), le32(&header[80..84]), le32(&header[84..88]));
    if !(128..=4096).contains(&size) {
        return None;
    }
    let mut table = vec![0; (count.min(MOST_GPT) * size) as usize];
    let len = disk.read(at.checked_mul(sector)?, &mut table);
    let entries = (1..).zip(table[..len].chunks_exact(size as usize));
    let used = entries.filter(|(_, entry)| entry[..16] != [0; 16]);
    Some(used.filter_map(|(number, entry)| gpt_entry(number, entry, sector)).collect())
}

/// An entry: first and last sector from byte 32 on, name from 56 on.
fn gpt_entry(number: u32, entry: &[u8], sector: u64) -> Option<Partition> {
    let (first, last) = (le64(&entry[32..40]), le64(&entry[40..48]));
    let sectors = last.checked_sub(first)?.checked_add(1)?;
    let letters = entry[56..128].as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
    let letters = letters.take_while(|letter| *letter != 0);
    let name = char::decode_utf16(letters).map(|letter| letter.unwrap_or('?'));
    let name = name.map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    let (offset, bytes) = (first.checked_mul(sector)?, sectors.checked_mul(sector)?);
    (first > 0).then_some(Partition { number, offset, bytes, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk of 8 MiB with master boot records: sector, number of the entry, kind, start, length.
    fn disk(records: &[(u64, usize, u8, u32, u32)]) -> (tempfile::NamedTempFile, Source) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = vec![0; 8 << 20];
        for (sector, number, kind, start, sectors) in records {
            let sector = &mut bytes[(sector * SECTOR) as usize..][..SECTOR as usize];
            sector[510..].copy_from_slice(&[0x55, 0xAA]);
            let entry = &mut sector[446 + 16 * number..][..16];
            entry[4] = *kind;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&sectors.to_le_bytes());
        }
        std::fs::write(file.path(), bytes).unwrap();
        let source = Source::from(file.path());
        (file, source)
    }

    #[test]
    fn logical_partitions_are_numbered_as_linux_does() {
        let records = [
            (0, 0, 0x83, 2048, 100),
            (0, 2, 0x0F, 4096, 8000),
            (4096, 0, 0x83, 2, 50),
            (4096, 1, 0x05, 1000, 500),
            (5096, 0, 0x83, 2, 60),
            (5096, 1, 0x05, 0, 0),
        ];
        let (_file, source) = disk(&records);
        let found = partitions(&DiskBytes::open(&source).unwrap());
        let found: Vec<_> =
            found.iter().map(|found| (found.number, found.offset / SECTOR, found.bytes)).collect();
        assert_eq!(found, [(1, 2048, 51_200), (5, 4098, 25_600), (6, 5098, 30_720)]);
        assert_eq!(source.clone().with_partition(6).unwrap().offset(), 5098 * SECTOR);
        let missing = source.with_partition(2).unwrap_err().to_string();
        assert!(missing.ends_with("it has no partition 2; it has 1, 5, 6"), "{missing}");
    }

    /// As after a partitioner has taken the first one away.
    #[test]
    fn a_record_without_a_partition_takes_no_number() {
        let records = [
            (0, 0, 0x05, 4096, 8000),
            (4096, 1, 0x05, 1000, 500),
            (5096, 0, 0x83, 2, 0),
            (5096, 1, 0x05, 2000, 500),
            (6096, 0, 0x83, 2, 60),
        ];
        let (_file, source) = disk(&records);
        let found = partitions(&DiskBytes::open(&source).unwrap());
        let found: Vec<_> =
            found.iter().map(|found| (found.number, found.offset / SECTOR)).collect();
        assert_eq!(found, [(5, 6098)]);
    }

    #[test]
    fn a_chain_of_records_that_is_a_circle_ends() {
        let records = [(0, 0, 0x05, 4096, 8000), (4096, 0, 0x83, 2, 50), (4096, 1, 0x05, 4096, 9)];
        let (_file, source) = disk(&records);
        assert!(partitions(&DiskBytes::open(&source).unwrap()).len() < 100);
        let circle = [(0, 0, 0x05, 1, 9), (1, 0, 0x83, 2, 50), (1, 1, 0x05, u32::MAX, 9)];
        let (_file, source) = disk(&circle);
        assert_eq!(partitions(&DiskBytes::open(&source).unwrap()).len(), 1);
    }
}
