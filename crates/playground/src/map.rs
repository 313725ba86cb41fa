//! A drive's flash as a picture: rows of cells.

use dovetail_ftl::Storage;
use dovetail_ftl::lines::{LineState, Lines};
use serde::Serialize;

/// A cell of a line that is erased and waits to be filled, or an empty part of a volume.
pub const FREE: i8 = -1;

/// Columns at most; more blocks of a line share a cell.
const MOST_COLUMNS: u32 = 16;

/// A drive's lines, one after another; each is a row of cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriveMap {
    /// Cells of a line.
    pub columns: u32,
    /// Row by row, the share of pages that hold something that is still needed, in percent; or
    /// [`FREE`].
    pub cells: Vec<i8>,
}

impl DriveMap {
    /// The lines of a drive; of one with zones, the share of each zone that is written.
    pub fn of(drive: &Storage) -> Self {
        match (drive.page_mapped(), drive.zoned()) {
            (Some(drive), _) => Self::of_lines(drive.lines(), drive.geometry().pages_per_block),
            (None, Some(drive)) => {
                let zones = drive.zones();
                let capacity = zones.zones().capacity.max(1);
                let cell = |zone| match zones.written(zone) {
                    0 => FREE,
                    written => (100 * written / capacity) as i8,
                };
                Self { columns: 1, cells: (0..zones.zones().count).map(cell).collect() }
            }
            (None, None) => Self { columns: 1, cells: Vec::new() },
        }
    }

    fn of_lines(lines: &Lines, pages_per_block: u32) -> Self {
        let blocks = lines.pages_per_line() / pages_per_block;
        let each = blocks.div_ceil(MOST_COLUMNS).max(1);
        let columns = blocks.div_ceil(each);
        let mut cells = Vec::new();
        for line in lines.ids() {
            if lines.state(line) == LineState::Free {
                cells.extend((0..columns).map(|_| FREE));
                continue;
            }
            let valid: Vec<u32> = lines.blocks(line).map(|block| lines.valid_in(block)).collect();
            cells.extend(valid.chunks(each as usize).map(|cell| {
                let pages = cell.len() as u32 * pages_per_block;
                (100 * cell.iter().sum::<u32>()).div_ceil(pages) as i8
            }));
        }
        Self { columns, cells }
    }
}
