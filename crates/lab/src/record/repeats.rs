//! Numbers of reads and writes of each block of the drive: they tell what a cache could reuse.

use std::collections::BTreeMap;

use dovetail_block::BlockRange;
use dovetail_host::{Request, RequestKind};

use crate::results::{RepeatResult, RepeatsResult};

/// Accesses of a block beyond which it counts as accessed multiple times (the split cache's paper,
/// section III).
const MULTIPLE: u16 = 2;
/// Blocks whose counts lie together.
const CHUNK: u64 = 4096;

/// Chunks that are found by their number alone: the first 256 GiB.
const LOW: u64 = 1 << 14;

type Chunk = Box<[u16; CHUNK as usize]>;

/// Counts of some blocks, up to 65,535 each.
#[derive(Debug, Default)]
struct Counts {
    /// Up to the last one with a count.
    low: Vec<Option<Chunk>>,
    /// From [`LOW`] on.
    high: BTreeMap<u64, Chunk>,
}

impl Counts {
    fn chunk_mut(&mut self, number: u64) -> &mut Chunk {
        let fresh = || Box::new([0; CHUNK as usize]);
        if number >= LOW {
            return self.high.entry(number).or_insert_with(fresh);
        }
        if self.low.len() as u64 <= number {
            self.low.resize_with(number as usize + 1, || None);
        }
        self.low[number as usize].get_or_insert_with(fresh)
    }

    fn get(&self, number: u64) -> Option<&Chunk> {
        match self.low.get(number as usize) {
            Some(chunk) => chunk.as_ref(),
            None => self.high.get(&number),
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        let low = (0..).zip(&self.low).filter_map(|(at, chunk)| Some((at, chunk.as_ref()?)));
        low.chain(self.high.iter().map(|(&at, chunk)| (at, chunk)))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Repeats {
    read: Counts,
    written: Counts,
}

impl Repeats {
    pub(crate) fn count(&mut self, request: &Request) {
        let counts = match request.kind {
            RequestKind::Read => &mut self.read,
            RequestKind::Write => &mut self.written,
            RequestKind::Discard | RequestKind::Flush | RequestKind::Remap | RequestKind::Zone => {
                return;
            }
        };
        add(counts, request.range);
    }

    pub(crate) fn result(&self) -> RepeatsResult {
        let (read, write) = (of(&self.read), of(&self.written));
        RepeatsResult { read, write, footprint: read.blocks + write.blocks - self.both() }
    }

    /// Blocks that were read and written.
    fn both(&self) -> u64 {
        let both = |read: &[u16], written: &[u16]| {
            read.iter().zip(written).filter(|(read, written)| **read > 0 && **written > 0).count()
        };
        let pairs = self.read.iter().filter_map(|(at, read)| Some((read, self.written.get(at)?)));
        pairs.map(|(read, written)| both(&read[..], &written[..]) as u64).sum()
    }
}

fn add(counts: &mut Counts, range: BlockRange) {
    let mut at = range.start.0;
    while at < range.end().0 {
        let end = range.end().0.min((at / CHUNK + 1) * CHUNK);
        let chunk = counts.chunk_mut(at / CHUNK);
        let (first, last) = ((at % CHUNK) as usize, ((end - 1) % CHUNK) as usize);
        chunk[first..=last].iter_mut().for_each(|count| *count = count.saturating_add(1));
        at = end;
    }
}

fn of(counts: &Counts) -> RepeatResult {
    let all = || counts.iter().flat_map(|(_, chunk)| chunk.iter());
    RepeatResult {
        blocks: all().filter(|count| **count > 0).count() as u64,
        multiple: all().filter(|count| **count > MULTIPLE).count() as u64,
        multiple_accesses: all()
            .filter(|count| **count > MULTIPLE)
            .map(|count| u64::from(*count))
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::Lba;

    #[test]
    fn blocks_count_from_their_third_access_on() {
        for first in [0, LOW * CHUNK - 4096, LOW * CHUNK, 1 << 58] {
            let mut counts = Counts::default();
            for (start, blocks) in [(4000, 200), (4090, 10), (4095, 2), (0, 1)] {
                add(&mut counts, BlockRange::new(Lba(first + start), blocks));
            }
            let expected = RepeatResult { blocks: 201, multiple: 2, multiple_accesses: 6 };
            assert_eq!(of(&counts), expected, "from block {first} on");
        }
    }

    #[test]
    fn a_block_is_once_in_the_footprint() {
        let mut repeats = Repeats::default();
        add(&mut repeats.read, BlockRange::new(Lba(10), 20));
        add(&mut repeats.written, BlockRange::new(Lba(25), 5000));
        assert_eq!(repeats.result().footprint, 5015);
    }
}
