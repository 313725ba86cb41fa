//! Error of a call: the errno that a system call returns, and a sentence.

/// Error of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// ENOENT
    #[error("no such file or directory")]
    NotFound,
    /// EEXIST
    #[error("the name is taken")]
    Exists,
    /// ENOTDIR
    #[error("not a directory")]
    NotADirectory,
    /// EISDIR
    #[error("it is a directory")]
    IsADirectory,
    /// ENOTEMPTY
    #[error("the directory is not empty")]
    NotEmpty,
    /// ENOSPC
    #[error("no space is left on the volume")]
    NoSpace,
    /// ENAMETOOLONG
    #[error("the name is longer than the file system can store")]
    NameTooLong,
    /// EMLINK
    #[error("the file has as many names as it can have")]
    TooManyLinks,
    /// EINVAL
    #[error("{0}")]
    Invalid(&'static str),
    /// EPERM
    #[error("{0}")]
    NotPermitted(&'static str),
    /// EACCES
    #[error("access is denied")]
    AccessDenied,
    /// ENODATA
    #[error("there is no such extended attribute")]
    NoAttribute,
    /// ENXIO: a search for data or a hole beyond the end of the file.
    #[error("there is nothing at or after this offset")]
    BeyondEnd,
    /// EFBIG
    #[error("the file would be larger than the file system can store")]
    FileTooBig,
    /// E2BIG
    #[error("the value is larger than the file system can store")]
    TooBig,
    /// EROFS
    #[error("the file system is read-only")]
    ReadOnly,
    /// EOPNOTSUPP
    #[error("{0} is not supported")]
    Unsupported(String),
    /// EBUSY
    #[error("it is in use")]
    Busy,
    /// EAGAIN: something that another call began has to end first, and the device below makes plans
    /// (`BlockDevice::has_come`): the same call again will find it done.
    #[error("another call is in the way: try again")]
    Again,
    /// EIO: the device failed.
    #[error("{0}")]
    Io(String),
    /// EUCLEAN: the volume is damaged.
    #[error("{0}")]
    Corrupt(String),
}

impl Error {
    /// The errno of Linux, as on x86-64.
    pub const fn errno(&self) -> i32 {
        match self {
            Self::NotFound => 2,
            Self::Exists => 17,
            Self::NotADirectory => 20,
            Self::IsADirectory => 21,
            Self::NotEmpty => 39,
            Self::NoSpace => 28,
            Self::NameTooLong => 36,
            Self::TooManyLinks => 31,
            Self::Invalid(_) => 22,
            Self::NotPermitted(_) => 1,
            Self::AccessDenied => 13,
            Self::NoAttribute => 61,
            Self::BeyondEnd => 6,
            Self::FileTooBig => 27,
            Self::TooBig => 7,
            Self::ReadOnly => 30,
            Self::Unsupported(_) => 95,
            Self::Busy => 16,
            Self::Again => 11,
            Self::Io(_) => 5,
            Self::Corrupt(_) => 117,
        }
    }
}
