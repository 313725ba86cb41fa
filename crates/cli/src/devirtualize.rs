//! `dovetail devirtualize`: the tool over a volume on a drive in a file, mounted or not.

mod mounted;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_devirt::{Hot, Report, Run, Selection, Way};
use dovetail_image::{Mount, Source, format_of};
use dovetail_time::{SimTime, format_bytes, format_count};
use dovetail_vfs::Devirtualize;

use crate::mount::{ImageLock, seed};
use crate::{Failure, clock, complain, print};

/// Let the pointers of an ext3, ext4 or F2FS volume lead to its drive's own addresses, so that the
/// drive can forget its map.
///
/// The volume can then be used on that drive only. It may be mounted: then name the directory,
/// which can be used meanwhile.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The drive file, made with a profile that devirtualises (fsdv-5g), or the directory where it
    /// is mounted.
    file: PathBuf,
    /// Back to addresses of the volume: an ordinary volume again.
    #[arg(long)]
    undo: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let file = &arguments.file;
    let way = if arguments.undo { Way::ToVolume } else { Way::ToDevice };
    if file.is_dir() {
        let progress = mounted::run(file, way)?;
        return print(&told(file, &progress.report, progress.map_bytes));
    }
    let _lock = ImageLock::take(file, true)?;
    let (report, map_bytes) = perform(file, way)?;
    print(&told(file, &report, map_bytes))
}

/// Mounts the volume and does it; returns what the map took, and takes, beside the report.
fn perform(file: &Path, way: Way) -> Result<(Report, (u64, u64)), Failure> {
    let request = Mount {
        read_only: false,
        options: "",
        seed: seed(),
        now: clock::mounting_at(SimTime::ZERO),
    };
    let source = Source::from(file);
    let format = format_of(&source)?;
    let mut fs = format.mount(&source, &request, &mut |sentence| complain(&sentence))?;
    let told = match fs.devirtualizer() {
        Some(pointers) => rename(pointers, way).map_err(|error| failed(file, error)),
        None => Err(failed(file, "pointers of its file system cannot be rewritten")),
    };
    let unmounted = fs.unmount().map_err(|error| failed(file, error));
    let told = told?;
    unmounted.map(|()| told)
}

fn failed(file: &Path, error: impl Display) -> Failure {
    Failure::Failed(format!("{}: {error}", file.display()))
}

fn rename(
    fs: &mut dyn Devirtualize,
    way: Way,
) -> Result<(Report, (u64, u64)), dovetail_vfs::Error> {
    fs.renames_at_once()?;
    let before = fs.device_map_bytes().unwrap_or(0);
    fs.give_back_unreached()?;
    let selection = match way {
        Way::ToDevice => Selection::due(fs, Hot::default())?,
        Way::ToVolume => Selection::all(fs)?,
    };
    let report = Run::new(fs, way, selection)?.finish(fs)?;
    if way == Way::ToVolume {
        dovetail_devirt::leave(fs)?;
    }
    Ok((report, (before, fs.device_map_bytes().unwrap_or(0))))
}

fn told(file: &Path, report: &Report, (before, after): (u64, u64)) -> String {
    format!(
        "{}: {} files, {} blocks of content and {} of pointers renamed in {} of the drive's time; its map took {}, and takes {}\n",
        file.display(),
        format_count(report.files),
        format_count(report.content_blocks),
        format_count(report.metadata_blocks),
        report.time(),
        format_bytes(before),
        format_bytes(after)
    )
}
