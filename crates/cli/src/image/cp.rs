//! `dovetail cp`: files and trees out of an image, or into one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_image::{CopyIn, CopyOut, Keep, Mount, Tree, find, format_of, resolve};
use dovetail_time::SimTime;
use dovetail_vfs::{Attr, Caller, FileSystem, Ino, shown};

use crate::mount::{ImageLock, seed};
use crate::progress::Heartbeat;
use crate::{Failure, clock, complain};

/// From where to where; one of them is in an image.
#[derive(Debug, Args)]
#[command(
    after_help = "Modes, times, extended attributes and hard links are kept. Into a directory that is there, a copy goes \
                  by its own name; files that are there are replaced, directories merged. An image that is written to \
                  must not be mounted."
)]
pub(crate) struct CpArguments {
    /// Source: a path, or IMAGE:/path.
    from: OsString,
    /// Target: IMAGE:/path, or a path.
    to: OsString,
    /// Directories with all that they hold.
    #[arg(short, long)]
    recursive: bool,
    /// Keep owners too.
    #[arg(short, long)]
    preserve: bool,
    #[command(flatten)]
    parts: super::Parts,
}

/// One end of a copy.
enum End {
    Host(PathBuf),
    Image(PathBuf, Vec<u8>),
}

impl End {
    /// "IMAGE:/path" is in an image, everything else outside.
    fn parse(text: &OsStr) -> Self {
        match super::place::split(text) {
            Some((image, path)) => Self::Image(image, path.into_vec()),
            None => Self::Host(text.into()),
        }
    }
}

pub(crate) fn copy(arguments: &CpArguments) -> Result<(), Failure> {
    let _beat = Heartbeat::new("copying".into());
    match (End::parse(&arguments.from), End::parse(&arguments.to)) {
        (End::Image(image, path), End::Host(to)) => copy_out(arguments, &image, &path, &to),
        (End::Host(from), End::Image(image, path)) => copy_in(arguments, &from, &image, &path),
        (End::Host(_), End::Host(_)) => {
            Err(Failure::Usage("one of the two must be in an image: IMAGE:/path".to_string()))
        }
        (End::Image(..), End::Image(..)) => Err(Failure::Usage(
            "only one of the two can be in an image; copy by way of a directory".to_string(),
        )),
    }
}

fn is_directory(path: &str) -> Failure {
    Failure::Failed(format!("{path} is a directory; -r copies it with all that it holds"))
}

fn copy_out(arguments: &CpArguments, image: &Path, path: &[u8], to: &Path) -> Result<(), Failure> {
    let mut opened = super::open::open(&arguments.parts.of(image)?)?;
    let start = resolve(&mut *opened.files.tree, path, !arguments.recursive)?;
    if start.is_dir() && !arguments.recursive {
        return Err(is_directory(&shown(path)));
    }
    let to = if to.is_dir() { to.join(last_name(path)) } else { to.to_path_buf() };
    let keep = Keep { owners: arguments.preserve, replace: true };
    let mut copy = CopyOut::new(&mut *opened.files.tree, opened.files.most_bytes, keep);
    if start.is_dir() {
        // the root has no name: what it holds goes to where it was to go
        if !to.is_dir() {
            copy.make_directory(&start, &to)
                .map_err(|error| Failure::Failed(format!("{}: {error}", to.display())))?;
        }
        copy.directory(&start, path, &to);
    } else {
        copy.single(&start, path, &to);
    }
    copy.done.left_out().lines().for_each(complain);
    Ok(copy.done.result()?)
}

/// The last name of a path; empty for the root.
fn last_name(path: &[u8]) -> &OsStr {
    Path::new(OsStr::from_bytes(path)).file_name().unwrap_or_default()
}

fn copy_in(arguments: &CpArguments, from: &Path, image: &Path, path: &[u8]) -> Result<(), Failure> {
    let fail = |error: String| Failure::Failed(format!("{}: {error}", from.display()));
    let meta = std::fs::symlink_metadata(from).map_err(|error| fail(error.to_string()))?;
    if from.is_dir() && !arguments.recursive {
        return Err(is_directory(&from.display().to_string()));
    }
    let _lock = ImageLock::take(image, true)?;
    let source = arguments.parts.of(image)?;
    let request = Mount {
        read_only: false,
        options: "",
        seed: seed(),
        now: clock::mounting_at(SimTime::ZERO),
    };
    let mut fs: Box<dyn FileSystem> =
        format_of(&source)?.mount(&source, &request, &mut |sentence| complain(&sentence))?;
    let place = place(&mut fs, path, from);
    let copied = place.map(|(dir, name)| {
        let mut copy = CopyIn::new(&mut *fs, caller(), arguments.preserve);
        copy.copy(from, !meta.is_symlink() || !arguments.recursive, dir, &name);
        (copy.errors, copy.xattrs_left)
    });
    let unmounted = fs.unmount();
    let (errors, left) = copied?;
    if left > 0 {
        complain(&format!("{left} extended attributes were left out: the image cannot store them"));
    }
    if !errors.is_empty() {
        let (count, errors) = (errors.len(), errors.join("\n"));
        return Err(Failure::Failed(format!("{count} could not be copied:\n{errors}")));
    }
    unmounted.map_err(|error| {
        Failure::Failed(format!("{} could not be written completely: {error}", image.display()))
    })
}

/// The directory and the name that a copy gets: in the directory at `path`, or as `path` in the one
/// above.
fn place(
    fs: &mut Box<dyn FileSystem>,
    path: &[u8],
    from: &Path,
) -> Result<(Ino, Vec<u8>), Failure> {
    let own = || {
        let absolute = std::fs::canonicalize(from).unwrap_or_default();
        let name = from.file_name().or(absolute.file_name()).map(|name| name.as_bytes().to_vec());
        name.ok_or_else(|| {
            Failure::Usage(format!("{} has no name to be copied by", from.display()))
        })
    };
    match find(fs, path, true) {
        Ok(attr) if attr.is_dir() => Ok((attr.ino, own()?)),
        Ok(_) | Err(dovetail_vfs::Error::NotFound) => {
            let (above, name) = split(path);
            Ok((directory(fs, &above)?.ino, name))
        }
        Err(error) => Err(Failure::Failed(format!("{}: {error}", shown(path)))),
    }
}

fn directory(fs: &mut Box<dyn FileSystem>, path: &[u8]) -> Result<Attr, Failure> {
    let attr = resolve(fs as &mut dyn Tree, path, true)?;
    if attr.is_dir() {
        return Ok(attr);
    }
    Err(Failure::Failed(format!("{} is not a directory", shown(path))))
}

/// Splits a path into what comes before its last name, and that name.
fn split(path: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let path = Path::new(OsStr::from_bytes(path));
    let above = path.parent().unwrap_or(Path::new("/")).as_os_str().to_os_string();
    (above.into_vec(), path.file_name().unwrap_or_default().as_bytes().to_vec())
}

/// This process, now.
fn caller() -> Caller {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Caller { uid, gid, now: clock::date() }
}
