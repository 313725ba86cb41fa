//! New inodes as the kernel would make them: with the caller's umask, or with what the directory's default ACL says.

use dovetail_vfs::{Attr, Caller, Error, FileSystem, Ino, NewNode};

/// Where a new inode goes, and what the caller wants of it.
pub(crate) struct Place<'a> {
    pub(crate) dir: Ino,
    pub(crate) name: &'a [u8],
    pub(crate) umask: u32,
}

/// Makes an inode, held once for the kernel.
pub(crate) fn create(
    fs: &mut dyn FileSystem,
    caller: &Caller,
    place: &Place<'_>,
    node: NewNode,
) -> Result<Attr, Error> {
    let node = NewNode { mode: node.mode & !(place.umask as u16 & 0o777), ..node };
    let attr = fs.create(caller, place.dir, place.name, &node)?;
    fs.hold(attr.ino);
    Ok(attr)
}
