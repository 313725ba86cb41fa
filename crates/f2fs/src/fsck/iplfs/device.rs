//! The blocks that the device holds, if it can tell, against those that are live or wait for their
//! discard.

use std::ops::Range;

use dovetail_block::{AREA_BLOCKS, BlockDevice, BlockRange, Lba, held_blocks};

use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr, Extent, Superblock, area_start};
use crate::fsck::{Checker, Finding};

/// Blocks that the device is asked for at once.
const AT_ONCE: usize = 4096;

/// The blocks of one area that a device holds.
#[derive(Debug, Default)]
struct Held {
    blocks: u64,
    beyond: u64,
    waiting: u64,
    leaked: Vec<Extent>,
    lost: Vec<BlockAddr>,
}

impl<D: BlockDevice> Checker<'_, D> {
    /// `discards` is what waits for its discard; without that nobody knows what leaked.
    pub(super) fn check_device(&mut self, discards: Option<&[Extent]>) {
        if !self.device_tells() {
            self.found(Finding::NotChecked { what: "which blocks the drive holds" });
            return;
        }
        for log in 0..6 {
            let held = self.held_by_log(log, discards.unwrap_or_default());
            if let Some(area) = self.report.counts.areas.get_mut(log) {
                (area.held, area.beyond, area.waiting) =
                    (Some(held.blocks), held.beyond, held.waiting);
            }
            held.lost.into_iter().for_each(|address| self.found(Finding::DeviceLost { address }));
            if discards.is_some() {
                self.found_leaks(held.leaked);
            }
        }
        let leaked = self.leaked_metadata();
        self.found_leaks(leaked);
    }

    fn device_tells(&mut self) -> bool {
        let answer = held_blocks(self.volume.device_mut(), BlockRange::new(Lba(0), 1), 1);
        matches!(answer, Ok(Some(_)))
    }

    fn found_leaks(&mut self, leaked: Vec<Extent>) {
        for Extent { start: first, blocks } in leaked {
            self.found(Finding::DeviceLeak { first, blocks });
        }
    }

    fn held_by_log(&mut self, log: usize, discards: &[Extent]) -> Held {
        let (mut found, written) = (Held::default(), self.written_by(log));
        let held: Vec<u64> = self.held(written.start..area_start(log).0 + AREA_BLOCKS).collect();
        let mut live = self.live_within(written.clone()).peekable();
        for block in held {
            found.blocks += 1;
            while let Some(lost) = live.next_if(|&live| live < block) {
                found.lost.push(BlockAddr(lost));
            }
            if live.next_if_eq(&block).is_some() {
                continue;
            }
            match (block >= written.end, covers(discards, block)) {
                (true, _) => found.beyond += 1,
                (_, true) => found.waiting += 1,
                _ => add(&mut found.leaked, block),
            }
        }
        found.lost.extend(live.map(BlockAddr));
        found
    }

    /// Blocks held in area 0 outside the superblocks, the packs and the NAT.
    fn leaked_metadata(&mut self) -> Vec<Extent> {
        let superblock = self.volume.superblock.clone();
        let packs =
            superblock.cp_start.0..superblock.cp_start.0 + 2 * u64::from(superblock.pack_blocks);
        let is_known = |block| block < 2 || packs.contains(&block) || is_of_nat(&superblock, block);
        let mut leaked = Vec::new();
        self.held(0..AREA_BLOCKS)
            .filter(|&block| !is_known(block))
            .for_each(|block| add(&mut leaked, block));
        leaked
    }

    /// The blocks of a range of addresses that the device holds, in order.
    fn held(&mut self, addresses: Range<u64>) -> impl Iterator<Item = u64> {
        let mut next = Some(addresses.start);
        let batches = std::iter::from_fn(move || {
            let start = next?;
            let range = BlockRange::new(Lba(start), addresses.end - start);
            let batch = held_blocks(self.volume.device_mut(), range, AT_ONCE).ok()??;
            next = batch.last().filter(|_| batch.len() == AT_ONCE).map(|last| last.0 + 1);
            Some(batch)
        });
        batches.flatten().map(|lba| lba.0)
    }
}

/// The block is one of the NAT's, whose copies alternate segment by segment.
fn is_of_nat(superblock: &Superblock, block: u64) -> bool {
    let segment = u64::from(BLOCKS_IN_SEGMENT);
    block.checked_sub(superblock.nat_start.0).is_some_and(|offset| {
        offset / (2 * segment) * segment + offset % segment < superblock.nat_blocks.into()
    })
}

/// `extents` are in order and apart from each other.
fn covers(extents: &[Extent], block: u64) -> bool {
    let before = extents.partition_point(|extent| extent.start.0 <= block);
    before > 0 && extents[before - 1].range().contains(&block)
}

/// Adds a block behind all others.
fn add(extents: &mut Vec<Extent>, block: u64) {
    match extents.last_mut() {
        Some(last) if last.range().end == block => last.blocks += 1,
        _ => extents.push(Extent { start: BlockAddr(block), blocks: 1 }),
    }
}
