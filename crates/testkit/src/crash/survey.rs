//! Survey of the work that was not durable: its state after a power cut, as an application finds
//! it.

use std::collections::BTreeMap;

use dovetail_vfs::Ino;

use super::history::{History, Promise};
use super::snapshot::{Body, Node, Snapshot, child};

/// Files with changes that nothing had made durable, by what a power cut left of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// As they were when they were last made durable.
    pub old: u64,
    /// With all changes.
    pub new: u64,
    /// With some of the changes: a size without its content, one block new and another one old.
    pub mixed: u64,
    /// Not there, though they were never removed.
    pub absent: u64,
}

impl std::ops::AddAssign for Survey {
    fn add_assign(&mut self, other: Self) {
        self.old += other.old;
        self.new += other.new;
        self.mixed += other.mixed;
        self.absent += other.absent;
    }
}

/// Compares the files that there were after operation `complete` with what was found.
pub fn survey(history: &History, complete: usize, found: &Snapshot) -> Survey {
    let (latest, here) = (files(history.state(complete)), files(found));
    let mut survey = Survey::default();
    for (path, ino) in latest {
        let durable = history.state(durable_state(history, complete, ino)).node(ino);
        let Some(now) = history.state(complete).node(ino) else { continue };
        if durable.is_some_and(|durable| same(durable, now)) {
            continue; // nothing to lose
        }
        let found = here.get(&path).and_then(|ino| found.node(*ino));
        let count = match found {
            None => &mut survey.absent,
            Some(found) if same(found, now) => &mut survey.new,
            Some(found) if durable.is_some_and(|durable| same(durable, found)) => &mut survey.old,
            Some(_) => &mut survey.mixed,
        };
        *count += 1;
    }
    survey
}

/// The state after the last operation up to `complete` that made the file durable.
fn durable_state(history: &History, complete: usize, ino: Ino) -> usize {
    let promised = |number: &usize| match history.promise(*number) {
        Some(Promise::All) => true,
        Some(Promise::File { ino: file, .. }) => file == ino,
        None => false,
    };
    (0..=complete).rev().find(promised).unwrap_or(0)
}

/// Regular files by their paths.
fn files(state: &Snapshot) -> BTreeMap<String, Ino> {
    let mut all = BTreeMap::new();
    let mut todo = vec![(state.root, String::new())];
    while let Some((ino, path)) = todo.pop() {
        match state.node(ino).map(|node| &node.body) {
            Some(Body::Directory(entries)) => {
                todo.extend(entries.iter().map(|(name, ino)| (*ino, child(&path, name))));
            }
            Some(Body::File(_)) => drop(all.insert(path, ino)),
            _ => {}
        }
    }
    all
}

/// Size and content.
fn same(one: &Node, other: &Node) -> bool {
    one.attr.size == other.attr.size && one.body == other.body
}
