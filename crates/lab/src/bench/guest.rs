//! Stacks whose file system is a real kernel's.

/// Begin of the name of a guest's file system in a stack.
pub(crate) const PREFIX: &str = "linux:";

/// The name of the guest's file system, of a stack that has one.
pub(crate) fn file_system_of(filesystem: &str) -> Option<&str> {
    filesystem.strip_prefix(PREFIX)
}
