//! `dovetail drive list|show`.

use clap::Subcommand;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use dovetail_ftl::{DriveConfig, Overrides, Profile, ProfileError, builtin_profiles};
use dovetail_time::{Ratio, format_bytes, format_count};

use crate::{Failure, print};

/// What to do with profiles.
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
    },
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
        Command::Show { name, scale } => show(name, *scale),
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
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["name", "capacity", "page", "channels x dies", "map", "what it is"]);
    for name in builtin_profiles() {
        let profile = load(name)?;
        let config = profile.resolve(&Overrides::default()).map_err(Failure::failed)?;
        let geometry = config.nand.geometry;
        table.add_row([
            profile.name.clone(),
            format_bytes(config.user_blocks * 4096),
            format_bytes(u64::from(geometry.page_bytes)),
            format!("{} x {}", geometry.channels, geometry.dies_per_channel),
            config.scheme.name.to_string(),
            profile.about,
        ]);
    }
    print(&format!("{table}\n"))
}

fn show(name: &str, scale: Ratio) -> Result<(), Failure> {
    let profile = load(name)?;
    let overrides = Overrides { scale: Some(scale), ..Overrides::default() };
    let config = profile.resolve(&overrides).map_err(Failure::failed)?;
    let mut out = format!("{}: {}\n", profile.name, profile.about);
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["key", "value", "source"]);
    for (key, value) in profile.figures() {
        let source = profile.sources.get(&key).cloned().unwrap_or_else(|| "not given".into());
        table.add_row([key, value, source]);
    }
    out += &format!("\n{table}\n\nThe drive that this makes:\n{}\n", derived(&config));
    print(&out)
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
    row("cleaning keeps free", format!("{} lines", config.foreground_lines));
    row("cleaning begins below", format!("{} lines", config.background_lines));
    table
}
