//! `dovetail extract`: a tree of an image with all that belongs to it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_image::{CopyOut, Done, Found, Keep, resolve};
use dovetail_time::SimTime;
use dovetail_vfs::check::Severity;

use super::open;
use crate::progress::Meter;
use crate::signals::{stop_flag, unless_stopped};
use crate::{Failure, clock, print};

/// An image, and where its files go.
#[derive(Debug, Args)]
pub(crate) struct ExtractArguments {
    /// The image file, a block device, or a drive file.
    image: PathBuf,
    /// The directory to write to; made if it is not there, otherwise it must be empty.
    directory: PathBuf,
    /// Extract only this file, or what this directory holds.
    #[arg(default_value = "/")]
    path: OsString,
    /// Salvage first, in memory (F2FS): nodes that the NAT has lost are found again, and what has
    /// no name is in DIRECTORY/lost+found. What is lost is listed; the exit code is 1 then.
    #[arg(long)]
    lost: bool,
    #[command(flatten)]
    parts: super::Parts,
}

pub(crate) fn extract(arguments: &ExtractArguments) -> Result<(), Failure> {
    let source = arguments.parts.of(&arguments.image)?;
    let (mut image, account) = match arguments.lost {
        true => open::salvaged(&source, clock::mounting_at(SimTime::ZERO))?,
        false => (open::open(&source)?, Vec::new()),
    };
    let copied = copy(arguments, &mut image);
    match copied {
        Err(Failure::Usage(_)) => copied,
        copied => both(copied, tell_account(&account)),
    }
}

/// Copies the tree to the directory.
fn copy(arguments: &ExtractArguments, image: &mut open::Opened) -> Result<(), Failure> {
    let path = arguments.path.as_bytes();
    let start = resolve(&mut *image.files.tree, path, true)?;
    let to = &arguments.directory;
    prepare(to)?;
    let keep = Keep { owners: true, replace: false, pieces: true };
    let mut meter = Meter::new(format!("extracting to {}", to.display()));
    let total = match (start.is_dir(), path) {
        (false, _) => start.size,
        (true, b"/") => image.files.used_bytes.unwrap_or(0),
        (true, _) => 0,
    };
    let stop = stop_flag()?;
    let mut tell = |done| {
        meter.tell(done, total);
        unless_stopped(&stop)
    };
    let mut copy = CopyOut::new(&mut *image.files.tree, image.files.most_bytes, keep, &mut tell);
    if start.is_dir() {
        copy.directory(&start, path, to);
    } else {
        copy.single(
            &start,
            path,
            &to.join(Path::new(&arguments.path).file_name().unwrap_or_default()),
        );
    }
    finish(&copy.done, to)
}

/// Two outcomes as one: the failures of both.
fn both(first: Result<(), Failure>, second: Result<(), Failure>) -> Result<(), Failure> {
    match (first, second) {
        (Err(Failure::Failed(first)), Err(Failure::Failed(second))) => {
            Err(Failure::Failed(format!("{first}\n{second}")))
        }
        (first, second) => first.and(second),
    }
}

/// Prints what a salvage has saved.
///
/// # Errors
/// Losses.
fn tell_account(account: &[Found]) -> Result<(), Failure> {
    let is_lost = |found: &&Found| found.severity > Severity::Note;
    let saved = account.iter().filter(|found| !is_lost(found));
    print(&saved.map(|found| format!("{}\n", found.text)).collect::<String>())?;
    let lost: Vec<_> = account.iter().filter(is_lost).map(|found| found.text.as_str()).collect();
    match lost.as_slice() {
        [] => Ok(()),
        lost => Err(Failure::Failed(format!("{} lost:\n{}", lost.len(), lost.join("\n")))),
    }
}

/// An empty directory: nothing that is there already, and no link out of it, gets in the way.
fn prepare(to: &Path) -> Result<(), Failure> {
    let fail = |error| Failure::Failed(format!("{} cannot be written to: {error}", to.display()));
    std::fs::create_dir_all(to).map_err(fail)?;
    match std::fs::read_dir(to).map_err(fail)?.next() {
        None => Ok(()),
        Some(_) => {
            Err(Failure::Usage(format!("{} is not empty; give a new directory", to.display())))
        }
    }
}

fn finish(done: &Done, to: &Path) -> Result<(), Failure> {
    let made = [
        (done.files, "files"),
        (done.directories, "directories"),
        (done.symlinks, "symbolic links"),
        (done.hard_links, "more names of files (hard links)"),
        (done.special, "devices, fifos and sockets"),
    ];
    let made = made.iter().filter(|(count, what)| *count > 0 || *what == "files");
    let made: Vec<_> = made.map(|(count, what)| format!("{count} {what}")).collect();
    print(&format!("{} in {}\n{}", made.join(", "), to.display(), done.left_out()))?;
    Ok(done.result()?)
}
