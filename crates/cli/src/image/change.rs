//! `dovetail rm|mkdir|mv|ln`: the names of an image changed, as the programs of these names do.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use clap::Args;

use super::Parts;
use super::place::split;
use super::writable::Writable;
use crate::{Failure, complain};

/// Files to remove.
#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// The files, each as IMAGE:/path.
    #[arg(required = true, value_name = "IMAGE:/PATH")]
    paths: Vec<OsString>,
    /// Directories too, with all that they hold.
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// Passes over names that do not exist.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    parts: Parts,
}

/// Directories to make.
#[derive(Debug, Args)]
pub(crate) struct MakeArguments {
    /// The directories, each as IMAGE:/path. They get the permissions 755.
    #[arg(required = true, value_name = "IMAGE:/PATH")]
    paths: Vec<OsString>,
    /// Those above them too, where they are missing; a directory that is there is no error.
    #[arg(short, long)]
    parents: bool,
    #[command(flatten)]
    parts: Parts,
}

/// Names to change.
#[derive(Debug, Args)]
pub(crate) struct MoveArguments {
    /// The files and directories, each as IMAGE:/path, and last the new name or the directory that
    /// they go to, in the same image. A file of that name is replaced.
    #[arg(required = true, num_args = 2.., value_name = "IMAGE:/PATH")]
    paths: Vec<OsString>,
    #[command(flatten)]
    parts: Parts,
}

/// A link to make.
#[derive(Debug, Args)]
pub(crate) struct LinkArguments {
    /// The file that gets another name, as IMAGE:/path; with -s the link's text, as it is.
    target: OsString,
    /// The new name, or the directory that it goes to, as IMAGE:/path.
    #[arg(value_name = "IMAGE:/PATH")]
    link: OsString,
    /// Make a symbolic link.
    #[arg(short, long)]
    symbolic: bool,
    #[command(flatten)]
    parts: Parts,
}

/// A path in an image.
type Inside = (PathBuf, Vec<u8>);

fn inside(text: &OsStr) -> Result<Inside, Failure> {
    let (image, path) = split(text).ok_or_else(|| {
        Failure::Usage(format!("{}: give a path in an image: IMAGE:/path", text.display()))
    })?;
    Ok((image, path.into_vec()))
}

/// The paths, and the one image in which they are.
fn in_one(paths: &[OsString]) -> Result<(PathBuf, Vec<Vec<u8>>), Failure> {
    let found = paths.iter().map(|path| inside(path)).collect::<Result<Vec<Inside>, _>>()?;
    let image = found.first().map(|(image, _)| image.clone()).unwrap_or_default();
    if found.iter().any(|(other, _)| *other != image) {
        return Err(Failure::Usage("all paths must be in one image; copy with cp".to_string()));
    }
    Ok((image, found.into_iter().map(|(_, path)| path).collect()))
}

/// Mounts the image, changes it and unmounts it. What could not be changed is told, each in a line.
fn change(
    parts: &Parts,
    image: &Path,
    with: impl FnOnce(&mut Writable) -> Vec<String>,
) -> Result<(), Failure> {
    let mut writable = Writable::open(parts, image)?;
    let errors = with(&mut writable);
    let finished = writable.finish();
    match errors.split_last() {
        None => finished,
        Some((last, rest)) => {
            rest.iter().for_each(|error| complain(error));
            Err(Failure::Failed(last.clone()))
        }
    }
}

fn errors<T>(results: impl Iterator<Item = Result<T, String>>) -> Vec<String> {
    results.filter_map(Result::err).collect()
}

pub(crate) fn remove(arguments: &RemoveArguments) -> Result<(), Failure> {
    let (image, paths) = in_one(&arguments.paths)?;
    change(&arguments.parts, &image, |writable| {
        let mut edit = writable.edit();
        let removed =
            paths.iter().map(|path| edit.remove(path, arguments.recursive, arguments.force));
        removed.flatten().collect()
    })
}

pub(crate) fn make_directory(arguments: &MakeArguments) -> Result<(), Failure> {
    let (image, paths) = in_one(&arguments.paths)?;
    change(&arguments.parts, &image, |writable| {
        let mut edit = writable.edit();
        errors(paths.iter().map(|path| edit.make_directory(path, arguments.parents)))
    })
}

pub(crate) fn rename(arguments: &MoveArguments) -> Result<(), Failure> {
    let (image, mut paths) = in_one(&arguments.paths)?;
    let to = paths.pop().unwrap_or_default();
    change(&arguments.parts, &image, |writable| writable.edit().rename_all(&paths, &to))
}

pub(crate) fn link(arguments: &LinkArguments) -> Result<(), Failure> {
    let (image, path) = inside(&arguments.link)?;
    let target = match arguments.symbolic {
        true => arguments.target.as_bytes().to_vec(),
        false => {
            let both = [arguments.target.clone(), arguments.link.clone()];
            in_one(&both)?.1.swap_remove(0)
        }
    };
    change(&arguments.parts, &image, |writable| {
        let mut edit = writable.edit();
        let made = match arguments.symbolic {
            true => edit.symlink(&target, &path),
            false => edit.link(&target, &path),
        };
        errors(std::iter::once(made))
    })
}
