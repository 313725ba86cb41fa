//! The entries of a directory.

use std::collections::BTreeMap;

use dovetail_vfs::Ino;

/// Cookies of "." and "..", after which a listing goes on.
pub(super) const AFTER_DOT: u64 = 1;
pub(super) const AFTER_DOTS: u64 = 2;

/// Names, in the order in which they were added: that order makes cookies that stay right.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    parent: Ino,
    entries: BTreeMap<Vec<u8>, (u64, Ino)>,
    by_cookie: BTreeMap<u64, Vec<u8>>,
    last_cookie: u64,
}

impl Directory {
    pub(super) fn new(parent: Ino) -> Self {
        Self {
            parent,
            entries: BTreeMap::new(),
            by_cookie: BTreeMap::new(),
            last_cookie: AFTER_DOTS,
        }
    }

    pub(super) fn parent(&self) -> Ino {
        self.parent
    }

    pub(super) fn set_parent(&mut self, parent: Ino) {
        self.parent = parent;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes that stat shows.
    pub(super) fn size(&self) -> u64 {
        4096
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Ino> {
        self.entries.get(name).map(|&(_, ino)| ino)
    }

    pub(super) fn insert(&mut self, name: &[u8], ino: Ino) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.1 = ino;
            return;
        }
        self.last_cookie += 1;
        self.entries.insert(name.to_vec(), (self.last_cookie, ino));
        self.by_cookie.insert(self.last_cookie, name.to_vec());
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some((cookie, _)) = self.entries.remove(name) {
            self.by_cookie.remove(&cookie);
        }
    }

    /// Entries after `cookie`: the cookie after each, its name and inode. "." and ".." are not
    /// among them.
    pub(super) fn list(&self, cookie: u64) -> impl Iterator<Item = (u64, &[u8], Ino)> {
        let after = self.by_cookie.range(cookie.saturating_add(1)..);
        after.filter_map(|(&cookie, name)| Some((cookie, name.as_slice(), self.get(name)?)))
    }
}
