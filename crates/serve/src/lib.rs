//! A drive as a block device for programs and kernels.
//!
//! An [`Export`] gives a drive's blocks as bytes, in virtual time, to requests of any range. The
//! servers stand on it; only commands on zones go past it. A [`Server`] speaks NBD and
//! vhost-user-blk, and makes a disk of this machine's Linux, in real time: a [`Pace`] keeps the wall
//! clock to the drive's service times.
//!
//! Threads are one for each socket that is listened on, one for each connection and one for each
//! queue of a disk. They share one lock, around the drive.
//!
//! ```
//! use dovetail_block::MemoryDevice;
//! use dovetail_serve::{Address, Export, ExportError};
//! use dovetail_time::SimTime;
//!
//! # fn main() -> Result<(), ExportError> {
//! let mut export = Export::new(MemoryDevice::new(256)); // a drive of blocks, here 1 MiB
//! let now = SimTime::ZERO;
//! // A client writes bytes anywhere: here over the border of two blocks.
//! let done = export.write(now, 4090, b"over the border", false)?;
//! let mut found = [0; 15];
//! export.read(done, 4090, &mut found)?;
//! assert_eq!(&found, b"over the border");
//!
//! assert!(export.read(done, export.bytes(), &mut found).is_err(), "beyond the end");
//! assert_eq!(Address::of("10809").uri(), "nbd://127.0.0.1:10809");
//! # Ok(())
//! # }
//! ```

mod address;
mod ask;
mod drive;
mod export;
mod nbd;
mod pace;
mod served;
mod server;
mod status;
mod ublk;
pub mod vhost;
mod wait;

pub use address::{Address, ListenError};
pub use ask::{AskError, ask_status};
pub use drive::Drive;
pub use export::{Export, ExportError, Extent};
pub use pace::Pace;
pub use server::Server;
pub use status::{DriveStatus, DriveWork, Requests, ServerStatus, Status};
pub use ublk::UblkError;
