//! What threads ask of a file system: the calls of a workload, one after another.

use dovetail_time::SimTime;

use crate::fio::FioWorkload;

/// A file of a workload, by its place in the workload's own list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A thread of a workload, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// One system call. Offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opens the file, and makes it (and the directories on its way) if it is not there.
    Open {
        /// Which.
        file: FileId,
    },
    /// Closes the file.
    Close {
        /// Which.
        file: FileId,
    },
    /// Reads.
    Read {
        /// Which file.
        file: FileId,
        /// From where.
        offset: u64,
        /// How much; at the end of the file it may be less.
        len: u64,
        /// Past the page cache; `offset` and `len` are then whole blocks of 4096 bytes.
        direct: bool,
    },
    /// Writes; the file grows if need be.
    Write {
        /// Which file.
        file: FileId,
        /// Where to.
        offset: u64,
        /// How much.
        len: u64,
        /// As in [`Call::Read`].
        direct: bool,
    },
    /// Writes behind the end of the file.
    Append {
        /// Which file.
        file: FileId,
        /// How much.
        len: u64,
    },
    /// Frees the blocks of a range; it reads as zeros then. The size stays.
    PunchHole {
        /// Which file.
        file: FileId,
        /// From where.
        offset: u64,
        /// How much.
        len: u64,
    },
    /// Reserves blocks from the start of the file.
    Allocate {
        /// Which file.
        file: FileId,
        /// How much.
        len: u64,
        /// The size stays as it is.
        keep_size: bool,
    },
    /// Sets the size of the file.
    Truncate {
        /// Which file.
        file: FileId,
        /// To what.
        size: u64,
    },
    /// Makes the file survive a power cut.
    Sync {
        /// Which file.
        file: FileId,
        /// As fdatasync: attributes that the content does not need may stay behind.
        data_only: bool,
    },
    /// Makes everything survive a power cut.
    SyncAll,
    /// Takes the file's name away.
    Unlink {
        /// Which file.
        file: FileId,
    },
    /// Looks at the file's attributes.
    Stat {
        /// Which file.
        file: FileId,
    },
    /// Forgets what the page cache holds of the file and is not dirty.
    DropCache {
        /// Which file.
        file: FileId,
    },
}

impl Call {
    /// The file that it is about.
    pub const fn file(&self) -> Option<FileId> {
        match *self {
            Self::Open { file }
            | Self::Close { file }
            | Self::Read { file, .. }
            | Self::Write { file, .. }
            | Self::Append { file, .. }
            | Self::PunchHole { file, .. }
            | Self::Allocate { file, .. }
            | Self::Truncate { file, .. }
            | Self::Sync { file, .. }
            | Self::Unlink { file }
            | Self::Stat { file }
            | Self::DropCache { file } => Some(file),
            Self::SyncAll => None,
        }
    }

    /// The same call on another file.
    #[must_use]
    pub fn with_file(self, change: impl Fn(FileId) -> FileId) -> Self {
        match self {
            Self::Open { file } => Self::Open { file: change(file) },
            Self::Close { file } => Self::Close { file: change(file) },
            Self::Read { file, offset, len, direct } => {
                Self::Read { file: change(file), offset, len, direct }
            }
            Self::Write { file, offset, len, direct } => {
                Self::Write { file: change(file), offset, len, direct }
            }
            Self::Append { file, len } => Self::Append { file: change(file), len },
            Self::PunchHole { file, offset, len } => Self::PunchHole { file: change(file), offset, len },
            Self::Allocate { file, len, keep_size } => Self::Allocate { file: change(file), len, keep_size },
            Self::Truncate { file, size } => Self::Truncate { file: change(file), size },
            Self::Sync { file, data_only } => Self::Sync { file: change(file), data_only },
            Self::SyncAll => Self::SyncAll,
            Self::Unlink { file } => Self::Unlink { file: change(file) },
            Self::Stat { file } => Self::Stat { file: change(file) },
            Self::DropCache { file } => Self::DropCache { file: change(file) },
        }
    }
}

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This call.
    Call(Call),
    /// Nothing before this time.
    Sleep(SimTime),
    /// Nothing before one of its own calls has ended.
    Wait,
    /// Nothing before another thread's call has ended.
    WaitForOthers,
    /// Nothing any more.
    Done,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the thread made the call.
    pub begin: SimTime,
    /// When it returned.
    pub end: SimTime,
    /// Bytes read or written.
    pub bytes: u64,
}

/// Threads that make calls. It decides by what it is told alone: the same seed and the same outcomes give the same calls.
///
/// A thread is asked for its next step when it starts, and again when a call that it made has been taken up (a thread may have
/// several calls under way; one that may not answers [`Step::Wait`]), when the time of its [`Step::Sleep`] has come, or when what it waits for has
/// happened.
pub trait Workload {
    /// How many threads there are; it does not change.
    fn threads(&self) -> u32;

    /// The job that a thread belongs to: threads of one job are reported together.
    fn job(&self, thread: ThreadId) -> &str;

    /// The path of a file from the root of the file system, without a slash before it.
    fn path(&self, file: FileId) -> &str;

    /// The first file of its own: those before it are there to fill the volume, and no thread touches them.
    fn first_file(&self) -> FileId {
        FileId(0)
    }

    /// Calls that make the files which are to be there before the first thread starts, one after another; `None` after
    /// the last one. They are not measured.
    fn prepare(&mut self) -> Option<Call>;

    /// What `thread` does next, at time `now`.
    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step;

    /// A call of `thread` has ended.
    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome);

    /// Whether a call that `thread` begins at `begin` counts in the results.
    fn measured(&self, _thread: ThreadId, _begin: SimTime) -> bool {
        true
    }

    /// Why it came to an end before its time, if it did.
    fn problem(&self) -> Option<String> {
        None
    }

    /// The fio job that makes the calls, if one does: results in fio's layout name what it says of its threads.
    fn fio(&self) -> Option<&FioWorkload> {
        None
    }
}

impl<W: Workload + ?Sized> Workload for Box<W> {
    fn threads(&self) -> u32 {
        (**self).threads()
    }

    fn job(&self, thread: ThreadId) -> &str {
        (**self).job(thread)
    }

    fn path(&self, file: FileId) -> &str {
        (**self).path(file)
    }

    fn first_file(&self) -> FileId {
        (**self).first_file()
    }

    fn prepare(&mut self) -> Option<Call> {
        (**self).prepare()
    }

    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step {
        (**self).next(thread, now)
    }

    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome) {
        (**self).ended(thread, call, outcome);
    }

    fn measured(&self, thread: ThreadId, begin: SimTime) -> bool {
        (**self).measured(thread, begin)
    }

    fn problem(&self) -> Option<String> {
        (**self).problem()
    }

    fn fio(&self) -> Option<&FioWorkload> {
        (**self).fio()
    }
}
