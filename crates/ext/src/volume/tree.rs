//! The files of a volume by path and number.

use dovetail_block::BlockDevice;
use dovetail_vfs::kit::{NamedInodes, NamedValues, VolumeTree};
use dovetail_vfs::{Attr, Error as CallError, Ino as Number, LeftOut};

use super::Volume;
use crate::error::Error;
use crate::format::{FileType, Ino, Inode};

impl<D: BlockDevice> Volume<D> {
    /// The root directory.
    ///
    /// # Errors
    /// A damaged inode.
    pub fn root(&mut self) -> Result<Inode, Error> {
        self.inode(Ino::ROOT)
    }
}

impl<D: BlockDevice> VolumeTree for Volume<D> {
    type Inode = Inode;
    type Error = Error;

    fn root_inode(&mut self) -> Result<Inode, Error> {
        self.root()
    }

    fn inode_of(&mut self, ino: Number) -> Result<Inode, Error> {
        self.inode(Ino(u32::try_from(ino.0).unwrap_or(0)))
    }

    fn attr_of(inode: &Inode) -> Attr {
        let is_device = matches!(inode.file_type(), FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE);
        Attr {
            ino: Number(inode.ino.0.into()),
            mode: inode.mode,
            links: inode.links.into(),
            uid: inode.uid,
            gid: inode.gid,
            rdev: if is_device { inode.device() } else { (0, 0) },
            size: inode.size,
            blocks: inode.sectors,
            atime: inode.atime,
            mtime: inode.mtime,
            ctime: inode.ctime,
            generation: inode.generation,
        }
    }

    /// A damaged volume is asked for its files as well: damage keeps its sentence.
    fn told(error: Error) -> CallError {
        match error {
            Error::Corrupt(what) => CallError::Corrupt(what.to_string()),
            error => error.into(),
        }
    }

    fn root_ino(&self) -> Number {
        Number(Ino::ROOT.0.into())
    }

    fn child(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<Inode>, Error> {
        let Some(entry) = self.lookup(dir, name)? else { return Ok(None) };
        self.inode(entry.ino).map(Some)
    }

    fn link_target(&mut self, link: &Inode) -> Result<Vec<u8>, Error> {
        self.read_link(link)
    }

    fn names_in(&mut self, dir: &Inode) -> Result<(NamedInodes, LeftOut), Error> {
        let (entries, left) = self.whole_entries(dir)?;
        let named = entries.into_iter().filter(|entry| !entry.is_dot());
        Ok((named.map(|entry| (entry.name, Number(entry.ino.0.into()))).collect(), left))
    }

    fn read_at(&mut self, file: &Inode, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.read(file, offset, into)
    }

    fn data_from(&mut self, file: &Inode, offset: u64) -> Result<u64, Error> {
        self.next_data(file, offset)
    }

    fn hole_from(&mut self, file: &Inode, offset: u64) -> Result<u64, Error> {
        self.next_hole(file, offset)
    }

    fn attributes_of(&mut self, file: &Inode) -> Result<NamedValues, Error> {
        let list = self.xattrs(file)?;
        Ok(list.iter().map(|xattr| (xattr.system_name(), xattr.system_value())).collect())
    }
}
