//! All that a file system holds at one moment, by inode, sharing with the moment before what has
//! not changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_vfs::mode::{S_IFDIR, S_IFLNK, S_IFREG, S_ISGID, S_ISUID};
use dovetail_vfs::{Attr, Error, FileSystem, Ino};

use crate::Model;

const PAGE: usize = 4096;

/// Pages that are not all zeros, each continued with zeros after the end of the file.
pub(super) type Pages = BTreeMap<u64, Arc<[u8; PAGE]>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Directory(BTreeMap<Vec<u8>, Ino>),
    File(Pages),
    Link(Vec<u8>),
    Special,
}

/// An inode.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Number of edits of the model's inode: as long as that stays, so does the rest.
    pub(super) edits: Option<u64>,
    pub(super) attr: Attr,
    pub(super) body: Body,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A file system's content at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) root: Ino,
    nodes: BTreeMap<Ino, Arc<Node>>,
    /// Files that are open and have lost their name.
    unnamed: BTreeMap<Ino, Arc<Node>>,
}

impl Snapshot {
    /// Reads everything that has a name.
    ///
    /// # Errors
    /// A read error of the file system.
    pub fn read<F: FileSystem>(fs: &mut F) -> Result<Self, Error> {
        Self::collect(fs.root(), |ino| read_node(fs, ino, None).map(Arc::new))
    }

    /// The model's content; `before` is what it was earlier.
    pub(super) fn of_model(model: &mut Model, before: Option<&Self>) -> Result<Self, Error> {
        let mut now = Self::collect(model.root(), |ino| node_now(model, before, ino))?;
        for ino in before.into_iter().flat_map(Self::files) {
            if !now.nodes.contains_key(&ino) && model.edits(ino).is_some() {
                now.unnamed.insert(ino, node_now(model, before, ino)?);
            }
        }
        Ok(now)
    }

    fn collect(
        root: Ino,
        mut node_of: impl FnMut(Ino) -> Result<Arc<Node>, Error>,
    ) -> Result<Self, Error> {
        let mut nodes = BTreeMap::new();
        let mut todo = vec![root];
        while let Some(ino) = todo.pop() {
            if nodes.contains_key(&ino) {
                continue;
            }
            let node = node_of(ino)?;
            if let Body::Directory(entries) = &node.body {
                todo.extend(entries.values());
            }
            nodes.insert(ino, node);
        }
        Ok(Self { root, nodes, unnamed: BTreeMap::new() })
    }

    /// Regular files, with a name or without.
    fn files(&self) -> impl Iterator<Item = Ino> {
        let all = self.nodes.iter().chain(&self.unnamed);
        all.filter(|(_, node)| matches!(node.body, Body::File(_))).map(|(ino, _)| *ino)
    }

    /// An inode that has a name.
    pub(super) fn node(&self, ino: Ino) -> Option<&Node> {
        self.nodes.get(&ino).map(|node| &**node)
    }

    /// An inode that has a name, or had one and is open.
    pub(super) fn any_node(&self, ino: Ino) -> Option<&Arc<Node>> {
        self.nodes.get(&ino).or_else(|| self.unnamed.get(&ino))
    }

    /// The entries of a directory; `None` for everything else.
    pub(super) fn entries(&self, dir: Ino) -> Option<&BTreeMap<Vec<u8>, Ino>> {
        match &self.node(dir)?.body {
            Body::Directory(entries) => Some(entries),
            _ => None,
        }
    }

    /// Every directory with its entries.
    pub(super) fn directories(&self) -> impl Iterator<Item = (Ino, &BTreeMap<Vec<u8>, Ino>)> {
        self.nodes.iter().filter_map(|(ino, node)| match &node.body {
            Body::Directory(entries) => Some((*ino, entries)),
            _ => None,
        })
    }

    /// Checks that another file system holds the same under the same names; attributes are compared
    /// as far as they are promised (`meta`).
    ///
    /// # Errors
    /// The first difference.
    pub fn same_tree(&self, other: &Self) -> Result<(), String> {
        let mut todo = vec![(self.root, other.root, String::new())];
        while let Some((ours, theirs, path)) = todo.pop() {
            let (Some(ours), Some(theirs)) = (self.node(ours), other.node(theirs)) else {
                continue;
            };
            let same_body = match (&ours.body, &theirs.body) {
                (Body::Directory(a), Body::Directory(b)) => {
                    let pairs = a.iter().zip(b);
                    todo.extend(pairs.map(|((name, a), (_, b))| (*a, *b, child(&path, name))));
                    a.keys().eq(b.keys())
                }
                (a, b) => a == b,
            };
            if !same_body || meta(&ours.attr) != meta(&theirs.attr) || ours.xattrs != theirs.xattrs
            {
                return Err(format!("{path}/ was {:?}, is {:?}", ours.attr, theirs.attr));
            }
        }
        Ok(())
    }
}

/// The path of an entry, to be shown.
pub(super) fn child(path: &str, name: &[u8]) -> String {
    format!("{path}/{}", name.escape_ascii())
}

/// Attributes that must be as promised: not the numbers, blocks, link counts, access times and
/// set-id bits, nor the sizes of what is neither a regular file nor a symbolic link.
pub(super) fn meta(attr: &Attr) -> Attr {
    let size = if matches!(attr.kind(), S_IFREG | S_IFLNK) { attr.size } else { 0 };
    let zero = Attr::default();
    Attr {
        ino: zero.ino,
        blocks: 0,
        links: 0,
        generation: 0,
        atime: zero.atime,
        size,
        mode: attr.mode & !(S_ISUID | S_ISGID),
        ..*attr
    }
}

/// An inode of the model, shared with `before` unless it was edited since.
fn node_now(model: &mut Model, before: Option<&Snapshot>, ino: Ino) -> Result<Arc<Node>, Error> {
    let before = before.and_then(|before| before.any_node(ino));
    let edits = model.edits(ino);
    if let Some(same) = before.filter(|node| edits.is_some() && node.edits == edits) {
        return Ok(Arc::clone(same));
    }
    let node = read_node(model, ino, before.map(|node| &**node))?;
    Ok(Arc::new(Node { edits, ..node }))
}

fn read_node<F: FileSystem>(fs: &mut F, ino: Ino, before: Option<&Node>) -> Result<Node, Error> {
    let attr = fs.getattr(ino)?;
    let body = match attr.kind() {
        S_IFDIR => Body::Directory(read_entries(fs, ino)?),
        S_IFREG => Body::File(read_pages(fs, &attr, before)?),
        S_IFLNK => Body::Link(fs.readlink(ino)?),
        _ => Body::Special,
    };
    let names = fs.listxattr(ino)?;
    let xattrs = names.into_iter().map(|name| Ok((name.clone(), fs.getxattr(ino, &name)?)));
    Ok(Node { edits: None, attr, body, xattrs: xattrs.collect::<Result<_, Error>>()? })
}

fn read_entries<F: FileSystem>(fs: &mut F, ino: Ino) -> Result<BTreeMap<Vec<u8>, Ino>, Error> {
    let mut entries = BTreeMap::new();
    fs.readdir(ino, 0, &mut |entry| {
        entries.insert(entry.name, entry.ino);
        true
    })?;
    entries.retain(|name, _| name != b"." && name != b"..");
    Ok(entries)
}

fn read_pages<F: FileSystem>(
    fs: &mut F,
    attr: &Attr,
    before: Option<&Node>,
) -> Result<Pages, Error> {
    let old = match before.map(|node| &node.body) {
        Some(Body::File(pages)) => Some(pages),
        _ => None,
    };
    let mut pages = Pages::new();
    let mut offset = 0;
    while let Some(data) = next_data(fs, attr, offset)? {
        let index = data / PAGE as u64;
        let mut page = [0; PAGE];
        let len = fs.read(attr.ino, index * PAGE as u64, &mut page)?;
        page[len..].fill(0);
        if page != [0; PAGE] {
            let same = old.and_then(|old| old.get(&index)).filter(|old| ***old == page);
            pages.insert(index, same.cloned().unwrap_or_else(|| Arc::new(page)));
        }
        offset = (index + 1) * PAGE as u64;
    }
    Ok(pages)
}

fn next_data<F: FileSystem>(fs: &mut F, attr: &Attr, offset: u64) -> Result<Option<u64>, Error> {
    if offset >= attr.size {
        return Ok(None);
    }
    match fs.seek_data(attr.ino, offset) {
        Err(Error::BeyondEnd) => Ok(None),
        found => found.map(Some),
    }
}
