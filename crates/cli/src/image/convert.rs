//! `dovetail image`: images made of others.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use dovetail_image::{ConvertError, to_plain, to_sparse};
use dovetail_time::format_bytes;

use crate::mount::ImageLock;
use crate::progress::Meter;
use crate::{Failure, print};

/// Conversion of an image.
#[derive(Debug, Subcommand)]
pub(crate) enum ConvertCommand {
    /// Make a plain image of an Android sparse one, as simg2img does.
    Unsparse(ConvertArguments),
    /// Make an Android sparse image of a plain one, as img2simg does.
    Sparse(ConvertArguments),
}

/// An image, and the one that is made of it.
#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// The image that is read.
    from: PathBuf,
    /// The image that is made.
    to: PathBuf,
    /// Replace the image that is there.
    #[arg(short, long)]
    force: bool,
}

/// A conversion: bytes of the result, told of progress.
type Convert = fn(&Path, &Path, &mut dyn FnMut(u64, u64)) -> Result<u64, ConvertError>;

pub(crate) fn convert(command: &ConvertCommand) -> Result<(), Failure> {
    let (arguments, convert, what): (_, Convert, _) = match command {
        ConvertCommand::Unsparse(arguments) => (arguments, to_plain, "a plain image"),
        ConvertCommand::Sparse(arguments) => (arguments, to_sparse, "a sparse image"),
    };
    let (from, shown) = (&arguments.from, arguments.to.display());
    let there = there(&arguments.to)?;
    if there.is_some() && !arguments.force {
        return Err(Failure::Usage(format!("{shown} is there already; --force replaces it")));
    }
    let _lock = there.as_deref().map(|to| ImageLock::take(to, true)).transpose()?;
    let to = there.as_deref().unwrap_or(&arguments.to);
    let mut meter = Meter::new(format!("writing {shown}"));
    let (part, bytes) =
        whole(to, |part| convert(from, part, &mut |done, all| meter.tell(done, all)))?;
    std::fs::rename(&part, to).map_err(|error| {
        drop(std::fs::remove_file(&part)); // what failed first is told
        Failure::Failed(format!("{shown} cannot be written: {error}"))
    })?;
    print(&format!("{shown}: {what} of {}\n", format_bytes(bytes)))
}

/// The regular file that the result is to replace; `None` where there is none.
fn there(to: &Path) -> Result<Option<PathBuf>, Failure> {
    if let Err(error) = to.symlink_metadata()
        && error.kind() == ErrorKind::NotFound
    {
        return Ok(None);
    }
    let shown = to.display();
    let file = to.canonicalize();
    let file = file.map_err(|error| Failure::Failed(format!("{shown}: {error}")))?;
    if !file.is_file() {
        return Err(Failure::Usage(format!(
            "{shown} is no regular file: make a file, and write that to a device with dd"
        )));
    }
    Ok(Some(file))
}

/// Makes the result under a name of its own, in the folder where it is to stand when it is whole.
/// Names that are taken, as by a run that was ended, are passed over.
fn whole(
    to: &Path,
    mut make: impl FnMut(&Path) -> Result<u64, ConvertError>,
) -> Result<(PathBuf, u64), Failure> {
    let mut number = 0;
    loop {
        let part = to.with_file_name(format!(".dovetail-image.{}.{number}", std::process::id()));
        match make(&part) {
            Ok(bytes) => return Ok((part, bytes)),
            Err(ConvertError::To(_, error)) if error.kind() == ErrorKind::AlreadyExists => {
                number += 1;
            }
            Err(ConvertError::To(_, error)) => {
                return Err(Failure::failed(ConvertError::To(to.into(), error)));
            }
            Err(error) => return Err(Failure::failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_sparse_of(from: &Path, to: &Path) -> Result<(), Failure> {
        let arguments = ConvertArguments { from: from.into(), to: to.into(), force: true };
        convert(&ConvertCommand::Sparse(arguments))
    }

    fn why(result: Result<(), Failure>) -> String {
        match result {
            Err(Failure::Usage(why) | Failure::Failed(why)) => why,
            _ => panic!("it was done"),
        }
    }

    #[test]
    fn only_a_file_that_nobody_uses_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("plain"), vec![1; 8192]).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink("socket", path("to-socket")).unwrap();
        for name in ["socket", "to-socket"] {
            let said = why(to_sparse_of(&path("plain"), &path(name)));
            assert!(said.contains("is no regular file"), "{said}");
        }
        assert!(!path("socket").is_file() && path("to-socket").is_symlink());
        drop(socket);

        std::fs::write(path("old"), "old").unwrap();
        let lock = ImageLock::take(&path("old"), false).unwrap();
        let said = why(to_sparse_of(&path("plain"), &path("old")));
        assert!(said.contains("is mounted already"), "{said}");
        assert_eq!(std::fs::read(path("old")).unwrap(), b"old");
        drop(lock);

        // what runs that were ended left
        std::fs::write(path("old.part"), "left").unwrap();
        let left = format!(".dovetail-image.{}.0", std::process::id());
        std::fs::write(path(&left), "left").unwrap();
        std::os::unix::fs::symlink("old", path("to-old")).unwrap();
        assert!(to_sparse_of(&path("plain"), &path("to-old")).is_ok());
        assert!(path("to-old").is_symlink() && std::fs::read(path("old")).unwrap() != b"old");
        assert!(!path(&left).with_extension("1").exists());
        assert_eq!(std::fs::read(path(&left)).unwrap(), b"left");
    }
}
