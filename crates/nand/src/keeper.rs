//! What is on the flash, told to someone who keeps it beyond the life of the process, and taken from there again.

use dovetail_block::Content;

use crate::geometry::{BlockId, Ppn};
use crate::page::{Oob, Seq};

/// Is told of every change of the flash, in order. It has no way to fail: it remembers why it could not keep something,
/// and tells whoever asks it to make things durable.
pub trait Keeper: std::fmt::Debug + Send {
    /// A page was programmed; a part of it is `None` where its content is lost.
    fn programmed(&mut self, ppn: Ppn, oob: Oob, parts: &[Option<Content>]);

    /// A page was used up without content.
    fn spoiled(&mut self, ppn: Ppn);

    /// What was told so far is to be durable before anything that is told from now on.
    fn barrier(&mut self);

    /// A block was erased for the `erases`th time; `last_seq` is the highest sequence number that it ever had.
    fn erased(&mut self, block: BlockId, erases: u32, last_seq: Seq);

    /// A block was marked bad.
    fn retired(&mut self, block: BlockId, erases: u32, last_seq: Seq);
}

/// A page as it was kept: `None` where it was used up without content.
pub type KeptPage = Option<(Oob, Vec<Option<Content>>)>;

/// A block as it was kept.
#[derive(Clone, Debug, Default)]
pub struct KeptBlock {
    /// How often it was erased.
    pub erases: u32,
    /// Whether it is marked bad.
    pub bad: bool,
    /// The highest sequence number that it had before it was erased last.
    pub last_seq: Seq,
    /// Its pages in order, as far as they are used.
    pub pages: Vec<KeptPage>,
}
