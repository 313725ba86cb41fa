//! The reference model of a device with a volatile cache: which contents each block may hold.
//!
//! Tests run the same commands here and on a real device model. Before a power cut each block has
//! exactly one content; after it, the durable one or any that was written (or discarded) since and
//! not yet flushed.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_block::{BlockRange, Content, Lba, RemapPair, SectorRange};

/// A block that holds what it may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The block.
    pub lba: Lba,
    /// Content that was read.
    pub found: Content,
    /// Contents that it may hold.
    pub allowed: Vec<Content>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} holds {:?}, allowed is one of {:?}", self.lba, self.found, self.allowed)
    }
}

impl std::error::Error for Mismatch {}

/// The last durable content and all that came after it, oldest first; the last one is what reads
/// return.
type History = Vec<Content>;

/// Contents that each block may hold. Blocks never touched hold [`Content::Empty`].
#[derive(Clone, Debug, Default)]
pub struct ReferenceDevice {
    blocks: BTreeMap<Lba, History>,
}

impl ReferenceDevice {
    /// A device whose blocks are all empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `lba` was written; with `durable` (FUA) nothing older may come back.
    pub fn write(&mut self, lba: Lba, content: Content, durable: bool) {
        let history = self.blocks.entry(lba).or_insert_with(|| vec![Content::Empty]);
        history.push(content);
        if durable {
            history.drain(..history.len() - 1);
        }
    }

    /// Notes that the whole blocks of `range` were discarded.
    pub fn discard(&mut self, range: SectorRange) {
        let inside = range.blocks_inside();
        for (_, history) in self.blocks.range_mut(inside.start..inside.end()) {
            history.push(Content::Empty);
        }
    }

    /// Notes that blocks moved.
    pub fn remap(&mut self, pairs: &[RemapPair]) {
        for pair in pairs {
            let content = self.newest(pair.from);
            self.write(pair.to, content, true);
            self.write(pair.from, Content::Empty, true);
        }
    }

    /// Notes that all so far is durable.
    pub fn flush(&mut self) {
        for history in self.blocks.values_mut() {
            history.drain(..history.len() - 1);
        }
    }

    /// Checks what a read of `range` returned while the power was on.
    ///
    /// # Errors
    /// The first block that does not hold its newest content.
    pub fn check_read(&self, range: BlockRange, found: &[Content]) -> Result<(), Mismatch> {
        for (lba, found) in range.iter().zip(found) {
            let newest = self.newest(lba);
            if *found != newest {
                return Err(Mismatch { lba, found: found.clone(), allowed: vec![newest] });
            }
        }
        Ok(())
    }

    /// Checks that `lba` may hold `found`: its durable content or any later one.
    ///
    /// # Errors
    /// It may not.
    pub fn check_allowed(&self, lba: Lba, found: &Content) -> Result<(), Mismatch> {
        let untouched = vec![Content::Empty];
        let allowed = self.blocks.get(&lba).unwrap_or(&untouched);
        if allowed.contains(found) {
            return Ok(());
        }
        Err(Mismatch { lba, found: found.clone(), allowed: allowed.clone() })
    }

    /// Checks what `lba` holds after a power cut, and takes it as the block's durable content from
    /// now on.
    ///
    /// # Errors
    /// The block holds neither its durable content nor a later one.
    pub fn settle(&mut self, lba: Lba, found: &Content) -> Result<(), Mismatch> {
        self.check_allowed(lba, found)?;
        if let Some(history) = self.blocks.get_mut(&lba) {
            *history = vec![found.clone()];
        }
        Ok(())
    }

    fn newest(&self, lba: Lba) -> Content {
        self.blocks.get(&lba).and_then(|h| h.last()).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::Pattern;

    fn pattern(n: u64) -> Content {
        Content::Pattern(Pattern::new(n))
    }

    #[test]
    fn a_flush_ends_what_may_come_back() {
        let mut model = ReferenceDevice::new();
        model.write(Lba(3), pattern(1), false);
        model.flush();
        model.write(Lba(3), pattern(2), false);
        assert!(model.clone().settle(Lba(3), &pattern(1)).is_ok(), "old");
        assert!(model.clone().settle(Lba(3), &pattern(2)).is_ok(), "new");
        assert!(
            model.clone().settle(Lba(3), &Content::Empty).is_err(),
            "older than the last flush"
        );
    }

    #[test]
    fn only_whole_blocks_are_discarded() {
        let mut model = ReferenceDevice::new();
        for lba in 0..3 {
            model.write(Lba(lba), pattern(lba), true);
        }
        model.discard(SectorRange::new(1, 2 * 8));
        let read = [pattern(0), Content::Empty, pattern(2)];
        assert_eq!(model.check_read(BlockRange::new(Lba(0), 3), &read), Ok(()));
    }
}
