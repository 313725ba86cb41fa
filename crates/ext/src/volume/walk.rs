//! Walking a whole tree: every entry once, directories before what they contain.

use std::collections::HashSet;

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::{Corrupt, Error};
use crate::format::{DirEntry, Ino, Inode};

/// What a walk has come to.
#[derive(Debug)]
pub struct WalkEntry {
    /// The path from where the walk began, names joined by slashes; empty for the start itself.
    pub path: Vec<u8>,
    /// The inode, or why it cannot be read. The walk goes on after an error.
    pub inode: Result<Inode, Error>,
}

/// What a walk does with a directory that it has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Go on, into the directory if it is one.
    Enter,
    /// Go on, but not into it.
    Skip,
    /// End the walk.
    Stop,
}

impl<D: BlockDevice> Volume<D> {
    /// Calls `visit` for `start` and all below it. A directory that cannot be listed is visited a second time with
    /// the error. A directory that is reached twice is an error and is not entered, so that every walk ends.
    pub fn walk(&mut self, start: Inode, mut visit: impl FnMut(&mut Self, WalkEntry) -> Visit) {
        let mut seen: HashSet<Ino> = HashSet::new();
        let mut todo = vec![(Vec::new(), start.ino)];
        while let Some((path, ino)) = todo.pop() {
            let inode = self.inode(ino);
            let inode = inode.and_then(|inode| {
                let again = inode.is_dir() && !seen.insert(ino);
                if again { Err(Corrupt::DirectoryLoop(ino).into()) } else { Ok(inode) }
            });
            let dir = inode.as_ref().ok().filter(|inode| inode.is_dir()).cloned();
            match visit(self, WalkEntry { path: path.clone(), inode }) {
                Visit::Stop => return,
                Visit::Skip => continue,
                Visit::Enter => {}
            }
            let Some(dir) = dir else { continue };
            match self.entries(&dir) {
                Ok(entries) => todo.extend(children(&path, entries)),
                Err(error) => {
                    if visit(self, WalkEntry { path, inode: Err(error) }) == Visit::Stop {
                        return;
                    }
                }
            }
        }
    }
}

/// The entries with their paths, the last name first, so that a stack gives them back in order.
fn children(path: &[u8], mut entries: Vec<DirEntry>) -> Vec<(Vec<u8>, Ino)> {
    entries.retain(|entry| !entry.is_dot());
    entries.sort_by(|a, b| b.name.cmp(&a.name));
    let join = |entry: DirEntry| {
        let mut full = path.to_vec();
        if !full.is_empty() {
            full.push(b'/');
        }
        full.extend_from_slice(&entry.name);
        (full, entry.ino)
    };
    entries.into_iter().map(join).collect()
}
