//! The reference model: a file system in memory that is simple enough to be seen to be right.
//!
//! It behaves as Linux does with F2FS: POSIX's rules for names, links, times and set-id bits,
//! F2FS's limits. A file system is compared with it after every operation ([`crate::exercise`]). It
//! keeps nothing, has no permission checks (those are the caller's), and is not meant to be fast.

mod attributes;
mod bytes;
mod directory;
mod file_system;
mod names;
mod xattr;

use std::collections::BTreeMap;

use dovetail_vfs::mode::S_IFDIR;
use dovetail_vfs::{Attr, Caller, Error, Ino, Limits, Timestamp};

use bytes::Bytes;
use directory::Directory;

/// The number of F2FS's root directory, so that comparisons are easy to read.
const ROOT: Ino = Ino(3);

#[derive(Clone, Debug)]
enum Body {
    File(Bytes),
    Directory(Directory),
    Symlink(Vec<u8>),
    /// Devices, fifos, sockets.
    Special,
}

#[derive(Clone, Debug)]
struct Node {
    attr: Attr,
    body: Body,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Number of holders that keep it, with a name or without.
    holds: u64,
    /// Number of edits.
    edits: u64,
}

/// A file system in memory.
#[derive(Clone, Debug)]
pub struct Model {
    nodes: BTreeMap<Ino, Node>,
    next: u64,
    limits: Limits,
}

impl Model {
    /// An empty file system; its root directory is of `creator`, with permissions 755.
    pub fn new(limits: Limits, creator: &Caller) -> Self {
        let mut model = Self { nodes: BTreeMap::new(), next: ROOT.0, limits };
        let root = model.add_node(S_IFDIR | 0o755, creator, Body::Directory(Directory::new(ROOT)));
        model.nodes.entry(root).and_modify(|node| node.attr.links = 2);
        model
    }

    /// Number of inodes, those without names included.
    pub fn inodes(&self) -> usize {
        self.nodes.len()
    }

    /// Number of edits of the inode: unless that changes, nothing of it does. `None` if there is no
    /// such inode.
    pub(crate) fn edits(&self, ino: Ino) -> Option<u64> {
        self.nodes.get(&ino).map(|node| node.edits)
    }

    fn node(&self, ino: Ino) -> Result<&Node, Error> {
        self.nodes.get(&ino).ok_or(Error::NotFound)
    }

    fn node_mut(&mut self, ino: Ino) -> Result<&mut Node, Error> {
        let node = self.nodes.get_mut(&ino).ok_or(Error::NotFound)?;
        node.edits += 1;
        Ok(node)
    }

    fn directory(&self, ino: Ino) -> Result<&Directory, Error> {
        match &self.node(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Error::NotADirectory),
        }
    }

    fn directory_mut(&mut self, ino: Ino) -> Result<&mut Directory, Error> {
        match &mut self.node_mut(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Error::NotADirectory),
        }
    }

    fn add_node(&mut self, mode: u16, caller: &Caller, body: Body) -> Ino {
        let ino = Ino(self.next);
        self.next += 1;
        let now = caller.now;
        let attr = Attr {
            ino,
            mode,
            uid: caller.uid,
            gid: caller.gid,
            atime: now,
            mtime: now,
            ctime: now,
            ..Attr::default()
        };
        self.nodes.insert(ino, Node { attr, body, xattrs: BTreeMap::new(), holds: 0, edits: 0 });
        ino
    }

    fn drop_if_unused(&mut self, ino: Ino) {
        if self.nodes.get(&ino).is_some_and(|node| node.attr.links == 0 && node.holds == 0) {
            self.nodes.remove(&ino);
        }
    }
}

impl Node {
    fn is_dir(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    /// Attributes as stat shows them: sizes come from the body.
    fn shown(&self) -> Attr {
        let (size, blocks) = match &self.body {
            Body::File(bytes) => (bytes.size(), bytes.pages() * 8),
            Body::Directory(directory) => (directory.size(), 8),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Special => (0, 0),
        };
        Attr { size, blocks, ..self.attr }
    }

    fn changed(&mut self, now: Timestamp) {
        self.attr.ctime = now;
    }

    fn modified(&mut self, now: Timestamp) {
        self.attr.mtime = now;
        self.attr.ctime = now;
    }

    fn file(&self) -> Result<&Bytes, Error> {
        match &self.body {
            Body::File(bytes) => Ok(bytes),
            Body::Directory(_) => Err(Error::IsADirectory),
            _ => Err(Error::Invalid("it is no regular file")),
        }
    }

    fn file_mut(&mut self) -> Result<&mut Bytes, Error> {
        match &mut self.body {
            Body::File(bytes) => Ok(bytes),
            Body::Directory(_) => Err(Error::IsADirectory),
            _ => Err(Error::Invalid("it is no regular file")),
        }
    }
}

#[cfg(test)]
mod tests;
