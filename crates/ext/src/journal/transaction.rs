//! A transaction: what must reach the volume as a whole or not at all.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::Content;

/// Blocks with their new content, and blocks whose older copies in the log mean nothing any more.
///
/// Handles of many calls share one running transaction: each adds its blocks, and a block that is
/// there already gets the newer content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Content by block.
    pub blocks: BTreeMap<u64, Content>,
    /// Blocks that were freed.
    pub revokes: BTreeSet<u64>,
}

impl Transaction {
    /// There is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.revokes.is_empty()
    }

    /// The block has this content from now on. A revoke of it is taken back.
    pub fn write(&mut self, block: u64, content: Content) {
        self.revokes.remove(&block);
        self.blocks.insert(block, content);
    }

    /// The block is no longer in use: nothing of it may be replayed.
    pub fn revoke(&mut self, block: u64) {
        self.blocks.remove(&block);
        self.revokes.insert(block);
    }
}
