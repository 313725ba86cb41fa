//! The state of a mount: for writing or not, and what has stopped it.

/// The conditions under which calls may write.
#[derive(Debug)]
pub(super) struct MountState {
    /// Mounted with `ro`.
    read_only: bool,
    /// Fsynced files are being rolled forward.
    recovering: bool,
    /// A call failed when it had changed a part of what it was to change.
    stopped: bool,
}

impl MountState {
    pub(super) fn new(read_only: bool) -> Self {
        Self { read_only, recovering: false, stopped: false }
    }

    pub(super) fn is_mounted_read_only(&self) -> bool {
        self.read_only
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Nothing more is written: the state in memory must not reach a checkpoint.
    pub(super) fn stop_if(&mut self, broken: bool) {
        self.stopped |= broken;
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.recovering
    }

    pub(super) fn begin_recovery(&mut self) {
        debug_assert!(!self.read_only, "recovery writes");
        self.recovering = true;
    }

    pub(super) fn end_recovery(&mut self) {
        self.recovering = false;
    }
}
