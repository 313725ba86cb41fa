//! Making, naming, renaming and removing inodes.

use super::{Directory, Kind, Model, Node, SETGID, check_name};
use crate::{Caller, Error, Ino, RenameFlags};

impl Model {
    /// The inode of an entry; "." and ".." are entries as well.
    pub(super) fn find(&self, dir: Ino, name: &[u8]) -> Result<Option<Ino>, Error> {
        let entries = self.dir(dir)?;
        Ok(match name {
            b"." => Some(dir),
            b".." => Some(entries.parent),
            _ => entries.find(name).map(|(_, ino)| ino),
        })
    }

    /// A directory in which something is to be named: it must have a name itself.
    fn check_parent(&self, dir: Ino) -> Result<(), Error> {
        self.dir(dir)?;
        if self.node(dir)?.links == 0 { Err(Error::NotFound) } else { Ok(()) }
    }

    fn check_free(&self, dir: Ino, name: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        self.check_parent(dir)?;
        if self.find(dir, name)?.is_some() { Err(Error::Exists) } else { Ok(()) }
    }

    pub(super) fn make(
        &mut self,
        caller: &Caller,
        (dir, name): (Ino, &[u8]),
        (mode, rdev): (u16, (u32, u32)),
        kind: impl FnOnce(Ino) -> Kind,
    ) -> Result<Ino, Error> {
        self.check_free(dir, name)?;
        let ino = Ino(self.next);
        self.next += 1;
        let mut node = Node::new(caller, mode, rdev, kind(dir));
        let parent = self.node_mut(dir)?;
        if parent.mode & SETGID != 0 {
            node.gid = parent.gid;
            node.mode |= if node.is_dir() { SETGID } else { 0 };
        }
        parent.links += u32::from(node.is_dir());
        self.nodes.insert(ino, node);
        self.dir_mut(dir)?.insert(name, ino);
        self.touch(dir, caller.now)?;
        Ok(ino)
    }

    pub(super) fn add_name(&mut self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Error> {
        self.check_parent(dir)?;
        let (is_dir, links) = (self.node(ino)?.is_dir(), self.node(ino)?.links);
        if is_dir {
            return Err(Error::NotPermitted("a directory has one name only"));
        }
        self.check_free(dir, name)?;
        if links == 0 {
            return Err(Error::NotFound);
        }
        if links >= self.limits.links {
            return Err(Error::TooManyLinks);
        }
        self.dir_mut(dir)?.insert(name, ino);
        self.touch(dir, caller.now)?;
        let node = self.node_mut(ino)?;
        node.links += 1;
        node.ctime = caller.now;
        Ok(())
    }

    pub(super) fn remove_file(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        let ino = self.find(dir, name)?.ok_or(Error::NotFound)?;
        if self.node(ino)?.is_dir() {
            return Err(Error::IsADirectory);
        }
        self.take_entry(dir, name)?;
        self.touch(dir, caller.now)?;
        self.lose_name(caller, ino)
    }

    pub(super) fn remove_dir(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        match name {
            b"." => return Err(Error::Invalid("\".\" cannot be removed")),
            b".." => return Err(Error::NotEmpty),
            _ => {}
        }
        let ino = self.find(dir, name)?.ok_or(Error::NotFound)?;
        if !self.dir(ino)?.entries.is_empty() {
            return Err(Error::NotEmpty);
        }
        self.take_entry(dir, name)?;
        self.node_mut(dir)?.links -= 1;
        self.touch(dir, caller.now)?;
        self.lose_name(caller, ino)
    }

    fn take_entry(&mut self, dir: Ino, name: &[u8]) -> Result<(), Error> {
        let entries = self.dir_mut(dir)?;
        let (cookie, _) = entries.find(name).ok_or(Error::NotFound)?;
        entries.entries.remove(&cookie);
        Ok(())
    }

    /// The inode has one name less; of a directory, the last one.
    fn lose_name(&mut self, caller: &Caller, ino: Ino) -> Result<(), Error> {
        let node = self.node_mut(ino)?;
        node.links = if node.is_dir() { 0 } else { node.links - 1 };
        node.ctime = caller.now;
        self.drop_if_gone(ino);
        Ok(())
    }

    /// `dir` is `above` or lies below it.
    fn is_below(&self, mut dir: Ino, above: Ino) -> Result<bool, Error> {
        while dir != above {
            let parent = self.dir(dir)?.parent;
            if parent == dir {
                return Ok(false);
            }
            dir = parent;
        }
        Ok(true)
    }

    pub(super) fn rename_entry(
        &mut self,
        caller: &Caller,
        (dir, name): (Ino, &[u8]),
        (new_dir, new_name): (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        check_name(name)?;
        check_name(new_name)?;
        let dots = |name: &[u8]| name == b"." || name == b"..";
        if dots(name) || dots(new_name) {
            return Err(Error::Busy);
        }
        let ino = self.find(dir, name)?.ok_or(Error::NotFound)?;
        self.check_parent(new_dir)?;
        let taken = self.find(new_dir, new_name)?;
        match taken {
            _ if flags.no_replace && flags.exchange => {
                return Err(Error::Invalid("a rename cannot both exchange and refuse to replace"));
            }
            Some(_) if flags.no_replace => return Err(Error::Exists),
            _ => {}
        }
        self.check_not_below(ino, new_dir)?;
        if flags.exchange {
            let taken = taken.ok_or(Error::NotFound)?;
            self.check_not_below(taken, dir)?;
            return self.exchange(caller, (dir, name, ino), (new_dir, new_name, taken));
        }
        match taken {
            Some(taken) if taken == ino => Ok(()),
            Some(taken) => {
                self.check_replaceable(ino, taken)?;
                self.take_entry(new_dir, new_name)?;
                let was_dir = self.node(taken)?.is_dir();
                self.node_mut(new_dir)?.links -= u32::from(was_dir);
                self.lose_name(caller, taken)?;
                self.move_entry(caller, (dir, name, ino), (new_dir, new_name))
            }
            None => self.move_entry(caller, (dir, name, ino), (new_dir, new_name)),
        }
    }

    fn check_not_below(&self, ino: Ino, dir: Ino) -> Result<(), Error> {
        if self.node(ino)?.is_dir() && self.is_below(dir, ino)? {
            return Err(Error::Invalid("a directory cannot move below itself"));
        }
        Ok(())
    }

    fn check_replaceable(&self, ino: Ino, taken: Ino) -> Result<(), Error> {
        match (self.node(ino)?.is_dir(), self.node(taken)?.is_dir()) {
            (true, false) => Err(Error::NotADirectory),
            (false, true) => Err(Error::IsADirectory),
            (true, true) if !self.dir(taken)?.entries.is_empty() => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }

    fn move_entry(
        &mut self,
        caller: &Caller,
        (dir, name, ino): (Ino, &[u8], Ino),
        (new_dir, new_name): (Ino, &[u8]),
    ) -> Result<(), Error> {
        self.take_entry(dir, name)?;
        self.dir_mut(new_dir)?.insert(new_name, ino);
        self.moved(caller, ino, dir, new_dir)?;
        self.touch(dir, caller.now)?;
        self.touch(new_dir, caller.now)
    }

    fn exchange(
        &mut self,
        caller: &Caller,
        (dir, name, ino): (Ino, &[u8], Ino),
        (new_dir, new_name, taken): (Ino, &[u8], Ino),
    ) -> Result<(), Error> {
        if ino == taken {
            return Ok(());
        }
        self.take_entry(dir, name)?;
        self.take_entry(new_dir, new_name)?;
        self.dir_mut(dir)?.insert(name, taken);
        self.dir_mut(new_dir)?.insert(new_name, ino);
        self.moved(caller, ino, dir, new_dir)?;
        self.moved(caller, taken, new_dir, dir)?;
        self.touch(dir, caller.now)?;
        self.touch(new_dir, caller.now)
    }

    /// An inode has moved; a directory takes its "..", and with it a link, along.
    fn moved(&mut self, caller: &Caller, ino: Ino, from: Ino, to: Ino) -> Result<(), Error> {
        if self.node(ino)?.is_dir() {
            self.dir_mut(ino)?.parent = to;
            self.node_mut(from)?.links -= 1;
            self.node_mut(to)?.links += 1;
        }
        self.node_mut(ino)?.ctime = caller.now;
        Ok(())
    }

    pub(super) fn directory(parent: Ino) -> Kind {
        Kind::Dir(Directory::new(parent))
    }
}
