//! `dovetail drive list|show|make|status`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use dovetail_block::{BlockDevice, ZoneState, ZoneTable};
use dovetail_ftl::{
    DriveConfig, EmulatedDrive, Overrides, Profile, ProfileError, SwitchedOn, builtin_profiles,
};
use dovetail_serve::DriveStatus;
use dovetail_time::{Ratio, format_bytes, format_count};

use crate::choices::percent;
use crate::mount::ImageLock;
use crate::table::{list_width, of_words};
use crate::{Failure, print};

/// Commands for drive profiles and drive files.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the profiles that come with dovetail.
    List,
    /// Show a profile: every figure with its source, and the drive that they make.
    Show {
        /// A profile's name, or the path of a .toml file.
        name: String,
        /// Shrink capacity and keep the ratios.
        #[arg(long, default_value = "1", value_parser = scale)]
        scale: Ratio,
        /// Print the profile itself, with all that it takes from its base: to be changed and given
        /// to --drive.
        #[arg(long, conflicts_with = "scale")]
        toml: bool,
    },
    /// Make a file with an emulated drive in it, to be formatted, mounted and checked like an
    /// image.
    Make(MakeArguments),
    /// Show the drive in a file: what it is, how full and how worn.
    Status {
        /// The drive file.
        file: PathBuf,
    },
}

/// A drive to be made.
#[derive(Debug, Args)]
pub(crate) struct MakeArguments {
    /// The file.
    file: PathBuf,
    /// A profile's name, or the path of a .toml file.
    #[arg(long, visible_alias = "drive", default_value = "femu-32g-log")]
    profile: String,
    /// Shrink capacity and keep the ratios.
    #[arg(long, default_value = "1", value_parser = scale)]
    scale: Ratio,
    /// Spare flash in percent of the capacity.
    #[arg(long = "op", alias = "over-provisioning", value_name = "PERCENT", value_parser = percent)]
    over_provisioning: Option<f64>,
    /// Scheme by which it maps pages.
    #[arg(long)]
    map: Option<String>,
    /// Addresses that the host can use: capacity, or iplfs, seven areas of 2^58 blocks, which takes
    /// a map that follows what is live (--map interval).
    #[arg(long)]
    addresses: Option<String>,
    /// Overwrite the file that is there.
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
        Command::Show { name, toml: true, .. } => print(load(name)?.text()),
        Command::Show { name, scale, .. } => show(name, *scale),
        Command::Make(arguments) => make(arguments),
        Command::Status { file } => status(file),
    }
}

/// A scale: drives shrink, they do not grow.
pub(crate) fn scale(text: &str) -> Result<Ratio, String> {
    let ratio: Ratio = text.parse().map_err(|error: dovetail_time::UnitError| error.to_string())?;
    if (1e-6..=1.0).contains(&ratio.value()) {
        Ok(ratio)
    } else {
        Err("give a ratio from 1/1000000 to 1".into())
    }
}

/// Loads a profile; an unknown name is wrong usage, a wrong file is not.
pub(crate) fn load(name: &str) -> Result<Profile, Failure> {
    Profile::load(name).map_err(|error| match error {
        ProfileError::Unknown { .. } => Failure::Usage(error.to_string()),
        _ => Failure::failed(error),
    })
}

fn list() -> Result<(), Failure> {
    let row = |name: &str| -> Result<Vec<String>, Failure> {
        let profile = load(name)?;
        let config = profile.resolve(&Overrides::default()).map_err(Failure::failed)?;
        let geometry = config.nand.geometry;
        Ok(vec![
            profile.name.clone(),
            format_bytes(config.user_blocks * 4096),
            format_bytes(config.chip_page_bytes().into()),
            format!("{}x{}", geometry.channels, geometry.dies_per_channel),
            config.map_name().to_string(),
            profile.about,
        ])
    };
    let rows = builtin_profiles().map(row).collect::<Result<Vec<_>, _>>()?;
    let header = ["name", "capacity", "page", "dies", "map", "what it is"];
    print(&of_words(&header, &rows, list_width()))
}

fn show(name: &str, scale: Ratio) -> Result<(), Failure> {
    let profile = load(name)?;
    let overrides = Overrides { scale: Some(scale), ..Overrides::default() };
    let config = profile.resolve(&overrides).map_err(Failure::failed)?;
    let mut out = format!("{}: {}\n", profile.name, profile.about);
    let row = |(key, value): (String, String)| {
        let source =
            profile.sources.get(&key).cloned().unwrap_or_else(|| "assumed (none given)".into());
        vec![key, value, source]
    };
    let rows: Vec<_> = profile.figures().into_iter().map(row).collect();
    let table = of_words(&["key", "value", "source"], &rows, list_width());
    out += &format!("\n{table}\nThe drive that this makes:\n{}\n", derived(&config));
    print(&out)
}

fn make(arguments: &MakeArguments) -> Result<(), Failure> {
    let file = &arguments.file;
    if file.exists() && !arguments.force {
        return Err(Failure::Failed(format!(
            "{} is there already; -f overwrites it",
            file.display()
        )));
    }
    let overrides = Overrides {
        scale: Some(arguments.scale),
        over_provisioning: arguments.over_provisioning,
        map: arguments.map.clone(),
        addresses: arguments.addresses.clone(),
        ..Overrides::default()
    };
    let lock = file.exists().then(|| ImageLock::take(file, true)).transpose()?;
    let made = EmulatedDrive::create(file, &load(&arguments.profile)?, &overrides);
    made.map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?;
    drop(lock);
    status(file)
}

/// Switches on the drive in a file, which nobody else may have meanwhile.
pub(crate) fn open_file(
    file: &Path,
    writable: bool,
) -> Result<(ImageLock, EmulatedDrive, SwitchedOn), Failure> {
    let lock = ImageLock::take(file, writable)?;
    let (drive, found) = EmulatedDrive::open(file, writable)
        .map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?;
    Ok((lock, drive, found))
}

fn status(file: &Path) -> Result<(), Failure> {
    let (_lock, drive, report) = open_file(file, false)?;
    let (info, drive) = (drive.info(), drive.drive());
    let mut table = derived(drive.config());
    let mut row = |what: &str, value: String| {
        table.add_row([format!("  {what}"), value]);
    };
    let status = DriveStatus::of(drive);
    row("serial number", status.serial.clone());
    if let SwitchedOn::PageMapped(report) = report {
        row("pages mapped", format_count(report.mapped_pages));
    }
    row("memory of the map", format_bytes(status.map_bytes));
    match drive.zoned() {
        Some(zoned) => zones_by_state(zoned.zones(), &mut row),
        None => row("lines free", format!("{} of {}", status.lines_free, status.lines)),
    }
    wear(&status, &mut row);
    if let Some(thin) = info.capabilities.thin {
        row(
            "addresses",
            format!(
                "{} blocks of 4 KiB for a capacity of {}",
                info.blocks,
                format_bytes(thin.capacity * 4096)
            ),
        );
    }
    print(&format!("{}: {}\n{table}\n", file.display(), drive.config().name))
}

/// The wear of a drive.
pub(crate) fn wear(status: &DriveStatus, row: &mut impl FnMut(&str, String)) {
    row("erases of a block", format!("{} to {}", status.erases_least, status.erases_most));
    row("bad blocks", status.bad_blocks.to_string());
}

/// Zones by state, and what is written in them.
fn zones_by_state(table: &ZoneTable, row: &mut impl FnMut(&str, String)) {
    for state in ZoneState::ALL {
        let written: Vec<u64> = table.in_state(state).map(|zone| table.written(zone)).collect();
        if !written.is_empty() {
            let bytes = format_bytes(written.iter().sum::<u64>() * 4096);
            let count = format_count(written.len() as u64);
            row(&format!("zones {}", state.name()), format!("{count} with {bytes}"));
        }
    }
}

fn derived(config: &DriveConfig) -> Table {
    let geometry = config.nand.geometry;
    let page = u64::from(geometry.page_bytes);
    let mut table = Table::new();
    table.load_style(NOTHING);
    let mut row = |what: &str, value: String| {
        table.add_row([format!("  {what}"), value]);
    };
    row("capacity", format_bytes(config.user_blocks * 4096));
    row("flash", format_bytes(geometry.raw_bytes()));
    row(
        "erase blocks",
        format!("{} of {} pages", format_count(geometry.blocks().into()), geometry.pages_per_block),
    );
    row("one read, program, erase", {
        let t = config.nand.timing;
        format!("{}, {}, {}", t.read, t.program, t.erase)
    });
    row("write buffer", format_bytes(page * u64::from(config.buffer_pages)));
    match &config.zones {
        None => {
            row("cleaning keeps free", format!("{} lines", config.foreground_lines));
            row("cleaning begins below", format!("{} lines", config.background_lines));
        }
        Some(zones) => {
            let count = (config.user_blocks - zones.conventional) / zones.capacity;
            let sizes = [zones.size, zones.capacity].map(|blocks| format_bytes(blocks * 4096));
            let [size, capacity] = sizes;
            row(
                "zones",
                format!("{} of {size}, of which {capacity} can be written", format_count(count)),
            );
            row("conventional", format_bytes(zones.conventional * 4096));
        }
    }
    table
}
