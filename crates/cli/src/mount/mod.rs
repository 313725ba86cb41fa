//! `dovetail mount`: an image as a directory, through FUSE.

mod background;
mod lock;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use dovetail_front::{Ending, Fault, Options, Session};
use dovetail_image::{Mount, Source, format_of, is_drive};
use dovetail_time::SimTime;
use tracing::info;

use crate::image::Parts;
use crate::{Failure, clock, complain};
pub(crate) use lock::ImageLock;

/// An image, and where it is mounted.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The image file, a block device, or a drive file.
    image: PathBuf,
    /// The directory to mount at.
    directory: PathBuf,
    #[command(flatten)]
    parts: Parts,
    /// Mount options, separated by commas: those of every file system (ro, nosuid, nodev, noexec,
    /// noatime, sync, allow_other, ...) and those of the image's own: F2FS, ext3 or ext4.
    #[arg(short = 'o', value_name = "OPTIONS", value_delimiter = ',')]
    options: Vec<String>,
    /// Stay in the foreground: errors are told here, Ctrl-C unmounts.
    #[arg(short, long)]
    foreground: bool,
    /// Stay in the foreground, and tell on standard output how mounting went.
    #[arg(long, hide = true)]
    tell: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.foreground && !arguments.tell {
        return background::start();
    }
    let mounted = mount(arguments);
    if arguments.tell {
        background::tell(mounted.as_ref().map(|_| ()));
    }
    let (_lock, session) = mounted?;
    serve(session, arguments)
}

fn serve(session: Session, arguments: &Arguments) -> Result<(), Failure> {
    match session.wait() {
        Ok(Ending::Unmounted | Ending::Signal(_)) => Ok(()),
        Err(error) => {
            let image = arguments.image.display();
            Err(Failure::Failed(format!("{image} could not be written completely: {error}")))
        }
    }
}

fn mount(arguments: &Arguments) -> Result<(ImageLock, Session), Failure> {
    let source = std::path::absolute(&arguments.image).map_err(Failure::failed)?;
    let mut options = Options::new(source.to_string_lossy(), "").on_error(tell_error(arguments));
    let rest: Vec<&str> = arguments
        .options
        .iter()
        .map(String::as_str)
        .filter(|option| options.set(option).is_err())
        .collect();
    let lock = ImageLock::take(&arguments.image, !options.read_only)?;
    let image = arguments.parts.of(&arguments.image)?;
    if is_one_image(&image)
        && let Ok(file) = File::open(image.path())
    {
        // opened on its own, so that an error is told to the file system's descriptor as well
        options = options.flush_apart(move || file.sync_data());
    }
    let format = format_of(&image)?;
    options.kind = format.variant_on(&image)?.to_string();
    info!(image = %source.display(), kind = options.kind, read_only = options.read_only, "opening the volume");
    let (read_only, now) = (options.read_only, clock::mounting_at(SimTime::ZERO));
    let request = Mount { read_only, options: &rest.join(","), seed: seed(), now };
    let fs = format.mount(&image, &request, &mut |sentence| complain(&sentence))?;
    let session =
        dovetail_front::mount(fs, &arguments.directory, options).map_err(Failure::failed)?;
    Ok((lock, session))
}

/// All that is written goes to the one image file as it is. A drive has a buffer and a journal of
/// its own, and a flush of one file says nothing of others.
fn is_one_image(image: &Source) -> bool {
    image.others().is_empty() && image.zones().is_none() && !is_drive(image.path())
}

/// Tells a serious error on standard error, if that is still there.
fn tell_error(arguments: &Arguments) -> impl Fn(Fault<'_>) + Send + Sync + 'static {
    let image = arguments.image.display().to_string();
    move |fault| drop(writeln!(std::io::stderr(), "dovetail: {image}: {fault}"))
}

/// A seed of what is random on a mount.
pub(crate) fn seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
