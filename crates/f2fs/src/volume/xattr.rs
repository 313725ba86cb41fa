//! Extended attributes of an inode.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::Error;
use crate::format::{Inode, XATTR_BYTES_IN_NODE, XATTR_NODE_OFFSET, Xattr, parse_xattrs};

impl<D: BlockDevice> Volume<D> {
    /// The extended attributes of `inode`, in the order of the disk.
    ///
    /// # Errors
    /// A damaged xattr node or list.
    pub fn xattrs(&mut self, inode: &Inode) -> Result<Vec<Xattr>, Error> {
        let mut area = inode.inline_xattrs().to_vec();
        if inode.xattr_nid.is_some() {
            let node = self.node(inode.xattr_nid, inode.ino, XATTR_NODE_OFFSET)?;
            area.extend_from_slice(&node[..XATTR_BYTES_IN_NODE]);
        }
        Ok(parse_xattrs(&area, inode.ino)?)
    }
}
