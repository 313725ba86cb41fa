//! The memory of nodes and tables: slabs by size class.
//!
//! Memory is a row of chunks of 128 KiB. A chunk serves one class of sizes at a time; when its last block is freed, it
//! serves whichever class needs it next, and chunks at the end of the row are given back. A block of class `c` is one
//! `k`-th of a chunk for a whole `k`, so that no chunk has a rest: eight classes for each doubling of the size, at most
//! an eighth (a sixteenth on average) lost to rounding, and nothing for a table of a whole segment.
//!
//! Why not one general allocator: what the map allocates has few sizes (nodes, zone nodes, whole tables) and one wide
//! spread (tables after compaction); both ends are freed in the order of the log, so that chunks empty as wholes. A
//! slab needs no header in a block, finds and frees in constant time, and its memory can be counted to the byte.

/// Words of the unit in which blocks are addressed.
const UNIT_WORDS: usize = 4;

/// Units of a chunk: 128 KiB.
const CHUNK_UNITS: usize = 8192;

/// The largest block: a table of 4,096 entries.
const MAX_UNITS: usize = CHUNK_UNITS / 8;

const WORD_BYTES: u64 = 4;
const NO_SLOT: u16 = u16::MAX;
const NO_CHUNK: u32 = u32::MAX;
const NO_CLASS: u8 = u8::MAX;

/// Bytes of a chunk.
pub(super) const CHUNK_BYTES: u64 = (CHUNK_UNITS * UNIT_WORDS) as u64 * WORD_BYTES;

/// The address of a block, in units; unit 0 belongs to none, so that 0 can mean that there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(u32);

impl Block {
    /// Stands for a block where there is none yet.
    pub(super) const NOWHERE: Self = Self(0);

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

#[derive(Clone, Copy, Debug)]
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
}

const FREE_CHUNK: Chunk =
    Chunk { class: NO_CLASS, used: 0, touched: 0, freed: NO_SLOT, before: NO_CHUNK, after: NO_CHUNK };

/// Blocks of one size.
#[derive(Clone, Copy, Debug)]
struct Class {
    units: u16,
    slots: u16,
    /// The first chunk with a free slot.
    open: u32,
}

/// Slabs of words.
#[derive(Debug)]
pub(super) struct Arena {
    words: Vec<u32>,
    chunks: Vec<Chunk>,
    classes: Vec<Class>,
    /// The class of each size in units.
    class_of: Vec<u8>,
    free_chunks: Vec<u32>,
    allocated_words: u64,
}

impl Arena {
    pub(super) fn new() -> Self {
        let classes = classes();
        let class_for = |units: usize| classes.iter().position(|class| usize::from(class.units) >= units);
        let class_of = (0..=MAX_UNITS).map(|units| class_for(units).unwrap_or(0) as u8).collect();
        Self {
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

    /// A block of `words` zeros, 1 to 4,096.
    pub(super) fn alloc(&mut self, words: usize) -> Block {
        let class = self.class_of[words.div_ceil(UNIT_WORDS)];
        let chunk = self.open_chunk(class);
        let block = self.take_slot(chunk);
        self.words[block.at()..][..words].fill(0);
        self.allocated_words += words as u64;
        block
    }

    /// Frees a block that was allocated with that many words.
    pub(super) fn free(&mut self, block: Block, words: usize) {
        let at = block.0 as usize - 1;
        let (id, unit) = ((at / CHUNK_UNITS) as u32, at % CHUNK_UNITS);
        let chunk = &mut self.chunks[id as usize];
        let class = self.classes[usize::from(chunk.class)];
        self.words[block.at()] = u32::from(chunk.freed);
        chunk.freed = (unit / usize::from(class.units)) as u16;
        chunk.used -= 1;
        self.allocated_words -= words as u64;
        let used = chunk.used;
        if used + 1 == class.slots {
            self.open(id);
        }
        if used == 0 {
            self.release(id);
        }
    }

    /// Bytes of the chunks that serve a class, with what they lose to rounding and free slots.
    pub(super) fn held_bytes(&self) -> u64 {
        (self.chunks.len() - self.free_chunks.len()) as u64 * CHUNK_BYTES
    }

    /// Bytes that were asked for.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.allocated_words * WORD_BYTES
    }

    /// Bytes of the records of chunks and classes.
    pub(super) fn bookkeeping_bytes(&self) -> u64 {
        let of_chunks = self.chunks.len() * (size_of::<Chunk>() + size_of::<u32>());
        (of_chunks + self.classes.len() * size_of::<Class>() + self.class_of.len()) as u64
    }

    fn open_chunk(&mut self, class: u8) -> u32 {
        let open = self.classes[usize::from(class)].open;
        if open != NO_CHUNK {
            return open;
        }
        let id = self.free_chunks.pop().unwrap_or_else(|| self.grow());
        self.chunks[id as usize] = Chunk { class, ..FREE_CHUNK };
        self.open(id);
        id
    }

    fn grow(&mut self) -> u32 {
        self.chunks.push(FREE_CHUNK);
        let units = self.chunks.len() * CHUNK_UNITS + 1;
        self.words.resize(units * UNIT_WORDS, 0);
        self.chunks.len() as u32 - 1
    }

    fn take_slot(&mut self, id: u32) -> Block {
        let chunk = &mut self.chunks[id as usize];
        let class = self.classes[usize::from(chunk.class)];
        let slot = if chunk.freed == NO_SLOT { chunk.touched } else { chunk.freed };
        let unit = id as usize * CHUNK_UNITS + usize::from(slot) * usize::from(class.units) + 1;
        let block = Block(unit as u32);
        if chunk.freed == NO_SLOT {
            chunk.touched += 1;
        } else {
            chunk.freed = self.words[block.at()] as u16;
        }
        chunk.used += 1;
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
        self.close(id);
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
        self.words.truncate((left as usize * CHUNK_UNITS + 1) * UNIT_WORDS);
        if self.words.capacity() > 4 * self.words.len() {
            self.words.shrink_to(2 * self.words.len());
        }
    }
}

/// From the smallest to the largest: each of the 16 smallest sizes, then chunks cut into 8 to 16 slots and these numbers
/// doubled again and again.
fn classes() -> Vec<Class> {
    let cut = (0..7).flat_map(|doubling| (8..16).map(move |slots| CHUNK_UNITS / (slots << doubling)));
    let mut units: Vec<usize> = (1..=16).chain(cut).collect();
    units.sort_unstable();
    units.dedup();
    let class =
        |units: usize| Class { units: units as u16, slots: (CHUNK_UNITS / units) as u16, open: NO_CHUNK };
    units.into_iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_time::Rng;

    #[test]
    fn a_whole_table_loses_nothing_and_no_size_more_than_an_eighth_or_a_unit() {
        let classes = classes();
        assert_eq!(usize::from(classes[classes.len() - 1].units), MAX_UNITS);
        assert_eq!(classes[0].units, 1);
        for pair in classes.windows(2) {
            let (small, large) = (f64::from(pair[0].units), f64::from(pair[1].units));
            assert!(large <= small + 1.0 || large <= small * 1.15, "{small} {large}");
        }
        for class in classes {
            let rest = CHUNK_UNITS - usize::from(class.units) * usize::from(class.slots);
            assert!(rest <= CHUNK_UNITS / 100, "{class:?} leaves {rest}");
        }
    }

    #[test]
    fn blocks_never_overlap_are_zero_when_new_and_all_memory_comes_back() {
        let (mut rng, mut arena) = (Rng::new(5), Arena::new());
        let mut blocks: Vec<(Block, usize, u32)> = Vec::new();
        for step in 1..40_000u32 {
            if rng.chance(if step % 8_000 < 4_000 { 0.6 } else { 0.4 }) {
                let largest = if rng.chance(0.5) { 40 } else { 4096 };
                let words = 1 + rng.below(largest) as usize;
                let block = arena.alloc(words);
                assert!(arena.words()[block.at()..][..words].iter().all(|&word| word == 0));
                arena.words_mut()[block.at()..][..words].fill(step);
                blocks.push((block, words, step));
            } else if !blocks.is_empty() {
                let (block, words, mark) = blocks.swap_remove(rng.below(blocks.len() as u64) as usize);
                assert!(arena.words()[block.at()..][..words].iter().all(|&word| word == mark));
                arena.free(block, words);
            }
        }
        for (block, words, _) in blocks {
            arena.free(block, words);
        }
        assert_eq!((arena.held_bytes(), arena.allocated_bytes(), arena.words().len()), (0, 0, UNIT_WORDS));
    }

    #[test]
    fn what_one_class_freed_another_one_uses() {
        let mut arena = Arena::new();
        let whole: Vec<Block> = (0..800).map(|_| arena.alloc(4096)).collect();
        let held = arena.held_bytes();
        assert_eq!(held, 800 * 4096 * 4);
        whole[..792].iter().for_each(|&block| arena.free(block, 4096));
        (0..792 * 8).for_each(|_| assert_ne!(arena.alloc(512), Block::NOWHERE));
        assert_eq!(arena.held_bytes(), held);
        assert_eq!(arena.words().len(), 100 * CHUNK_UNITS * UNIT_WORDS + UNIT_WORDS);
    }
}
