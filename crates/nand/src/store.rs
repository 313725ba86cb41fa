//! The state of every page and block, packed: twelve bytes per 4 KiB page that was written.
//!
//! A page's word holds its token (44 bits), its stream (4) and its sequence number as a distance
//! (16 bits) from a base that its block keeps. Where the distance grows beyond 16 bits the block
//! notes a new base.

use dovetail_block::{Inode, StreamId};

use crate::cells::CellMode;
use crate::chunked::Chunked;
use crate::geometry::{BlockId, Geometry, Ppn};
use crate::page::{Lpn, Oob, Seq};
use crate::payload::{Payloads, Token};

const STREAM_SHIFT: u32 = Token::BITS;
const DELTA_SHIFT: u32 = STREAM_SHIFT + 4;
const MAX_DELTA: u64 = u16::MAX as u64;

/// Fields that only some blocks need.
#[derive(Clone, Debug, Default)]
struct Extra {
    /// Sequence bases beyond the first: from which page on, and the base.
    bases: Vec<(u32, u64)>,
    /// The inode of each page; empty where none was told.
    inodes: Vec<u32>,
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
    last_seq: u64,
    first_base: u64,
    extra: Option<Box<Extra>>,
}

/// A block as it was before an erase. Its bytes stay referenced.
#[derive(Clone, Debug)]
pub(crate) struct SavedBlock {
    block: BlockId,
    state: BlockState,
    pages: Vec<(Vec<u64>, Lpn)>,
}

impl SavedBlock {
    pub(crate) fn block(&self) -> BlockId {
        self.block
    }
}

/// The words of pages, 32 KiB of them at a time.
type Words = Chunked<u64, 4096>;
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
        Token::from_bits(
            self.words[ppn.0 as usize * self.subpages + subpage] & ((1 << Token::BITS) - 1),
        )
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
        let delta = state.delta(page, oob.seq.0);
        state.note_inode(page, oob.inode, self.geometry.pages_per_block);
        state.next_page += 1;
        state.last_seq = oob.seq.0;
        let side = delta << DELTA_SHIFT | u64::from(oob.stream.0) << STREAM_SHIFT;
        let first = ppn.0 as usize * self.subpages;
        for (word, token) in self.words.stretch_mut(first, self.subpages).iter_mut().zip(tokens) {
            state.holds_bytes |= token.has_bytes();
            *word = token.bits() | side;
        }
        self.lpns.set(ppn, oob.lpn);
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
        let first = ppn.0 as usize * self.subpages;
        self.words.stretch_mut(first, self.subpages).fill(Token::TORN.bits());
    }

    /// The page, programmed already, was under way when the power went.
    pub(crate) fn tear(&mut self, ppn: Ppn) {
        let first = ppn.0 as usize * self.subpages;
        self.words.stretch_mut(first, self.subpages).fill(Token::TORN.bits());
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
        for word in saved.pages.iter().flat_map(|(words, _)| words) {
            self.payloads.release(Token::from_bits(word & ((1 << Token::BITS) - 1)));
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
            seq: Seq(state.base_of(page) + (word >> DELTA_SHIFT)),
            inode: state.inode_of(page),
            stream: StreamId((word >> STREAM_SHIFT & 0xF) as u8),
        })
    }

    /// The logical page and stream of a programmed, untorn page: what moving it needs, without the
    /// rest.
    #[inline]
    pub(crate) fn owner(&self, ppn: Ppn) -> (Lpn, StreamId) {
        let word = self.words[ppn.0 as usize * self.subpages];
        (self.lpns.get(ppn), StreamId((word >> STREAM_SHIFT & 0xF) as u8))
    }

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
        state.extra = None;
        if std::mem::take(&mut state.holds_bytes) {
            for page in 0..used {
                let ppn = self.geometry.ppn(block, page);
                for subpage in 0..self.subpages {
                    let token = self.token(ppn, subpage);
                    self.payloads.release(token);
                }
            }
        }
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

    #[inline]
    fn get(&self, ppn: Ppn) -> Lpn {
        let low = u64::from(self.low[ppn.0 as usize]);
        if self.wide { Lpn(low | u64::from(self.high[ppn.0 as usize]) << 32) } else { Lpn(low) }
    }

    #[inline]
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

    fn delta(&mut self, page: u32, seq: u64) -> u64 {
        if page == 0 {
            self.first_base = seq;
        }
        let base = self.base_of(page);
        if seq - base > MAX_DELTA {
            self.extra.get_or_insert_default().bases.push((page, seq));
            return 0;
        }
        seq - base
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
