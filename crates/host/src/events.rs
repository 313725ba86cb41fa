//! Events that have come.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::EventId;
use rustc_hash::FxHashSet;

/// A handle on the events that have come: the machine adds to them, and whoever makes the plans may have to know.
#[derive(Clone, Debug, Default)]
pub struct Events(Rc<RefCell<FxHashSet<EventId>>>);

impl Events {
    /// A plan that brings it about got there.
    pub(crate) fn come(&self, event: EventId) {
        self.0.borrow_mut().insert(event);
    }

    pub(crate) fn has_come(&self, event: EventId) -> bool {
        self.0.borrow().contains(&event)
    }
}
