//! The state of every page and block, packed: eight bytes per 4 KiB page that was written.
//!
//! A word for each 4 KiB holds its token (16 bits) and the page's sequence number as a distance (16
//! bits) from a base that its block keeps. A block keeps apart what few blocks have: a new base
//! where the distance grows beyond 16 bits, tokens that need more than 16 bits, and the streams of
//! pages that are not all of one.

use dovetail_block::{Inode, StreamId};

use crate::cells::CellMode;
use crate::chunked::Chunked;
use crate::geometry::{BlockId, Geometry, Ppn};
use crate::page::{Lpn, Oob, Seq};
use crate::payload::{Payloads, Token};

const DELTA_SHIFT: u32 = 16;
const MAX_DELTA: u64 = u16::MAX as u64;
/// Streams are numbered up to it.
pub(crate) const MOST_STREAM: u8 = 15;
/// The word of a torn page: its sequence number is not known.
const TORN_WORD: u32 = Token::TORN.bits() as u32;

/// Fields that only some blocks need.
#[derive(Clone, Debug, Default)]
struct Extra {
    /// Sequence bases beyond the first: from which page on, and the base.
    bases: Vec<(u32, u64)>,
    /// The inode of each page; empty where none was told.
    inodes: Vec<u32>,
    /// The stream of each page; empty where all are of the block's.
    streams: Vec<u8>,
    /// The token of each 4 KiB, as far as its word has not enough room; empty where all have.
    tokens: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BlockState {
    pub(crate) next_page: u32,
    pub(crate) erases: u32,
    pub(crate) bad: bool,
    pub(crate) half_erased: bool,
    /// The way in which it is filled.
    pub(crate) mode: CellMode,
    holds_bytes: bool,
    /// The stream of its first page.
    stream: u8,
    last_seq: u64,
    first_base: u64,
    extra: Option<Box<Extra>>,
}

/// A block as it was before an erase. Its bytes stay referenced.
#[derive(Clone, Debug)]
pub(crate) struct SavedBlock {
    block: BlockId,
    state: BlockState,
    pages: Vec<(Vec<u32>, Lpn)>,
}

impl SavedBlock {
    pub(crate) fn block(&self) -> BlockId {
        self.block
    }
}

/// The words of pages, 16 KiB of them at a time.
type Words = Chunked<u32, 4096>;
/// The state of blocks, some 10 KiB of them at a time.
type Blocks = Chunked<BlockState, 256>;

#[derive(Clone, Debug)]
pub(crate) struct Store {
    geometry: Geometry,
    subpages: usize,
    words: Words,
    lpns: Lpns,
    pub(crate) blocks: Blocks,
    payloads: Payloads,
    /// Set if an inode was ever told: until then no block needs to be asked for one.
    inodes_told: bool,
    /// The same of streams other than the first.
    streams_told: bool,
    /// Set if a page was ever used up without content: until then every programmed page can be read.
    any_torn: bool,
}

impl Store {
    pub(crate) fn new(geometry: Geometry) -> Self {
        let pages = geometry.pages() as usize;
        let subpages = geometry.subpages_per_page() as usize;
        Self {
            geometry,
            subpages,
            words: Words::new(pages * subpages),
            lpns: Lpns::new(pages),
            blocks: Blocks::new(geometry.blocks() as usize),
            payloads: Payloads::default(),
            inodes_told: false,
            streams_told: false,
            any_torn: false,
        }
    }

    pub(crate) fn payloads(&mut self) -> &mut Payloads {
        &mut self.payloads
    }

    pub(crate) fn resolve(&self, token: Token) -> Option<dovetail_block::Content> {
        self.payloads.resolve(token)
    }

    #[inline]
    pub(crate) fn token(&self, ppn: Ppn, subpage: usize) -> Token {
        match self.words[ppn.0 as usize * self.subpages + subpage] as u16 {
            Token::NOT_SHORT => self.long_token(ppn, subpage),
            short => Token::from_short(short),
        }
    }

    #[inline(never)]
    fn long_token(&self, ppn: Ppn, subpage: usize) -> Token {
        let (block, page) = self.geometry.locate(ppn);
        self.blocks[block.0 as usize].long_token(page as usize * self.subpages + subpage)
    }

    /// The bytes of memory that the state of pages and blocks takes, without what real bytes take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.words.memory_bytes() + self.lpns.memory_bytes() + self.blocks.memory_bytes()
    }

    /// Writes the next page of its block. The caller has checked order and arguments.
    pub(crate) fn program(&mut self, ppn: Ppn, block: BlockId, tokens: &[Token], oob: Oob) {
        let state = &mut self.blocks[block.0 as usize];
        let page = state.next_page;
        self.inodes_told |= oob.inode.0 != 0;
        self.streams_told |= oob.stream.0 != 0;
        let delta = state.delta(page, oob.seq.0);
        state.note_inode(page, oob.inode, self.geometry.pages_per_block);
        state.note_stream(page, oob.stream, self.geometry.pages_per_block);
        state.next_page += 1;
        state.last_seq = oob.seq.0;
        let first = ppn.0 as usize * self.subpages;
        let words = self.words.stretch_mut(first, self.subpages).iter_mut();
        for (subpage, (word, token)) in words.zip(tokens).enumerate() {
            let short = token.short().unwrap_or_else(|| {
                let most = self.geometry.pages_per_block as usize * self.subpages;
                state.keep_token(page as usize * self.subpages + subpage, *token, most);
                Token::NOT_SHORT
            });
            *word = u32::from(short) | delta << DELTA_SHIFT;
        }
        self.lpns.set(ppn, oob.lpn);
    }

    /// Writes the next page of its block, of one subpage, if all of it fits into a word and its
    /// block keeps nothing apart and can be programmed there; otherwise nothing happens.
    #[inline(always)] // for each page that is programmed
    pub(crate) fn program_plainly(
        &mut self,
        ppn: Ppn,
        (block, page): (BlockId, u32),
        token: Token,
        oob: Oob,
    ) -> Option<()> {
        let short = token.short()?;
        let state = &mut self.blocks[block.0 as usize];
        if state.bad | state.half_erased || page != state.next_page || state.extra.is_some() {
            return None;
        }
        let (seq, stream) = (oob.seq.0, oob.stream.0);
        if oob.inode.0 != 0 || stream > MOST_STREAM {
            return None;
        }
        let (base, last) = if page == 0 { (seq, 0) } else { (state.first_base, state.last_seq) };
        if seq < last || seq - base > MAX_DELTA || (page > 0 && stream != state.stream) {
            return None;
        }
        (state.first_base, state.last_seq, state.stream) = (base, seq, stream);
        state.next_page += 1;
        self.streams_told |= stream != 0;
        self.words[ppn.0 as usize] = u32::from(short) | ((seq - base) as u32) << DELTA_SHIFT;
        self.lpns.set(ppn, oob.lpn);
        Some(())
    }

    /// Tells whether a page is programmed and surely not torn, and its block not half erased.
    #[inline]
    pub(crate) fn holds_readable(&self, block: BlockId, page: u32) -> bool {
        let state = &self.blocks[block.0 as usize];
        !self.any_torn && !state.half_erased && page < state.next_page
    }

    /// Sets how worn a restored block is; its pages may have raised the last sequence number
    /// already.
    pub(crate) fn restore_wear(&mut self, block: BlockId, erases: u32, last_seq: u64) {
        let state = &mut self.blocks[block.0 as usize];
        (state.erases, state.last_seq) = (erases, state.last_seq.max(last_seq));
    }

    /// Uses up the next page of its block without content: it was torn or failed.
    pub(crate) fn spoil(&mut self, ppn: Ppn, block: BlockId) {
        self.blocks[block.0 as usize].next_page += 1;
        self.any_torn = true;
        let first = ppn.0 as usize * self.subpages;
        self.words.stretch_mut(first, self.subpages).fill(TORN_WORD);
    }

    /// The page, programmed already, was under way when the power went.
    pub(crate) fn tear(&mut self, ppn: Ppn) {
        self.any_torn = true;
        let first = ppn.0 as usize * self.subpages;
        self.words.stretch_mut(first, self.subpages).fill(TORN_WORD);
    }

    /// The page programmed last in `block` had not begun when the power went.
    pub(crate) fn take_back(&mut self, block: BlockId) {
        self.blocks[block.0 as usize].next_page -= 1;
    }

    pub(crate) fn save(&mut self, block: BlockId) -> SavedBlock {
        let state = self.blocks[block.0 as usize].clone();
        let mut pages = Vec::new();
        for page in 0..state.next_page {
            let ppn = self.geometry.ppn(block, page);
            (0..self.subpages).for_each(|subpage| self.payloads.retain(self.token(ppn, subpage)));
            let first = ppn.0 as usize * self.subpages;
            let words = (first..first + self.subpages).map(|index| self.words[index]).collect();
            pages.push((words, self.lpns.get(ppn)));
        }
        SavedBlock { block, state, pages }
    }

    /// Gives back the references that [`Store::save`] took.
    pub(crate) fn release(&mut self, saved: &SavedBlock) {
        let words = saved.pages.iter().flat_map(|(words, _)| words).enumerate();
        for (index, _) in words.filter(|(_, word)| **word as u16 == Token::NOT_SHORT) {
            self.payloads.release(saved.state.long_token(index));
        }
    }

    pub(crate) fn restore(&mut self, saved: SavedBlock) {
        for (page, (words, lpn)) in saved.pages.into_iter().enumerate() {
            let ppn = self.geometry.ppn(saved.block, page as u32);
            let first = ppn.0 as usize * self.subpages;
            self.words.stretch_mut(first, self.subpages).copy_from_slice(&words);
            self.lpns.set(ppn, lpn);
        }
        self.blocks[saved.block.0 as usize] = saved.state;
    }

    /// The out-of-band area of a programmed page; `None` where the page was torn.
    pub(crate) fn oob(&self, ppn: Ppn, block: BlockId, page: u32) -> Option<Oob> {
        if self.token(ppn, 0) == Token::TORN {
            return None;
        }
        let state = &self.blocks[block.0 as usize];
        let word = self.words[ppn.0 as usize * self.subpages];
        Some(Oob {
            lpn: self.lpns.get(ppn),
            seq: Seq(state.base_of(page) + u64::from(word >> DELTA_SHIFT)),
            inode: state.inode_of(page),
            stream: state.stream_of(page),
        })
    }

    /// The logical page and stream of a programmed, untorn page: what moving it needs, without the
    /// rest.
    #[inline]
    pub(crate) fn owner(&self, ppn: Ppn) -> (Lpn, StreamId) {
        let stream = if self.streams_told {
            let (block, page) = self.geometry.locate(ppn);
            self.blocks[block.0 as usize].stream_of(page)
        } else {
            StreamId(0)
        };
        (self.lpns.get(ppn), stream)
    }

    #[inline]
    pub(crate) fn inode(&self, ppn: Ppn) -> Inode {
        if !self.inodes_told {
            return Inode(0);
        }
        let (block, page) = self.geometry.locate(ppn);
        self.blocks[block.0 as usize].inode_of(page)
    }

    pub(crate) fn erase(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.0 as usize];
        let used = std::mem::take(&mut state.next_page);
        state.erases += 1;
        state.half_erased = false;
        state.mode = CellMode::Native;
        state.stream = 0;
        if std::mem::take(&mut state.holds_bytes) {
            for page in 0..used {
                let ppn = self.geometry.ppn(block, page);
                for subpage in 0..self.subpages {
                    let token = self.token(ppn, subpage);
                    self.payloads.release(token);
                }
            }
        }
        self.blocks[block.0 as usize].extra = None;
    }

    /// Drops the bytes that no page refers to: what lay in the drive's memory when the power went.
    pub(crate) fn forget_unreferenced(&mut self) {
        let mut live = Vec::new();
        for (index, state) in self.blocks.iter_written().filter(|(_, state)| state.holds_bytes) {
            for page in 0..state.next_page {
                let ppn = self.geometry.ppn(BlockId(index as u32), page);
                live.extend((0..self.subpages).map(|subpage| self.token(ppn, subpage)));
            }
        }
        self.payloads.recount(live.into_iter());
    }
}

/// The logical page of each flash page: 32 bits, and 32 more where a thin drive has larger addresses.
#[derive(Clone, Debug)]
struct Lpns {
    low: Chunked<u32, 8192>,
    high: Chunked<u32, 8192>,
    /// Set if a larger one was ever written.
    wide: bool,
}

impl Lpns {
    fn new(pages: usize) -> Self {
        Self { low: Chunked::new(pages), high: Chunked::new(pages), wide: false }
    }

    #[inline(always)] // for each page that is moved
    fn get(&self, ppn: Ppn) -> Lpn {
        let low = u64::from(self.low[ppn.0 as usize]);
        if self.wide { Lpn(low | u64::from(self.high[ppn.0 as usize]) << 32) } else { Lpn(low) }
    }

    #[inline(always)] // for each page that is programmed
    fn set(&mut self, ppn: Ppn, lpn: Lpn) {
        self.low[ppn.0 as usize] = lpn.0 as u32;
        let high = (lpn.0 >> 32) as u32;
        self.wide |= high != 0;
        if self.wide {
            self.high[ppn.0 as usize] = high;
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.low.memory_bytes() + self.high.memory_bytes()
    }
}

impl BlockState {
    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    fn long_token(&self, index: usize) -> Token {
        let tokens = self.extra.as_ref().map(|extra| &extra.tokens);
        Token::from_bits(tokens.and_then(|tokens| tokens.get(index)).copied().unwrap_or(0))
    }

    /// Keeps a token of `most` that is longer than its word takes.
    #[inline(never)]
    fn keep_token(&mut self, index: usize, token: Token, most: usize) {
        self.holds_bytes |= token.has_bytes();
        let tokens = &mut self.extra.get_or_insert_default().tokens;
        tokens.resize(most, 0);
        tokens[index] = token.bits();
    }

    fn note_stream(&mut self, page: u32, stream: StreamId, pages_per_block: u32) {
        if page == 0 {
            self.stream = stream.0;
        }
        let is_one = self.extra.as_ref().is_none_or(|extra| extra.streams.is_empty());
        if is_one && stream.0 == self.stream {
            return;
        }
        let streams = &mut self.extra.get_or_insert_default().streams;
        streams.resize(pages_per_block as usize, self.stream);
        streams[page as usize] = stream.0;
    }

    fn stream_of(&self, page: u32) -> StreamId {
        let streams = self.extra.as_ref().map(|extra| &extra.streams);
        StreamId(streams.and_then(|s| s.get(page as usize)).copied().unwrap_or(self.stream))
    }

    /// The distance of a sequence number from its base; it fits into 16 bits.
    fn delta(&mut self, page: u32, seq: u64) -> u32 {
        if page == 0 {
            self.first_base = seq;
        }
        let base = self.base_of(page);
        if seq - base > MAX_DELTA {
            self.extra.get_or_insert_default().bases.push((page, seq));
            return 0;
        }
        (seq - base) as u32
    }

    fn base_of(&self, page: u32) -> u64 {
        let later =
            self.extra.as_ref().and_then(|e| e.bases.iter().rev().find(|(from, _)| *from <= page));
        later.map_or(self.first_base, |(_, base)| *base)
    }

    fn note_inode(&mut self, page: u32, inode: Inode, pages_per_block: u32) {
        let told = inode.0 != 0;
        if !told && self.extra.as_ref().is_none_or(|e| e.inodes.is_empty()) {
            return;
        }
        let inodes = &mut self.extra.get_or_insert_default().inodes;
        inodes.resize(pages_per_block as usize, 0);
        inodes[page as usize] = inode.0;
    }

    fn inode_of(&self, page: u32) -> Inode {
        let inodes = self.extra.as_ref().map(|e| &e.inodes);
        Inode(inodes.and_then(|i| i.get(page as usize)).copied().unwrap_or(0))
    }
}
