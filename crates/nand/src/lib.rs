//! A NAND flash model: geometry, timing, wear, bad blocks, named faults and power cuts.
//!
//! The model keeps the rules of flash and makes breaking one an error: a page is programmed once,
//! the pages of a block in order, and blocks are erased as a whole. Time is virtual: each die has a
//! time until which it is busy, a command reserves its place and its completion follows. There is
//! no event queue.
//!
//! Left out: the register limits of a die (a page may wait in a die's register while the die is
//! busy). Reads that need more tries take longer (`retry.rs`); an unreadable page is a named fault.
//!
//! ```
//! use dovetail_block::{Content, Inode, Pattern, StreamId};
//! use dovetail_nand::{BlockId, Geometry, Lpn, Nand, NandConfig, NandError, Oob, Seq, Timing};
//! use dovetail_time::{SimSpan, SimTime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let geometry = Geometry {
//! #     channels: 1,
//! #     dies_per_channel: 1,
//! #     planes_per_die: 1,
//! #     blocks_per_plane: 4,
//! #     pages_per_block: 64,
//! #     page_bytes: 4096,
//! # };
//! let us = SimSpan::from_us;
//! let (read, program, erase) = (us(50), us(500), us(5000));
//! let timing = Timing { read, program, erase, transfer_4k: us(10), ..Timing::default() };
//! let config = NandConfig { geometry, timing, retry: None, endurance: 3000, factory_bad: vec![] };
//! let mut flash = Nand::new(config)?;
//!
//! let page = flash.geometry().ppn(BlockId(2), 0);
//! let token = flash.intern(&Content::Pattern(Pattern::new(7)));
//! let oob = Oob { lpn: Lpn(40), seq: Seq(1), inode: Inode(0), stream: StreamId(0) };
//! let programmed = flash.program(SimTime::ZERO, page, &[token], oob)?;
//! assert_eq!(programmed, SimTime::ZERO + us(10 + 500)); // over the channel, then into the cells
//! let there = flash.read(programmed, page, 4096)?;
//! assert_eq!(there.since(programmed), us(50 + 10)); // out of the cells, then over the channel
//! assert_eq!(flash.content(flash.token(page, 0)), Some(Content::Pattern(Pattern::new(7))));
//!
//! // A page is programmed once; the block must be erased before.
//! let again = flash.program(there, page, &[token], oob);
//! assert!(matches!(again, Err(NandError::OutOfOrder { .. })));
//! # Ok(())
//! # }
//! ```

mod agenda;
mod backing;
mod bus;
mod bytes;
mod cells;
mod chunked;
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
pub use chunked::Chunked;
pub use error::NandError;
pub use faults::{FaultPlan, PowerCut, Torn};
pub use geometry::{BlockId, Divisor, Geometry, GeometryError, Ppn};
pub use nand::{Nand, NandConfig};
pub use page::{Lpn, Oob, Seq};
pub use payload::Token;
pub use retry::Retry;
pub use suspend::Suspend;
pub use timing::{DieUse, Timing};
