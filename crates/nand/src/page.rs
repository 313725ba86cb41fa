//! Data beside a page's own in its out-of-band area.

use dovetail_block::{Inode, StreamId};

/// A logical page number: the index of a page-sized piece of the drive's logical space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u64);

/// The number of a program operation, counted over the drive's life: of two pages with the same
/// logical page the one with the greater number is the newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// A page's out-of-band area. It has an error correction of its own: it can be read even where the
/// data of the page cannot, but not when the page was torn by a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oob {
    /// The logical page of which this is a version.
    pub lpn: Lpn,
    /// Time when it was written.
    pub seq: Seq,
    /// The inode it belongs to, as the writer told.
    pub inode: Inode,
    /// The stream it was written in, 0 to 15.
    pub stream: StreamId,
}
