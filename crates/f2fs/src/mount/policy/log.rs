//! The choice among the six logs for a block, and the lifetime that a log tells the device.

use dovetail_block::Lifetime;

/// A log, by the number that the format gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Log {
    HotData = 0,
    WarmData = 1,
    ColdData = 2,
    HotNode = 3,
    WarmNode = 4,
    ColdNode = 5,
}

impl Log {
    pub(crate) const ALL: [Self; 6] = [
        Self::HotData,
        Self::WarmData,
        Self::ColdData,
        Self::HotNode,
        Self::WarmNode,
        Self::ColdNode,
    ];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    pub(crate) const fn is_node(self) -> bool {
        self as u8 >= 3
    }

    /// The hint of what is written to it (read from the requests of Linux 6.12).
    pub(crate) const fn lifetime(self) -> Lifetime {
        match self {
            Self::HotData => Lifetime::Short,
            Self::WarmData => Lifetime::NotSet,
            Self::ColdData => Lifetime::Extreme,
            Self::HotNode => Lifetime::None,
            Self::WarmNode => Lifetime::Medium,
            Self::ColdNode => Lifetime::Long,
        }
    }
}

/// The number of logs that are written to (mount option `active_logs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// One for data, one for nodes.
    Two,
    /// Directories and other data; direct nodes of files and all other nodes.
    Four,
    /// Hot, warm and cold data, hot, warm and cold nodes.
    Six,
}

impl Logs {
    /// Their number.
    pub(crate) const fn count(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Six => 6,
        }
    }
}

/// The facts of the choice of a data log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DataFacts {
    /// A block of a directory.
    pub(crate) dir: bool,
    /// Cleaning moves it.
    pub(crate) cleaning: bool,
    /// The file is marked cold, by its extension or by a user, or is compressed.
    pub(crate) cold: bool,
    /// The file is marked hot.
    pub(crate) hot: bool,
    /// The file has at most `min_hot_blocks` (16) dirty pages.
    pub(crate) small: bool,
    /// The hint that a program gave the file.
    pub(crate) lifetime: Lifetime,
    /// Updates are remapped: what is appended stays, and is cold (RM-IPU paper, section 3).
    pub(crate) stays: bool,
}

/// The log of a data block (Linux 6.1, six logs: cleaning, then cold, then hot, then by the hint of a
/// program, of which short and extreme count; and RM-IPU's appends).
pub(crate) const fn data_log(logs: Logs, facts: DataFacts) -> Log {
    match logs {
        Logs::Two => Log::HotData,
        Logs::Four if facts.dir => Log::HotData,
        Logs::Four => Log::ColdData,
        Logs::Six if facts.cleaning || ((facts.cold || facts.stays) && !facts.dir) => Log::ColdData,
        Logs::Six if facts.dir || facts.hot || facts.small => Log::HotData,
        Logs::Six => match facts.lifetime {
            Lifetime::Short => Log::HotData,
            Lifetime::Extreme => Log::ColdData,
            _ => Log::WarmData,
        },
    }
}

/// The log of a node: `indirect` if it points to nodes, `dir` if it belongs to a directory.
pub(crate) const fn node_log(logs: Logs, indirect: bool, dir: bool) -> Log {
    match logs {
        Logs::Two => Log::HotNode,
        Logs::Four if !indirect && !dir => Log::WarmNode,
        Logs::Four => Log::ColdNode,
        Logs::Six if indirect => Log::ColdNode,
        Logs::Six if dir => Log::HotNode,
        Logs::Six => Log::WarmNode,
    }
}

/// A dot after the first character of `name` is followed by `extension`, whatever the case, and
/// perhaps more.
pub(crate) fn matches_extension(name: &[u8], extension: &[u8]) -> bool {
    let starts = |rest: &[u8]| {
        rest.len() >= extension.len() && rest[..extension.len()].eq_ignore_ascii_case(extension)
    };
    name.len() >= extension.len() + 2
        && name
            .iter()
            .enumerate()
            .skip(1)
            .any(|(at, &byte)| byte == b'.' && starts(&name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_logs_separate_as_the_kernel_does() {
        let log = |facts| data_log(Logs::Six, facts);
        let base = DataFacts::default();
        assert_eq!(log(base), Log::WarmData);
        assert_eq!(log(DataFacts { small: true, ..base }), Log::HotData);
        assert_eq!(log(DataFacts { small: true, cold: true, ..base }), Log::ColdData);
        assert_eq!(log(DataFacts { dir: true, ..base }), Log::HotData);
        let hinted = Lifetime::ALL.map(|lifetime| log(DataFacts { lifetime, ..base }));
        let (hot, warm, cold) = (Log::HotData, Log::WarmData, Log::ColdData);
        assert_eq!(hinted, [warm, warm, hot, warm, warm, cold]);
        let (small, lifetime) = (true, Lifetime::Extreme);
        assert_eq!(log(DataFacts { small, lifetime, ..base }), Log::HotData);
        assert_eq!(log(DataFacts { stays: true, small: true, ..base }), Log::ColdData);
        assert_eq!(log(DataFacts { stays: true, dir: true, ..base }), Log::HotData);
        assert_eq!(log(DataFacts { dir: true, cleaning: true, ..base }), Log::ColdData);
        assert_eq!(node_log(Logs::Six, false, true), Log::HotNode);
        assert_eq!(node_log(Logs::Six, false, false), Log::WarmNode);
        assert_eq!(node_log(Logs::Six, true, true), Log::ColdNode);
    }

    #[test]
    fn an_extension_matches_as_a_prefix_after_any_dot_but_the_first_character() {
        for name in ["a.mp4", "a.MPEG", "a.mp4.tmp"] {
            assert!(matches_extension(name.as_bytes(), b"mp"), "{name}");
        }
        for name in [".mp4", "mp", "a.m", "ump4"] {
            assert!(!matches_extension(name.as_bytes(), b"mp"), "{name}");
        }
    }
}
