//! Translation pages that are owed: changes of the map that the cache did not take.

use dovetail_block::DeviceError;
use dovetail_time::SimTime;

use super::Drive;
use crate::cache::TranslationPage;
use crate::stats::MapUse;

impl Drive {
    /// Writes translation pages that are owed when a line of `most` pages has been emptied: no more
    /// than it can have added.
    pub(super) fn settle(&mut self, at: SimTime, most: u32) -> Result<(), DeviceError> {
        for _ in 0..most {
            let Some(page) = self.translation.first_owed() else { break };
            self.settle_page(at, page)?;
        }
        self.complete_word_lines()
    }

    /// Writes the translation pages that are owed, between commands: with room made for each. While
    /// a line is being cleaned its own wait for its end, unless there are many.
    pub(super) fn settle_between_commands(&mut self, at: SimTime) -> Result<(), DeviceError> {
        while self.translation.first_owed().is_some() {
            let owed = self.translation.owed();
            if self.cleaner.is_running() && owed <= self.medium.lines().pages_per_line() as usize {
                break;
            }
            self.make_room(at)?;
            // not the one seen before: what made the room may have written it
            if let Some(page) = self.translation.first_owed() {
                self.settle_page(at, page)?;
            }
        }
        self.complete_word_lines()
    }

    fn settle_page(&mut self, at: SimTime, page: TranslationPage) -> Result<(), DeviceError> {
        self.write_translation(at, page, false, MapUse::Move)?;
        self.translation.settled(page);
        Ok(())
    }
}
