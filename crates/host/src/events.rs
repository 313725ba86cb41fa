//! Events that plans have signalled.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::EventId;
use rustc_hash::FxHashSet;

/// A handle on the events signalled so far: the machine adds to them, whoever makes the plans may
/// have to know.
#[derive(Clone, Debug, Default)]
pub struct Events(Rc<RefCell<FxHashSet<EventId>>>);

impl Events {
    /// Records that a plan signalled the event.
    pub(crate) fn signal(&self, event: EventId) {
        self.0.borrow_mut().insert(event);
    }

    pub(crate) fn is_signalled(&self, event: EventId) -> bool {
        self.0.borrow().contains(&event)
    }
}
