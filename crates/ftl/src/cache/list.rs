//! Doubly linked lists through slots of a slab: moving an entry to an end of its list takes no
//! search.

pub(super) const NIL: u32 = u32::MAX;

/// The neighbours of a slot within the list that it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    prev: u32,
    next: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { prev: NIL, next: NIL }
    }
}

/// A list; its front is what was used most recently.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NIL, tail: NIL, len: 0 }
    }
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least recently used.
    pub(super) fn back(&self) -> Option<u32> {
        (self.tail != NIL).then_some(self.tail)
    }

    pub(super) fn push_front(&mut self, links: &mut [Links], slot: u32) {
        links[slot as usize] = Links { prev: NIL, next: self.head };
        match self.head {
            NIL => self.tail = slot,
            head => links[head as usize].prev = slot,
        }
        self.head = slot;
        self.len += 1;
    }

    /// Puts `slot`, which is in no list, right behind `before`: used a little less recently.
    pub(super) fn insert_behind(&mut self, links: &mut [Links], slot: u32, before: u32) {
        let next = links[before as usize].next;
        links[slot as usize] = Links { prev: before, next };
        links[before as usize].next = slot;
        match next {
            NIL => self.tail = slot,
            next => links[next as usize].prev = slot,
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, links: &mut [Links], slot: u32) {
        let Links { prev, next } = links[slot as usize];
        match prev {
            NIL => self.head = next,
            prev => links[prev as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => links[next as usize].prev = prev,
        }
        self.len -= 1;
    }

    pub(super) fn promote(&mut self, links: &mut [Links], slot: u32) {
        if self.head != slot {
            self.remove(links, slot);
            self.push_front(links, slot);
        }
    }

    /// The slot before `slot`: used more recently.
    pub(super) fn before(links: &[Links], slot: u32) -> Option<u32> {
        let prev = links[slot as usize].prev;
        (prev != NIL).then_some(prev)
    }
}
