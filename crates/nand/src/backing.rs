//! A store that keeps the flash beyond the life of the process: it is told of every change, and a
//! flash is restored from it.

use dovetail_block::Content;

use crate::cells::CellMode;
use crate::geometry::{BlockId, Ppn};
use crate::page::{Oob, Seq};

/// Keeps the flash: it is told of every change, in order. It has no way to fail. It remembers why
/// it could not keep something, and tells whoever asks it to make things durable.
pub trait BackingStore: std::fmt::Debug + Send {
    /// A page was programmed; a subpage of it is `None` where its content is lost.
    fn programmed(&mut self, ppn: Ppn, oob: Oob, subpages: &[Option<Content>]);

    /// A page was used up without content.
    fn spoiled(&mut self, ppn: Ppn);

    /// Returns what was told so far is to be durable before anything that is told from now on.
    fn barrier(&mut self);

    /// A block was erased for the `erases`th time; `last_seq` is the highest sequence number that
    /// it ever had.
    fn erased(&mut self, block: BlockId, erases: u32, last_seq: Seq);

    /// An erased block will be filled in another mode.
    fn mode_set(&mut self, block: BlockId, erases: u32, last_seq: Seq, mode: CellMode);

    /// A block was marked bad.
    fn retired(&mut self, block: BlockId, erases: u32, last_seq: Seq, mode: CellMode);
}

/// A page as it was stored: `None` where it was used up without content.
pub type StoredPage = Option<(Oob, Vec<Option<Content>>)>;

/// A block as it was stored.
#[derive(Clone, Debug, Default)]
pub struct StoredBlock {
    /// Number of its erases.
    pub erases: u32,
    /// Set if it is marked bad.
    pub bad: bool,
    /// The way in which it is filled.
    pub mode: CellMode,
    /// The highest sequence number that it had before it was erased last.
    pub last_seq: Seq,
    /// Its pages in order, as far as they are used.
    pub pages: Vec<StoredPage>,
}
