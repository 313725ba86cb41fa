//! Events that plans have signalled, and pages that are not written back.

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::EventId;
use rustc_hash::FxHashSet;

/// A handle on the events signalled so far and on the pages that are dirty or on their way to the
/// drive: the machine and whoever makes the plans both change them.
#[derive(Clone, Debug, Default)]
pub struct Events(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    signalled: FxHashSet<EventId>,
    dirty: usize,
    on_their_way: usize,
}

impl Events {
    /// Records that a plan signalled the event.
    pub(crate) fn signal(&self, event: EventId) {
        self.0.borrow_mut().signalled.insert(event);
    }

    pub(crate) fn is_signalled(&self, event: EventId) -> bool {
        self.0.borrow().signalled.contains(&event)
    }

    pub(crate) fn set_dirty(&self, pages: usize) {
        self.0.borrow_mut().dirty = pages;
    }

    /// So many more pages are on their way.
    pub(crate) fn send(&self, pages: usize) {
        self.0.borrow_mut().on_their_way += pages;
    }

    /// So many of them have been written.
    pub(crate) fn written(&self, pages: usize) {
        let mut state = self.0.borrow_mut();
        state.on_their_way = state.on_their_way.saturating_sub(pages);
    }

    pub(crate) fn pages_on_their_way(&self) -> usize {
        self.0.borrow().on_their_way
    }

    /// Returns whether no more than so many pages are dirty or on their way, or none is on its way.
    pub(crate) fn has_room(&self, pages: usize) -> bool {
        let state = self.0.borrow();
        state.on_their_way == 0 || state.dirty + state.on_their_way <= pages
    }
}
