//! Changes of the tree of a mounted image: names removed, made and moved.

use std::collections::HashSet;

use dovetail_vfs::mode::S_IFDIR;
use dovetail_vfs::{Attr, Caller, DirEntry, Error, FileSystem, Ino, NewNode, RenameFlags, shown};

use crate::{Tree, find};

/// Permissions of a new directory, as mkdir(1) gives them under the usual umask.
const NEW_DIRECTORY: u16 = 0o755;

/// A place for a name: the directory above it, and the name.
type Place = (Ino, Vec<u8>);

/// Changes of a mounted image by one caller. Errors are sentences that name the path.
pub struct Edit<'a> {
    fs: &'a mut Box<dyn FileSystem>,
    caller: Caller,
}

impl std::fmt::Debug for Edit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edit").finish_non_exhaustive()
    }
}

/// A directory that is being removed.
struct Emptied {
    ino: Ino,
    path: Vec<u8>,
    place: Place,
    /// Directories in it that are still to be removed.
    below: Vec<DirEntry>,
}

impl<'a> Edit<'a> {
    /// Changes of `fs` by `caller`.
    pub const fn new(fs: &'a mut Box<dyn FileSystem>, caller: Caller) -> Self {
        Self { fs, caller }
    }

    fn find(&mut self, path: &[u8], follow: bool) -> Result<Attr, Error> {
        find(self.fs as &mut dyn Tree, path, follow)
    }

    /// The place of a path whose last name may be missing.
    fn place(&mut self, path: &[u8]) -> Result<Place, Error> {
        let (above, name) = split(path);
        if name.is_empty() {
            return Err(Error::Invalid("it has no name that could be changed"));
        }
        let dir = self.find(&above, true)?;
        if dir.is_dir() { Ok((dir.ino, name)) } else { Err(Error::NotADirectory) }
    }

    /// Removes a file; a directory with all below it if `recursive`. What is not there is no error
    /// if `force`. Goes on after what cannot be removed, and returns a sentence for each.
    pub fn remove(&mut self, path: &[u8], recursive: bool, force: bool) -> Vec<String> {
        let failed =
            |error: &dyn std::fmt::Display| vec![format!("cannot remove {}: {error}", shown(path))];
        let place = match self.place(path) {
            Ok(place) => place,
            Err(Error::NotFound) if force => return Vec::new(),
            Err(error) => return failed(&error),
        };
        match FileSystem::lookup(self.fs, place.0, &place.1) {
            Ok(attr) if !attr.is_dir() && path.ends_with(b"/") => failed(&Error::NotADirectory),
            Ok(attr) if attr.is_dir() && recursive => self.remove_tree(attr.ino, path, place),
            Ok(attr) if attr.is_dir() => failed(&"it is a directory; -r removes it with all below"),
            Ok(_) => match self.fs.unlink(&self.caller, place.0, &place.1) {
                Ok(()) => Vec::new(),
                Err(error) => failed(&error),
            },
            Err(Error::NotFound) if force => Vec::new(),
            Err(error) => failed(&error),
        }
    }

    /// Removes a directory with all below it. In a damaged image a directory may be in itself, or
    /// in two: none is looked into that was seen before.
    fn remove_tree(&mut self, ino: Ino, path: &[u8], place: Place) -> Vec<String> {
        let mut seen = self.above(path, place.0);
        if !seen.insert(ino) {
            return vec![in_itself(path)];
        }
        let mut errors = Vec::new();
        let mut stack = vec![self.emptied(ino, path.to_vec(), place, &mut errors)];
        while let Some(last) = stack.last_mut() {
            match last.below.pop() {
                Some(entry) => {
                    let path = child(&last.path, &entry.name);
                    if !seen.insert(entry.ino) {
                        errors.push(in_itself(&path));
                        continue;
                    }
                    let place = (last.ino, entry.name);
                    let next = self.emptied(entry.ino, path, place, &mut errors);
                    stack.push(next);
                }
                None => {
                    let (dir, name) = &last.place;
                    if let Err(error) = self.fs.rmdir(&self.caller, *dir, name) {
                        errors.push(format!("cannot remove {}: {error}", shown(&last.path)));
                    }
                    stack.pop();
                }
            }
        }
        errors
    }

    /// The root, and the directories above a path whose last directory is `dir`: those that its
    /// names lead through, and those that ".." tells.
    fn above(&mut self, path: &[u8], dir: Ino) -> HashSet<Ino> {
        let mut above = HashSet::from([FileSystem::root(self.fs), dir]);
        let (names, _) = split(path);
        let names = [names.as_slice(), b"/"].concat();
        for (end, _) in names.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            above.extend(self.find(&names[..end], true).map(|attr| attr.ino));
        }
        let mut here = dir;
        while let Ok(attr) = FileSystem::lookup(self.fs, here, b"..")
            && above.insert(attr.ino)
        {
            here = attr.ino;
        }
        above
    }

    /// Removes what is no directory from a directory.
    fn emptied(
        &mut self,
        ino: Ino,
        path: Vec<u8>,
        place: Place,
        errors: &mut Vec<String>,
    ) -> Emptied {
        let mut below = Vec::new();
        let entries = entries(self.fs, ino).unwrap_or_else(|error| {
            errors.push(format!("{} cannot be read: {error}", shown(&path)));
            Vec::new()
        });
        for entry in entries {
            let removed = match self.fs.getattr(entry.ino) {
                Ok(attr) if attr.is_dir() => {
                    below.push(entry);
                    continue;
                }
                Ok(_) => self.fs.unlink(&self.caller, ino, &entry.name),
                Err(error) => Err(error),
            };
            if let Err(error) = removed {
                let path = child(&path, &entry.name);
                errors.push(format!("cannot remove {}: {error}", shown(&path)));
            }
        }
        Emptied { ino, path, place, below }
    }

    /// Makes a directory; if `parents`, those above it that are missing as well, and one that is
    /// there is no error.
    ///
    /// # Errors
    /// A sentence.
    pub fn make_directory(&mut self, path: &[u8], parents: bool) -> Result<(), String> {
        if !parents {
            return self.make_one(path);
        }
        let mut so_far = Vec::new();
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            so_far.push(b'/');
            so_far.extend_from_slice(name);
            match self.find(&so_far, true) {
                Ok(attr) if attr.is_dir() => {}
                _ => self.make_one(&so_far)?,
            }
        }
        Ok(())
    }

    fn make_one(&mut self, path: &[u8]) -> Result<(), String> {
        let node = NewNode { mode: S_IFDIR | NEW_DIRECTORY, rdev: (0, 0) };
        let made = self
            .place(path)
            .and_then(|(dir, name)| self.fs.create(&self.caller, dir, &name, &node));
        made.map(drop).map_err(|error| format!("cannot make {}: {error}", shown(path)))
    }

    /// Gives a file another name: `to`, or its own in `to` if that is a directory. A file of that
    /// name is replaced.
    ///
    /// # Errors
    /// A sentence.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), String> {
        let failed =
            |error: Error| format!("cannot move {} to {}: {error}", shown(from), shown(to));
        let (dir, name) = self.place(from).map_err(failed)?;
        let found = FileSystem::lookup(self.fs, dir, &name).map_err(failed)?;
        if from.ends_with(b"/") && !found.is_dir() {
            return Err(failed(Error::NotADirectory));
        }
        let target = self.target(to, &name, found.is_dir()).map_err(failed)?;
        if FileSystem::lookup(self.fs, target.0, &target.1).is_ok_and(|at| at.ino == found.ino) {
            return Err(format!("{} and {} are the same file", shown(from), shown(to)));
        }
        let (from, to) = ((dir, name.as_slice()), (target.0, target.1.as_slice()));
        self.fs.rename(&self.caller, from, to, RenameFlags::default()).map_err(failed)
    }

    /// Gives several files other names, as [`Self::rename`] does each: their own in `to`, which is a
    /// directory. Two of one name are refused before any is moved. Returns a sentence for each that
    /// could not be moved.
    pub fn rename_all(&mut self, from: &[Vec<u8>], to: &[u8]) -> Vec<String> {
        if from.len() > 1 && !self.is_directory(to) {
            return vec![format!("{} is not a directory", shown(to))];
        }
        let names: Vec<_> = from.iter().map(|path| ((), split(path).1)).collect();
        if let Some((first, second)) = same_name(&names) {
            return vec![would_overwrite(&shown(&from[first]), &shown(&from[second]))];
        }
        from.iter().filter_map(|from| self.rename(from, to).err()).collect()
    }

    /// The place that `path` means for what is called `name` now.
    fn target(&mut self, path: &[u8], name: &[u8], is_dir: bool) -> Result<Place, Error> {
        match self.find(path, true) {
            Ok(attr) if attr.is_dir() => Ok((attr.ino, name.to_vec())),
            _ if path.ends_with(b"/") && !is_dir => Err(Error::NotADirectory),
            _ => self.place(path),
        }
    }

    /// Makes a symbolic link with `target` at `path`, or in `path` if that is a directory.
    ///
    /// # Errors
    /// A sentence.
    pub fn symlink(&mut self, target: &[u8], path: &[u8]) -> Result<(), String> {
        let place = self.target(path, &split(target).1, false);
        let made = place
            .and_then(|(dir, name)| self.fs.symlink(&self.caller, dir, &name, target).map(drop));
        made.map_err(|error| format!("cannot make the link {}: {error}", shown(path)))
    }

    /// Gives the file at `from` another name beside its own: `path`, or its own in `path` if that
    /// is a directory.
    ///
    /// # Errors
    /// A sentence.
    pub fn link(&mut self, from: &[u8], path: &[u8]) -> Result<(), String> {
        let linked = self.link_to(from, path);
        linked.map_err(|error| format!("cannot link {} to {}: {error}", shown(path), shown(from)))
    }

    fn link_to(&mut self, from: &[u8], path: &[u8]) -> Result<(), Error> {
        let found = self.find(from, false)?;
        if found.is_dir() {
            return Err(Error::IsADirectory);
        }
        let (dir, name) = self.target(path, &split(from).1, false)?;
        self.fs.link(&self.caller, found.ino, dir, &name).map(drop)
    }

    /// There is a directory at `path`.
    pub fn is_directory(&mut self, path: &[u8]) -> bool {
        self.find(path, true).is_ok_and(|attr| attr.is_dir())
    }
}

/// All entries of a directory.
fn entries(fs: &mut Box<dyn FileSystem>, dir: Ino) -> Result<Vec<DirEntry>, Error> {
    let mut all: Vec<DirEntry> = Vec::new();
    loop {
        let more = Tree::list(fs, dir, all.last().map_or(0, |entry| entry.cookie))?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

fn in_itself(path: &[u8]) -> String {
    let path = shown(path);
    format!("cannot remove {path}: the directory is in itself or in two others; fsck tells more")
}

fn child(path: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
    [path, slash, name].concat()
}

/// The indices of the first two names that are the same. What is empty is no name ([`split`]).
pub fn same_name<P: Eq>(names: &[(P, Vec<u8>)]) -> Option<(usize, usize)> {
    let pairs = names.iter().enumerate().filter(|(_, (_, name))| !name.is_empty());
    pairs
        .filter_map(|(at, name)| Some((names[..at].iter().position(|before| before == name)?, at)))
        .next()
}

/// A sentence about two files that would go by one name into one directory.
pub fn would_overwrite(first: &str, second: &str) -> String {
    format!(
        "will not overwrite just-created {first} with {second}: both have one name; nothing was \
         changed"
    )
}

/// Splits a path into what comes before its last name, and that name: empty for the root, and for
/// "." and ".." at the end, which are no names that a directory could lose.
pub fn split(path: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let behind = |part: &[u8], is_last: fn(u8) -> bool| {
        part.iter().rposition(|&byte| is_last(byte)).map_or(0, |at| at + 1)
    };
    let end = behind(path, |byte| byte != b'/');
    let (above, name) = path[..end].split_at(behind(&path[..end], |byte| byte == b'/'));
    let above = if end == 0 { b"/" } else { above };
    let name = if matches!(name, b"." | b"..") { b"" } else { name };
    (above.to_vec(), name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_is_what_a_directory_can_lose() {
        let split = |path: &str| {
            let (above, name) = split(path.as_bytes());
            (String::from_utf8(above).unwrap(), String::from_utf8(name).unwrap())
        };
        let expected = [
            ("/", ("/", "")),
            ("", ("/", "")),
            ("a", ("", "a")),
            ("/a/b", ("/a/", "b")),
            ("/a//b//", ("/a//", "b")),
            ("/a/.", ("/a/", "")),
            ("/a/./", ("/a/", "")),
            ("/a/..", ("/a/", "")),
            ("/a/.b", ("/a/", ".b")),
        ];
        for (path, (above, name)) in expected {
            assert_eq!(split(path), (above.into(), name.into()), "{path}");
        }
    }
}
