//! `dovetail completions` and `dovetail man`: what shells and man(1) know of the command.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use dovetail_image::write_whole;

use crate::{Cli, Failure, print};

/// A shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell; its completions go to standard output: for bash into
    /// ~/.local/share/bash-completion/completions/dovetail, for zsh into a folder of $fpath as
    /// _dovetail, for fish into ~/.config/fish/completions/dovetail.fish.
    shell: Shell,
}

/// A folder.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The folder to write the pages to; made if it is not there.
    directory: PathBuf,
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "dovetail", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes a page for the command and one for each of its commands.
pub(crate) fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let to = &arguments.directory;
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Failed(format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(to).map_err(|error| failed(to, error))?;
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    collect(&command, "dovetail", &mut pages);
    for (name, page) in &pages {
        let path = to.join(format!("{name}.1"));
        let mut text = Vec::new();
        page.render(&mut text).map_err(|error| failed(&path, error))?;
        write_whole(&path, &text).map_err(|error| failed(&path, error))?;
    }
    print(&format!("{} pages in {}\n", pages.len(), to.display()))
}

/// The pages of a command and all below it, named as man(1) wants them: dovetail-drive-make.
fn collect(command: &clap::Command, name: &str, into: &mut Vec<(String, clap_mangen::Man)>) {
    into.push((name.to_owned(), clap_mangen::Man::new(command.clone())));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        collect(inner, &format!("{name}-{}", inner.get_name()), into);
    }
}
