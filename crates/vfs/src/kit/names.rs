//! Names in a tree that changes: everything that POSIX and Linux ask for before a file is made,
//! linked, renamed or removed.
//!
//! A file system says what its directories hold; it changes them only after these functions have
//! agreed.

use crate::{Error, MAX_NAME, RenameFlags};

/// Marks of chattr(1) that keep an inode from changing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// +i: nothing changes.
    pub immutable: bool,
    /// +a: a file only gets longer, a directory only gets names.
    pub append_only: bool,
}

impl Marks {
    /// The inode has none.
    ///
    /// # Errors
    /// [`Error::NotPermitted`].
    pub fn check_none(self) -> Result<(), Error> {
        if self.immutable || self.append_only {
            return Err(Error::NotPermitted("the file is marked immutable or append-only"));
        }
        Ok(())
    }
}

/// A tree of directories whose names change.
pub trait Names {
    /// The number of an inode.
    type Ino: Copy + Eq;
    /// An entry of a directory, and where it stands.
    type Entry: Copy;

    /// Names that a file may have at most.
    const MAX_LINKS: u64;

    /// The inode that an entry leads to.
    fn target_of(entry: &Self::Entry) -> Self::Ino;

    /// The root directory.
    fn root_dir(&self) -> Self::Ino;

    /// A bound of the depth of the tree: damage may have made a loop.
    fn inode_bound(&self) -> u64;

    /// The inode is a directory.
    ///
    /// # Errors
    /// Damage; the device.
    fn is_directory(&mut self, ino: Self::Ino) -> Result<bool, Error>;

    /// Names of the inode.
    ///
    /// # Errors
    /// Damage; the device.
    fn link_count(&mut self, ino: Self::Ino) -> Result<u64, Error>;

    /// Marks that keep the inode from changing.
    ///
    /// # Errors
    /// Damage; the device.
    fn marks(&mut self, ino: Self::Ino) -> Result<Marks, Error>;

    /// The entry called `name` in `dir`, which is a directory.
    ///
    /// # Errors
    /// Damage; the device.
    fn search(&mut self, dir: Self::Ino, name: &[u8]) -> Result<Option<Self::Entry>, Error>;

    /// The directory holds nothing but "." and "..".
    ///
    /// # Errors
    /// Damage; the device.
    fn holds_nothing(&mut self, dir: Self::Ino) -> Result<bool, Error>;

    /// The directory can get one more subdirectory.
    ///
    /// # Errors
    /// [`Error::TooManyLinks`].
    fn check_subdirectory(&mut self, _dir: Self::Ino) -> Result<(), Error> {
        Ok(())
    }

    /// The inode is a directory.
    ///
    /// # Errors
    /// [`Error::NotADirectory`].
    fn check_dir(&mut self, dir: Self::Ino) -> Result<(), Error> {
        if self.is_directory(dir)? { Ok(()) } else { Err(Error::NotADirectory) }
    }

    /// A directory in which something is to be named must have a name itself, and may change.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotPermitted`].
    fn check_named(&mut self, dir: Self::Ino) -> Result<(), Error> {
        if self.link_count(dir)? == 0 {
            return Err(Error::NotFound);
        }
        // names may come to one that is append-only
        Marks { append_only: false, ..self.marks(dir)? }.check_none()
    }

    /// The directory may lose a name of the inode.
    ///
    /// # Errors
    /// [`Error::NotPermitted`].
    fn check_loss(&mut self, dir: Self::Ino, ino: Self::Ino) -> Result<(), Error> {
        self.marks(dir)?.check_none()?;
        self.marks(ino)?.check_none()
    }

    /// The entry called `name` in `dir`.
    ///
    /// # Errors
    /// [`Error::NotADirectory`], [`Error::NameTooLong`].
    fn entry_if_any(&mut self, dir: Self::Ino, name: &[u8]) -> Result<Option<Self::Entry>, Error> {
        self.check_dir(dir)?;
        if name.len() > MAX_NAME {
            return Err(Error::NameTooLong);
        }
        self.search(dir, name)
    }

    /// The entry called `name` in `dir`.
    ///
    /// # Errors
    /// As [`Self::entry_if_any`]; [`Error::NotFound`].
    fn entry_of(&mut self, dir: Self::Ino, name: &[u8]) -> Result<Self::Entry, Error> {
        self.entry_if_any(dir, name)?.ok_or(Error::NotFound)
    }

    /// The name can be added to the directory.
    ///
    /// # Errors
    /// [`Error::Exists`]; as [`Self::check_named`].
    fn check_free(&mut self, dir: Self::Ino, name: &[u8]) -> Result<(), Error> {
        if self.entry_if_any(dir, name)?.is_some() {
            return Err(Error::Exists);
        }
        self.check_named(dir)
    }

    /// The inode can get `name` in `dir` as a further name.
    ///
    /// # Errors
    /// [`Error::NotPermitted`], [`Error::NotFound`], [`Error::TooManyLinks`]; as
    /// [`Self::check_free`].
    fn check_link(&mut self, ino: Self::Ino, dir: Self::Ino, name: &[u8]) -> Result<(), Error> {
        self.check_free(dir, name)?;
        if self.is_directory(ino)? {
            return Err(Error::NotPermitted("a directory has one name only"));
        }
        self.marks(ino)?.check_none()?;
        match self.link_count(ino)? {
            0 => Err(Error::NotFound),
            links if links >= Self::MAX_LINKS => Err(Error::TooManyLinks),
            _ => Ok(()),
        }
    }

    /// The entry of a file that is to lose this name.
    ///
    /// # Errors
    /// [`Error::IsADirectory`], [`Error::NotPermitted`]; as [`Self::entry_of`].
    fn entry_to_unlink(&mut self, dir: Self::Ino, name: &[u8]) -> Result<Self::Entry, Error> {
        let entry = self.entry_of(dir, name)?;
        let ino = Self::target_of(&entry);
        self.check_loss(dir, ino)?;
        if self.is_directory(ino)? { Err(Error::IsADirectory) } else { Ok(entry) }
    }

    /// The entry of a directory that is to be removed.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::NotEmpty`], [`Error::NotADirectory`], [`Error::NotPermitted`];
    /// as [`Self::entry_of`].
    fn entry_to_rmdir(&mut self, dir: Self::Ino, name: &[u8]) -> Result<Self::Entry, Error> {
        match name {
            b"." => return Err(Error::Invalid("\".\" cannot be removed")),
            b".." => return Err(Error::NotEmpty),
            _ => {}
        }
        let entry = self.entry_of(dir, name)?;
        let ino = Self::target_of(&entry);
        self.check_loss(dir, ino)?;
        self.check_dir(ino)?;
        if self.holds_nothing(ino)? { Ok(entry) } else { Err(Error::NotEmpty) }
    }

    /// `dir` is `above` or lies below it.
    ///
    /// # Errors
    /// As [`Self::entry_of`].
    fn is_below(&mut self, mut dir: Self::Ino, above: Self::Ino) -> Result<bool, Error> {
        let mut steps = self.inode_bound();
        while dir != above {
            if dir == self.root_dir() || steps == 0 {
                return Ok(false);
            }
            dir = Self::target_of(&self.entry_of(dir, b"..")?);
            steps -= 1;
        }
        Ok(true)
    }

    /// The work of a rename that is allowed.
    ///
    /// # Errors
    /// As rename(2).
    fn plan_rename(
        &mut self,
        (dir, name): (Self::Ino, &[u8]),
        (new_dir, new_name): (Self::Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<Rename<Self::Entry>, Error> {
        if flags.no_replace && flags.exchange {
            return Err(Error::Invalid("a rename cannot both exchange and refuse to replace"));
        }
        self.check_dir(dir)?;
        self.check_dir(new_dir)?;
        let dots = |name: &[u8]| name == b"." || name == b"..";
        if dots(name) || dots(new_name) {
            return Err(Error::Busy);
        }
        let entry = self.entry_of(dir, name)?;
        let taken = self.entry_if_any(new_dir, new_name)?;
        self.check_rename((dir, entry), (new_dir, taken), flags)?;
        Ok(match taken {
            Some(taken) if Self::target_of(&taken) == Self::target_of(&entry) => Rename::Nothing,
            Some(taken) if flags.exchange => Rename::Exchange { entry, taken },
            Some(taken) => Rename::Replace { entry, taken },
            None => Rename::Move { entry },
        })
    }

    /// Entry `entry` of `dir` may go to `new_dir`, in the place of `taken`.
    ///
    /// # Errors
    /// As rename(2).
    fn check_rename(
        &mut self,
        (dir, entry): (Self::Ino, Self::Entry),
        (new_dir, taken): (Self::Ino, Option<Self::Entry>),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        let below = Error::Invalid("a directory cannot move below itself");
        match taken {
            Some(_) if flags.no_replace => return Err(Error::Exists),
            None if flags.exchange => return Err(Error::NotFound),
            _ => {}
        }
        let ino = Self::target_of(&entry);
        self.check_loss(dir, ino)?;
        let is_dir = self.is_directory(ino)?;
        if is_dir && self.is_below(new_dir, ino)? {
            return Err(below);
        }
        if is_dir && dir != new_dir && taken.is_none() {
            self.check_subdirectory(new_dir)?;
        }
        let Some(taken) = taken.map(|taken| Self::target_of(&taken)) else {
            return self.check_named(new_dir);
        };
        self.check_loss(new_dir, taken)?;
        let taken_is_dir = self.is_directory(taken)?;
        if taken_is_dir && self.is_below(dir, taken)? {
            return Err(if flags.exchange { below } else { Error::NotEmpty });
        }
        if flags.exchange && dir != new_dir && is_dir != taken_is_dir {
            self.check_subdirectory(if is_dir { new_dir } else { dir })?;
        }
        if taken == ino || flags.exchange {
            return Ok(());
        }
        match (is_dir, taken_is_dir) {
            (true, false) => Err(Error::NotADirectory),
            (false, true) => Err(Error::IsADirectory),
            (true, true) if !self.holds_nothing(taken)? => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }
}

/// The work of a rename that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename<E> {
    /// Both names are of one file: nothing changes.
    Nothing,
    /// The two entries lead to each other's inode afterwards.
    Exchange {
        /// The entry that is renamed.
        entry: E,
        /// The entry of the new name.
        taken: E,
    },
    /// The new name leads to the renamed inode, and its own loses a name.
    Replace {
        /// The entry that is renamed.
        entry: E,
        /// The entry of the new name.
        taken: E,
    },
    /// The new name is free.
    Move {
        /// The entry that is renamed.
        entry: E,
    },
}
