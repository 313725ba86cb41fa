//! The file systems that a stack can name: one file and one line each.

mod ext;
mod f2fs;

use dovetail_host::Planner;
use dovetail_time::Ratio;
use dovetail_vfs::Simulated;
use serde::Deserialize;

use super::{BenchError, Stack};

/// Makes a new volume of a stack on a device and mounts it.
type Build = fn(&Stack, Planner, Ratio) -> Result<Box<dyn Simulated>, BenchError>;

const FILESYSTEMS: [(&str, Build); 4] = [
    ("f2fs", f2fs::build),
    ("iplfs", f2fs::build_iplfs),
    ("ext4", ext::build_ext4),
    ("ext3", ext::build_ext3),
];

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
