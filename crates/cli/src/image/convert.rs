//! `dovetail image`: images made of others.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use dovetail_image::{ConvertError, to_plain, to_sparse};
use dovetail_time::format_bytes;

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
    let (from, to) = (&arguments.from, &arguments.to);
    let shown = to.display();
    if to.exists() && !arguments.force {
        return Err(Failure::Usage(format!("{shown} is there already; --force replaces it")));
    }
    // under its own name it stands when it is whole
    let mut part = to.as_os_str().to_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut meter = Meter::new(format!("writing {shown}"));
    let bytes =
        convert(from, &part, &mut |done, all| meter.tell(done, all)).map_err(Failure::failed)?;
    std::fs::rename(&part, to)
        .map_err(|error| Failure::Failed(format!("{shown} cannot be written: {error}")))?;
    print(&format!("{shown}: {what} of {}\n", format_bytes(bytes)))
}
