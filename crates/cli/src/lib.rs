//! The `dovetail` command: flags and output only. [`call`] has its commands as functions, for other
//! programs.
//!
//! Exit codes: 0 done, 1 something failed, 2 wrong usage; `fsck` has those of fsck(8), `compare`
//! those of diff(1). Every error is one sentence on standard error.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the command line is what prints")]

mod arguments;
mod bench;
pub mod call;
mod choices;
mod clock;
mod compare;
mod crash;
mod csv_out;
mod devirtualize;
mod doctor;
mod drive;
mod fsck;
mod help;
mod image;
mod linux;
mod log;
mod manual;
mod memory;
mod mkfs;
mod mount;
mod output;
mod progress;
mod provenance;
mod replay;
mod report;
mod reproduce;
mod results;
mod sensitivity;
mod serve;
mod signals;
mod sources;
mod stack;
mod sweep;
mod table;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A flash storage stack on one rig: what would this workload do to that drive?
///
/// Runs fio jobs and traces on file systems over a simulated drive, in virtual time, and shows what
/// each costs. Makes, mounts, checks and repairs F2FS and ext volumes without a kernel that knows
/// them.
#[derive(Debug, Parser)]
#[command(name = "dovetail", version = env!("DOVETAIL_VERSION"), max_term_width = 110, disable_help_subcommand = true)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    verbosity: log::Verbosity,
    #[command(subcommand)]
    command: Command,
}

/// Commands to begin with, below the help.
const EXAMPLES: &str = "\
Examples:
  dovetail bench job.fio --stack f2fs,ext4 --scale 1/16 --report report.html
  dovetail replay trace.gz --drive nvme-250g --op 7,28 --precondition
  dovetail mkfs f2fs disk.img --size 1G && dovetail mount disk.img /mnt
  dovetail help stacks        what a stack is; `dovetail help` lists all topics";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a workload on several stacks in virtual time, side by side.
    Bench(Box<bench::Arguments>),
    /// Cut the power of whole stacks and hold what is left against what was promised.
    Crash(crash::Arguments),
    /// Run the papers' figures and tables again, and show both side by side.
    Reproduce(reproduce::Arguments),
    /// Look at the stacks.
    #[command(subcommand)]
    Stack(stack::Command),
    /// Build a real kernel, and run commands in it in virtual time on a simulated drive.
    #[command(subcommand)]
    Linux(linux::Command),
    /// Replay block traces on simulated drives, side by side.
    Replay(Box<replay::Arguments>),
    /// Run a file of combinations, so that it may be stopped and go on; a table at its end.
    Sweep(sweep::Arguments),
    /// Compare two results: which figures changed, by how much, and beyond what seeds make.
    Compare(compare::Arguments),
    /// Make the HTML report of results that were written before, or of a sweep.
    Report(report::Arguments),
    /// Look at the drive profiles.
    #[command(subcommand)]
    Drive(drive::Command),
    /// Serve a drive as a block device for other programs, in real time.
    Serve(serve::Arguments),
    /// Let a volume's pointers lead to its drive's own addresses, so that the drive can forget its
    /// map.
    Devirtualize(devirtualize::Arguments),
    /// List a directory of an F2FS or ext image, without mounting it.
    Ls(image::ListArguments),
    /// Write a file of an F2FS or ext image to standard output.
    Cat(image::CatArguments),
    /// Copy files out of an F2FS or ext image.
    Extract(image::ExtractArguments),
    /// Copy files out of F2FS or ext images, or into one: what is in an image is IMAGE:/path.
    Cp(image::CpArguments),
    /// Remove files of an F2FS or ext image.
    Rm(image::RemoveArguments),
    /// Make directories in an F2FS or ext image.
    Mkdir(image::MakeArguments),
    /// Rename files of an F2FS or ext image.
    Mv(image::MoveArguments),
    /// Make a link in an F2FS or ext image.
    Ln(image::LinkArguments),
    /// Show or change the label of an F2FS or ext image.
    Label(image::LabelArguments),
    /// Mount an F2FS, ext3 or ext4 image at a directory, through FUSE.
    Mount(mount::Arguments),
    /// Show a structure of an F2FS or ext image.
    Inspect(image::InspectArguments),
    /// Convert Android sparse images.
    #[command(subcommand)]
    Image(image::ConvertCommand),
    /// Make a file system on an image file or a block device.
    #[command(subcommand)]
    Mkfs(mkfs::Command),
    /// Check an F2FS or ext image; F2FS is repaired too, if asked.
    Fsck(fsck::Arguments),
    /// Look what this machine has of what commands need: FUSE, memory, the kernel for guests.
    Doctor,
    /// Print completions for a shell.
    Completions(manual::CompletionsArguments),
    /// Write man pages into a folder.
    Man(manual::ManArguments),
    /// Show the help of a command, or a page of the documentation.
    Help(help::Arguments),
}

/// Reason why a command failed; it decides the exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// All else.
    #[error("{0}")]
    Failed(String),
}

impl From<dovetail_image::Error> for Failure {
    fn from(error: dovetail_image::Error) -> Self {
        match error {
            dovetail_image::Error::Usage(message) => Self::Usage(message),
            dovetail_image::Error::Failed(message) => Self::Failed(message),
        }
    }
}

impl From<dovetail_sweep::SweepError> for Failure {
    fn from(error: dovetail_sweep::SweepError) -> Self {
        Self::failed(error)
    }
}

impl Failure {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// One failure that says what all say, and is of the first one's kind; `Ok` if none failed.
    fn all<const N: usize>(done: [Result<(), Self>; N]) -> Result<(), Self> {
        let mut failures = done.into_iter().filter_map(Result::err);
        let Some(first) = failures.next() else { return Ok(()) };
        Err(failures.fold(first, |all, next| {
            let text = format!("{all}\ndovetail: {next}");
            match all {
                Self::Usage(_) => Self::Usage(text),
                Self::Failed(_) => Self::Failed(text),
            }
        }))
    }

    /// The failure that says each of these; `Ok` if there is none.
    fn of_each(messages: &[String]) -> Result<(), Self> {
        if messages.is_empty() { Ok(()) } else { Err(Self::Failed(messages.join("\ndovetail: "))) }
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    ExitCode::from(main_of(std::env::args_os().collect()))
}

/// Runs a command line, the program's name first; returns the exit code.
fn main_of(given: Vec<std::ffi::OsString>) -> u8 {
    let Cli { verbosity, command } = match arguments::parse(&given) {
        Ok(cli) => cli,
        Err(error) => {
            // a terminal that has gone away is no reason to fail
            let _ = error.print();
            let command =
                given.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-"));
            // of fsck(8), where 2 asks for a restart of the machine
            let is_fsck = command.is_some_and(|command| command == "fsck");
            return if is_fsck && error.use_stderr() {
                fsck::USAGE
            } else {
                error.exit_code() as u8
            };
        }
    };
    match verbosity.begin() {
        Ok(()) => run(command),
        Err(failure) if matches!(command, Command::Fsck(_)) => fsck::fail(&failure),
        Err(failure) => end(Err(failure)),
    }
}

/// Runs a command; returns its exit code.
fn run(command: Command) -> u8 {
    end(match command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Crash(arguments) => crash::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Stack(command) => stack::run(&command),
        Command::Linux(command) => linux::run(&command),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Sweep(arguments) => sweep::run(&arguments),
        Command::Compare(arguments) => return compare::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Drive(command) => drive::run(&command),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Devirtualize(arguments) => devirtualize::run(&arguments),
        Command::Ls(arguments) => image::list(&arguments),
        Command::Cat(arguments) => image::cat(&arguments),
        Command::Extract(arguments) => image::extract(&arguments),
        Command::Cp(arguments) => image::copy(&arguments),
        Command::Rm(arguments) => image::remove(&arguments),
        Command::Mkdir(arguments) => image::make_directory(&arguments),
        Command::Mv(arguments) => image::rename(&arguments),
        Command::Ln(arguments) => image::link(&arguments),
        Command::Label(arguments) => image::label(&arguments),
        Command::Mount(arguments) => mount::run(&arguments),
        Command::Inspect(arguments) => image::inspect(&arguments),
        Command::Image(command) => image::convert(&command),
        Command::Mkfs(command) => mkfs::run(&command),
        Command::Fsck(arguments) => return fsck::run(&arguments),
        Command::Doctor => doctor::run(),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Help(arguments) => help::run(&arguments),
    })
}

/// Tells why the command failed, if it did.
fn end(result: Result<(), Failure>) -> u8 {
    let (message, code) = match result {
        Ok(()) => return 0,
        Err(Failure::Usage(message)) => (message, 2),
        Err(Failure::Failed(message)) => (message, 1),
    };
    complain(&message);
    code
}

/// Characters that a line of an error may have, and how many of each end are kept of a longer one:
/// it repeats what a file holds.
const LONG_LINE: usize = 2000;
const KEPT_OF_LINE: usize = 500;

/// Writes one sentence to standard error.
fn complain(message: &str) {
    let text = message.split('\n').map(cut).collect::<Vec<_>>().join("\n");
    if !output::captured_error(&text) {
        to_stderr(&text);
    }
}

/// Writes to standard error. A command goes on when nobody reads that, or it has no room.
fn to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "dovetail: {text}");
}

/// A line without the middle of what is too long to be read.
fn cut(line: &str) -> std::borrow::Cow<'_, str> {
    let count = line.chars().count();
    if count <= LONG_LINE {
        return line.into();
    }
    let end = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
    let (head, tail) = (&line[..end(KEPT_OF_LINE)], &line[end(count - KEPT_OF_LINE)..]);
    format!("{head} [{} characters are left out here] {tail}", count - 2 * KEPT_OF_LINE).into()
}

/// Writes to standard output; a reader that has gone away is not an error.
fn print(text: &str) -> Result<(), Failure> {
    output::put(text.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_do_not_take_each_others_letters() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn long_lines_lose_their_middle() {
        let short = "é".repeat(LONG_LINE);
        assert_eq!(cut(&short), short);
        let long = format!("file.fio: a{}z is not known", "é".repeat(1_000_000));
        let shown = cut(&long);
        assert!(shown.starts_with("file.fio: aé") && shown.ends_with("éz is not known"), "{shown}");
        assert!(shown.contains(" [999025 characters are left out here] "), "{shown}");
    }
}
