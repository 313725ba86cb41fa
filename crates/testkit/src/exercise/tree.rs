//! All that a file system holds, in a form that can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hasher;

use dovetail_vfs::mode::{S_IFLNK, S_IFREG};
use dovetail_vfs::{Attr, Error, FileSystem, Ino};
use rustc_hash::{FxHashMap, FxHasher};

use super::apply::comparable;

const PAGE: usize = 4096;

/// Entries by path.
pub type Tree = BTreeMap<String, Entry>;

/// Attributes and content of a name, as they are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Attributes, without numbers, blocks, and sizes of directories.
    pub attr: Attr,
    /// The first path that leads to the same inode.
    pub same_as: String,
    /// Pages of a regular file that are not all zeros, with a hash of each.
    pub pages: BTreeMap<u64, u64>,
    /// The target of a symbolic link.
    pub target: Vec<u8>,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// First difference between two trees, as a sentence.
pub fn first_difference(expected: &Tree, found: &Tree) -> Option<String> {
    for (path, entry) in expected {
        match found.get(path) {
            None => return Some(format!("{path} is missing")),
            Some(other) if other != entry => return Some(difference(path, entry, other)),
            Some(_) => {}
        }
    }
    let more = found.keys().find(|path| !expected.contains_key(*path))?;
    Some(format!("{more} should not be there"))
}

fn difference(path: &str, expected: &Entry, found: &Entry) -> String {
    if expected.attr != found.attr {
        return format!(
            "attributes of {path}: {}",
            fields_that_differ(&expected.attr, &found.attr)
        );
    }
    if expected.pages != found.pages {
        let all: BTreeSet<_> = expected.pages.keys().chain(found.pages.keys()).collect();
        let differs = |index: &&u64| expected.pages.get(index) != found.pages.get(index);
        let pages: Vec<_> = all.into_iter().filter(differs).take(8).collect();
        return format!("content of {path} differs in pages {pages:?}");
    }
    format!("{path}: {}", fields_that_differ(expected, found))
}

fn fields_that_differ(expected: &impl Debug, found: &impl Debug) -> String {
    let (expected, found) = (format!("{expected:#?}"), format!("{found:#?}"));
    let shown = |line: &str| line.trim().trim_end_matches(',').to_string();
    let pairs = expected.lines().zip(found.lines()).filter(|(expected, found)| expected != found);
    let named = pairs
        .map(|(expected, found)| format!("expected {}, found {}", shown(expected), shown(found)));
    named.collect::<Vec<_>>().join("; ")
}

struct Reader<'a, F> {
    fs: &'a mut F,
    tree: Tree,
    seen: FxHashMap<Ino, String>,
}

pub(super) fn read_tree<F: FileSystem>(fs: &mut F, held: &[Option<Ino>]) -> Result<Tree, Error> {
    let root = fs.root();
    let mut reader = Reader { fs, tree: Tree::new(), seen: FxHashMap::default() };
    reader.add("/".to_string(), root)?;
    for (slot, ino) in held.iter().enumerate() {
        if let Some(ino) = ino {
            reader.add(format!("held {slot}"), *ino)?;
        }
    }
    Ok(reader.tree)
}

impl<F: FileSystem> Reader<'_, F> {
    fn add(&mut self, path: String, ino: Ino) -> Result<(), Error> {
        let attr = self.fs.getattr(ino)?;
        let first_time = !self.seen.contains_key(&ino);
        let same_as = self.seen.entry(ino).or_insert_with(|| path.clone()).clone();
        let is = |kind: u16| first_time && attr.kind() == kind;
        let pages = if is(S_IFREG) { self.pages(&attr)? } else { BTreeMap::new() };
        let target = if is(S_IFLNK) { self.fs.readlink(ino)? } else { Vec::new() };
        let xattrs = self.xattrs(ino)?;
        self.tree
            .insert(path.clone(), Entry { attr: comparable(attr), same_as, pages, target, xattrs });
        if attr.is_dir() && first_time { self.add_children(&path, ino) } else { Ok(()) }
    }

    fn add_children(&mut self, path: &str, dir: Ino) -> Result<(), Error> {
        let mut entries = Vec::new();
        self.fs.readdir(dir, 0, &mut |entry| {
            entries.push((entry.name, entry.ino, entry.kind));
            true
        })?;
        entries.sort(); // which of an inode's names comes first must not hang on the order of the disk
        for (name, ino, kind) in entries {
            let shown = format!("{}/{}", path.trim_end_matches('/'), name.escape_ascii());
            let attr = self.fs.lookup(dir, &name)?;
            if attr.ino != ino || attr.kind() != kind {
                let wrong =
                    format!("{shown} is listed as {ino:?} of type {kind:o}, and is {attr:?}");
                return Err(Error::Corrupt(wrong));
            }
            if name != b"." && name != b".." {
                self.add(shown, ino)?;
            }
        }
        Ok(())
    }

    fn xattrs(&mut self, ino: Ino) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
        let names = self.fs.listxattr(ino)?;
        names.into_iter().map(|name| Ok((name.clone(), self.fs.getxattr(ino, &name)?))).collect()
    }

    fn pages(&mut self, attr: &Attr) -> Result<BTreeMap<u64, u64>, Error> {
        let mut pages = BTreeMap::new();
        let mut offset = 0;
        while let Some(data) = self.next_data(attr.ino, offset)? {
            let first = data / PAGE as u64;
            let mut bytes = [0; PAGE];
            let len = self.fs.read(attr.ino, first * PAGE as u64, &mut bytes)?;
            if bytes[..len].iter().any(|&byte| byte != 0) {
                pages.insert(first, hash(&bytes[..len]));
            }
            offset = (first + 1) * PAGE as u64;
        }
        Ok(pages)
    }

    fn next_data(&mut self, ino: Ino, offset: u64) -> Result<Option<u64>, Error> {
        match self.fs.seek_data(ino, offset) {
            Err(Error::BeyondEnd) => Ok(None),
            found => found.map(Some),
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
