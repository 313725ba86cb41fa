//! A NAND flash model: geometry, timing, wear, bad blocks, named faults and power cuts.
//!
//! The model keeps the rules of flash and makes breaking one an error: a page is programmed once,
//! the pages of a block in order, and blocks are erased as a whole. Time is virtual: each die has a
//! time until which it is busy, a command reserves its place and its completion follows. There is
//! no event queue.
//!
//! Left out: the register limits of a die (a page may wait in a die's register while the die is
//! busy). Reads that need more tries take longer (`retry.rs`); an unreadable page is a named fault.

mod agenda;
mod backing;
mod bus;
mod bytes;
mod cells;
mod error;
mod faults;
mod geometry;
mod nand;
mod page;
mod payload;
mod recent;
mod retry;
mod store;
mod suspend;
mod timing;

pub use backing::{BackingStore, StoredBlock, StoredPage};
pub use bus::BusPhases;
pub use cells::{CellMode, Cells, MOST_BITS, SingleTiming};
pub use error::NandError;
pub use faults::{FaultPlan, PowerCut, Torn};
pub use geometry::{BlockId, Divisor, Geometry, GeometryError, Ppn};
pub use nand::{Nand, NandConfig};
pub use page::{Lpn, Oob, Seq};
pub use payload::Token;
pub use retry::Retry;
pub use suspend::Suspend;
pub use timing::{DieUse, Timing};
