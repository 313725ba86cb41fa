//! `dovetail stack list|show`.

use clap::Subcommand;
use dovetail_lab::bench::{BenchError, Stack};

use crate::table::{list_width, of_words};
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
    let row = |name: &str| -> Result<Vec<String>, Failure> {
        let stack = load(name)?;
        Ok(vec![stack.name, stack.filesystem, stack.drive, stack.about])
    };
    let rows = Stack::built_in().map(row).collect::<Result<Vec<_>, _>>()?;
    print(&of_words(&["name", "file system", "drive", "what it is"], &rows, list_width()))
}

fn show(name: &str) -> Result<(), Failure> {
    print(&toml::to_string(&load(name)?).map_err(Failure::failed)?)
}
