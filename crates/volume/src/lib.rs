//! The file systems that a stack can name: each is made, mounted and checked on a simulated device,
//! with the settings of the stack's file.
//!
//! [`KINDS`] is the only list of them. Left out: images in files, which `dovetail-image` has; a
//! browser has none.
//!
//! ```
//! use dovetail_block::MemoryDevice;
//! use dovetail_volume::{Setup, kind_of};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (none, bytes) = (toml::Table::new(), 64 << 20);
//! let setup = Setup {
//!     mount: "mode=lfs",
//!     mkfs: &none,
//!     sysfs: &none,
//!     memory_bytes: bytes,
//!     scale: "1".parse()?,
//!     device_addresses: false,
//! };
//! let f2fs = kind_of("f2fs").ok_or("there is no such file system")?;
//! let device = || Box::new(MemoryDevice::new(bytes / 4096));
//! (f2fs.make)(&setup, device())?;
//!
//! // an empty device has no volume to mount
//! assert!((f2fs.mount)(&setup, device()).is_err());
//! # Ok(())
//! # }
//! ```

mod ext;
mod f2fs;
mod kept;
mod kind;

pub use kind::{Device, KINDS, Mounted, Setup, SetupError, VolumeKind, discards, kind_of};
