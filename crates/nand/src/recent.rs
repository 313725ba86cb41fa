//! Programs and erases that may not have ended when the power goes: what a cut at a time undoes.
//!
//! State changes when an operation is issued, its time is reserved for later. To cut the power at a
//! time, what had not begun by then must be taken back, and what was under way torn. The flash
//! keeps what that needs only when asked to: tests ask, simulations do not.

use dovetail_time::{SimSpan, SimTime};

use crate::geometry::{BlockId, Ppn};
use crate::store::{SavedBlock, Store};

/// One operation and its reserved time.
#[derive(Clone, Debug)]
struct Recent {
    start: SimTime,
    end: SimTime,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Programmed(Ppn, BlockId),
    Erased(Box<SavedBlock>),
}

/// Operations in the order of issue.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentOperations {
    operations: Vec<Recent>,
}

impl RecentOperations {
    pub(crate) fn programmed(&mut self, ppn: Ppn, block: BlockId, end: SimTime, span: SimSpan) {
        self.note(end, span, Change::Programmed(ppn, block));
    }

    pub(crate) fn erased(&mut self, before: SavedBlock, end: SimTime, span: SimSpan) {
        self.note(end, span, Change::Erased(Box::new(before)));
    }

    fn note(&mut self, end: SimTime, span: SimSpan, change: Change) {
        let start = SimTime::from_ns(end.as_ns().saturating_sub(span.as_ns()));
        self.operations.push(Recent { start, end, change });
    }

    /// Start and end of each operation, in the order of issue.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (SimTime, SimTime)> {
        self.operations.iter().map(|operation| (operation.start, operation.end))
    }

    /// Forgets what had ended by `at`: no cut will come earlier.
    pub(crate) fn forget_before(&mut self, at: SimTime, store: &mut Store) {
        for ended in self.operations.extract_if(.., |operation| operation.end <= at) {
            if let Change::Erased(before) = ended.change {
                store.release(&before);
            }
        }
    }

    /// Leaves in `store` what is on flash at time `cut`: the last issued is undone first.
    pub(crate) fn cut(&mut self, cut: SimTime, store: &mut Store) {
        for operation in self.operations.drain(..).rev().filter(|operation| operation.end > cut) {
            let begun = operation.start <= cut;
            match operation.change {
                Change::Programmed(ppn, _) if begun => store.tear(ppn),
                Change::Programmed(_, block) => store.take_back(block),
                Change::Erased(before) if begun => {
                    store.blocks[before.block().0 as usize].half_erased = true;
                }
                Change::Erased(before) => store.restore(*before),
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.operations.clear();
    }
}
