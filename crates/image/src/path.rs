//! From a path inside an image to its inode.

use dovetail_vfs::mode::is_symlink;
use dovetail_vfs::{Attr, Error, PathTree, shown};

use crate::{Error as Failure, Tree};

/// The file that `path` leads to from the root. A target that begins with a slash begins at the
/// image's root; ".." in the root is the root; a symbolic link at the end is followed if `follow`.
///
/// # Errors
/// No such path; the tree's.
pub fn resolve(tree: &mut dyn Tree, path: &[u8], follow: bool) -> Result<Attr, Failure> {
    find(tree, path, follow).map_err(|error| {
        Failure::Failed(match error {
            Error::NotFound if follow && find(tree, path, false).is_ok() => {
                format!("{} is a link that leads nowhere", shown(path))
            }
            Error::NotFound => format!("there is no {}", shown(path)),
            error => format!("{}: {error}", shown(path)),
        })
    })
}

/// As [`resolve`], with the error of the tree.
///
/// # Errors
/// Those of the tree.
pub fn find(tree: &mut dyn Tree, path: &[u8], follow: bool) -> Result<Attr, Error> {
    dovetail_vfs::resolve(&mut InTree(tree), path, follow)
}

struct InTree<'a>(&'a mut dyn Tree);

impl PathTree for InTree<'_> {
    type File = Attr;
    type Error = Error;

    fn root(&mut self) -> Result<Attr, Error> {
        self.0.attr(self.0.root())
    }

    fn enter(&mut self, here: &Attr, name: &[u8]) -> Result<Attr, Error> {
        if !here.is_dir() {
            return Err(Error::NotADirectory);
        }
        self.0.lookup(here.ino, name)
    }

    fn target(&mut self, file: &Attr) -> Result<Option<Vec<u8>>, Error> {
        let is_link = is_symlink(file.mode);
        is_link.then(|| self.0.read_link(file.ino)).transpose()
    }

    fn too_many_symlinks(&self) -> Error {
        Error::Invalid("it leads through more than 40 symbolic links")
    }
}
