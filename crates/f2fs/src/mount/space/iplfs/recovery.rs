//! Roll-forward on IPLFS: what lies beyond the checkpoint's log positions either belongs to a file
//! that was fsynced, or is discarded.
//!
//! The logs go on beyond all that the chain leads to, so that a power cut during recovery finds the
//! chain and its content as they were. What lies further out nobody can need: it is discarded at
//! once, durably, before anything is written there.

use std::collections::BTreeSet;

use dovetail_block::{AREA_BLOCKS, Scheduler};

use super::super::super::io::Io;
use super::{LogSpace, log_of};
use crate::error::{Corrupt, Damage, Error};
use crate::format::{BlockAddr, Extent, area_start};

/// The findings of recovery beyond the checkpoint's log positions.
#[derive(Debug)]
pub(super) struct Recovered {
    /// The checkpoint's log positions.
    base: [BlockAddr; 6],
    /// The positions beyond all that the chain leads to.
    end: [BlockAddr; 6],
    /// Blocks between the two that belong to files.
    adopted: BTreeSet<BlockAddr>,
}

impl Recovered {
    /// The chain may lead to the address.
    pub(super) fn covers(&self, address: BlockAddr) -> bool {
        let log = log_of(address);
        (self.base[log]..self.end[log]).contains(&address)
    }

    /// No file has the block any more; `false` if none had.
    pub(super) fn release(&mut self, address: BlockAddr) -> bool {
        self.adopted.remove(&address)
    }

    /// The blocks that no file has.
    fn unclaimed(&self) -> Vec<Extent> {
        let mut extents = Vec::new();
        for log in 0..6 {
            let mut from = self.base[log];
            for &kept in self.adopted.range(from..self.end[log]) {
                extents.push(Extent { start: from, blocks: kept.0 - from.0 });
                from = kept.plus(1);
            }
            extents.push(Extent { start: from, blocks: self.end[log].0 - from.0 });
        }
        extents
    }
}

impl LogSpace {
    /// The logs go on beyond `claimed`: the chain, and what it leads to. The caller discards what
    /// lies further out.
    pub(crate) fn guard_claimed(&mut self, claimed: impl Iterator<Item = BlockAddr>) {
        let base = self.positions;
        for address in claimed {
            let position = &mut self.positions[log_of(address)];
            *position = (*position).max(address.plus(1));
        }
        self.recovered = Some(Recovered { base, end: self.positions, adopted: BTreeSet::new() });
    }

    /// Discards what lies beyond the log positions: it was written after the last checkpoint, and
    /// no recovery leads there. Durable before anything is written there, or a second recovery
    /// could take the rest for records of its own.
    pub(crate) fn discard_beyond<D: Scheduler>(&self, io: &mut Io<D>) -> Result<(), Error> {
        let beyond = |(log, &position): (usize, &BlockAddr)| {
            let end = area_start(log).plus(AREA_BLOCKS);
            Extent { start: position, blocks: end.0 - position.0 }
        };
        let beyond = self.positions.iter().enumerate().map(beyond);
        let beyond: Vec<Extent> = beyond.filter(|extent| extent.blocks > 0).collect();
        io.discard(beyond.into_iter())?;
        Ok(io.flush()?)
    }

    /// A block that the chain leads to has an owner already.
    pub(crate) fn is_adopted(&self, address: BlockAddr) -> bool {
        self.recovered.as_ref().is_some_and(|recovered| recovered.adopted.contains(&address))
    }

    /// A block beyond the checkpoint belongs to a file.
    pub(crate) fn adopt(&mut self, address: BlockAddr) -> Result<(), Corrupt> {
        match self.recovered.as_mut().filter(|recovered| recovered.covers(address)) {
            Some(recovered) => {
                recovered.adopted.insert(address);
                Ok(())
            }
            // the checkpoint's own blocks are never written again
            None => Err(Damage::NotValid(address).into()),
        }
    }

    /// Gives up what the chain took up and no file has, the chain among it: with the next
    /// checkpoint nothing needs it.
    pub(crate) fn give_up_unclaimed(&mut self) {
        let Some(recovered) = self.recovered.take() else { return };
        recovered.unclaimed().into_iter().for_each(|extent| self.fresh.push(extent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_beyond_the_checkpoint_is_adopted_or_given_up() {
        let base: [BlockAddr; 6] = std::array::from_fn(|log| area_start(log).plus(100));
        let end = base.map(|address| address.plus(4));
        let mut recovered = Recovered { base, end, adopted: BTreeSet::new() };
        for address in [base[0].plus(1), base[0].plus(3), base[5]] {
            assert!(recovered.covers(address));
            recovered.adopted.insert(address);
        }
        assert!(!recovered.covers(end[0]) && !recovered.release(base[0]));
        let blocks = |log: usize| {
            let extents = recovered.unclaimed().into_iter();
            let of_log =
                extents.filter(move |extent| extent.blocks > 0 && log_of(extent.start) == log);
            of_log.flat_map(|extent| extent.range()).collect::<Vec<u64>>()
        };
        assert_eq!(blocks(0), [base[0].0, base[0].0 + 2]);
        assert_eq!(blocks(1), (base[1].0..end[1].0).collect::<Vec<u64>>());
        assert_eq!(blocks(5), (base[5].0 + 1..end[5].0).collect::<Vec<u64>>());
    }
}
