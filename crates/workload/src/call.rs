//! Calls of a workload: requests of its threads to a file system, one after another.

use dovetail_block::Lifetime;
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
        /// File to open.
        file: FileId,
    },
    /// Makes the directories on the way to the file, if they are not there.
    MakeDirectories {
        /// File that is to lie there.
        file: FileId,
    },
    /// Closes the file.
    Close {
        /// File to close.
        file: FileId,
    },
    /// Reads.
    Read {
        /// File to read.
        file: FileId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes; at the end of the file it may be less.
        len: u64,
        /// Past the page cache; `offset` and `len` are then whole blocks of 4096 bytes.
        direct: bool,
    },
    /// Writes; the file grows if need be.
    Write {
        /// File to write.
        file: FileId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// As in [`Call::Read`].
        direct: bool,
    },
    /// Writes behind the end of the file.
    Append {
        /// File to extend.
        file: FileId,
        /// Number of bytes.
        len: u64,
    },
    /// Frees the blocks of a range; it reads as zeros then. The size stays.
    PunchHole {
        /// File to punch a hole in.
        file: FileId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Reserves blocks from the start of the file.
    Allocate {
        /// File that the blocks are for.
        file: FileId,
        /// Number of bytes.
        len: u64,
        /// The size stays as it is.
        keep_size: bool,
    },
    /// Sets the size of the file.
    Truncate {
        /// File to resize.
        file: FileId,
        /// New size.
        size: u64,
    },
    /// Makes the file survive a power cut.
    Sync {
        /// File to sync.
        file: FileId,
        /// As fdatasync: attributes that the content does not need may stay behind.
        data_only: bool,
    },
    /// Makes everything survive a power cut.
    SyncAll,
    /// Takes the file's name away.
    Unlink {
        /// File to unlink.
        file: FileId,
    },
    /// Looks at the file's attributes.
    Stat {
        /// File to look at.
        file: FileId,
    },
    /// Forgets what the page cache holds of the file and is not dirty.
    DropCache {
        /// File whose clean pages are dropped.
        file: FileId,
    },
}

impl Call {
    /// The file that it is about.
    pub const fn file(&self) -> Option<FileId> {
        match *self {
            Self::Open { file }
            | Self::MakeDirectories { file }
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
            Self::MakeDirectories { file } => Self::MakeDirectories { file: change(file) },
            Self::Close { file } => Self::Close { file: change(file) },
            Self::Read { file, offset, len, direct } => {
                Self::Read { file: change(file), offset, len, direct }
            }
            Self::Write { file, offset, len, direct } => {
                Self::Write { file: change(file), offset, len, direct }
            }
            Self::Append { file, len } => Self::Append { file: change(file), len },
            Self::PunchHole { file, offset, len } => {
                Self::PunchHole { file: change(file), offset, len }
            }
            Self::Allocate { file, len, keep_size } => {
                Self::Allocate { file: change(file), len, keep_size }
            }
            Self::Truncate { file, size } => Self::Truncate { file: change(file), size },
            Self::Sync { file, data_only } => Self::Sync { file: change(file), data_only },
            Self::SyncAll => Self::SyncAll,
            Self::Unlink { file } => Self::Unlink { file: change(file) },
            Self::Stat { file } => Self::Stat { file: change(file) },
            Self::DropCache { file } => Self::DropCache { file: change(file) },
        }
    }
}

/// Next step of a thread.
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

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Time at which the thread made the call.
    pub begin: SimTime,
    /// Time at which it returned.
    pub end: SimTime,
    /// Bytes read or written.
    pub bytes: u64,
}

/// Threads that make calls. It decides by what it is told alone: the same seed and the same
/// outcomes give the same calls.
///
/// A thread is asked for its next step when it starts, and again when a call that it made has been
/// taken up (a thread may have several calls under way; one that may not answers [`Step::Wait`]),
/// when the time of its [`Step::Sleep`] has come, or when what it waits for has happened.
pub trait Workload {
    /// Number of threads; it does not change.
    fn threads(&self) -> u32;

    /// The job that a thread belongs to: threads of one job are reported together.
    fn job(&self, thread: ThreadId) -> &str;

    /// The hint that a thread gives the files that it writes.
    fn lifetime(&self, _thread: ThreadId) -> Lifetime {
        Lifetime::NotSet
    }

    /// System calls that each call of a thread takes: an asynchronous one may be handed over by
    /// one and collected by another.
    fn system_calls(&self, _thread: ThreadId) -> u32 {
        1
    }

    /// The path of a file from the root of the file system, without a slash before it.
    fn path(&self, file: FileId) -> &str;

    /// The first file of its own: those before it are there to fill the volume, and no thread
    /// touches them.
    fn first_file(&self) -> FileId {
        FileId(0)
    }

    /// Calls that make the files which are to be there before the first thread starts, one after
    /// another; `None` after the last one. They are not measured.
    fn prepare(&mut self) -> Option<Call>;

    /// Returns the next step of `thread` at time `now`.
    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step;

    /// A call of `thread` has ended.
    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome);

    /// The thread has been ended by another one, whatever it sleeps for. Asked when a thread is
    /// done.
    fn is_cut_short(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Returns whether a call that `thread` begins at `begin` counts in the results.
    fn measured(&self, _thread: ThreadId, _begin: SimTime) -> bool {
        true
    }

    /// Part of the work that is done at `now`, from 0 to 1; `None` where nobody knows.
    fn share_done(&self, _now: SimTime) -> Option<f64> {
        None
    }

    /// Bytes that [`Self::prepare`] writes in all; 0 where nobody knows.
    fn prepared_bytes(&self) -> u64 {
        0
    }

    /// Bytes that its files have when all are as large as they may become; 0 where nobody knows.
    fn wanted_bytes(&self) -> u64 {
        0
    }

    /// Blocks of 4 KiB that the writes which are left touch at most, those of [`Self::prepare`] among
    /// them, each as often as it is written; `None` where nobody knows. For a workload that has not
    /// begun.
    fn written_blocks(&self) -> Option<u64> {
        None
    }

    /// Reason for an end before its time, if there was one.
    fn problem(&self) -> Option<String> {
        None
    }

    /// The fio job that makes the calls, if one does: results in fio's layout name what it says of
    /// its threads.
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

    fn lifetime(&self, thread: ThreadId) -> Lifetime {
        (**self).lifetime(thread)
    }

    fn system_calls(&self, thread: ThreadId) -> u32 {
        (**self).system_calls(thread)
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

    fn share_done(&self, now: SimTime) -> Option<f64> {
        (**self).share_done(now)
    }

    fn prepared_bytes(&self) -> u64 {
        (**self).prepared_bytes()
    }

    fn wanted_bytes(&self) -> u64 {
        (**self).wanted_bytes()
    }

    fn written_blocks(&self) -> Option<u64> {
        (**self).written_blocks()
    }

    fn problem(&self) -> Option<String> {
        (**self).problem()
    }

    fn fio(&self) -> Option<&FioWorkload> {
        (**self).fio()
    }
}
