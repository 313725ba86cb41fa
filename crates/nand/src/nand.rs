//! The flash: its rules, its time and its faults together.

use dovetail_block::{BlockBytes, Content, Inode, StreamId};
use dovetail_time::{SimSpan, SimTime};

use crate::backing::{BackingStore, StoredBlock, StoredPage};
use crate::cells::CellMode;
use crate::error::NandError;
use crate::faults::{FaultPlan, PowerCut, Torn};
use crate::geometry::{BlockId, Divisor, Geometry, GeometryError, Ppn};
use crate::page::{Lpn, Oob, Seq};
use crate::payload::Token;
use crate::recent::RecentOperations;
use crate::retry::{Condition, Retry};
use crate::store::{MOST_STREAM, Store};
use crate::timing::{DieUse, Target, Timeline, Timing};

/// The layout, speed and endurance of a flash.
#[derive(Clone, Debug, PartialEq)]
pub struct NandConfig {
    /// Its layout.
    pub geometry: Geometry,
    /// Its speed.
    pub timing: Timing,
    /// Reads that need several tries. `None`: none does.
    pub retry: Option<Retry>,
    /// Erases that a block survives; the next one fails.
    pub endurance: u32,
    /// Blocks that are bad when the drive is new.
    pub factory_bad: Vec<BlockId>,
}

/// NAND flash in virtual time.
#[derive(Debug)]
pub struct Nand {
    config: NandConfig,
    /// Pages in all.
    pages: u32,
    units: Divisor,
    pages_per_block: Divisor,
    store: Store,
    timeline: Timeline,
    faults: Option<Box<FaultPlan>>,
    recent: Option<RecentOperations>,
    backing: Option<Box<dyn BackingStore>>,
    /// Facts that reads depend on, by block; empty where none needs several tries.
    exposures: Vec<Exposure>,
    retries: u64,
    operations: u64,
    powered: bool,
    /// See [`Nand::has_extras`]; worked out when one is added, since each operation asks.
    plain: bool,
}

/// The life of a block since it was erased.
#[derive(Clone, Copy, Debug, Default)]
struct Exposure {
    reads: u32,
    /// The first program, if that was since the power was switched on.
    programmed: Option<SimTime>,
}

/// A page's place.
struct Address {
    block: BlockId,
    /// Its index in the block.
    page: u32,
    unit: u32,
}

/// The fate of an operation, before it is done.
enum Fate {
    Proceed,
    Cut(Torn),
}

/// A copy is kept by no [`BackingStore`].
impl Clone for Nand {
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
            pages: self.pages,
            units: self.units,
            pages_per_block: self.pages_per_block,
            store: self.store.clone(),
            timeline: self.timeline.clone(),
            faults: self.faults.clone(),
            recent: self.recent.clone(),
            backing: None,
            exposures: self.exposures.clone(),
            retries: self.retries,
            operations: self.operations,
            powered: self.powered,
            plain: false,
        }
        .noting_extras()
    }
}

impl Nand {
    /// New flash, all erased.
    ///
    /// # Errors
    /// A geometry out of range.
    pub fn new(config: NandConfig) -> Result<Self, GeometryError> {
        config.geometry.check()?;
        let mut store = Store::new(config.geometry);
        for block in &config.factory_bad {
            store.blocks[block.0 as usize].bad = true;
        }
        let timeline = Timeline::new(config.timing, &config.geometry);
        Ok(Self {
            pages: config.geometry.pages(),
            units: Divisor::new(config.geometry.units()),
            pages_per_block: Divisor::new(config.geometry.pages_per_block),
            exposures: exposures(&config),
            config,
            store,
            timeline,
            faults: None,
            recent: None,
            backing: None,
            retries: 0,
            operations: 0,
            powered: true,
            plain: false,
        }
        .noting_extras())
    }

    fn noting_extras(self) -> Self {
        Self { plain: !self.has_extras(), ..self }
    }

    /// Tells whether an operation may concern more than the store and a plain timeline: faults, a
    /// store that is told, operations that are remembered, reads that need several tries, pages of
    /// several subpages.
    fn has_extras(&self) -> bool {
        self.faults.is_some()
            || self.backing.is_some()
            || self.recent.is_some()
            || !self.exposures.is_empty()
            || !self.timeline.is_plain()
            || self.config.geometry.subpages_per_page() > 1
    }

    /// Flash as it was kept: one entry for each block, in order. The power is off.
    ///
    /// # Errors
    /// A geometry out of range, more blocks or pages than there are. A page that cannot have been
    /// programmed so counts as used up without content.
    pub fn restored(config: NandConfig, blocks: Vec<StoredBlock>) -> Result<Self, NandError> {
        let mut nand =
            Self::new(config).map_err(|_| NandError::Argument("the geometry is out of range"))?;
        for (number, kept) in blocks.into_iter().enumerate() {
            let block = BlockId(number as u32);
            if block.0 >= nand.config.geometry.blocks() {
                return Err(NandError::Argument("more blocks were kept than there are"));
            }
            nand.restore_block(block, kept)?;
        }
        nand.powered = false;
        Ok(nand)
    }

    fn restore_block(&mut self, block: BlockId, kept: StoredBlock) -> Result<(), NandError> {
        if kept.pages.len() as u64 > u64::from(self.config.geometry.pages_per_block) {
            return Err(NandError::Argument("more pages were kept than a block has"));
        }
        for (page, content) in kept.pages.into_iter().enumerate() {
            let ppn = self.config.geometry.ppn(block, page as u32);
            self.restore_page(ppn, block, page as u32, content);
        }
        self.store.restore_wear(block, kept.erases, kept.last_seq.0);
        let state = &mut self.store.blocks[block.0 as usize];
        state.bad |= kept.bad;
        state.mode = kept.mode;
        Ok(())
    }

    fn restore_page(&mut self, ppn: Ppn, block: BlockId, page: u32, kept: StoredPage) {
        let Some((oob, contents)) = kept else {
            return self.store.spoil(ppn, block);
        };
        let token = |content: &Option<Content>| {
            content.as_ref().map_or(Token::LOST, |c| self.store.payloads().intern(c))
        };
        let tokens: Vec<Token> = contents.iter().map(token).collect();
        match self.check_page(block, page, &tokens, oob) {
            Ok(()) => self.store.program(ppn, block, &tokens, oob),
            Err(_) => {
                tokens.into_iter().for_each(|token| self.store.payloads().release(token));
                self.store.spoil(ppn, block);
            }
        }
    }

    /// Keeps the flash in a store: it is told of every change from now on.
    pub fn back_with(&mut self, backing: Box<dyn BackingStore>) {
        self.backing = Some(backing);
        self.plain = false;
    }

    /// Returns what happened so far is kept before anything that happens from now on; nothing
    /// without a backing store. To be called where a page says something of others that are already
    /// there.
    pub fn barrier(&mut self) {
        if let Some(backing) = &mut self.backing {
            backing.barrier();
        }
    }

    fn back_programmed(&mut self, ppn: Ppn, tokens: &[Token], oob: Oob) {
        let Some(backing) = &mut self.backing else { return };
        let contents: Vec<Option<Content>> =
            tokens.iter().map(|&token| self.store.resolve(token)).collect();
        backing.programmed(ppn, oob, &contents);
    }

    fn back_spoiled(&mut self, ppn: Ppn) {
        if let Some(backing) = &mut self.backing {
            backing.spoiled(ppn);
        }
    }

    /// The layout.
    pub fn geometry(&self) -> &Geometry {
        &self.config.geometry
    }

    /// Returns what the flash is made of.
    pub fn config(&self) -> &NandConfig {
        &self.config
    }

    /// Puts `plan` over the flash in place of what was there; `FaultPlan::default()` switches all
    /// faults off.
    pub fn set_faults(&mut self, plan: FaultPlan) {
        self.faults = Some(Box::new(plan));
        self.plain = false;
    }

    /// Reads, programs and erases so far, over the life of the flash.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Reads `bytes` (at most a page) of `ppn` into the controller; returns when they are there.
    /// The content that was read is [`Nand::token`].
    ///
    /// # Errors
    /// An erased page (a broken rule), an unreadable one (its die is busy all the same), no power.
    #[inline]
    pub fn read(&mut self, at: SimTime, ppn: Ppn, bytes: u32) -> Result<SimTime, NandError> {
        match self.read_plainly(at, ppn, bytes) {
            Some(done) => Ok(done),
            None => self.read_with_care(at, ppn, bytes),
        }
    }

    /// A read with nothing out of the ordinary; `None`, and nothing has happened, of any other.
    #[inline]
    fn read_plainly(&mut self, at: SimTime, ppn: Ppn, bytes: u32) -> Option<SimTime> {
        if !self.plain || !self.powered || ppn.0 >= self.pages {
            return None;
        }
        let Address { block, page, unit } = self.address(ppn);
        if !self.store.holds_readable(block, page) {
            return None;
        }
        self.operations += 1;
        Some(self.timeline.read_plainly(at, unit, bytes))
    }

    #[inline(never)]
    fn read_with_care(&mut self, at: SimTime, ppn: Ppn, bytes: u32) -> Result<SimTime, NandError> {
        let Address { block, page, unit } = self.locate(ppn)?;
        if matches!(self.begin()?, Fate::Cut(_)) {
            return Err(NandError::PowerLost);
        }
        let state = &self.store.blocks[block.0 as usize];
        if state.half_erased {
            return Err(NandError::Unreadable(ppn));
        }
        if page >= state.next_page {
            return Err(NandError::Erased(ppn));
        }
        let from = Target { unit, block: block.0, page, mode: state.mode };
        let more = self.expose(at, block);
        let done = self.timeline.read(at, from, bytes, more);
        let erases = || self.store.blocks[block.0 as usize].erases;
        let struck = self.faults.as_ref().is_some_and(|f| f.fails_read(ppn, erases()));
        if struck || self.store.token(ppn, 0) == Token::TORN {
            return Err(NandError::Unreadable(ppn));
        }
        Ok(done)
    }

    /// Programs the next page of a block with one token per 4 KiB; returns when it is durable. The
    /// references of the tokens pass to the page unless an error is returned.
    ///
    /// # Errors
    /// A broken rule ([`NandError::OutOfOrder`], [`NandError::BadBlock`], [`NandError::Argument`],
    /// [`NandError::HalfErased`]), a failure of the medium ([`NandError::ProgramFailed`]: the page
    /// is used up), no power.
    #[inline]
    pub fn program(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<SimTime, NandError> {
        match self.program_plainly(at, ppn, tokens, oob) {
            Some(done) => Ok(done),
            None => self.program_with_care(at, ppn, tokens, oob),
        }
    }

    /// A program with nothing out of the ordinary; `None`, and nothing has happened, of any other.
    #[inline]
    fn program_plainly(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        tokens: &[Token],
        oob: Oob,
    ) -> Option<SimTime> {
        let &[token] = tokens else { return None };
        if !self.plain || !self.powered || ppn.0 >= self.pages {
            return None;
        }
        let Address { block, page, unit } = self.address(ppn);
        self.store.program_plainly(ppn, (block, page), token, oob)?;
        self.operations += 1;
        Some(self.timeline.program_plainly(at, unit, page, self.config.geometry.page_bytes))
    }

    #[inline(never)]
    fn program_with_care(
        &mut self,
        at: SimTime,
        ppn: Ppn,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<SimTime, NandError> {
        let Address { block, page, unit } = self.locate(ppn)?;
        self.check_program(block, page, tokens, oob)?;
        if let Fate::Cut(torn) = self.begin()? {
            match torn {
                Torn::Untouched => {}
                Torn::Garbage => self.spoil(ppn, block),
                Torn::Finished => self.put(ppn, block, tokens, oob),
            }
            return Err(NandError::PowerLost);
        }
        let state = &self.store.blocks[block.0 as usize];
        let target = Target { unit, block: block.0, page, mode: state.mode };
        let done = self.timeline.program(at, target, self.config.geometry.page_bytes);
        if let Some(exposure) = self.exposures.get_mut(block.0 as usize) {
            // a block that is filled on keeps the age of its first page
            if page == 0 {
                exposure.programmed = Some(done);
            }
        }
        if let Some(recent) = &mut self.recent {
            recent.programmed(ppn, block, done, self.timeline.program_span(target));
        }
        let erases = || self.store.blocks[block.0 as usize].erases;
        if self.faults.as_ref().is_some_and(|f| f.fails_program(ppn, erases())) {
            self.spoil(ppn, block);
            return Err(NandError::ProgramFailed(ppn));
        }
        self.put(ppn, block, tokens, oob);
        Ok(done)
    }

    /// Notes a read of a block; returns the time of the tries that it needs beyond the first.
    #[inline]
    fn expose(&mut self, at: SimTime, block: BlockId) -> SimSpan {
        let (Some(retry), Some(exposure)) =
            (&self.config.retry, self.exposures.get_mut(block.0 as usize))
        else {
            return SimSpan::ZERO;
        };
        let erases = self.store.blocks[block.0 as usize].erases;
        let days = |span: SimSpan| span.as_secs_f64() / 86_400.0;
        let days = match exposure.programmed {
            Some(programmed) => days(at.since(programmed)),
            None => retry.days_at_start + days(at.since(SimTime::ZERO)),
        };
        let steps = retry.steps(Condition { erases, reads: exposure.reads, days });
        exposure.reads = exposure.reads.saturating_add(1);
        self.retries += u64::from(steps);
        retry.step * u64::from(steps)
    }

    /// Uses up the next page of a block: its word line, which was programmed last on its die, goes
    /// without it.
    ///
    /// # Errors
    /// A page that is not the next one, a bad block.
    pub fn skip(&mut self, ppn: Ppn) -> Result<(), NandError> {
        let Address { block, page, unit } = self.locate(ppn)?;
        let state = &self.store.blocks[block.0 as usize];
        if state.bad {
            return Err(NandError::BadBlock(block));
        }
        if page != state.next_page {
            return Err(NandError::OutOfOrder { block, page, expected: state.next_page });
        }
        let target = Target { unit, block: block.0, page, mode: state.mode };
        if let Some(recent) = &mut self.recent {
            let done = self.timeline.last_end(unit);
            recent.programmed(ppn, block, done, self.timeline.program_span(target));
        }
        self.spoil(ppn, block);
        Ok(())
    }

    /// Sets how a block is filled, before its first page is programmed.
    ///
    /// # Errors
    /// A block that is not erased.
    pub fn set_mode(&mut self, block: BlockId, mode: CellMode) -> Result<(), NandError> {
        let state = &mut self.store.blocks[block.0 as usize];
        if state.next_page > 0 || state.half_erased {
            return Err(NandError::Argument("the mode of a block that is not erased"));
        }
        if state.mode != mode {
            state.mode = mode;
            if let Some(backing) = &mut self.backing {
                backing.mode_set(block, state.erases, Seq(state.last_seq()), mode);
            }
        }
        Ok(())
    }

    /// Returns how a block is filled.
    #[inline]
    pub fn mode(&self, block: BlockId) -> CellMode {
        self.store.blocks[block.0 as usize].mode
    }

    /// Tries of reads beyond the first so far, since the flash was made.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Reads of a block since it was erased; 0 where that is not counted.
    pub fn reads(&self, block: BlockId) -> u32 {
        self.exposures.get(block.0 as usize).map_or(0, |exposure| exposure.reads)
    }

    fn put(&mut self, ppn: Ppn, block: BlockId, tokens: &[Token], oob: Oob) {
        self.back_programmed(ppn, tokens, oob);
        self.store.program(ppn, block, tokens, oob);
    }

    fn spoil(&mut self, ppn: Ppn, block: BlockId) {
        self.back_spoiled(ppn);
        self.store.spoil(ppn, block);
    }

    fn check_program(
        &self,
        block: BlockId,
        page: u32,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<(), NandError> {
        let state = &self.store.blocks[block.0 as usize];
        if state.bad {
            return Err(NandError::BadBlock(block));
        }
        if state.half_erased {
            return Err(NandError::HalfErased(block));
        }
        self.check_page(block, page, tokens, oob)
    }

    fn check_page(
        &self,
        block: BlockId,
        page: u32,
        tokens: &[Token],
        oob: Oob,
    ) -> Result<(), NandError> {
        let state = &self.store.blocks[block.0 as usize];
        if page != state.next_page {
            return Err(NandError::OutOfOrder { block, page, expected: state.next_page });
        }
        if tokens.len() != self.config.geometry.subpages_per_page() as usize {
            return Err(NandError::Argument("one token for each 4 KiB of the page is needed"));
        }
        if page > 0 && oob.seq.0 < state.last_seq() {
            return Err(NandError::Argument(
                "the sequence number is below that of the page before",
            ));
        }
        if oob.stream.0 > MOST_STREAM {
            return Err(NandError::Argument("streams are numbered 0 to 15"));
        }
        Ok(())
    }

    /// Erases a block; returns when it is done.
    ///
    /// # Errors
    /// A bad block (a broken rule), a failure of the medium or the end of the block's endurance
    /// ([`NandError::EraseFailed`]: what it held stays), no power.
    pub fn erase(&mut self, at: SimTime, block: BlockId) -> Result<SimTime, NandError> {
        if block.0 as usize >= self.store.blocks.len() {
            return Err(NandError::Argument("no such block"));
        }
        let state = &self.store.blocks[block.0 as usize];
        if state.bad {
            return Err(NandError::BadBlock(block));
        }
        let (erases, mode) = (state.erases, state.mode);
        if let Fate::Cut(torn) = self.begin()? {
            match torn {
                Torn::Untouched => {}
                Torn::Garbage => self.store.blocks[block.0 as usize].half_erased = true,
                Torn::Finished => self.wipe(block),
            }
            return Err(NandError::PowerLost);
        }
        let unit = self.units.divide(block.0).1;
        let done = self.timeline.erase(at, Target { unit, block: block.0, page: 0, mode });
        if erases >= self.config.endurance
            || self.faults.as_ref().is_some_and(|f| f.fails_erase(block, erases))
        {
            return Err(NandError::EraseFailed(block));
        }
        if let Some(recent) = &mut self.recent {
            recent.erased(self.store.save(block), done, self.timeline.erase_span(mode));
        }
        self.wipe(block);
        Ok(done)
    }

    fn wipe(&mut self, block: BlockId) {
        self.store.erase(block);
        if let Some(exposure) = self.exposures.get_mut(block.0 as usize) {
            *exposure = Exposure::default();
        }
        let state = &self.store.blocks[block.0 as usize];
        if let Some(backing) = &mut self.backing {
            backing.erased(block, state.erases, Seq(state.last_seq()));
        }
    }

    /// Marks a block bad, for good. Its pages can still be read.
    pub fn retire(&mut self, block: BlockId) {
        let state = &mut self.store.blocks[block.0 as usize];
        state.bad = true;
        if let Some(backing) = &mut self.backing {
            backing.retired(block, state.erases, Seq(state.last_seq()), state.mode);
        }
    }

    /// Tells whether a block is marked bad.
    pub fn is_bad(&self, block: BlockId) -> bool {
        self.store.blocks[block.0 as usize].bad
    }

    /// Tells whether a block was being erased when the power was cut.
    pub fn is_half_erased(&self, block: BlockId) -> bool {
        self.store.blocks[block.0 as usize].half_erased
    }

    /// Returns how often a block was erased.
    pub fn erases(&self, block: BlockId) -> u32 {
        self.store.blocks[block.0 as usize].erases
    }

    /// Returns how many pages of a block are used up; the next one to program has this index.
    pub fn programmed_pages(&self, block: BlockId) -> u32 {
        self.store.blocks[block.0 as usize].next_page
    }

    /// The content of subpage `subpage`, of 4 KiB, of a programmed page. Takes no time:
    /// [`Nand::read`] does.
    #[inline]
    pub fn token(&self, ppn: Ppn, subpage: usize) -> Token {
        self.store.token(ppn, subpage)
    }

    /// The logical page and stream of a programmed page. Takes no time: [`Nand::read`] does.
    #[inline]
    pub fn owner(&self, ppn: Ppn) -> (Lpn, StreamId) {
        self.store.owner(ppn)
    }

    /// The inode of a programmed page. Takes no time: [`Nand::read`] does.
    #[inline]
    pub fn inode(&self, ppn: Ppn) -> Inode {
        self.store.inode(ppn)
    }

    /// The out-of-band area of a page; `None` where the page is erased or torn. Takes no time.
    pub fn oob(&self, ppn: Ppn) -> Option<Oob> {
        let Address { block, page, .. } = self.address(ppn);
        let state = &self.store.blocks[block.0 as usize];
        if state.half_erased || page >= state.next_page {
            None
        } else {
            self.store.oob(ppn, block, page)
        }
    }

    /// The token of a content; the caller owns one reference.
    pub fn intern(&mut self, content: &Content) -> Token {
        self.store.payloads().intern(content)
    }

    /// As [`Nand::intern`] for bytes of which `before` is an earlier version, or anything else: the
    /// host keeps in its memory what differs between the two.
    pub fn intern_version(&mut self, bytes: &BlockBytes, before: Token) -> Token {
        self.store.payloads().intern_version(bytes, before)
    }

    /// Takes another reference to a token, to program it a second time.
    #[inline]
    pub fn retain(&mut self, token: Token) {
        self.store.payloads().retain(token);
    }

    /// Gives back a reference that was not programmed.
    #[inline]
    pub fn release(&mut self, token: Token) {
        self.store.payloads().release(token);
    }

    /// The content of a token; `None` where it is lost.
    pub fn content(&self, token: Token) -> Option<Content> {
        self.store.resolve(token)
    }

    /// Exchanges the times until which dies and channels are busy with those of another flash of as
    /// many dies and planes: for two that stand for parts of one.
    pub fn swap_timeline(&mut self, other: &mut Self) {
        debug_assert_eq!(self.config.geometry.units(), other.config.geometry.units());
        debug_assert_eq!(self.timeline.is_plain(), other.timeline.is_plain());
        std::mem::swap(&mut self.timeline, &mut other.timeline);
    }

    /// Cuts the power between two operations, in the order of issue: all that was issued has ended.
    /// Everything but the flash itself is gone.
    pub fn cut_power(&mut self) {
        self.powered = false;
    }

    /// Remembers from now on what [`Nand::cut_power_at`] needs. Memory grows with every program and
    /// erase until the power is switched on again: for tests.
    pub fn remember_operations(&mut self) {
        self.recent = Some(RecentOperations::default());
        self.plain = false;
    }

    /// Cuts the power at time `at`: programs and erases under way then are torn, those that had not
    /// begun never happen, on whatever dies. Without [`Nand::remember_operations`] as
    /// [`Nand::cut_power`].
    pub fn cut_power_at(&mut self, at: SimTime) {
        if let Some(recent) = &mut self.recent {
            recent.cut(at, &mut self.store);
        }
        self.powered = false;
    }

    /// A copy as a power cut at time `at` leaves it, as [`Nand::cut_power_at`]; this one goes on.
    /// The copy is kept by nobody.
    #[must_use]
    pub fn after_power_cut(&self, at: SimTime) -> Self {
        let mut copy = self.clone();
        copy.cut_power_at(at);
        copy
    }

    /// Start and end of each program and erase that is remembered, in the order of issue.
    pub fn remembered_operations(&self) -> impl Iterator<Item = (SimTime, SimTime)> {
        self.recent.iter().flat_map(RecentOperations::spans)
    }

    /// Forgets operations that had ended by `at`: [`Nand::cut_power_at`] is not to be asked for an
    /// earlier time any more.
    pub fn forget_operations_before(&mut self, at: SimTime) {
        if let Some(recent) = &mut self.recent {
            recent.forget_before(at, &mut self.store);
        }
    }

    /// Tells whether the power is on.
    pub fn is_powered(&self) -> bool {
        self.powered
    }

    /// Switches the power on again: time starts at 0, a power cut that was planned is spent, and
    /// bytes that lay only in the drive's memory are forgotten.
    pub fn power_on(&mut self) {
        self.powered = true;
        self.timeline.reset(&self.config.geometry);
        self.exposures.iter_mut().for_each(|exposure| exposure.programmed = None);
        if let Some(recent) = &mut self.recent {
            recent.clear();
        }
        self.store.forget_unreferenced();
        if let Some(faults) = &mut self.faults {
            faults.power_cut = faults.power_cut.filter(|cut| cut.at_operation >= self.operations);
        }
    }

    /// Returns what each die has done since the power was switched on.
    pub fn die_use(&self) -> impl Iterator<Item = DieUse> {
        self.timeline.die_use()
    }

    /// Returns when the last of the dies falls idle.
    pub fn idle_from(&self) -> SimTime {
        self.timeline.idle_from()
    }

    /// The sequence number of the page that was programmed last in a block, also when it was erased
    /// since.
    pub fn last_seq(&self, block: BlockId) -> Seq {
        Seq(self.store.blocks[block.0 as usize].last_seq())
    }

    /// Bytes of host memory that the model of pages and blocks takes, without real bytes' own.
    pub fn memory_bytes(&self) -> u64 {
        self.store.memory_bytes()
    }

    fn begin(&mut self) -> Result<Fate, NandError> {
        if !self.powered {
            return Err(NandError::PowerLost);
        }
        let number = self.operations;
        self.operations += 1;
        match self.faults.as_ref().and_then(|f| f.power_cut) {
            Some(PowerCut { at_operation, torn }) if at_operation == number => {
                self.powered = false;
                Ok(Fate::Cut(torn))
            }
            _ => Ok(Fate::Proceed),
        }
    }

    fn locate(&self, ppn: Ppn) -> Result<Address, NandError> {
        if ppn.0 >= self.pages {
            return Err(NandError::Argument("no such page"));
        }
        Ok(self.address(ppn))
    }

    /// As [`Geometry::locate`], without a division.
    #[inline]
    fn address(&self, ppn: Ppn) -> Address {
        let (row, unit) = self.units.divide(ppn.0);
        let (block_row, page) = self.pages_per_block.divide(row);
        Address { block: BlockId(block_row * self.units.divisor() + unit), page, unit }
    }
}

/// One for each block, if reads depend on it.
fn exposures(config: &NandConfig) -> Vec<Exposure> {
    let blocks = if config.retry.is_some() { config.geometry.blocks() } else { 0 };
    vec![Exposure::default(); blocks as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::Pattern;
    use std::sync::Arc;

    fn flash() -> Nand {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 2,
            pages_per_block: 4,
            page_bytes: 4096,
        };
        let timing = Timing {
            read: SimSpan::from_us(50),
            program: SimSpan::from_us(500),
            erase: SimSpan::from_ms(5),
            transfer_4k: SimSpan::from_us(10),
            ..Timing::default()
        };
        let factory_bad = vec![BlockId(3)];
        Nand::new(NandConfig { geometry, timing, retry: None, endurance: 3, factory_bad }).unwrap()
    }

    fn oob(lpn: u64, seq: u64) -> Oob {
        Oob { lpn: Lpn(lpn), seq: Seq(seq), inode: Inode(0), stream: StreamId(0) }
    }

    fn put(flash: &mut Nand, block: u32, page: u32, seq: u64) -> Result<SimTime, NandError> {
        let ppn = flash.geometry().ppn(BlockId(block), page);
        let token = flash.intern(&Content::Pattern(Pattern::new(seq)));
        flash.program(SimTime::ZERO, ppn, &[token], oob(7, seq))
    }

    #[test]
    fn the_rules_of_flash_hold() {
        let mut flash = flash();
        assert_eq!(
            put(&mut flash, 0, 1, 1),
            Err(NandError::OutOfOrder { block: BlockId(0), page: 1, expected: 0 })
        );
        put(&mut flash, 0, 0, 1).unwrap();
        assert!(
            matches!(put(&mut flash, 0, 0, 2), Err(NandError::OutOfOrder { .. })),
            "programmed twice"
        );
        assert_eq!(put(&mut flash, 3, 0, 2), Err(NandError::BadBlock(BlockId(3))));
        assert_eq!(flash.read(SimTime::ZERO, Ppn(2), 4096), Err(NandError::Erased(Ppn(2))));
        assert!(matches!(flash.read(SimTime::ZERO, Ppn(99), 4096), Err(NandError::Argument(_))));
    }

    #[test]
    fn out_of_band_areas_come_back_also_over_long_gaps_in_the_sequence() {
        let mut flash = flash();
        let seqs = [5, 6, 200_000, 200_001];
        for (page, seq) in seqs.into_iter().enumerate() {
            put(&mut flash, 1, page as u32, seq).unwrap();
        }
        for (page, seq) in seqs.into_iter().enumerate() {
            let ppn = flash.geometry().ppn(BlockId(1), page as u32);
            assert_eq!(flash.oob(ppn), Some(oob(7, seq)));
        }
    }

    #[test]
    fn inode_and_stream_are_kept_where_they_are_told() {
        let mut flash = flash();
        put(&mut flash, 0, 0, 1).unwrap();
        let told = Oob { inode: Inode(44), stream: StreamId(15), ..oob(9, 2) };
        let ppn = flash.geometry().ppn(BlockId(0), 1);
        flash.program(SimTime::ZERO, ppn, &[Token::EMPTY], told).unwrap();
        assert_eq!(flash.oob(ppn), Some(told));
        assert_eq!(flash.inode(Ppn(0)), Inode(0));
    }

    #[test]
    fn tokens_and_streams_of_any_kind_come_back_and_go_with_an_erase() {
        let geometry = Geometry { page_bytes: 16384, ..*flash().geometry() };
        let mut flash = Nand::new(NandConfig { geometry, ..flash().config().clone() }).unwrap();
        let numbers = [0, 1, 65_519, 65_520, 65_535, 65_536, 1 << 20, Pattern::MAX];
        let mut expected = Vec::new();
        for round in 0..3 {
            for page in 0..4u32 {
                let number = |subpage: u32| numbers[((page + subpage + round) % 8) as usize];
                let content = |subpage| match (page + subpage + round) % 3 {
                    0 => Content::Bytes(Arc::new([page as u8; 4096])),
                    _ => Content::Pattern(Pattern::new(number(subpage))),
                };
                let tokens = [0, 1, 2, 3].map(|subpage| flash.intern(&content(subpage)));
                let stream = StreamId((page * round) as u8 % 16);
                let oob = Oob { stream, ..oob(u64::from(page), u64::from(page + 4 * round)) };
                let ppn = flash.geometry().ppn(BlockId(round % 2), page);
                flash.program(SimTime::ZERO, ppn, &tokens, oob).unwrap();
                expected.push((ppn, oob, [0, 1, 2, 3].map(content)));
            }
            for (ppn, oob, contents) in &expected {
                assert_eq!(flash.oob(*ppn), Some(*oob));
                assert_eq!(flash.owner(*ppn), (oob.lpn, oob.stream));
                let found = [0, 1, 2, 3].map(|subpage| flash.content(flash.token(*ppn, subpage)));
                assert_eq!(found, contents.clone().map(Some), "{ppn:?}");
            }
            if round == 1 {
                flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
                expected.drain(..4);
            }
        }
        for block in [0, 1] {
            flash.erase(SimTime::ZERO, BlockId(block)).unwrap();
        }
        assert_eq!(flash.store.payloads().live(), 0, "no bytes are left");
    }

    #[test]
    fn a_block_wears_out() {
        let mut flash = flash();
        for _ in 0..3 {
            flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
        }
        assert_eq!(flash.erase(SimTime::ZERO, BlockId(0)), Err(NandError::EraseFailed(BlockId(0))));
        assert_eq!(flash.erases(BlockId(0)), 3);
    }

    #[test]
    fn a_power_cut_tears_what_is_in_flight() {
        for torn in [Torn::Untouched, Torn::Garbage, Torn::Finished] {
            let mut flash = flash();
            put(&mut flash, 0, 0, 1).unwrap();
            let cut = PowerCut { at_operation: 1, torn };
            flash.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
            assert_eq!(put(&mut flash, 0, 1, 2), Err(NandError::PowerLost));
            assert_eq!(flash.read(SimTime::ZERO, Ppn(0), 4096), Err(NandError::PowerLost));
            flash.power_on();
            assert!(flash.read(SimTime::ZERO, Ppn(0), 4096).is_ok());
            let second = flash.geometry().ppn(BlockId(0), 1);
            let left = (flash.programmed_pages(BlockId(0)), flash.oob(second).is_some());
            let expected = match torn {
                Torn::Untouched => (1, false),
                Torn::Garbage => (2, false),
                Torn::Finished => (2, true),
            };
            assert_eq!(left, expected);
        }
    }

    #[test]
    fn a_torn_erase_leaves_a_block_that_must_be_erased_again() {
        let mut flash = flash();
        put(&mut flash, 0, 0, 1).unwrap();
        let cut = PowerCut { at_operation: 1, torn: Torn::Garbage };
        flash.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
        assert_eq!(flash.erase(SimTime::ZERO, BlockId(0)), Err(NandError::PowerLost));
        flash.power_on();
        assert_eq!(flash.read(SimTime::ZERO, Ppn(0), 4096), Err(NandError::Unreadable(Ppn(0))));
        assert_eq!(put(&mut flash, 0, 1, 2), Err(NandError::HalfErased(BlockId(0))));
        flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
        put(&mut flash, 0, 0, 2).unwrap();
    }

    #[test]
    fn a_cut_at_a_time_tears_what_is_under_way_and_takes_back_what_is_not() {
        let us = |n: u64| SimTime::from_ns(n * 1000);
        // Page 0 of block 0 from 10 to 510 us, page 1 to 1010, erase of block 1 from 0 to 5000.
        let left = |cut| {
            let mut flash = flash();
            put(&mut flash, 1, 0, 1).unwrap();
            flash.power_on();
            flash.remember_operations();
            put(&mut flash, 0, 0, 2).unwrap();
            put(&mut flash, 0, 1, 3).unwrap();
            flash.erase(SimTime::ZERO, BlockId(1)).unwrap();
            put(&mut flash, 1, 0, 4).unwrap();
            flash.cut_power_at(cut);
            flash.power_on();
            let readable = |block, page| {
                flash.oob(flash.geometry().ppn(BlockId(block), page)).map(|oob| oob.seq.0)
            };
            let pages = (flash.programmed_pages(BlockId(0)), readable(0, 0), readable(0, 1));
            (pages, flash.is_half_erased(BlockId(1)), readable(1, 0))
        };
        assert_eq!(left(us(400)), ((1, None, None), true, None));
        assert_eq!(left(us(600)), ((2, Some(2), None), true, None));
        assert_eq!(left(us(5200)), ((2, Some(2), Some(3)), false, None));
        assert_eq!(left(us(5600)), ((2, Some(2), Some(3)), false, Some(4)));
    }

    #[test]
    fn faults_lie_over_data_that_is_whole() {
        let mut flash = flash();
        put(&mut flash, 0, 0, 1).unwrap();
        flash.set_faults(FaultPlan { unreadable: [Ppn(0)].into(), ..FaultPlan::default() });
        assert_eq!(flash.read(SimTime::ZERO, Ppn(0), 4096), Err(NandError::Unreadable(Ppn(0))));
        flash.set_faults(FaultPlan::default());
        assert!(flash.read(SimTime::ZERO, Ppn(0), 4096).is_ok());
        assert_eq!(flash.content(flash.token(Ppn(0), 0)), Some(Content::Pattern(Pattern::new(1))));
    }

    #[test]
    fn bytes_are_freed_with_the_pages_that_hold_them() {
        let mut flash = flash();
        let content = Content::Bytes(Arc::new([3; 4096]));
        let token = flash.intern(&content);
        flash.program(SimTime::ZERO, Ppn(0), &[token], oob(1, 1)).unwrap();
        flash.retain(token);
        flash.program(SimTime::ZERO, Ppn(1), &[token], oob(1, 2)).unwrap();
        flash.erase(SimTime::ZERO, BlockId(0)).unwrap();
        assert_eq!(flash.content(flash.token(Ppn(1), 0)), Some(content));
        flash.erase(SimTime::ZERO, BlockId(1)).unwrap();
        assert_eq!(flash.store.payloads().live(), 0);
    }
}
