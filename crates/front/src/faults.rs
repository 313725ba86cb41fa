//! Serious errors of a mount, told once for each kind.

use std::fmt;
use std::mem::{Discriminant, discriminant, take};
use std::sync::{Mutex, PoisonError};

use dovetail_vfs::Error;
use tracing::debug;

/// Kinds that are told apart: a volume that is damaged everywhere must not flood a terminal.
const MOST_KINDS: usize = 32;

/// A serious error, as it is told: the device failed, the volume is damaged, or nothing can be
/// written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<'a> {
    /// The first of its kind, told when it happens.
    First(&'a Error),
    /// More of the same kind, told when the mount ends.
    More {
        /// The first one.
        first: &'a Error,
        /// Those after it.
        count: u64,
    },
    /// Errors of so many kinds that they were only counted, told when the mount ends.
    Others(u64),
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(error) => write!(f, "{error}"),
            Self::More { first, count: 1 } => write!(f, "{first}: and 1 more error of this kind"),
            Self::More { first, count } => {
                write!(f, "{first}: and {count} more errors of this kind")
            }
            Self::Others(1) => f.write_str("and 1 error of another kind"),
            Self::Others(count) => write!(f, "and {count} errors of other kinds"),
        }
    }
}

/// A listener for faults.
pub(crate) type OnError = Box<dyn Fn(Fault<'_>) + Send + Sync>;

/// The faults of a mount.
pub(crate) struct Faults {
    on_error: OnError,
    /// The mount may write: a file system that refuses to has met an error before.
    writable: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    kinds: Vec<Kind>,
    others: u64,
}

/// Errors of one variant whose sentences differ in numbers only.
struct Kind {
    variant: Discriminant<Error>,
    sentence: String,
    first: Error,
    more: u64,
}

impl Kind {
    fn new(error: &Error, sentence: String) -> Self {
        Self { variant: discriminant(error), sentence, first: error.clone(), more: 0 }
    }
}

/// The sentence of an error without the words that have digits: those name one place of many.
fn sentence(error: &Error) -> String {
    let text = error.to_string();
    let words = text.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

impl Seen {
    /// Takes in an error. True if it is the first of a kind that is told.
    fn add(&mut self, error: &Error) -> bool {
        let sentence = sentence(error);
        let same =
            |kind: &&mut Kind| kind.variant == discriminant(error) && kind.sentence == sentence;
        if let Some(kind) = self.kinds.iter_mut().find(same) {
            kind.more += 1;
            return false;
        }
        if self.kinds.len() == MOST_KINDS {
            self.others += 1;
            return false;
        }
        self.kinds.push(Kind::new(error, sentence));
        true
    }
}

impl Faults {
    pub(crate) fn new(on_error: OnError, read_only: bool) -> Self {
        Self { on_error, writable: !read_only, seen: Mutex::default() }
    }

    /// Tells the first error of a kind, if it is serious, and counts the others.
    pub(crate) fn meet(&self, error: &Error) {
        if !self.is_serious(error) {
            return;
        }
        let is_first = self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(error);
        if is_first {
            (self.on_error)(Fault::First(error));
        } else {
            debug!("{error}");
        }
    }

    fn is_serious(&self, error: &Error) -> bool {
        match error {
            Error::Io(_) | Error::Corrupt(_) => true,
            Error::ReadOnly => self.writable,
            _ => false,
        }
    }

    /// Tells what was only counted, once.
    pub(crate) fn tell_counts(&self) {
        let Seen { kinds, others } =
            take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        for kind in kinds.iter().filter(|kind| kind.more > 0) {
            (self.on_error)(Fault::More { first: &kind.first, count: kind.more });
        }
        if others > 0 {
            (self.on_error)(Fault::Others(others));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Messages about errors: at once, and at the end.
    fn told(read_only: bool, errors: &[Error]) -> [Vec<String>; 2] {
        let all = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&all);
        let listen = move |fault: Fault<'_>| listener.lock().unwrap().push(fault.to_string());
        let faults = Faults::new(Box::new(listen), read_only);
        errors.iter().for_each(|error| faults.meet(error));
        let at_once = take(&mut *all.lock().unwrap());
        faults.tell_counts();
        let at_end = take(&mut *all.lock().unwrap());
        faults.tell_counts();
        assert!(all.lock().unwrap().is_empty(), "counts are told once");
        [at_once, at_end]
    }

    #[test]
    fn each_kind_is_told_once_and_counted_at_the_end() {
        let corrupt = |ino| Error::Corrupt(format!("inode {ino}: a link without a target"));
        let failed = || Error::Io("the device is gone".into());
        let bad_block = || Error::Io("block 7 cannot be read".into());
        let mut errors = vec![Error::NotFound, failed(), corrupt(5), Error::NoSpace, bad_block()];
        errors.extend((6..47).map(corrupt));
        errors.extend([failed(), Error::NotFound]);
        let [at_once, at_end] = told(false, &errors);
        let first =
            ["the device is gone", "inode 5: a link without a target", "block 7 cannot be read"];
        assert_eq!(at_once, first);
        let counted = [
            "the device is gone: and 1 more error of this kind",
            "inode 5: a link without a target: and 41 more errors of this kind",
        ];
        assert_eq!(at_end, counted);
    }

    #[test]
    fn an_error_of_the_device_is_not_damage_of_the_same_words() {
        let [at_once, _] = told(false, &[Error::Io("bad".into()), Error::Corrupt("bad".into())]);
        assert_eq!(at_once.len(), 2);
    }

    #[test]
    fn a_file_system_that_has_stopped_writing_is_told_unless_it_was_asked_to() {
        assert_eq!(told(false, &[Error::ReadOnly])[0], ["the file system is read-only"]);
        assert_eq!(told(true, &[Error::ReadOnly])[0], [""; 0]);
    }

    #[test]
    fn kinds_without_end_are_only_counted() {
        let names = (0..40_u8).map(|n| char::from(b'A' + n).to_string());
        let errors: Vec<Error> = names.map(Error::Corrupt).collect();
        let [at_once, at_end] = told(false, &errors);
        assert_eq!(
            (at_once.len(), at_end),
            (MOST_KINDS, vec!["and 8 errors of other kinds".to_string()])
        );
    }
}
