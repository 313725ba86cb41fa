//! `dovetail devirtualize`: the tool over a volume on a drive in a file, mounted or not.

mod mounted;

use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_devirt::{Hot, Report, Run, Selection, Way};
use dovetail_ext::{Ext, Options};
use dovetail_ftl::EmulatedDrive;
use dovetail_time::{SimTime, format_bytes, format_count};
use dovetail_vfs::Devirtualize;

use crate::mount::ImageLock;
use crate::{Failure, print};

/// Let the pointers of an ext3 or ext4 volume lead to its drive's own addresses, so that the drive can forget its map.
///
/// The volume can then be used on that drive only. It may be mounted: then name the directory, which can be used meanwhile.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The drive file, made with a profile that devirtualises (fsdv-5g), or the directory where it is mounted.
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
    let named = |error: &dyn std::fmt::Display| Failure::Failed(format!("{}: {error}", file.display()));
    let _lock = ImageLock::take(file, true)?;
    let (drive, _) = EmulatedDrive::open(file, true).map_err(|error| named(&error))?;
    let (now, before) = (drive.drive().idle_from(), drive.drive().mapping_memory_bytes());
    let mut fs = mount(drive, now).map_err(|error| named(&error))?;
    let report = perform(&mut fs, way).map_err(|error| named(&error))?;
    let drive = fs.unmount().map_err(|error| named(&error))?;
    print(&told(file, &report, (before, drive.drive().mapping_memory_bytes())))
}

fn mount(drive: EmulatedDrive, now: SimTime) -> Result<Ext<EmulatedDrive>, String> {
    let options = Options { physical_pointers: true, ..Options::default() };
    Ext::mount(drive, options, now).map_err(|error| match error {
        dovetail_ext::Error::NotExt { .. } => {
            "there is no ext3 or ext4 volume on it, and of other file systems no pointers can be rewritten"
                .into()
        }
        error => error.to_string(),
    })
}

fn perform(fs: &mut Ext<EmulatedDrive>, way: Way) -> Result<Report, dovetail_vfs::Error> {
    fs.renames_at_once()?;
    fs.give_back_unreached()?;
    let selection = match way {
        Way::ToDevice => Selection::due(fs, Hot::default())?,
        Way::ToVolume => Selection::all(fs)?,
    };
    let report = Run::new(fs, way, selection)?.finish(fs)?;
    if way == Way::ToVolume {
        fs.leave_device()?;
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
