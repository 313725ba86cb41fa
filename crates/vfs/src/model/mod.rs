//! The reference model: a file system in memory, simple enough to be obviously right.
//!
//! What it does is what Linux and F2FS do: a real file system must give the same results and attributes, but for inode
//! numbers, generations, blocks and the sizes of directories. What it holds is lost with it; there is nothing to recover.

mod calls;
mod content;
mod names;
mod xattr;

use std::collections::BTreeMap;

use crate::{Attr, Caller, Error, Ino, MAX_NAME, Timestamp};
use content::FileContent;

const KIND: u16 = 0o170_000;
const DIR: u16 = 0o040_000;
const REGULAR: u16 = 0o100_000;
const SYMLINK: u16 = 0o120_000;
const SETGID: u16 = 0o2000;

/// What a file system can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest file, in bytes.
    pub file_size: u64,
    /// All extended attributes of an inode, in bytes: 4 for each, its name without prefix, its value, together rounded
    /// up to 4.
    pub xattr_bytes: usize,
    /// The most names of an inode.
    pub links: u32,
}

impl Limits {
    /// F2FS with 50 words for attributes in the inode and a node of 4072 bytes for more, less a header of 24 bytes, on a
    /// volume without extra attributes. The size is what Linux 6.1 allows: two direct, two indirect and one double
    /// indirect node of 1018 pointers.
    pub const F2FS: Self = Self {
        file_size: (2 * 1018 + 2 * 1018 * 1018 + 1018 * 1018 * 1018) * 4096,
        xattr_bytes: 200 + 4072 - 24,
        links: u32::MAX,
    };
}

#[derive(Clone, Debug)]
enum Kind {
    File(FileContent),
    Dir(Directory),
    Symlink(Vec<u8>),
    /// A device, fifo or socket.
    Special,
}

#[derive(Clone, Debug)]
struct Directory {
    parent: Ino,
    /// By when they were added, which is the cookie of an entry.
    entries: BTreeMap<u64, (Vec<u8>, Ino)>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Node {
    mode: u16,
    uid: u32,
    gid: u32,
    links: u32,
    rdev: (u32, u32),
    atime: Timestamp,
    mtime: Timestamp,
    ctime: Timestamp,
    holds: u64,
    kind: Kind,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A file system in memory.
#[derive(Clone, Debug)]
pub struct Model {
    nodes: BTreeMap<Ino, Node>,
    next: u64,
    limits: Limits,
}

const ROOT: Ino = Ino(1);

impl Model {
    /// An empty file system whose root belongs to the caller, with permissions 0755.
    pub fn new(limits: Limits, caller: &Caller) -> Self {
        let root = Node::new(caller, DIR | 0o755, (0, 0), Kind::Dir(Directory::new(ROOT)));
        Self { nodes: BTreeMap::from([(ROOT, root)]), next: 2, limits }
    }

    fn node(&self, ino: Ino) -> Result<&Node, Error> {
        self.nodes.get(&ino).ok_or(Error::NotFound)
    }

    fn node_mut(&mut self, ino: Ino) -> Result<&mut Node, Error> {
        self.nodes.get_mut(&ino).ok_or(Error::NotFound)
    }

    fn dir(&self, ino: Ino) -> Result<&Directory, Error> {
        match &self.node(ino)?.kind {
            Kind::Dir(dir) => Ok(dir),
            _ => Err(Error::NotADirectory),
        }
    }

    fn dir_mut(&mut self, ino: Ino) -> Result<&mut Directory, Error> {
        match &mut self.node_mut(ino)?.kind {
            Kind::Dir(dir) => Ok(dir),
            _ => Err(Error::NotADirectory),
        }
    }

    /// The content of a regular file.
    fn file_mut(&mut self, ino: Ino) -> Result<&mut FileContent, Error> {
        match &mut self.node_mut(ino)?.kind {
            Kind::File(content) => Ok(content),
            Kind::Dir(_) => Err(Error::IsADirectory),
            _ => Err(Error::Invalid("only regular files have content")),
        }
    }

    fn attr(&self, ino: Ino) -> Result<Attr, Error> {
        let node = self.node(ino)?;
        let (size, blocks) = match &node.kind {
            Kind::File(content) => (content.size(), content.blocks()),
            Kind::Symlink(target) => (target.len() as u64, 8),
            Kind::Dir(dir) => (dir.entries.len() as u64, 8),
            Kind::Special => (0, 0),
        };
        Ok(Attr {
            ino,
            mode: node.mode,
            links: node.links,
            uid: node.uid,
            gid: node.gid,
            rdev: node.rdev,
            size,
            blocks,
            atime: node.atime,
            mtime: node.mtime,
            ctime: node.ctime,
            generation: 0,
        })
    }

    /// Content changed now.
    fn touch(&mut self, ino: Ino, now: Timestamp) -> Result<(), Error> {
        let node = self.node_mut(ino)?;
        (node.mtime, node.ctime) = (now, now);
        Ok(())
    }

    /// An inode without names goes when nobody holds it.
    fn drop_if_gone(&mut self, ino: Ino) {
        if self.nodes.get(&ino).is_some_and(|node| node.links == 0 && node.holds == 0) {
            self.nodes.remove(&ino);
        }
    }
}

impl Node {
    fn new(caller: &Caller, mode: u16, rdev: (u32, u32), kind: Kind) -> Self {
        Self {
            mode,
            uid: caller.uid,
            gid: caller.gid,
            links: if mode & KIND == DIR { 2 } else { 1 },
            rdev,
            atime: caller.now,
            mtime: caller.now,
            ctime: caller.now,
            holds: 0,
            kind,
            xattrs: BTreeMap::new(),
        }
    }

    fn is_dir(&self) -> bool {
        self.mode & KIND == DIR
    }
}

impl Directory {
    fn new(parent: Ino) -> Self {
        Self { parent, entries: BTreeMap::new(), next: 3 }
    }

    fn find(&self, name: &[u8]) -> Option<(u64, Ino)> {
        self.entries.iter().find(|(_, entry)| entry.0 == name).map(|(&cookie, entry)| (cookie, entry.1))
    }

    fn insert(&mut self, name: &[u8], ino: Ino) {
        self.entries.insert(self.next, (name.to_vec(), ino));
        self.next += 1;
    }
}

fn check_name(name: &[u8]) -> Result<(), Error> {
    if name.len() > MAX_NAME {
        return Err(Error::NameTooLong);
    }
    if name.is_empty() || name.iter().any(|&byte| byte == 0 || byte == b'/') {
        return Err(Error::Invalid("a name has 1 to 255 bytes without NUL and slash"));
    }
    Ok(())
}
