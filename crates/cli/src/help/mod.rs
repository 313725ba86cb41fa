//! `dovetail help`: commands, and the pages of the documentation.

mod markdown;
mod topics;

use clap::{Args, CommandFactory};
use dovetail_time::did_you_mean;

use self::topics::{TOPICS, title, topic};
use crate::table::terminal_width;
use crate::{Cli, Failure, print};

/// Columns where there is no terminal, and at most.
const WIDTH: usize = 100;

/// A command or a topic.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A command (bench, drive make), or a topic such as fio-jobs, stacks, mount-options; a topic
    /// with the name of a command is crash.md, serve.md and so on.
    words: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut commands = Cli::command();
    commands.build();
    let Some(first) = arguments.words.first() else {
        return print(&(commands.render_long_help().to_string() + &list()));
    };
    if let Some(found) = command(&mut commands, &arguments.words) {
        let more = topic(first).map(|(name, _)| format!("\nMore: `dovetail help {name}.md`\n"));
        return print(&(found.render_long_help().to_string() + &more.unwrap_or_default()));
    }
    match topic(first).filter(|_| arguments.words.len() == 1) {
        Some((_, text)) => print(&markdown::render(text, width())),
        None => Err(unknown(&commands, arguments)),
    }
}

fn width() -> usize {
    terminal_width().map_or(WIDTH, |width| width.clamp(40, WIDTH))
}

/// The command that the words name.
fn command<'c>(commands: &'c mut clap::Command, words: &[String]) -> Option<&'c mut clap::Command> {
    words.iter().try_fold(commands, |command, word| command.find_subcommand_mut(word))
}

fn unknown(commands: &clap::Command, arguments: &Arguments) -> Failure {
    let words = arguments.words.join(" ");
    let known = commands.get_subcommands().map(clap::Command::get_name);
    let hint = did_you_mean(&words, known.chain(TOPICS.iter().map(|(name, _)| *name)));
    Failure::Usage(format!(
        "there is no command or topic \"{words}\"{hint}; `dovetail help` lists all"
    ))
}

/// The topics, a line each.
fn list() -> String {
    let line = |(name, text): &(&str, &str)| format!("  {name:20} {}\n", title(text));
    let lines: String = TOPICS.iter().map(line).collect();
    format!("\nTopics, shown by `dovetail help TOPIC`:\n{lines}")
}
