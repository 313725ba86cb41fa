//! Entries of a demand-paged map that are wanted: what the cache asks for is carried out.

use dovetail_block::{BlockRange, DeviceError, Inode, StreamId};
use dovetail_nand::{Lpn, Token};
use dovetail_time::SimTime;

use super::Drive;
use crate::buffer::MAX_SUBPAGES;
use crate::cache::{Access, CacheStep, TranslationPage};
use crate::medium::{FrontierId, PageToProgram};
use crate::stats::{Cause, MapUse, ReadCause};
use crate::translation::{ENTRIES_PER_SUBPAGE, encode_entries};

impl Drive {
    /// A request for this range begins: its pages will be asked for one after the other.
    pub(super) fn begin_request(&mut self, range: BlockRange) {
        let end = self.pages_of(range).end;
        self.translation.begin_request(end);
    }

    /// Makes the map's entry of `lpn` available; returns when it is. Pages may move meanwhile.
    pub(super) fn want(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        access: Access,
    ) -> Result<SimTime, DeviceError> {
        let Some((hit, steps)) = self.translation.access(lpn, access) else { return Ok(at) };
        let counted = if hit { &mut self.counters.map_hits } else { &mut self.counters.map_misses };
        let by = MapUse::of(access);
        counted[by as usize] += 1;
        let done = self.perform_steps(at, &steps, by)?;
        self.translation.give_back(steps);
        Ok(done)
    }

    fn perform_steps(
        &mut self,
        mut at: SimTime,
        steps: &[CacheStep],
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        for &step in steps {
            at = match step {
                CacheStep::Read { page } => self.read_translation(at, page, by)?,
                CacheStep::Write { page, whole } => self.write_back(at, page, whole, by)?,
            };
        }
        Ok(at)
    }

    /// Writes what the cache gave up. A drive that has no room for it keeps it as owed, and can
    /// still be read.
    fn write_back(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        whole: bool,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let written = match self.make_room(at) {
            Ok(()) => self.write_translation(at, page, whole, by),
            Err(error) => Err(error),
        };
        if let Err(DeviceError::ReadOnly(_)) = written {
            self.translation.owe(page);
            return Ok(at);
        }
        let done = written?;
        self.complete_word_lines()?;
        Ok(done)
    }

    /// Reads a translation page, if there is one. One that cannot be read is owed: its entries are
    /// found anew by the out-of-band areas of the drive, for which no time is counted.
    fn read_translation(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let Some(ppn) = self.translation.directory(page) else {
            self.counters.translation_absent[by as usize] += 1;
            return Ok(at);
        };
        self.counters.translation_reads[by as usize] += 1;
        let (done, readable) = self.read_for(at, ppn, ReadCause::Translation)?;
        if !readable {
            self.translation.owe(page);
        }
        Ok(done)
    }

    /// Writes a translation page as the map is now; returns when it is durable. Nothing is written
    /// where nothing is mapped. Others may follow in its word line.
    pub(super) fn write_translation(
        &mut self,
        at: SimTime,
        page: TranslationPage,
        whole: bool,
        by: MapUse,
    ) -> Result<SimTime, DeviceError> {
        let at = if whole { at } else { self.read_translation(at, page, by)? };
        let Some(lpn) = self.translation.lpn_of(page) else { return Ok(at) };
        let Some(tokens) = self.intern_translation(page) else {
            self.translation.owe_no_more(page);
            return Ok(at);
        };
        let (live, tokens) = (self.medium.full_mask(), &tokens[..self.config.subpages() as usize]);
        let to_program = PageToProgram { lpn, live, tokens, stream: StreamId(0), inode: Inode(0) };
        let frontier = match by {
            // many at a time: they fill word lines
            MapUse::Move => self.translation_frontier(),
            _ => self.evicted_frontier(),
        };
        let done = self.program_part(at, frontier, to_program, Cause::Translation)?;
        self.counters.translation_writes[by as usize] += 1;
        self.translation.owe_no_more(page);
        Ok(done)
    }

    /// The content of a translation page as the map is now; `None` where nothing is mapped.
    fn intern_translation(&mut self, page: TranslationPage) -> Option<[Token; MAX_SUBPAGES]> {
        let (places, before) = self.translation.entries(page)?;
        let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
        for (subpage, places) in places.chunks_exact(ENTRIES_PER_SUBPAGE).enumerate() {
            let before = before.map_or(Token::EMPTY, |ppn| self.medium.nand().token(ppn, subpage));
            tokens[subpage] = self.medium.intern_version(&encode_entries(places), before);
        }
        Some(tokens)
    }

    /// The frontier of translation pages: the last one.
    fn translation_frontier(&self) -> FrontierId {
        FrontierId(self.medium.frontiers() - 1)
    }

    /// The frontier of a translation page that is written by itself: a word line of one page, if the
    /// drive has any.
    fn evicted_frontier(&self) -> FrontierId {
        match self.config.single_cache {
            Some(_) => self.system_frontier(),
            None => self.translation_frontier(),
        }
    }

    /// The frontier to which a page is moved.
    pub(super) fn frontier_of_moved(&self, lpn: Lpn, stream: StreamId) -> FrontierId {
        if self.translation.is_translation_page(lpn) {
            return self.translation_frontier();
        }
        self.move_frontier(stream)
    }
}
