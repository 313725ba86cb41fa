//! A real Linux kernel in virtual time, on a modelled drive.
//!
//! User-mode Linux runs as a process of this machine, and its clock is ours (`time-travel=ext`): the
//! calendar lets the guest run until it has nothing to do, and time jumps to what is due next,
//! a wish of the guest's or the end of a request of the drive's. The drive is a virtio block device
//! of this process ([`dovetail_serve::vhost`]). So the same guest on the same drive does the same
//! in the same nanosecond, however fast this machine is.
//!
//! ```
//! use dovetail_ftl::Drive;
//! use dovetail_linux::{BEGIN, END, Ended, FileSystem, Guest, LinuxError, World, quoted};
//!
//! /// Boots a guest on a drive and plays its script. Not called here: that takes a kernel.
//! fn play(guest: &Guest, drive: Drive) -> Result<Ended<Drive>, LinuxError> {
//!     World { guest, cut: None, stop: &|| false, seen: &mut |_, _, _| {} }.run(drive)
//! }
//!
//! # fn main() -> Result<(), String> {
//! let ext4 = FileSystem::find("ext4").ok_or_else(FileSystem::names)?;
//! let script = [
//!     ext4.mount("noatime"),
//!     format!("mark {BEGIN}\necho {} > /mnt/volume/note\nmark {END}\n", quoted("it's here")),
//! ]
//! .concat();
//! assert_eq!(
//!     script,
//!     r"mount -t ext4 -o 'noatime' /dev/vda /mnt/volume
//! mark begin
//! echo 'it'\''s here' > /mnt/volume/note
//! mark end
//! "
//! );
//! # Ok(())
//! # }
//! ```

mod calendar;
mod error;
mod file_system;
mod guest;
mod init;
mod watcher;
mod world;

/// fio's option for the guest's clock: by default it reads the processor's, which is the host's.
pub const FIO_CLOCK: &str = "clocksource=clock_gettime";

pub use dovetail_kernel::{BuildError, Building, NoKernel, SOURCE, build, built, default_kernel};
pub use error::LinuxError;
pub use file_system::FileSystem;
pub use guest::Guest;
pub use world::{BEGIN, Cut, END, Ended, Event, World};

/// A word that a shell takes as it is.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
