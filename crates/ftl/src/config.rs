//! The configuration of a drive, resolved: the form that the drive itself uses.

use dovetail_block::{
    AREA_BLOCKS, AREAS, BLOCK_SIZE, DeviceSpace, DriveSerial, Isolation, Lba, StreamId,
};
use dovetail_nand::{CellMode, Geometry, GeometryError, NandConfig, Timing};
use dovetail_time::{AtFloor, SimSpan};

use crate::lines::LineShape;
use crate::log_block::{FIRST_LOG, LogBlockConfig, LogScheme};
use crate::mapping::{MapShape, SCHEMES, Scheme};
use crate::medium::FrontierKind;
use crate::ownership::{entries_per_segment, least_segments};
use crate::remap::{RemapConfig, RemapStore};
use crate::single::SingleCache;
use crate::translation::FLASH_ENTRY_BYTES;
use crate::victim::{POLICIES, Policy};
use crate::zoned::ZoneConfig;
use crate::{cache, metadata, zoned};

/// Write streams at most.
pub const MOST_STREAMS: usize = 16;

/// A drive's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveConfig {
    /// Its name in results.
    pub name: String,
    /// Its flash.
    pub nand: NandConfig,
    /// Its capacity for the host, in blocks of 4 KiB.
    pub user_blocks: u64,
    /// The address space of the host, in blocks of 4 KiB, where that is more than it holds (a thin
    /// drive): up to 7 * 2^58. Only with a map whose memory follows what is mapped.
    pub addresses: Option<u64>,
    /// Set if a thin drive takes all pages but those that it needs to clean, also where only a part
    /// of each is live. Otherwise it takes as many as `user_blocks` fill. Only with a map in memory.
    pub spare_is_room: bool,
    /// Flash pages that one page of the discard journal's bitmaps tells of, where that is fewer
    /// than fit: so that tests have several of them on a small drive.
    pub pages_per_bitmap: Option<u32>,
    /// Its mapping scheme.
    pub scheme: &'static Scheme,
    /// Its victim policy: the choice of the line to clean next.
    pub policy: &'static Policy,
    /// Lines that the policy `d-choices` draws.
    pub choices: u32,
    /// The unit that it fills and erases as one.
    pub shape: LineShape,
    /// Write streams kept apart, 1 to 16.
    pub streams: u8,
    /// The way in which writes are told apart into them.
    pub streams_by: StreamsBy,
    /// Set if pages moved by cleaning go to lines of their own.
    pub gc_apart: bool,
    /// Set if moved pages stay on their die. Only with lines of one block, on dies of one plane.
    pub gc_within_die: bool,
    /// Set if its streams are handles of flexible data placement (FDP), of which it keeps
    /// statistics: the isolation of what is moved.
    pub fdp: Option<Isolation>,
    /// Below this many free lines, writes wait for cleaning. Raised to what the drive needs to
    /// work.
    pub foreground_lines: u32,
    /// Below this many free lines, cleaning goes along with writes and uses idle time.
    pub background_lines: u32,
    /// Garbage of a line, in pages, below which it is only cleaned when writes wait for it; in idle
    /// time at least 1.
    pub least_garbage: u32,
    /// A gap between commands longer than this counts as idle.
    pub idle_after: SimSpan,
    /// Pages in the volatile write buffer, 0 for none.
    pub buffer_pages: u32,
    /// The order in which pages leave it.
    pub buffer_order: BufferOrder,
    /// Set if capacitors let the drive finish its work when the power goes: what it acknowledged is
    /// safe, and a flush takes no time.
    pub power_loss_protection: bool,
    /// Its SLC cache, if it has one.
    pub single_cache: Option<SingleCache>,
    /// Reads of a block after which its line is rewritten; `None` for never.
    pub refresh_reads: Option<u32>,
    /// Spread of erase counts between lines above which the least worn one is emptied; 0 for never.
    pub wear_spread: u32,
    /// One access to the drive's memory.
    pub map_access: SimSpan,
    /// Moving 4 KiB over the host link.
    pub link_4k: SimSpan,
    /// The same for writes, where they have a link of their own.
    pub link_write_4k: Option<SimSpan>,
    /// Handling one command, beside others.
    pub command: SimSpan,
    /// Handling one write command, beside others; `None`: as any other command.
    pub write_command: Option<SimSpan>,
    /// Time in which a core of the controller takes no other command: with one core, the inverse of
    /// the commands a second that it can serve.
    pub command_serial: SimSpan,
    /// Added to `command_serial` for each 4 KiB of a write.
    pub write_serial_4k: SimSpan,
    /// Time of a core for each request that firmware hands to hardware: 4 KiB over the link, a page
    /// to read or to program, of the host's or the drive's own. Erases take none.
    pub request_serial: SimSpan,
    /// A flush takes so long from when all that it waits for is on flash; one comes after another.
    pub flush: SimSpan,
    /// A write with FUA takes so long from when it is on flash, beside others.
    pub fua: SimSpan,
    /// Cores that take commands side by side, at least 1.
    pub cores: u32,
    /// The cache of its map, if that lies on flash and is paged on demand; without it all of the
    /// map is in memory.
    pub map_cache: Option<MapCacheConfig>,
    /// Its log-block map, if it has one in place of a page map.
    pub log_block: Option<LogBlockConfig>,
    /// Its remap command, if it has one. Only with pages of one block: a larger page has several
    /// owners.
    pub remap: Option<RemapConfig>,
    /// Blocks that it renames to their device addresses in one batch, if it does that: see
    /// `block::Devirtualize`. It rests on a log of remaps, and needs a map whose memory follows
    /// what is mapped.
    pub devirtualize: Option<u32>,
    /// Its zones, if it is a zoned drive: see [`crate::ZonedDrive`].
    pub zones: Option<ZoneConfig>,
    /// Seeds the policies that draw.
    pub seed: u64,
    /// The serial number that it tells its host.
    pub serial: DriveSerial,
    /// Figures of its profile that the scale has put at their floors.
    pub floors: Vec<AtFloor>,
}

/// Means by which a drive tells writes apart into its streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamsBy {
    /// The host's hints.
    #[default]
    Hint,
    /// Addresses: each sequence of writes has a stream, and what belongs to none has the first. The
    /// host sees one stream.
    Address,
}

/// The order in which pages leave the write buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BufferOrder {
    /// The oldest first, one by one as others come in.
    #[default]
    Age,
    /// All at once when half of the buffer is full, by address: what lies in a row for the host
    /// then does on flash.
    Address,
}

/// Entries that a translation page has room for.
pub(crate) fn most_page_entries(geometry: &Geometry) -> u32 {
    geometry.page_bytes / FLASH_ENTRY_BYTES as u32
}

/// The cache of a demand-paged map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapCacheConfig {
    /// Its policy.
    pub policy: &'static cache::Policy,
    /// Bytes of memory for it.
    pub bytes: u64,
    /// Entries of a translation page: a power of two, at most what a flash page has room for at 8
    /// bytes each.
    pub page_entries: u32,
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
    #[error(
        "remap needs flash pages of 4 KiB, these have {0} bytes; leave it out or use smaller pages"
    )]
    RemapPage(u32),
    /// A remap of nothing.
    #[error(
        "remap takes no pairs; allow at least 1 in a command, and room for at least 1 record of a discard"
    )]
    RemapNothing,
    /// Translation pages that do not fit flash pages.
    #[error(
        "a translation page of {0} entries; it has a power of two from 2 to {1}, which a flash page has room for"
    )]
    TranslationPage(u32, u32),
    /// Renames without what they rest on.
    #[error(
        "a drive that devirtualises needs pages of 4 KiB, fewer than 2^31 of them, a remap log that takes as many pairs in a \
         command as a batch has renames (at least 1), and one of the maps {sparse}",
        sparse = sparse_schemes()
    )]
    Devirtualize,
    /// A map that cannot follow a large address space.
    #[error(
        "the map '{0}' has an entry for each address, and this drive has more addresses than room; use one of {sparse}",
        sparse = sparse_schemes()
    )]
    DenseMap(&'static str),
    /// Addresses, those of the flash among them, that the map cannot hold.
    #[error(
        "the map '{0}' holds fewer addresses than this drive has (those of its flash follow the host's); use another map"
    )]
    BeyondMap(&'static str),
    /// An address space that is smaller than the capacity, or larger than seven areas.
    #[error(
        "{0} addresses; a thin drive has at least as many as it holds blocks, and at most 7 * 2^58"
    )]
    Addresses(u64),
    /// Word lines that do not fit the drive.
    #[error("{0}")]
    Cells(&'static str),
    /// Zones that the drive cannot have.
    #[error("zones: {0}")]
    Zones(&'static str),
    /// Reclaim units on a drive that cannot have them.
    #[error("fdp: {0}")]
    Fdp(&'static str),
    /// Spare flash that is to be room, on a thin drive whose map lies on flash.
    #[error(
        "spare_is_room = true needs a map in memory; set it to false, or leave the map's cache out"
    )]
    SpareIsRoom,
    /// Moved pages that are to stay on their die, on a drive whose lines are wider.
    #[error(
        "gc_within_die = true needs lines = \"block\" and planes_per_die = 1; leave it out, or set these"
    )]
    WithinDie,
    /// A log-block map on a drive that it does not fit.
    #[error("{0}")]
    LogBlock(&'static str),
    /// No capacity.
    #[error("the drive offers the host no block; raise its capacity or the scale")]
    Empty,
}

fn sparse_schemes() -> String {
    let names = SCHEMES.iter().filter(|scheme| scheme.sparse).map(|scheme| scheme.name);
    names.collect::<Vec<_>>().join(", ")
}

impl DriveConfig {
    /// A drive without extras, whose fields are to be changed as wanted: a page map, greedy
    /// cleaning into lines of its own over superblocks, no write buffer, no wear levelling, one
    /// stream; handling a command and asking the map take no time. A read takes 50 us, a program
    /// 500 us, an erase 5 ms, 4 KiB 10 us on a channel and 1 us on the link (assumed, of the class
    /// of MLC flash), and blocks survive 100,000 erases.
    pub fn plain(geometry: Geometry, user_blocks: u64) -> Self {
        let timing = Timing {
            read: SimSpan::from_us(50),
            program: SimSpan::from_us(500),
            erase: SimSpan::from_ms(5),
            transfer_4k: SimSpan::from_us(10),
            ..Timing::default()
        };
        let factory_bad = Vec::new();
        Self {
            name: "plain".into(),
            nand: NandConfig { geometry, timing, retry: None, endurance: 100_000, factory_bad },
            user_blocks,
            addresses: None,
            map_cache: None,
            log_block: None,
            pages_per_bitmap: None,
            scheme: &SCHEMES[0],
            policy: &POLICIES[0],
            choices: 4,
            shape: LineShape::Superblock,
            streams: 1,
            streams_by: StreamsBy::Hint,
            gc_apart: true,
            gc_within_die: false,
            spare_is_room: false,
            fdp: None,
            foreground_lines: 0,
            background_lines: 0,
            least_garbage: 0,
            idle_after: SimSpan::from_ms(1),
            buffer_pages: 0,
            power_loss_protection: false,
            single_cache: None,
            refresh_reads: None,
            buffer_order: BufferOrder::Age,
            wear_spread: 0,
            map_access: SimSpan::ZERO,
            link_4k: SimSpan::from_us(1),
            link_write_4k: None,
            command: SimSpan::ZERO,
            write_command: None,
            command_serial: SimSpan::ZERO,
            write_serial_4k: SimSpan::ZERO,
            request_serial: SimSpan::ZERO,
            flush: SimSpan::ZERO,
            fua: SimSpan::ZERO,
            cores: 1,
            remap: None,
            devirtualize: None,
            zones: None,
            seed: 1,
            serial: DriveSerial(1),
            floors: Vec::new(),
        }
    }

    /// Blocks of 4 KiB in a page.
    pub(crate) fn subpages(&self) -> u32 {
        self.nand.geometry.subpages_per_page()
    }

    /// Blocks that the host can address.
    pub fn address_blocks(&self) -> u64 {
        self.addresses.unwrap_or(self.user_blocks)
    }

    /// Blocks of a stretch: their entries in tables come into memory together.
    pub const STRETCH_BLOCKS: u64 = 1024;

    /// Bytes of memory that simulating the drive takes once all of it was written: four for each
    /// 4 KiB of a flash page and four for the page (eight where addresses have more than 32 bits),
    /// the map's four for each page of the host's, and the two by which each block is checked. A
    /// map that follows what is mapped takes as much or less (assumed), and what grows with a
    /// workload's commands is not counted.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes_written(u64::MAX, u64::MAX)
    }

    /// The same at most, after commands wrote `blocks` blocks in all, in so many stretches of
    /// [`Self::STRETCH_BLOCKS`] aligned blocks.
    pub fn memory_bytes_written(&self, blocks: u64, stretches: u64) -> u64 {
        // a new drive: lists of what is not in memory yet, and lines. 81 MiB were measured for 8 TiB
        // of pages of 4 KiB, which is a byte for 24 pages
        const PAGES_A_BYTE: u64 = 12;
        // entries of a stretch in the map and in the check, which come into memory together
        const STRETCH: u64 = 4096 + 2 * 1024;
        let pages = u64::from(self.nand.geometry.pages());
        let owner = if self.host_pages() >> 32 == 0 { 4 } else { 8 };
        let page = 4 * u64::from(self.subpages()) + owner;
        // with more written it may be cleaning, which writes as well
        let written = if blocks > pages / 2 { pages } else { blocks };
        let map = 4 * if self.scheme.sparse { self.capacity_pages() } else { self.host_pages() };
        let entries = map.saturating_add(2 * self.user_blocks);
        (pages / PAGES_A_BYTE)
            .saturating_add(written.saturating_mul(page))
            .saturating_add(entries.min(stretches.saturating_mul(STRETCH)))
    }

    /// Pages by which the host can reach something: logical ones, and behind them those of the
    /// flash where they have addresses. The drive's own are numbered from here on.
    pub(crate) fn host_pages(&self) -> u64 {
        let logical = self.address_blocks().div_ceil(u64::from(self.subpages()));
        self.device_space().map_or(logical, |space| space.first.0 + space.blocks)
    }

    /// The addresses of the drive's flash pages: as numbers they follow the logical ones.
    pub(crate) fn device_space(&self) -> Option<DeviceSpace> {
        let blocks = self.nand.geometry.pages().into();
        self.devirtualize.map(|most| DeviceSpace {
            first: Lba(self.address_blocks()),
            blocks,
            most,
            drive: self.serial,
        })
    }

    /// Tells whether there are more addresses than room, so that each write must be weighed.
    pub(crate) fn counts_room(&self) -> bool {
        self.addresses.is_some() || self.devirtualize.is_some()
    }

    /// Logical pages of the host's that the drive holds at once.
    pub(crate) fn capacity_pages(&self) -> u64 {
        let of_user = self.user_blocks.div_ceil(u64::from(self.subpages()));
        if self.fills_spare() { of_user.max(self.most_pages()) } else { of_user }
    }

    fn fills_spare(&self) -> bool {
        self.spare_is_room && self.counts_room() && self.map_cache.is_none()
    }

    /// Pages of the host's that it can hold and still clean.
    fn most_pages(&self) -> u64 {
        let lines = u64::from(self.good_lines()).saturating_sub(self.lines_beside());
        (lines * self.pages_filled()).saturating_sub(self.pages_beside())
    }

    /// The name of its map.
    pub fn map_name(&self) -> &'static str {
        self.log_block.map_or(self.scheme.name, |map| map.scheme.name())
    }

    /// Bytes of a page of its chips, of which the map may name parts.
    pub fn chip_page_bytes(&self) -> u32 {
        let parts = self.nand.timing.cells.map_or(1, |cells| cells.parts);
        parts * self.nand.geometry.page_bytes
    }

    /// Returns what the map is for.
    pub(crate) fn map_shape(&self) -> MapShape {
        MapShape { pages: self.host_pages(), blocks_per_page: self.subpages() }
    }

    /// The drive's own frontiers: one for each stream, those for cleaning if that is apart, one for
    /// each stream in the SLC cache, one for translation pages. With a log-block map: one for
    /// merges, one for other moved pages and the drive's own, and those of log lines.
    pub(crate) fn frontiers(&self) -> Vec<FrontierKind> {
        if let Some(map) = self.log_block {
            return vec![FrontierKind::SHARED; FIRST_LOG + map.frontiers() as usize];
        }
        let of_streams = |mode| {
            (0..self.streams)
                .map(move |stream| FrontierKind { mode, stream: Some(StreamId(stream)) })
        };
        let mut frontiers: Vec<_> = of_streams(CellMode::Native).collect();
        match self.native_frontiers() - frontiers.len() {
            0 => {}
            1 if self.streams > 1 => frontiers.push(FrontierKind::SHARED),
            _ => frontiers.extend(of_streams(CellMode::Native)),
        }
        frontiers.extend(self.single_cache.iter().flat_map(|_| of_streams(CellMode::Single)));
        frontiers.extend(self.map_cache.map(|_| FrontierKind::SHARED));
        frontiers
    }

    /// Pages of an ordinary line that a page of the drive's own takes: those of a word line, or what
    /// holds one in the SLC cache.
    fn pages_for_one(&self) -> u32 {
        let timing = &self.nand.timing;
        match self.single_cache {
            Some(_) => timing.bits() * timing.pages_at_once(CellMode::Single),
            None => self.pages_at_once(),
        }
    }

    /// Tells whether pages are programmed by themselves, whatever the line.
    #[inline]
    pub(crate) fn programs_single_pages(&self) -> bool {
        self.nand.timing.pages_at_once(CellMode::Native) == 1
    }

    /// Pages that are programmed in one go in an ordinary line.
    pub(crate) fn pages_at_once(&self) -> u32 {
        let one_shot = self.nand.timing.cells.is_some_and(|cells| cells.one_shot);
        let planes = if one_shot { self.nand.geometry.planes_per_die } else { 1 };
        planes * self.nand.timing.pages_at_once(CellMode::Native)
    }

    /// Pages that discards may free before they are made durable. A power cut brings back what was
    /// discarded without a flush, beside what was written instead: a drive of ordinary size has no
    /// more addresses than room for that, a thin one sets this many pages apart.
    pub(crate) fn pages_freed_at_once(&self) -> Option<u64> {
        self.counts_room().then(|| u64::from(self.line_pages()))
    }

    fn groups(&self) -> u32 {
        self.shape.groups(&self.nand.geometry)
    }

    pub(crate) fn line_pages(&self) -> u32 {
        self.shape.pages_per_line(&self.nand.geometry)
    }

    /// Free lines that cleaning needs to go on whatever happens: one in each group to move pages
    /// to, one for the record of discards and the bitmap pages, for which an erase waits, one for
    /// what a power cut left half moved. More for the record where lines have only a few pages, and
    /// where the tables of a reverse map are on flash: they are written in one go.
    pub(crate) fn least_reserve(&self) -> u32 {
        const PAGES_FOR_RECORDS: u32 = 8;
        let bitmaps = metadata::journal::bitmap_pages(self) + 2;
        let records = PAGES_FOR_RECORDS.max(bitmaps) + metadata::remap_log::table_pages(self);
        // A cleaned line may owe a translation page for each page that was moved.
        let translations = if self.map_cache.is_some() { self.groups() + 1 } else { 0 };
        let records = records * self.pages_for_one();
        // A word line that is not filled, and a line of the SLC cache.
        let cells = u32::from(self.pages_at_once() > 1) + u32::from(self.single_cache.is_some());
        self.groups() + records.div_ceil(self.line_pages()) + 1 + translations + cells
    }

    /// Checks that the drive can hold its capacity and still clean, and raises the cleaning
    /// thresholds to what it needs.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn checked(mut self) -> Result<Self, ConfigError> {
        self.nand.geometry.check()?;
        if self.zones.is_some() {
            self.user_blocks = zoned::capacity(&self)?;
            return Ok(self);
        }
        if !(1..=MOST_STREAMS as u8).contains(&self.streams) {
            return Err(ConfigError::Streams(self.streams));
        }
        if self.user_blocks == 0 {
            return Err(ConfigError::Empty);
        }
        self.check_cells()?;
        self.check_addresses()?;
        self.check_map_cache()?;
        self.check_remap()?;
        self.check_devirtualize()?;
        self.check_moves()?;
        self.check_log_block()?;
        self.check_fdp()?;
        self.raise_segments();
        self.foreground_lines = self.foreground_lines.max(self.least_reserve());
        self.background_lines = self.background_lines.max(self.foreground_lines + 1);
        self.check_room()?;
        Ok(self)
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        if let Some(addresses) = self.addresses {
            if !(self.user_blocks..=AREAS * AREA_BLOCKS).contains(&addresses) {
                return Err(ConfigError::Addresses(addresses));
            }
            if !self.scheme.sparse {
                return Err(ConfigError::DenseMap(self.scheme.name));
            }
        }
        if self.host_pages() > self.scheme.reach {
            return Err(ConfigError::BeyondMap(self.scheme.name));
        }
        Ok(())
    }

    fn check_map_cache(&self) -> Result<(), ConfigError> {
        let Some(MapCacheConfig { page_entries, .. }) = self.map_cache else { return Ok(()) };
        if self.spare_is_room && self.counts_room() {
            return Err(ConfigError::SpareIsRoom);
        }
        let most = most_page_entries(&self.nand.geometry);
        if page_entries.is_power_of_two() && (2..=most).contains(&page_entries) {
            return Ok(());
        }
        Err(ConfigError::TranslationPage(page_entries, most))
    }

    /// Translation pages that the drive has room for beside what it holds. On a thin drive what is
    /// mapped lies together as a rule; where it does not, further ones take the place of the host's
    /// pages.
    pub(crate) fn translation_pages(&self) -> u64 {
        let Some(MapCacheConfig { page_entries, .. }) = self.map_cache else { return 0 };
        match self.addresses {
            None => self.host_pages().div_ceil(page_entries.into()),
            Some(_) => 2 * self.capacity_pages().div_ceil(page_entries.into()) + 16,
        }
    }

    fn check_remap(&self) -> Result<(), ConfigError> {
        let Some(remap) = self.remap else { return Ok(()) };
        if self.subpages() > 1 {
            return Err(ConfigError::RemapPage(self.nand.geometry.page_bytes));
        }
        let no_entries = remap.store.segment_bytes().is_some() && entries_per_segment(self) == 0;
        let no_records = remap.store.discard_records() == Some(0);
        if remap.limits.pairs_per_command == 0 || no_records || no_entries {
            return Err(ConfigError::RemapNothing);
        }
        Ok(())
    }

    fn check_cells(&self) -> Result<(), ConfigError> {
        let (timing, geometry) = (&self.nand.timing, &self.nand.geometry);
        let (bits, at_once) = (timing.bits(), timing.pages_at_once(CellMode::Native));
        let parts = timing.cells.map_or(1, |cells| cells.parts);
        let rules = [
            (
                !geometry.pages_per_block.is_multiple_of(bits * parts),
                "pages_per_block is no multiple of the bits of a cell: a word line has a page for each",
            ),
            (
                geometry.planes_per_die * at_once > 64,
                "a die would program more than 64 pages in one go; use fewer planes or bits, or a larger map unit",
            ),
            (
                (at_once > 1 || self.single_cache.is_some()) && self.shape == LineShape::Block,
                "pages that are programmed in one go and an SLC cache need lines = \"superblock\"",
            ),
            (
                at_once > 1
                    && self.buffer_pages < 2 * self.pages_at_once() * u32::from(self.streams),
                "pages that are programmed in one go need a write buffer with room for twice as many in each stream",
            ),
            (
                self.single_cache.is_some() && (timing.single.is_none() || bits == 1),
                "an SLC cache needs cells of several bits, and the times of a block at one bit a cell",
            ),
            (
                self.power_loss_protection && self.devirtualize.is_some(),
                "a drive with power-loss protection does not devirtualise yet",
            ),
            (
                at_once > 1 && self.streams_by == StreamsBy::Address,
                "pages that are programmed in one go need streams_by = \"hint\"",
            ),
            (self.cores == 0, "a controller has at least one core"),
        ];
        rules
            .iter()
            .find(|(broken, _)| *broken)
            .map_or(Ok(()), |(_, rule)| Err(ConfigError::Cells(rule)))
    }

    fn check_moves(&self) -> Result<(), ConfigError> {
        let may = self.shape == LineShape::Block && self.nand.geometry.planes_per_die == 1;
        if self.gc_within_die && !may { Err(ConfigError::WithinDie) } else { Ok(()) }
    }

    fn check_log_block(&self) -> Result<(), ConfigError> {
        let Some(map) = self.log_block else { return Ok(()) };
        let rules = [
            (
                map.log_lines < 1 || map.scheme == LogScheme::Fast && map.log_lines < 2,
                "a log-block map needs a log block, fast two: one for writes in a row, one for others",
            ),
            (self.shape != LineShape::Superblock, "a log-block map needs lines = \"superblock\""),
            (
                self.streams > 1 || !self.gc_apart,
                "a log-block map has one stream, and needs gc_apart = true",
            ),
            (
                self.map_cache.is_some() || self.single_cache.is_some(),
                "a log-block map is in memory and has no SLC cache; leave [map_cache] and [slc] out",
            ),
            (
                self.addresses.is_some() || self.remap.is_some() || self.devirtualize.is_some(),
                "a drive with a log-block map has as many addresses as room, and does not remap",
            ),
        ];
        rules
            .iter()
            .find(|(broken, _)| *broken)
            .map_or(Ok(()), |(_, rule)| Err(ConfigError::LogBlock(rule)))
    }

    fn check_fdp(&self) -> Result<(), ConfigError> {
        if self.fdp.is_none() {
            return Ok(());
        }
        let rules = [
            (
                self.shape != LineShape::Superblock,
                "a reclaim unit is a superblock; use lines = \"superblock\"",
            ),
            (
                self.streams_by == StreamsBy::Address,
                "the host places its writes; use streams_by = \"hint\"",
            ),
            (
                self.single_cache.is_some() || self.log_block.is_some(),
                "a drive with an SLC cache or a log-block map has no reclaim units; leave [slc] out and use a page map",
            ),
        ];
        rules
            .iter()
            .find(|(broken, _)| *broken)
            .map_or(Ok(()), |(_, rule)| Err(ConfigError::Fdp(rule)))
    }

    /// Lines beside those that are open that a log-block map needs: full log lines, and what the
    /// last data line and lines of the drive's own pages leave empty.
    fn log_lines(&self) -> u64 {
        self.log_block.map_or(0, |map| u64::from(map.log_lines.saturating_sub(map.frontiers()) + 2))
    }

    fn raise_segments(&mut self) {
        let least = least_segments(self);
        if let Some(RemapConfig { store: RemapStore::SegmentedLog { segments, .. }, .. }) =
            &mut self.remap
        {
            *segments = (*segments).max(least);
        }
    }

    fn check_devirtualize(&self) -> Result<(), ConfigError> {
        let Some(most) = self.devirtualize else { return Ok(()) };
        let log = self.remap.filter(|remap| remap.store == RemapStore::Log);
        let takes = log.is_some_and(|remap| remap.limits.pairs_per_command >= most);
        let fits = self.nand.geometry.pages() < 1 << 31;
        if most == 0 || !takes || !fits || !self.scheme.sparse {
            return Err(ConfigError::Devirtualize);
        }
        Ok(())
    }

    /// Pages that it holds beside those of the host.
    fn pages_beside(&self) -> u64 {
        // What a power cut brings back may bring a translation page with it.
        let freed =
            self.pages_freed_at_once().unwrap_or(0) * if self.map_cache.is_some() { 2 } else { 1 };
        freed + u64::from(metadata::system_pages(self)) + self.translation_pages()
    }

    /// Pages of a line that are filled at least.
    fn pages_filled(&self) -> u64 {
        // a run of cleaning may end within a word line; data lines of a log-block map have no rest
        let rest = if self.log_block.is_some() { 0 } else { self.pages_at_once() - 1 };
        u64::from(self.line_pages() - rest)
    }

    /// Lines that it needs beside those that hold pages.
    fn lines_beside(&self) -> u64 {
        u64::from(self.open_lines())
            + u64::from(self.foreground_lines.max(self.least_reserve()))
            + u64::from(self.single_cache.map_or(0, |cache| cache.static_lines))
            + self.log_lines()
            + 1
    }

    fn open_lines(&self) -> u32 {
        self.frontiers().len() as u32 * self.groups()
    }

    fn good_lines(&self) -> u32 {
        let bad_pages = self.nand.factory_bad.len() as u32 * self.nand.geometry.pages_per_block;
        self.nand.geometry.pages().saturating_sub(bad_pages) / self.line_pages()
    }

    fn check_room(&self) -> Result<(), ConfigError> {
        let pages = self.capacity_pages() + self.pages_beside();
        let needed = pages.div_ceil(self.pages_filled()) + self.lines_beside();
        let lines = self.good_lines();
        if u64::from(lines) >= needed {
            return Ok(());
        }
        let (line_pages, open) = (self.line_pages(), self.open_lines());
        let line_kib = u64::from(line_pages) * u64::from(self.subpages()) * BLOCK_SIZE / 1024;
        Err(ConfigError::TooSmall { lines, line_kib, open, reserve: self.foreground_lines, needed })
    }
}
