//! What a drive is made of, resolved: the form that the drive itself uses.

use dovetail_block::BLOCK_SIZE;
use dovetail_nand::{GeometryError, NandConfig};
use dovetail_time::SimSpan;

use crate::lines::LineShape;
use crate::mapping::Scheme;
use crate::remap::{RemapConfig, RemapStore};
use crate::victim::Policy;

/// A drive's configuration.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// Its name in results.
    pub name: String,
    /// Its flash.
    pub nand: NandConfig,
    /// What it offers the host, in blocks of 4 KiB.
    pub user_blocks: u64,
    /// How it maps pages.
    pub scheme: &'static Scheme,
    /// Which line it cleans next.
    pub policy: &'static Policy,
    /// Lines that the policy `d-choices` draws.
    pub choices: u32,
    /// What it fills and erases as one.
    pub shape: LineShape,
    /// Write streams kept apart, 1 to 16.
    pub streams: u8,
    /// Whether pages moved by cleaning go to lines of their own.
    pub gc_apart: bool,
    /// Below this many free lines, writes wait for cleaning. Raised to what the drive needs to work.
    pub foreground_lines: u32,
    /// Below this many free lines, cleaning goes along with writes and uses idle time.
    pub background_lines: u32,
    /// A gap between commands longer than this counts as idle.
    pub idle_after: SimSpan,
    /// Pages in the volatile write buffer, 0 for none.
    pub buffer_pages: u32,
    /// Spread of erase counts between lines above which the least worn one is emptied; 0 for never.
    pub wear_spread: u32,
    /// One access to the drive's memory.
    pub map_access: SimSpan,
    /// Moving 4 KiB over the host link.
    pub link_4k: SimSpan,
    /// Handling one command.
    pub command: SimSpan,
    /// How it remaps, if it can. Only with pages of one block: a larger page has several owners.
    pub remap: Option<RemapConfig>,
    /// Seeds the policies that draw.
    pub seed: u64,
}

/// A drive that cannot work, in a sentence that says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The flash has no such layout.
    #[error("flash geometry: {0}")]
    Geometry(#[from] GeometryError),
    /// Fewer lines than the data, the open lines and the cleaning reserve need.
    #[error(
        "the drive has good blocks for {lines} lines of {line_kib} KiB, but its data, {open} open lines and a reserve of \
         {reserve} need {needed}; raise over-provisioning or the scale, or use fewer streams or smaller lines"
    )]
    TooSmall {
        /// Lines that the good blocks of the flash make.
        lines: u32,
        /// The size of a line in KiB.
        line_kib: u64,
        /// Lines that may be open at once.
        open: u32,
        /// Lines kept free for cleaning.
        reserve: u32,
        /// Lines that would do.
        needed: u64,
    },
    /// A stream count out of range.
    #[error("streams is {0}, allowed is 1 to 16")]
    Streams(u8),
    /// Remapping moves blocks, and a page must be one.
    #[error("remap needs flash pages of 4 KiB, these have {0} bytes; leave it out or use smaller pages")]
    RemapPage(u32),
    /// A remap of nothing.
    #[error(
        "remap takes no pairs; allow at least 1 in a command, and room for at least 1 record of a discard"
    )]
    RemapNothing,
    /// No capacity.
    #[error("the drive offers the host no block; raise its capacity or the scale")]
    Empty,
}

impl DriveConfig {
    /// Blocks of 4 KiB in a page.
    pub(crate) fn parts(&self) -> u32 {
        self.nand.geometry.parts_per_page()
    }

    /// Logical pages that the host can address.
    pub(crate) fn user_pages(&self) -> u32 {
        self.user_blocks.div_ceil(u64::from(self.parts())) as u32
    }

    /// The drive's own frontiers: one for each stream, and as many for cleaning if that is apart.
    pub(crate) fn frontiers(&self) -> u32 {
        u32::from(self.streams) * if self.gc_apart { 2 } else { 1 }
    }

    fn groups(&self) -> u32 {
        self.shape.groups(&self.nand.geometry)
    }

    fn line_pages(&self) -> u32 {
        self.shape.pages_per_line(&self.nand.geometry)
    }

    /// Free lines that cleaning needs to go on whatever happens: one in each group to move pages to, one for the
    /// record of discards that an erase waits for, one for what a power cut left half moved; more where lines
    /// have only a few pages, and where the tables of a reverse map are on flash: they are written in one go.
    pub(crate) fn least_reserve(&self) -> u32 {
        const PAGES_FOR_RECORDS: u32 = 8;
        let records = PAGES_FOR_RECORDS + crate::drive::reverse_table_pages(self);
        self.groups() + records.div_ceil(self.line_pages()).max(2)
    }

    /// Checks that the drive can hold its capacity and still clean, and raises the cleaning thresholds to what
    /// it needs.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn checked(mut self) -> Result<Self, ConfigError> {
        self.nand.geometry.check()?;
        if !(1..=16).contains(&self.streams) {
            return Err(ConfigError::Streams(self.streams));
        }
        if self.user_blocks == 0 {
            return Err(ConfigError::Empty);
        }
        self.check_remap()?;
        self.foreground_lines = self.foreground_lines.max(self.least_reserve());
        self.background_lines = self.background_lines.max(self.foreground_lines + 1);
        self.check_room()?;
        Ok(self)
    }

    fn check_remap(&self) -> Result<(), ConfigError> {
        let Some(remap) = self.remap else { return Ok(()) };
        if self.parts() > 1 {
            return Err(ConfigError::RemapPage(self.nand.geometry.page_bytes));
        }
        let no_records = matches!(remap.store, RemapStore::NonVolatile { discard_records: 0, .. });
        if remap.limits.pairs_per_command == 0 || no_records {
            return Err(ConfigError::RemapNothing);
        }
        Ok(())
    }

    fn check_room(&self) -> Result<(), ConfigError> {
        let pages = u64::from(self.user_pages()) + u64::from(crate::drive::system_pages(self));
        let line_pages = self.line_pages();
        let bad_pages = self.nand.factory_bad.len() as u32 * self.nand.geometry.pages_per_block;
        let lines = self.nand.geometry.pages().saturating_sub(bad_pages) / line_pages;
        let open = self.frontiers() * self.groups();
        let needed =
            pages.div_ceil(u64::from(line_pages)) + u64::from(open) + u64::from(self.foreground_lines) + 1;
        if u64::from(lines) >= needed {
            return Ok(());
        }
        let line_kib = u64::from(line_pages) * u64::from(self.parts()) * BLOCK_SIZE / 1024;
        Err(ConfigError::TooSmall { lines, line_kib, open, reserve: self.foreground_lines, needed })
    }
}
