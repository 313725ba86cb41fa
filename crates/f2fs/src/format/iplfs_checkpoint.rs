//! The head of a checkpoint pack of IPLFS: six addresses instead of segments, and with it the NAT's
//! journal and bitmap.
//!
//! A pack is its head, the NAT bitmap's continuation if it needs one, the orphans, the discard log,
//! and the head again. No summaries follow.

use dovetail_block::{AREA_BLOCKS, BlockBytes};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::nat::RawWideEntry;
use super::{
    BLOCK, Bitmaps, BlockAddr, CRC_SEED, Checkpoint, CheckpointFlags, LogPosition, NatEntry,
    NatJournal, Nid, Superblock, crc32,
};
use crate::error::{Corrupt, Place};

/// Entries that the NAT journal in the head has room for.
pub const IPLFS_JOURNAL_ENTRIES: usize = 100;
/// Bytes of the head for the NAT's version bitmap; a longer one begins after the head.
const BITMAP_ROOM: usize = 2184;
/// The offset of the checksum.
const CHECKSUM_OFFSET: usize = 4092;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawJournalEntry {
    nid: U32,
    ne: RawWideEntry,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawIplfsHead {
    checkpoint_ver: U64,
    user_block_count: U64,
    valid_block_count: U64,
    cur_blkaddr: [U64; 6],
    elapsed_time: U64,
    discard_log_bytes: U64,
    discard_log_checksum: U32,
    ckpt_flags: U32,
    cp_pack_total_block_count: U32,
    discard_log_start: U32,
    valid_node_count: U32,
    valid_inode_count: U32,
    next_free_nid: U32,
    nat_ver_bitmap_bytesize: U32,
    reserved: [u8; 70],
    n_nats: U16,
    journal: [RawJournalEntry; IPLFS_JOURNAL_ENTRIES],
    spare: [u8; 16],
    bitmap: [u8; BITMAP_ROOM],
    checksum: U32,
}

prove_layout!(RawIplfsHead, 4096, {
    24 => cur_blkaddr, 72 => elapsed_time, 80 => discard_log_bytes, 88 => discard_log_checksum, 92 => ckpt_flags,
    96 => cp_pack_total_block_count, 100 => discard_log_start, 104 => valid_node_count, 108 => valid_inode_count,
    112 => next_free_nid, 116 => nat_ver_bitmap_bytesize, 190 => n_nats, 192 => journal, 1908 => bitmap,
    4092 => checksum,
});

/// Bytes of the NAT's version bitmap.
fn bitmap_bytes(superblock: &Superblock) -> usize {
    superblock.nat_blocks.div_ceil(8) as usize
}

/// Blocks after the head for the version bitmap of a NAT of so many blocks.
pub(crate) const fn iplfs_payload(nat_blocks: u32) -> u32 {
    let bytes = nat_blocks.div_ceil(8);
    if bytes as usize <= BITMAP_ROOM { 0 } else { bytes.div_ceil(BLOCK as u32) }
}

/// Decodes and checks the head, or the tail, of pack number `pack`.
pub(super) fn parse(
    block: &BlockBytes,
    pack: u32,
    superblock: &Superblock,
) -> Result<Checkpoint, Corrupt> {
    let raw: &RawIplfsHead = transmute_ref!(block);
    let place = Place::Checkpoint(pack);
    let checksum = crc32(CRC_SEED, &block[..CHECKSUM_OFFSET]);
    Corrupt::check_checksum(place, raw.checksum.get(), checksum)?;
    raw.check(place, superblock)?;
    Ok(raw.decode(pack, checksum))
}

/// The NAT's version bitmap, from the head and its payload one after the other.
pub(super) fn bitmaps(
    pack: &[u8],
    place: Place,
    superblock: &Superblock,
) -> Result<Bitmaps, Corrupt> {
    let bytes = bitmap_bytes(superblock);
    let start =
        if superblock.cp_payload == 0 { std::mem::offset_of!(RawIplfsHead, bitmap) } else { BLOCK };
    let limit = if superblock.cp_payload == 0 { CHECKSUM_OFFSET } else { pack.len() };
    Corrupt::check_range(
        place,
        "the version bitmap's end",
        (start + bytes) as u64,
        (0, limit as u64),
    )?;
    Ok(Bitmaps {
        sit: Vec::new(),
        nat: pack.get(start..start + bytes).map(<[u8]>::to_vec).unwrap_or_default(),
    })
}

/// The number of journal entries that the head claims.
pub fn iplfs_journal_count(head: &BlockBytes) -> u16 {
    let raw: &RawIplfsHead = transmute_ref!(head);
    raw.n_nats.get()
}

/// NAT entries that are newer than the table's. A count above the capacity is cut.
pub fn iplfs_journal(head: &BlockBytes) -> NatJournal {
    let raw: &RawIplfsHead = transmute_ref!(head);
    let entries = raw.journal.iter().take(raw.n_nats.get().into());
    entries.map(|entry| (Nid(entry.nid.get()), entry.ne.decode())).collect()
}

impl Checkpoint {
    /// The head of a pack of IPLFS, followed by the payload blocks of a volume that has them, and
    /// the head's checksum. The journal has at most [`IPLFS_JOURNAL_ENTRIES`].
    pub fn encode_iplfs(
        &self,
        bitmaps: &Bitmaps,
        journal: &[(Nid, NatEntry)],
        superblock: &Superblock,
    ) -> (Vec<BlockBytes>, u32) {
        let mut blocks = vec![[0; BLOCK]; 1 + superblock.cp_payload as usize];
        if superblock.cp_payload > 0 {
            put(&mut blocks.as_flattened_mut()[BLOCK..], &bitmaps.nat);
        }
        let raw: &mut RawIplfsHead = transmute_mut!(&mut blocks[0]);
        raw.encode(self, superblock);
        raw.put_journal(journal);
        if superblock.cp_payload == 0 {
            put(&mut raw.bitmap, &bitmaps.nat);
        }
        let checksum = crc32(CRC_SEED, &blocks[0][..CHECKSUM_OFFSET]);
        put(&mut blocks[0][CHECKSUM_OFFSET..], &checksum.to_le_bytes());
        (blocks, checksum)
    }
}

/// Copies what there is room for.
fn put(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

impl RawIplfsHead {
    fn check(&self, place: Place, superblock: &Superblock) -> Result<(), Corrupt> {
        let range = |field, found: U32, limits| Corrupt::check_range(place, field, found, limits);
        let bytes = bitmap_bytes(superblock) as u64;
        Corrupt::check_equal(
            place,
            "nat_ver_bitmap_bytesize",
            self.nat_ver_bitmap_bytesize,
            bytes,
        )?;
        let (first, pack) =
            (1 + u64::from(superblock.cp_payload), u64::from(superblock.pack_blocks));
        range("cp_pack_total_block_count", self.cp_pack_total_block_count, (first + 1, pack))?;
        let last = u64::from(self.cp_pack_total_block_count) - 1;
        let orphans = first + u64::from(superblock.orphan_blocks());
        range("discard_log_start", self.discard_log_start, (first, last.min(orphans)))?;
        let room = (last - u64::from(self.discard_log_start)) * BLOCK as u64;
        Corrupt::check_range(place, "discard_log_bytes", self.discard_log_bytes, (0, room))?;
        Corrupt::check_range(
            place,
            "user_block_count",
            self.user_block_count,
            (1, superblock.capacity),
        )?;
        for (log, address) in self.cur_blkaddr.iter().enumerate() {
            let limits = (area_start(log).0, superblock.area_end(log).0);
            Corrupt::check_range(place, "cur_blkaddr", *address, limits)?;
        }
        Ok(())
    }

    fn decode(&self, pack: u32, checksum: u32) -> Checkpoint {
        Checkpoint {
            pack,
            version: self.checkpoint_ver.get(),
            user_block_count: self.user_block_count.get(),
            valid_block_count: self.valid_block_count.get(),
            reserved_segments: 0,
            overprovision_segments: 0,
            free_segments: 0,
            logs: [LogPosition::default(); 6],
            positions: self.cur_blkaddr.map(|address| BlockAddr(address.get())),
            discard_log_bytes: self.discard_log_bytes.get(),
            discard_log_checksum: self.discard_log_checksum.get(),
            flags: CheckpointFlags(self.ckpt_flags.get()),
            total_blocks: self.cp_pack_total_block_count.get(),
            summary_start: self.discard_log_start.get(),
            valid_nodes: self.valid_node_count.get(),
            valid_inodes: self.valid_inode_count.get(),
            next_free_nid: self.next_free_nid.get(),
            elapsed_s: self.elapsed_time.get(),
            checksum,
        }
    }

    fn encode(&mut self, from: &Checkpoint, superblock: &Superblock) {
        self.checkpoint_ver.set(from.version);
        self.user_block_count.set(from.user_block_count);
        self.valid_block_count.set(from.valid_block_count);
        self.cur_blkaddr = from.positions.map(|address| U64::new(address.0));
        self.elapsed_time.set(from.elapsed_s);
        self.discard_log_bytes.set(from.discard_log_bytes);
        self.discard_log_checksum.set(from.discard_log_checksum);
        self.ckpt_flags.set(from.flags.0);
        self.cp_pack_total_block_count.set(from.total_blocks);
        self.discard_log_start.set(from.summary_start);
        self.valid_node_count.set(from.valid_nodes);
        self.valid_inode_count.set(from.valid_inodes);
        self.next_free_nid.set(from.next_free_nid);
        self.nat_ver_bitmap_bytesize.set(bitmap_bytes(superblock) as u32);
    }

    fn put_journal(&mut self, journal: &[(Nid, NatEntry)]) {
        debug_assert!(
            journal.len() <= IPLFS_JOURNAL_ENTRIES,
            "{} NAT entries in a head",
            journal.len()
        );
        self.n_nats.set(journal.len().min(IPLFS_JOURNAL_ENTRIES) as u16);
        for (raw, (nid, entry)) in self.journal.iter_mut().zip(journal) {
            *raw = RawJournalEntry { nid: U32::new(nid.0), ne: RawWideEntry::encode(*entry) };
        }
    }
}

/// The first address of log `log`, 0 to 5: area 0 is for metadata.
pub const fn area_start(log: usize) -> BlockAddr {
    BlockAddr((log as u64 + 1) * AREA_BLOCKS)
}

/// The checksum of a discard log, which the head carries.
pub fn discard_log_checksum(log: &[u8]) -> u32 {
    crc32(CRC_SEED, log)
}
