//! A file, or the files of a directory, as `ls -l` shows them.

use dovetail_vfs::shown;

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

/// Lists what is at `path`.
///
/// # Errors
/// No such path; a directory that cannot be read.
pub fn list(tree: &mut dyn Tree, path: &[u8]) -> Result<Listing, Error> {
    let found = resolve(tree, path, true)?;
    if !found.is_dir() {
        let lines = line(tree, &found, &shown(path)).map_err(Error::failed)?;
        return Ok(Listing { lines, damage: Vec::new() });
    }
    let mut entries = Vec::new();
    loop {
        let cookie = entries.last().map_or(0, |entry: &dovetail_vfs::DirEntry| entry.cookie);
        let more = tree.list(found.ino, cookie).map_err(Error::failed)?;
        if more.is_empty() {
            break;
        }
        entries.extend(more);
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut listing = Listing::default();
    for entry in &entries {
        let name = shown(&entry.name);
        match tree.attr(entry.ino).and_then(|attr| line(tree, &attr, &name)) {
            Ok(line) => listing.lines += &line,
            Err(error) => listing.damage.push(format!("{name}: {error}")),
        }
    }
    let left = tree.left_out(found.ino).map_err(Error::failed)?;
    listing.damage.extend(left.sentences().map(|why| format!("{}: {why}", shown(path))));
    Ok(listing)
}
