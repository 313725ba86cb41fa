//! Short sequences of operations with a point of persistence after each, as CrashMonkey's ACE makes
//! them (OSDI'18, section 5.2): few names, so that they meet, and every way to make the last
//! operation durable.
//!
//! Each file that an operation needs is made before it. A sequence of two is any of one, durable or
//! not, before another that is.

use dovetail_testkit::exercise::{Op, Path, Target};
use dovetail_vfs::{Fallocate, RenameFlags, SetAttr, XattrFlags};

use crate::language::Action;

const FILES: [&str; 4] = ["foo", "A/foo", "bar", "A/bar"];
/// Bytes of a file that is made because an operation needs it: two blocks and a half.
const SIZE: u64 = 10_000;
const XATTR: &[u8] = b"user.a";

/// An operation, what must be there before, and what can be synced after it.
#[derive(Clone, Debug)]
struct Core {
    action: Action,
    /// Files that must be there.
    needs: Vec<&'static str>,
    /// Directories that must be there.
    directories: Vec<&'static str>,
    /// The file needs an extended attribute.
    needs_xattr: bool,
    /// Names to be made durable after it: files, and the directories in which it changed names.
    touched: Vec<&'static str>,
}

fn path(text: &str) -> Path {
    text.split('/').filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec()).collect()
}

fn target(text: &str) -> Target {
    Target::Path(path(text))
}

fn parent(text: &'static str) -> &'static str {
    text.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Core {
    /// An operation on the content or attributes of a file.
    fn on(file: &'static str, op: Op) -> Self {
        Self::of(Action::Op(op), vec![file], vec![file])
    }

    /// An operation that makes `name`.
    fn makes(name: &'static str, op: Op, touched: Vec<&'static str>) -> Self {
        Self { directories: vec![parent(name)], ..Self::of(Action::Op(op), vec![], touched) }
    }

    fn of(action: Action, needs: Vec<&'static str>, touched: Vec<&'static str>) -> Self {
        Self { action, needs, directories: Vec::new(), needs_xattr: false, touched }
    }
}

/// All operations.
fn cores() -> Vec<Core> {
    let mut all = names();
    FILES[..2].iter().for_each(|file| all.extend(content(file)));
    all
}

fn create(name: &str, mode: u16) -> Op {
    Op::Create { path: path(name), mode, rdev: (0, 0) }
}

fn names() -> Vec<Core> {
    let mut all = Vec::new();
    for name in ["foo", "A/foo"] {
        all.push(Core::makes(name, create(name, 0o100_644), vec![name, parent(name)]));
        all.push(Core::makes(name, create(name, 0o010_644), vec![parent(name)]));
        all.push(Core::makes(name, Op::Symlink { path: path(name), len: 20 }, vec![parent(name)]));
        let unlink = Action::Op(Op::Unlink { path: path(name) });
        all.push(Core::of(unlink, vec![name], vec![parent(name)]));
    }
    for name in ["A", "B", "A/C"] {
        all.push(Core::makes(name, create(name, 0o040_755), vec![name, parent(name)]));
        let rmdir = Action::Op(Op::Rmdir { path: path(name) });
        all.push(Core { directories: vec![name], ..Core::of(rmdir, vec![], vec![parent(name)]) });
    }
    for (from, to) in [("foo", "bar"), ("foo", "A/bar"), ("A/foo", "bar"), ("A/foo", "A/bar")] {
        let both = vec![to, parent(from), parent(to)];
        let link = Op::Link { target: target(from), path: path(to) };
        all.push(Core { needs: vec![from], ..Core::makes(to, link, both.clone()) });
        let rename = |flags| Op::Rename { from: path(from), to: path(to), flags };
        let plain = rename(RenameFlags::default());
        all.push(Core { needs: vec![from], ..Core::makes(to, plain.clone(), both.clone()) });
        all.push(Core::of(Action::Op(plain), vec![from, to], both.clone()));
        let exchange = rename(RenameFlags { exchange: true, no_replace: false });
        all.push(Core::of(Action::Op(exchange), vec![from, to], both));
    }
    let directory = Op::Rename { from: path("A"), to: path("B"), flags: RenameFlags::default() };
    all.push(Core::of(Action::Op(directory), vec!["A/foo"], vec!["B", "B/foo", ""]));
    all
}

fn content(file: &'static str) -> Vec<Core> {
    let write = |offset, len| Op::Write { target: target(file), offset, len, fill: 0 };
    let size = |size| Op::SetAttr {
        target: target(file),
        changes: SetAttr { size: Some(size), ..SetAttr::default() },
    };
    let fallocate = |how, offset, len| Op::Fallocate { target: target(file), how, offset, len };
    let reserve = |keep_size| Fallocate::Reserve { keep_size };
    let zero = |keep_size| Fallocate::ZeroRange { keep_size };
    let direct = |offset, len| {
        let action = Action::DirectWrite { path: path(file), offset, len, fill: 0 };
        Core::of(action, vec![file], vec![file])
    };
    let mut all = vec![
        // appended, over the start, a whole block, over the end
        Core::on(file, write(SIZE, 5000)),
        Core::on(file, write(0, 3000)),
        Core::on(file, write(4096, 4096)),
        Core::on(file, write(SIZE - 1000, 9000)),
        direct(0, 4096),
        direct(12_288, 8192),
        // shorter within a block and at its end, to nothing, longer
        Core::on(file, size(2500)),
        Core::on(file, size(4096)),
        Core::on(file, size(0)),
        Core::on(file, size(20_000)),
    ];
    for (offset, len) in [(0, 4096), (SIZE, 8000), (5000, 12_000)] {
        for how in [reserve(false), reserve(true), Fallocate::PunchHole, zero(false), zero(true)] {
            all.push(Core::on(file, fallocate(how, offset, len)));
        }
    }
    let flags = XattrFlags::default();
    let set = Op::SetXattr { target: target(file), name: XATTR.to_vec(), len: 50, fill: 0, flags };
    all.push(Core::on(file, set));
    let remove = Op::RemoveXattr { target: target(file), name: XATTR.to_vec() };
    all.push(Core { needs_xattr: true, ..Core::on(file, remove) });
    all
}

/// The ways to make an operation durable.
fn persistence(core: &Core) -> Vec<Action> {
    let mut all = vec![Action::Op(Op::Sync)];
    let mut seen: Vec<&str> = Vec::new();
    for name in &core.touched {
        if seen.contains(name) {
            continue;
        }
        seen.push(name);
        all.push(Action::Op(Op::Fsync { target: target(name), data_only: false }));
        if !name.is_empty() && name.contains("oo") {
            all.push(Action::Op(Op::Fsync { target: target(name), data_only: true }));
        }
    }
    all
}

/// Names and attributes that a sequence has made so far.
#[derive(Default)]
struct Made {
    names: Vec<String>,
    xattrs: Vec<String>,
}

impl Made {
    fn directory(&mut self, name: &'static str, into: &mut Vec<Action>) {
        if name.is_empty() || self.names.iter().any(|made| made == name) {
            return;
        }
        self.directory(parent(name), into);
        into.push(Action::Op(create(name, 0o040_755)));
        self.names.push(name.into());
    }

    fn file(&mut self, name: &'static str, into: &mut Vec<Action>) {
        if self.names.iter().any(|made| made == name) {
            return;
        }
        self.directory(parent(name), into);
        into.push(Action::Op(create(name, 0o100_644)));
        into.push(Action::Op(Op::Write {
            target: target(name),
            offset: 0,
            len: SIZE as usize,
            fill: 0,
        }));
        self.names.push(name.into());
    }

    fn xattr(&mut self, name: &'static str, into: &mut Vec<Action>) {
        if self.xattrs.iter().any(|made| made == name) {
            return;
        }
        let flags = XattrFlags::default();
        into.push(Action::Op(Op::SetXattr {
            target: target(name),
            name: XATTR.to_vec(),
            len: 9,
            fill: 0,
            flags,
        }));
        self.xattrs.push(name.into());
    }

    /// Adds a core operation, after what it needs.
    fn add(&mut self, core: &Core, into: &mut Vec<Action>) {
        core.directories.iter().for_each(|name| self.directory(name, into));
        core.needs.iter().for_each(|name| self.file(name, into));
        if core.needs_xattr {
            core.needs.iter().for_each(|name| self.xattr(name, into));
        }
        into.push(core.action.clone());
        self.follow(&core.action);
    }

    /// Names that an operation makes and removes. Those that cannot be made twice fail, and change
    /// nothing.
    fn follow(&mut self, action: &Action) {
        let text = |path: &Path| {
            path.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join("/")
        };
        match action {
            Action::Op(
                Op::Create { path, .. } | Op::Symlink { path, .. } | Op::Link { path, .. },
            ) => {
                self.names.push(text(path));
            }
            Action::Op(Op::Unlink { path } | Op::Rmdir { path }) => {
                self.names.retain(|name| *name != text(path));
            }
            Action::Op(Op::Rename { from, to, flags: RenameFlags { exchange: false, .. } }) => {
                let (from, to) = (text(from), text(to));
                self.names.retain(|name| *name != from && !name.starts_with(&format!("{from}/")));
                self.names.push(to);
            }
            _ => {}
        }
    }
}

/// Gives each write content of its own.
fn with_fills(mut actions: Vec<Action>) -> Vec<Action> {
    for (number, action) in (1..).zip(&mut actions) {
        match action {
            Action::Op(Op::Write { fill, .. } | Op::SetXattr { fill, .. })
            | Action::DirectWrite { fill, .. } => *fill = number,
            _ => {}
        }
    }
    actions
}

/// Every sequence of one operation.
pub fn sequences_of_one() -> Vec<Vec<Action>> {
    let mut all = Vec::new();
    for core in cores() {
        for persist in persistence(&core) {
            let mut actions = Vec::new();
            Made::default().add(&core, &mut actions);
            actions.push(persist);
            all.push(with_fills(actions));
        }
    }
    all
}

/// The number of all sequences of two operations.
pub fn count_of_two() -> u64 {
    let pairs: u64 = cores().iter().map(|core| persistence(core).len() as u64).sum();
    (pairs + cores().len() as u64) * pairs
}

/// Sequences of two operations: `count` of them, spread evenly over all. They are the same every
/// time.
pub fn sequences_of_two(count: u64) -> Vec<Vec<Action>> {
    let cores = cores();
    let durable: Vec<(&Core, Option<Action>)> = cores
        .iter()
        .flat_map(|core| persistence(core).into_iter().map(move |p| (core, Some(p))))
        .collect();
    let first: Vec<(&Core, Option<Action>)> =
        cores.iter().map(|core| (core, None)).chain(durable.iter().cloned()).collect();
    let all = (first.len() * durable.len()) as u64;
    let count = count.min(all);
    let pick = |n: u64| (u128::from(n) * u128::from(all) / u128::from(count)) as usize;
    let pair = |index: usize| {
        let (mut made, mut actions) = (Made::default(), Vec::new());
        for (core, persist) in [&first[index / durable.len()], &durable[index % durable.len()]] {
            made.add(core, &mut actions);
            actions.extend(persist.clone());
        }
        with_fills(actions)
    };
    (0..count).map(|n| pair(pick(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{parse, show_all};

    #[test]
    fn sequences_end_durable_and_are_all_different() {
        let all = sequences_of_one();
        assert!(all.len() > 250, "{}", all.len());
        let texts: std::collections::BTreeSet<String> =
            all.iter().map(|one| show_all(one)).collect();
        assert_eq!(texts.len(), all.len());
        for text in &texts {
            let last = text.lines().last().unwrap();
            assert!(
                ["sync", "fsync", "fdatasync"].iter().any(|word| last.starts_with(word)),
                "{text}"
            );
            assert_eq!(show_all(&parse(text).unwrap()), *text);
        }
    }

    #[test]
    fn what_an_operation_needs_is_made_once() {
        let twos = sequences_of_two(10_000);
        assert_eq!(twos.len(), 10_000);
        assert!(count_of_two() > 60_000, "{}", count_of_two());
        let twice =
            twos.iter().map(|two| show_all(two)).find(|text| text.matches("mkdir A\n").count() > 2);
        assert_eq!(twice, None);
    }
}
