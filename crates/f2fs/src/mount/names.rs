//! Making, naming, renaming and removing inodes.

use dovetail_block::Scheduler;
use dovetail_vfs::kit::{Marks, Names, Rename, WriteData};
use dovetail_vfs::mode::{S_IFLNK, S_IFREG, S_ISGID, is_device, is_dir, kind};
use dovetail_vfs::{Caller, Error, RenameFlags};

use super::F2fs;
use super::attributes::{device_words, set_atime, set_crtime, set_ctime, set_mtime};
use super::data::{ADVISE_COLD, ADVISE_HOT, ADVISE_LOST_PARENT, WritebackReason};
use super::directory::Entry;
use super::policy::matches_extension;
use crate::error::Error as Failure;
use crate::format::{DentryBlockMut, Features, FileType, InlineFlags, InodeFlags, Nid, RawInode};

/// `i_flags` of new directories: hashed, as the kernel has it.
const FLAG_INDEX: u32 = 0x1000;
/// `i_flags` of a directory whose project new inodes take over.
const FLAG_PROJECT_INHERIT: u32 = 0x2000_0000;
/// All extra attributes, as the kernel gives them to every new inode.
const EXTRA_SIZE: u16 = 36;
/// Words for inline extended attributes, as the kernel gives them to every new inode.
const XATTR_WORDS: u16 = 50;

/// Marks that keep an inode from changing.
pub(super) fn marks_of(raw: &RawInode) -> Marks {
    let flags = InodeFlags(raw.i_flags.get());
    Marks {
        immutable: flags.has(InodeFlags::IMMUTABLE),
        append_only: flags.has(InodeFlags::APPEND),
    }
}

/// A new inode.
struct Newborn<'a> {
    dir: Nid,
    name: &'a [u8],
    mode: u16,
    rdev: (u32, u32),
}

impl<D: Scheduler> Names for F2fs<D> {
    type Ino = Nid;
    type Entry = Entry;

    const MAX_LINKS: u64 = u32::MAX as u64;

    fn target_of(entry: &Entry) -> Nid {
        entry.ino
    }

    fn root_dir(&self) -> Nid {
        self.superblock.root
    }

    fn inode_bound(&self) -> u64 {
        self.counts.valid_inodes.into()
    }

    fn is_directory(&mut self, ino: Nid) -> Result<bool, Error> {
        Ok(self.is_dir(ino)?)
    }

    fn link_count(&mut self, ino: Nid) -> Result<u64, Error> {
        Ok(self.inode(ino)?.i_links.get().into())
    }

    fn marks(&mut self, ino: Nid) -> Result<Marks, Error> {
        Ok(marks_of(self.inode(ino)?))
    }

    fn search(&mut self, dir: Nid, name: &[u8]) -> Result<Option<Entry>, Error> {
        Ok(self.find_entry(dir, name)?)
    }

    fn holds_nothing(&mut self, dir: Nid) -> Result<bool, Error> {
        Ok(self.is_empty_dir(dir)?)
    }
}

impl<D: Scheduler> F2fs<D> {
    /// Makes an inode that is not a link and names it.
    pub(super) fn make(
        &mut self,
        caller: &Caller,
        dir: Nid,
        name: &[u8],
        mode: u16,
        rdev: (u32, u32),
    ) -> Result<Nid, Error> {
        self.check_free(dir, name)?;
        self.check_free_blocks(3)?;
        let ino = self.new_inode(caller, &Newborn { dir, name, mode, rdev })?;
        if let Err(error) = self.add_entry(dir, name, ino, FileType::of_mode(mode)) {
            self.drop_inode(ino)?;
            return Err(error.into());
        }
        if is_dir(mode) {
            self.add_links(dir, 1)?;
        }
        self.touch(dir, caller.now)?;
        Ok(ino)
    }

    fn new_inode(&mut self, caller: &Caller, new: &Newborn<'_>) -> Result<Nid, Error> {
        let ino = self.take_nid()?;
        self.load_nat_page(self.nat.page_of(ino))?;
        let is_dir = is_dir(new.mode);
        self.add_node(ino, ino, 0, is_dir);
        self.counts.valid_inodes += 1;
        self.since.note_new_inode(ino);
        self.fill_inode(caller, ino, new)?;
        if is_dir {
            self.fill_directory(ino, new.dir)?;
        }
        Ok(ino)
    }

    fn fill_inode(&mut self, caller: &Caller, ino: Nid, new: &Newborn<'_>) -> Result<(), Error> {
        let features = self.superblock.features;
        let parent = self.inode(new.dir)?;
        let (parent_mode, parent_gid, parent_flags) =
            (parent.i_mode.get(), parent.i_gid.get(), parent.i_flags.get());
        let project = parent.extra.i_projid;
        let (advise, inline) = (self.advise_of(new), self.inline_of(new.mode));
        let generation = self.random.next_u64() as u32;
        let inherits = parent_mode & S_ISGID != 0;
        let is_dir = is_dir(new.mode);
        let xattr_words = self.options.inline_xattr_words.unwrap_or(XATTR_WORDS);
        let raw = self.edit_inode(ino)?;
        raw.i_mode.set(if inherits && is_dir { new.mode | S_ISGID } else { new.mode });
        (raw.i_advise, raw.i_inline) = (advise, inline);
        raw.i_uid.set(caller.uid);
        raw.i_gid.set(if inherits { parent_gid } else { caller.gid });
        raw.i_links.set(if is_dir { 2 } else { 1 });
        raw.i_blocks.set(1);
        raw.i_generation.set(generation);
        set_atime(raw, caller.now);
        set_mtime(raw, caller.now);
        set_ctime(raw, caller.now);
        let flags = if is_dir { FLAG_INDEX | (parent_flags & FLAG_PROJECT_INHERIT) } else { 0 };
        raw.i_flags.set(flags);
        set_name(raw, new.dir, new.name);
        if features.has(Features::EXTRA_ATTR) {
            raw.extra.i_extra_isize.set(EXTRA_SIZE);
            set_crtime(raw, features, caller.now);
            if features.has(Features::FLEXIBLE_INLINE_XATTR) {
                raw.extra.i_inline_xattr_size.set(if inline & InlineFlags::XATTR.0 != 0 {
                    xattr_words
                } else {
                    0
                });
            }
            if features.has(Features::PROJECT_QUOTA) && parent_flags & FLAG_PROJECT_INHERIT != 0 {
                raw.extra.i_projid = project;
            }
        }
        if is_device(new.mode) {
            self.set_device(ino, new.rdev)?;
        }
        Ok(())
    }

    pub(super) fn set_device(&mut self, ino: Nid, rdev: (u32, u32)) -> Result<(), Failure> {
        let at = self.geometry(ino)?.pointer_at(0);
        let [first, second] = device_words(rdev);
        let block = self.edit_node(ino)?;
        block[at..at + 4].copy_from_slice(&first.to_le_bytes());
        block[at + 4..at + 8].copy_from_slice(&second.to_le_bytes());
        Ok(())
    }

    /// A new file is cold or hot by its name's extension.
    fn advise_of(&self, new: &Newborn<'_>) -> u8 {
        let any =
            |list: &[Vec<u8>]| list.iter().any(|extension| matches_extension(new.name, extension));
        match kind(new.mode) {
            S_IFREG if any(&self.superblock.cold_extensions) => ADVISE_COLD,
            S_IFREG if any(&self.superblock.hot_extensions) => ADVISE_HOT,
            _ => 0,
        }
    }

    fn inline_of(&self, mode: u16) -> u8 {
        let flag = |on: bool, flag: InlineFlags| if on { flag.0 } else { 0 };
        let content = matches!(kind(mode), S_IFREG | S_IFLNK);
        flag(self.options.inline_xattr, InlineFlags::XATTR)
            | flag(content && self.options.inline_data, InlineFlags::DATA)
            | flag(is_dir(mode) && self.options.inline_dentry, InlineFlags::DENTRY)
            | flag(self.superblock.features.has(Features::EXTRA_ATTR), InlineFlags::EXTRA_ATTR)
    }

    /// "." and ".." of a new directory.
    fn fill_directory(&mut self, ino: Nid, parent: Nid) -> Result<(), Error> {
        self.edit_inode(ino)?.i_current_depth.set(1);
        if self.has_inline_entries(ino)? {
            let area = self.edit_inline_area(ino)?;
            let size = area.len() as u64;
            let mut entries = DentryBlockMut::inline(area);
            entries.insert(b".", 0, ino, FileType::DIRECTORY);
            entries.insert(b"..", 0, parent, FileType::DIRECTORY);
            self.edit_inode(ino)?.i_size.set(size);
            return Ok(());
        }
        self.add_entry(ino, b".", ino, FileType::DIRECTORY)?;
        Ok(self.add_entry(ino, b"..", parent, FileType::DIRECTORY)?)
    }

    pub(super) fn make_symlink(
        &mut self,
        caller: &Caller,
        dir: Nid,
        name: &[u8],
        target: &[u8],
    ) -> Result<Nid, Error> {
        if target.is_empty() {
            return Err(Error::NotFound);
        }
        if target.len() >= crate::format::BLOCK {
            return Err(Error::NameTooLong);
        }
        // the inode, a block of content; the entry may move others into a block, and need one
        // itself with three nodes
        self.check_free_blocks(7)?;
        let ino = self.make(caller, dir, name, 0o120_777, (0, 0))?;
        let written = self.write_target(ino, target);
        if written.is_err() {
            self.unlink_entry(caller, dir, name)?;
        }
        written.map(|()| ino)
    }

    fn write_target(&mut self, ino: Nid, target: &[u8]) -> Result<(), Error> {
        if self.has_inline_data(ino)? && target.len() as u64 <= self.inline_capacity(ino)? {
            self.write_inline(ino, 0, WriteData::Bytes(target))?;
        } else {
            self.convert_inline(ino)?;
            let mut block = [0; crate::format::BLOCK];
            block[..target.len()].copy_from_slice(target);
            self.write_page(ino, 0, dovetail_block::Content::Bytes(std::sync::Arc::new(block)))?;
            // a checkpoint makes the name durable: no link may lead nowhere then
            self.write_back(ino, WritebackReason::InCall)?;
        }
        self.edit_inode(ino)?.i_size.set(target.len() as u64);
        Ok(())
    }

    pub(super) fn add_name(
        &mut self,
        caller: &Caller,
        ino: Nid,
        dir: Nid,
        name: &[u8],
    ) -> Result<(), Error> {
        self.check_link(ino, dir, name)?;
        let raw = self.inode(ino)?;
        let (mode, links) = (raw.i_mode.get(), raw.i_links.get());
        self.add_entry(dir, name, ino, FileType::of_mode(mode))?;
        self.touch(dir, caller.now)?;
        let raw = self.edit_inode(ino)?;
        raw.i_links.set(links + 1);
        raw.i_advise |= ADVISE_LOST_PARENT;
        set_ctime(raw, caller.now);
        Ok(())
    }

    pub(super) fn unlink_entry(
        &mut self,
        caller: &Caller,
        dir: Nid,
        name: &[u8],
    ) -> Result<(), Error> {
        let entry = self.entry_to_unlink(dir, name)?;
        self.check_orphan_capacity()?;
        self.remove_entry(dir, &entry)?;
        self.touch(dir, caller.now)?;
        set_ctime(self.edit_inode(entry.ino)?, caller.now);
        Ok(self.lose_name(entry.ino)?)
    }

    /// The inode has one name less; of a directory, the last one.
    pub(super) fn lose_name(&mut self, ino: Nid) -> Result<(), Failure> {
        let raw = self.edit_inode(ino)?;
        let links = if is_dir(raw.i_mode.get()) { 0 } else { raw.i_links.get().saturating_sub(1) };
        raw.i_links.set(links);
        if links == 0 { self.orphan_or_drop(ino) } else { Ok(()) }
    }

    pub(super) fn add_links(&mut self, ino: Nid, more: i32) -> Result<(), Failure> {
        let raw = self.edit_inode(ino)?;
        raw.i_links.set(raw.i_links.get().saturating_add_signed(more));
        Ok(())
    }

    pub(super) fn remove_directory(
        &mut self,
        caller: &Caller,
        dir: Nid,
        name: &[u8],
    ) -> Result<(), Error> {
        let entry = self.entry_to_rmdir(dir, name)?;
        self.check_orphan_capacity()?;
        self.remove_entry(dir, &entry)?;
        self.since.note_lost_dir(dir);
        self.add_links(dir, -1)?;
        self.touch(dir, caller.now)?;
        set_ctime(self.edit_inode(entry.ino)?, caller.now);
        Ok(self.lose_name(entry.ino)?)
    }

    pub(super) fn rename_entry(
        &mut self,
        caller: &Caller,
        (dir, name): (Nid, &[u8]),
        (new_dir, new_name): (Nid, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        match self.plan_rename((dir, name), (new_dir, new_name), flags)? {
            Rename::Nothing => Ok(()),
            Rename::Exchange { entry, taken } => {
                self.exchange(caller, (dir, name, entry), (new_dir, new_name, taken))
            }
            Rename::Replace { entry, taken } => {
                self.check_orphan_capacity()?;
                self.replace(caller, (dir, entry), (new_dir, new_name, taken))
            }
            Rename::Move { entry } => {
                self.move_entry(caller, (dir, name, entry), (new_dir, new_name))
            }
        }
    }

    fn move_entry(
        &mut self,
        caller: &Caller,
        (dir, name, entry): (Nid, &[u8], Entry),
        (new_dir, new_name): (Nid, &[u8]),
    ) -> Result<(), Error> {
        let kind = FileType::of_mode(self.inode(entry.ino)?.i_mode.get());
        // a device that is full takes nothing; else adding the entry asks for the blocks it needs,
        // and changes nothing without them
        self.check_free_blocks(0)?;
        self.add_entry(new_dir, new_name, entry.ino, kind)?;
        // the new entry may have moved the old one, out of the inode
        let entry = self.entry_of(dir, name)?;
        self.remove_entry(dir, &entry)?;
        self.renamed(caller, entry.ino, dir, (new_dir, new_name))?;
        self.touch(dir, caller.now)?;
        Ok(self.touch(new_dir, caller.now)?)
    }

    fn replace(
        &mut self,
        caller: &Caller,
        (dir, entry): (Nid, Entry),
        (new_dir, new_name, taken): (Nid, &[u8], Entry),
    ) -> Result<(), Error> {
        let kind = FileType::of_mode(self.inode(entry.ino)?.i_mode.get());
        self.set_entry(new_dir, &taken, entry.ino, kind)?;
        self.remove_entry(dir, &entry)?;
        if self.is_dir(taken.ino)? {
            self.since.note_lost_dir(new_dir);
            self.add_links(new_dir, -1)?;
        }
        self.since.note_changed_dir(new_dir);
        self.renamed(caller, entry.ino, dir, (new_dir, new_name))?;
        self.touch(dir, caller.now)?;
        self.touch(new_dir, caller.now)?;
        set_ctime(self.edit_inode(taken.ino)?, caller.now);
        Ok(self.lose_name(taken.ino)?)
    }

    fn exchange(
        &mut self,
        caller: &Caller,
        (dir, name, entry): (Nid, &[u8], Entry),
        (new_dir, new_name, taken): (Nid, &[u8], Entry),
    ) -> Result<(), Error> {
        if entry.ino == taken.ino {
            return Ok(());
        }
        let kind = FileType::of_mode(self.inode(entry.ino)?.i_mode.get());
        let other_kind = FileType::of_mode(self.inode(taken.ino)?.i_mode.get());
        self.set_entry(new_dir, &taken, entry.ino, kind)?;
        self.set_entry(dir, &entry, taken.ino, other_kind)?;
        [dir, new_dir].into_iter().for_each(|dir| self.since.note_changed_dir(dir));
        self.renamed(caller, entry.ino, dir, (new_dir, new_name))?;
        self.renamed(caller, taken.ino, new_dir, (dir, name))?;
        self.touch(dir, caller.now)?;
        Ok(self.touch(new_dir, caller.now)?)
    }

    /// An inode has moved from one directory to a name in another (or the same).
    fn renamed(
        &mut self,
        caller: &Caller,
        ino: Nid,
        from: Nid,
        (to, name): (Nid, &[u8]),
    ) -> Result<(), Error> {
        let is_dir = self.is_dir(ino)?;
        if is_dir {
            self.since.note_lost_dir(from);
        }
        if is_dir && from != to {
            let up = self.entry_of(ino, b"..")?;
            self.set_entry(ino, &up, to, FileType::DIRECTORY)?;
            self.add_links(from, -1)?;
            self.add_links(to, 1)?;
        }
        let raw = self.edit_inode(ino)?;
        set_name(raw, to, name);
        set_ctime(raw, caller.now);
        if !is_dir {
            raw.i_advise |= ADVISE_LOST_PARENT;
        }
        Ok(())
    }
}

pub(super) fn set_name(raw: &mut RawInode, dir: Nid, name: &[u8]) {
    raw.i_pino.set(dir.0);
    raw.i_namelen.set(name.len() as u32);
    raw.i_name = [0; 255];
    raw.i_name[..name.len()].copy_from_slice(name);
}
