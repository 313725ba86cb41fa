//! States that a crash may leave after a sequence of operations: for each name and each block of a
//! file those since it was last made durable. One of them has to be there.

use std::collections::BTreeMap;

/// Directories that a worker uses, and names in each.
pub(super) const DIRECTORIES: u8 = 3;
pub(super) const NAMES: u8 = 6;
/// Bytes that a file is written in, and how many such blocks it has at most.
pub(super) const BLOCK: usize = 4096;
pub(super) const BLOCKS: u32 = 24;

/// A name in one of the directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) dir: u8,
    pub(super) name: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Symlink,
    Directory,
}

/// One system call, or a few that matter as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Make(Name, Kind),
    Link(Name, Name),
    Remove(Name),
    Rename(Name, Name),
    /// So many blocks from a first one on.
    Write(Name, u32, u32),
    /// To so many blocks.
    Truncate(Name, u32),
    /// fsync, or fdatasync.
    SyncFile(Name, bool),
    SyncDirectory(u8),
}

/// A file, link or directory, under whatever name. A block's state is the number of the write that
/// it is from, 0 for zeros.
#[derive(Clone, Debug)]
struct Object {
    kind: Kind,
    /// Possible states of each block, the present one last.
    blocks: Vec<Vec<u32>>,
    /// Possible sizes in blocks, the present one last.
    sizes: Vec<u32>,
    /// It was made durable once, so that it is there until its last name goes.
    synced: bool,
}

/// Object found at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Mark of the writer on each block; none on a block of zeros.
    File(Vec<Option<Mark>>),
    /// The number of the object that its target tells.
    Symlink(u32),
    Directory,
}

/// The writer's mark on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) object: u32,
    pub(super) write: u32,
    pub(super) block: u32,
}

/// Everything that may be there.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    objects: Vec<Object>,
    /// The objects that may be at a name, the present one last.
    names: BTreeMap<Name, Vec<Option<u32>>>,
    writes: u32,
}

impl Model {
    fn at(&self, name: Name) -> Option<u32> {
        self.names.get(&name).and_then(|states| *states.last()?)
    }

    fn object(&self, number: u32) -> &Object {
        &self.objects[number as usize]
    }

    fn object_at(&mut self, name: Name) -> Option<&mut Object> {
        self.at(name).map(|number| &mut self.objects[number as usize])
    }

    /// Kind of the object at a name now.
    pub(super) fn kind(&self, name: Name) -> Option<Kind> {
        self.at(name).map(|number| self.object(number).kind)
    }

    /// The number that the next object gets.
    pub(super) fn next_object(&self) -> u32 {
        self.objects.len() as u32
    }

    /// The mark of the write that comes next, on a block of the file at a name.
    pub(super) fn next_mark(&self, name: Name, block: u32) -> Mark {
        Mark { object: self.at(name).unwrap_or(u32::MAX), write: self.writes + 1, block }
    }

    /// Both names lead to the same object.
    pub(super) fn are_same(&self, a: Name, b: Name) -> bool {
        self.at(a) == self.at(b)
    }

    fn set(&mut self, name: Name, object: Option<u32>) {
        self.names.entry(name).or_insert_with(|| vec![None]).push(object);
    }

    /// The operation has begun: its effect may be there from now on.
    pub(super) fn begin(&mut self, operation: Operation) {
        match operation {
            Operation::Make(name, kind) => {
                let object = Object { kind, blocks: Vec::new(), sizes: vec![0], synced: false };
                self.objects.push(object);
                self.set(name, Some(self.next_object() - 1));
            }
            Operation::Link(from, to) => self.set(to, self.at(from)),
            Operation::Remove(name) => self.set(name, None),
            Operation::Rename(from, to) => {
                self.set(to, self.at(from));
                self.set(from, None);
            }
            Operation::Write(name, first, count) => {
                self.writes += 1;
                let write = self.writes;
                if let Some(object) = self.object_at(name) {
                    object.write(first..first + count, write);
                }
            }
            Operation::Truncate(name, size) => {
                if let Some(object) = self.object_at(name) {
                    object.truncate(size);
                }
            }
            Operation::SyncFile(..) | Operation::SyncDirectory(_) => {}
        }
    }

    /// The operation was acknowledged: what a sync promises holds from now on.
    pub(super) fn finish(&mut self, operation: Operation) {
        match operation {
            Operation::SyncFile(name, _) => {
                if let Some(object) = self.object_at(name) {
                    object.sync();
                }
            }
            Operation::SyncDirectory(dir) => {
                let inside = self.names.iter_mut().filter(|(name, _)| name.dir == dir);
                inside.for_each(|(_, states)| keep_last(states));
            }
            _ => {}
        }
    }

    /// Compares with what a recovery has left, and tells the first thing that must not be so.
    pub(super) fn check(&self, found: &BTreeMap<Name, Found>) -> Result<(), String> {
        for (name, states) in &self.names {
            let found = found.get(name);
            if !states.iter().any(|state| self.may_be(*state, found)) {
                let states: Vec<_> = states.iter().map(|state| self.shown(*state)).collect();
                return Err(format!("{name:?} is {found:?}, not one of {states:#?}"));
            }
        }
        if let Some(name) = found.keys().find(|name| !self.names.contains_key(name)) {
            return Err(format!("{name:?} was never made"));
        }
        (0..self.next_object()).try_for_each(|number| self.check_there(number, found))
    }

    /// A file that was made durable and still has a name is found at one that it may have.
    fn check_there(&self, number: u32, found: &BTreeMap<Name, Found>) -> Result<(), String> {
        let named = self.names.values().any(|states| states.last() == Some(&Some(number)));
        if !self.object(number).synced || !named {
            return Ok(());
        }
        let is_there = self.names.iter().any(|(name, states)| {
            states.contains(&Some(number)) && self.may_be(Some(number), found.get(name))
        });
        let lost =
            || format!("object {number} was synced and is nowhere: {:?}", self.object(number));
        is_there.then_some(()).ok_or_else(lost)
    }

    fn shown(&self, state: Option<u32>) -> String {
        state.map_or_else(
            || "nothing".to_string(),
            |number| format!("{number}: {:?}", self.object(number)),
        )
    }

    fn may_be(&self, state: Option<u32>, found: Option<&Found>) -> bool {
        let (Some(number), Some(found)) = (state, found) else {
            return state.is_none() && found.is_none();
        };
        let object = self.object(number);
        match found {
            Found::Directory => object.kind == Kind::Directory,
            Found::Symlink(target) => object.kind == Kind::Symlink && *target == number,
            Found::File(marks) => object.kind == Kind::File && object.may_hold(number, marks),
        }
    }
}

fn keep_last<T>(states: &mut Vec<T>) {
    let last = states.len().saturating_sub(1);
    states.drain(..last);
}

impl Object {
    fn write(&mut self, blocks: std::ops::Range<u32>, write: u32) {
        let (first, end) = (blocks.start as usize, blocks.end as usize);
        if self.blocks.len() < end {
            self.blocks.resize(end, vec![0]);
        }
        self.blocks[first..end].iter_mut().for_each(|states| states.push(write));
        let size = self.sizes.last().copied().unwrap_or(0);
        self.sizes.push(size.max(blocks.end));
    }

    fn truncate(&mut self, size: u32) {
        if self.blocks.len() < size as usize {
            self.blocks.resize(size as usize, vec![0]);
        }
        self.blocks.iter_mut().skip(size as usize).for_each(|states| states.push(0));
        self.sizes.push(size);
    }

    fn sync(&mut self) {
        self.blocks.iter_mut().for_each(keep_last);
        keep_last(&mut self.sizes);
        self.synced = true;
    }

    /// A write of several blocks may be there in part, so any size between the possible ones is.
    fn may_hold(&self, number: u32, marks: &[Option<Mark>]) -> bool {
        let size = marks.len() as u32;
        let sizes = self.sizes.iter().min()..=self.sizes.iter().max();
        let states = |index: usize| self.blocks.get(index).map_or(&[0][..], Vec::as_slice);
        sizes.contains(&Some(&size))
            && marks.iter().enumerate().all(|(index, mark)| match mark {
                None => states(index).contains(&0),
                Some(mark) => {
                    (mark.object, mark.block as usize) == (number, index)
                        && states(index).contains(&mark.write)
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Name = Name { dir: 0, name: 0 };
    const B: Name = Name { dir: 1, name: 1 };

    fn after(operations: &[Operation]) -> Model {
        let mut model = Model::default();
        for &operation in operations {
            model.begin(operation);
            model.finish(operation);
        }
        model
    }

    fn file(writes: &[u32]) -> Found {
        let mark = |(block, &write): (usize, &u32)| {
            (write > 0).then_some(Mark { object: 0, write, block: block as u32 })
        };
        Found::File(writes.iter().enumerate().map(mark).collect())
    }

    #[test]
    fn a_name_is_what_it_was_at_the_last_sync_or_became_later() {
        use Operation::{Make, Remove, SyncDirectory};
        let made = after(&[Make(A, Kind::File)]);
        let there = BTreeMap::from([(A, file(&[]))]);
        assert!(made.check(&BTreeMap::new()).is_ok() && made.check(&there).is_ok());
        let synced = after(&[Make(A, Kind::File), SyncDirectory(0)]);
        assert!(synced.check(&BTreeMap::new()).is_err() && synced.check(&there).is_ok());
        let removed = after(&[Make(A, Kind::File), SyncDirectory(0), Remove(A)]);
        assert!(removed.check(&BTreeMap::new()).is_ok() && removed.check(&there).is_ok());
        let removed = after(&[Make(A, Kind::File), SyncDirectory(0), Remove(A), SyncDirectory(0)]);
        assert!(removed.check(&there).is_err());
        assert!(made.check(&BTreeMap::from([(A, Found::Directory)])).is_err());
        assert!(made.check(&BTreeMap::from([(B, file(&[]))])).is_err());
    }

    #[test]
    fn synced_content_stays_and_later_writes_may_be_there_in_part() {
        use Operation::{Make, SyncFile, Write};
        let start = [Make(A, Kind::File), Write(A, 0, 2), SyncFile(A, false), Write(A, 1, 3)];
        let model = after(&start);
        let check = |writes: &[u32]| model.check(&BTreeMap::from([(A, file(writes))])).is_ok();
        assert!(check(&[1, 1]) && check(&[1, 2]) && check(&[1, 1, 2, 0]) && check(&[1, 2, 2, 2]));
        assert!(!check(&[1]) && !check(&[0, 1]) && !check(&[2, 1]) && !check(&[1, 0]));
        assert!(model.check(&BTreeMap::new()).is_err(), "a synced file is there");
    }

    #[test]
    fn a_synced_file_is_at_one_of_its_names() {
        use Operation::{Make, Rename, SyncFile, Write};
        let model = after(&[Make(A, Kind::File), Write(A, 0, 1), SyncFile(A, true), Rename(A, B)]);
        for name in [A, B] {
            assert!(model.check(&BTreeMap::from([(name, file(&[1]))])).is_ok());
        }
        assert!(model.check(&BTreeMap::new()).is_err());
        assert!(model.check(&BTreeMap::from([(B, file(&[]))])).is_err());
    }
}
