//! Entries that are wanted: what the cache asks for is carried out.

use dovetail_block::{BlockRange, DeviceError};
use dovetail_nand::Lpn;
use dovetail_time::SimTime;

use super::page::entries_of;
use crate::cache::{Access, CacheConfig, Entry, Shape, Step, TranslationPage};
use crate::drive::Drive;
use crate::mapping::Mapping;
use crate::stats::MapUse;

/// A translation page as seen by the cache.
struct Runs<'a> {
    map: &'a dyn Mapping,
    config: CacheConfig,
    host_pages: u64,
}

impl Shape for Runs<'_> {
    fn runs(&self, page: TranslationPage) -> u32 {
        let mut found = Vec::new();
        self.map.find_mapped(entries_of(page, self.config, self.host_pages), usize::MAX, &mut found);
        let breaks = found.windows(2).filter(|pair| {
            let [(a, at_a), (b, at_b)] = [pair[0], pair[1]];
            b.0 - a.0 != u64::from(at_b.0.wrapping_sub(at_a.0))
        });
        u32::from(!found.is_empty()) + breaks.count() as u32
    }

    fn follows(&self, entry: Entry) -> bool {
        if entry + 1 >= self.host_pages {
            return false;
        }
        let place = |entry| self.map.lookup(Lpn(entry)).0;
        match (place(entry), place(entry + 1)) {
            (Some(before), Some(after)) => after.0.checked_sub(1) == Some(before.0),
            (before, after) => before.is_none() && after.is_none(),
        }
    }
}

impl Drive {
    /// A request for this range begins: its pages will be asked for one after the other.
    pub(in super::super) fn begin_request(&mut self, range: BlockRange) {
        let end = self.pages_of(range).end;
        if let Some(paging) = &mut self.paging {
            paging.request_end = end;
        }
    }

    /// What is asked for next belongs to no request that goes on.
    pub(in super::super) fn end_request(&mut self) {
        if let Some(paging) = &mut self.paging {
            paging.request_end = 0;
        }
    }

    /// Makes the map's entry of `lpn` available; returns when it is. Pages may move meanwhile.
    pub(in super::super) fn want(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        access: Access,
    ) -> Result<SimTime, DeviceError> {
        let Some(paging) = self.paging.as_deref_mut() else { return Ok(at) };
        let following = paging.request_end.saturating_sub(lpn.0 + 1).min(1 << paging.config.shift) as u32;
        let shape = Runs { map: &*self.map, config: paging.config, host_pages: paging.host_pages };
        let hit = paging.cache.access(lpn.0, access, following, &shape, &mut paging.steps);
        let counted = if hit { &mut self.counters.map_hits } else { &mut self.counters.map_misses };
        counted[access as usize] += 1;
        if paging.steps.is_empty() {
            return Ok(at);
        }
        let mut steps = std::mem::take(&mut paging.steps);
        let done = self.perform_steps(at, &steps, MapUse::of(access))?;
        steps.clear();
        if let Some(paging) = &mut self.paging {
            paging.steps = steps;
        }
        Ok(done)
    }

    fn perform_steps(&mut self, mut at: SimTime, steps: &[Step], by: MapUse) -> Result<SimTime, DeviceError> {
        for &step in steps {
            at = match step {
                Step::Read { page } => self.read_translation(at, page, by)?,
                Step::Write { page, whole } => self.write_back(at, page, whole, by)?,
            };
        }
        Ok(at)
    }

    /// Writes what the cache gave up. A drive that has no room for it keeps it as owed, and can still be read.
    fn write_back(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        whole: bool,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let written = match self.make_room(at) {
            Ok(()) => self.write_translation(at, page, whole, by),
            Err(error) => Err(error),
        };
        match (written, &mut self.paging) {
            (Err(DeviceError::ReadOnly(_)), Some(paging)) => {
                paging.owed.insert(page);
                Ok(at)
            }
            (written, _) => written,
        }
    }
}
