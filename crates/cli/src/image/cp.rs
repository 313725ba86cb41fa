//! `dovetail cp`: files and trees out of an image, or into one.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use dovetail_image::{
    Content, CopyIn, CopyOut, Keep, Tree, content_of, find, free_bytes, replaced, resolve,
    same_name, split, would_overwrite,
};
use dovetail_time::format_bytes;
use dovetail_vfs::{Attr, FileSystem, Ino, shown};

use super::writable::{Writable, caller};
use crate::progress::Meter;
use crate::signals::{stop_flag, stopped, unless_stopped};
use crate::{Failure, complain};

/// From where to where; one of them is in an image.
#[derive(Debug, Args)]
#[command(
    after_help = "Modes, times, extended attributes and hard links are kept. Into a directory that is there, a copy goes \
                  by its own name, of DIR/. all that it holds; files that are there are replaced, directories merged. An \
                  image that is written to must not be mounted. Content that cannot fit is refused before anything is \
                  written, and no part of a file is left where a copy fails."
)]
pub(crate) struct CpArguments {
    /// Sources, then the target: paths, and IMAGE:/path for what is in an image. All sources are in
    /// images, or the target is. Several go to a directory that is there.
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    paths: Vec<OsString>,
    /// Directories with all that they hold.
    #[arg(short, long, visible_short_alias = 'R')]
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
    let mut ends: Vec<End> = arguments.paths.iter().map(|path| End::parse(path)).collect();
    let to = ends.pop();
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for end in ends {
        match end {
            End::Host(path) => outside.push(path),
            End::Image(image, path) => inside.push((image, path)),
        }
    }
    match to {
        Some(End::Host(to)) if outside.is_empty() => copy_all_out(arguments, &inside, &to),
        Some(End::Image(image, path)) if inside.is_empty() => {
            copy_in(arguments, &outside, &image, &path)
        }
        Some(End::Image(..)) => Err(Failure::Usage(
            "only one of the two can be in an image; copy by way of a directory".to_string(),
        )),
        _ => Err(Failure::Usage("one of the two must be in an image: IMAGE:/path".to_string())),
    }
}

fn is_directory(path: &str) -> Failure {
    Failure::Failed(format!("{path} is a directory; -r copies it with all that it holds"))
}

fn is_no_directory(path: &str) -> Failure {
    Failure::Failed(format!("{path} is not a directory"))
}

/// Refuses two sources that would get one name in one directory: the second would replace the
/// first.
fn refuse_same<P: Eq>(
    names: &[(P, Vec<u8>)],
    path: impl Fn(usize) -> String,
) -> Result<(), Failure> {
    match same_name(names) {
        Some((first, second)) => Err(Failure::Failed(would_overwrite(&path(first), &path(second)))),
        None => Ok(()),
    }
}

/// Goes on after a source that cannot be copied.
fn copy_all_out(
    arguments: &CpArguments,
    sources: &[(PathBuf, Vec<u8>)],
    to: &Path,
) -> Result<(), Failure> {
    if sources.len() > 1 && !to.is_dir() {
        return Err(is_no_directory(&to.display().to_string()));
    }
    let names: Vec<_> = sources.iter().map(|(_, path)| ((), split(path).1)).collect();
    refuse_same(&names, |at| format!("{}:{}", sources[at].0.display(), shown(&sources[at].1)))?;
    let stop = stop_flag()?;
    let mut meter = Meter::new("copying".into());
    let mut tell = |done, total| {
        meter.tell(done, total);
        unless_stopped(&stop)
    };
    let mut result = Ok(());
    for (image, path) in sources {
        let copied = match stop.load(Ordering::Relaxed) {
            true => Err(stopped()),
            false => copy_out(arguments, image, path, to, &mut tell),
        };
        if let Err(failure) = copied {
            if let Err(Failure::Failed(message) | Failure::Usage(message)) = &result {
                complain(message);
            }
            result = Err(failure);
        }
    }
    result
}

fn copy_out(
    arguments: &CpArguments,
    image: &Path,
    path: &[u8],
    to: &Path,
    tell: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let mut opened = super::open::open(&arguments.parts.of(image)?)?;
    let (_, name) = split(path);
    let start = resolve(&mut *opened.files.tree, path, name.is_empty() || !arguments.recursive)?;
    if name.is_empty() && !start.is_dir() {
        return Err(is_no_directory(&shown(path)));
    }
    if start.is_dir() && !arguments.recursive {
        return Err(is_directory(&shown(path)));
    }
    let to = match to.is_dir() {
        true => to.join(OsStr::from_bytes(&name)),
        false => to.to_path_buf(),
    };
    if !start.is_dir() && to.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Err(Failure::Usage(format!(
            "{} is no regular file: `dovetail cat` writes a file's content to standard output",
            to.display()
        )));
    }
    let keep = Keep { owners: arguments.preserve, replace: true, pieces: false };
    let total = if start.is_dir() { 0 } else { start.size };
    let mut tell = |done| tell(done, total);
    let mut copy = CopyOut::new(&mut *opened.files.tree, opened.files.most_bytes, keep, &mut tell);
    if start.is_dir() {
        // the root and "." have no name: what they hold goes to where they were to go
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

/// A source outside, and what of its files is to be known.
struct Outside<'a> {
    path: &'a Path,
    /// A symbolic link is copied as what it leads to.
    follow: bool,
    is_dir: bool,
    content: Content,
}

impl<'a> Outside<'a> {
    fn look(arguments: &CpArguments, path: &'a Path) -> Result<Self, Failure> {
        let fail = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
        let meta = std::fs::symlink_metadata(path).map_err(fail)?;
        let is_dir = path.is_dir();
        if is_dir && !arguments.recursive {
            return Err(is_directory(&path.display().to_string()));
        }
        let follow = !meta.is_symlink() || !arguments.recursive;
        Ok(Self { path, follow, is_dir, content: content_of(path, follow) })
    }
}

fn copy_in(
    arguments: &CpArguments,
    from: &[PathBuf],
    image: &Path,
    path: &[u8],
) -> Result<(), Failure> {
    let sources =
        from.iter().map(|path| Outside::look(arguments, path)).collect::<Result<Vec<_>, _>>()?;
    let mut writable = Writable::open(&arguments.parts, image)?;
    let copied = copy_sources(arguments, &sources, &mut writable.fs, path);
    let unmounted = writable.finish();
    let (errors, left) = copied?;
    if left > 0 {
        complain(&format!("{left} extended attributes were left out: the image cannot store them"));
    }
    if !errors.is_empty() {
        let (count, errors) = (errors.len(), errors.join("\n"));
        return Err(Failure::Failed(format!("{count} could not be copied:\n{errors}")));
    }
    unmounted
}

/// Sentences about what could not be copied, and the number of extended attributes left out.
type Copied = (Vec<String>, u64);

fn copy_sources(
    arguments: &CpArguments,
    sources: &[Outside<'_>],
    fs: &mut Box<dyn FileSystem>,
    path: &[u8],
) -> Result<Copied, Failure> {
    let is_there = find(fs, path, true).is_ok_and(|attr| attr.is_dir());
    let needs_one =
        sources.len() > 1 || path.ends_with(b"/") && sources.iter().any(|source| !source.is_dir);
    if needs_one && !is_there {
        return Err(is_no_directory(&shown(path)));
    }
    let mut places = Vec::new();
    for source in sources {
        places.push(place(fs, path, source.path)?);
    }
    refuse_same(&places, |at| sources[at].path.display().to_string())?;
    for (_, name) in places.iter_mut().filter(|(_, name)| name.is_empty()) {
        *name = b".".to_vec();
    }
    check_room(&mut **fs, sources, &places)?;
    let total = sources.iter().map(|source| source.content.bytes).fold(0, u64::saturating_add);
    let mut meter = Meter::new("copying".into());
    let mut tell = |done| meter.tell(done, total);
    let mut copy = CopyIn::new(&mut **fs, caller(), arguments.preserve, &mut tell);
    for (source, (dir, name)) in sources.iter().zip(places) {
        copy.copy(source.path, source.follow, dir, &name);
    }
    Ok((copy.errors, copy.xattrs_left))
}

/// Refuses what surely has no room, before anything is written.
fn check_room(
    fs: &mut dyn FileSystem,
    sources: &[Outside<'_>],
    places: &[(Ino, Vec<u8>)],
) -> Result<(), Failure> {
    let least = sources.iter().map(|source| source.content.least).fold(0, u64::saturating_add);
    let free = free_bytes(fs).map_err(Failure::failed)?;
    if least <= free {
        return Ok(());
    }
    let given_back = sources.iter().zip(places);
    let given_back = given_back
        .map(|(source, (dir, name))| replaced(&mut *fs, source.path, *dir, name))
        .fold(0, u64::saturating_add);
    if least <= free.saturating_add(given_back) {
        return Ok(());
    }
    let (least, free) = (format_bytes(least), format_bytes(free));
    Err(Failure::Failed(format!(
        "no space is left on the volume for {least}: {free} are free; nothing was written"
    )))
}

/// The directory and the name that a copy gets: in the directory at `path`, or as `path` in the one
/// above. What a directory without a name of its own holds ("/", "." and "..") goes into the
/// directory itself: its name is empty.
fn place(
    fs: &mut Box<dyn FileSystem>,
    path: &[u8],
    from: &Path,
) -> Result<(Ino, Vec<u8>), Failure> {
    match find(fs, path, true) {
        Ok(attr) if attr.is_dir() => Ok((attr.ino, split(from.as_os_str().as_bytes()).1)),
        Ok(_) | Err(dovetail_vfs::Error::NotFound) => {
            let (above, name) = split(path);
            if name.is_empty() {
                return Err(is_no_directory(&shown(path)));
            }
            Ok((directory(fs, &above)?.ino, name))
        }
        Err(error) => Err(Failure::Failed(format!("{}: {error}", shown(path)))),
    }
}

fn directory(fs: &mut Box<dyn FileSystem>, path: &[u8]) -> Result<Attr, Failure> {
    let attr = resolve(fs as &mut dyn Tree, path, true)?;
    if attr.is_dir() { Ok(attr) } else { Err(is_no_directory(&shown(path))) }
}
