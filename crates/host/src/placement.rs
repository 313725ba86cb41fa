//! The host's choice of the stream of a write, or of its handle on a drive with flexible data
//! placement.

use dovetail_block::{Hints, StreamId};
use serde::{Deserialize, Serialize};

/// The rule for the stream of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// The writer's own kinds of blocks: a log of F2FS, a kind of ext4's.
    #[default]
    Writer,
    /// The lifetime: its number, the last stream for those beyond.
    Lifetime,
    /// The first stream for all.
    None,
}

impl Placement {
    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "writer" => Some(Self::Writer),
            "lifetime" => Some(Self::Lifetime),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    /// Is true for the rule of whoever names none.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The stream of a write to a device with so many.
    pub fn stream(self, hints: Hints, streams: u8) -> StreamId {
        match self {
            Self::Writer => StreamId(hints.stream.0 % streams.max(1)),
            Self::Lifetime => StreamId((hints.lifetime as u8).min(streams.max(1) - 1)),
            Self::None => StreamId(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_block::{Inode, Lifetime};

    use super::*;

    fn hints(stream: u8, lifetime: Lifetime) -> Hints {
        Hints { stream: StreamId(stream), lifetime, inode: Inode(0) }
    }

    #[test]
    fn a_lifetime_becomes_the_stream_of_its_number_and_the_last_one_beyond() {
        let streams =
            |n| Lifetime::ALL.map(|lifetime| Placement::Lifetime.stream(hints(7, lifetime), n).0);
        assert_eq!(streams(8), [0, 1, 2, 3, 4, 5]);
        assert_eq!(streams(4), [0, 1, 2, 3, 3, 3]);
        assert_eq!(streams(1), [0; 6]);
    }

    #[test]
    fn the_writers_kinds_and_no_placement_know_no_lifetime() {
        assert_eq!(Placement::Writer.stream(hints(7, Lifetime::Short), 8), StreamId(7));
        assert_eq!(Placement::Writer.stream(hints(7, Lifetime::Short), 4), StreamId(3));
        assert_eq!(Placement::None.stream(hints(7, Lifetime::Short), 8), StreamId(0));
    }
}
