//! Headroom on the device: what is valid and what is dead never take more than it has.

use super::super::super::policy::{HEADROOM_MARGIN, HeadroomFacts, can_log, is_tight};
use super::super::Demand;
use super::LogSpace;
use super::pack::discard_log_bytes;
use crate::format::{BLOCK, IPLFS_JOURNAL_ENTRIES, ORPHANS_IN_BLOCK, Superblock};

impl LogSpace {
    /// The state that the policies decide by; `device` is what the device says that it can take.
    pub(crate) fn headroom_facts(
        &self,
        superblock: &Superblock,
        demand: &Demand,
        device: Option<u64>,
    ) -> HeadroomFacts {
        let dirty = u64::from(demand.dirty_nodes) + u64::from(demand.dirty_dents);
        HeadroomFacts {
            limit: self.limit,
            placed: self.placed(demand.valid_blocks),
            dead: self.dead(),
            pending: dirty + self.recoverable,
            metadata: self.coming_metadata(superblock, demand),
            device,
        }
    }

    /// Blocks that the next checkpoint writes beside content and nodes, at most: its pack, and
    /// pages of the NAT unless they fit into it.
    fn coming_metadata(&self, superblock: &Superblock, demand: &Demand) -> u64 {
        let log_bytes = self.fresh.most_bytes().saturating_add(self.queued.most_bytes());
        let log = log_bytes.min(discard_log_bytes(superblock)).div_ceil(BLOCK as u64);
        let orphans = demand.orphans.div_ceil(ORPHANS_IN_BLOCK) as u64;
        let entries = demand.nat_entries as u64 + u64::from(demand.dirty_nodes);
        let fits = entries <= IPLFS_JOURNAL_ENTRIES as u64;
        let nat = if fits { 0 } else { entries.min(superblock.nat_blocks.into()) };
        2 + u64::from(superblock.cp_payload) + orphans + log + nat
    }

    /// A checkpoint, and the discards that it allows, would free space. On a device that is simply
    /// full a checkpoint for every call would gain nothing.
    pub(crate) fn gains_by_checkpoint(&self, facts: &HeadroomFacts) -> bool {
        is_tight(facts) && (facts.pending >= HEADROOM_MARGIN || self.has_fresh())
    }

    /// Notes whether the device itself is short of space, whatever the counts say.
    pub(crate) fn note_device(&mut self, facts: &HeadroomFacts) {
        self.device_is_full = is_tight(&HeadroomFacts { limit: u64::MAX, ..*facts });
    }

    /// A record of so many `nodes` leaves the space that a recovery needs.
    pub(crate) fn can_log(facts: &HeadroomFacts, nodes: u64) -> bool {
        can_log(facts, nodes)
    }
}
