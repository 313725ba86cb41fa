//! From a path to a file, through directories and symbolic links.

/// Number of symbolic links that are followed on one path; the Linux kernel's limit
/// (path_resolution(7)).
pub const MAX_SYMLINKS: u32 = 40;

/// A tree in which paths are followed.
pub trait PathTree {
    /// A file of it.
    type File;
    /// An error on the way.
    type Error;

    /// The root directory.
    ///
    /// # Errors
    /// The tree's.
    fn root(&mut self) -> Result<Self::File, Self::Error>;

    /// The file of that name in `dir`; ".." in the root is the root.
    ///
    /// # Errors
    /// `dir` is no directory, or has no such name; the tree's.
    fn enter(&mut self, dir: &Self::File, name: &[u8]) -> Result<Self::File, Self::Error>;

    /// The target of a symbolic link, `None` for another file.
    ///
    /// # Errors
    /// The tree's.
    fn target(&mut self, file: &Self::File) -> Result<Option<Vec<u8>>, Self::Error>;

    /// More than [`MAX_SYMLINKS`] are on the path.
    fn too_many_symlinks(&self) -> Self::Error;
}

/// Finds the file that `path` leads to from the root. A target that begins with a slash begins at
/// the tree's root; "", "/" and "." are the root; a symbolic link at the end is followed if
/// `follow_last`.
///
/// # Errors
/// The tree's.
pub fn resolve<T: PathTree>(
    tree: &mut T,
    path: &[u8],
    follow_last: bool,
) -> Result<T::File, T::Error> {
    let mut todo = components(path);
    let mut here = tree.root()?;
    let mut links = 0;
    while let Some(name) = todo.pop() {
        let next = tree.enter(&here, &name)?;
        let followed = follow_last || !todo.is_empty();
        let target = if followed { tree.target(&next)? } else { None };
        let Some(target) = target else {
            here = next;
            continue;
        };
        links += 1;
        if links > MAX_SYMLINKS {
            return Err(tree.too_many_symlinks());
        }
        if target.starts_with(b"/") {
            here = tree.root()?;
        }
        todo.extend(components(&target));
    }
    Ok(here)
}

/// The names of a path, the last one first; empty ones and "." say nothing.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.rev().map(<[u8]>::to_vec).collect()
}
