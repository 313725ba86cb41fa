//! All that a file system holds, in a form that can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::apply::comparable;
use crate::{Attr, Error, FileSystem, Ino};

const PAGE: usize = 4096;

/// Entries by path.
pub type Tree = BTreeMap<String, Entry>;

/// What is known of a name.
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

/// Where two trees first differ, as a sentence.
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
        return format!("attributes of {path}: {}", lines_that_differ(&expected.attr, &found.attr));
    }
    if expected.pages != found.pages {
        let all: BTreeSet<_> = expected.pages.keys().chain(found.pages.keys()).collect();
        let differs = |index: &&u64| expected.pages.get(index) != found.pages.get(index);
        let pages: Vec<_> = all.into_iter().filter(differs).take(8).collect();
        return format!("content of {path} differs in pages {pages:?}");
    }
    format!("{path}: {}", lines_that_differ(expected, found))
}

/// The fields in which two values of a type differ.
fn lines_that_differ(expected: &impl Debug, found: &impl Debug) -> String {
    let (expected, found) = (format!("{expected:#?}"), format!("{found:#?}"));
    let pairs = expected.lines().zip(found.lines()).filter(|(expected, found)| expected != found);
    let shown = pairs.map(|(expected, found)| {
        format!(
            "expected {}, found {}",
            expected.trim().trim_end_matches(','),
            found.trim().trim_end_matches(',')
        )
    });
    shown.collect::<Vec<_>>().join("; ")
}

struct Reader<'a, F> {
    fs: &'a mut F,
    tree: Tree,
    /// Paths by inode: file systems list in orders of their own, so which path comes first is known at the end.
    paths: FxHashMap<Ino, Vec<String>>,
}

pub(super) fn read_tree<F: FileSystem>(fs: &mut F, held: &[Option<Ino>]) -> Result<Tree, Error> {
    let root = fs.root();
    let mut reader = Reader { fs, tree: Tree::new(), paths: FxHashMap::default() };
    reader.add("/".to_string(), root)?;
    for (slot, ino) in held.iter().enumerate() {
        if let Some(ino) = ino {
            reader.add(format!("held {slot}"), *ino)?;
        }
    }
    Ok(reader.finish())
}

impl<F: FileSystem> Reader<'_, F> {
    fn finish(mut self) -> Tree {
        for mut paths in self.paths.into_values() {
            paths.sort();
            for path in &paths {
                self.tree.entry(path.clone()).and_modify(|entry| entry.same_as.clone_from(&paths[0]));
            }
        }
        self.tree
    }

    fn add(&mut self, path: String, ino: Ino) -> Result<(), Error> {
        let known = self.paths.entry(ino).or_default();
        known.push(path.clone());
        if let [first, _, ..] = known.as_slice()
            && let Some(entry) = self.tree.get(first).cloned()
        {
            self.tree.insert(path, entry);
            return Ok(());
        }
        let attr = self.fs.getattr(ino)?;
        let pages = if attr.kind() == 0o100_000 { self.pages(&attr)? } else { BTreeMap::new() };
        let target = if attr.kind() == 0o120_000 { self.fs.readlink(ino)? } else { Vec::new() };
        let xattrs = self.xattrs(ino)?;
        let entry = Entry { attr: comparable(attr), same_as: String::new(), pages, target, xattrs };
        self.tree.insert(path.clone(), entry);
        if attr.is_dir() { self.add_children(&path, ino) } else { Ok(()) }
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
                let wrong = format!("{shown} is listed as {ino:?} of type {kind:o}, and is {attr:?}");
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
