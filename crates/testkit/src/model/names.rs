//! Names: create, link, unlink, rename.

use dovetail_vfs::mode::{
    S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, S_ISGID, is_device,
};
use dovetail_vfs::{Attr, Caller, Error, Ino, MAX_NAME, NewNode, RenameFlags};

use super::{Body, Directory, Model};

fn is_dots(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

impl Model {
    pub(super) fn find(&self, dir: Ino, name: &[u8]) -> Result<Ino, Error> {
        let directory = self.directory(dir)?;
        match name {
            b"." => Ok(dir),
            b".." => Ok(directory.parent()),
            _ if name.len() > MAX_NAME => Err(Error::NameTooLong),
            _ => directory.get(name).ok_or(Error::NotFound),
        }
    }

    /// The name can be added to the directory.
    fn check_free(&self, dir: Ino, name: &[u8]) -> Result<(), Error> {
        match self.find(dir, name) {
            Ok(_) => Err(Error::Exists),
            Err(Error::NotFound) if name.is_empty() => Err(Error::NotFound),
            Err(Error::NotFound) if self.node(dir)?.attr.links == 0 => Err(Error::NotFound),
            Err(Error::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn make(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        node: &NewNode,
    ) -> Result<Attr, Error> {
        let kind = node.mode & S_IFMT;
        let body = match kind {
            S_IFREG => Body::File(super::Bytes::default()),
            S_IFDIR => Body::Directory(Directory::new(dir)),
            S_IFIFO | S_IFCHR | S_IFBLK | S_IFSOCK => Body::Special,
            _ => return Err(Error::Invalid("a new inode must be of a type that there is")),
        };
        let attr = self.add(caller, dir, name, node.mode, body)?;
        let device = is_device(kind);
        let made = self.node_mut(attr.ino)?;
        made.attr.rdev = if device { node.rdev } else { (0, 0) };
        Ok(made.shown())
    }

    pub(super) fn make_symlink(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attr, Error> {
        if target.is_empty() {
            return Err(Error::NotFound);
        }
        if target.len() > self.limits.symlink {
            return Err(Error::NameTooLong);
        }
        self.add(caller, dir, name, S_IFLNK | 0o777, Body::Symlink(target.to_vec()))
    }

    fn add(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        mode: u16,
        body: Body,
    ) -> Result<Attr, Error> {
        self.check_free(dir, name)?;
        let parent = self.node(dir)?.attr;
        let inherits = parent.mode & S_ISGID != 0;
        let is_dir = matches!(body, Body::Directory(_));
        if is_dir && parent.links >= self.limits.links {
            return Err(Error::TooManyLinks);
        }
        let ino = self.add_node(mode, caller, body);
        let node = self.node_mut(ino)?;
        node.attr.links = if is_dir { 2 } else { 1 };
        if inherits {
            node.attr.gid = parent.gid;
            node.attr.mode |= if is_dir { S_ISGID } else { 0 };
        }
        let attr = node.shown();
        self.enter(caller, dir, name, ino)?;
        Ok(attr)
    }

    /// Puts an inode into a directory, in place of what has the name.
    fn enter(&mut self, caller: &Caller, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Error> {
        self.directory_mut(dir)?.insert(name, ino);
        let is_dir = self.node(ino)?.is_dir();
        let node = self.node_mut(dir)?;
        node.attr.links += u32::from(is_dir);
        node.modified(caller.now);
        if is_dir {
            self.directory_mut(ino)?.set_parent(dir);
        }
        Ok(())
    }

    /// Takes the name from a directory; the inode's own count is the caller's.
    fn leave(&mut self, caller: &Caller, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Error> {
        self.directory_mut(dir)?.remove(name);
        let is_dir = self.node(ino)?.is_dir();
        let node = self.node_mut(dir)?;
        node.attr.links -= u32::from(is_dir);
        node.modified(caller.now);
        Ok(())
    }

    /// The inode has lost a name; a directory has lost its only one.
    fn lose_name(&mut self, caller: &Caller, ino: Ino) -> Result<(), Error> {
        let node = self.node_mut(ino)?;
        node.attr.links = if node.is_dir() { 0 } else { node.attr.links - 1 };
        node.changed(caller.now);
        self.drop_if_unused(ino);
        Ok(())
    }

    pub(super) fn add_link(
        &mut self,
        caller: &Caller,
        ino: Ino,
        dir: Ino,
        name: &[u8],
    ) -> Result<Attr, Error> {
        self.check_free(dir, name)?;
        let limit = self.limits.links;
        let node = self.node_mut(ino)?;
        if node.is_dir() {
            return Err(Error::NotPermitted("a directory has one name"));
        }
        match node.attr.links {
            0 => return Err(Error::NotFound),
            links if links >= limit => return Err(Error::TooManyLinks),
            _ => node.attr.links += 1,
        }
        node.changed(caller.now);
        self.enter(caller, dir, name, ino)?;
        Ok(self.node(ino)?.shown())
    }

    pub(super) fn remove_file(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
    ) -> Result<(), Error> {
        let ino = self.find(dir, name)?;
        if self.node(ino)?.is_dir() {
            return Err(Error::IsADirectory);
        }
        self.leave(caller, dir, name, ino)?;
        self.lose_name(caller, ino)
    }

    pub(super) fn remove_directory(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
    ) -> Result<(), Error> {
        match name {
            b"." => return Err(Error::Invalid("\".\" cannot be removed")),
            b".." => return Err(Error::NotEmpty),
            _ => {}
        }
        let ino = self.find(dir, name)?;
        if !self.directory(ino)?.is_empty() {
            return Err(Error::NotEmpty);
        }
        self.leave(caller, dir, name, ino)?;
        self.lose_name(caller, ino)
    }

    pub(super) fn move_name(
        &mut self,
        caller: &Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        if flags.no_replace && flags.exchange {
            return Err(Error::Invalid("a name cannot be exchanged and kept"));
        }
        self.directory(from.0).and(self.directory(to.0))?;
        if is_dots(from.1) || is_dots(to.1) {
            return Err(Error::Busy);
        }
        let source = self.find(from.0, from.1)?;
        let target = match self.find(to.0, to.1) {
            Ok(target) => Some(target),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        self.check_move(source, target, from.0, to.0, flags)?;
        match target {
            Some(target) if target == source => Ok(()),
            Some(target) if flags.exchange => self.exchange(caller, from, source, to, target),
            _ => self.replace(caller, from, source, to, target),
        }
    }

    fn check_move(
        &self,
        source: Ino,
        target: Option<Ino>,
        from: Ino,
        to: Ino,
        flags: RenameFlags,
    ) -> Result<(), Error> {
        if flags.no_replace && target.is_some() {
            return Err(Error::Exists);
        }
        if flags.exchange && target.is_none() {
            return Err(Error::NotFound);
        }
        if self.is_at_or_above(source, to) {
            return Err(Error::Invalid("a directory cannot be moved below itself"));
        }
        if let Some(target) = target {
            if self.is_at_or_above(target, from) {
                let below = Error::Invalid("a directory cannot be moved below itself");
                return Err(if flags.exchange { below } else { Error::NotEmpty });
            }
            if target != source && !flags.exchange {
                return self.check_replaced(source, target);
            }
        } else if self.node(to)?.attr.links == 0 {
            return Err(Error::NotFound);
        }
        Ok(())
    }

    fn check_replaced(&self, source: Ino, target: Ino) -> Result<(), Error> {
        match (self.node(source)?.is_dir(), self.node(target)?.is_dir()) {
            (true, false) => Err(Error::NotADirectory),
            (false, true) => Err(Error::IsADirectory),
            (true, true) if !self.directory(target)?.is_empty() => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }

    /// `upper` is a directory, and `dir` it or below it.
    fn is_at_or_above(&self, upper: Ino, mut dir: Ino) -> bool {
        loop {
            let Ok(directory) = self.directory(dir) else { return false };
            if dir == upper {
                return true;
            }
            if directory.parent() == dir {
                return false;
            }
            dir = directory.parent();
        }
    }

    fn replace(
        &mut self,
        caller: &Caller,
        from: (Ino, &[u8]),
        source: Ino,
        to: (Ino, &[u8]),
        target: Option<Ino>,
    ) -> Result<(), Error> {
        if let Some(target) = target {
            self.leave(caller, to.0, to.1, target)?;
            self.lose_name(caller, target)?;
        }
        self.leave(caller, from.0, from.1, source)?;
        self.enter(caller, to.0, to.1, source)?;
        self.node_mut(source)?.changed(caller.now);
        Ok(())
    }

    fn exchange(
        &mut self,
        caller: &Caller,
        from: (Ino, &[u8]),
        source: Ino,
        to: (Ino, &[u8]),
        target: Ino,
    ) -> Result<(), Error> {
        self.leave(caller, from.0, from.1, source)?;
        self.leave(caller, to.0, to.1, target)?;
        self.enter(caller, to.0, to.1, source)?;
        self.enter(caller, from.0, from.1, target)?;
        self.node_mut(source)?.changed(caller.now);
        self.node_mut(target)?.changed(caller.now);
        Ok(())
    }
}
