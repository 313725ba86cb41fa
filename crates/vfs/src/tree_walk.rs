//! Walking a whole tree that is read without a mount: every entry once, directories before what
//! they contain.

use std::collections::HashSet;
use std::hash::Hash;

/// Names, and what they lead to.
pub type Names<N> = Vec<(Vec<u8>, N)>;

/// A volume that can be walked.
pub trait Walk {
    /// Number of an inode.
    type Number: Copy + Eq + Hash;
    /// An inode.
    type Inode: Clone;
    /// An error of the volume.
    type Error;

    /// The inode of a number.
    ///
    /// # Errors
    /// An inode that cannot be read.
    fn inode_of(&mut self, number: Self::Number) -> Result<Self::Inode, Self::Error>;

    /// The names in a directory and what they lead to, without "." and "..".
    ///
    /// # Errors
    /// A directory that cannot be listed.
    fn names_in(&mut self, dir: &Self::Inode) -> Result<Names<Self::Number>, Self::Error>;

    /// It is a directory.
    fn is_dir(inode: &Self::Inode) -> bool;

    /// The error for a directory that is reached a second time.
    fn loop_at(number: Self::Number) -> Self::Error;
}

/// A file that a walk has come to, or an error in its place.
#[derive(Debug)]
pub struct WalkEntry<I, E> {
    /// The path from where the walk began, names joined by slashes; empty for the start itself.
    pub path: Vec<u8>,
    /// The inode, or why it cannot be read. The walk goes on after an error.
    pub inode: Result<I, E>,
}

/// Next step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Go on, into the directory if it is one.
    Enter,
    /// Go on, but not into it.
    Skip,
    /// End the walk.
    Stop,
}

/// Calls `visit` for `start` and all below it. A directory that cannot be listed is visited a
/// second time with the error. A directory that is reached twice is an error and is not entered, so
/// that every walk ends.
pub fn walk<V: Walk>(
    volume: &mut V,
    start: V::Number,
    mut visit: impl FnMut(&mut V, WalkEntry<V::Inode, V::Error>) -> Visit,
) {
    let mut seen = HashSet::new();
    let mut todo = vec![(Vec::new(), start)];
    while let Some((path, number)) = todo.pop() {
        let inode = volume.inode_of(number).and_then(|inode| {
            let again = V::is_dir(&inode) && !seen.insert(number);
            if again { Err(V::loop_at(number)) } else { Ok(inode) }
        });
        let dir = inode.as_ref().ok().filter(|inode| V::is_dir(inode)).cloned();
        match visit(volume, WalkEntry { path: path.clone(), inode }) {
            Visit::Stop => return,
            Visit::Skip => continue,
            Visit::Enter => {}
        }
        let Some(dir) = dir else { continue };
        match volume.names_in(&dir) {
            Ok(names) => todo.extend(children(&path, names)),
            Err(error) => {
                if visit(volume, WalkEntry { path, inode: Err(error) }) == Visit::Stop {
                    return;
                }
            }
        }
    }
}

/// The names with their paths, the last one first, so that a stack gives them back in order.
fn children<N>(path: &[u8], mut names: Names<N>) -> impl Iterator<Item = (Vec<u8>, N)> {
    names.sort_by(|a, b| b.0.cmp(&a.0));
    names.into_iter().map(move |(name, number)| {
        let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
        ([path, slash, &name].concat(), number)
    })
}
