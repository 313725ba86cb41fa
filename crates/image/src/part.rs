//! A file that gets its name when it is whole.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};

/// A file, link or special file under a name of its own, beside the place where it is to stand.
/// Dropped before it stands there, it is removed.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    stands: bool,
}

impl Part {
    /// Makes something beside `target` with `make`, which gets the name and must not replace what
    /// has it. Names that are taken, as by a process that was killed, are passed over.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn make<T>(
        target: &Path,
        mut make: impl FnMut(&Path) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        let mut number = 0_u64;
        loop {
            let name = format!(".dovetail.{}.{number}", std::process::id());
            let path = target.with_file_name(name);
            match make(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                made => return made.map(|made| (Self { path, stands: false }, made)),
            }
        }
    }

    /// The name that it has for now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. What has that name is replaced.
    ///
    /// # Errors
    /// A directory has that name; those of rename(2).
    pub fn replace(mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)?;
        self.stands = true;
        Ok(())
    }

    /// Gives it its name, which must be free.
    ///
    /// # Errors
    /// The name is taken; those of rename(2).
    pub fn stand(mut self, target: &Path) -> io::Result<()> {
        match rustix::fs::renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            // not every file system knows the flag
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                if target.symlink_metadata().is_ok() {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                std::fs::rename(&self.path, target)?;
            }
            renamed => renamed?,
        }
        self.stands = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.stands {
            let _ = std::fs::remove_file(&self.path); // what failed first is told
        }
    }
}

/// Writes a file that is complete or as it was, and durable, whatever happens to the machine. A file
/// that is replaced keeps its mode, and its owner where that is permitted. Devices, pipes and
/// terminals are written to.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // behind a link, so that the link stays
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let old = target.symlink_metadata().ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return std::fs::write(&target, bytes);
    }
    let (part, mut file) = match Part::make(&target, |part| File::create_new(part)) {
        // in a folder of others the file itself may be ours
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return write_over(&target, bytes);
        }
        made => made?,
    };
    // before there is anything to read
    if let Some(old) = old {
        // who may not give files away keeps it
        let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(old.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    match part.replace(&target) {
        // a file that is a mount point of its own
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            return write_over(&target, bytes);
        }
        replaced => replaced?,
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    // a folder may be writable and not readable
    File::open(folder.unwrap_or(Path::new("."))).map_or(Ok(()), |folder| folder.sync_all())
}

/// Writes a file where no other can stand beside it.
fn write_over(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::write(path, bytes)?;
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn part(target: &Path) -> Part {
        Part::make(target, |path| File::create_new(path)).unwrap().0
    }

    #[test]
    fn what_is_there_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        fs::write(&target, "old").unwrap();
        drop(part(&target));
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let taken = part(&target).stand(&target).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");

        let (one, other) = (part(&target), part(&target));
        fs::write(one.path(), "new").unwrap();
        one.replace(&target).unwrap();
        other.stand(&folder.path().join("another")).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_is_replaced_behind_its_link_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        write_whole(&path("file"), b"old").unwrap();
        fs::set_permissions(path("file"), fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        write_whole(&path("link"), b"new").unwrap();
        assert!(path("link").is_symlink());
        assert_eq!(fs::read(path("file")).unwrap(), b"new");
        assert_eq!(fs::metadata(path("file")).unwrap().permissions().mode() & 0o777, 0o640);
        write_whole(Path::new("/dev/null"), b"new").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
