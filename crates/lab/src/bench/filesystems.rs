//! The file systems that a stack can name.

use dovetail_host::Planner;
use dovetail_time::{AtFloor, Ratio};
use dovetail_vfs::{Figures, Guarantees, Limits, Simulated};
pub use dovetail_volume::Device;
use dovetail_volume::{KINDS, Setup, SetupError, VolumeKind, kind_of};

use super::raw::{NONE, RawDrive};
use super::{BenchError, Stack};

fn found(stack: &Stack) -> Result<&'static VolumeKind, BenchError> {
    if stack.is_raw() {
        return Err(BenchError::StackFile {
            file: stack.name.clone(),
            reason: "it is a raw drive, and this needs a file system".into(),
        });
    }
    if stack.is_linux() {
        return Err(BenchError::StackFile {
            file: stack.name.clone(),
            reason: "it is a real kernel, and this needs a modelled file system; `dovetail bench` and `dovetail linux run` \
                     take it"
                .into(),
        });
    }
    let names = || KINDS.map(|kind| kind.name).join(", ");
    kind_of(&stack.filesystem).ok_or_else(|| BenchError::StackFile {
        file: stack.name.clone(),
        reason: format!(
            "there is no file system \"{}\" (there are: {}, and {NONE} for a raw drive)",
            stack.filesystem,
            names()
        ),
    })
}

fn setup(stack: &Stack, scale: Ratio) -> Setup<'_> {
    Setup {
        mount: &stack.mount,
        mkfs: &stack.mkfs,
        sysfs: &stack.sysfs,
        memory_bytes: stack.memory_bytes(scale),
        scale,
        device_addresses: stack.devirtualize.is_some(),
    }
}

fn failed(stack: &Stack) -> impl Fn(SetupError) -> BenchError + '_ {
    |error| match error {
        SetupError::Settings(reason) => BenchError::StackFile { file: stack.name.clone(), reason },
        SetupError::Volume(reason) => BenchError::Setup { stack: stack.name.clone(), reason },
    }
}

/// The file systems by their names in stacks, with their figures.
pub fn figures_by_file_system() -> impl Iterator<Item = (&'static str, Figures)> {
    KINDS.iter().map(|kind| (kind.name, kind.figures))
}

/// Figures of a stack's file system that the scale puts at their floors.
pub(super) fn floors(stack: &Stack, scale: Ratio) -> Vec<AtFloor> {
    found(stack).map(|found| (found.floors)(scale)).unwrap_or_default()
}

/// A new, mounted volume of a stack, or its drive as it is.
pub(super) fn build(
    stack: &Stack,
    planner: Planner,
    scale: Ratio,
) -> Result<Box<dyn Simulated>, BenchError> {
    if stack.is_raw() {
        return Ok(Box::new(RawDrive::new(planner)));
    }
    (found(stack)?.build)(&setup(stack, scale), planner).map_err(failed(stack))
}

/// The volume of a stack that [`build`] made, mounted again after a power cut.
pub(super) fn remount(
    stack: &Stack,
    planner: Planner,
    scale: Ratio,
) -> Result<Box<dyn Simulated>, BenchError> {
    (found(stack)?.remount)(&setup(stack, scale), planner).map_err(failed(stack))
}

/// A stack's volume on any device, with commands that are carried out at once.
#[derive(Clone, Copy)]
pub struct Volume<'a> {
    stack: &'a Stack,
    scale: Ratio,
    kind: &'static VolumeKind,
}

impl std::fmt::Debug for Volume<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume")
            .field("stack", &self.stack.name)
            .field("scale", &self.scale)
            .finish()
    }
}

impl<'a> Volume<'a> {
    /// The volume of a stack on devices shrunk by `scale`.
    ///
    /// # Errors
    /// [`BenchError::StackFile`] for a file system that there is not.
    pub fn new(stack: &'a Stack, scale: Ratio) -> Result<Self, BenchError> {
        Ok(Self { stack, scale, kind: found(stack)? })
    }

    /// Makes it anew.
    ///
    /// # Errors
    /// Options of mkfs that cannot be; what the device says.
    pub fn make(&self, device: Device) -> Result<(), BenchError> {
        (self.kind.make)(&setup(self.stack, self.scale), device).map_err(failed(self.stack))
    }

    /// Mounts it, and recovers it after a power cut.
    ///
    /// # Errors
    /// Mount options that cannot be; damage; what the device says.
    pub fn mount(&self, device: Device) -> Result<Box<dyn Simulated>, BenchError> {
        (self.kind.mount)(&setup(self.stack, self.scale), device).map_err(failed(self.stack))
    }

    /// Faults that fsck finds; none if the volume is sound. The volume must not be mounted, and
    /// must have been recovered.
    pub fn check(&self, device: Device) -> Vec<String> {
        (self.kind.check)(device)
    }

    /// Promises beyond POSIX.
    pub fn guarantees(&self) -> Guarantees {
        (self.kind.guarantees)(&setup(self.stack, self.scale))
    }

    /// Limits of file sizes, links and attributes.
    pub fn limits(&self) -> Limits {
        (self.kind.limits)(&setup(self.stack, self.scale))
    }

    /// The file system's own checker: its name and the arguments before the image.
    pub fn referee(&self) -> Option<(&'static str, &'static [&'static str])> {
        self.kind.referee
    }
}
