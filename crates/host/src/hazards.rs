//! Commands that are planned and not yet issued, and which later ones must not overtake them.
//!
//! The file system's state already has the earlier command behind it: a read planned before a write
//! of the same block must reach the drive before it. A kernel holds the page's lock for this.

use std::collections::{BTreeSet, VecDeque};

use dovetail_block::{BlockRange, Lba, Zones};

use crate::plan::{PlanStep, ZoneTurn};

/// A planned command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CommandId(pub(crate) u64);

/// Beyond all addresses: a place for each zone, by which writes to it keep their order.
const ORDER_OF_ZONES: u64 = 1 << 63;

/// The planned commands by their blocks. Writes to one zone conflict, whatever their blocks.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    zones: Option<Zones>,
    pending: Pending,
    /// For each command from `oldest` on: it was issued.
    issued: VecDeque<bool>,
    oldest: u64,
    /// Those that make a zone full or empty, by which another may become active.
    freeing: BTreeSet<CommandId>,
    /// Those that keep their place among all commands on zones.
    alone: BTreeSet<CommandId>,
}

impl Hazards {
    /// For a device that has these zones.
    pub(crate) fn new(zones: Option<Zones>) -> Self {
        Self { zones, ..Self::default() }
    }

    /// Remembers a command that is planned but not issued.
    pub(crate) fn plan(&mut self, step: &PlanStep) -> CommandId {
        let id = CommandId(self.oldest + self.issued.len() as u64);
        self.issued.push_back(false);
        for_each_touched(self.zones, step, |range, writes| {
            self.pending.insert(Claim { start: range.start.0, end: range.end().0, id, writes });
        });
        id
    }

    /// A planned command has this part in the limits on zones.
    pub(crate) fn take_part(&mut self, id: CommandId, turn: ZoneTurn) {
        match turn {
            ZoneTurn::Takes { .. } => {}
            ZoneTurn::Frees => drop(self.freeing.insert(id)),
            ZoneTurn::Alone => drop(self.alone.insert(id)),
        }
    }

    /// Planned commands that must be issued before one with this part in the limits on zones.
    pub(crate) fn before_turn(&self, turn: ZoneTurn, into: &mut Vec<CommandId>) {
        match turn {
            ZoneTurn::Takes { room } => self.before_taking(room, into),
            ZoneTurn::Frees => {}
            ZoneTurn::Alone => {
                let is_on_zone = |claim: &Claim| claim.start >= ORDER_OF_ZONES;
                self.pending.find_all(is_on_zone, into);
            }
        }
    }

    /// Those before one that makes a zone active: the first of those that free one, all but as many
    /// as there is room.
    ///
    /// So there is always room. Of the commands that were issued and made a zone active, look at
    /// the last one in the order of plans: all before it that free a zone were issued, but as many
    /// as there was room.
    fn before_taking(&self, room: u32, into: &mut Vec<CommandId>) {
        let waits = self.freeing.len().saturating_sub(room as usize);
        into.extend(self.freeing.iter().take(waits));
    }

    /// The command was issued.
    pub(crate) fn issued(&mut self, step: &PlanStep, id: CommandId) {
        if let Some(issued) = self.issued.get_mut(id.0.wrapping_sub(self.oldest) as usize) {
            *issued = true;
        }
        while self.issued.front() == Some(&true) {
            self.issued.pop_front();
            self.oldest += 1;
        }
        self.freeing.remove(&id);
        self.alone.remove(&id);
        for_each_touched(self.zones, step, |range, _| {
            self.pending.remove((range.start.0, range.end().0), id);
        });
    }

    /// It is planned and not issued.
    pub(crate) fn is_pending(&self, id: CommandId) -> bool {
        let place = id.0.checked_sub(self.oldest);
        place.is_some_and(|place| self.issued.get(place as usize) == Some(&false))
    }

    /// A command about the block is planned and not issued.
    pub(crate) fn is_busy(&self, lba: Lba) -> bool {
        self.pending.is_any_over(lba.0, lba.0 + 1)
    }

    /// Nothing is planned that was not issued: no command conflicts.
    pub(crate) fn is_empty(&self) -> bool {
        self.issued.is_empty()
    }

    /// Planned commands with which this one conflicts.
    pub(crate) fn conflicts(&self, step: &PlanStep, into: &mut Vec<CommandId>) {
        if self.pending.is_empty() {
            return;
        }
        for_each_touched(self.zones, step, |range, writes| {
            let (start, end) = (range.start.0, range.end().0);
            self.pending.find_over((start, end), |claim| writes || claim.writes, into);
            if start >= ORDER_OF_ZONES {
                into.extend(&self.alone);
            }
        });
    }
}

/// Shows the blocks that a command touches and the place of the zone that it writes to or acts on,
/// and whether it changes them.
fn for_each_touched(zones: Option<Zones>, step: &PlanStep, mut show: impl FnMut(BlockRange, bool)) {
    step.for_each_range(&mut show);
    if let Some(zones) = zones
        && let PlanStep::Write { range, .. } | PlanStep::Zone(range, _) = step
        && let Some(zone) = zones.index(range.start)
    {
        show(BlockRange::new(Lba(ORDER_OF_ZONES + u64::from(zone)), 1), true);
    }
}

/// Blocks of a planned command.
#[derive(Clone, Copy, Debug)]
struct Claim {
    start: u64,
    end: u64,
    id: CommandId,
    writes: bool,
}

impl Claim {
    const fn is_over(&self, start: u64, end: u64) -> bool {
        self.start < end && self.end > start
    }
}

/// Blocks that are looked up as one: 1 MiB.
const CHUNK: u64 = 256;
/// Chunks of a claim beyond which it is kept among the long ones.
const MOST_CHUNKS: u64 = 8;
const NONE: u32 = u32::MAX;

/// A claim in the chain of a bucket.
#[derive(Clone, Copy, Debug)]
struct Link {
    claim: Claim,
    next: u32,
}

/// The claims of planned commands: once for each of their chunks in the chain of the chunk's
/// bucket, but long ones in a list of their own.
#[derive(Debug, Default)]
struct Pending {
    /// First link of each bucket; their number is a power of two.
    heads: Vec<u32>,
    links: Vec<Link>,
    /// Links without a claim, chained.
    free: Option<u32>,
    used: usize,
    long: Vec<Claim>,
}

/// The chunks of a range; also of an empty one, which lies somewhere.
const fn chunks_of(start: u64, end: u64) -> (u64, u64) {
    let last = if end > start { end - 1 } else { start };
    (start / CHUNK, last / CHUNK)
}

impl Pending {
    const fn is_empty(&self) -> bool {
        self.used == 0 && self.long.is_empty()
    }

    /// A multiplicative hash (Knuth, volume 3, section 6.4) of a chunk.
    const fn bucket(&self, chunk: u64) -> usize {
        let mixed = chunk.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        mixed as usize & (self.heads.len() - 1)
    }

    fn insert(&mut self, claim: Claim) {
        let (first, last) = chunks_of(claim.start, claim.end);
        if last - first >= MOST_CHUNKS {
            self.long.push(claim);
            return;
        }
        if self.used + MOST_CHUNKS as usize > self.heads.len() {
            self.grow();
        }
        for chunk in first..=last {
            self.link(chunk, claim);
        }
    }

    fn link(&mut self, chunk: u64, claim: Claim) {
        let bucket = self.bucket(chunk);
        let link = Link { claim, next: self.heads[bucket] };
        let place = match self.free {
            Some(place) => {
                let next = self.links[place as usize].next;
                self.free = (next != NONE).then_some(next);
                self.links[place as usize] = link;
                place
            }
            None => {
                self.links.push(link);
                self.links.len() as u32 - 1
            }
        };
        self.heads[bucket] = place;
        self.used += 1;
    }

    /// Doubles the buckets.
    fn grow(&mut self) {
        let mut claims: Vec<Claim> = Vec::new();
        self.for_each(|claim| claims.push(*claim));
        claims.sort_unstable_by_key(|claim| (claim.start, claim.id));
        claims.dedup_by_key(|claim| (claim.start, claim.end, claim.id));
        let buckets = (2 * self.heads.len()).max(64);
        self.heads.clear();
        self.heads.resize(buckets, NONE);
        self.links.clear();
        (self.free, self.used) = (None, 0);
        for claim in claims {
            let (first, last) = chunks_of(claim.start, claim.end);
            (first..=last).for_each(|chunk| self.link(chunk, claim));
        }
    }

    /// Removes the claims of a command in a range that one of them has.
    fn remove(&mut self, (start, end): (u64, u64), id: CommandId) {
        let (first, last) = chunks_of(start, end);
        if last - first >= MOST_CHUNKS {
            self.long.retain(|claim| (claim.id, claim.start) != (id, start));
            return;
        }
        for chunk in first..=last {
            let bucket = self.bucket(chunk);
            let (mut before, mut place) = (NONE, self.heads[bucket]);
            while place != NONE {
                let Link { claim, next } = self.links[place as usize];
                if claim.id == id {
                    match before {
                        NONE => self.heads[bucket] = next,
                        before => self.links[before as usize].next = next,
                    }
                    self.links[place as usize].next = self.free.unwrap_or(NONE);
                    self.free = Some(place);
                    self.used -= 1;
                } else {
                    before = place;
                }
                place = next;
            }
        }
    }

    fn chain(&self, head: u32) -> impl Iterator<Item = &Claim> {
        let mut place = head;
        std::iter::from_fn(move || {
            let link = self.links.get(place as usize)?;
            place = link.next;
            Some(&link.claim)
        })
    }

    /// Shows all that are not long, some of them several times.
    fn for_each(&self, mut show: impl FnMut(&Claim)) {
        for &head in &self.heads {
            self.chain(head).for_each(&mut show);
        }
    }

    /// Adds those with a block in a range that `choose` takes, in the order of their first blocks.
    fn find_over(
        &self,
        (start, end): (u64, u64),
        choose: impl Fn(&Claim) -> bool,
        into: &mut Vec<CommandId>,
    ) {
        let mut found = Found::default();
        let (first, last) = chunks_of(start, end);
        let chosen = |claim: &Claim| claim.is_over(start, end) && choose(claim);
        if last - first >= MOST_CHUNKS {
            self.for_each(|claim| found.add_if(chosen(claim), claim));
        } else if self.used > 0 {
            for chunk in first..=last {
                let chain = self.chain(self.heads[self.bucket(chunk)]);
                chain.for_each(|claim| found.add_if(chosen(claim), claim));
            }
        }
        self.long.iter().for_each(|claim| found.add_if(chosen(claim), claim));
        found.give(into);
    }

    /// The same wherever their blocks are.
    fn find_all(&self, choose: impl Fn(&Claim) -> bool, into: &mut Vec<CommandId>) {
        let mut found = Found::default();
        self.for_each(|claim| found.add_if(choose(claim), claim));
        self.long.iter().for_each(|claim| found.add_if(choose(claim), claim));
        found.give(into);
    }

    fn is_any_over(&self, start: u64, end: u64) -> bool {
        let mut found = Vec::new();
        self.find_over((start, end), |_| true, &mut found);
        !found.is_empty()
    }
}

/// Commands that were found, with their first blocks.
#[derive(Default)]
struct Found(Vec<(u64, CommandId)>);

impl Found {
    fn add_if(&mut self, is_wanted: bool, claim: &Claim) {
        if is_wanted {
            self.0.push((claim.start, claim.id));
        }
    }

    fn give(mut self, into: &mut Vec<CommandId>) {
        self.0.sort_unstable();
        self.0.dedup();
        into.extend(self.0.iter().map(|&(_, id)| id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of all claims.
        #[test]
        fn conflicts_are_those_of_a_plain_list(
            ops in prop::collection::vec((0..3_u8, 0..9000_u64, 0..5000_u64, any::<bool>()), 1..200),
        ) {
            let (mut hazards, mut model) = (Hazards::default(), Vec::new());
            for (op, start, blocks, writes) in ops {
                let blocks = if op == 0 { blocks } else { blocks % 300 };
                let range = BlockRange::new(Lba(start), blocks);
                let step = if writes { PlanStep::Zone(range, dovetail_block::ZoneAction::Reset) } else { PlanStep::Read(range) };
                let mut found = Vec::new();
                hazards.conflicts(&step, &mut found);
                let mut expected: Vec<(u64, CommandId)> = Vec::new();
                for (other, id, changes) in &model {
                    let other: &BlockRange = other;
                    let is_over = other.start < range.end() && other.end() > range.start;
                    if is_over && (writes || *changes) {
                        expected.push((other.start.0, *id));
                    }
                }
                expected.sort();
                prop_assert_eq!(found, expected.iter().map(|&(_, id)| id).collect::<Vec<_>>());
                let is_busy = model.iter().any(|(other, ..)| other.start <= range.start && other.end() > range.start);
                prop_assert_eq!(hazards.is_busy(range.start), is_busy);
                if op == 2 && !model.is_empty() {
                    let (range, id, writes) = model.remove(start as usize % model.len());
                    let step = if writes { PlanStep::Zone(range, dovetail_block::ZoneAction::Reset) } else { PlanStep::Read(range) };
                    prop_assert!(hazards.is_pending(id));
                    hazards.issued(&step, id);
                    prop_assert!(!hazards.is_pending(id));
                } else {
                    let id = hazards.plan(&step);
                    model.push((range, id, writes));
                }
                prop_assert_eq!(hazards.is_empty(), model.is_empty());
            }
        }
    }
}
