//! `dovetail stack list|show`.

use clap::Subcommand;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use dovetail_lab::bench::{BenchError, Stack};

use crate::{Failure, print};

/// Commands for stacks.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the stacks that come with dovetail.
    List,
    /// Show a stack as a file: the start of one of your own.
    Show {
        /// A stack's name, or the path of a .toml file.
        name: String,
    },
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
        Command::Show { name } => show(name),
    }
}

fn load(name: &str) -> Result<Stack, Failure> {
    Stack::load(name).map_err(|error| match error {
        BenchError::UnknownStack(_) => Failure::Usage(error.to_string()),
        _ => Failure::failed(error),
    })
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["name", "file system", "drive", "what it is"]);
    for name in Stack::built_in() {
        let stack = load(name)?;
        table.add_row([stack.name, stack.filesystem, stack.drive, stack.about]);
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
    print(&(lines.join("\n") + "\n"))
}

fn show(name: &str) -> Result<(), Failure> {
    print(&toml::to_string(&load(name)?).map_err(Failure::failed)?)
}
