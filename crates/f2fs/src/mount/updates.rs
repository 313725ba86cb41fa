//! Updates of files: the policy for them, and those that are not durable yet.

use std::collections::BTreeSet;

use super::policy::{IpuPolicy, UpdateFacts, Updates, WriteMode, write_mode};
use crate::format::Nid;

/// The state of updates of files.
#[derive(Debug)]
pub(super) struct UpdateState {
    ipu_policy: IpuPolicy,
    /// Updates wait for an fsync whatever the options say: an atomic write is being carried out.
    atomic: bool,
    unflushed: Unflushed,
}

/// Writes since the last flush that no remap made durable; kept only in modes that remap.
#[derive(Debug, Default)]
struct Unflushed {
    /// Files of which something was written.
    files: BTreeSet<Nid>,
    /// A block of the warm node log was written, behind which recovery does not see.
    chain: bool,
}

impl UpdateState {
    pub(super) fn new(ipu_policy: IpuPolicy) -> Self {
        Self { ipu_policy, atomic: false, unflushed: Unflushed::default() }
    }

    /// The write mode of one update: see [`super::policy::write_mode`].
    pub(super) fn mode(&self, updates: Updates, facts: UpdateFacts) -> WriteMode {
        write_mode(updates, self.ipu_policy, facts)
    }

    pub(super) fn begin_atomic_write(&mut self) {
        debug_assert!(!self.atomic, "one atomic write is carried out at a time");
        self.atomic = true;
    }

    pub(super) fn end_atomic_write(&mut self) {
        self.atomic = false;
    }

    /// An atomic write is being carried out.
    pub(super) fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// Something of the file was written that only a flush makes durable.
    pub(super) fn note_unflushed_file(&mut self, ino: Nid) {
        self.unflushed.files.insert(ino);
    }

    /// A block of the warm node log was written that only a flush makes durable.
    pub(super) fn note_unflushed_chain(&mut self) {
        self.unflushed.chain = true;
    }

    pub(super) fn is_file_unflushed(&self, ino: Nid) -> bool {
        self.unflushed.files.contains(&ino)
    }

    pub(super) fn is_chain_unflushed(&self) -> bool {
        self.unflushed.chain
    }

    /// The device was flushed.
    pub(super) fn note_flush(&mut self) {
        self.unflushed = Unflushed::default();
    }
}
