//! The file systems that a stack can name: one file and one line each.

mod ext;
mod f2fs;

use dovetail_block::Scheduler;
use dovetail_host::Planner;
use dovetail_time::Ratio;
use dovetail_vfs::{Figures, Guarantees, Limits, Simulated};
use serde::Deserialize;

use super::{BenchError, Stack};

/// Any device.
pub type Device = Box<dyn Scheduler>;

type Mounted = Result<Box<dyn Simulated>, BenchError>;

/// A file system by its name in stacks.
struct Kind {
    name: &'static str,
    /// Makes a new volume on a simulated host's device and mounts it.
    build: fn(&Stack, Planner, Ratio) -> Mounted,
    make: fn(&Stack, Device, Ratio) -> Result<(), BenchError>,
    mount: fn(&Stack, Device, Ratio) -> Mounted,
    /// What is wrong with a volume that is not mounted.
    check: fn(Device) -> Vec<String>,
    guarantees: fn(&Stack) -> Guarantees,
    limits: fn() -> Limits,
    figures: Figures,
    /// The program that checks it, if this project did not write it: name and arguments before the
    /// image.
    referee: Option<(&'static str, &'static [&'static str])>,
}

const KINDS: [Kind; 4] = [f2fs::F2FS, f2fs::IPLFS, ext::EXT4, ext::EXT3];

fn kind(stack: &Stack) -> Result<&'static Kind, BenchError> {
    let found = KINDS.iter().find(|kind| kind.name == stack.filesystem);
    found.ok_or_else(|| BenchError::StackFile {
        file: stack.name.clone(),
        reason: format!(
            "there is no file system \"{}\" (there are: {})",
            stack.filesystem,
            KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
        ),
    })
}

/// The file systems by their names in stacks, with their figures.
pub fn figures_by_file_system() -> impl Iterator<Item = (&'static str, Figures)> {
    KINDS.iter().map(|kind| (kind.name, kind.figures))
}

/// A new, mounted volume of a stack.
pub(super) fn build(stack: &Stack, planner: Planner, scale: Ratio) -> Result<Box<dyn Simulated>, BenchError> {
    (kind(stack)?.build)(stack, planner, scale)
}

/// A stack's volume on any device, with commands that are carried out at once.
#[derive(Clone, Copy)]
pub struct Volume<'a> {
    stack: &'a Stack,
    scale: Ratio,
    kind: &'static Kind,
}

impl std::fmt::Debug for Volume<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume").field("stack", &self.stack.name).field("scale", &self.scale).finish()
    }
}

impl<'a> Volume<'a> {
    /// The volume of a stack on devices shrunk by `scale`.
    ///
    /// # Errors
    /// [`BenchError::StackFile`] for a file system that there is not.
    pub fn new(stack: &'a Stack, scale: Ratio) -> Result<Self, BenchError> {
        Ok(Self { stack, scale, kind: kind(stack)? })
    }

    /// Makes it anew.
    ///
    /// # Errors
    /// Options of mkfs that cannot be; what the device says.
    pub fn make(&self, device: Device) -> Result<(), BenchError> {
        (self.kind.make)(self.stack, device, self.scale)
    }

    /// Mounts it, and recovers it after a power cut.
    ///
    /// # Errors
    /// Mount options that cannot be; damage; what the device says.
    pub fn mount(&self, device: Device) -> Result<Box<dyn Simulated>, BenchError> {
        (self.kind.mount)(self.stack, device, self.scale)
    }

    /// What fsck finds wrong with it; nothing if it is sound. It may not be mounted, and must have
    /// been recovered.
    pub fn check(&self, device: Device) -> Vec<String> {
        (self.kind.check)(device)
    }

    /// What it promises beyond POSIX.
    pub fn guarantees(&self) -> Guarantees {
        (self.kind.guarantees)(self.stack)
    }

    /// What it can store.
    pub fn limits(&self) -> Limits {
        (self.kind.limits)()
    }

    /// The file system's own checker: its name and the arguments before the image.
    pub fn referee(&self) -> Option<(&'static str, &'static [&'static str])> {
        self.kind.referee
    }
}

/// A table of the stack's file as what a file system takes from it.
fn table<T: for<'a> Deserialize<'a>>(
    stack: &Stack,
    name: &str,
    table: &toml::Table,
) -> Result<T, BenchError> {
    table.clone().try_into().map_err(|error: toml::de::Error| BenchError::StackFile {
        file: stack.name.clone(),
        reason: format!("[{name}]: {}", error.message().replace('\n', " ")),
    })
}
