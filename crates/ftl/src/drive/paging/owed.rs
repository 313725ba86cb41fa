//! Translation pages that are owed: changes of the map that the cache did not take.

use dovetail_block::DeviceError;
use dovetail_time::SimTime;

use crate::cache::TranslationPage;
use crate::drive::Drive;
use crate::stats::MapUse;

impl Drive {
    /// Writes translation pages that are owed when a line of `most` pages has been emptied: no more than it can have added.
    pub(in super::super) fn settle(&mut self, at: SimTime, most: u32) -> Result<(), DeviceError> {
        for _ in 0..most {
            let Some(page) = self.first_owed() else { break };
            self.settle_page(at, page)?;
        }
        Ok(())
    }

    /// Writes the translation pages that are owed, between commands: with room made for each. While a line is being cleaned
    /// its own wait for its end, unless there are many.
    pub(in super::super) fn settle_between_commands(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while self.first_owed().is_some() {
            let owed = self.paging.as_ref().map_or(0, |paging| paging.owed.len());
            if self.run.is_some() && owed <= self.medium.lines().pages_per_line() as usize {
                break;
            }
            self.make_room(at)?;
            // not the one seen before: what made the room may have written it
            if let Some(page) = self.first_owed() {
                self.settle_page(at, page)?;
            }
        }
        Ok(())
    }

    fn first_owed(&self) -> Option<TranslationPage> {
        self.paging.as_ref().and_then(|paging| paging.owed.first().copied())
    }

    fn settle_page(&mut self, at: SimTime, page: TranslationPage) -> Result<(), DeviceError> {
        self.write_translation(at, page, false, MapUse::Move)?;
        if let Some(paging) = &mut self.paging {
            paging.cache.written(page);
            paging.owed.remove(&page);
        }
        Ok(())
    }

    /// Gives up a translation page of which no entry is mapped any more: the directory says so, and nothing needs to be
    /// written. After a power cut it may be found again, and is passed over: the map has nothing there.
    pub(in super::super) fn give_up_translation(&mut self, page: TranslationPage) {
        let Some(paging) = &mut self.paging else { return };
        paging.cache.written(page);
        paging.owed.remove(&page);
        let lpn = paging.lpn_of(page);
        if let (Some(before), _) = self.point_at(lpn, None) {
            self.medium.invalidate(before);
        }
    }

    pub(super) fn owed_no_more(&mut self, page: TranslationPage) {
        if let Some(paging) = &mut self.paging {
            paging.owed.remove(&page);
        }
    }
}
