//! Effect of a batch of renames on what is known of blocks.

use dovetail_block::{Lba, Rename};

use crate::sparse::Sparse;

/// The open batch: old and new addresses. Until it ends both are the same block; what is written to
/// one of them meanwhile is not known of the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenBatch(Vec<(Lba, Lba)>);

impl OpenBatch {
    /// A batch has begun, and the device has filled in the addresses.
    pub(crate) fn begin<T: Default + Clone + PartialEq>(
        &mut self,
        blocks: &mut Sparse<T>,
        renames: &[Rename],
    ) {
        self.0 = renames.iter().filter_map(|rename| Some((rename.from, rename.to?))).collect();
        for &(from, to) in &self.0 {
            let known = blocks.get(from).clone();
            blocks.set(to, known);
        }
    }

    /// The names that lead nowhere when it ends: the old ones, or the new ones.
    pub(crate) fn dropped(&self, keep: bool) -> Vec<Lba> {
        self.0.iter().map(|&(from, to)| if keep { from } else { to }).collect()
    }

    /// It ends: the old addresses lead nowhere, or the new ones.
    pub(crate) fn end<T: Default + Clone + PartialEq>(
        &mut self,
        blocks: &mut Sparse<T>,
        keep: bool,
    ) {
        for (from, to) in self.0.drain(..) {
            blocks.take(if keep { from } else { to });
        }
    }
}
