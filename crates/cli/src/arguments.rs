//! Reading the command line: `--json FILE` besides `--json=FILE`.
//!
//! `--json` alone is standard output, and scripts have it before a positional argument:
//! `bench --json job.fio`. So what follows it is the file of the results only where that cannot be
//! an argument of its own: it is not there yet, or holds results, or the command has no use for it
//! otherwise.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use clap::Parser;

use crate::Cli;

/// Flags whose file may be left out.
const FLAGS: [&str; 3] = ["--json", "--csv", "--fio-json"];
/// Commands that have them in this way.
const COMMANDS: [&str; 6] = ["bench", "replay", "crash", "fsck", "inspect", "linux"];

/// The words of the reading that was taken, without the program's own name.
static TAKEN: OnceLock<Vec<OsString>> = OnceLock::new();

/// The words of the command line as they were read: `--json=FILE` where `--json FILE` means that.
pub(crate) fn taken() -> &'static [OsString] {
    TAKEN.get().map_or(&[], Vec::as_slice)
}

fn take(words: Vec<OsString>, cli: Cli) -> Cli {
    // there is one command line in a process
    let _ = TAKEN.set(words.into_iter().skip(1).collect());
    cli
}

/// A command line, the program's name first.
///
/// # Errors
/// It makes no sense, or asks for help.
pub(crate) fn parse(given: &[OsString]) -> Result<Cli, clap::Error> {
    let (preferred, others) = readings(given);
    let failed = match Cli::try_parse_from(&preferred) {
        Ok(cli) => return Ok(take(preferred, cli)),
        Err(failed) => failed,
    };
    let reading = |other: Vec<OsString>| Cli::try_parse_from(&other).ok().map(|cli| (other, cli));
    match others.into_iter().find_map(reading) {
        Some((words, cli)) => Ok(take(words, cli)),
        None => Err(failed),
    }
}

/// Readings of the arguments: the likely one first, then the others.
fn readings(given: &[OsString]) -> (Vec<OsString>, Vec<Vec<OsString>>) {
    if !given.iter().any(|word| COMMANDS.iter().any(|command| *word == **command)) {
        return (given.to_vec(), Vec::new());
    }
    let likely = joined(given, is_results);
    let others = vec![joined(given, |_| true), given.to_vec()];
    (likely, others)
}

/// The arguments with `--json FILE` as `--json=FILE` where `is_file` says so of the file.
fn joined(given: &[OsString], is_file: fn(&Path) -> bool) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut words = given.iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            all.push(word.clone());
            all.extend(words.by_ref().cloned());
        } else if let Some(file) = file_of(word, words.peek().copied()).filter(|f| is_file(f)) {
            let flag = word.clone();
            all.push([flag.as_os_str(), OsStr::new("="), file.as_os_str()].into_iter().collect());
            words.next();
        } else {
            all.push(word.clone());
        }
    }
    all
}

/// The word that may be the file of a flag: the next one, unless that is a flag itself.
fn file_of<'a>(word: &OsStr, next: Option<&'a OsString>) -> Option<&'a Path> {
    let next = next.filter(|next| *next == "-" || !next.as_bytes().starts_with(b"-"))?;
    FLAGS.iter().any(|flag| word == *flag).then(|| Path::new(next))
}

/// A file for results: standard output, one that is not there yet and has such a name, or one with
/// results of before.
fn is_results(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else {
        let ending = path.extension().is_some_and(|ending| ending == "json" || ending == "csv");
        return path == Path::new("-") || ending;
    };
    meta.is_file() && begins_like_results(path)
}

fn begins_like_results(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(6).read_to_end(&mut head));
    read.is_ok() && (head.is_empty() || head.starts_with(b"{") || head == b"label,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn likely(line: &str) -> String {
        let words: Vec<_> = readings(&words(line)).0;
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_file_for_results_is_told_from_an_argument() {
        for (line, expected) in [
            ("d bench j.fio --json new.json -s f2fs", "d bench j.fio --json=new.json -s f2fs"),
            ("d bench --json j.fio -s f2fs", "d bench --json j.fio -s f2fs"),
            ("d bench j.fio --json -s f2fs", "d bench j.fio --json -s f2fs"),
            ("d bench j.fio --fio-json -", "d bench j.fio --fio-json=-"),
            ("d replay --csv new.csv t", "d replay --csv=new.csv t"),
            ("d linux run -- cmd --json x.json", "d linux run -- cmd --json x.json"),
            ("d bench j -- --json x.json", "d bench j -- --json x.json"),
            ("d reproduce a --json x.json", "d reproduce a --json x.json"),
        ] {
            assert_eq!(likely(line), expected);
        }
    }

    #[test]
    fn results_of_before_are_known_by_their_beginning() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, expected) in [
            ("a.json", "{\n", true),
            ("b.csv", "label,x", true),
            ("c", "", true),
            ("trace.csv", "128166,usr,0,Read", false),
            ("job.json", "[job]\n", false),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert_eq!(is_results(&path), expected, "{name}");
        }
        assert!(!is_results(folder.path()));
    }
}
