//! `dovetail devirtualize`: the tool over a volume on a drive in a file, mounted or not.

mod mounted;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_devirt::{Hot, Report, Run, Selection, Way};
use dovetail_ext::Ext;
use dovetail_f2fs::F2fs;
use dovetail_ftl::EmulatedDrive;
use dovetail_time::{SimTime, format_bytes, format_count};
use dovetail_vfs::Devirtualize;

use crate::mount::ImageLock;
use crate::{Failure, clock, print};

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
    let (report, map_bytes) = perform(file, way)
        .map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?;
    print(&told(file, &report, map_bytes))
}

/// Does it on whichever file system there is; returns what the map took, and takes, beside the
/// report.
fn perform(file: &Path, way: Way) -> Result<(Report, (u64, u64)), String> {
    let (drive, now) = open(file)?;
    let before = drive.drive().mapping_memory_bytes();
    let options = dovetail_ext::Options { physical_pointers: true, ..Default::default() };
    let (report, drive) = match Ext::mount(drive, options, clock::mounting_at(now)) {
        Ok(mut fs) => (rename(&mut fs, way).map_err(text)?, fs.unmount().map_err(text)?),
        Err(dovetail_ext::Error::NotExt { .. }) => {
            let mut fs = mount_f2fs(file)?;
            (rename(&mut fs, way).map_err(text)?, fs.unmount().map_err(text)?)
        }
        Err(error) => return Err(error.to_string()),
    };
    Ok((report, (before, drive.drive().mapping_memory_bytes())))
}

fn open(file: &Path) -> Result<(EmulatedDrive, SimTime), String> {
    let (drive, _) = EmulatedDrive::open(file, true).map_err(text)?;
    let now = drive.drive().idle_from();
    Ok((drive, now))
}

fn mount_f2fs(file: &Path) -> Result<F2fs<EmulatedDrive>, String> {
    let (drive, now) = open(file)?;
    let options = dovetail_f2fs::Options { physical_pointers: true, ..Default::default() };
    F2fs::mount(drive, options, clock::mounting_at(now)).map_err(|error| match error {
        dovetail_f2fs::Error::NotF2fs { .. } => {
            "there is no ext3, ext4 or F2FS volume on it, and of other file systems no pointers can be rewritten".into()
        }
        error => error.to_string(),
    })
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn rename(fs: &mut impl Devirtualize, way: Way) -> Result<Report, dovetail_vfs::Error> {
    fs.renames_at_once()?;
    fs.give_back_unreached()?;
    let selection = match way {
        Way::ToDevice => Selection::due(fs, Hot::default())?,
        Way::ToVolume => Selection::all(fs)?,
    };
    let report = Run::new(fs, way, selection)?.finish(fs)?;
    if way == Way::ToVolume {
        dovetail_devirt::leave(fs)?;
    }
    Ok(report)
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
