//! What the blocks of a device hold as of the last command issued, played or not.

use dovetail_block::{BlockRange, ByteRange, Content, Data, Lba, RemapPair};

/// Blocks that come into memory together: 2 MiB.
const CHUNK: usize = 512;

type Chunk = Box<[Content; CHUNK]>;

/// The content of every block; chunks never written take no memory.
#[derive(Debug)]
pub(crate) struct Mirror {
    chunks: Vec<Option<Chunk>>,
}

impl Mirror {
    pub(crate) fn new(blocks: u64) -> Self {
        Self { chunks: (0..(blocks as usize).div_ceil(CHUNK)).map(|_| None).collect() }
    }

    pub(crate) fn read(&self, range: BlockRange, into: &mut [Content]) {
        for (lba, content) in range.iter().zip(into) {
            *content = self.get(lba).clone();
        }
    }

    fn get(&self, lba: Lba) -> &Content {
        let chunk = &self.chunks[lba.0 as usize / CHUNK];
        chunk.as_ref().map_or(&Content::Empty, |chunk| &chunk[lba.0 as usize % CHUNK])
    }

    pub(crate) fn write(&mut self, range: BlockRange, data: Data<'_>) {
        for (i, lba) in range.iter().enumerate() {
            self.set(lba, data.block(i as u64));
        }
    }

    fn set(&mut self, lba: Lba, content: Content) {
        let chunk = self.chunks[lba.0 as usize / CHUNK]
            .get_or_insert_with(|| Box::new([const { Content::Empty }; CHUNK]));
        chunk[lba.0 as usize % CHUNK] = content;
    }

    /// Executes one pair of a remap.
    pub(crate) fn move_block(&mut self, pair: RemapPair) {
        self.set(pair.to, self.get(pair.from).clone());
        self.forget(pair.from);
    }

    /// The content of a block is needed no more.
    pub(crate) fn forget(&mut self, lba: Lba) {
        if let Some(chunk) = &mut self.chunks[lba.0 as usize / CHUNK] {
            chunk[lba.0 as usize % CHUNK] = Content::Empty;
        }
    }

    pub(crate) fn discard(&mut self, range: ByteRange) {
        let blocks = range.blocks_inside();
        let (mut block, end) = (blocks.start.0 as usize, blocks.end().0 as usize);
        while block < end {
            let (chunk, from) = (block / CHUNK, block % CHUNK);
            let to = CHUNK.min(from + (end - block));
            if to - from == CHUNK {
                self.chunks[chunk] = None;
            } else if let Some(chunk) = &mut self.chunks[chunk] {
                chunk[from..to].fill(Content::Empty);
            }
            block += to - from;
        }
    }
}
