//! The memory of nodes and tables: slabs by size class, whose blocks can move.
//!
//! Memory is a row of chunks. A chunk serves one class of sizes at a time; when its last block is
//! freed, it serves whichever class needs it next, and chunks at the end of the row are given back.
//! A chunk is cut into equal slots without a rest worth mentioning: classes lie 6 to 12 % apart, 13
//! to 25 % above half of the largest size, and nothing is lost to rounding for a table of a whole
//! segment.
//!
//! Blocks die scattered over chunks, so that a class may hold many chunks that are all but empty.
//! An arena with owners knows who refers to each block: [`Arena::evacuate`] moves the blocks of the
//! emptiest chunk to others of its class, or to slots of larger ones that are free.
//!
//! Slabs find and free in constant time, need no header in a block, and can be counted to
//! the byte. A general allocator with coalescing would fragment just as well (whole tables die
//! among tables that live), but blocks of any size between them cannot be moved out of the way one
//! class at a time.

use std::ops::Range;

/// Words of the unit in which blocks are addressed.
const UNIT_WORDS: usize = 4;

const WORD_BYTES: u64 = 4;
const NO_SLOT: u16 = u16::MAX;
const NO_CHUNK: u32 = u32::MAX;
const NO_CLASS: u8 = u8::MAX;

/// A class is sparse when one in so many of its slots is free. Assumed: half of what rounding
/// loses.
const SPARSE_DIVISOR: u32 = 32;

/// Number of classes by which a slot may be larger than the block that is moved into it. Assumed:
/// up to half as large again, and free anyway.
const LARGER_CLASSES: usize = 4;

/// An owner that is none.
const NOBODY: u32 = 0;

/// The address of a block, in units; unit 0 belongs to none, so that 0 can mean that there is no
/// block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(u32);

impl Block {
    /// As it stands in a node: 0 is none.
    pub(super) fn from_word(word: u32) -> Option<Self> {
        (word != 0).then_some(Self(word))
    }

    pub(super) fn word(self) -> u32 {
        self.0
    }

    /// Index of the block's first word among all words.
    #[inline]
    pub(super) fn at(self) -> usize {
        Self::index(self.0)
    }

    /// The same for a block as it stands in a node.
    #[inline]
    pub(super) fn index(word: u32) -> usize {
        word as usize * UNIT_WORDS
    }
}

#[derive(Clone, Debug)]
struct Chunk {
    class: u8,
    used: u16,
    /// Slots that were ever handed out; the rest was not touched since the chunk took its class.
    touched: u16,
    /// The first freed slot; each holds the number of the next in its first word.
    freed: u16,
    /// Neighbours among the chunks of this class with a free slot.
    before: u32,
    after: u32,
    /// The owner of each slot's block, in an arena that has them.
    owners: Option<Box<[u32]>>,
}

const FREE_CHUNK: Chunk = Chunk {
    class: NO_CLASS,
    used: 0,
    touched: 0,
    freed: NO_SLOT,
    before: NO_CHUNK,
    after: NO_CHUNK,
    owners: None,
};

/// Blocks of one size.
#[derive(Clone, Copy, Debug)]
struct Class {
    units: u16,
    slots: u16,
    /// The first chunk with a free slot.
    open: u32,
    chunks: u32,
    used: u32,
}

impl Class {
    fn slots_free(&self) -> u32 {
        self.chunks * u32::from(self.slots) - self.used
    }

    /// Tells whether the blocks of a chunk fit into others of the class, and enough is free to be
    /// worth it.
    fn is_sparse(&self) -> bool {
        let worth = (self.chunks * u32::from(self.slots)).div_ceil(SPARSE_DIVISOR);
        self.slots_free() >= worth.max(self.slots.into())
    }
}

/// Slabs of words.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    chunk_units: usize,
    has_owners: bool,
    words: Vec<u32>,
    chunks: Vec<Chunk>,
    classes: Vec<Class>,
    /// The class of each size in units.
    class_of: Vec<u8>,
    free_chunks: Vec<u32>,
    allocated_words: u64,
}

impl Arena {
    /// For nodes: blocks of up to 16 KiB, the size of a zone node, in chunks of 32 KiB, without
    /// owners.
    pub(super) fn of_nodes() -> Self {
        Self::new(2048, 1024, false)
    }

    /// For tables of up to so many words: four of the largest in a chunk, with owners.
    pub(super) fn of_tables(max_words: usize) -> Self {
        let max_units = max_words.div_ceil(UNIT_WORDS);
        Self::new(4 * max_units, max_units, true)
    }

    fn new(chunk_units: usize, max_units: usize, has_owners: bool) -> Self {
        let classes = classes(chunk_units, max_units);
        let class_for =
            |units: usize| classes.iter().position(|class| usize::from(class.units) >= units);
        let class_of = (0..=max_units).map(|units| class_for(units).unwrap_or(0) as u8).collect();
        Self {
            chunk_units,
            has_owners,
            words: vec![0; UNIT_WORDS],
            chunks: Vec::new(),
            classes,
            class_of,
            free_chunks: Vec::new(),
            allocated_words: 0,
        }
    }

    /// All words; a block's start at [`Block::at`].
    #[inline]
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    #[inline]
    pub(super) fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }

    /// A word of a block that is allocated.
    #[inline]
    #[allow(unsafe_code, reason = "measured hot path: the check costs a random lookup 5 %")]
    pub(super) fn word_of_block(&self, index: usize) -> u32 {
        debug_assert!(index < self.words.len());
        // SAFETY: the words of an allocated block are within the chunks that are there, and chunks
        // are only given back when all their blocks are freed. Who keeps an index forgets it when
        // the block is freed or moved.
        unsafe { *self.words.get_unchecked(index) }
    }

    /// The same, to write.
    #[inline]
    #[allow(unsafe_code, reason = "measured hot path, as the other")]
    pub(super) fn word_of_block_mut(&mut self, index: usize) -> &mut u32 {
        debug_assert!(index < self.words.len());
        // SAFETY: as for `word_of_block`.
        unsafe { self.words.get_unchecked_mut(index) }
    }

    /// A block of zeros, 1 word to the most that the arena serves. In an arena with owners, `owner`
    /// (not 0) is who refers to it.
    pub(super) fn alloc(&mut self, words: usize, owner: u32) -> Block {
        let class = self.class_of[words.div_ceil(UNIT_WORDS)];
        let chunk = self.open_chunk(class);
        let block = self.take_slot(chunk, owner);
        self.words[block.at()..][..words].fill(0);
        self.allocated_words += words as u64;
        block
    }

    /// Frees a block that was allocated with that many words.
    pub(super) fn free(&mut self, block: Block, words: usize) {
        let at = block.0 as usize - 1;
        let (id, unit) = ((at / self.chunk_units) as u32, at % self.chunk_units);
        let chunk = &mut self.chunks[id as usize];
        let class = &mut self.classes[usize::from(chunk.class)];
        let (slot, slots) = (unit / usize::from(class.units), class.slots);
        self.words[block.at()] = u32::from(chunk.freed);
        if let Some(owners) = &mut chunk.owners {
            owners[slot] = NOBODY;
        }
        chunk.freed = slot as u16;
        chunk.used -= 1;
        class.used -= 1;
        self.allocated_words -= words as u64;
        let used = chunk.used;
        if used + 1 == slots {
            self.open(id);
        }
        if used == 0 {
            self.close(id);
            self.release(id);
        }
    }

    /// Moves the blocks of one chunk to others and frees it, if that is worth it: for some class
    /// that is sparse, or a chunk at most half used whose blocks find free slots of their size or
    /// somewhat larger. Calls `moved` with each block's owner and its new place; returns how many
    /// words it moved.
    pub(super) fn evacuate(&mut self, moved: impl FnMut(u32, Block)) -> usize {
        let sparse = self.classes.iter().find(|class| class.is_sparse());
        let emptiest = sparse.and_then(|class| self.emptiest(class.open));
        let from =
            emptiest.or_else(|| (0..self.classes.len()).find_map(|class| self.half_empty(class)));
        from.map_or(0, |from| self.empty_chunk(from, moved))
    }

    /// A chunk of the class that is at most half used, if its blocks have room elsewhere.
    fn half_empty(&self, class: usize) -> Option<u32> {
        let from = self.emptiest(self.classes[class].open)?;
        let (slots, used) = (self.classes[class].slots, self.chunks[from as usize].used);
        let free: u32 = self.roomy(class).map(|class| self.classes[class].slots_free()).sum();
        let elsewhere = free - u32::from(slots - used);
        (2 * used <= slots && elsewhere >= u32::from(used)).then_some(from)
    }

    /// The class and those whose free slots its blocks may take.
    fn roomy(&self, class: usize) -> Range<usize> {
        class..self.classes.len().min(class + 1 + LARGER_CLASSES)
    }

    fn emptiest(&self, first: u32) -> Option<u32> {
        let id = |id: u32| (id != NO_CHUNK).then_some(id);
        let open = std::iter::successors(id(first), |&at| id(self.chunks[at as usize].after));
        open.min_by_key(|&id| self.chunks[id as usize].used)
    }

    fn empty_chunk(&mut self, from: u32, mut moved: impl FnMut(u32, Block)) -> usize {
        self.close(from);
        let owners = self.chunks[from as usize].owners.take().unwrap_or_default();
        let class = self.chunks[from as usize].class;
        let units = usize::from(self.classes[usize::from(class)].units);
        let mut words = 0;
        for (slot, owner) in owners.into_iter().enumerate().filter(|&(_, owner)| owner != NOBODY) {
            let old = self.block(from, slot, units);
            let mut roomy = self.roomy(class.into()).map(|class| self.classes[class].open);
            let open = roomy.find(|&open| open != NO_CHUNK);
            let chunk = open.unwrap_or_else(|| self.open_chunk(class));
            let new = self.take_slot(chunk, owner);
            self.words.copy_within(old.at()..old.at() + units * UNIT_WORDS, new.at());
            self.classes[usize::from(class)].used -= 1;
            moved(owner, new);
            words += units * UNIT_WORDS;
        }
        self.release(from);
        words
    }

    fn block(&self, chunk: u32, slot: usize, units: usize) -> Block {
        Block((chunk as usize * self.chunk_units + slot * units + 1) as u32)
    }

    /// Bytes of the chunks that serve a class, with what they lose to rounding and free slots.
    pub(super) fn held_bytes(&self) -> u64 {
        let chunks = self.chunks.len() - self.free_chunks.len();
        (chunks * self.chunk_units * UNIT_WORDS) as u64 * WORD_BYTES
    }

    /// Bytes that were asked for.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.allocated_words * WORD_BYTES
    }

    /// Bytes of the records of chunks and classes, and of owners.
    pub(super) fn bookkeeping_bytes(&self) -> u64 {
        let of_chunks =
            self.chunks.len() * size_of::<Chunk>() + self.free_chunks.capacity() * size_of::<u32>();
        let slots =
            self.classes.iter().map(|class| class.chunks as usize * usize::from(class.slots));
        let owners = if self.has_owners { slots.sum::<usize>() * size_of::<u32>() } else { 0 };
        (of_chunks + owners + self.classes.len() * size_of::<Class>() + self.class_of.len()) as u64
    }

    fn open_chunk(&mut self, class: u8) -> u32 {
        let open = self.classes[usize::from(class)].open;
        if open != NO_CHUNK {
            return open;
        }
        let id = self.free_chunks.pop().unwrap_or_else(|| self.grow());
        let served = &mut self.classes[usize::from(class)];
        served.chunks += 1;
        let owners = self.has_owners.then(|| vec![NOBODY; served.slots.into()].into());
        self.chunks[id as usize] = Chunk { class, owners, ..FREE_CHUNK };
        self.open(id);
        id
    }

    fn grow(&mut self) -> u32 {
        self.chunks.push(FREE_CHUNK);
        let units = self.chunks.len() * self.chunk_units + 1;
        self.words.resize(units * UNIT_WORDS, 0);
        self.chunks.len() as u32 - 1
    }

    fn take_slot(&mut self, id: u32, owner: u32) -> Block {
        let chunk = &self.chunks[id as usize];
        let units = usize::from(self.classes[usize::from(chunk.class)].units);
        let slot = if chunk.freed == NO_SLOT { chunk.touched } else { chunk.freed };
        let block = self.block(id, slot.into(), units);
        let chunk = &mut self.chunks[id as usize];
        if chunk.freed == NO_SLOT {
            chunk.touched += 1;
        } else {
            chunk.freed = self.words[block.at()] as u16;
        }
        if let Some(owners) = &mut chunk.owners {
            owners[usize::from(slot)] = owner;
        }
        chunk.used += 1;
        let class = &mut self.classes[usize::from(chunk.class)];
        class.used += 1;
        if chunk.used == class.slots {
            self.close(id);
        }
        block
    }

    /// Puts a chunk first among those of its class that have a free slot.
    fn open(&mut self, id: u32) {
        let class = usize::from(self.chunks[id as usize].class);
        let after = std::mem::replace(&mut self.classes[class].open, id);
        self.chunks[id as usize].before = NO_CHUNK;
        self.chunks[id as usize].after = after;
        if after != NO_CHUNK {
            self.chunks[after as usize].before = id;
        }
    }

    fn close(&mut self, id: u32) {
        let Chunk { class, before, after, .. } = self.chunks[id as usize];
        match before {
            NO_CHUNK => self.classes[usize::from(class)].open = after,
            before => self.chunks[before as usize].after = after,
        }
        if after != NO_CHUNK {
            self.chunks[after as usize].before = before;
        }
    }

    /// A chunk without blocks is free for every class, or given back if it is the last.
    fn release(&mut self, id: u32) {
        let class = usize::from(self.chunks[id as usize].class);
        self.classes[class].chunks -= 1;
        self.chunks[id as usize] = FREE_CHUNK;
        self.free_chunks.push(id);
        if id as usize + 1 == self.chunks.len() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        while self.chunks.pop_if(|chunk| chunk.class == NO_CLASS).is_some() {}
        let left = self.chunks.len() as u32;
        self.free_chunks.retain(|&id| id < left);
        self.words.truncate((left as usize * self.chunk_units + 1) * UNIT_WORDS);
        if self.words.capacity() > 4 * self.words.len() {
            self.words.shrink_to(2 * self.words.len());
        }
    }
}

/// From the smallest to the largest: each of the 16 smallest sizes, then chunks cut into 4 to 16
/// slots, and from 8 on these numbers doubled again and again.
fn classes(chunk_units: usize, max_units: usize) -> Vec<Class> {
    let cut = (0..8).flat_map(|doubling| {
        (if doubling == 0 { 4 } else { 8 }..16).map(move |slots| chunk_units / (slots << doubling))
    });
    let mut units: Vec<usize> = (1..=16).chain(cut).chain([max_units]).collect();
    units.sort_unstable();
    units.dedup();
    units.retain(|&units| (1..=max_units).contains(&units));
    let slots = |units: usize| (chunk_units / units) as u16;
    let class = |units: usize| Class {
        units: units as u16,
        slots: slots(units),
        open: NO_CHUNK,
        chunks: 0,
        used: 0,
    };
    units.into_iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_time::Rng;

    const SOMEBODY: u32 = 1;

    #[test]
    fn a_whole_table_loses_nothing_and_no_size_more_than_an_eighth_or_a_unit() {
        let classes = classes(4096, 1024);
        assert_eq!((classes[0].units, classes[classes.len() - 1].units), (1, 1024));
        for pair in classes.windows(2) {
            let (small, large) = (f64::from(pair[0].units), f64::from(pair[1].units));
            assert!(large <= small + 1.0 || large <= small * 1.26, "{small} {large}");
        }
        for class in classes {
            let rest = 4096 - usize::from(class.units) * usize::from(class.slots);
            assert!(rest <= 4096 / 100, "{class:?} leaves {rest}");
        }
    }

    /// Blocks that were allocated: where each is, its words, and the number that fills it.
    type Blocks = Vec<(Block, usize, u32)>;

    fn alloc_or_free(arena: &mut Arena, blocks: &mut Blocks, rng: &mut Rng, step: u32) {
        if rng.chance(if step % 8_000 < 4_000 { 0.6 } else { 0.4 }) {
            let largest = if rng.chance(0.5) { 40 } else { 4096 };
            let words = 1 + rng.below(largest) as usize;
            let block = arena.alloc(words, step);
            assert!(arena.words()[block.at()..][..words].iter().all(|&word| word == 0));
            arena.words_mut()[block.at()..][..words].fill(step);
            blocks.push((block, words, step));
        } else if !blocks.is_empty() {
            let (block, words, mark) = blocks.swap_remove(rng.below(blocks.len() as u64) as usize);
            assert!(arena.words()[block.at()..][..words].iter().all(|&word| word == mark));
            arena.free(block, words);
        }
    }

    #[test]
    fn blocks_never_overlap_are_zero_when_new_can_move_and_all_memory_comes_back() {
        let (mut rng, mut arena, mut blocks) = (Rng::new(5), Arena::of_tables(4096), Blocks::new());
        for step in 1..40_000u32 {
            alloc_or_free(&mut arena, &mut blocks, &mut rng, step);
            if step % 100 == 0 {
                arena.evacuate(|owner, new| {
                    let moved = blocks.iter_mut().find(|(_, _, mark)| *mark == owner);
                    moved.expect("every owner has a block").0 = new;
                });
            }
        }
        for (block, words, mark) in blocks {
            assert!(arena.words()[block.at()..][..words].iter().all(|&word| word == mark));
            arena.free(block, words);
        }
        assert_eq!(
            (arena.held_bytes(), arena.allocated_bytes(), arena.words().len()),
            (0, 0, UNIT_WORDS)
        );
    }

    #[test]
    fn what_one_class_freed_another_one_uses() {
        let mut arena = Arena::of_tables(4096);
        let whole: Vec<Block> = (0..800).map(|_| arena.alloc(4096, SOMEBODY)).collect();
        let held = arena.held_bytes();
        assert_eq!(held, 800 * 4096 * 4);
        whole[..792].iter().for_each(|&block| arena.free(block, 4096));
        (0..792 * 8).for_each(|_| assert!(arena.alloc(512, SOMEBODY).at() > 0));
        assert_eq!(arena.held_bytes(), held);
        assert_eq!(arena.words().len(), 200 * 4096 * UNIT_WORDS + UNIT_WORDS);
    }

    #[test]
    fn chunks_that_are_all_but_empty_are_emptied() {
        let mut arena = Arena::of_tables(4096);
        let whole: Vec<Block> = (0..800).map(|_| arena.alloc(4096, SOMEBODY)).collect();
        whole
            .iter()
            .enumerate()
            .filter(|(i, _)| i % 4 > 0)
            .for_each(|(_, &block)| arena.free(block, 4096));
        assert_eq!(arena.held_bytes(), 800 * 4096 * 4);
        while arena.evacuate(|_, _| {}) > 0 {}
        assert_eq!(arena.held_bytes(), 200 * 4096 * 4, "no slot stays free that could be");
    }
}
