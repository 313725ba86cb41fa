//! The host in virtual time.
//!
//! A file system's call runs at once over a [`Planner`], a device that answers every read from
//! memory and records what was issued as a [`Plan`]: commands, waits, locks. A [`Machine`] plays
//! the plans of all threads against a drive, always the earliest step first, so that commands reach
//! the drive in the order of their times. Block layer and CPU have costs ([`HostCosts`]).
//!
//! The beginning of a batch of renames ([`dovetail_block::Devirtualize`]) needs an answer of the
//! drive's and cannot be planned ahead. It reaches the drive when it is issued, and blocks that
//! plans under way are about are left out of it. What the call issues after it waits in its plan
//! until the batch has begun.
//!
//! ```
//! use dovetail_block::{BlockDevice, BlockRange, Command, Lba, MemoryDevice};
//! use dovetail_host::{Event, HostCosts, Machine, Plan, Planner};
//! use dovetail_time::SimTime;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A host with one CPU, which takes 2 us for a request; the drive takes no time.
//! let costs = HostCosts { request_ns: 2_000, cpus: 1, ..HostCosts::default() };
//! let drive = MemoryDevice::new(64);
//! let mut planner = Planner::new(drive.info(), costs.max_request_blocks());
//! let mut machine = Machine::new(drive, costs, SimTime::ZERO, planner.events());
//!
//! // Two threads read a block each. A read is answered at once; what it issued is a plan.
//! for (thread, lba) in [("one", Lba(1)), ("two", Lba(9))] {
//!     let range = BlockRange::new(lba, 1);
//!     planner.submit(SimTime::ZERO, Command::Read { range, into: None })?;
//!     machine.start(SimTime::ZERO, thread, planner.take(Plan::default()));
//! }
//! // The plans are played: the CPU hands their requests over one after another.
//! for (lane, ns) in [("one", 2_000), ("two", 4_000)] {
//!     let ended = Event::Ended { lane, at: SimTime::from_ns(ns) };
//!     assert_eq!(machine.advance()?, Some(ended));
//! }
//! assert_eq!(machine.advance()?, None);
//! # Ok(())
//! # }
//! ```

mod agenda;
mod checked;
mod costs;
mod cpus;
mod device_queue;
mod error;
mod events;
mod hazards;
mod locks;
mod machine;
mod mirror;
mod placement;
mod plan;
mod planner;
mod queue;
mod read_ahead;
mod renames;
mod running;
mod sparse;
mod zone_log;
mod zone_turns;

pub use checked::CheckedDevice;
pub use costs::{CostVariant, HostCosts};
pub use error::HostError;
pub use events::Events;
pub use machine::{Event, Machine, Observer};
pub use placement::Placement;
pub use plan::{EndRenames, Plan, PlanStep, Remap, ZoneTurn};
pub use planner::Planner;
pub use queue::{InFlight, Issued, Request, RequestKind, SIZE_CLASSES, Traffic};
pub use read_ahead::{ReadAhead, ReadAheadLimits};
pub use zone_log::{NoZoneLog, ZoneLog, ZoneLogCounts};
