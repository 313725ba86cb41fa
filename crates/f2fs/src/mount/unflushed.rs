//! Writes that only a flush makes durable, in modes where a remap does that for others.

use std::collections::BTreeSet;

use crate::format::Nid;

/// Writes since the last flush that no remap made durable; kept only in modes that remap.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    files: BTreeSet<Nid>,
    chain: bool,
}

impl Unflushed {
    /// Something of the file was written.
    pub(super) fn note_file(&mut self, ino: Nid) {
        self.files.insert(ino);
    }

    /// A block of the warm node log was written, behind which recovery does not see.
    pub(super) fn note_chain(&mut self) {
        self.chain = true;
    }

    pub(super) fn has_file(&self, ino: Nid) -> bool {
        self.files.contains(&ino)
    }

    pub(super) fn has_chain(&self) -> bool {
        self.chain
    }

    /// The device was flushed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
