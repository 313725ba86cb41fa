//! Lifetime of a drive in the words of those who buy one: drive writes a day, bytes until the rated
//! erases, years.

use dovetail_block::BLOCK_SIZE;
use serde::{Deserialize, Serialize};

use super::{DriveResult, Totals, WearResult};

const BYTES_OF_TB: f64 = 1e12;
const SECONDS_OF_DAY: f64 = 86_400.0;
const DAYS_OF_YEAR: f64 = 365.0;

/// Wear of the drive by the run, and how long it would last if all its life were like it. Blocks
/// are taken to wear alike; `wear_spread` tells by how much they do not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifetimeResult {
    /// Bytes that the host wrote to the drive, in TB of 10^12.
    pub host_tb: f64,
    /// Drive writes a day (DWPD): what the host wrote over the capacity, over the days of virtual
    /// time; 0 if no time passed.
    pub drive_writes_per_day: f64,
    /// Erases that the run costs each block: those that there were, or the times that the flash was
    /// programmed from end to end if those are more, since each takes an erase sooner or later.
    pub cycles: f64,
    /// TB that the host can write at this write amplification until the blocks have had their rated
    /// erases; null if nothing was programmed.
    pub rated_tb: Option<f64>,
    /// Years of 365 days until then, at this rate; null if nothing was programmed.
    pub rated_years: Option<f64>,
    /// Erases of the most worn block less those of the least worn one, since the drive was new.
    pub wear_spread: u32,
}

/// Facts that a lifetime follows from.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Facts {
    /// Bytes that the host wrote to the drive.
    written: u64,
    /// Bytes programmed, for whatever reason.
    programmed: u64,
    /// Bytes of the blocks that were erased.
    erased: u64,
    /// Bytes that the host can address.
    capacity: u64,
    /// Bytes of flash.
    flash: u64,
    /// Erases that a block survives.
    endurance: u32,
    elapsed_s: f64,
}

impl LifetimeResult {
    /// The lifetime by a run's other results and the pages that it programmed.
    pub(crate) fn of(
        totals: &Totals,
        programmed_pages: u64,
        drive: &DriveResult,
        wear: &WearResult,
    ) -> Self {
        let facts = Facts {
            written: totals.drive.written_blocks * BLOCK_SIZE,
            programmed: programmed_pages * u64::from(drive.page_bytes),
            erased: totals.drive.erases * drive.block_bytes,
            capacity: drive.capacity_bytes,
            flash: drive.raw_bytes,
            endurance: wear.endurance,
            elapsed_s: totals.elapsed_s,
        };
        Self { wear_spread: wear.erases_max - wear.erases_min, ..facts.lifetime() }
    }
}

impl Facts {
    fn lifetime(&self) -> LifetimeResult {
        let host_tb = self.written as f64 / BYTES_OF_TB;
        let days = self.elapsed_s / SECONDS_OF_DAY;
        let drive_writes = self.written as f64 / self.capacity.max(1) as f64;
        let cycles = self.programmed.max(self.erased) as f64 / self.flash.max(1) as f64;
        // so many runs like this one
        let runs = (cycles > 0.0).then(|| f64::from(self.endurance) / cycles);
        LifetimeResult {
            host_tb,
            drive_writes_per_day: if days > 0.0 { drive_writes / days } else { 0.0 },
            cycles,
            rated_tb: runs.map(|runs| runs * host_tb),
            rated_years: runs.map(|runs| runs * days / DAYS_OF_YEAR),
            wear_spread: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TB: u64 = 1_000_000_000_000;

    /// In half a day the host writes 2 TB to a drive of 1 TB on 1.25 TB of flash: 4 drive writes a
    /// day. 5 TB are programmed (write amplification 2.5), 4 cycles. 3000 erases last for 750 such
    /// runs: 375 days or 1.0274 years, 1500 TB.
    #[test]
    fn lifetime_is_worked_out_as_by_hand() {
        let facts = Facts {
            written: 2 * TB,
            programmed: 5 * TB,
            erased: 4 * TB,
            capacity: TB,
            flash: TB + TB / 4,
            endurance: 3000,
            elapsed_s: 43_200.0,
        };
        let lifetime = facts.lifetime();
        assert_eq!((lifetime.host_tb, lifetime.drive_writes_per_day), (2.0, 4.0));
        assert_eq!((lifetime.cycles, lifetime.rated_tb), (4.0, Some(1500.0)));
        assert_eq!(lifetime.rated_years, Some(375.0 / 365.0));
        // twice the write amplification: half of it
        let worse = Facts { programmed: 10 * TB, ..facts }.lifetime();
        assert_eq!((worse.drive_writes_per_day, worse.rated_tb), (4.0, Some(750.0)));
        assert_eq!(worse.rated_years, Some(375.0 / 730.0));
        // blocks that are erased before they are full wear as well
        let wasteful = Facts { erased: 10 * TB, ..facts }.lifetime();
        assert_eq!(wasteful, worse);
    }

    #[test]
    fn a_drive_that_was_only_read_lasts_for_no_number_of_years() {
        let facts = Facts {
            written: 0,
            programmed: 0,
            erased: 0,
            capacity: TB,
            flash: TB,
            endurance: 1000,
            elapsed_s: 0.0,
        };
        let lifetime = facts.lifetime();
        assert_eq!((lifetime.rated_tb, lifetime.rated_years), (None, None));
        assert_eq!((lifetime.host_tb, lifetime.drive_writes_per_day), (0.0, 0.0));
    }

    #[test]
    fn a_lifetime_follows_from_a_runs_other_results() {
        let mut totals = Totals { elapsed_s: 86_400.0, ..Totals::default() };
        totals.drive.written_blocks = 256;
        let drive = DriveResult {
            capacity_bytes: 1 << 20,
            raw_bytes: 28 << 14,
            page_bytes: 1 << 14,
            block_bytes: 2 << 14,
            ..DriveResult::default()
        };
        let wear =
            WearResult { erases_min: 3, erases_max: 8, endurance: 730, ..WearResult::default() };
        let lifetime = LifetimeResult::of(&totals, 28, &drive, &wear);
        assert_eq!((lifetime.cycles, lifetime.drive_writes_per_day), (1.0, 1.0));
        assert_eq!((lifetime.rated_years, lifetime.wear_spread), (Some(2.0), 5));
        totals.drive.erases = 28;
        assert_eq!(LifetimeResult::of(&totals, 28, &drive, &wear).cycles, 2.0);
    }
}
