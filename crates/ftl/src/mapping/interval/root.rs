//! The root of one area: which zone node maps each zone.
//!
//! A root is an array over the *mapping interval*, a run of zones that starts where the *active
//! interval* (first to last valid zone) started when the root was made. When the free zones behind
//! the active interval run short, a new root is made, and each operation that changes the map moves
//! a bounded number of entries (IPLFS paper §5.2). At every moment an entry stands in exactly one
//! place: the root, the new root, or the list of *outliers*, the few zones that neither covers. The
//! outliers are ours: with an array alone, one live block at each end of an area would take an
//! array of 2^36 entries, and a zone that appears out of order would have to wait for a new root.

use std::ops::Range;

use super::address::AREA_ZONES;
use super::arena::Block;
use super::map::LINE_ENTRIES;

/// Zones of the first root (IPLFS paper §5.1), and of the smallest of all.
const MIN_ZONES: u64 = 32;

/// From this length of the active interval on, the mapping interval is longer by a number of zones
/// and not twice as long (IPLFS paper §5.2).
const LONG_ZONES: u64 = 1024;
const SPARE_ZONES: u64 = 16;

/// The paper's sigma: with fewer free zones behind the active interval a new root is made. Assumed,
/// the paper gives no number: half of the spare zones of a long interval, 128 GiB of writes.
const LOW_ZONES: u64 = SPARE_ZONES / 2;

/// A root covers at most this many zones for each valid one, beside [`MIN_ZONES`]: what is further
/// back becomes an outlier. Assumed: 32 bytes for each zone node of 4 KiB.
const ZONES_PER_VALID: u64 = 8;

/// Entries that one operation moves to the new root. Assumed: two cache lines; 2^18 zones, the
/// paper's largest root, are moved within 8,192 writes, 32 MiB of them.
const ENTRIES_PER_STEP: usize = 32;

/// An array of zone nodes; 0 is a zone without valid pages.
#[derive(Clone, Debug)]
struct Root {
    start: u64,
    slots: Vec<u32>,
    valid: u64,
    /// The valid zones lie in these slots; empty without any. Its ends are valid zones, but for the
    /// start of a root that is being moved.
    active: Range<usize>,
}

impl Root {
    fn new(interval: Range<u64>) -> Self {
        let slots = vec![0; (interval.end - interval.start) as usize];
        Self { start: interval.start, slots, valid: 0, active: 0..0 }
    }

    fn end(&self) -> u64 {
        self.start + self.slots.len() as u64
    }

    fn covers(&self, zone: u64) -> bool {
        zone.wrapping_sub(self.start) < self.slots.len() as u64
    }

    #[inline]
    fn get(&self, zone: u64) -> Option<Block> {
        let slot = self.slots.get(zone.wrapping_sub(self.start) as usize)?;
        Block::from_word(*slot)
    }

    /// The first zone from `zone` on that has a node, and the cache lines read.
    fn next(&self, zone: u64) -> (Option<(u64, Block)>, u32) {
        let first = (zone.saturating_sub(self.start)).max(self.active.start as u64);
        let slots = self.slots.get(first as usize..self.active.end).unwrap_or_default();
        let empty = slots.iter().take_while(|&&slot| slot == 0).count();
        let found = slots.get(empty).and_then(|&node| Block::from_word(node));
        let lines = empty as u32 / LINE_ENTRIES + 1;
        (found.map(|node| (self.start + first + empty as u64, node)), lines)
    }

    fn active(&self) -> Range<u64> {
        self.start + self.active.start as u64..self.start + self.active.end as u64
    }

    fn put(&mut self, zone: u64, node: u32) {
        let slot = (zone - self.start) as usize;
        self.slots[slot] = node;
        self.valid += 1;
        let only = self.active.is_empty();
        let before = if only { slot..slot + 1 } else { self.active.clone() };
        self.active = before.start.min(slot)..before.end.max(slot + 1);
    }

    /// Takes the entry of a slot, 0 if there is none, and draws the active interval in to the next
    /// valid zones.
    fn take(&mut self, slot: usize) -> u32 {
        let node = std::mem::take(&mut self.slots[slot]);
        if node == 0 {
            return 0;
        }
        self.valid -= 1;
        if self.valid == 0 {
            self.active = 0..0;
        } else if slot == self.active.start {
            self.active.start += self.slots[slot..].iter().take_while(|&&slot| slot == 0).count();
        } else if slot + 1 == self.active.end {
            self.active.end -=
                self.slots[..=slot].iter().rev().take_while(|&&slot| slot == 0).count();
        }
        node
    }

    /// Takes the entry of the first active slot, if it has one, without looking for the next.
    fn take_first(&mut self) -> (u64, u32) {
        let slot = self.active.start;
        let node = std::mem::take(&mut self.slots[slot]);
        self.valid -= u64::from(node != 0);
        self.active.start += 1;
        (self.start + slot as u64, node)
    }

    fn memory_bytes(&self) -> u64 {
        self.slots.capacity() as u64 * 4
    }
}

/// The zones of one area.
#[derive(Clone, Debug)]
pub(super) struct Zones {
    root: Root,
    /// The new root while it is being made.
    new_root: Option<Root>,
    /// Valid zones that no root covers, sorted.
    outliers: Vec<(u64, u32)>,
}

impl Zones {
    pub(super) fn new() -> Self {
        Self { root: Root::new(0..MIN_ZONES), new_root: None, outliers: Vec::new() }
    }

    /// The node of `zone`, and the accesses it took to find it or to know that there is none.
    #[inline]
    pub(super) fn get(&self, zone: u64) -> (Option<Block>, u32) {
        match self.root.get(zone) {
            Some(node) => (Some(node), 1),
            None => self.get_elsewhere(zone),
        }
    }

    #[cold]
    fn get_elsewhere(&self, zone: u64) -> (Option<Block>, u32) {
        let mut accesses = u32::from(self.root.covers(zone));
        if let Some(root) = self.new_root.as_ref().filter(|root| root.covers(zone)) {
            accesses += 1;
            if let Some(node) = root.get(zone) {
                return (Some(node), accesses);
            }
        }
        let found = self.outliers.binary_search_by_key(&zone, |&(zone, _)| zone).ok();
        let node = found.and_then(|i| Block::from_word(self.outliers[i].1));
        (node, accesses + (self.outliers.len() + 1).next_power_of_two().ilog2())
    }

    /// The first zone from `zone` on that has a node, and the accesses it took to find it or to
    /// know that there is none.
    pub(super) fn next(&self, zone: u64) -> (Option<(u64, Block)>, u32) {
        let (in_root, mut accesses) = self.root.next(zone);
        let (in_new, more) = self.new_root.as_ref().map_or((None, 0), |root| root.next(zone));
        let at = self.outliers.partition_point(|&(outlier, _)| outlier < zone);
        let outlier =
            self.outliers.get(at).and_then(|&(zone, node)| Some((zone, Block::from_word(node)?)));
        accesses += more + (self.outliers.len() + 1).next_power_of_two().ilog2();
        let first = [in_root, in_new, outlier].into_iter().flatten().min_by_key(|&(zone, _)| zone);
        (first, accesses)
    }

    /// Enters the node of a zone that had none.
    pub(super) fn insert(&mut self, zone: u64, node: Block) {
        self.place(zone, node.word());
        if self.new_root.is_none() {
            self.grow_for(zone);
        }
    }

    /// Forgets the node of a zone.
    pub(super) fn remove(&mut self, zone: u64) {
        if self.root.get(zone).is_some() {
            self.root.take((zone - self.root.start) as usize);
        } else if let Some(root) = self.new_root.as_mut().filter(|root| root.get(zone).is_some()) {
            root.take((zone - root.start) as usize);
        } else if let Ok(i) = self.outliers.binary_search_by_key(&zone, |&(zone, _)| zone) {
            self.remove_outlier(i);
        }
        if self.new_root.is_none() {
            self.shrink();
        }
    }

    /// Tells whether a new root is being made.
    pub(super) fn is_moving(&self) -> bool {
        self.new_root.is_some()
    }

    /// Moves a bounded number of entries to the new root; returns how many it looked at.
    pub(super) fn step(&mut self) -> u32 {
        for done in 0..ENTRIES_PER_STEP {
            if !self.move_one() {
                return done as u32;
            }
        }
        ENTRIES_PER_STEP as u32
    }

    /// From the first to behind the last valid zone of the roots; empty without any.
    pub(super) fn active_interval(&self) -> Range<u64> {
        match &self.new_root {
            None => self.root.active(),
            Some(new) => hull(self.root.active(), new.active()),
        }
    }

    /// The zones that the root covers, or the new one if it is being made.
    pub(super) fn mapping_interval(&self) -> Range<u64> {
        let root = self.new_root.as_ref().unwrap_or(&self.root);
        root.start..root.end()
    }

    pub(super) fn outliers(&self) -> usize {
        self.outliers.len()
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let new = self.new_root.as_ref().map_or(0, Root::memory_bytes);
        self.root.memory_bytes() + new + (self.outliers.capacity() * size_of::<(u64, u32)>()) as u64
    }

    fn valid(&self) -> u64 {
        self.root.valid + self.outliers.len() as u64
    }

    /// A new root if the mapping interval does not reach far enough beyond the zone that was just
    /// entered.
    fn grow_for(&mut self, zone: u64) {
        let active = match self.root.active() {
            active if active.is_empty() => zone..zone + 1,
            active => hull(active, zone..zone + 1),
        };
        let interval = mapping_interval(&active, self.valid());
        let short = self.root.end() < active.end + LOW_ZONES && self.root.end() < AREA_ZONES;
        if interval.contains(&zone) && (short || !self.root.covers(zone)) {
            self.build(interval);
        }
    }

    /// A smaller root if the present one covers far more than what is valid.
    fn shrink(&mut self) {
        let interval = mapping_interval(&self.root.active(), self.valid());
        if self.root.slots.len() as u64 > 4 * (interval.end - interval.start) {
            self.build(interval);
        }
    }

    fn build(&mut self, interval: Range<u64>) {
        self.new_root = Some(Root::new(interval));
    }

    /// Moves the next entry, first of the old root, then of the outliers; false when there is none
    /// left and the new root has taken the old one's place.
    fn move_one(&mut self) -> bool {
        let Some(new) = &mut self.new_root else {
            return false;
        };
        if self.root.valid > 0 {
            let (zone, node) = self.root.take_first();
            self.place(zone, node);
            return true;
        }
        let first = self.outliers.partition_point(|&(zone, _)| zone < new.start);
        if let Some(&(zone, node)) = self.outliers.get(first).filter(|(zone, _)| new.covers(*zone))
        {
            new.put(zone, node);
            self.remove_outlier(first);
            return true;
        }
        self.finish();
        false
    }

    /// Puts an entry where it belongs from now on.
    fn place(&mut self, zone: u64, node: u32) {
        let root = self.new_root.as_mut().unwrap_or(&mut self.root);
        if node != 0 && root.covers(zone) {
            root.put(zone, node);
        } else if node != 0 {
            self.add_outlier(zone, node);
        }
    }

    fn finish(&mut self) {
        if let Some(root) = self.new_root.take() {
            self.root = root;
        }
        let last_outlier = self.outliers.last().map(|&(zone, _)| zone);
        let last = self.root.active().last().max(last_outlier);
        if let Some(zone) = last {
            self.grow_for(zone);
        }
    }

    fn add_outlier(&mut self, zone: u64, node: u32) {
        let at = self.outliers.partition_point(|&(other, _)| other < zone);
        self.outliers.insert(at, (zone, node));
    }

    fn remove_outlier(&mut self, at: usize) {
        self.outliers.remove(at);
        if self.outliers.capacity() > 4 * self.outliers.len() {
            self.outliers.shrink_to(2 * self.outliers.len());
        }
    }
}

fn hull(a: Range<u64>, b: Range<u64>) -> Range<u64> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

/// The mapping interval for an active interval with so many valid zones: from its start, twice its
/// length while that is below 1,024 zones, 16 zones more above, and 32 at least (IPLFS paper §5.2).
/// An active interval that is mostly holes is cut off below: the log is at its upper end.
fn mapping_interval(active: &Range<u64>, valid: u64) -> Range<u64> {
    let densest = ZONES_PER_VALID * valid + MIN_ZONES;
    let start = active.start.max(active.end.saturating_sub(densest));
    let active = active.end - start;
    let zones = if active < LONG_ZONES { 2 * active } else { active + SPARE_ZONES };
    let end = (start + zones.max(MIN_ZONES)).min(AREA_ZONES);
    start.min(end.saturating_sub(1))..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(zone: u64) -> Block {
        Block::from_word((zone % 9973) as u32 + 1).expect("not zero")
    }

    fn settle(zones: &mut Zones) {
        while zones.is_moving() {
            zones.step();
        }
    }

    #[test]
    fn the_mapping_interval_is_twice_the_active_one_and_later_sixteen_zones_more() {
        assert_eq!(mapping_interval(&(100..130), 30), 100..160);
        assert_eq!(mapping_interval(&(100..1123), 1023), 100..2146);
        assert_eq!(mapping_interval(&(100..1124), 1024), 100..1140);
        assert_eq!(mapping_interval(&(7..8), 1), 7..39);
        let last = AREA_ZONES - 1;
        assert_eq!(mapping_interval(&(last..AREA_ZONES), 1), last..AREA_ZONES);
    }

    #[test]
    fn an_appending_log_takes_its_roots_with_it_and_leaves_nothing_behind() {
        let mut zones = Zones::new();
        for zone in 0..5_000 {
            zones.insert(zone, node(zone));
            zones.step();
            if zone >= 100 {
                zones.remove(zone - 100);
            }
            let (found, accesses) = zones.get(zone);
            assert_eq!(found, Some(node(zone)));
            assert!(accesses <= if zones.is_moving() { 2 } else { 1 }, "zone {zone} is an outlier");
        }
        settle(&mut zones);
        assert_eq!(zones.active_interval(), 4_900..5_000);
        assert!(zones.mapping_interval().end >= 5_000 + LOW_ZONES);
        assert_eq!(zones.outliers(), 0);
        assert!(zones.memory_bytes() <= 4 * 2 * 2 * 200, "{}", zones.memory_bytes());
    }

    #[test]
    fn lookups_are_right_after_every_single_step_of_a_new_root() {
        let mut zones = Zones::new();
        for zone in 0..2_000 {
            zones.insert(zone, node(zone));
            settle(&mut zones);
        }
        let next = zones.mapping_interval().end - LOW_ZONES;
        (2_000..=next).for_each(|zone| zones.insert(zone, node(zone)));
        assert!(zones.is_moving());
        while zones.move_one() {
            assert!((0..=next).all(|zone| zones.get(zone).0 == Some(node(zone))));
        }
        assert_eq!(zones.outliers(), 0);
    }

    #[test]
    fn two_zones_far_apart_do_not_need_an_array_between_them() {
        let mut zones = Zones::new();
        for zone in [0, AREA_ZONES - 1, AREA_ZONES / 2] {
            zones.insert(zone, node(zone));
            settle(&mut zones);
        }
        assert!(
            [0, AREA_ZONES - 1, AREA_ZONES / 2]
                .iter()
                .all(|&zone| zones.get(zone).0 == Some(node(zone)))
        );
        assert!(zones.memory_bytes() < 1024, "{}", zones.memory_bytes());
        for zone in [0, AREA_ZONES - 1, AREA_ZONES / 2] {
            zones.remove(zone);
            assert_eq!(zones.get(zone).0, None);
        }
    }
}
