//! Operations as text, one a line, in the manner of CrashMonkey's workloads (OSDI'18).
//!
//! ```text
//! # a name that is made durable by an fsync of its directory
//! mkdir A
//! create A/foo
//! write A/foo 0 10000
//! fsync A/foo
//! rename A/foo A/bar
//! fsync A
//! ```
//!
//! Paths begin at the root; `/` is the root itself. What is done to a file and not to a name takes
//! `@2` as well, the file that was opened as number 2. Numbers are bytes, or end in K or M. `fill` is
//! what content is made of: the number of the operation if it is left out.

use std::fmt::Write;

use dovetail_testkit::exercise::{Op, Path, Target};
use dovetail_time::{SimSpan, parse_bytes, parse_span};
use dovetail_vfs::mode::{S_IALLUGO, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, kind};
use dovetail_vfs::{Fallocate, RenameFlags, SetAttr, XattrFlags};

/// An operation of a workload.
#[derive(Clone, Debug)]
pub enum Action {
    /// A call on the file system.
    Op(Op),
    /// A write past the page cache; offset and length are whole blocks of 4096 bytes.
    DirectWrite {
        /// The file.
        path: Path,
        /// The first byte.
        offset: u64,
        /// Length in bytes.
        len: u64,
        /// Seed of the content.
        fill: u8,
    },
    /// Nothing happens for some time; the file system's background goes on.
    Sleep(SimSpan),
    /// The tool lets the pointers of all files lead to the drive's own addresses, where the stack
    /// can do that.
    Devirtualize,
}

/// A line that is no operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ParseError {
    /// The line, from 1 on.
    pub line: usize,
    /// The fault, and the right form.
    pub reason: String,
}

/// Each operation with its arguments.
const USAGE: [(&str, &str); 25] = [
    ("create", "PATH [MODE]"),
    ("mkdir", "PATH [MODE]"),
    ("mkfifo", "PATH [MODE]"),
    ("symlink", "PATH LENGTH"),
    ("link", "PATH NEW"),
    ("unlink", "PATH"),
    ("rmdir", "PATH"),
    ("rename", "PATH NEW [noreplace|exchange]"),
    ("open", "PATH NUMBER"),
    ("close", "NUMBER"),
    ("write", "PATH OFFSET LENGTH [FILL]"),
    ("dwrite", "PATH OFFSET LENGTH [FILL]"),
    ("truncate", "PATH SIZE"),
    ("fallocate", "PATH OFFSET LENGTH [keep-size]"),
    ("punch", "PATH OFFSET LENGTH"),
    ("zero", "PATH OFFSET LENGTH [keep-size]"),
    ("setxattr", "PATH NAME LENGTH [FILL]"),
    ("removexattr", "PATH NAME"),
    ("chmod", "PATH MODE"),
    ("read", "PATH OFFSET LENGTH"),
    ("fsync", "PATH"),
    ("fdatasync", "PATH"),
    ("sync", ""),
    ("sleep", "TIME"),
    ("devirtualize", ""),
];

/// Reads a workload.
///
/// # Errors
/// The first line that is no operation.
pub fn parse(text: &str) -> Result<Vec<Action>, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut actions = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words = line.split('#').next().unwrap_or("");
        let words: Vec<&str> = words.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let fill = (actions.len() + 1) as u8;
        let action = line_to_action(&words, fill);
        actions.push(action.map_err(|reason| ParseError { line: number + 1, reason })?);
    }
    Ok(actions)
}

/// Recognises a workload: at least half of the lines with words on them begin with an operation, so
/// that a misspelt one is told as such.
pub fn is_one(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let words = text.lines().filter_map(|line| line.split('#').next()?.split_whitespace().next());
    let is_operation = |word: &str| USAGE.iter().any(|(name, _)| *name == word);
    let (operations, others): (Vec<&str>, Vec<&str>) = words.partition(|word| is_operation(word));
    !operations.is_empty() && operations.len() >= others.len()
}

fn line_to_action(words: &[&str], fill: u8) -> Result<Action, String> {
    let Some((name, usage)) = USAGE.iter().find(|(name, _)| *name == words[0]) else {
        let known: Vec<&str> = USAGE.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "there is no operation \"{}\" (there are: {})",
            clip(words[0]),
            known.join(", ")
        ));
    };
    let required = usage.split_whitespace().filter(|word| !word.starts_with('[')).count();
    let most = usage.split_whitespace().count();
    if !(required..=most).contains(&(words.len() - 1)) {
        return Err(format!("usage: {name} {usage}"));
    }
    action(&Arguments { words: &words[1..], fill }, name)
}

/// The words behind an operation's name.
struct Arguments<'a> {
    words: &'a [&'a str],
    fill: u8,
}

impl Arguments<'_> {
    fn path(&self, index: usize) -> Result<Path, String> {
        if self.words[index].starts_with('@') {
            let word = clip(self.words[index]);
            return Err(format!(
                "{word} is an open file, and a path is needed (a name is /{word})"
            ));
        }
        let names = self.words[index].split('/').filter(|name| !name.is_empty());
        let names: Vec<Vec<u8>> = names.map(|name| name.as_bytes().to_vec()).collect();
        match names
            .iter()
            .find(|name| name.len() > dovetail_vfs::MAX_NAME || *name == b"." || *name == b"..")
        {
            Some(name) => {
                Err(format!("\"{}\" cannot be a name here", clip(&String::from_utf8_lossy(name))))
            }
            None => Ok(names),
        }
    }

    fn named(&self, index: usize) -> Result<Path, String> {
        let path = self.path(index)?;
        if path.is_empty() { Err("the root directory is always there".into()) } else { Ok(path) }
    }

    fn target(&self, index: usize) -> Result<Target, String> {
        match self.words[index].strip_prefix('@') {
            Some(number) => open_number(number).map(Target::Held),
            None => self.path(index).map(Target::Path),
        }
    }

    fn bytes(&self, index: usize) -> Result<u64, String> {
        let text = self.words[index];
        let bytes = text.parse().ok().or_else(|| parse_bytes(text).ok());
        bytes.ok_or_else(|| format!("\"{}\" is no number of bytes", clip(text)))
    }

    fn fill(&self, index: usize) -> Result<u8, String> {
        let Some(text) = self.words.get(index) else { return Ok(self.fill) };
        text.parse().map_err(|_| format!("\"{}\" is no fill: give 0 to 255", clip(text)))
    }

    fn flag(&self, index: usize, allowed: &[&str]) -> Result<Option<String>, String> {
        let Some(text) = self.words.get(index) else { return Ok(None) };
        match allowed.contains(text) {
            true => Ok(Some((*text).to_string())),
            false => Err(format!("\"{}\" is not one of {}", clip(text), allowed.join(", "))),
        }
    }

    /// The flag `keep-size`.
    fn keep_size(&self) -> Result<bool, String> {
        Ok(self.flag(3, &["keep-size"])?.is_some())
    }

    fn mode(&self, index: usize, usual: u16) -> Result<u16, String> {
        let Some(text) = self.words.get(index) else { return Ok(usual) };
        let mode = u16::from_str_radix(text, 8).ok().filter(|mode| *mode <= S_IALLUGO);
        mode.ok_or_else(|| {
            format!("\"{}\" is no mode: give an octal number up to 7777", clip(text))
        })
    }

    /// An offset and a length behind it, within the largest file that a kernel can have.
    fn range(&self, most: u64) -> Result<(u64, u64), String> {
        const LARGEST: u64 = i64::MAX as u64;
        let (offset, len) = (self.bytes(1)?, self.length(2, most)?);
        match offset.checked_add(len).filter(|end| *end <= LARGEST) {
            Some(_) => Ok((offset, len)),
            None => Err(format!("no file reaches beyond byte {LARGEST}")),
        }
    }

    fn length(&self, index: usize, most: u64) -> Result<u64, String> {
        let len = self.bytes(index)?;
        if len == 0 || len > most { Err(format!("a length is 1 to {most}")) } else { Ok(len) }
    }
}

/// Files that are open at once, at most.
const MOST_OPEN: usize = 256;

fn open_number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number < MOST_OPEN);
    number.ok_or_else(|| {
        format!("\"{}\" is no number of an open file: give 0 to {}", clip(text), MOST_OPEN - 1)
    })
}

/// Bytes that one operation writes at most: content is kept in memory.
const MOST: u64 = 64 << 20;
/// Bytes of an extended attribute at most (Linux: `XATTR_SIZE_MAX`).
const MOST_XATTR: u64 = 65_536;

fn action(given: &Arguments<'_>, name: &str) -> Result<Action, String> {
    let node = |kind, usual| {
        let mode = kind | given.mode(1, usual)?;
        Ok::<_, String>(Op::Create { path: given.named(0)?, mode, rdev: (0, 0) })
    };
    let op = match name {
        "create" => node(S_IFREG, 0o644)?,
        "mkdir" => node(S_IFDIR, 0o755)?,
        "mkfifo" => node(S_IFIFO, 0o644)?,
        "symlink" => Op::Symlink { path: given.named(0)?, len: given.length(1, 4095)? as usize },
        "link" => Op::Link { target: given.target(0)?, path: given.named(1)? },
        "unlink" => Op::Unlink { path: given.named(0)? },
        "rmdir" => Op::Rmdir { path: given.named(0)? },
        "rename" => rename(given)?,
        "open" => Op::Hold { path: given.path(0)?, slot: open_number(given.words[1])? },
        "close" => Op::Release { slot: open_number(given.words[0])? },
        "write" => {
            let (offset, len) = given.range(MOST)?;
            Op::Write { target: given.target(0)?, offset, len: len as usize, fill: given.fill(3)? }
        }
        "dwrite" => return direct_write(given),
        "truncate" => {
            let size = Some(given.bytes(1)?);
            Op::SetAttr {
                target: given.target(0)?,
                changes: SetAttr { size, ..SetAttr::default() },
            }
        }
        "fallocate" => fallocate(given, Fallocate::Reserve { keep_size: given.keep_size()? })?,
        "punch" => fallocate(given, Fallocate::PunchHole)?,
        "zero" => fallocate(given, Fallocate::ZeroRange { keep_size: given.keep_size()? })?,
        "setxattr" => Op::SetXattr {
            target: given.target(0)?,
            name: given.words[1].as_bytes().to_vec(),
            len: given.length(2, MOST_XATTR)? as usize,
            fill: given.fill(3)?,
            flags: XattrFlags::default(),
        },
        "removexattr" => {
            Op::RemoveXattr { target: given.target(0)?, name: given.words[1].as_bytes().to_vec() }
        }
        "chmod" => {
            let changes = SetAttr { mode: Some(given.mode(1, 0)?), ..SetAttr::default() };
            Op::SetAttr { target: given.target(0)?, changes }
        }
        "read" => {
            let (offset, len) = given.range(MOST)?;
            Op::Read { target: given.target(0)?, offset, len: len as usize }
        }
        "fsync" => Op::Fsync { target: given.target(0)?, data_only: false },
        "fdatasync" => Op::Fsync { target: given.target(0)?, data_only: true },
        "sync" => Op::Sync,
        "sleep" => {
            return parse_span(given.words[0])
                .map(Action::Sleep)
                .map_err(|error| error.to_string());
        }
        _ => return Ok(Action::Devirtualize),
    };
    Ok(Action::Op(op))
}

fn rename(given: &Arguments<'_>) -> Result<Op, String> {
    let flag = given.flag(2, &["noreplace", "exchange"])?;
    let flags = RenameFlags {
        no_replace: flag.as_deref() == Some("noreplace"),
        exchange: flag.as_deref() == Some("exchange"),
    };
    Ok(Op::Rename { from: given.named(0)?, to: given.named(1)?, flags })
}

fn direct_write(given: &Arguments<'_>) -> Result<Action, String> {
    let (offset, len) = given.range(MOST)?;
    if offset % 4096 != 0 || len % 4096 != 0 {
        return Err("a direct write is of whole blocks of 4096 bytes".into());
    }
    Ok(Action::DirectWrite { path: given.named(0)?, offset, len, fill: given.fill(3)? })
}

fn fallocate(given: &Arguments<'_>, how: Fallocate) -> Result<Op, String> {
    let (offset, len) = given.range(u64::MAX)?;
    Ok(Op::Fallocate { target: given.target(0)?, how, offset, len })
}

/// At most 40 characters of what was given.
fn clip(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() { format!("{shown}...") } else { shown }
}

/// A path as [`parse`] reads it.
fn show_path(path: &Path) -> String {
    if path.is_empty() {
        return "/".into();
    }
    // "@" is also the sign of an open file
    let root = if path[0].starts_with(b"@") { "/" } else { "" };
    let names =
        path.iter().map(|name| name.escape_ascii().to_string()).collect::<Vec<_>>().join("/");
    format!("{root}{names}")
}

fn show_target(target: &Target) -> String {
    match target {
        Target::Path(path) => show_path(path),
        Target::Held(slot) => format!("@{slot}"),
    }
}

/// An operation as [`parse`] reads it. What the language lacks (other owners) is shown after a
/// `#`.
pub fn show(action: &Action) -> String {
    match action {
        Action::Op(op) => show_op(op),
        Action::DirectWrite { path, offset, len, fill } => {
            format!("dwrite {} {offset} {len} {fill}", show_path(path))
        }
        Action::Sleep(span) => format!("sleep {}ns", span.as_ns()),
        Action::Devirtualize => "devirtualize".into(),
    }
}

fn show_op(op: &Op) -> String {
    let keep = |keep_size: bool| if keep_size { " keep-size" } else { "" };
    match op {
        Op::Create { path, mode, .. } => show_create(path, *mode),
        Op::Symlink { path, len } => format!("symlink {} {len}", show_path(path)),
        Op::Link { target, path } => format!("link {} {}", show_target(target), show_path(path)),
        Op::Unlink { path } => format!("unlink {}", show_path(path)),
        Op::Rmdir { path } => format!("rmdir {}", show_path(path)),
        Op::Rename { from, to, flags } => {
            let flag = match flags {
                RenameFlags { exchange: true, .. } => " exchange",
                RenameFlags { no_replace: true, .. } => " noreplace",
                RenameFlags { .. } => "",
            };
            format!("rename {} {}{flag}", show_path(from), show_path(to))
        }
        Op::Hold { path, slot } => format!("open {} {slot}", show_path(path)),
        Op::Release { slot } => format!("close {slot}"),
        Op::Write { target, offset, len, fill } => {
            format!("write {} {offset} {len} {fill}", show_target(target))
        }
        Op::Read { target, offset, len } => format!("read {} {offset} {len}", show_target(target)),
        Op::Fallocate { target, how, offset, len } => {
            let (name, flag) = match how {
                Fallocate::Reserve { keep_size } => ("fallocate", keep(*keep_size)),
                Fallocate::PunchHole => ("punch", ""),
                Fallocate::ZeroRange { keep_size } => ("zero", keep(*keep_size)),
            };
            format!("{name} {} {offset} {len}{flag}", show_target(target))
        }
        Op::SetXattr { target, name, len, fill, .. } => {
            format!("setxattr {} {} {len} {fill}", show_target(target), name.escape_ascii())
        }
        Op::RemoveXattr { target, name } => {
            format!("removexattr {} {}", show_target(target), name.escape_ascii())
        }
        Op::SetAttr { target, changes } => show_changes(&show_target(target), changes),
        Op::Fsync { target, data_only } => {
            format!("{} {}", if *data_only { "fdatasync" } else { "fsync" }, show_target(target))
        }
        Op::Sync => "sync".into(),
        other => format!("# {other:?}"),
    }
}

fn show_create(path: &Path, mode: u16) -> String {
    let path = show_path(path);
    let (name, usual) = match kind(mode) {
        S_IFREG => ("create", 0o644),
        S_IFDIR => ("mkdir", 0o755),
        S_IFIFO => ("mkfifo", 0o644),
        _ => return format!("# mknod {path} {mode:o}"),
    };
    let bits = mode & !S_IFMT;
    if bits == usual { format!("{name} {path}") } else { format!("{name} {path} {bits:o}") }
}

fn show_changes(target: &str, changes: &SetAttr) -> String {
    match *changes {
        SetAttr {
            size: Some(size),
            mode: None,
            uid: None,
            gid: None,
            mtime: None,
            atime: None,
            ..
        } => {
            format!("truncate {target} {size}")
        }
        SetAttr {
            mode: Some(mode),
            size: None,
            uid: None,
            gid: None,
            mtime: None,
            atime: None,
            ..
        } => {
            format!("chmod {target} {mode:o}")
        }
        _ => format!("# {target}: {changes:?}"),
    }
}

/// A workload as [`parse`] reads it.
pub fn show_all(actions: &[Action]) -> String {
    actions.iter().fold(String::new(), |mut text, action| {
        let _ = writeln!(text, "{}", show(action)); // writing to a string cannot fail
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "mkdir A\ncreate A/foo\ncreate s 4711\nmkdir t 1777\nmkfifo p\nsymlink l 20\nlink A/foo A/bar\nunlink A/bar\nrmdir B\n\
                       rename A/foo foo\nrename a b exchange\nrename a b noreplace\nopen foo 2\nwrite @2 0 1 9\nclose 2\nunlink /@2\nwrite foo 10 20 7\n\
                       dwrite foo 4096 8192 9\ntruncate foo 100\nfallocate foo 0 10\nfallocate foo 0 10 keep-size\n\
                       punch foo 1 2\nzero foo 3 4\nzero foo 3 4 keep-size\nsetxattr foo user.a 5 6\n\
                       removexattr foo user.a\nchmod foo 640\nread foo 0 10\nfsync /\nfdatasync foo\nsync\n\
                       sleep 6000000000ns\ndevirtualize\n";

    #[test]
    fn what_is_shown_is_read_again() {
        assert_eq!(show_all(&parse(ALL).unwrap()), ALL);
        let names: std::collections::BTreeSet<&str> =
            ALL.lines().filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(names.len(), USAGE.len(), "every operation is tried");
    }

    #[test]
    fn comments_units_and_a_byte_order_mark() {
        let text = "\u{feff}# a comment\n\n  write foo 4K 1M # behind\n";
        assert!(is_one(text));
        assert_eq!(show_all(&parse(text).unwrap()), "write foo 4096 1048576 1\n");
        assert!(!is_one("[global]\nrw=read\n"));
        assert!(is_one("wirte foo 4K 1M\nsync"), "a misspelt first operation");
        assert!(!is_one("[job]\nrw=write\nsync\n") && !is_one(""));
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let said = |text| parse(text).unwrap_err().to_string();
        assert!(
            said("sync\nmkdri A")
                .starts_with("line 2: there is no operation \"mkdri\" (there are: create,")
        );
        assert_eq!(said("write foo 1"), "line 1: usage: write PATH OFFSET LENGTH [FILL]");
        assert_eq!(said("rename a b over"), "line 1: \"over\" is not one of noreplace, exchange");
        assert_eq!(said("create /"), "line 1: the root directory is always there");
        assert_eq!(said("create ../x"), "line 1: \"..\" cannot be a name here");
        assert_eq!(
            said("create @2"),
            "line 1: @2 is an open file, and a path is needed (a name is /@2)"
        );
        assert_eq!(
            said("fsync @256"),
            "line 1: \"256\" is no number of an open file: give 0 to 255"
        );
        assert_eq!(said("write foo 0 0"), "line 1: a length is 1 to 67108864");
        assert_eq!(
            said("dwrite foo 1 4096"),
            "line 1: a direct write is of whole blocks of 4096 bytes"
        );
        assert_eq!(
            said("write f 18446744073709551615 10"),
            "line 1: no file reaches beyond byte 9223372036854775807"
        );
        assert!(said(&format!("write foo 0 {}", "x".repeat(1000))).len() < 100);
    }
}
