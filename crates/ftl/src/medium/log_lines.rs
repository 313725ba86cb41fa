//! Lines whose pages have places of their own: opened, filled up to a page, and closed by hand.

use dovetail_block::DeviceError;

use super::Medium;
use super::frontier::{FrontierId, OpenLine};
use super::lines::LineId;

impl Medium {
    /// The line that a frontier fills, and the index of its next page.
    pub(crate) fn line_in(&self, frontier: FrontierId) -> Option<(LineId, u32)> {
        let open = self.frontiers[frontier.0].open_line(0)?;
        Some((open.line, open.next))
    }

    /// Opens a line for a frontier that has none; one without bad blocks if there is any. `None`
    /// when no line is free.
    pub(crate) fn open_in(&mut self, frontier: FrontierId) -> Option<LineId> {
        let mode = self.frontiers[frontier.0].mode();
        let whole = self.lines.free_without_bad_blocks();
        let line = match whole {
            Some(line) => self.lines.open_this(line, mode),
            None => self.lines.open(0, mode)?,
        };
        self.tell_mode(line, mode);
        self.frontiers[frontier.0].set_open_line(0, Some(OpenLine { line, next: 0 }));
        Some(line)
    }

    /// Leaves the pages of a frontier's line empty up to this index.
    ///
    /// # Errors
    /// A broken rule of the flash.
    pub(crate) fn skip_to(&mut self, frontier: FrontierId, index: u32) -> Result<(), DeviceError> {
        let Some(mut open) = self.frontiers[frontier.0].open_line(0) else { return Ok(()) };
        while open.next < index.min(self.lines.pages_in(open.line)) {
            self.skip_page(open)?;
            open.next += 1;
        }
        self.frontiers[frontier.0].set_open_line(0, Some(open));
        Ok(())
    }

    /// Closes the line of a frontier, filled or not.
    pub(crate) fn close_line(&mut self, frontier: FrontierId) {
        if let Some(open) = self.frontiers[frontier.0].open_line(0) {
            self.frontiers[frontier.0].set_open_line(0, None);
            self.lines.close(open.line, self.seq);
        }
    }

    /// Gives the open lines named here to those frontiers, and closes the others.
    pub(crate) fn rearrange(&mut self, wanted: &[(LineId, FrontierId)]) {
        let open: Vec<OpenLine> =
            self.frontiers.iter().filter_map(|frontier| frontier.open_line(0)).collect();
        self.frontiers.iter_mut().for_each(|frontier| frontier.set_open_line(0, None));
        for open in open {
            match wanted.iter().find(|(line, _)| *line == open.line) {
                Some((_, to)) => self.frontiers[to.0].set_open_line(0, Some(open)),
                None => self.lines.close(open.line, self.seq),
            }
        }
    }
}
