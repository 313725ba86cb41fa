//! A NAND flash model: geometry, timing, wear, bad blocks, named faults and power cuts.
//!
//! The model keeps the rules of flash and makes breaking one an error: a page is programmed once,
//! the pages of a block in order, and blocks are erased as a whole. Time is virtual: each die has a
//! time until which it is busy, a command reserves its place and its completion follows. There is
//! no event queue.
//!
//! Left out: read disturb and retention (an unreadable page is a named fault), program suspend, and
//! the register limits of a die (a page may wait in a die's register while the die is busy).

mod backing;
mod bytes;
mod error;
mod faults;
mod geometry;
mod nand;
mod page;
mod payload;
mod recent;
mod store;
mod timing;

pub use backing::{BackingStore, StoredBlock, StoredPage};
pub use error::NandError;
pub use faults::{FaultPlan, PowerCut, Torn};
pub use geometry::{BlockId, Divisor, Geometry, GeometryError, Ppn};
pub use nand::{Nand, NandConfig};
pub use page::{Lpn, Oob, Seq};
pub use payload::Token;
pub use timing::{DieUse, Timing};
