//! Names for inodes to which nothing leads any more, as a salvage gives them.

use dovetail_block::Scheduler;
use dovetail_vfs::kit::Names;
use dovetail_vfs::mode::is_dir;
use dovetail_vfs::{Caller, Error};

use super::F2fs;
use super::names::set_name;
use crate::format::{FileType, Nid};

/// Blocks that a name may need: entries move out of an inode into a block, with three nodes.
const BLOCKS_FOR_NAME: u64 = 7;

impl<D: Scheduler> F2fs<D> {
    /// Names inode `ino`, which has no name, `name` in directory `dir`. It is its only name then.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NoSpace`]; damage; the device.
    pub(crate) fn adopt(
        &mut self,
        caller: &Caller,
        ino: Nid,
        dir: Nid,
        name: &[u8],
    ) -> Result<(), Error> {
        self.change(|fs| {
            fs.check_free(dir, name)?;
            fs.check_free_blocks(BLOCKS_FOR_NAME)?;
            let mode = fs.inode(ino)?.i_mode.get();
            fs.add_entry(dir, name, ino, FileType::of_mode(mode))?;
            if is_dir(mode) {
                fs.lead_dots(ino, dir)?;
                fs.add_links(dir, 1)?;
            } else {
                fs.edit_inode(ino)?.i_links.set(1);
            }
            fs.touch(dir, caller.now)?;
            set_name(fs.edit_inode(ino)?, dir, name);
            Ok(())
        })
    }

    /// Gives a directory "." and "..", where they are missing or lead elsewhere.
    ///
    /// # Errors
    /// [`Error::NoSpace`]; damage; the device.
    pub(crate) fn mend_dots(&mut self, dir: Nid, parent: Nid) -> Result<(), Error> {
        self.change(|fs| {
            fs.check_free_blocks(BLOCKS_FOR_NAME)?;
            let parent = if parent.is_some() { parent } else { fs.superblock.root };
            fs.lead_dots(dir, parent)
        })
    }

    fn lead_dots(&mut self, dir: Nid, parent: Nid) -> Result<(), Error> {
        for (name, to) in [(&b"."[..], dir), (b"..", parent)] {
            match self.find_entry(dir, name)? {
                Some(entry) => self.set_entry(dir, &entry, to, FileType::DIRECTORY)?,
                None => self.add_entry(dir, name, to, FileType::DIRECTORY)?,
            }
        }
        Ok(())
    }
}
