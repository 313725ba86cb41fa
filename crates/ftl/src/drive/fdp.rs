//! Reclaim units at work: statistics, and handles that go on with empty units.

use dovetail_block::{
    BLOCK_SIZE, Command, DeviceError, HandleStatus, Hints, PlacementEvent, PlacementReport, Query,
    StreamId,
};
use dovetail_time::SimTime;

use super::Drive;
use crate::stats::Cause;

impl Drive {
    /// The statistics of the reclaim units since the drive was switched on.
    pub(super) fn placement(&self) -> Result<PlacementReport, DeviceError> {
        if self.config.fdp.is_none() {
            return Err(Query::Placement.unsupported());
        }
        let page = u64::from(self.config.subpages());
        let counters = &self.counters;
        let status = |handle: u8| HandleStatus {
            blocks_left: self.medium.pages_left(self.host_frontier(StreamId(handle))) * page,
            host_blocks: counters.handle_blocks[usize::from(handle)],
            media_blocks: counters.handle_programs[usize::from(handle)] * page,
        };
        let block_bytes = u64::from(self.geometry().pages_per_block) * page * BLOCK_SIZE;
        Ok(PlacementReport {
            handles: (0..self.config.streams).map(status).collect(),
            host_bytes: counters.written_blocks * BLOCK_SIZE,
            media_bytes: counters.programmed_pages() * page * BLOCK_SIZE,
            erased_bytes: counters.erases * block_bytes,
            events: counters.placement_events,
        })
    }

    /// Lets handles go on with empty reclaim units. What the write buffer holds, of whatever handle,
    /// is written before.
    pub(super) fn update_handles(
        &mut self,
        at: SimTime,
        updated: &[StreamId],
    ) -> Result<SimTime, DeviceError> {
        if self.config.fdp.is_none() {
            return Err(Command::UpdateHandles(updated).unsupported());
        }
        let count = self.config.streams;
        if let Some(handle) = updated.iter().find(|handle| handle.0 >= count) {
            return Err(DeviceError::NoHandle { handle: handle.0, handles: count });
        }
        self.empty_buffer(at, 0)?;
        for &handle in updated {
            if self.medium.leave_line(self.host_frontier(handle)) {
                self.note_placement(PlacementEvent::UnitNotFull);
            }
        }
        self.make_room(at)?;
        Ok(at)
    }

    /// The stream of a write whose hints name one.
    #[inline]
    pub(super) fn hinted_stream(&self, hints: Hints) -> StreamId {
        StreamId(hints.stream.0 % self.config.streams)
    }

    /// The hints of a write, with a handle that is there; counts what the host writes by it.
    #[inline]
    pub(super) fn place(&mut self, hints: Hints, blocks: u64) -> Hints {
        if self.config.fdp.is_none() {
            return hints;
        }
        let mut stream = hints.stream;
        if stream.0 >= self.config.streams {
            self.note_placement(PlacementEvent::InvalidHandle);
            stream = StreamId(0);
        }
        self.counters.handle_blocks[usize::from(stream.0)] += blocks;
        Hints { stream, ..hints }
    }

    /// Cleaning of a line with pages to keep begins.
    pub(super) fn note_reallocation(&mut self, cause: Cause) {
        if matches!(cause, Cause::Gc | Cause::Wear | Cause::Refresh) {
            self.note_placement(PlacementEvent::MediaReallocated);
        }
    }

    fn note_placement(&mut self, event: PlacementEvent) {
        self.counters.placement_events[event as usize] += 1;
    }
}
