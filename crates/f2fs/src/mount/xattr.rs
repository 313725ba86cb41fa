//! Extended attributes: read as one list, changed, and stored again.

use dovetail_block::Scheduler;
use dovetail_vfs::kit::{Names, XattrNameSpace, XattrRefused};
use dovetail_vfs::{Caller, Error, XattrFlags};

use super::F2fs;
use super::attributes::set_ctime;
use crate::error::Error as Failure;
use crate::format::{
    InlineFlags, Nid, XATTR_BYTES_IN_NODE, XATTR_NODE_OFFSET, Xattr, XattrIndex, encode_xattrs,
    parse_xattrs,
};

/// Bytes of the list's header and of one entry's.
const HEADERS: usize = 24 + 4;

impl<D: Scheduler> F2fs<D> {
    /// All attributes of the inode, in the order of the disk.
    pub(super) fn xattr_list(&mut self, ino: Nid) -> Result<Vec<Xattr>, Failure> {
        let mut area = self.inline_xattr_area(ino)?;
        let nid = Nid(self.inode(ino)?.i_xattr_nid.get());
        if nid.is_some() {
            let node = self.node(nid, ino, XATTR_NODE_OFFSET)?;
            area.extend_from_slice(&node[..XATTR_BYTES_IN_NODE]);
        }
        Ok(parse_xattrs(&area, ino)?)
    }

    /// The bytes in the inode; none if it has no room for attributes.
    fn inline_xattr_area(&mut self, ino: Nid) -> Result<Vec<u8>, Failure> {
        let has = InlineFlags(self.inode(ino)?.i_inline).has(InlineFlags::XATTR);
        let area = self.geometry(ino)?.inline_xattrs();
        Ok(if has { self.cached(ino)?[area].to_vec() } else { Vec::new() })
    }

    pub(super) fn xattr(&mut self, ino: Nid, name: &[u8]) -> Result<Vec<u8>, Error> {
        let (index, rest) = XattrIndex::of_name(name).ok_or_else(|| unknown(name))?;
        let list = self.xattr_list(ino)?;
        let found = list.iter().find(|xattr| xattr.index == index && xattr.name == rest);
        found.map(Xattr::system_value).ok_or(Error::NoAttribute)
    }

    pub(super) fn set_xattr(
        &mut self,
        caller: &Caller,
        ino: Nid,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error> {
        self.marks(ino)?.check_none()?;
        let new = Xattr::from_system(name, value).map_err(|refused| match refused {
            XattrRefused::NameSpace => unknown(name),
            XattrRefused::Acl => Error::Invalid("the value is no access control list"),
        })?;
        // as in Linux, which does not count the name here
        if value.len() > self.inline_xattr_area(ino)?.len() + XATTR_BYTES_IN_NODE - HEADERS {
            return Err(Error::TooBig);
        }
        let mut list = self.xattr_list(ino)?;
        let found =
            list.iter().position(|xattr| xattr.index == new.index && xattr.name == new.name);
        match found {
            Some(_) if flags.create => return Err(Error::Exists),
            None if flags.replace => return Err(Error::NoAttribute),
            Some(at) => list[at] = new,
            None => list.push(new),
        }
        self.store_xattrs(caller, ino, &list)
    }

    pub(super) fn remove_xattr(
        &mut self,
        caller: &Caller,
        ino: Nid,
        name: &[u8],
    ) -> Result<(), Error> {
        self.marks(ino)?.check_none()?;
        let (index, rest) = XattrIndex::of_name(name).ok_or_else(|| unknown(name))?;
        let mut list = self.xattr_list(ino)?;
        let found = list.iter().position(|xattr| xattr.index == index && xattr.name == rest);
        list.remove(found.ok_or(Error::NoAttribute)?);
        self.store_xattrs(caller, ino, &list)
    }

    fn store_xattrs(&mut self, caller: &Caller, ino: Nid, list: &[Xattr]) -> Result<(), Error> {
        let area = self.geometry(ino)?.inline_xattrs();
        let inline_len = self.inline_xattr_area(ino)?.len();
        // as Linux 6.1 and 6.12 say it: no room that could be freed is missing
        let layout = encode_xattrs(list, inline_len).map_err(|_| Error::TooBig)?;
        self.store_xattr_node(ino, layout.node.as_deref())?;
        if inline_len > 0 {
            self.load_node(ino, ino, 0)?;
            self.edit_node(ino)?[area].copy_from_slice(&layout.inline);
        }
        set_ctime(self.edit_inode(ino)?, caller.now);
        if self.is_dir(ino)? {
            self.since.note_xattrs_of_dir(ino);
        }
        Ok(())
    }

    /// Stores what did not fit in the inode in a node of its own, and drops the node when it is not
    /// needed.
    fn store_xattr_node(
        &mut self,
        ino: Nid,
        bytes: Option<&[u8; XATTR_BYTES_IN_NODE]>,
    ) -> Result<(), Failure> {
        let old = Nid(self.inode(ino)?.i_xattr_nid.get());
        let Some(bytes) = bytes else {
            if old.is_some() {
                self.drop_node(old)?;
                self.since.note_dropped_nodes(ino);
                let raw = self.edit_inode(ino)?;
                raw.i_xattr_nid.set(0);
                raw.i_blocks.set(raw.i_blocks.get().saturating_sub(1));
            }
            return Ok(());
        };
        let nid = if old.is_some() {
            old
        } else {
            let nid = self.new_node(ino, XATTR_NODE_OFFSET)?;
            self.edit_inode(ino)?.i_xattr_nid.set(nid.0);
            nid
        };
        self.load_node(nid, ino, XATTR_NODE_OFFSET)?;
        self.edit_node(nid)?[..XATTR_BYTES_IN_NODE].copy_from_slice(bytes);
        Ok(())
    }
}

fn unknown(name: &[u8]) -> Error {
    Error::Unsupported(format!("the extended attribute {}", String::from_utf8_lossy(name)))
}
