//! The file systems that a stack can name: one file and one line each.

mod f2fs;

use dovetail_host::Planner;
use dovetail_time::Ratio;
use dovetail_vfs::Simulated;

use super::{BenchError, Stack};

/// Makes a new volume of a stack on a device and mounts it.
type Build = fn(&Stack, Planner, Ratio) -> Result<Box<dyn Simulated>, BenchError>;

const FILESYSTEMS: [(&str, Build); 1] = [("f2fs", f2fs::build)];

/// A new, mounted volume of a stack.
pub(super) fn build(stack: &Stack, planner: Planner, scale: Ratio) -> Result<Box<dyn Simulated>, BenchError> {
    let found = FILESYSTEMS.iter().find(|(name, _)| *name == stack.filesystem);
    let (_, build) = found.ok_or_else(|| BenchError::StackFile {
        file: stack.name.clone(),
        reason: format!(
            "there is no file system \"{}\" (there are: {})",
            stack.filesystem,
            FILESYSTEMS.map(|(name, _)| name).join(", ")
        ),
    })?;
    build(stack, planner, scale)
}
