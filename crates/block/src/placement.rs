//! Placement: the host's hints about lifetimes, and the reclaim units of a drive with flexible data
//! placement (FDP).

/// The expected lifetime of what is written: Linux's write hint, by its number there
/// (`F_SET_RW_HINT` of fcntl(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lifetime {
    /// Nothing was said.
    #[default]
    NotSet = 0,
    /// No lifetime in particular.
    None = 1,
    /// Short.
    Short = 2,
    /// Longer than short.
    Medium = 3,
    /// Longer than medium.
    Long = 4,
    /// As long as the file system.
    Extreme = 5,
}

impl Lifetime {
    /// All of them, by number.
    pub const ALL: [Self; 6] =
        [Self::NotSet, Self::None, Self::Short, Self::Medium, Self::Long, Self::Extreme];

    /// The name that fio's `write_hint` has for it; `not-set` for the absence of one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSet => "not-set",
            Self::None => "none",
            Self::Short => "short",
            Self::Medium => "medium",
            Self::Long => "long",
            Self::Extreme => "extreme",
        }
    }

    /// The lifetime of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lifetime| lifetime.name() == name)
    }
}

/// The isolation of what a drive moves from a reclaim unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Data of a handle are apart when they are written; what is moved may lie together with what
    /// is moved of other such handles.
    Initial,
    /// Data that are moved stay with data of the same handle.
    Persistent,
}

impl Isolation {
    /// Its name in profiles and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Persistent => "persistent",
        }
    }
}

/// The reclaim units of a drive with FDP. It has one reclaim group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReclaimUnits {
    /// Reclaim unit handles, 1 to 16.
    pub handles: u8,
    /// Blocks of a reclaim unit.
    pub blocks: u64,
    /// Isolation, that of all handles.
    pub isolation: Isolation,
}

/// A handle, as the drive reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandleStatus {
    /// Blocks that its reclaim unit still takes before the drive moves on to another one.
    pub blocks_left: u64,
    /// Blocks that the host wrote by it.
    pub host_blocks: u64,
    /// Blocks of its data that were written to the medium, by whatever cause.
    pub media_blocks: u64,
}

/// The kind of an FDP event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacementEvent {
    /// A handle was moved on from a reclaim unit that had room left.
    UnitNotFull,
    /// A write named a handle that is not there, and was placed by the first one.
    InvalidHandle,
    /// Data were moved from a reclaim unit.
    MediaReallocated,
}

impl PlacementEvent {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::UnitNotFull, Self::InvalidHandle, Self::MediaReallocated];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnitNotFull => "unit-not-full",
            Self::InvalidHandle => "invalid-handle",
            Self::MediaReallocated => "media-reallocated",
        }
    }
}

/// Statistics of a drive with FDP since it was switched on: the log pages of its handles, its
/// statistics and its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementReport {
    /// The handles in order.
    pub handles: Vec<HandleStatus>,
    /// Bytes that the host wrote (HBMW).
    pub host_bytes: u64,
    /// Bytes written to the medium (MBMW).
    pub media_bytes: u64,
    /// Bytes erased (MBE).
    pub erased_bytes: u64,
    /// Events by kind, as [`PlacementEvent::ALL`] has them.
    pub events: [u64; PlacementEvent::ALL.len()],
}

impl PlacementReport {
    /// Number of events of a kind.
    pub const fn events(&self, kind: PlacementEvent) -> u64 {
        self.events[kind as usize]
    }

    /// Bytes written to the medium for each byte of the host's; `None` before the host's first.
    pub fn waf(&self) -> Option<f64> {
        (self.host_bytes > 0).then(|| self.media_bytes as f64 / self.host_bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_found_by_its_name() {
        for lifetime in Lifetime::ALL {
            assert_eq!(Lifetime::named(lifetime.name()), Some(lifetime));
        }
        assert_eq!(Lifetime::named("forever"), None);
    }
}
