//! The flash: its rules, its time and its faults together.

mod block;
mod content;
mod kept;
mod power;
mod program;
mod read;
#[cfg(test)]
mod tests;

use dovetail_time::SimTime;
use read::Exposure;

use crate::backing::BackingStore;
use crate::error::NandError;
use crate::faults::{FaultPlan, PowerCut, Torn};
use crate::geometry::{BlockId, Divisor, Geometry, GeometryError, Ppn};
use crate::recent::RecentOperations;
use crate::retry::Retry;
use crate::store::Store;
use crate::timing::{DieUse, Timeline, Timing};

/// The layout, speed and endurance of a flash.
#[derive(Clone, Debug, PartialEq)]
pub struct NandConfig {
    /// Its layout.
    pub geometry: Geometry,
    /// Its speed.
    pub timing: Timing,
    /// Reads that need several tries. `None`: none does.
    pub retry: Option<Retry>,
    /// Erases that a block survives; the next one fails.
    pub endurance: u32,
    /// Blocks that are bad when the drive is new.
    pub factory_bad: Vec<BlockId>,
}

/// NAND flash in virtual time.
#[derive(Debug)]
pub struct Nand {
    config: NandConfig,
    /// Pages in all.
    pages: u32,
    units: Divisor,
    pages_per_block: Divisor,
    store: Store,
    timeline: Timeline,
    faults: Option<Box<FaultPlan>>,
    recent: Option<RecentOperations>,
    backing: Option<Box<dyn BackingStore>>,
    /// Facts that reads depend on, by block; empty where none needs several tries.
    exposures: Vec<Exposure>,
    retries: u64,
    operations: u64,
    powered: bool,
    /// See [`Nand::has_extras`]; worked out when one is added, since each operation asks.
    plain: bool,
}

/// A page's place.
struct Address {
    block: BlockId,
    /// Its index in the block.
    page: u32,
    unit: u32,
}

/// The fate of an operation, before it is done.
enum Fate {
    Proceed,
    Cut(Torn),
}

/// A copy is kept by no [`BackingStore`].
impl Clone for Nand {
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
            pages: self.pages,
            units: self.units,
            pages_per_block: self.pages_per_block,
            store: self.store.clone(),
            timeline: self.timeline.clone(),
            faults: self.faults.clone(),
            recent: self.recent.clone(),
            backing: None,
            exposures: self.exposures.clone(),
            retries: self.retries,
            operations: self.operations,
            powered: self.powered,
            plain: false,
        }
        .noting_extras()
    }
}

impl Nand {
    /// New flash, all erased.
    ///
    /// # Errors
    /// A geometry out of range.
    pub fn new(config: NandConfig) -> Result<Self, GeometryError> {
        config.geometry.check()?;
        let mut store = Store::new(config.geometry);
        for block in &config.factory_bad {
            store.blocks[block.0 as usize].bad = true;
        }
        let timeline = Timeline::new(config.timing, &config.geometry);
        Ok(Self {
            pages: config.geometry.pages(),
            units: Divisor::new(config.geometry.units()),
            pages_per_block: Divisor::new(config.geometry.pages_per_block),
            exposures: read::exposures(&config),
            config,
            store,
            timeline,
            faults: None,
            recent: None,
            backing: None,
            retries: 0,
            operations: 0,
            powered: true,
            plain: false,
        }
        .noting_extras())
    }

    fn noting_extras(self) -> Self {
        Self { plain: !self.has_extras(), ..self }
    }

    /// Tells whether an operation may concern more than the store and a plain timeline: faults, a
    /// store that is told, operations that are remembered, reads that need several tries, pages of
    /// several subpages.
    fn has_extras(&self) -> bool {
        self.faults.is_some()
            || self.backing.is_some()
            || self.recent.is_some()
            || !self.exposures.is_empty()
            || !self.timeline.is_plain()
            || self.config.geometry.subpages_per_page() > 1
    }

    /// The layout.
    pub fn geometry(&self) -> &Geometry {
        &self.config.geometry
    }

    /// Returns what the flash is made of.
    pub fn config(&self) -> &NandConfig {
        &self.config
    }

    /// Puts `plan` over the flash in place of what was there; `FaultPlan::default()` switches all
    /// faults off.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.faults = Some(Box::new(plan));
        self.plain = false;
    }

    /// Reads, programs and erases so far, over the life of the flash.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Exchanges the times until which dies and channels are busy with those of another flash of as
    /// many dies and planes: for two that stand for parts of one.
    pub fn swap_timeline(&mut self, other: &mut Self) {
        debug_assert_eq!(self.config.geometry.units(), other.config.geometry.units());
        debug_assert_eq!(self.timeline.is_plain(), other.timeline.is_plain());
        std::mem::swap(&mut self.timeline, &mut other.timeline);
    }

    /// Returns the work of each die since the power was switched on: until `at`, which is not before
    /// the last command, and what was issued.
    pub fn die_use(&self, at: SimTime) -> impl Iterator<Item = DieUse> {
        self.timeline.die_use(at)
    }

    /// Returns when the last of the dies falls idle.
    pub fn idle_from(&self) -> SimTime {
        self.timeline.idle_from()
    }

    /// Bytes of host memory that the model of pages and blocks takes, without real bytes' own.
    pub fn memory_bytes(&self) -> u64 {
        self.store.memory_bytes()
    }

    fn begin(&mut self) -> Result<Fate, NandError> {
        if !self.powered {
            return Err(NandError::PowerLost);
        }
        let number = self.operations;
        self.operations += 1;
        match self.faults.as_ref().and_then(|f| f.power_cut) {
            Some(PowerCut { at_operation, torn }) if at_operation == number => {
                self.powered = false;
                Ok(Fate::Cut(torn))
            }
            _ => Ok(Fate::Proceed),
        }
    }

    fn locate(&self, ppn: Ppn) -> Result<Address, NandError> {
        if ppn.0 >= self.pages {
            return Err(NandError::Argument("no such page"));
        }
        Ok(self.address(ppn))
    }

    /// As [`Geometry::locate`], without a division.
    #[inline]
    fn address(&self, ppn: Ppn) -> Address {
        let (row, unit) = self.units.divide(ppn.0);
        let (block_row, page) = self.pages_per_block.divide(row);
        Address { block: BlockId(block_row * self.units.divisor() + unit), page, unit }
    }
}
