//! The files of all sets: their numbers in the workload, and which of them are there at the start.

use std::collections::BTreeSet;

use dovetail_time::Rng;

use super::files::Files;
use super::model::{SetId, SetSpec};
use super::tree::{Entry, populate};
use crate::call::FileId;
use crate::lay_out::{Filling, LayOut};

/// A file by its set and its place in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileRef {
    pub(super) set: SetId,
    pub(super) index: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Namespace {
    sets: Vec<Files>,
    /// First number of each set.
    first: Vec<u32>,
}

impl Namespace {
    /// The sets with their trees, and the calls that pre-allocate what is to be there.
    pub(super) fn new(specs: &[SetSpec], rng: &Rng) -> (Self, LayOut) {
        let mut namespace = Self { sets: Vec::new(), first: Vec::new() };
        let (mut directories, mut fillings) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (number, spec) in specs.iter().enumerate() {
            let mut rng = rng.fork(number as u64);
            let entries = populate(spec, &mut rng);
            let order = allocated(spec, &mut rng);
            let filling = |&index: &u32| Filling {
                file: FileId(first + index),
                size: entries[index as usize].size,
                drop_cache: !spec.cached,
            };
            directories.extend(one_of_each(&entries).map(|index| FileId(first + index)));
            fillings.extend(order.iter().map(filling));
            let existing = order.into_iter().collect::<BTreeSet<_>>();
            namespace.first.push(first);
            first += spec.entries;
            namespace.sets.push(Files::new(spec.clone(), entries, existing));
        }
        (namespace, LayOut::new(fillings).with_directories(directories))
    }

    pub(super) fn set(&mut self, set: SetId) -> &mut Files {
        &mut self.sets[set]
    }

    pub(super) fn name(&self, set: SetId) -> &str {
        &self.sets[set].spec.name
    }

    pub(super) fn size(&self, file: FileRef) -> u64 {
        self.sets[file.set].entries[file.index as usize].size
    }

    pub(super) fn id(&self, file: FileRef) -> FileId {
        FileId(self.first[file.set] + file.index)
    }

    pub(super) fn path(&self, file: FileId) -> &str {
        let set = self.first.partition_point(|&first| first <= file.0).saturating_sub(1);
        let entry = self
            .sets
            .get(set)
            .and_then(|set_of| set_of.entries.get((file.0 - self.first[set]) as usize));
        entry.map_or("", |entry| &entry.path)
    }
}

/// A file of each directory with files, the last directory first: so Filebench makes them, before
/// all files (`fileset_create_subdirs`).
fn one_of_each(entries: &[Entry]) -> impl Iterator<Item = u32> {
    let directory = |index: u32| Some(entries.get(index as usize)?.path.rsplit_once('/')?.0);
    let is_last = move |index: &u32| directory(*index) != directory(*index + 1);
    (0..entries.len() as u32).rev().filter(is_last)
}

/// The files to pre-allocate, in the order in which they are written: random, so that neighbours in
/// the tree are not neighbours on the medium (`fileset_create`).
fn allocated(spec: &SetSpec, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..spec.entries).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order.retain(|_| rng.below(100) < spec.prealloc_percent);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_is_made_once_and_the_last_one_first() {
        let entry = |path: &str| Entry { path: path.into(), size: 0 };
        let entries = ["/s/1/1/a", "/s/1/1/b", "/s/1/2/a", "/s/2/a", "/s/2/b"].map(entry);
        assert_eq!(one_of_each(&entries).collect::<Vec<_>>(), [4, 2, 1]);
    }
}
