//! Damaging an image in one place, and asking fsck.f2fs what it thinks of it.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses a part of this")]

use dovetail_vfs::kit::VolumeTree;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice, Lba, MemoryDevice};
use dovetail_f2fs::Volume;
use dovetail_f2fs::format::{
    Bitmaps, CRC_SEED, Checkpoint, Features, Inode, Nid, SegNo, Superblock, crc32,
    nat_block_address, sit_block_address,
};

/// A byte of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub block: u64,
    pub byte: usize,
}

impl At {
    pub fn plus(self, bytes: usize) -> Self {
        Self { byte: self.byte + bytes, ..self }
    }
}

/// An image that is being damaged.
#[derive(Clone)]
pub struct Lab {
    pub image: MemoryDevice,
    pub superblock: Superblock,
    pub checkpoint: Checkpoint,
    pub bitmaps: Bitmaps,
}

impl Lab {
    pub fn new(image: MemoryDevice) -> Self {
        let volume = Volume::open(image.clone()).unwrap();
        let (superblock, checkpoint) = (volume.superblock().clone(), volume.checkpoint().clone());
        let mut pack = Vec::new();
        let start =
            superblock.cp_start.0 + u64::from((checkpoint.pack - 1) * superblock.pack_blocks);
        for block in 0..=u64::from(superblock.cp_payload) {
            pack.extend_from_slice(&image.bytes(Lba(start + block)).unwrap()[..]);
        }
        let bitmaps = Bitmaps::parse(&pack, &checkpoint, &superblock).unwrap();
        Self { image, superblock, checkpoint, bitmaps }
    }

    pub fn bytes(&mut self, block: u64) -> &mut BlockBytes {
        self.image.bytes_mut(Lba(block)).unwrap()
    }

    pub fn set(&mut self, at: At, value: &[u8]) {
        self.bytes(at.block)[at.byte..at.byte + value.len()].copy_from_slice(value);
    }

    pub fn u32(&mut self, at: At) -> u32 {
        let bytes = &self.bytes(at.block)[at.byte..at.byte + 4];
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    pub fn u16(&mut self, at: At) -> u16 {
        let bytes = &self.bytes(at.block)[at.byte..at.byte + 2];
        u16::from_le_bytes(bytes.try_into().unwrap())
    }

    pub fn add(&mut self, at: At, more: u32) {
        let value = self.u32(at).wrapping_add(more);
        self.set(at, &value.to_le_bytes());
    }

    pub fn flip(&mut self, at: At, mask: u8) {
        self.bytes(at.block)[at.byte] ^= mask;
    }

    /// First block of checkpoint pack `pack`.
    pub fn pack(&self, pack: u32) -> u64 {
        self.superblock.cp_start.0 + u64::from((pack - 1) * self.superblock.pack_blocks)
    }

    /// Changes a field of the elected checkpoint and makes head and tail whole again.
    pub fn checkpoint(&mut self, byte: usize, value: &[u8]) {
        let head = At { block: self.pack(self.checkpoint.pack), byte };
        self.set(head, value);
        self.seal_checkpoint();
    }

    pub fn checkpoint_add(&mut self, byte: usize, more: u32) {
        let at = At { block: self.pack(self.checkpoint.pack), byte };
        let value = self.u32(at).wrapping_add(more);
        self.checkpoint(byte, &value.to_le_bytes());
    }

    pub fn seal_checkpoint(&mut self) {
        let head = self.pack(self.checkpoint.pack);
        let iplfs = self.superblock.variant.is_iplfs();
        let byte = if iplfs { 96 } else { 136 };
        let total =
            u64::from(self.u32(At { block: head, byte }).clamp(1, self.superblock.pack_blocks));
        let bytes = self.bytes(head);
        let named = u32::from_le_bytes(bytes[164..168].try_into().unwrap()).min(4092) as usize;
        let at = if iplfs { 4092 } else { named };
        let crc = crc32(crc32(CRC_SEED, &bytes[..at]), &bytes[at + 4..]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        let copy = *bytes;
        *self.bytes(head + total - 1) = copy;
    }

    /// Puts the right checksum into a block that has one: the checkpoint's head, an inode with
    /// extra attributes.
    pub fn seal(&mut self, block: u64) {
        if block == self.pack(self.checkpoint.pack) {
            self.seal_checkpoint();
        }
        let (uuid, checked) =
            (self.superblock.uuid, self.superblock.features.has(Features::INODE_CHECKSUM));
        let bytes = self.bytes(block);
        if checked && bytes[3] & 0x20 != 0 && bytes[4072..4076] == bytes[4076..4080] {
            bytes[368..372].fill(0);
            let seed = crc32(crc32(0xFFFF_FFFF, &uuid), &bytes[4076..4080]);
            let sum = crc32(crc32(seed, &bytes[68..72]), &bytes[..]);
            bytes[368..372].copy_from_slice(&sum.to_le_bytes());
        }
    }

    pub fn inode(&self, path: &str) -> Inode {
        Volume::open(self.image.clone()).unwrap().resolve_link(path.as_bytes()).unwrap()
    }

    pub fn ino(&self, path: &str) -> u32 {
        self.inode(path).ino.0
    }

    /// The block of a node.
    pub fn node(&self, nid: u32) -> At {
        let address = Volume::open(self.image.clone()).unwrap().nat(Nid(nid)).unwrap().address;
        At { block: address.0, byte: 0 }
    }

    /// Byte `byte` of the inode that `path` leads to.
    pub fn in_inode(&self, path: &str, byte: usize) -> At {
        self.node(self.ino(path)).plus(byte)
    }

    /// Block `block` of a file.
    pub fn data(&self, path: &str, block: u64) -> At {
        let inode = self.inode(path);
        let address = Volume::open(self.image.clone()).unwrap().block_of(&inode, block).unwrap();
        At { block: address.0, byte: 0 }
    }

    /// The NAT entry (9 bytes, of IPLFS 13) of a nid, in the table.
    pub fn nat(&self, nid: u32) -> At {
        let address = nat_block_address(&self.superblock, &self.bitmaps.nat, Nid(nid));
        let variant = self.superblock.variant;
        At {
            block: address.0,
            byte: variant.nat_position(Nid(nid)).1 * (5 + variant.address_bytes()),
        }
    }

    /// The SIT entry (74 bytes) of a segment: in the journal if it is there.
    pub fn sit(&mut self, segno: u32) -> At {
        let journal = self.sit_journal();
        for entry in 0..usize::from(self.u16(journal)) {
            let at = journal.plus(2 + entry * 78);
            if self.u32(at) == segno {
                return at.plus(4);
            }
        }
        self.sit_in_table(segno)
    }

    /// The same, whatever the journal says.
    pub fn sit_in_table(&self, segno: u32) -> At {
        let address = sit_block_address(&self.superblock, &self.bitmaps.sit, SegNo(segno));
        At { block: address.0, byte: (segno % 55) as usize * 74 }
    }

    /// The journal of SIT entries, whose count comes first.
    pub fn sit_journal(&self) -> At {
        let pack = self.pack(self.checkpoint.pack);
        if self.checkpoint.flags.0 & 4 != 0 {
            return At { block: pack + u64::from(self.checkpoint.summary_start), byte: 507 };
        }
        let after = if self.checkpoint.has_node_summaries() { 6 } else { 3 };
        At { block: pack + u64::from(self.checkpoint.total_blocks) - 1 - after + 2, byte: 3584 }
    }

    pub fn nat_journal(&self) -> At {
        let sit = self.sit_journal();
        if self.checkpoint.flags.0 & 4 != 0 {
            At { byte: 0, ..sit }
        } else {
            At { block: sit.block - 2, ..sit }
        }
    }

    pub fn segment_of(&self, at: At) -> (u32, u32) {
        let index = (at.block - self.superblock.main_start.0) as u32;
        (index / 512, index % 512)
    }

    /// Bit of a block in the SIT, with its mask.
    pub fn valid_bit(&mut self, at: At) -> (At, u8) {
        let (segno, offset) = self.segment_of(at);
        (self.sit(segno).plus(2 + offset as usize / 8), 0x80 >> (offset % 8))
    }

    /// The summary entry of a block whose segment no log writes to.
    pub fn summary(&self, at: At) -> At {
        let (segno, offset) = self.segment_of(at);
        assert!(!self.is_log(segno), "segment {segno} is a log's");
        At { block: self.superblock.ssa_start.0 + u64::from(segno), byte: 7 * offset as usize }
    }

    pub fn is_log(&self, segno: u32) -> bool {
        self.checkpoint.logs.iter().any(|log| log.segment.0 == segno)
    }
}

/// An image on disk for fsck.f2fs, of which only what differs is written.
pub struct Referee {
    path: PathBuf,
    file: File,
    second: Option<Second>,
    sound: MemoryDevice,
    _folder: tempfile::TempDir,
}

/// The file of a volume's second device, whose path the superblock has to name.
struct Second {
    file: File,
    /// The first of its blocks.
    start: u64,
    /// The paths that the superblock names, and those of the files.
    renamed: [(String, PathBuf); 2],
}

impl Second {
    fn of(image: &MemoryDevice, folder: &std::path::Path) -> Option<Self> {
        let superblock = Volume::open(image.clone()).unwrap().superblock().clone();
        let [first, second] = &superblock.devices[..] else { return None };
        let (path, start) = (folder.join("second"), superblock.device_blocks()[0]);
        let file = File::create(&path).unwrap();
        file.set_len((image.info().blocks - start) * 4096).unwrap();
        let renamed = [(first.path.clone(), folder.join("image")), (second.path.clone(), path)];
        Some(Self { file, start, renamed })
    }

    /// The superblock with the files' paths where it named the devices: fsck.f2fs compares them.
    fn renamed(&self, superblock: &BlockBytes) -> BlockBytes {
        let mut bytes = *superblock;
        for (device, (named, path)) in self.renamed.iter().enumerate() {
            let field = &mut bytes[1024 + 2201 + 68 * device..][..64];
            if field.starts_with(named.as_bytes()) {
                let path = path.to_str().unwrap().as_bytes();
                field.fill(0);
                field[..path.len()].copy_from_slice(path);
            }
        }
        bytes
    }
}

/// Verdict of fsck.f2fs.
#[derive(Debug)]
pub struct Verdict {
    pub clean: bool,
    /// The lines that complain.
    pub complaints: Vec<String>,
}

impl Referee {
    pub fn new(sound: &MemoryDevice) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        sound.write_to(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let second = Second::of(sound, folder.path());
        let referee = Self { path, file, second, sound: sound.clone(), _folder: folder };
        if let Some(second) = &referee.second {
            referee.file.set_len(second.start * 4096).unwrap();
            sound.used().for_each(|(lba, _)| referee.put(lba, sound.bytes(lba).unwrap()));
        }
        referee
    }

    fn put(&self, lba: Lba, bytes: &BlockBytes) {
        match &self.second {
            Some(second) if lba.0 >= second.start => {
                second.file.write_all_at(bytes, (lba.0 - second.start) * 4096).unwrap();
            }
            Some(second) if lba.0 < 2 => {
                self.file.write_all_at(&second.renamed(bytes), lba.0 * 4096).unwrap();
            }
            _ => self.file.write_all_at(bytes, lba.0 * 4096).unwrap(),
        }
    }

    /// The verdict about `image`, which differs from the sound one in a few blocks.
    pub fn judge(&mut self, image: &MemoryDevice) -> Verdict {
        let zeros = Arc::new([0; 4096]);
        let same = |lba, bytes| self.sound.bytes(lba).is_some_and(|old| Arc::ptr_eq(old, bytes));
        let used = image.used().map(|(lba, _)| (lba, image.bytes(lba).unwrap()));
        let changed: Vec<_> = used.filter(|(lba, bytes)| !same(*lba, bytes)).collect();
        for (lba, bytes) in &changed {
            self.put(*lba, bytes);
        }
        let verdict = verdict(&self.path);
        for (lba, _) in changed {
            let bytes = self.sound.bytes(lba).unwrap_or(&zeros);
            self.put(lba, bytes);
        }
        self.file.flush().unwrap();
        verdict
    }
}

/// Runs fsck.f2fs and reads its answer in the strict sense: status 0 is not enough.
pub fn verdict(image: &std::path::Path) -> Verdict {
    // it may hang on what it is given; seconds of the processor, as a busy machine is no reason to
    // fail
    let output = dovetail_testkit::program("timeout")
        .args(["300", "sh", "-c", "ulimit -t 20; exec fsck.f2fs --dry-run \"$0\""])
        .arg(image)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let bad = |line: &&str| {
        let reconnected = line.contains("Reconnect ") && !line.contains("Reconnect 0");
        ["[ASSERT]", "[FIX]", "[Fail]"].iter().any(|mark| line.contains(mark)) || reconnected
    };
    let mut complaints: Vec<_> = text.lines().filter(bad).map(str::to_string).collect();
    assert!(
        output.status.code() != Some(127),
        "there is no fsck.f2fs; install it with: apt-get install f2fs-tools"
    );
    if output.status.code() != Some(0) {
        complaints.push(format!("{}", output.status));
    }
    Verdict { clean: complaints.is_empty(), complaints }
}

/// Position of a directory entry.
#[derive(Clone, Copy, Debug)]
pub struct Dentry {
    pub block: u64,
    pub slot: usize,
    bitmap: usize,
    dentries: usize,
    names: usize,
}

impl Dentry {
    /// Byte `byte` of the entry: hash 0, ino 4, length 8, type 10.
    pub fn at(self, byte: usize) -> At {
        At { block: self.block, byte: self.dentries + 11 * self.slot + byte }
    }

    pub fn name(self) -> At {
        At { block: self.block, byte: self.names + 8 * self.slot }
    }

    /// The bit of slot `slot + more`, with its mask.
    pub fn bit(self, more: usize) -> (At, u8) {
        let slot = self.slot + more;
        (At { block: self.block, byte: self.bitmap + slot / 8 }, 1 << (slot % 8))
    }
}

impl Lab {
    /// The entry `name` of directory `dir`, on a volume without extra attributes.
    pub fn dentry(&self, dir: &str, name: &str) -> Dentry {
        let inode = self.inode(dir);
        if inode.inline.0 & 4 != 0 {
            let block = self.node(inode.ino.0).block;
            return self.find(block, name, [364, 364 + 30, 364 + 30 + 182 * 11], 182).unwrap();
        }
        let mut volume = Volume::open(self.image.clone()).unwrap();
        let blocks = (0..inode.size / 4096).map(|block| volume.block_of(&inode, block).unwrap().0);
        let blocks: Vec<_> = blocks.filter(|&block| block != 0).collect();
        let found = blocks.iter().find_map(|&block| self.find(block, name, [0, 30, 2384], 214));
        found.unwrap_or_else(|| panic!("{dir} has no {name}"))
    }

    fn find(
        &self,
        block: u64,
        name: &str,
        [bitmap, dentries, names]: [usize; 3],
        count: usize,
    ) -> Option<Dentry> {
        let bytes = self.image.bytes(Lba(block)).unwrap();
        let is_it = |slot: &usize| {
            let used = bytes[bitmap + slot / 8] & (1 << (slot % 8)) != 0;
            let len = usize::from(bytes[dentries + 11 * slot + 8]);
            used && len == name.len() && bytes[names + 8 * slot..].starts_with(name.as_bytes())
        };
        let slot = (0..count).find(is_it)?;
        Some(Dentry { block, slot, bitmap, dentries, names })
    }
}
