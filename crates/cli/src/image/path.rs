//! From a path inside an image to its inode.

use dovetail_f2fs::MAX_SYMLINKS;
use dovetail_vfs::{Attr, Error};

use super::tree::Tree;
use crate::Failure;

const SYMLINK: u16 = 0o120_000;

/// A name or path as it is shown: in one line, whatever its bytes.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}

/// What `path` leads to from the root. A target that begins with a slash begins at the image's root; ".." in the root is
/// the root; a symbolic link at the end is followed if `follow`.
pub(super) fn resolve(tree: &mut dyn Tree, path: &[u8], follow: bool) -> Result<Attr, Failure> {
    find(tree, path, follow).map_err(|error| match error {
        Error::NotFound => Failure::Failed(format!("there is no {}", shown(path))),
        error => Failure::Failed(format!("{}: {error}", shown(path))),
    })
}

pub(super) fn find(tree: &mut dyn Tree, path: &[u8], follow: bool) -> Result<Attr, Error> {
    let mut todo = components(path);
    let root = tree.root();
    let mut here = tree.attr(root)?;
    let mut links = 0;
    while let Some(name) = todo.pop() {
        let next = step(tree, &here, &name)?;
        if next.kind() != SYMLINK || !follow && todo.is_empty() {
            here = next;
            continue;
        }
        links += 1;
        if links > MAX_SYMLINKS {
            return Err(Error::Invalid("it leads through more than 40 symbolic links"));
        }
        let target = tree.read_link(next.ino)?;
        if target.starts_with(b"/") {
            here = tree.attr(root)?;
        }
        todo.extend(components(&target));
    }
    Ok(here)
}

fn step(tree: &mut dyn Tree, here: &Attr, name: &[u8]) -> Result<Attr, Error> {
    if !here.is_dir() {
        return Err(Error::NotADirectory);
    }
    tree.lookup(here.ino, name)
}

/// The names of a path, the last one first; empty ones and "." say nothing.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.rev().map(<[u8]>::to_vec).collect()
}
