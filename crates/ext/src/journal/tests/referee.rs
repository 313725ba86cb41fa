//! Journals of the kernel and of debugfs, replayed by e2fsck and by us; ours, read by both.

use std::path::{Path, PathBuf};

use dovetail_block::{Lba, MemoryDevice};

use super::*;

struct Image {
    folder: tempfile::TempDir,
}

impl Image {
    fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn new(fill: impl FnOnce(&Path)) -> Self {
        let image = Self { folder: tempfile::tempdir().unwrap() };
        fill(&image.path());
        image
    }

    fn made(options: &[&str]) -> Self {
        Self::new(|path| {
            let file = std::fs::File::create(path).unwrap();
            file.set_len(64 << 20).unwrap();
            let mut mke2fs = dovetail_testkit::program("mke2fs");
            mke2fs.args(["-q", "-F", "-E", "lazy_itable_init=0"]).args(options).arg(path);
            assert!(mke2fs.status().unwrap().success());
        })
    }

    fn device(&self) -> MemoryDevice {
        MemoryDevice::from_image(&self.path()).unwrap()
    }

    fn tool(&self, name: &str, arguments: &[&str]) -> String {
        let output =
            dovetail_testkit::program(name).args(arguments).arg(self.path()).output().unwrap();
        assert!(output.status.code().unwrap() <= 1, "{name}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn debugfs(&self, commands: &[&str]) -> String {
        let script = self.folder.path().join("script");
        std::fs::write(&script, commands.join("\n")).unwrap();
        self.tool("debugfs", &["-w", "-f", script.to_str().unwrap()])
    }

    /// Location of the journal: debugfs lists runs as `(first-last):start-end`, and indirect blocks
    /// by a name.
    fn map(&self) -> JournalMap {
        let shown = self.tool("debugfs", &["-R", "stat <8>"]);
        let runs =
            shown.split_whitespace().filter_map(|word| word.strip_prefix('(')?.split_once("):"));
        let runs =
            runs.filter(|(blocks, _)| blocks.starts_with(|first: char| first.is_ascii_digit()));
        let extent = |(_, places): (&str, &str)| {
            let (start, end) =
                places.trim_end_matches(',').split_once('-').unwrap_or((places, places));
            let number = |text: &str| text.trim_end_matches(',').parse::<u64>().unwrap();
            JournalExtent { start: number(start), blocks: (number(end) - number(start) + 1) as u32 }
        };
        JournalMap::new(&runs.map(extent).collect::<Vec<_>>())
    }

    fn superblock_field(&self, name: &str) -> u64 {
        let shown = self.tool("dumpe2fs", &["-h"]);
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap().to_string();
        line.split(':').nth(1).unwrap().trim().parse().unwrap()
    }

    fn recovered(&self) -> (MemoryDevice, Replayed) {
        let size = self.superblock_field("Block size") as u32;
        recover(self.device(), size, &self.map(), self.superblock_field("Block count")).unwrap()
    }
}

/// Blocks that differ but for the superblock of the volume (which e2fsck marks) and that of the
/// journal.
fn differences(ours: &MemoryDevice, theirs: &MemoryDevice, journal: u64) -> Vec<u64> {
    let zeros = [0; 4096];
    let bytes =
        |device: &MemoryDevice, block| device.bytes(Lba(block)).map_or(zeros, |bytes| **bytes);
    let used = ours.used().chain(theirs.used()).map(|(lba, _)| lba.0);
    let mut blocks: Vec<u64> = used.filter(|&block| block != 0 && block != journal).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks.retain(|&block| bytes(ours, block) != bytes(theirs, block));
    blocks
}

/// Compares our replay with e2fsck's, and returns how many blocks ours wrote.
fn compare(image: &Image) -> u64 {
    let per = 4096 / image.superblock_field("Block size");
    let journal = image.map().physical(0).unwrap() / per;
    let (ours, found) = image.recovered();
    image.tool("e2fsck", &["-fy", "-E", "journal_only"]);
    assert_eq!(differences(&ours, &image.device(), journal), [0; 0]);
    found.blocks
}

fn kernel_image(name: &str) -> Image {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    let file = std::fs::File::open(images.join(format!("{name}.img.zst"))).unwrap();
    let device =
        MemoryDevice::from_reader(ruzstd::decoding::StreamingDecoder::new(file).unwrap()).unwrap();
    Image::new(|path| device.write_to(path).unwrap())
}

#[test]
fn journals_that_the_kernel_left() {
    for (name, least) in [("ext4-crash", 20), ("ext3-crash", 20)] {
        let blocks = compare(&kernel_image(name));
        assert!(blocks >= least, "{name}: {blocks} blocks");
    }
}

/// `jo` opens the journal (`-c -v` with checksums of a version, on a volume that has them itself),
/// `jw` writes a transaction, `jc` closes it.
#[test]
fn journals_that_debugfs_writes() {
    for (options, opens) in [
        (vec!["-t", "ext3", "-b", "1024"], vec!["jo"]),
        (vec!["-t", "ext3", "-b", "2048"], vec!["jo"]),
        (vec!["-t", "ext4", "-b", "4096", "-O", "^64bit,^metadata_csum"], vec!["jo"]),
        (
            vec!["-t", "ext4", "-b", "4096", "-O", "metadata_csum"],
            vec!["jo", "jo -c -v 2", "jo -c -v 3"],
        ),
        (
            vec!["-t", "ext4", "-b", "1024", "-O", "64bit,metadata_csum"],
            vec!["jo -c -v 2", "jo -c -v 3"],
        ),
    ] {
        for open in opens {
            let image = Image::made(&options);
            let content = image.folder.path().join("content");
            let noise: Vec<u8> =
                (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
            std::fs::write(&content, &noise).unwrap();
            let write = |blocks: &str| format!("jw -b {blocks} {}", content.display());
            let many = (9000..9400).map(|block| block.to_string()).collect::<Vec<_>>().join(",");
            image.debugfs(&[
                open,
                &write(&many),
                &write("9100,9101,9102"),
                "jw -r 9100,9300",
                &write("9300"),
                "jc",
            ]);
            let blocks = compare(&image);
            assert_eq!(blocks, 399, "{options:?} {open}");
        }
    }
}

/// Shows journals that we write to debugfs and e2fsck.
#[test]
fn journals_that_we_write() {
    for (options, features) in [
        (vec!["-t", "ext3", "-b", "1024"], JournalFeatures(0)),
        (vec!["-t", "ext4", "-b", "4096", "-O", "64bit,metadata_csum"], JournalFeatures(0x12)),
        (vec!["-t", "ext4", "-b", "1024"], JournalFeatures(0x2 | 0x8)),
        (vec!["-t", "ext4", "-b", "2048"], JournalFeatures(0x10)),
    ] {
        let image = Image::made(&options);
        image.debugfs(&["feature needs_recovery"]);
        let size = image.superblock_field("Block size") as usize;
        let (map, blocks) = (image.map(), image.superblock_field("Block count"));
        let mut io = Io::new(image.device(), size, SimTime::ZERO);
        let (mut journal, _) = Journal::open(&mut io, map, blocks, UseOfLog::Replay).unwrap();
        journal.set_features(features);
        for n in 1..=20 {
            let mut transaction = Transaction::default();
            (0..100).for_each(|block| transaction.write(9000 + block, filled(n)));
            transaction.write(9200, filled(0xC03B_3998_0000_0000 + n));
            transaction.revoke(9300 - n);
            journal.commit(&mut io, transaction, BARRIER).unwrap();
        }
        io.flush().unwrap();
        io.into_device().write_to(&image.path()).unwrap();
        let dump = image.tool("debugfs", &["-R", "logdump -a"]);
        assert!(dump.contains("sequence 20, type 2 (commit block)"), "{options:?}: {dump}");
        assert!(!dump.to_lowercase().contains("checksum"), "{dump}");
        assert_eq!(compare(&image), 101, "{options:?}");
        assert_eq!(image.device().bytes(Lba(9000 * size as u64 / 4096)).unwrap()[7], 20);
    }
}
