//! Attributes: setattr and what follows from it.

use dovetail_vfs::mode::S_IFMT;
use dovetail_vfs::{Attr, Caller, Error, Ino, SetAttr};

use super::{Model, Node};

impl Model {
    pub(super) fn set_attributes(
        &mut self,
        caller: &Caller,
        ino: Ino,
        changes: &SetAttr,
    ) -> Result<Attr, Error> {
        let limit = self.limits.file_size;
        let node = self.node_mut(ino)?;
        if let Some(size) = changes.size {
            set_size(node, size, limit)?;
            node.attr.mtime = caller.now;
        }
        set_owner(node, changes);
        if let Some(mode) = changes.mode {
            node.attr.mode = node.attr.mode & S_IFMT | mode & !S_IFMT;
        }
        node.attr.atime = changes.atime.unwrap_or(node.attr.atime);
        node.attr.mtime = changes.mtime.unwrap_or(node.attr.mtime);
        node.attr.ctime = changes.ctime.unwrap_or(caller.now);
        Ok(node.shown())
    }
}

fn set_size(node: &mut Node, size: u64, limit: u64) -> Result<(), Error> {
    let bytes = node.file_mut()?;
    if size > limit {
        return Err(Error::FileTooBig);
    }
    bytes.resize(size);
    Ok(())
}

fn set_owner(node: &mut Node, changes: &SetAttr) {
    if changes.uid.is_none() && changes.gid.is_none() {
        return;
    }
    node.attr.uid = changes.uid.unwrap_or(node.attr.uid);
    node.attr.gid = changes.gid.unwrap_or(node.attr.gid);
}
