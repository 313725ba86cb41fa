//! A file, or the files of a directory, as `ls -l` shows them.

use std::collections::HashSet;

use dovetail_vfs::{Attr, DirEntry, Ino, mode, shown};

use crate::line::line;
use crate::{Error, Tree, resolve};

/// A listing: what there is, and what is damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// A line each.
    pub lines: String,
    /// Sentences about entries that cannot be shown.
    pub damage: Vec<String>,
}

/// The file that `path` leads to; the link itself where that leads nowhere, as ls has it.
fn resolve_or_link(tree: &mut dyn Tree, path: &[u8]) -> Result<Attr, Error> {
    let found = resolve(tree, path, true);
    found.or_else(|error| resolve(tree, path, false).map_err(|_| error))
}

/// Lists what is at `path`.
///
/// # Errors
/// No such path; a directory that cannot be read.
pub fn list(tree: &mut dyn Tree, path: &[u8]) -> Result<Listing, Error> {
    let found = resolve_or_link(tree, path)?;
    if !found.is_dir() {
        let lines = line(tree, &found, &shown(path)).map_err(Error::failed)?;
        return Ok(Listing { lines, damage: Vec::new() });
    }
    directory(tree, found.ino, path).map(|(listing, _)| listing)
}

/// Lists what is at `path`, and below a directory one after the other, each under its path; a
/// symbolic link is followed at the start only. `tell` takes each as it comes.
///
/// # Errors
/// No such path; the first directory that cannot be read.
pub fn list_tree(
    tree: &mut dyn Tree,
    path: &[u8],
    tell: &mut dyn FnMut(Listing),
) -> Result<(), Error> {
    let found = resolve_or_link(tree, path)?;
    if !found.is_dir() {
        tell(list(tree, path)?);
        return Ok(());
    }
    // of a damaged tree a directory may lie below itself
    let mut seen = HashSet::from([found.ino]);
    let mut todo = vec![(path.to_vec(), found.ino)];
    while let Some((path, ino)) = todo.pop() {
        let (mut listing, below) = match directory(tree, ino, &path) {
            Ok(found) => found,
            Err(error) => {
                let damage = vec![format!("{}: {error}", shown(&path))];
                (Listing { lines: String::new(), damage }, Vec::new())
            }
        };
        let apart = if seen.len() == 1 && todo.is_empty() { "" } else { "\n" };
        listing.lines = format!("{apart}{}:\n{}", shown(&path), listing.lines);
        tell(listing);
        let below = below.into_iter().filter(|(_, ino)| seen.insert(*ino));
        let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
        let below: Vec<_> =
            below.map(|(name, ino)| ([&path[..], slash, &name].concat(), ino)).collect();
        todo.extend(below.into_iter().rev());
    }
    Ok(())
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path from the root.
    pub path: Vec<u8>,
    /// Attributes.
    pub attr: Attr,
    /// Target of a symbolic link.
    pub target: Option<Vec<u8>>,
}

/// The file at `path`; of a directory those in it and, if `recursive`, all below it. A directory
/// comes before what it holds. Returns them, and sentences about damage.
///
/// # Errors
/// No such path; the first directory that cannot be read.
pub fn entries(
    tree: &mut dyn Tree,
    path: &[u8],
    recursive: bool,
) -> Result<(Vec<Entry>, Vec<String>), Error> {
    let found = resolve_or_link(tree, path)?;
    let (mut all, mut damage) = (Vec::new(), Vec::new());
    if !found.is_dir() {
        all.push(Entry { path: path.to_vec(), attr: found, target: None });
        return Ok((all, damage));
    }
    let start: &[u8] = if path == b"/" { b"" } else { path.strip_suffix(b"/").unwrap_or(path) };
    // of a damaged tree a directory may lie below itself
    let mut seen = HashSet::from([found.ino]);
    let mut todo = vec![(start.to_vec(), found.ino)];
    let mut is_first = true;
    while let Some((folder, ino)) = todo.pop() {
        let inside = match sorted(tree, ino) {
            Err(error) if is_first => return Err(error),
            Err(error) => {
                damage.push(format!("{}: {error}", shown(&folder)));
                continue;
            }
            Ok(inside) => inside,
        };
        is_first = false;
        let mut below = Vec::new();
        for entry in inside {
            let path = [&folder[..], b"/", &entry.name].concat();
            let attr = tree.attr(entry.ino);
            let with_target = attr.and_then(|attr| {
                let is_link = mode::is_symlink(attr.mode);
                let target = is_link.then(|| tree.read_link(entry.ino)).transpose()?;
                Ok((attr, target))
            });
            match with_target {
                Ok((attr, target)) => {
                    if recursive && attr.is_dir() && seen.insert(entry.ino) {
                        below.push((path.clone(), entry.ino));
                    }
                    all.push(Entry { path, attr, target });
                }
                Err(error) => damage.push(format!("{}: {error}", shown(&path))),
            }
        }
        damage.extend(left_out(tree, ino, &folder)?);
        todo.extend(below.into_iter().rev());
    }
    Ok((all, damage))
}

/// The entries of a directory by name.
fn sorted(tree: &mut dyn Tree, dir: Ino) -> Result<Vec<DirEntry>, Error> {
    let mut entries: Vec<DirEntry> = Vec::new();
    loop {
        let cookie = entries.last().map_or(0, |entry| entry.cookie);
        let more = tree.list(dir, cookie).map_err(Error::failed)?;
        if more.is_empty() {
            break;
        }
        entries.extend(more);
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Sentences about parts of a directory that cannot be read.
fn left_out(tree: &mut dyn Tree, dir: Ino, path: &[u8]) -> Result<Vec<String>, Error> {
    let left = tree.left_out(dir).map_err(Error::failed)?;
    Ok(left.sentences().map(|why| format!("{}: {why}", shown(path))).collect())
}

/// The directories of a directory: name and inode.
type Below = Vec<(Vec<u8>, Ino)>;

fn directory(tree: &mut dyn Tree, dir: Ino, path: &[u8]) -> Result<(Listing, Below), Error> {
    let entries = sorted(tree, dir)?;
    let (mut listing, mut below) = (Listing::default(), Vec::new());
    for entry in entries {
        let name = shown(&entry.name);
        let attr = tree.attr(entry.ino);
        if attr.as_ref().is_ok_and(Attr::is_dir) {
            below.push((entry.name, entry.ino));
        }
        match attr.and_then(|attr| line(tree, &attr, &name)) {
            Ok(line) => listing.lines += &line,
            Err(error) => listing.damage.push(format!("{name}: {error}")),
        }
    }
    listing.damage.extend(left_out(tree, dir, path)?);
    Ok((listing, below))
}
