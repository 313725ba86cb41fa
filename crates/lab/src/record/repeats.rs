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

/// Counts of some blocks, up to 65,535 each.
type Counts = BTreeMap<u64, Box<[u16; CHUNK as usize]>>;

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
        let chunk = counts.entry(at / CHUNK).or_insert_with(|| Box::new([0; CHUNK as usize]));
        let (first, last) = ((at % CHUNK) as usize, ((end - 1) % CHUNK) as usize);
        chunk[first..=last].iter_mut().for_each(|count| *count = count.saturating_add(1));
        at = end;
    }
}

fn of(counts: &Counts) -> RepeatResult {
    let all = || counts.values().flat_map(|chunk| chunk.iter());
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
        let mut counts = Counts::new();
        for (start, blocks) in [(4000, 200), (4090, 10), (4095, 2), (0, 1)] {
            add(&mut counts, BlockRange::new(Lba(start), blocks));
        }
        assert_eq!(of(&counts), RepeatResult { blocks: 201, multiple: 2, multiple_accesses: 6 });
    }

    #[test]
    fn a_block_is_once_in_the_footprint() {
        let mut repeats = Repeats::default();
        add(&mut repeats.read, BlockRange::new(Lba(10), 20));
        add(&mut repeats.written, BlockRange::new(Lba(25), 5000));
        assert_eq!(repeats.result().footprint, 5015);
    }
}
