//! Everything that can be seen of two trees.

use std::collections::BTreeMap;
use std::ops::Range;

use super::apply::comparable;
use crate::{Error, FileSystem, Ino};

/// Bytes compared at a time.
const CHUNK: u64 = 1 << 18;
/// Larger files are compared where either has data.
const WHOLE: u64 = 64 << 20;

struct Pair<'a> {
    tested: &'a mut dyn FileSystem,
    reference: &'a mut dyn FileSystem,
    /// Which inode is which: two names lead to the same inode in both trees, or in neither.
    known: BTreeMap<Ino, Ino>,
}

/// Compares two trees: names, attributes but numbers, generations and blocks, content, targets, extended attributes, and
/// which names are links to the same inode.
///
/// # Errors
/// The first difference, with the path.
pub fn compare_trees(tested: &mut dyn FileSystem, reference: &mut dyn FileSystem) -> Result<(), String> {
    let roots = (tested.root(), reference.root());
    let mut pair = Pair { tested, reference, known: BTreeMap::new() };
    pair.compare(roots, &mut Vec::new())
}

fn differ(path: &[u8], what: &str, tested: impl std::fmt::Debug, reference: impl std::fmt::Debug) -> String {
    format!("/{}: {what}: {tested:?} instead of {reference:?}", String::from_utf8_lossy(path))
}

impl Pair<'_> {
    /// Calls both and compares what comes back.
    fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        (a, b): (Ino, Ino),
        path: &[u8],
        what: &str,
        call: impl Fn(&mut dyn FileSystem, Ino) -> Result<T, Error>,
    ) -> Result<T, String> {
        match (call(self.tested, a), call(self.reference, b)) {
            (Ok(tested), Ok(reference)) if tested == reference => Ok(tested),
            (tested, reference) => Err(differ(path, what, tested, reference)),
        }
    }

    fn compare(&mut self, inos: (Ino, Ino), path: &mut Vec<u8>) -> Result<(), String> {
        let attr =
            self.same(inos, path, "attributes", |fs, ino| fs.getattr(ino).map(|attr| comparable(&attr)))?;
        if let Some(&reference) = self.known.get(&inos.0) {
            let linked = reference == inos.1;
            return if linked { Ok(()) } else { Err(differ(path, "which inode", inos.0, reference)) };
        }
        self.known.insert(inos.0, inos.1);
        self.same(inos, path, "extended attributes", xattrs)?;
        match attr.kind() {
            0o100_000 => self.compare_content(inos, path, attr.size),
            0o120_000 => self.same(inos, path, "target", |fs, ino| fs.readlink(ino)).map(drop),
            0o040_000 => self.compare_directory(inos, path),
            _ => Ok(()),
        }
    }

    fn compare_directory(&mut self, inos: (Ino, Ino), path: &mut Vec<u8>) -> Result<(), String> {
        let names = self.same(inos, path, "entries", |fs, ino| {
            entries(fs, ino).map(|entries| entries.into_keys().collect::<Vec<_>>())
        })?;
        let tested = entries(self.tested, inos.0).map_err(|error| error.to_string())?;
        let reference = entries(self.reference, inos.1).map_err(|error| error.to_string())?;
        for name in names {
            let children = (tested[&name], reference[&name]);
            if name.0 == b"." || name.0 == b".." {
                self.compare_dots(inos, children, &name.0, path)?;
                continue;
            }
            let before = path.len();
            path.extend_from_slice(&name.0);
            path.push(b'/');
            self.compare(children, path)?;
            path.truncate(before);
        }
        Ok(())
    }

    /// "." is the directory itself and ".." one that was met on the way.
    fn compare_dots(&self, dir: (Ino, Ino), to: (Ino, Ino), name: &[u8], path: &[u8]) -> Result<(), String> {
        let right = if name == b"." { to == dir } else { self.known.get(&to.0) == Some(&to.1) };
        if right { Ok(()) } else { Err(differ(path, "dots", to.0, to.1)) }
    }

    fn compare_content(&mut self, inos: (Ino, Ino), path: &[u8], size: u64) -> Result<(), String> {
        let mut at = 0;
        while at < size {
            if size > WHOLE {
                let next =
                    (next_data(self.tested, inos.0, at, size), next_data(self.reference, inos.1, at, size));
                at = next.0.min(next.1);
            }
            let end = size.min(at + CHUNK);
            let read = |fs: &mut dyn FileSystem, ino| bytes(fs, ino, at..end);
            let (tested, reference) = (read(self.tested, inos.0)?, read(self.reference, inos.1)?);
            if tested != reference {
                let differs = tested.iter().zip(&reference).position(|(a, b)| a != b);
                let byte = differs.unwrap_or_else(|| tested.len().min(reference.len()));
                let what = format!("byte {}", at + byte as u64);
                return Err(differ(path, &what, tested.get(byte), reference.get(byte)));
            }
            at = end;
        }
        Ok(())
    }
}

fn next_data(fs: &mut dyn FileSystem, ino: Ino, at: u64, size: u64) -> u64 {
    match fs.seek_data(ino, at) {
        Ok(found) => found,
        Err(Error::BeyondEnd) => size,
        Err(_) => at,
    }
}

fn bytes(fs: &mut dyn FileSystem, ino: Ino, range: Range<u64>) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let read =
        fs.read(ino, range.start, &mut bytes).map_err(|error| format!("reading {range:?}: {error}"))?;
    bytes.truncate(read);
    Ok(bytes)
}

pub(super) fn is_zero(fs: &mut dyn FileSystem, ino: Ino, mut range: Range<u64>) -> Result<bool, String> {
    while range.start < range.end {
        let end = range.end.min(range.start + CHUNK);
        if range.end - range.start > WHOLE {
            range.start = next_data(fs, ino, range.start, range.end).min(range.end);
        }
        let end = end.max(range.start).min(range.end);
        if bytes(fs, ino, range.start..end)?.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        range.start = end.max(range.start + 1);
    }
    Ok(true)
}

type Entries = BTreeMap<(Vec<u8>, u16), Ino>;

fn entries(fs: &mut dyn FileSystem, dir: Ino) -> Result<Entries, Error> {
    let mut entries = Entries::new();
    let mut twice = false;
    fs.readdir(dir, 0, &mut |entry| {
        twice |= entries.insert((entry.name, entry.kind), entry.ino).is_some();
        true
    })?;
    if twice { Err(Error::Corrupt("a name is listed twice".into())) } else { Ok(entries) }
}

fn xattrs(fs: &mut dyn FileSystem, ino: Ino) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
    let names = fs.listxattr(ino)?;
    names.into_iter().map(|name| fs.getxattr(ino, &name).map(|value| (name, value))).collect()
}
