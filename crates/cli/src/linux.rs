//! `dovetail linux build|run`: a real kernel in virtual time on a simulated drive.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::{Args, Subcommand};
use dovetail_lab::bench::{BenchError, Stack};
use dovetail_lab::linux::{Cut, LinuxCommand, LinuxOutcome, Recovery};
use dovetail_lab::results::Results;
use dovetail_linux::{Building, SOURCE, quoted};
use dovetail_time::{Ratio, parse_span};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::taken;
use crate::output::Outputs;
use crate::provenance::provenance;
use crate::results::ResultFiles;
use crate::signals::{stop_flag, stopped};
use crate::{Failure, complain, drive, print};

/// Files of the kernel that are compiled, about.
const FILES: u64 = 1950;

/// Commands for a real kernel in virtual time.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build the kernel that Linux stacks run, from the distribution's source: 3 to 6 minutes on two
    /// cores.
    Build(BuildArguments),
    /// Run a command in a Linux guest on a simulated drive, in virtual time.
    Run(Box<RunArguments>),
}

/// Arguments of `linux build`.
#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// The archive of the source of Linux 6.12.
    #[arg(long, value_name = "FILE", default_value = SOURCE)]
    source: PathBuf,
    /// Build it again if it is there.
    #[arg(long)]
    force: bool,
}

/// Run a command in a Linux guest on a simulated drive, in virtual time.
///
/// The guest is user-mode Linux: a process of this machine that sees this machine's files, for
/// reading only, and the drive as /dev/vda. Time passes as the drive takes it; the same command
/// gives the same times and the same requests in every run. Writable are the volume, where the
/// command begins, /tmp and /mnt.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The command and its arguments; a single one is read by a shell.
    #[arg(required = true, last = true)]
    command: Vec<String>,
    /// A Linux stack by name (see `dovetail stack list`) or .toml file; linux-raw is the raw drive.
    #[arg(long, short, default_value = "linux-raw")]
    stack: String,
    /// The drive's profile (see `dovetail drive list`), in place of the stack's own.
    #[arg(long, short, value_name = "PROFILE")]
    drive: Option<String>,
    /// Mount options besides those of the stack.
    #[arg(long, value_name = "OPTIONS")]
    mount: Option<String>,
    /// Shrink the drive and the page cache alike.
    #[arg(long, value_name = "RATIO", default_value = "1", value_parser = drive::scale)]
    scale: Ratio,
    /// Cut the power when the drive has taken so many requests of the command (1000), or after so
    /// much virtual time (250ms); then boot again, mount and check the volume.
    #[arg(long, value_name = "AT", value_parser = cut)]
    power_cut: Option<Cut>,
    /// Seed of the drive's policies and of all that is random in the guest.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    files: ResultFiles,
}

/// A number of requests, or a time.
fn cut(text: &str) -> Result<Cut, String> {
    if let Ok(requests) = text.parse() {
        return Ok(Cut::Request(requests));
    }
    parse_span(text).map(Cut::After).map_err(|_| {
        "give a number of requests such as 1000, or a time such as 250ms or 1.5s".into()
    })
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Build(arguments) => build(arguments),
        Command::Run(arguments) => run_command(arguments),
    }
}

fn build(arguments: &BuildArguments) -> Result<(), Failure> {
    if let Some(path) = dovetail_linux::built().filter(|_| !arguments.force) {
        complain("the kernel is there; --force builds it again");
        return print(&format!("{}\n", path.display()));
    }
    let bar = ProgressBar::new(FILES);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:24} {percent:>3}%, {eta} left") {
        bar.set_style(style);
    }
    let path = dovetail_linux::build(&arguments.source, &mut |step| match step {
        Building::Unpacking => bar.set_message("unpacking"),
        Building::Compiling(files) => {
            bar.set_message("compiling");
            bar.set_position(u64::from(files).min(FILES));
        }
    });
    bar.finish_and_clear();
    print(&format!("{}\n", path.map_err(Failure::failed)?.display()))
}

/// The command as a shell reads it.
fn shell_text(command: &[String]) -> String {
    match command {
        [text] => text.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

fn stack(arguments: &RunArguments) -> Result<Stack, Failure> {
    let usage = |error: BenchError| Failure::Usage(error.to_string());
    let mut stack = Stack::load(&arguments.stack).map_err(usage)?;
    if !stack.is_linux() {
        return Err(Failure::Usage(format!(
            "stack {} is a modelled file system; Linux stacks are those whose file system begins with linux: (see \
             `dovetail stack list`)",
            stack.name
        )));
    }
    if let Some(drive) = &arguments.drive {
        stack.drive.clone_from(drive);
    }
    match &arguments.mount {
        Some(options) => stack.with_mount(options).map_err(usage),
        None => Ok(stack),
    }
}

fn run_command(arguments: &RunArguments) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    arguments.files.check(&mut outputs)?;
    arguments.files.check_writable()?;
    let (stack, stop) = (stack(arguments)?, stop_flag()?);
    let command = LinuxCommand {
        stack: &stack,
        scale: arguments.scale,
        seed: arguments.seed,
        command: &shell_text(&arguments.command),
        cut: arguments.power_cut,
        stop: &|| stop.load(Ordering::Relaxed),
    };
    let outcome = command.run().map_err(|error| match error {
        BenchError::Stopped => stopped(),
        error => Failure::failed(error),
    })?;
    show(arguments, outcome)
}

fn show(arguments: &RunArguments, outcome: LinuxOutcome) -> Result<(), Failure> {
    let LinuxOutcome { output, status, run, recovery } = outcome;
    let to_stdout = arguments.files.to_stdout().next().is_some();
    let name = arguments.command.first().cloned().unwrap_or_default();
    let results = Results {
        provenance: Some(provenance(taken())),
        ..Results::of(name, arguments.scale.value(), arguments.seed, vec![run])
    };
    let way_back = match &recovery {
        Some(recovery) => recovered(recovery),
        None if arguments.power_cut.is_some() => {
            "\nThe command ended before the power was to be cut.\n".into()
        }
        None => String::new(),
    };
    let show = || {
        print(&(output + &way_back))?;
        arguments.files.show(&results)
    };
    let ended = match status {
        Some(status) if status != 0 => {
            Err(Failure::Failed(format!("the command ended with status {status}")))
        }
        _ => Ok(()),
    };
    let written = arguments.files.write(&results);
    Failure::all([written, if to_stdout { Ok(()) } else { show() }, ended])
}

/// The way back from a power cut, in sentences.
fn recovered(recovery: &Recovery) -> String {
    let Recovery { cut_after, drive, mount, check } = recovery;
    let mut text = format!(
        "\nThe power went after {cut_after}. The drive takes commands again after {drive}."
    );
    if let Some(mount) = mount {
        text += &format!(
            " Mounting the volume takes another {mount}. Its checker says:\n{}",
            check.trim_end()
        );
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_a_number_of_requests_or_a_time() {
        assert_eq!(cut("1000"), Ok(Cut::Request(1000)));
        assert_eq!(cut("250ms"), Ok(Cut::After(dovetail_time::SimSpan::from_ms(250))));
        assert!(cut("soon").unwrap_err().contains("250ms"));
    }

    #[test]
    fn words_stay_words_and_a_single_one_is_for_the_shell() {
        let text =
            |words: &[&str]| shell_text(&words.iter().map(|w| (*w).into()).collect::<Vec<_>>());
        assert_eq!(text(&["dd if=/dev/zero | cat"]), "dd if=/dev/zero | cat");
        assert_eq!(text(&["echo", "it's"]), r"'echo' 'it'\''s'");
    }
}
