//! Search for a state that the promises allow and that explains what is found after a power cut.
//!
//! There must be a base: the state after some operation, at most the one that was under way. It is
//! no earlier than the last sync that had returned, and for each directory that was fsynced (or
//! fdatasynced) no earlier than the last change of a name in it: both kinds of file system write
//! names in the order of the operations. What is found is the base with each file rolled forward
//! that was fsynced after it, in order:
//! - its content, size and target are as of its last fsync, its attributes and extended attributes
//!   as well; after an fdatasync they may be those of any moment since the base.
//! - a file that the base does not have gets the name of its fsync, in the place of whatever has
//!   that name in the base.
//! - an fsync under way counts or not. Unless fsyncs are atomic, its file may be anything then: the
//!   device may keep the nodes that were written and lose the content that they lead to, until the
//!   flush at the end.
//!
//! Each block of content (4096 bytes, or what the file system says) holds what it held at some
//! moment since it was last made durable, by an fsync of its file or a sync: a checkpoint for
//! another file's sake need not write it, and file systems overwrite in place. Writes to an
//! open file that has lost its name count, too, as long as the loss is not durable.
//!
//! Updates may wait for their fsync: then a block that was there ever since holds what it held when
//! it was made durable.
//!
//! Everything else is as in the base: a name that was added, changed or taken away after it is as
//! it was.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_vfs::{Guarantees, Ino};

use super::history::{History, Promise};
use super::snapshot::{Body, Node, Snapshot, child, meta};

const PAGE: usize = 4096;

/// A state that the promises allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The operation after which the names were as they were found.
    pub base: usize,
}

/// Finds a base that explains what is found, `complete` being the last operation that was through.
///
/// # Errors
/// A difference from the base that explains most.
pub fn explain(
    history: &History,
    complete: usize,
    guarantees: Guarantees,
    found: &Snapshot,
) -> Result<Explained, String> {
    let first = history.floor(complete);
    let last = (complete + 1).min(history.last());
    let unfinished = match history.promise(last) {
        Some(Promise::File { ino, .. }) if last > complete && !guarantees.atomic_fsync => Some(ino),
        _ => None,
    };
    let mut best: Option<(usize, String)> = None;
    for base in (first..=last).rev() {
        for upto in BTreeSet::from([complete.max(base), last]) {
            let mut expected = RolledForward::new(history, base, upto, last);
            expected.unit = guarantees.content_unit;
            expected.updates_wait = guarantees.updates_wait;
            expected.times = guarantees.times;
            expected.unfinished = unfinished.filter(|_| upto > complete);
            match expected.compare(found) {
                Ok(()) => return Ok(Explained { base }),
                Err((matched, what)) => {
                    if best.as_ref().is_none_or(|(most, _)| matched > *most) {
                        best = Some((matched, format!("base {base}, fsyncs to {upto}: {what}")));
                    }
                }
            }
        }
    }
    let (_, what) = best.unwrap_or_default();
    let since = history.between(first, last);
    Err(format!(
        "nothing since operation {first} explains what is there: {what}; {complete} was through:{since}"
    ))
}

/// Source of a file's content and attributes.
#[derive(Clone, Copy, Debug)]
struct Version {
    /// The state that has its content and size.
    content: usize,
    /// The first of the states that may have its attributes; the last is that of the content.
    attributes: usize,
}

/// A base and what fsyncs changed in it.
struct RolledForward<'a> {
    history: &'a History,
    base: usize,
    /// States after this one have left no trace.
    last: usize,
    versions: BTreeMap<Ino, Version>,
    /// State of a file before it is made.
    nothing: Node,
    /// Directories of the base with a name inserted.
    inserted: BTreeMap<Ino, BTreeMap<Vec<u8>, Ino>>,
    /// Bytes of content that change as a whole.
    unit: usize,
    /// Blocks that were there when content was made durable stay as they were.
    updates_wait: bool,
    /// Times are as durable as other attributes.
    times: bool,
    /// The file whose fsync was under way, if that may leave anything.
    unfinished: Option<Ino>,
    /// Inodes that lost a name by it.
    displaced: BTreeSet<Ino>,
}

impl<'a> RolledForward<'a> {
    fn new(history: &'a History, base: usize, upto: usize, last: usize) -> Self {
        let (versions, inserted, displaced) = Default::default();
        let nothing = Node {
            edits: None,
            attr: Default::default(),
            body: Body::Special,
            xattrs: BTreeMap::new(),
        };
        let mut state = Self {
            nothing,
            history,
            base,
            last,
            versions,
            inserted,
            unit: PAGE,
            updates_wait: false,
            times: true,
            unfinished: None,
            displaced,
        };
        for number in base + 1..=upto {
            if let Some(Promise::File { ino, data_only }) = history.promise(number) {
                state.roll_forward(ino, data_only, number);
            }
        }
        state
    }

    fn roll_forward(&mut self, ino: Ino, data_only: bool, number: usize) {
        let known =
            self.versions.contains_key(&ino) || self.history.state(self.base).node(ino).is_some();
        let before = self.versions.get(&ino).map_or(self.base, |version| version.attributes);
        let attributes = if data_only { before } else { number };
        self.versions.insert(ino, Version { content: number, attributes });
        if !known {
            self.insert_name(ino, number);
        }
    }

    /// The name that the file had at its fsync, if its directory is in the base.
    fn insert_name(&mut self, ino: Ino, number: usize) {
        let base = self.history.state(self.base);
        let Some((dir, name)) = name_of(self.history.state(number), ino) else { return };
        let Some(entries) = base.entries(dir) else { return };
        let entries = self.inserted.entry(dir).or_insert_with(|| entries.clone());
        self.displaced.extend(entries.insert(name, ino));
    }

    /// Compares from the root on; the error says how many paths were right before it.
    fn compare(&self, found: &Snapshot) -> Result<(), (usize, String)> {
        let mut matched = 0;
        let mut todo = vec![(self.history.state(self.base).root, found.root, String::new())];
        while let Some((expected, ino, path)) = todo.pop() {
            let node =
                found.node(ino).ok_or_else(|| (matched, format!("{path} leads to nothing")))?;
            self.compare_node(expected, node)
                .map_err(|what| (matched, format!("{path}/: {what}")))?;
            matched += 1;
            let (Some(entries), Body::Directory(here)) = (self.entries(expected), &node.body)
            else {
                continue;
            };
            if let Some(name) = entries.keys().find(|name| !here.contains_key(*name)) {
                return Err((matched, format!("{} is missing", child(&path, name))));
            }
            if let Some(name) = here.keys().find(|name| !entries.contains_key(*name)) {
                return Err((matched, format!("{} should not be there", child(&path, name))));
            }
            todo.extend(entries.iter().map(|(name, ino)| (*ino, here[name], child(&path, name))));
        }
        Ok(())
    }

    fn entries(&self, dir: Ino) -> Option<&BTreeMap<Vec<u8>, Ino>> {
        self.inserted.get(&dir).or_else(|| self.history.state(self.base).entries(dir))
    }

    fn compare_node(&self, ino: Ino, found: &Node) -> Result<(), String> {
        if self.unfinished == Some(ino) {
            return Ok(());
        }
        let base = Version { content: self.base, attributes: self.base };
        let version = self.versions.get(&ino).copied().unwrap_or(base);
        let expected = self.history.state(version.content).node(ino);
        let expected = expected.ok_or_else(|| "a file that had no name".to_string())?;
        self.compare_body(ino, version, expected, found)?;
        let states =
            (version.attributes..=version.content).map(|number| self.history.state(number));
        let mut nodes = states.filter_map(|state| state.node(ino));
        let times =
            self.times && !self.inserted.contains_key(&ino) && !self.displaced.contains(&ino);
        let same = |node: &Node| same_meta(node, expected, found, times);
        if nodes.any(same) {
            return Ok(());
        }
        let (expected_attr, found_attr) = (meta(&expected.attr), meta(&found.attr));
        Err(format!(
            "expected {expected_attr:?} {:?}, found {found_attr:?} {:?}",
            expected.xattrs.keys(),
            found.xattrs.keys()
        ))
    }

    fn compare_body(
        &self,
        ino: Ino,
        version: Version,
        expected: &Node,
        found: &Node,
    ) -> Result<(), String> {
        match (&expected.body, &found.body) {
            (Body::File(_), Body::File(_)) => {
                let sizes = (expected.attr.size, found.attr.size);
                if sizes.0 != sizes.1 {
                    return Err(format!("{} bytes long instead of {}", sizes.1, sizes.0));
                }
                self.compare_pages(ino, self.durable_content(ino, version.content), found)
            }
            (Body::Directory(_), Body::Directory(_)) | (Body::Special, Body::Special) => Ok(()),
            (Body::Link(a), Body::Link(b)) if a == b => Ok(()),
            (a, b) => Err(format!("expected {a:?}, found {b:?}")),
        }
    }

    /// The state, at most `upto`, in which the content of the file was last made durable.
    fn durable_content(&self, ino: Ino, upto: usize) -> usize {
        let promised = |number: &usize| match self.history.promise(*number) {
            Some(Promise::All) => true,
            Some(Promise::File { ino: file, .. }) => file == ino,
            None => false,
        };
        (0..=upto).rev().find(promised).unwrap_or(0)
    }

    /// Each page holds what it held at some moment from `content` on.
    fn compare_pages(&self, ino: Ino, content: usize, found: &Node) -> Result<(), String> {
        // an open file is written without a name, too, in the place that the name still leads to
        let states = (content..=self.last).map(|number| self.history.state(number).any_node(ino));
        let mut later: Vec<&Node> = states.flatten().map(|node| &**node).collect();
        if self.history.state(content).any_node(ino).is_none() {
            later.insert(0, &self.nothing);
        }
        // a sync that is under way makes updates durable file by file
        let syncing = self.history.promise(self.last) == Some(Promise::All);
        let allowed = [later[0], if syncing { later[later.len() - 1] } else { later[0] }];
        let indices: BTreeSet<u64> = later.iter().flat_map(|node| pages_of(node)).collect();
        let indices = indices.into_iter().chain(pages_of(found)).collect::<BTreeSet<u64>>();
        let in_file = indices.into_iter().filter(|index| index * 4096 < found.attr.size);
        for index in in_file {
            let len = (found.attr.size - index * 4096).min(4096) as usize;
            let here = page(found, index, len);
            let kept = self.updates_wait && later.iter().all(|node| has_page(node, index));
            let later = if kept { &allowed[..] } else { &later[..] };
            let was_there = |start: usize| {
                let part = start..len.min(start + self.unit);
                later.iter().any(|node| page(node, index, len)[part.clone()] == here[part.clone()])
            };
            if !(0..len).step_by(self.unit).all(was_there) {
                return Err(format!(
                    "page {index} holds what was never there since operation {content}"
                ));
            }
        }
        Ok(())
    }
}

fn same_meta(node: &Node, content: &Node, found: &Node, times: bool) -> bool {
    let mut expected = meta(&node.attr);
    let mut here = meta(&found.attr);
    expected.size = meta(&content.attr).size;
    if !times {
        for attr in [&mut expected, &mut here] {
            (attr.mtime, attr.ctime) = Default::default();
        }
    }
    expected == here && node.xattrs == found.xattrs
}

fn pages_of(node: &Node) -> Vec<u64> {
    match &node.body {
        Body::File(pages) => pages.keys().copied().collect(),
        _ => Vec::new(),
    }
}

fn has_page(node: &Node, index: u64) -> bool {
    matches!(&node.body, Body::File(pages) if pages.contains_key(&index))
}

fn page(node: &Node, index: u64, len: usize) -> &[u8] {
    match &node.body {
        Body::File(pages) => pages.get(&index).map_or(&[0; 4096][..len], |page| &page[..len]),
        _ => &[0; 4096][..len],
    }
}

/// A directory and the name in it that lead to the inode.
fn name_of(state: &Snapshot, ino: Ino) -> Option<(Ino, Vec<u8>)> {
    state.directories().find_map(|(dir, entries)| {
        let (name, _) = entries.iter().find(|(_, child)| **child == ino)?;
        Some((dir, name.clone()))
    })
}
