//! `dovetail ls|cat|extract|cp|inspect`: images without mounting them.

mod copy_in;
mod copy_out;
mod cp;
mod extract;
mod inspect;
mod inspect_ext;
mod inspect_iplfs;
mod line;
mod open;
mod path;
mod segments;
mod tree;
mod tree_ext;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use crate::{Failure, print};
pub(crate) use cp::{CpArguments, copy};
pub(crate) use extract::{ExtractArguments, extract};
pub(crate) use inspect::{InspectArguments, inspect};
use path::{resolve, shown};
pub(crate) use segments::LOGS;

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

const REGULAR: u16 = 0o100_000;

/// An image, and a path in it.
#[derive(Debug, Args)]
#[command(
    after_help = "A name that is not plain text is shown in the quotes of a shell, $'caf\\351', and given back in them. What of a \
                  damaged directory cannot be read is named on standard error, and the exit code is 1."
)]
pub(crate) struct ListArguments {
    /// The image file, a block device, or a drive file.
    image: PathBuf,
    /// A file or directory in it.
    #[arg(default_value = "/")]
    path: OsString,
}

/// An image, and a file in it.
#[derive(Debug, Args)]
pub(crate) struct CatArguments {
    /// The image file, a block device, or a drive file.
    image: PathBuf,
    /// The file in it.
    path: OsString,
}

pub(crate) fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let mut image = open::open(&arguments.image)?;
    let tree = &mut *image.tree;
    let found = resolve(tree, arguments.path.as_bytes(), true)?;
    if !found.is_dir() {
        let name = shown(arguments.path.as_bytes());
        return print(&line::line(tree, &found, &name).map_err(Failure::failed)?);
    }
    let mut entries = Vec::new();
    loop {
        let cookie = entries.last().map_or(0, |entry: &dovetail_vfs::DirEntry| entry.cookie);
        let more = tree.list(found.ino, cookie).map_err(Failure::failed)?;
        if more.is_empty() {
            break;
        }
        entries.extend(more);
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let (mut lines, mut damage) = (String::new(), Vec::new());
    for entry in &entries {
        let name = shown(&entry.name);
        match tree.attr(entry.ino).and_then(|attr| line::line(tree, &attr, &name)) {
            Ok(line) => lines += &line,
            Err(error) => damage.push(format!("{name}: {error}")),
        }
    }
    print(&lines)?;
    let directory = shown(arguments.path.as_bytes());
    let left = tree.left_out(found.ino).map_err(Failure::failed)?;
    damage.extend(left.sentences().map(|why| format!("{directory}: {why}")));
    if damage.is_empty() { Ok(()) } else { Err(Failure::Failed(damage.join("\ndovetail: "))) }
}

pub(crate) fn cat(arguments: &CatArguments) -> Result<(), Failure> {
    let mut image = open::open(&arguments.image)?;
    let tree = &mut *image.tree;
    let path = shown(arguments.path.as_bytes());
    let found = resolve(tree, arguments.path.as_bytes(), true)?;
    if found.kind() != REGULAR {
        return Err(Failure::Failed(format!("{path} is not a regular file")));
    }
    let mut buffer = vec![0; CHUNK];
    let (mut out, mut at) = (std::io::stdout().lock(), 0);
    loop {
        let read = tree.read(found.ino, at, &mut buffer);
        let len = read.map_err(|error| Failure::Failed(format!("{path}: {error}")))?;
        match out.write_all(&buffer[..len]) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Failure::Failed(format!("standard output cannot be written: {error}"))),
            Ok(()) if len == 0 => return Ok(()),
            Ok(()) => at += len as u64,
        }
    }
}
