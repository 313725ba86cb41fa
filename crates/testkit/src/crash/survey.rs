//! Survey of the work that was not durable: its state after a power cut, as an application finds
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

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

/// Compares the files that there were after operation `complete` with what was found. Returns the
/// operations, too, whose change of a file's size or content is missing. Of a file in a state that
/// it never had these are all since it was made durable, of one that is not there none: its name is
/// what is missing.
pub fn survey(history: &History, complete: usize, found: &Snapshot) -> (Survey, BTreeSet<usize>) {
    let (latest, here) = (files(history.state(complete)), files(found));
    let (mut survey, mut lost) = (Survey::default(), BTreeSet::new());
    for (path, ino) in latest {
        let since = durable_state(history, complete, ino);
        let durable = history.state(since).node(ino);
        let Some(now) = history.state(complete).node(ino) else { continue };
        if durable.is_some_and(|durable| same(durable, now)) {
            continue; // nothing to lose
        }
        let found = here.get(&path).and_then(|ino| found.node(*ino));
        if let Some(found) = found {
            lost.extend(changes_beyond(found, history, ino, since..=complete));
        }
        let count = match found {
            None => &mut survey.absent,
            Some(found) if same(found, now) => &mut survey.new,
            Some(found) if durable.is_some_and(|durable| same(durable, found)) => &mut survey.old,
            Some(_) => &mut survey.mixed,
        };
        *count += 1;
    }
    (survey, lost)
}

/// Operations of the range, without its first, that changed the file after it was last as found;
/// all that changed it if it never was.
fn changes_beyond<'a>(
    found: &Node,
    history: &'a History,
    ino: Ino,
    range: RangeInclusive<usize>,
) -> impl Iterator<Item = usize> + 'a {
    let at = move |number: usize| history.state(number).node(ino);
    let is_found = |number: &usize| at(*number).is_some_and(|then| same(then, found));
    let kept = range.clone().rev().find(is_found).unwrap_or(*range.start());
    let is_change = move |number: &usize| match (at(number - 1), at(*number)) {
        (Some(before), Some(after)) => !same(before, after),
        (before, after) => before.is_some() != after.is_some(),
    };
    (kept + 1..=*range.end()).filter(is_change)
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
