//! Flexible data placement (FDP): the reclaim units of a drive.
//!
//! A reclaim unit is a line: what the drive fills, cleans and erases as one. A handle is a stream
//! with a line of its own. With [`Isolation::Initial`] what cleaning moves goes to one line for all
//! handles, with [`Isolation::Persistent`] to a line of its handle.

use dovetail_block::{Isolation, ReclaimUnits};

use crate::config::DriveConfig;

impl DriveConfig {
    /// Its reclaim units, if it has FDP.
    pub fn reclaim_units(&self) -> Option<ReclaimUnits> {
        self.fdp.map(|isolation| ReclaimUnits {
            handles: self.streams,
            blocks: u64::from(self.line_pages()) * u64::from(self.subpages()),
            isolation,
        })
    }

    /// The number of the frontier that takes what is moved of a stream.
    pub(crate) fn frontier_of_moves(&self, stream: u8) -> usize {
        let (stream, streams) = (usize::from(stream % self.streams), usize::from(self.streams));
        match self.fdp {
            Some(Isolation::Initial) => streams,
            _ if self.gc_apart => streams + stream,
            _ => stream,
        }
    }

    /// Frontiers at the native number of bits a cell: those of the host's streams, and those of
    /// what is moved where that is apart.
    pub(crate) fn native_frontiers(&self) -> usize {
        let streams = usize::from(self.streams);
        match self.fdp {
            Some(Isolation::Initial) => streams + 1,
            _ if self.gc_apart => 2 * streams,
            _ => streams,
        }
    }
}
