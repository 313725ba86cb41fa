//! Roll-forward on an endless volume: what lies beyond the checkpoint's log positions either belongs to a file that was
//! fsynced, or is discarded.
//!
//! The logs go on beyond all that the chain leads to, so that a power cut during recovery finds the chain and its content as
//! they were. What lies further out nobody can need: it is discarded at once, durably, before anything is written there.

use dovetail_block::{AREA_BLOCKS, Content, Scheduler};

use super::super::F2fs;
use super::{Recovered, log_of};
use crate::error::{Corrupt, Error};
use crate::format::{BlockAddr, Extent, area_start};

impl<D: Scheduler> F2fs<D> {
    /// The logs go on beyond `claimed`: the chain, and what it leads to. What lies further out is discarded.
    pub(in super::super) fn guard_claimed(&mut self, claimed: &[BlockAddr]) -> Result<(), Error> {
        // what earlier checkpoints gave up must not take the room that recovery needs
        self.discard_queued(usize::MAX)?;
        let Some(endless) = &mut self.endless else { return Ok(()) };
        let base = endless.positions;
        for &address in claimed {
            let position = &mut endless.positions[log_of(address)];
            *position = (*position).max(address.plus(1));
        }
        let end = endless.positions;
        endless.recovered = Some(Recovered { base, end, adopted: Default::default() });
        self.discard_beyond()
    }

    /// Discards what lies beyond the log positions: it was written after the last checkpoint, and no recovery leads there.
    /// Durable before anything is written there, or a second recovery could take the rest for records of its own.
    pub(in super::super) fn discard_beyond(&mut self) -> Result<(), Error> {
        let Some(endless) = &self.endless else { return Ok(()) };
        let beyond = |(log, &position): (usize, &BlockAddr)| {
            let end = area_start(log).plus(AREA_BLOCKS);
            Extent { start: position, blocks: end.0 - position.0 }
        };
        let beyond = endless.positions.iter().enumerate().map(beyond);
        let beyond: Vec<Extent> = beyond.filter(|extent| extent.blocks > 0).collect();
        self.io.discard(beyond.into_iter())?;
        Ok(self.io.flush()?)
    }

    /// What the device holds of a block that the chain leads to; `false` if it was lost: then its fsync never returned.
    pub(in super::super) fn is_there(&mut self, address: BlockAddr) -> Result<bool, Error> {
        let mut content = [Content::Empty];
        self.io.read_into(address, &mut content)?;
        Ok(content[0] != Content::Empty)
    }

    /// A block that the chain leads to has an owner already.
    pub(in super::super) fn is_adopted(&self, address: BlockAddr) -> bool {
        let recovered = self.endless.as_ref().and_then(|endless| endless.recovered.as_ref());
        recovered.is_some_and(|recovered| recovered.adopted.contains(&address))
    }

    /// A block beyond the checkpoint belongs to a file.
    pub(in super::super) fn adopt_beyond(&mut self, address: BlockAddr) -> Result<(), Corrupt> {
        let recovered = self.endless.as_mut().and_then(|endless| endless.recovered.as_mut());
        match recovered.filter(|recovered| recovered.covers(address)) {
            Some(recovered) => {
                recovered.adopted.insert(address);
                Ok(())
            }
            // the checkpoint's own blocks are never written again
            None => Err(Corrupt::NotValid(address)),
        }
    }

    /// What the chain took up and no file has is given up, the chain among it: with the next checkpoint nothing needs it.
    pub(in super::super) fn give_up_unclaimed(&mut self) {
        let Some(endless) = &mut self.endless else { return };
        let Some(recovered) = endless.recovered.take() else { return };
        for log in 0..6 {
            let mut from = recovered.base[log];
            for &kept in recovered.adopted.range(from..recovered.end[log]) {
                endless.fresh.push(Extent { start: from, blocks: kept.0 - from.0 });
                from = kept.plus(1);
            }
            endless.fresh.push(Extent { start: from, blocks: recovered.end[log].0 - from.0 });
        }
    }
}
