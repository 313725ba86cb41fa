//! `dovetail ls|cat|extract|cp|rm|mkdir|mv|ln|label|inspect|image`: images without mounting them.

mod change;
mod convert;
mod cp;
mod extract;
mod inspect;
mod label;
mod open;
mod parts;
mod place;
mod writable;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;
use dovetail_image::{CHUNK, Entry, resolve};
use dovetail_vfs::{mode, shown};

use crate::output::put;
use crate::{Failure, print};
pub(crate) use change::{
    LinkArguments, MakeArguments, MoveArguments, RemoveArguments, link, make_directory, remove,
    rename,
};
pub(crate) use convert::{ConvertCommand, convert};
pub(crate) use cp::{CpArguments, copy};
pub(crate) use extract::{ExtractArguments, extract};
pub(crate) use inspect::{InspectArguments, inspect};
pub(crate) use label::{LabelArguments, label};
pub(crate) use parts::Parts;

/// An image, and a path in it.
#[derive(Debug, Args)]
#[command(
    after_help = "A name that is not plain text is shown in the quotes of a shell, $'caf\\351', and given back in them. What of a \
                  damaged directory cannot be read is named on standard error, and the exit code is 1."
)]
pub(crate) struct ListArguments {
    /// The image file, a block device, or a drive file; also IMAGE:/path.
    image: PathBuf,
    /// A file or directory in it [default: /].
    path: Option<OsString>,
    /// Directories with all that they hold, each under its path.
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Taken for ls's sake: the listing is long anyway.
    #[arg(short = 'l', hide = true)]
    _long: bool,
    #[command(flatten)]
    parts: Parts,
}

/// An image, and a file in it.
#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    /// The image file, a block device, or a drive file; also IMAGE:/path.
    image: PathBuf,
    /// The file in it.
    path: Option<OsString>,
    #[command(flatten)]
    parts: Parts,
}

pub(crate) fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let (image, path) = place::of(&arguments.image, arguments.path.as_deref());
    let path = path.unwrap_or_else(|| "/".into());
    let mut image = open::open(&arguments.parts.of(&image)?)?;
    let tree = &mut *image.files.tree;
    let mut damage = Vec::new();
    if arguments.recursive {
        let mut printed = Ok(());
        dovetail_image::list_tree(tree, path.as_bytes(), &mut |listing| {
            if printed.is_ok() {
                printed = print(&listing.lines);
            }
            damage.extend(listing.damage);
        })?;
        printed?;
    } else {
        let listing = dovetail_image::list(tree, path.as_bytes())?;
        print(&listing.lines)?;
        damage = listing.damage;
    }
    if damage.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(damage.join("\ndovetail: ")))
}

/// The files that [`list`] shows, and sentences about those that cannot be read.
pub(crate) fn entries(arguments: &ListArguments) -> Result<(Vec<Entry>, Vec<String>), Failure> {
    let (image, path) = place::of(&arguments.image, arguments.path.as_deref());
    let path = path.unwrap_or_else(|| "/".into());
    let mut image = open::open(&arguments.parts.of(&image)?)?;
    let tree = &mut *image.files.tree;
    Ok(dovetail_image::entries(tree, path.as_bytes(), arguments.recursive)?)
}

pub(crate) fn cat(arguments: &CatArguments) -> Result<(), Failure> {
    let (image, path) = place::of(&arguments.image, arguments.path.as_deref());
    let Some(inside) = path else {
        let image = image.display();
        return Err(Failure::Usage(format!("which file? give {image} PATH, or {image}:/PATH")));
    };
    let mut image = open::open(&arguments.parts.of(&image)?)?;
    let tree = &mut *image.files.tree;
    let path = shown(inside.as_bytes());
    let found = resolve(tree, inside.as_bytes(), true)?;
    if !mode::is_regular(found.mode) {
        return Err(Failure::Failed(format!("{path} is not a regular file")));
    }
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    loop {
        let read = tree.read_up_to_damage(found.ino, at, &mut buffer);
        let len = read.map_err(|error| Failure::Failed(format!("{path}: {error}")))?;
        if len == 0 || !put(&buffer[..len])? {
            return Ok(());
        }
        at += len as u64;
    }
}
